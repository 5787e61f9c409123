//! What differs from run to run, made the same: ids, times, folders.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// An id of the reference host's: a kind, the number of its session, and more. Also within a longer text.
static ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b([a-z]+)(?:_[a-z]+)*_[0-9]+_[0-9a-f]+(?:_[0-9]+)*\b").expect("a good pattern"));

/// A time, as the kit writes them.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z$").expect("a good pattern")
});

/// Names for ids, in the order in which they are met.
#[derive(Default)]
pub(super) struct Normal {
    names: HashMap<String, String>,
    counts: HashMap<String, usize>,
    folder: String,
}

impl Normal {
    /// Names what is met, and takes `folder` for the scenario's own.
    pub(super) fn new(folder: &str) -> Self {
        Normal { folder: folder.to_owned(), ..Normal::default() }
    }

    /// The same value with names in place of what differs.
    pub(super) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), self.field(key, field))).collect(),
            other => other.clone(),
        }
    }

    fn field(&mut self, key: &str, field: &Value) -> Value {
        match (key, field) {
            // Where the next page begins is the host's own affair.
            ("nextCursor", Value::String(_)) => Value::String("<cursor>".to_owned()),
            ("workspace", Value::Object(_)) => Value::String("<workspace>".to_owned()),
            _ => self.value(field),
        }
    }

    fn text(&mut self, text: &str) -> String {
        if TIME.is_match(text) {
            return "<time>".to_owned();
        }
        let text = text.replace(&self.folder, "<folder>");
        ID.replace_all(&text, |found: &Captures<'_>| self.name(&found[0], &found[1])).into_owned()
    }

    fn name(&mut self, id: &str, kind: &str) -> String {
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        let name = format!("<{kind} {count}>");
        self.names.insert(id.to_owned(), name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_named_as_they_are_met_and_nothing_else_is() {
        let mut normal = Normal::new("/tmp/x");
        let got = normal.value(&json!({
            "id": "ses_3_0a1b2", "call": "call_run_3_5_0", "message": "provisional:run_3_5:1", "nested": "call_3_9.a",
            "again": ["ses_3_0a1b2", "run_3_6"], "model": "meadow/large", "status": "waiting_for_quota", "word": "is_error",
            "at": "2026-01-01T00:00:00.123Z", "path": "/tmp/x/host.db", "workspace": {"path": "/w"}, "nextCursor": "9", "n": 1.5,
        }));
        assert_eq!(
            got,
            json!({
                "id": "<ses 1>", "call": "<call 1>", "message": "provisional:<run 1>:1", "nested": "<call 2>.a",
                "again": ["<ses 1>", "<run 2>"], "model": "meadow/large", "status": "waiting_for_quota", "word": "is_error",
                "at": "<time>", "path": "<folder>/host.db", "workspace": "<workspace>", "nextCursor": "<cursor>", "n": 1.5,
            })
        );
    }
}
