//! Each method by its name: the arguments arrive in their places, bad ones are refused by name.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::notes::chat;
use super::{Door, door};
use crate::error::{KitError, Outcome, Result};
use crate::model::*;
use crate::port::{AgentBackend, ChatReader};
use crate::stream::{ChatStream, ConnectionStream, EventStream};

use super::super::table::{METHODS, Port, STREAMS};

/// For each method: what it must have, what it may have, the note of the backend, and what comes back.
fn samples() -> Vec<(&'static str, Value, Value, &'static str, Value)> {
    let (none, null) = (json!({}), Value::Null);
    let sent = json!({"runId": "r", "queued": false});
    vec![
        ("capability_table", none.clone(), none.clone(), "[]", json!({"send": {"on": true, "by": "host"}})),
        ("capabilities", none.clone(), none.clone(), "[]", serde_json::to_value(Capabilities::default()).unwrap()),
        ("detail", json!({"capability": "fork"}), none.clone(), "[Fork]", json!({"on": true, "by": "kit"})),
        (
            "constraints",
            none.clone(),
            none.clone(),
            "[]",
            json!({
                "references": true,
                "questionAnswers": {
                    "severalItems": true, "severalChoices": true, "choiceAndText": true, "skip": true,
                },
                "followUpWhileRunning": true,
            }),
        ),
        ("host_info", none.clone(), none.clone(), "[]", null.clone()),
        (
            "counters",
            none.clone(),
            none.clone(),
            "[]",
            json!({
                "skippedLines": 0, "unknownIds": 0, "oversize": 0, "malformed": 0, "hostRequests": 0, "gaps": 7,
                "restarts": 0,
            }),
        ),
        (
            "list_chats",
            none.clone(),
            json!({"cursor": "x", "query": "q"}),
            r#"[Some("x"), Some("q")]"#,
            json!({"chats": [chat()]}),
        ),
        ("load_chat", json!({"chat": "a"}), none.clone(), r#"["a"]"#, json!("there is no such chat")),
        (
            "load_history_range",
            json!({"chat": "a", "first": 1, "last": 2}),
            none.clone(),
            r#"["a", Seq(1), Seq(2)]"#,
            json!([]),
        ),
        (
            "load_context",
            json!({"chat": "a"}),
            none.clone(),
            r#"["a"]"#,
            json!({
                "structure": {"chapters": [], "episodes": []}, "compactions": [],
                "view": {"threshold": 9, "items": []},
            }),
        ),
        (
            "load_summary",
            json!({"chat": "a", "kitId": "episode:e"}),
            none.clone(),
            r#"["a", "episode:e"]"#,
            json!({"id": "episode:e", "kind": "episode", "text": "t"}),
        ),
        ("list_providers", none.clone(), none.clone(), "[]", json!({"providers": []})),
        (
            "list_models",
            none.clone(),
            json!({"chat": "a"}),
            r#"[Some("a")]"#,
            json!([{"id": "p/m", "contextWindow": 5}]),
        ),
        ("list_profiles", none.clone(), json!({"chat": "a"}), r#"[Some("a")]"#, json!([])),
        ("pending_approvals", none.clone(), none.clone(), "[]", json!([])),
        ("close", none.clone(), none.clone(), "[]", null.clone()),
        ("create_chat", none.clone(), json!({"title": "t"}), r#"[Some("t")]"#, chat()),
        (
            "send",
            json!({"chat": "a", "text": "t"}),
            json!({"references": [{"kind": "file", "uri": "u"}]}),
            r#"["a", "t", ["u"]]"#,
            sent.clone(),
        ),
        ("steer", json!({"chat": "a", "text": "t"}), none.clone(), r#"["a", "t"]"#, sent.clone()),
        ("follow_up", json!({"chat": "a", "text": "t"}), none.clone(), r#"["a", "t"]"#, sent.clone()),
        ("send_queued_now", json!({"chat": "a", "input": "i"}), none.clone(), r#"["a", "i"]"#, null.clone()),
        (
            "edit_queued",
            json!({"chat": "a", "input": "i", "text": "t"}),
            none.clone(),
            r#"["a", "i", "t"]"#,
            null.clone(),
        ),
        ("remove_queued", json!({"chat": "a", "input": "i"}), none.clone(), r#"["a", "i"]"#, null.clone()),
        ("cancel", json!({"chat": "a"}), none.clone(), r#"["a"]"#, null.clone()),
        ("resume", json!({"chat": "a"}), none.clone(), r#"["a"]"#, sent),
        (
            "decide_approval",
            json!({"chat": "a", "approval": "p", "decision": {"option": "o"}}),
            json!({"reason": "r"}),
            r#"["a", "p", Option("o"), Some("r")]"#,
            null.clone(),
        ),
        (
            "answer_question",
            json!({"chat": "a", "question": "q", "answer": "yes"}),
            none.clone(),
            r#"["a", "q", Plain("yes")]"#,
            null.clone(),
        ),
        (
            "answer_child_question",
            json!({"chat": "a", "child": "k", "question": "q", "answer": {"choice": "l"}}),
            none.clone(),
            r#"["a", "k", "q", Choice { choice: "l", text: None }]"#,
            null.clone(),
        ),
        ("rename", json!({"chat": "a", "title": "t"}), none.clone(), r#"["a", "t"]"#, null.clone()),
        ("archive", json!({"chat": "a", "archived": true}), none.clone(), r#"["a", true]"#, null.clone()),
        ("fork", json!({"chat": "a"}), json!({"message": "m"}), r#"["a", Some("m")]"#, chat()),
        (
            "rewind",
            json!({"chat": "a", "message": "m"}),
            none.clone(),
            r#"["a", "m"]"#,
            json!({"chat": "a", "inPlace": true}),
        ),
        ("cancel_child", json!({"chat": "a", "child": "k"}), none.clone(), r#"["a", "k"]"#, null.clone()),
        ("cancel_job", json!({"chat": "a", "job": "j"}), none.clone(), r#"["a", "j"]"#, null.clone()),
        ("undo_edit", json!({"chat": "a", "edit": "e"}), none.clone(), r#"["a", "e"]"#, null.clone()),
        ("set_default_model", json!({"model": "p/m"}), none.clone(), r#"["p/m"]"#, null.clone()),
        ("set_model", json!({"chat": "a", "model": "p/m"}), none.clone(), r#"["a", "p/m"]"#, null.clone()),
        ("set_profile", json!({"chat": "a", "profile": "p"}), none, r#"["a", "p"]"#, null),
    ]
}

fn with(params: &Value, more: &Value) -> Value {
    let mut params = params.as_object().unwrap().clone();
    params.extend(more.as_object().unwrap().clone());
    params.into()
}

fn without(params: &Value, field: &str) -> Value {
    let mut params = params.as_object().unwrap().clone();
    params.shift_remove(field).unwrap();
    params.into()
}

/// Refused, by the method's and the field's name, before the backend heard of it.
fn assert_refused(result: Result<Value>, method: &str, field: &str) {
    let Err(error) = result else { panic!("{method} took a bad {field}") };
    assert_eq!(error.code(), "invalid", "{method}.{field}: {error}");
    assert!(error.message().contains(method) && error.message().contains(field), "{method}.{field}: {error}");
    let command = METHODS.iter().any(|row| row.name == method && row.port == Port::AgentBackend);
    assert_eq!(error.outcome(), command.then_some(Outcome::NotSent), "{method}.{field}");
}

#[tokio::test]
async fn every_row_has_a_sample_and_every_sample_a_row() {
    let rows: Vec<_> = METHODS.iter().map(|row| row.name).collect();
    let samples: Vec<_> = samples().iter().map(|sample| sample.0).collect();
    assert_eq!(rows, samples);
}

#[tokio::test]
async fn good_parameters_arrive_in_their_places_and_the_result_comes_back() {
    for (method, required, optional, arguments, result) in samples() {
        let (notes, door) = door();
        let params = with(&required, &optional);
        let answer = door.call(method, params.clone()).await;
        let answer = answer.unwrap_or_else(|error| Value::from(error.message()));
        assert_eq!(answer, result, "{method}");
        let text = door.call_json(method, &params.to_string()).await;
        let text = text.map_or_else(|error| Value::from(error.message()), |text| serde_json::from_str(&text).unwrap());
        assert_eq!(text, result, "{method} as text");
        let notes: Vec<_> = notes.taken().into_iter().map(|note| note.0).collect();
        assert_eq!(notes, vec![format!("{method} {arguments}"); 2]);
    }
}

#[tokio::test]
async fn optional_parameters_may_be_absent_or_null() {
    for (method, required, optional, ..) in samples() {
        let (notes, door) = door();
        door.call(method, required.clone()).await.map_or_else(|e| assert_eq!(e.code(), "not_found"), |_| ());
        let nulls: Value = optional.as_object().unwrap().keys().map(|field| (field.clone(), Value::Null)).collect();
        door.call(method, with(&required, &nulls)).await.map_or_else(|e| assert_eq!(e.code(), "not_found"), |_| ());
        let notes = notes.taken();
        assert_eq!(notes.len(), 2, "{method}");
        assert_eq!(notes[0], notes[1], "{method}");
    }
}

#[tokio::test]
async fn a_method_without_parameters_takes_null() {
    let (notes, door) = door();
    door.call("close", Value::Null).await.unwrap();
    assert_eq!(notes.taken().len(), 1);
}

#[tokio::test]
async fn a_missing_a_wrong_and_an_unknown_parameter_are_refused_by_name() {
    for (method, required, optional, ..) in samples() {
        let (notes, door) = door();
        for field in required.as_object().unwrap().keys() {
            assert_refused(door.call(method, without(&required, field)).await, method, field);
        }
        let all = with(&required, &optional);
        for field in all.as_object().unwrap().keys() {
            // No parameter of any method takes this.
            let wrong = with(&all, &json!({field: {"nonsense": 1.5}}));
            assert_refused(door.call(method, wrong).await, method, field);
        }
        let unknown = with(&all, &json!({"nonsense": 1}));
        assert_refused(door.call(method, unknown).await, method, "nonsense");
        assert_refused(door.call(method, json!(["a", "b", "c", "d"])).await, method, "object");
        assert!(notes.taken().is_empty(), "{method}");
    }
}

#[tokio::test]
async fn an_error_names_the_place_and_not_what_stood_there() {
    let (_, door) = door();
    let references = json!([{"kind": "file", "uri": "u"}, {"kind": "file", "uri": 5}]);
    let error = door.call("send", json!({"chat": "a", "text": "t", "references": references})).await.unwrap_err();
    assert_eq!(error.message(), "send: references[1].uri: expected a string");
    let error = door.call("load_history_range", json!({"chat": "a", "first": "sk-1", "last": 2})).await.unwrap_err();
    assert_eq!(error.message(), "load_history_range: first: expected u64");
    let error = door.call("answer_question", json!({"chat": "a", "question": "q", "answer": 5})).await.unwrap_err();
    assert!(error.message().starts_with("answer_question: answer: expected a string, {text}"), "{error}");
    let error = door.call_json("send", r#"{"chat": "a", "text": "sk-1}"#).await.unwrap_err();
    assert!(error.code() == "invalid" && !error.message().contains("sk-1"), "{error}");
}

#[tokio::test]
async fn other_names_go_to_the_backends_own_methods() {
    let (notes, door) = door();
    let params = json!({"key": "k", "timeoutMs": null, "value": {"b": 1, "a": 2}});
    assert_eq!(door.call("set_config", params).await.unwrap(), json!({"saved": true}));
    assert_eq!(notes.taken()[0].0, format!("set_config {:?}", [r#"{"key":"k","value":{"b":1,"a":2}}"#]));
    let error = door.call("no_such", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.message()), ("invalid", r#"there is no method "no_such""#));
}

/// A backend that has only what it must have.
struct Bare;

#[async_trait]
impl ChatReader for Bare {
    fn capability_table(&self) -> CapabilityTable {
        CapabilityTable::new()
    }
    async fn list_chats(&self, _: Option<&str>, _: Option<&str>) -> Result<ChatPage> {
        Err(KitError::failed("bare"))
    }
    async fn load_chat(&self, _: &ChatId) -> Result<ChatSnapshot> {
        Err(KitError::failed("bare"))
    }
    fn events(&self, _: &ChatId, _: Option<Seq>) -> EventStream {
        EventStream::failed(KitError::failed("bare"))
    }
    fn created_chats(&self) -> ChatStream {
        ChatStream::failed(KitError::failed("bare"))
    }
    fn watch_all(&self) -> EventStream {
        EventStream::failed(KitError::failed("bare"))
    }
    fn connection(&self) -> ConnectionStream {
        ConnectionStream::failed(KitError::failed("bare"))
    }
    async fn close(&self) {}
}

impl AgentBackend for Bare {}

#[tokio::test]
async fn the_capability_of_a_row_is_the_one_that_its_method_misses() {
    let door = Door::new(Arc::new(Bare));
    let missed = |error: &KitError| match error {
        KitError::Unsupported { capability, .. } => Some(*capability),
        _ => None,
    };
    for (method, required, ..) in samples() {
        let row = METHODS.iter().find(|row| row.name == method).unwrap();
        let error = door.call(method, required).await.err();
        assert_eq!(error.as_ref().and_then(missed), row.capability, "{method}");
    }
    for row in STREAMS {
        let params = match row.name {
            "events" => json!({"chat": "a"}),
            "run" => json!({"chat": "a", "text": "t"}),
            _ => json!({}),
        };
        let error = door.open_async(row.name, params).await.err();
        assert_eq!(error.as_ref().and_then(missed), row.capability, "{}", row.name);
    }
}
