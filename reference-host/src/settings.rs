//! Configuration: the keys of `config.set`, what each takes, and what is in force.

use std::sync::Arc;
use std::time::Duration;

use kitport::bubblepaw::wire::code;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::host::Host;
use crate::providers;
use crate::store::Store;

/// Pause between two pieces of text, in milliseconds.
const SPEED: &str = "agent.speed";
/// The default model, as roles.set_main saves it.
pub(crate) const MODEL: &str = "agent.model";
/// `ask` or `allow`.
const APPROVALS: &str = "agent.approvals";
/// Events of a session that are kept, or null for all.
const RETENTION: &str = "retention.events";
/// Whether a provider is configured.
const PROVIDER: &str = "provider.enabled";
/// Comes from a file that the host may not write.
const HOST_NAME: &str = "host.name";

/// Every key with what it takes.
pub const CONFIG_KEYS: &[(&str, &str)] = &[
    (SPEED, "whole number of milliseconds, 0 to 10000"),
    (MODEL, "a model as provider/model"),
    (APPROVALS, "\"ask\" or \"allow\""),
    (RETENTION, "whole number from 1, or null for all"),
    (PROVIDER, "true or false"),
    (HOST_NAME, "text; it can't be written"),
];

/// The slowest speed.
const SPEED_MAX_MS: u64 = 10_000;

/// Checks a value and saves it.
pub(crate) fn set(store: &Store, key: &str, value: &Value) -> Outcome<()> {
    let wrong_type = |expected: &str| {
        Failure::new(code::CONFIG_WRONG_TYPE, format!("{key} takes a {expected}"))
            .with_data(json!({ "key": key, "expected": expected, "got": type_of(value) }))
    };
    let invalid = |why: Value| {
        let mut data = json!({ "key": key, "value": value });
        if let (Some(data), Value::Object(why)) = (data.as_object_mut(), why) {
            data.extend(why);
        }
        Failure::new(code::CONFIG_INVALID_VALUE, format!("{key} can't be {value}")).with_data(data)
    };
    match key {
        SPEED => {
            let ms = value.as_i64().ok_or_else(|| wrong_type("integer"))?;
            if !(0..=SPEED_MAX_MS).contains(&u64::try_from(ms).unwrap_or(u64::MAX)) {
                return Err(invalid(json!({ "min": 0, "max": SPEED_MAX_MS })));
            }
        }
        MODEL => {
            let model = value.as_str().ok_or_else(|| wrong_type("string"))?;
            if providers::find(model).is_err() {
                return Err(invalid(json!({ "known": providers::models() })));
            }
        }
        APPROVALS => {
            let word = value.as_str().ok_or_else(|| wrong_type("string"))?;
            if !matches!(word, "ask" | "allow") {
                return Err(invalid(json!({ "known": ["ask", "allow"] })));
            }
        }
        RETENTION => {
            if !value.is_null() && value.as_i64().ok_or_else(|| wrong_type("integer"))? < 1 {
                return Err(invalid(json!({ "min": 1 })));
            }
        }
        PROVIDER => {
            value.as_bool().ok_or_else(|| wrong_type("boolean"))?;
        }
        HOST_NAME => {
            value.as_str().ok_or_else(|| wrong_type("string"))?;
            return Err(Failure::new(code::CONFIG_WRITE_FAILED, format!("{key} could not be written"))
                .with_data(json!({ "key": key, "reason": "the file is read-only" })));
        }
        _ => {
            let known: Vec<&str> = CONFIG_KEYS.iter().map(|(key, _)| *key).collect();
            return Err(Failure::new(code::CONFIG_UNKNOWN_KEY, format!("unknown key: {key}"))
                .with_data(json!({ "key": key, "known": known })));
        }
    }
    store.set_config(key, value)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Host {
    pub(crate) fn retention(&self, store: &Store) -> Outcome<Option<u64>> {
        Ok(match store.config(RETENTION)? {
            Some(value) => value.as_u64(),
            None => self.options.retention_events,
        })
    }

    pub(crate) fn speed(self: &Arc<Self>) -> Outcome<Duration> {
        self.read(|tx| {
            let saved = tx.store.config(SPEED)?.and_then(|value| value.as_u64());
            Ok(saved.map_or(self.options.speed, Duration::from_millis))
        })
    }

    pub(crate) fn provider_enabled(&self, store: &Store) -> Outcome<bool> {
        let saved = store.config(PROVIDER)?.and_then(|value| value.as_bool());
        Ok(saved.unwrap_or(self.options.provider))
    }

    pub(crate) fn main_model(&self, store: &Store) -> Outcome<String> {
        let saved = store.config(MODEL)?.and_then(|value| value.as_str().map(str::to_owned));
        Ok(saved.unwrap_or_else(|| providers::DEFAULT_MODEL.to_owned()))
    }

    /// Whether tools that need approval are allowed without asking.
    pub(crate) fn allows_all(&self, store: &Store) -> Outcome<bool> {
        Ok(store.config(APPROVALS)?.is_some_and(|value| value == "allow"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_code_and_its_data() {
        let store = Store::open(None).unwrap();
        for (key, value, code) in [
            ("agent.spede", json!(1), code::CONFIG_UNKNOWN_KEY),
            (SPEED, json!("fast"), code::CONFIG_WRONG_TYPE),
            (SPEED, json!(1.5), code::CONFIG_WRONG_TYPE),
            (SPEED, json!(-1), code::CONFIG_INVALID_VALUE),
            (SPEED, json!(10_001), code::CONFIG_INVALID_VALUE),
            (MODEL, json!("meadow/none"), code::CONFIG_INVALID_VALUE),
            (APPROVALS, json!("never"), code::CONFIG_INVALID_VALUE),
            (RETENTION, json!(0), code::CONFIG_INVALID_VALUE),
            (RETENTION, json!(true), code::CONFIG_WRONG_TYPE),
            (PROVIDER, Value::Null, code::CONFIG_WRONG_TYPE),
            (HOST_NAME, json!("x"), code::CONFIG_WRITE_FAILED),
        ] {
            let failure = set(&store, key, &value).unwrap_err();
            assert_eq!(failure.code, code, "{key} {value}");
            assert_eq!(failure.data.unwrap()["key"], key);
            assert_eq!(store.config(key).unwrap(), None, "{key} was saved all the same");
        }
        for (key, value) in [
            (SPEED, json!(0)),
            (MODEL, json!("burrow/tiny")),
            (APPROVALS, json!("allow")),
            (RETENTION, json!(5)),
            (RETENTION, Value::Null),
            (PROVIDER, json!(false)),
        ] {
            set(&store, key, &value).unwrap();
            assert_eq!(store.config(key).unwrap(), Some(value));
        }
    }
}
