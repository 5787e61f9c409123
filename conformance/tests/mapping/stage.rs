//! A stage for one chat: a raw host, a stream that started at the chat's state, and words to say what comes and goes.

use kitport::bubblepaw::Options;
use kitport::{BubblePaw, ChatReader, EventStream};
use kitport_conformance::next;
use kitport_conformance::raw_host::RawHost;
use serde_json::{Map, Value, json};

/// Where every chat on the stage starts.
pub(crate) const START: u64 = 10;

/// The kit sequence of a position of a host event.
pub(crate) fn at(host: u64, position: u64) -> u64 {
    host * 16 + position
}

/// A session's state, with the fields of `changes` in place of the usual ones.
pub(crate) fn state(sequence: u64, changes: Value) -> Value {
    let mut state = json!({
        "session": meta("s", "Title", json!({})),
        "sequence": sequence,
        "messages": [],
        "runs": [],
        "inputs": [],
        "outputs": [],
        "todo": [],
    });
    merge(&mut state, changes);
    state
}

/// What a list tells of a session.
pub(crate) fn meta(id: &str, title: &str, more: Value) -> Value {
    let mut meta = json!({
        "session_id": id,
        "title": title,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
    });
    merge(&mut meta, more);
    meta
}

/// The same as a chat of the kit.
pub(crate) fn chat(id: &str, title: &str, more: Value) -> Value {
    let mut chat = json!({
        "id": id,
        "title": title,
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-02T00:00:00Z",
    });
    merge(&mut chat, more);
    chat
}

fn merge(into: &mut Value, changes: Value) {
    let into = into.as_object_mut().expect("an object");
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    into.extend(changes);
}

/// A durable event of chat `s`, whole.
pub(crate) fn durable(seq: u64, kind: &str, fields: Value) -> Value {
    event(seq, true, kind, fields)
}

/// A transient event of chat `s`, whole.
pub(crate) fn transient(seq: u64, kind: &str, fields: Value) -> Value {
    event(seq, false, kind, fields)
}

fn event(seq: u64, durable: bool, kind: &str, fields: Value) -> Value {
    let mut event = Map::new();
    event.insert("chat".to_owned(), json!("s"));
    event.insert("seq".to_owned(), json!(seq));
    event.insert("durable".to_owned(), json!(durable));
    event.insert("kind".to_owned(), json!(kind));
    let mut event = Value::Object(event);
    merge(&mut event, fields);
    event
}

/// One chat, `s`, with one stream.
pub(crate) struct Stage {
    pub(crate) backend: BubblePaw,
    pub(crate) host: RawHost,
    pub(crate) events: EventStream,
    /// The newest durable sequence.
    pub(crate) sequence: u64,
    /// What the host answers a reload with.
    pub(crate) state: Value,
    pub(crate) approvals: Vec<Value>,
    lists_approvals: bool,
}

impl Stage {
    pub(crate) async fn open(features: &[&str]) -> Stage {
        Stage::open_with(features, json!({})).await
    }

    /// A stream of a chat whose state has these fields.
    pub(crate) async fn open_with(features: &[&str], changes: Value) -> Stage {
        Stage::open_approving(features, changes, Vec::new()).await
    }

    /// The same with approvals.
    pub(crate) async fn open_approving(features: &[&str], changes: Value, approvals: Vec<Value>) -> Stage {
        let (backend, host) = RawHost::connect_with(features, Options::default()).await;
        let events = backend.events(&"s".into(), None);
        let state = state(START, changes);
        let lists_approvals = features.contains(&"approvals");
        let mut stage = Stage { backend, host, events, sequence: START, state, approvals, lists_approvals };
        stage.reload().await;
        // What comes on from here finds the stream in its place.
        stage.transient("tool_finished", json!({"call_id": "ready", "result": null})).await;
        stage.gives(json!([transient(at(START, 15), "tool.finished", json!({"callId": "ready", "run": "r"}))])).await;
        stage
    }

    /// Answers the next reload with the state as of now.
    pub(crate) async fn reload(&mut self) {
        self.state["sequence"] = json!(self.sequence);
        let asked = self.host.asked("session.state").await;
        assert_eq!(asked.params, json!({"session_id": "s"}));
        self.host.answer(&asked, self.state.clone()).await;
        if self.lists_approvals {
            let asked = self.host.asked("approval.list").await;
            self.host.answer(&asked, json!({"approvals": self.approvals})).await;
        }
    }

    /// A durable event of run `r`.
    pub(crate) async fn durable(&mut self, event_type: &str, data: Value) {
        self.durable_with(event_type, data, json!({"run_id": "r"})).await;
    }

    /// A durable event with these fields beside type and data.
    pub(crate) async fn durable_with(&mut self, event_type: &str, data: Value, fields: Value) {
        self.sequence += 1;
        let mut event = json!({"sequence": self.sequence, "type": event_type, "data": data});
        merge(&mut event, fields);
        self.host.event("s", event).await;
    }

    /// A transient event of run `r`.
    pub(crate) async fn transient(&mut self, event_type: &str, data: Value) {
        let event =
            json!({"sequence": self.sequence, "type": event_type, "data": data, "run_id": "r", "durable": false});
        self.host.event("s", event).await;
    }

    /// These events come, whole and in this order, and no other with them.
    pub(crate) async fn gives(&mut self, expected: Value) {
        let expected = expected.as_array().expect("a list of events").clone();
        let mut got = Vec::new();
        while got.len() < expected.len() {
            got.push(json!(next(&self.events).await));
        }
        got.extend(self.events.take(usize::MAX).expect("the stream is well").into_iter().map(|event| json!(event)));
        assert_eq!(Value::Array(got), Value::Array(expected));
    }

    /// Nothing else comes, after whatever reloads are asked for.
    pub(crate) async fn gives_no_more(mut self) {
        self.durable_with("session_settled", json!({}), json!({})).await;
        self.state["session"]["title"] = json!("The end");
        self.state["sequence"] = json!(self.sequence);
        let mut got = Vec::new();
        loop {
            tokio::select! {
                event = next(&self.events) => {
                    let end = matches!(&event.kind, kitport::model::EventKind::ChatRenamed(renamed) if renamed.title == "The end");
                    got.push(json!(event));
                    if end {
                        break;
                    }
                }
                asked = self.host.asked("session.state") => {
                    self.host.answer(&asked, self.state.clone()).await;
                    if self.lists_approvals {
                        let asked = self.host.asked("approval.list").await;
                        self.host.answer(&asked, json!({"approvals": self.approvals})).await;
                    }
                }
            }
        }
        let seq = at(self.sequence, 15);
        assert_eq!(Value::Array(got), json!([transient(seq, "chat.renamed", json!({"title": "The end"}))]));
    }
}
