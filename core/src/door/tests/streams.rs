//! Streams by their names: they open, give JSON, end and close.

use futures::FutureExt;
use serde_json::{Value, json};

use super::notes::{chat, model};
use super::{Door, door};
use crate::error::{KitError, Outcome};
use crate::model::*;

fn renamed(title: &str, seq: u64) -> Event {
    let kind = ChatRenamed { title: title.into() }.into();
    Event { chat: "a".into(), seq: Seq(seq), durable: true, run: None, at: None, kind }
}

fn renamed_json(title: &str, seq: u64) -> Value {
    json!({"chat": "a", "seq": seq, "durable": true, "kind": "chat.renamed", "title": title})
}

#[tokio::test]
async fn each_stream_opens_by_its_name_with_its_arguments() {
    let (notes, door) = door();
    for (stream, params, note) in [
        ("events", json!({"chat": "a", "after": 17}), r#"events ["a", Some(Seq(17))]"#),
        ("events", json!({"chat": "a"}), r#"events ["a", None]"#),
        ("created_chats", json!({}), "created_chats []"),
        ("watch_all", Value::Null, "watch_all []"),
        ("connection", json!({}), "connection []"),
        ("run", json!({"chat": "a", "text": "t", "timeoutMs": null}), r#"run ["a", "t"]"#),
    ] {
        door.open_async(stream, params.clone()).await.unwrap();
        assert_eq!(notes.taken().remove(0).0, note);
        if stream != "run" {
            door.open(stream, params).unwrap();
            assert_eq!(notes.taken().remove(0).0, note);
        }
    }
}

#[tokio::test]
async fn what_opens_no_stream_is_refused_by_name() {
    let (notes, door) = door();
    for (stream, params, named) in [
        ("events", json!({}), "chat"),
        ("events", json!({"chat": "a", "after": -1}), "after"),
        ("events", json!({"chat": "a", "after": 1.5}), "after"),
        ("events", json!({"chat": "a", "timeoutMs": 1}), "timeoutMs"),
        ("watch_all", json!({"chat": "a"}), "chat"),
        ("run", json!({"chat": "a", "text": 1}), "text"),
        ("run", json!({"chat": "a", "text": "t", "timeoutMs": -1}), "timeoutMs"),
        ("cancel", json!({"chat": "a"}), "cancel"),
    ] {
        let error = door.open_async(stream, params).await.unwrap_err();
        assert_eq!(error.code(), "invalid");
        assert!(error.message().contains(stream) && error.message().contains(named), "{error}");
        assert_eq!(error.outcome(), (stream == "run").then_some(Outcome::NotSent));
    }
    let error = door.open("run", json!({"chat": "a", "text": "t"})).unwrap_err();
    assert!(error.message().contains("open_async"), "{error}");
    let error = door.call("events", json!({"chat": "a"})).await.unwrap_err();
    assert_eq!(error.message(), "events is a stream: open it");
    assert!(notes.taken().is_empty());
}

#[tokio::test]
async fn take_gives_what_is_there_as_values_or_as_text_and_the_error_once() {
    let (notes, door) = door();
    let stream = door.open("events", json!({"chat": "a"})).unwrap();
    let sink = notes.sinks.lock().unwrap().pop().unwrap();
    assert_eq!(stream.ready().now_or_never(), None);
    assert_eq!(stream.take(9).unwrap(), Vec::<Value>::new());
    assert_eq!(stream.take_json(9).unwrap(), "[]");
    for n in 0..5 {
        sink.push(renamed("t", n));
    }
    sink.end(Some(KitError::host_exited(Some(3), None, "")));
    assert!(stream.ready().await);
    assert_eq!(stream.take(2).unwrap(), [renamed_json("t", 0), renamed_json("t", 1)]);
    let text: Value = serde_json::from_str(&stream.take_json(2).unwrap()).unwrap();
    assert_eq!(text, json!([renamed_json("t", 2), renamed_json("t", 3)]));
    assert_eq!(stream.take(2).unwrap(), [renamed_json("t", 4)]);
    assert!(stream.ready().await);
    assert_eq!(stream.take_json(2).unwrap_err().code(), "host_exited");
    assert!(!stream.ready().await);
    assert_eq!(stream.take(2).unwrap(), Vec::<Value>::new());
}

#[tokio::test]
async fn values_and_text_are_the_same_for_every_kind_of_item() {
    let (_, door) = door();
    for (stream, item) in [
        ("created_chats", chat()),
        ("connection", json!({"status": "closed", "reason": {"code": "closed", "message": "the backend is closed"}})),
    ] {
        let values = door.open(stream, Value::Null).unwrap().take(9).unwrap();
        let text = door.open(stream, Value::Null).unwrap().take_json(9).unwrap();
        assert_eq!(values, std::slice::from_ref(&item), "{stream}");
        assert_eq!(text, Value::from(values).to_string(), "{stream}");
    }
}

#[tokio::test]
async fn close_wakes_a_pending_ready_and_ends_the_work_behind_it() {
    let (notes, door) = door();
    let stream = door.open("watch_all", Value::Null).unwrap();
    let sink = notes.sinks.lock().unwrap().pop().unwrap();
    let pending = tokio::spawn({
        let stream = stream.clone();
        async move { stream.ready().await }
    });
    tokio::task::yield_now().await;
    stream.close();
    stream.close();
    assert!(!pending.await.unwrap());
    assert!(sink.is_ended());
}

#[tokio::test]
async fn the_last_clone_that_is_dropped_closes_the_stream() {
    let (notes, door) = door();
    let stream = door.open("watch_all", Value::Null).unwrap();
    let sink = notes.sinks.lock().unwrap().pop().unwrap();
    let clone = stream.clone();
    drop(stream);
    assert!(!sink.is_ended());
    drop(clone);
    assert!(sink.is_ended());
}

#[test]
fn a_stream_opened_from_outside_is_opened_in_the_doors_runtime() {
    struct Spawns;
    #[async_trait::async_trait]
    impl crate::ChatReader for Spawns {
        fn capability_table(&self) -> CapabilityTable {
            CapabilityTable::new()
        }
        async fn list_chats(&self, _: Option<&str>, _: Option<&str>) -> crate::Result<ChatPage> {
            Err(KitError::failed("not asked"))
        }
        async fn load_chat(&self, _: &ChatId) -> crate::Result<ChatSnapshot> {
            Err(KitError::failed("not asked"))
        }
        fn events(&self, _: &ChatId, _: Option<Seq>) -> crate::EventStream {
            let (sink, stream) = crate::KitStream::channel(Default::default());
            // Panics where there is no runtime.
            tokio::spawn(async move { sink.push(renamed("t", 1)) });
            stream
        }
        fn created_chats(&self) -> crate::ChatStream {
            crate::KitStream::failed(KitError::failed("not asked"))
        }
        fn watch_all(&self) -> crate::EventStream {
            crate::KitStream::failed(KitError::failed("not asked"))
        }
        fn connection(&self) -> crate::ConnectionStream {
            crate::KitStream::failed(KitError::failed("not asked"))
        }
        async fn close(&self) {}
    }
    impl crate::AgentBackend for Spawns {}

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let door = Door::with_runtime(std::sync::Arc::new(Spawns), runtime.handle().clone());
    let stream = door.open("events", json!({"chat": "a"})).unwrap();
    assert!(runtime.block_on(stream.ready()));
    let event: Event = model(stream.take(1).unwrap().remove(0));
    assert_eq!(event, renamed("t", 1));
}
