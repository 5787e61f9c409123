//! What the feed promises, on made-up events. Random histories are in `core/tests/feed_props.rs`.

mod cost;
mod kinds;
mod live;
mod places;
mod reloads;

use super::*;
use crate::model::*;
use serde_json::{Value, json};

fn time(second: i64) -> Time {
    Time::from_second(second).unwrap()
}

/// A chat of two runs: the first one ended, the second one goes on and has called a tool.
fn snapshot() -> ChatSnapshot {
    from_json(json!({
        "chat": {"id": "c", "title": "Old", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"},
        "seq": 100,
        "items": [
            {"kind": "user_message", "id": "u1", "text": "first", "run": "r1", "provisional": false},
            {"kind": "assistant_message", "id": "a1", "text": "answer", "run": "r1", "provisional": false},
            {"kind": "user_message", "id": "u2", "text": "second", "run": "r2", "provisional": false},
            {"kind": "tool_call", "id": "t1", "name": "look", "status": "running", "run": "r2", "durable": true},
            {"kind": "edit", "id": "e1", "path": "a.txt", "state": "applied", "run": "r1"},
        ],
        "runs": [{"id": "r1", "status": "completed"}, {"id": "r2", "status": "running"}],
        "queue": [],
        "plan": [],
        "approvals": [{"id": "ap1", "run": "r2", "state": "pending"}],
        "question": {"id": "q1", "text": "which?", "suggestions": []},
        "children": [{"id": "k1", "parentId": "c", "title": "Child", "state": "running"}],
        "settings": {"model": "p/m"},
    }))
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// An event from the fields of its kind.
fn event(seq: u64, durable: bool, run: &str, kind: &str, fields: Value) -> Event {
    let mut form = json!({"chat": "c", "seq": seq, "durable": durable, "run": run, "kind": kind});
    form.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    from_json(form)
}

fn durable(seq: u64, run: &str, kind: &str, fields: Value) -> Event {
    event(seq, true, run, kind, fields)
}

/// A transient event of the run that goes on, at the newest sequence.
fn now(kind: &str, fields: Value) -> Event {
    event(u64::MAX, false, "r2", kind, fields)
}

fn delta(step: u32, offset: u64, text: &str) -> Event {
    now("message.delta", json!({"messageId": format!("provisional:r2:{step}"), "offset": offset, "text": text}))
}

fn user(id: &str, run: &str, after: Option<&str>) -> Event {
    let message = json!({"kind": "user_message", "id": id, "text": id, "run": run, "provisional": false});
    let mut fields = json!({"message": message});
    if let Some(after) = after {
        fields["afterId"] = after.into();
    }
    now("message.user", fields)
}

fn tool(id: &str, durable: bool) -> Value {
    json!({"call": {"kind": "tool_call", "id": id, "name": "n", "status": "running", "run": "r2", "durable": durable}})
}

/// A reducer whose first update was taken.
fn reducer() -> FeedReducer {
    taken(snapshot())
}

fn taken(snapshot: ChatSnapshot) -> FeedReducer {
    let mut reducer = FeedReducer::new(snapshot);
    assert!(!reducer.take().is_empty());
    reducer
}

fn ids(state: &FeedState) -> Vec<&str> {
    state.items().map(|item| item.id().as_str()).collect()
}

fn text(state: &FeedState, id: &str) -> String {
    form(state, id)["text"].as_str().unwrap().to_owned()
}

fn form(state: &FeedState, id: &str) -> Value {
    serde_json::to_value(state.item(&id.into()).expect("the item is on display")).unwrap()
}

fn places(changes: &[ItemChange]) -> Vec<(&str, usize)> {
    changes.iter().map(|change| (change.id.as_str(), change.index)).collect()
}

/// Applies an event twice: the second time changes nothing more, and nothing is said to have changed.
fn apply(reducer: &mut FeedReducer, event: &Event) -> Changed {
    reducer.apply(event);
    let changed = reducer.take();
    let state = serde_json::to_value(reducer.state()).unwrap();
    reducer.apply(event);
    assert_eq!(serde_json::to_value(reducer.state()).unwrap(), state, "applied twice: {event:?}");
    assert!(reducer.take().is_empty(), "applied twice: {event:?}");
    changed
}

/// Applies one event and checks that exactly these parts changed.
fn apply_part(reducer: &mut FeedReducer, event: &Event, parts: Value) -> Changed {
    let changed = apply(reducer, event);
    let all = serde_json::to_value(changed.parts).unwrap();
    let on: Vec<_> = all.as_object().unwrap().iter().filter(|(_, on)| **on == json!(true)).map(|(p, _)| p).collect();
    assert_eq!(json!(on), parts, "{event:?}");
    changed
}
