//! The feed and the streams of the real adapter on the reference host, whatever the pipe does.
//!
//! A feed that was built live, once settled and reloaded, equals a feed opened anew: for any script, any pieces of the
//! byte stream, repeated notifications, and live ones that were lost with an `events.gap`.

#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use kitport::bubblepaw::Options;
use kitport::model::{Answer, ChatId, Decision, Event, EventKind, RunStatus, Seq};
use kitport::{AgentBackend, BubblePaw, ChatFeed, ChatReader, FeedState, StreamLimits};
use kitport_conformance::pieces::Pieces;
use kitport_conformance::{NEVER, assert_rising, durable, rest, seed, until};
use kitport_host::{Faults, HostOptions};
use proptest::prelude::*;

const FAULTS: &[&str] = &["duplicates", "drop", "transient-duplicates", "events-first", "reorder", "noise", "future"];

/// What a run is made of. Those that wait for somebody are decided and answered by the test.
const STEPS: &[&str] = &[
    "tool",
    "stream 12",
    "say A line of its own.",
    "nested",
    "plan",
    "plan next",
    "plan clear",
    "retry",
    "mismatch",
    "notext",
    "unicode",
    "output text",
    "output file",
    "system Something of the host's own.",
    "tools 7",
    "big 5000",
    "quota 0.005",
    "compact",
    "child tool",
    "approve",
    "ask",
    "sleep 2",
];

const ENDS: &[&str] = &["", "", "", "fail for a reason", "end interrupted", "end sideways"];

fn finished(event: &Event) -> bool {
    matches!(event.kind, EventKind::RunFinished(_))
}

/// A host with these faults behind a pipe of pieces.
async fn connect(faults: &[&str], seed: u64, limits: StreamLimits) -> BubblePaw {
    let mut host = HostOptions::default();
    host.seed = seed;
    host.faults = Faults::named(faults.iter().copied()).unwrap();
    let host = kitport_host::embedded(host);
    let options = Options { stream_limits: limits, ..Options::default() };
    BubblePaw::connect(Pieces::new(host.reader, seed), host.writer, options).await.unwrap()
}

/// Waits until nothing goes on any more, deciding and answering what waits for somebody.
async fn come_to_rest(backend: &BubblePaw, chat: &ChatId) {
    let mut before = None;
    let rested = async {
        loop {
            let snapshot = backend.load_chat(chat).await.unwrap();
            for approval in &snapshot.approvals {
                let _ = backend.decide_approval(chat, &approval.id, Decision::Approve, None).await;
            }
            if let Some(question) = &snapshot.question {
                let _ = backend.answer_question(chat, &question.id, Answer::from("green")).await;
            }
            let goes_on = |status: &RunStatus| matches!(status, RunStatus::Running | RunStatus::WaitingForQuota);
            let busy = snapshot.runs.iter().any(|run| goes_on(&run.status)) || !snapshot.queue.is_empty();
            let now = serde_json::to_string(&snapshot).unwrap();
            if !busy && before.as_ref() == Some(&now) {
                return;
            }
            before = Some(now);
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::time::timeout(NEVER, rested).await.expect("the chat comes to rest");
}

/// What a snapshot tells of a feed's state. The rest is known from events alone, since the feed was opened.
fn told(state: &FeedState) -> serde_json::Value {
    let mut told = serde_json::to_value(state).unwrap();
    let fields = told.as_object_mut().unwrap();
    for event_only in ["compactions", "view", "jobs", "outputs", "thinking", "archived"] {
        fields.shift_remove(event_only);
    }
    told
}

async fn live_equals_reopened(scripts: &[String], faults: &[&str], seed: u64) {
    let backend = connect(faults, seed, StreamLimits::default()).await;
    let reader: Arc<dyn ChatReader> = Arc::new(backend.clone());
    let chat = backend.create_chat(None).await.unwrap().id;
    let live = ChatFeed::open(reader.clone(), &chat).await.unwrap();
    let slow = ChatFeed::open(reader.clone(), &chat).await.unwrap();
    for (n, script) in scripts.iter().enumerate() {
        backend.send(&chat, script, &[]).await.unwrap();
        if n % 2 == 0 {
            come_to_rest(&backend, &chat).await;
        }
        // An app that shows the feed takes its updates as they come.
        let _ = live.take().unwrap();
    }
    // One that is opened in the middle is no different.
    let middle = ChatFeed::open(reader.clone(), &chat).await.unwrap();
    come_to_rest(&backend, &chat).await;
    let mut feeds = vec![("live", live), ("slow", slow), ("middle", middle)];
    for (_, feed) in &feeds {
        feed.reload().await.unwrap();
    }
    feeds.push(("second", ChatFeed::open(reader.clone(), &chat).await.unwrap()));
    let anew = told(&ChatFeed::open(reader, &chat).await.unwrap().state());
    assert!(anew["items"].as_array().unwrap().len() >= scripts.len());
    for (name, feed) in &feeds {
        let shown = told(&feed.state());
        for (field, value) in anew.as_object().unwrap() {
            assert_eq!(
                shown.get(field),
                Some(value),
                "{field} of the {name} feed; {scripts:?} with {faults:?}, {seed}"
            );
        }
        assert_eq!(shown.as_object().unwrap().len(), anew.as_object().unwrap().len(), "{name}");
    }
    // The streams below: live and replayed the same.
    let all = |events: &[Event]| durable(events);
    let last = backend.load_chat(&chat).await.unwrap().seq;
    let mut replays = Vec::new();
    for _ in 0..2 {
        let events = backend.events(&chat, Some(Seq::START));
        let ends =
            until(&events, |event| matches!(&event.kind, EventKind::RunFinished(_)) && event.seq.0 + 200 > last.0);
        replays.push(all(&tokio::time::timeout(NEVER, ends).await.expect("the replay ends")));
    }
    assert_eq!(replays[0], replays[1]);
    backend.close().await;
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn script() -> impl Strategy<Value = String> {
    let steps = prop::collection::vec(prop::sample::select(STEPS), 1..6);
    (steps, prop::sample::select(ENDS)).prop_map(|(mut steps, end)| {
        steps.extend(Some(end).filter(|end| !end.is_empty()));
        format!("script: {}", steps.join("; "))
    })
}

fn config() -> ProptestConfig {
    let cases = if kitport_conformance::long() { 400 } else { 40 };
    ProptestConfig { cases, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_feed_built_live_equals_a_feed_opened_anew(
        scripts in prop::collection::vec(script(), 1..4),
        faults in prop::sample::subsequence(FAULTS, 0..FAULTS.len()),
        seed in any::<u64>(),
    ) {
        runtime().block_on(live_equals_reopened(&scripts, &faults, seed));
    }
}

#[tokio::test]
async fn slow_readers_with_little_room_get_every_durable_event() {
    let seed = seed();
    println!("KITPORT_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for limits in [(1, 1 << 20), (8, 4096), (8, 200), (64, 1 << 20)] {
        let limits = StreamLimits { events: limits.0, bytes: limits.1 };
        let backend = connect(&["duplicates", "drop"], rng.u64(..), limits).await;
        let chat = backend.create_chat(None).await.unwrap().id;
        let readers: Vec<_> = (0..4)
            .map(|n| {
                let stream = backend.events(&chat, Some(Seq::START));
                let mut rng = fastrand::Rng::with_seed(rng.u64(..));
                tokio::spawn(async move {
                    let mut seen: Vec<Event> = Vec::new();
                    while seen.iter().filter(|event| finished(event)).count() < 3 {
                        // Calls that are dropped while they wait, and pauses in which the stream fills up.
                        let patience = Duration::from_micros(rng.u64(..3000));
                        if rng.bool() {
                            if let Ok(next) = tokio::time::timeout(patience, stream.next()).await {
                                seen.push(next.unwrap().unwrap());
                            }
                        } else if let Ok(batch) = tokio::time::timeout(patience, stream.next_batch(n + 1)).await {
                            seen.extend(batch.unwrap());
                        }
                        if rng.u8(..60) == 0 {
                            tokio::time::sleep(Duration::from_millis(rng.u64(..20))).await;
                        }
                    }
                    seen
                })
            })
            .collect();
        for _ in 0..3 {
            backend.send(&chat, "tools 150; stream 40; plan; output text; tools 20", &[]).await.unwrap();
        }
        let mut seen = Vec::new();
        for reader in readers {
            let events = tokio::time::timeout(NEVER, reader).await.expect("a slow reader comes to the end").unwrap();
            assert_rising(&events);
            seen.push(durable(&events));
        }
        let replay = backend.events(&chat, Some(Seq::START));
        let mut wanted = Vec::new();
        for _ in 0..3 {
            wanted.extend(durable(&until(&replay, finished).await));
        }
        assert!(
            seen.iter().all(|seen| *seen == wanted),
            "{limits:?}: {:?}",
            seen.iter().map(Vec::len).collect::<Vec<_>>()
        );
        backend.close().await;
    }
}

#[tokio::test]
async fn streams_with_different_cursors_agree() {
    let backend = connect(&["duplicates", "drop", "noise"], seed(), StreamLimits::default()).await;
    let chat = backend.create_chat(None).await.unwrap().id;
    let first = backend.events(&chat, Some(Seq::START));
    backend.send(&chat, "tools 60; stream 20; ask", &[]).await.unwrap();
    let mut all = until(&first, |event| matches!(event.kind, EventKind::QuestionAsked(_))).await;
    // From every position there is, those in the middle of a host event included, while the run still waits.
    let last = all.last().unwrap().seq;
    let streams: Vec<_> =
        (0..=last.0).step_by(7).map(|after| (Seq(after), backend.events(&chat, Some(Seq(after))))).collect();
    let EventKind::QuestionAsked(asked) = &all.last().unwrap().kind else { unreachable!("it is the last") };
    backend.answer_question(&chat, &asked.question.id, Answer::from("green")).await.unwrap();
    all.extend(until(&first, finished).await);
    let all = durable(&all);
    for (after, stream) in &streams {
        let seen = durable(&until(stream, finished).await);
        let wanted: Vec<_> = all.iter().filter(|event| event.seq > *after).cloned().collect();
        assert_eq!(seen, wanted, "after {after:?}");
    }
    backend.close().await;
}

#[tokio::test]
async fn closing_in_the_middle_of_a_replay_ends_that_stream_alone() {
    let backend = connect(&[], 5, StreamLimits { events: 16, bytes: 1 << 20 }).await;
    let chat = backend.create_chat(None).await.unwrap().id;
    let live = backend.events(&chat, None);
    backend.send(&chat, "tools 1_500", &[]).await.unwrap();
    let whole = durable(&until(&live, finished).await);
    let stays = backend.events(&chat, Some(Seq::START));
    for taken in 0..40 {
        let leaves = Arc::new(backend.events(&chat, Some(Seq::START)));
        let waiting = tokio::spawn({
            let leaves = leaves.clone();
            async move {
                let mut seen = Vec::new();
                while let Some(event) = leaves.next().await {
                    seen.push(event.unwrap());
                    if seen.len() == taken {
                        leaves.close();
                        leaves.close();
                    }
                }
                seen
            }
        });
        if taken == 0 {
            tokio::task::yield_now().await;
            leaves.close();
        }
        let seen = tokio::time::timeout(NEVER, waiting).await.expect("close wakes a pending next").unwrap();
        assert_eq!(seen.len(), taken);
        assert!(rest(&leaves).await.1.is_none());
    }
    assert_eq!(durable(&until(&stays, finished).await), whole);
    backend.close().await;
}

#[test]
fn ten_thousand_streams_opened_and_closed_leave_everything_where_it_was() {
    let run = |count: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_conformance-app"))
            .args(["measure", "streams", count])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        told["left"].as_u64().unwrap()
    };
    // Less than ten bytes a stream: what is left doesn't grow with them.
    let left = run("10000");
    assert!(left < 100_000, "{left} bytes are left");
}
