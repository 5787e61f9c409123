//! Parameters: from a JSON object to a method's own struct, with errors that name the method and the field.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::error::{KitError, Result};

/// The parameter that every method takes.
pub(super) const TIMEOUT: &str = "timeoutMs";

/// How long a call may take, as its caller said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CallLimit {
    /// He said nothing.
    Default,
    /// So long.
    Within(Duration),
    /// As long as it takes.
    None,
}

/// A number for JSON, which knows neither NaN nor infinity: those are refused with the field's name.
///
/// For bindings: `Value::from(f64::NAN)` is null, so that a NaN given as `timeoutMs` would take the limit away without
/// a word. Behind this border no such number exists: [`Value`] can't hold one, and JSON text can't say one.
pub fn finite(field: &str, number: f64) -> Result<Number> {
    Number::from_f64(number).ok_or_else(|| KitError::invalid(format!("{field}: expected a finite number")))
}

/// Parameters from JSON text.
pub(super) fn parse(method: &str, params: &str) -> Result<Value> {
    serde_json::from_str(params).map_err(|error| {
        // The error's own text may quote the input.
        KitError::invalid(format!("{method}: the parameters are no JSON (column {})", error.column()))
    })
}

/// Takes the limit out of the parameters.
pub(super) fn split_limit(method: &str, mut params: Value) -> Result<(CallLimit, Value)> {
    // Not `remove`, which would change the order of what an extension gets.
    let Some(limit) = params.as_object_mut().and_then(|params| params.shift_remove(TIMEOUT)) else {
        return Ok((CallLimit::Default, params));
    };
    let limit = match &limit {
        Value::Null => Some(CallLimit::None),
        limit => limit.as_f64().and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()).map(CallLimit::Within),
    };
    match limit {
        Some(limit) => Ok((limit, params)),
        None => Err(KitError::invalid(format!(
            "{method}: {TIMEOUT}: expected a number of milliseconds that is not negative, or null"
        ))),
    }
}

/// Reads a method's parameters.
pub(super) fn read<P: DeserializeOwned>(method: &str, params: Value) -> Result<P> {
    let params = match params {
        Value::Null => Value::Object(serde_json::Map::new()),
        params @ Value::Object(_) => params,
        // serde would take a list for a struct.
        _ => return Err(KitError::invalid(format!("{method}: expected an object of parameters"))),
    };
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let what = explain(&error.inner().to_string());
        KitError::invalid(match path.as_str() {
            "." => format!("{method}: {what}"),
            path => format!("{method}: {path}: {what}"),
        })
    })
}

/// What was expected, without what was given: that may be anything, and an error may be logged.
fn explain(error: &str) -> String {
    match error.split_once(", expected ") {
        Some((given, expected)) if given.starts_with("invalid ") => format!("expected {expected}"),
        _ => error.to_owned(),
    }
}

/// Reads a list that may be absent.
pub(super) fn list<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
