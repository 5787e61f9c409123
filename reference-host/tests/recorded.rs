//! The kit's own client on a host in this process, recorded, and on the replay of it.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use kitport::bubblepaw::Options;
use kitport::model::{ChatId, Event, EventKind, Seq};
use kitport::rpc::{Recorder, Recording};
use kitport::{AgentBackend, BubblePaw, ChatReader};
use kitport_host::{HostOptions, Pace, embedded, replay};

/// One run, as a client sees it.
async fn one_run(backend: &BubblePaw) -> (ChatId, Vec<Event>) {
    let chat = backend.create_chat(Some("Recorded")).await.unwrap();
    let events = backend.events(&chat.id, Some(Seq::START));
    backend.send(&chat.id, "tool; stream 30; output", &[]).await.unwrap();
    let mut durable = Vec::new();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await.unwrap().unwrap().unwrap();
        let finished = matches!(event.kind, EventKind::RunFinished(_));
        if event.durable {
            durable.push(event);
        }
        if finished {
            return (chat.id, durable);
        }
    }
}

#[tokio::test]
async fn a_client_sees_in_a_replay_what_it_saw_live() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let recorder = Recorder::to_file(&path).unwrap();
    let options = Options { recorder: Some(recorder), ..Options::default() };
    let backend = embedded(HostOptions::default()).connect(options).await.unwrap();
    let live = one_run(&backend).await;
    backend.close().await;
    drop(backend);
    for pace in [Pace::AtOnce, Pace::Times(1.0)] {
        let recording = Recording::read(&path).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let playing = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(near);
            replay(reader, writer, recording, pace).await
        });
        let (reader, writer) = tokio::io::split(far);
        let backend = BubblePaw::connect(reader, writer, Options::default()).await.unwrap();
        assert_eq!(one_run(&backend).await, live);
        backend.close().await;
        drop(backend);
        playing.await.unwrap().unwrap();
    }
}
