//! The main way, once: a chat, a streamed reply, its events live and replayed.

use kitport::bubblepaw::Options;
use kitport::model::{EventKind, Seq};
use kitport::{AgentBackend, ChatReader};
use kitport_conformance::{embedded, until};
use kitport_host::HostOptions;

#[tokio::test]
async fn a_reply_streams_and_replays() {
    let backend = embedded(HostOptions::default(), Options::default()).await.unwrap();
    let chat = backend.create_chat(Some("Smoke")).await.unwrap();
    let events = backend.events(&chat.id, None);
    backend.send(&chat.id, "tool; stream 30; output text", &[]).await.unwrap();
    let live = until(&events, |event| matches!(event.kind, EventKind::RunFinished(_))).await;
    for event in &live {
        println!("{}", serde_json::to_string(event).unwrap());
    }
    let replayed = backend.events(&chat.id, Some(Seq::START));
    let replay = until(&replayed, |event| matches!(event.kind, EventKind::RunFinished(_))).await;
    let durable = |events: &[kitport::model::Event]| events.iter().filter(|e| e.durable).cloned().collect::<Vec<_>>();
    assert_eq!(durable(&live), durable(&replay));
    for _ in 0..6 {
        match tokio::time::timeout(std::time::Duration::from_millis(300), replayed.next()).await {
            Ok(e) => println!("after {}", serde_json::to_string(&e.unwrap().unwrap()).unwrap()),
            Err(_) => break,
        }
    }
    println!("{}", serde_json::to_string_pretty(&backend.load_chat(&chat.id).await.unwrap()).unwrap());
    backend.close().await;
    assert!(!events.ready().await || events.take(999).is_ok());
}
