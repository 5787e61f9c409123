//! Events of a recording by session and sequence, and how far the client knows of them. What a read is answered with
//! must fit what was told: a state of sequence 3 beside an `events.after` that ends at 1 is no host.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// Events of a page at most.
const PAGE: usize = 1000;

/// What a recording tells of events, wherever it stands.
#[derive(Debug, Default)]
pub(super) struct Known {
    sessions: HashMap<String, Session>,
}

#[derive(Debug, Default)]
struct Session {
    events: BTreeMap<u64, String>,
    /// The newest sequence that was told in this replay.
    told: u64,
    /// Events up to this one were no longer kept.
    gone: u64,
}

impl Known {
    /// Notes a durable event.
    pub(super) fn event(&mut self, session: &str, sequence: u64, event: &Value) {
        self.session(session).events.entry(sequence).or_insert_with(|| event.to_string());
    }

    /// Notes the events of a recorded page, and what it tells to be gone.
    pub(super) fn page(&mut self, params: &Value, result: &Value) {
        let Some(session) = params.get("session_id").and_then(Value::as_str) else { return };
        for event in result.get("events").and_then(Value::as_array).into_iter().flatten() {
            if let Some(sequence) = event.get("sequence").and_then(Value::as_u64) {
                self.event(session, sequence, event);
            }
        }
        if result.get("resync").and_then(Value::as_bool) == Some(true) {
            let after = params.get("after").and_then(Value::as_u64).unwrap_or(0);
            let known = self.session(session);
            known.gone = known.gone.max(after + 1);
        }
    }

    /// The client was told of events up to this one.
    pub(super) fn told(&mut self, session: &str, sequence: u64) {
        let known = self.session(session);
        known.told = known.told.max(sequence);
    }

    /// The newest sequence that the client was told of.
    pub(super) fn horizon(&self, session: &str) -> u64 {
        self.sessions.get(session).map_or(0, |known| known.told)
    }

    /// The answer to `events.after`: what was told, and nothing that comes later.
    pub(super) fn after(&self, params: &Value) -> String {
        let number = |name: &str| params.get(name).and_then(Value::as_u64);
        let session = params.get("session_id").and_then(Value::as_str).unwrap_or_default();
        let after = number("after").unwrap_or(0);
        let limit = number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE).clamp(1, PAGE);
        let Some(known) = self.sessions.get(session).filter(|known| known.told > after) else {
            return r#"{"events":[],"has_more":false}"#.to_owned();
        };
        if after < known.gone {
            return r#"{"events":[],"has_more":false,"resync":true}"#.to_owned();
        }
        let mut events = known.events.range(after + 1..=known.told).map(|(_, event)| event.as_str());
        let page: Vec<&str> = events.by_ref().take(limit).collect();
        format!(r#"{{"events":[{}],"has_more":{}}}"#, page.join(","), events.next().is_some())
    }

    fn session(&mut self, id: &str) -> &mut Session {
        if !self.sessions.contains_key(id) {
            self.sessions.insert(id.to_owned(), Session::default());
        }
        self.sessions.get_mut(id).expect("it was put there just now")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(known: &Known, after: u64, limit: u64) -> Value {
        serde_json::from_str(&known.after(&json!({ "session_id": "s", "after": after, "limit": limit }))).unwrap()
    }

    #[test]
    fn only_what_was_told_is_there_to_read() {
        let mut known = Known::default();
        for sequence in [2, 5, 9] {
            known.event("s", sequence, &json!({ "sequence": sequence }));
        }
        assert_eq!(after(&known, 0, 10), json!({ "events": [], "has_more": false }));
        known.told("s", 7);
        assert_eq!(
            after(&known, 0, 10),
            json!({ "events": [{ "sequence": 2 }, { "sequence": 5 }], "has_more": false })
        );
        assert_eq!(after(&known, 0, 1), json!({ "events": [{ "sequence": 2 }], "has_more": true }));
        assert_eq!(after(&known, 7, 10), json!({ "events": [], "has_more": false }));
        assert_eq!((known.horizon("s"), known.horizon("other")), (7, 0));
    }

    #[test]
    fn what_was_gone_is_gone() {
        let mut known = Known::default();
        known.page(&json!({ "session_id": "s", "after": 3 }), &json!({ "events": [], "resync": true }));
        known.page(&json!({ "session_id": "s", "after": 8 }), &json!({ "events": [{ "sequence": 9 }] }));
        known.told("s", 9);
        assert_eq!(after(&known, 3, 10)["resync"], true);
        assert_eq!(after(&known, 4, 10)["events"], json!([{ "sequence": 9 }]));
    }
}
