//! Order and replay.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kitport::bubblepaw::wire::feature;
use kitport::bubblepaw::{Options, Restart};
use kitport::model::{ApprovalState, Decision, Event, EventKind, Item, Seq};
use kitport::{AgentBackend, BubblePaw, CallExt, ChatReader, KitError, Outcome};
use kitport_conformance::byte_host::{ByteHost, History, SESSION, TIME, event, line, session, transient};
use kitport_conformance::{assert_rising, durable, next, until};
use serde_json::{Value, json};

use super::{host, measured};

fn finished(event: &Event) -> bool {
    matches!(event.kind, EventKind::RunFinished(_))
}

async fn spawn(args: &[&str]) -> BubblePaw {
    BubblePaw::spawn(host(args), Options::default()).await.unwrap()
}

#[tokio::test]
async fn an_event_before_the_answer_that_caused_it_is_kept_and_one_after_it_too() {
    for args in [&["--fault", "events-first"][..], &["--fault", "events-first", "--fault", "reorder"], &[]] {
        let backend = spawn(args).await;
        let chat = backend.create_chat(None).await.unwrap();
        for _ in 0..20 {
            // `run` attaches before it sends, and ends behind its own run.
            let events = backend.run(&chat.id, "tool").await.unwrap();
            let (seen, error) = kitport_conformance::rest(&events).await;
            assert!(error.is_none(), "{error:?}");
            let kinds: Vec<_> = durable(&seen).iter().map(|event| event.kind.name()).collect();
            assert_eq!(kinds.first(), Some(&"run.started"), "{kinds:?}");
            assert_eq!(kinds.last(), Some(&"run.finished"), "{kinds:?}");
            assert!(kinds.contains(&"tool.finished"), "{kinds:?}");
        }
        backend.close().await;
    }
}

#[tokio::test]
async fn an_event_in_the_same_read_as_its_answer_or_around_it_is_kept() {
    for answer_at in 0..3 {
        let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
        let running = tokio::spawn({
            let backend = backend.clone();
            async move { backend.run(&SESSION.into(), "hi").await }
        });
        let mut history = History::default();
        let start = loop {
            let request = host.request().await.unwrap();
            if request.method == "run.start" {
                break request;
            }
            let answer = history.answer(&request.method, &request.params).unwrap();
            host.answer(&request.id, serde_json::from_str(&answer).unwrap()).await;
        };
        let events = [event(1, "run_started", json!({})), event(2, "run_finished", json!({"status": "completed"}))];
        let mut bytes = Vec::new();
        for place in 0..3 {
            if place == answer_at {
                bytes.extend(line(&json!({"jsonrpc": "2.0", "id": start.id, "result": {"run_id": "r1"}})));
            }
            if let Some(event) = events.get(place) {
                history.push(event);
                bytes.extend(kitport_conformance::byte_host::event_line(event));
            }
        }
        host.write(&bytes).await;
        let _serving = host.serve(Arc::new(Mutex::new(history)));
        let events = running.await.unwrap().unwrap();
        let (seen, error) = kitport_conformance::rest(&events).await;
        assert!(error.is_none(), "{error:?}");
        let kinds: Vec<_> = durable(&seen).iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, ["run.started", "run.finished"], "the answer at {answer_at}");
        backend.close().await;
    }
}

#[tokio::test]
async fn a_slow_consumer_and_a_slow_approval_handler_never_stop_the_reader() {
    let backend = spawn(&[]).await;
    let (slow, busy) = (backend.create_chat(None).await.unwrap(), backend.create_chat(None).await.unwrap());
    // Nobody reads these while the other chat goes on.
    let stalled: Vec<_> = (0..10).map(|_| backend.events(&busy.id, None)).collect();
    let approvals = backend.events(&slow.id, None);
    backend.send(&slow.id, "approve; tool", &[]).await.unwrap();
    let asked = until(&approvals, |event| matches!(event.kind, EventKind::ApprovalRequested(_))).await;
    let EventKind::ApprovalRequested(asked) = &asked.last().unwrap().kind else { unreachable!("it is the last") };
    // A person thinks about it. Meanwhile 6,000 events, above what a stream holds.
    let events = backend.events(&busy.id, None);
    backend.send(&busy.id, "tools 3_000; stream 20", &[]).await.unwrap();
    let live = until(&events, finished).await;
    assert!(durable(&live).len() > 6000);
    assert!(backend.load_chat(&busy.id).await.is_ok());
    backend.decide_approval(&slow.id, &asked.approval.id, Decision::Approve, None).await.unwrap();
    until(&approvals, finished).await;
    // Those who come back late have missed nothing.
    for stream in &stalled {
        assert_eq!(durable(&until(stream, finished).await), durable(&live));
    }
    backend.close().await;
}

#[tokio::test]
async fn reconnect_and_replay_lose_nothing_and_repeat_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("host.db");
    let options = Options { restart: Restart::always(), ..Options::default() };
    let backend = BubblePaw::spawn(host(&["--db", db.to_str().unwrap()]), options).await.unwrap();
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.events(&chat.id, Some(Seq::START));
    let mut seen = Vec::new();
    for round in 0..3 {
        backend.send(&chat.id, "tool; stream 20", &[]).await.unwrap();
        seen.extend(until(&events, finished).await);
        let _ = backend.send(&chat.id, "tool; crash 3", &[]).await;
        kitport_conformance::eventually("it is back", || backend.counters().restarts > round).await;
    }
    backend.send(&chat.id, "tool", &[]).await.unwrap();
    seen.extend(until(&events, finished).await);
    assert_rising(&seen);
    let last = durable(&seen).last().unwrap().seq;
    let replay = until(&backend.events(&chat.id, Some(Seq::START)), |event| event.durable && event.seq == last).await;
    assert_eq!(durable(&seen), durable(&replay));
    // A transcript that was loaded before is not doubled: no durable event at or below the snapshot comes again.
    let snapshot = backend.load_chat(&chat.id).await.unwrap();
    let after = backend.events(&chat.id, Some(snapshot.seq));
    backend.send(&chat.id, "tool", &[]).await.unwrap();
    assert!(durable(&until(&after, finished).await).iter().all(|event| event.seq > snapshot.seq));
    backend.close().await;
}

#[tokio::test]
async fn valid_events_after_a_gap_are_not_thrown_away() {
    for seed in ["1", "2", "3"] {
        let backend = spawn(&["--fault", "drop", "--fault", "duplicates", "--seed", seed]).await;
        let chat = backend.create_chat(None).await.unwrap();
        let events = backend.events(&chat.id, None);
        backend.send(&chat.id, "tools 100; stream 100; tools 100", &[]).await.unwrap();
        let live = until(&events, finished).await;
        assert_rising(&live);
        let replay = until(&backend.events(&chat.id, Some(Seq::START)), finished).await;
        assert_eq!(durable(&live), durable(&replay), "seed {seed}");
        assert!(backend.counters().gaps > 0);
        backend.close().await;
    }
}

#[tokio::test]
async fn what_the_contract_does_not_know_never_ends_a_stream() {
    // The reference host's own future, live and replayed.
    let backend = spawn(&["--fault", "future"]).await;
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.events(&chat.id, None);
    backend.send(&chat.id, "tool; stream 30; output file; end victorious", &[]).await.unwrap();
    let live = until(&events, finished).await;
    let EventKind::RunFinished(finish) = &live.last().unwrap().kind else { unreachable!("it is the last") };
    assert_eq!(finish.status.as_str(), "victorious");
    let replay = until(&backend.events(&chat.id, Some(Seq::START)), finished).await;
    assert_eq!(durable(&live), durable(&replay));
    assert!(backend.load_chat(&chat.id).await.is_ok());
    backend.close().await;

    // And worse, by a raw pipe.
    let (backend, host) = ByteHost::connect(Options::default(), &["approvals", "telepathy"]).await;
    let history = Arc::new(Mutex::new(History {
        messages: Some(
            json!([
                {"message_id": "m1", "role": "prophet", "text": "hm", "aura": [1, {}]},
                {"message_id": "m2", "role": "user", "text": "hi", "created_at": null}
            ])
            .to_string(),
        ),
        more_state: ",\"weather\":{\"sky\":null},\"usage\":null,\"question\":null".into(),
        ..History::default()
    }));
    let host = host.serve(history.clone());
    let events = backend.events(&SESSION.into(), Some(Seq::START));
    let strange: Vec<Value> = vec![
        event(1, "quantum_leap", json!({"x": 1})),
        event(2, "host_state_changed", json!({"key": "mood", "value": 7})),
        event(3, "output.record", json!({"output": {"output_id": "o", "kind": "hologram"}})),
        event(
            4,
            "tool_started",
            json!({"call": {"call_id": "c", "name": "n", "arguments": {}, "colour": "red"}, "x": []}),
        ),
        event(5, "approval_resolved", json!({"approval_id": "a", "state": "blessed"})),
        event(6, "host_state_changed", json!({"key": "todo", "value": [{"text": "t", "status": "pondering"}]})),
        // Known types whose content doesn't fit.
        event(7, "tool_started", json!({"call": 7})),
        event(8, "run_finished", json!({})),
        event(9, "run_started", json!({"model": null})),
        event(10, "run_finished", json!({"status": "ascended", "text": null, "error": null})),
    ];
    for event in &strange {
        history.lock().unwrap().push(event);
        host.event(event);
    }
    host.event(&transient(10, "hum", json!(null)));
    let last = |event: &Event| finished(event) && event.seq == Seq(10 * 16 + 1);
    let live = until(&events, last).await;
    assert_rising(&live);
    let replay = until(&backend.events(&SESSION.into(), Some(Seq::START)), last).await;
    assert_eq!(durable(&live), durable(&replay));
    let kinds: Vec<_> = durable(&live).iter().map(|event| event.kind.name()).collect();
    assert_eq!(kinds, ["tool.started", "approval.resolved", "plan.updated", "run.started", "run.finished"]);
    let states: Vec<_> = live
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ApprovalResolved(resolved) => Some(resolved.state.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(states, [ApprovalState::from("blessed")]);
    let snapshot = backend.load_chat(&SESSION.into()).await.unwrap();
    assert!(matches!(&snapshot.items[0], Item::OtherMessage(_)), "{:?}", snapshot.items[0]);
    assert_eq!(snapshot.items.len(), 2);
    assert!(!backend.features().contains(&"telepathy".to_owned()), "nobody asked for it");
    backend.close().await;
}

#[tokio::test]
async fn an_unknown_request_of_the_host_is_answered() {
    // The reference host's run waits for the answer.
    let backend = spawn(&["--fault", "request"]).await;
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.run(&chat.id, "stream 5").await.unwrap();
    assert!(finished(kitport_conformance::rest(&events).await.0.last().unwrap()));
    assert!(backend.counters().host_requests >= 1);
    backend.close().await;

    let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
    for id in [json!(1), json!("one"), json!(0), json!(-3), json!(9_007_199_254_740_993_u64)] {
        host.line(&json!({"jsonrpc": "2.0", "id": id, "method": "ui.confirm", "params": {"text": "?"}})).await;
        let answer = host.message().await.unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32601)), "{answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
    }
    backend.close().await;
}

#[tokio::test]
async fn a_decided_approval_is_an_error_and_not_a_success() {
    let backend = spawn(&[]).await;
    let chat = backend.create_chat(None).await.unwrap();
    let other = backend.create_chat(None).await.unwrap();
    let events = backend.run(&chat.id, "approve").await.unwrap();
    let seen = until(&events, |event| matches!(event.kind, EventKind::ApprovalRequested(_))).await;
    let EventKind::ApprovalRequested(asked) = &seen.last().unwrap().kind else { unreachable!("it is the last") };
    let id = &asked.approval.id;
    let foreign = backend.decide_approval(&other.id, id, Decision::Approve, None).await.unwrap_err();
    assert_eq!(foreign.code(), "not_found");
    backend.decide_approval(&chat.id, id, Decision::Deny, Some("no")).await.unwrap();
    for decision in [Decision::Approve, Decision::Deny] {
        let again = backend.decide_approval(&chat.id, id, decision, None).await.unwrap_err();
        assert_eq!(again.code(), "conflict");
    }
    backend.close().await;

    // Decided between the list and the decision: the host says so, in each of its ways.
    let (backend, mut host) = ByteHost::connect(Options::default(), &[feature::APPROVALS]).await;
    for (words, code) in [
        ("approval already decided", "conflict"),
        ("Expired.", "conflict"),
        ("unknown approval", "not_found"),
        ("approval not found", "not_found"),
        ("who knows", "failed"),
    ] {
        let deciding = tokio::spawn({
            let backend = backend.clone();
            async move { backend.decide_approval(&SESSION.into(), &"a".into(), Decision::Approve, None).await }
        });
        let list = host.request().await.unwrap();
        assert_eq!(list.method, "approval.list");
        let pending = json!({"approval_id": "a", "session_id": SESSION, "state": "pending"});
        host.answer(&list.id, json!({"approvals": [pending]})).await;
        let decide = host.request().await.unwrap();
        assert_eq!(decide.method, "approval.decide");
        host.refuse(&decide.id, -32000, words).await;
        let error = deciding.await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.outcome()), (code, Some(Outcome::Refused)), "{words}");
    }
    backend.close().await;
}

#[tokio::test]
async fn a_steer_that_the_host_took_is_never_reported_as_lost_nor_the_other_way_round() {
    let connect = async || {
        let options = Options { call_timeout: None, ..Options::default() };
        ByteHost::connect(options, &[feature::STEER]).await
    };
    let steer = |backend: &BubblePaw| {
        let backend = backend.clone();
        tokio::spawn(async move { backend.steer(&SESSION.into(), "left").await })
    };
    // Taken.
    let (backend, mut host) = connect().await;
    let steering = steer(&backend);
    let request = host.request().await.unwrap();
    host.answer(&request.id, json!({"input_id": "in_1"})).await;
    assert_eq!(steering.await.unwrap().unwrap().input_id.unwrap().as_str(), "in_1");
    // Refused.
    let steering = steer(&backend);
    let request = host.request().await.unwrap();
    host.refuse(&request.id, -32000, "no run goes on").await;
    assert_eq!(steering.await.unwrap().unwrap_err().outcome(), Some(Outcome::Refused));
    // An answer that can't be read: it may have been taken.
    let steering = steer(&backend);
    let request = host.request().await.unwrap();
    host.answer(&request.id, json!({"input": 7})).await;
    assert_eq!(steering.await.unwrap().unwrap_err().outcome(), Some(Outcome::Unknown));
    // No answer in time: unknown.
    let error = backend.steer(&SESSION.into(), "left").within(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("timeout", Some(Outcome::Unknown)));
    assert_eq!(host.request().await.unwrap().method, "run.steer", "it had left");
    // The answer comes too late, to nobody: nothing breaks.
    let steering = steer(&backend);
    let request = host.request().await.unwrap();
    // Read by the host, which dies before it answers: unknown.
    assert_eq!(request.method, "run.steer");
    drop(host);
    let error = steering.await.unwrap().unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("host_exited", Some(Outcome::Unknown)));
    // Afterwards: never sent.
    let error = backend.steer(&SESSION.into(), "left").await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("host_exited", Some(Outcome::NotSent)));
    backend.close().await;
    let error = backend.steer(&SESSION.into(), "left").await.unwrap_err();
    assert_eq!(error.outcome(), Some(Outcome::NotSent));

    // A host that reads nothing: the steer waits behind a large text and never leaves.
    let (backend, mut host) = connect().await;
    let sending = tokio::spawn({
        let backend = backend.clone();
        async move { backend.steer(&SESSION.into(), &"x".repeat(4 << 20)).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = backend.steer(&SESSION.into(), "left").within(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("timeout", Some(Outcome::NotSent)));
    let large = host.request().await.unwrap();
    host.answer(&large.id, json!({"input_id": "in_2"})).await;
    sending.await.unwrap().unwrap();
    let listing = tokio::spawn({
        let backend = backend.clone();
        async move { backend.list_chats(None, None).await }
    });
    assert_eq!(host.request().await.unwrap().method, "session.list", "what was said not to be sent is not sent later");
    drop(host);
    assert!(matches!(listing.await.unwrap(), Err(KitError::HostExited { .. })));
    backend.close().await;
}

#[tokio::test]
async fn a_steer_is_in_the_run_it_was_reported_for() {
    let backend = spawn(&["--speed", "2"]).await;
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.run(&chat.id, "stream 100 slow; tool; stream 10").await.unwrap();
    until(&events, |event| matches!(event.kind, EventKind::MessageDelta(_))).await;
    let sent = backend.steer(&chat.id, "script: tool steered").await.unwrap();
    assert!(sent.input_id.is_some());
    kitport_conformance::rest(&events).await;
    let snapshot = backend.load_chat(&chat.id).await.unwrap();
    let texts: Vec<_> = snapshot
        .items
        .iter()
        .filter_map(|item| match item {
            Item::UserMessage(message) => Some(message.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts.iter().filter(|text| text.contains("steered")).count(), 1, "{texts:?}");
    backend.close().await;
}

/// The whole size where the tests may take long, a part of it else.
fn size(whole: u64, part: u64) -> u64 {
    if kitport_conformance::long() { whole } else { part }
}

/// Ten times as much may take ten times as much work, and a little for what grows in steps.
fn assert_linear(work: &str, whole: u64) -> (super::Measured, super::Measured) {
    let (small, large) = (measured(work, whole / 10), measured(work, whole));
    assert!(large.allocated < small.allocated * 12, "{work}: {small:?}, ten times as much: {large:?}");
    (small, large)
}

#[test]
fn a_snapshot_of_100_000_messages_grows_in_line() {
    let (small, large) = assert_linear("snapshot", 100_000);
    assert!(large.peak < small.peak * 12, "{small:?}, {large:?}");
}

#[test]
fn a_replay_of_1_000_000_events_grows_in_line_and_its_memory_does_not_grow() {
    let (small, large) = assert_linear("replay", size(1_000_000, 100_000));
    assert!(large.peak < small.peak + (4 << 20), "{small:?}, {large:?}");
    assert!(large.peak < 64 << 20, "{large:?}");
}

#[test]
fn a_delta_does_not_cost_the_length_of_the_text_so_far() {
    assert_linear("deltas", size(1_000_000, 100_000));
}

#[tokio::test]
async fn unknown_sessions_and_words_of_errors_do_not_end_other_streams() {
    let backend = spawn(&[]).await;
    let chat = backend.create_chat(None).await.unwrap();
    let (good, bad) = (backend.events(&chat.id, None), backend.events(&"no-such".into(), None));
    assert_eq!(kitport_conformance::rest(&bad).await.1.unwrap().code(), "not_found");
    backend.send(&chat.id, "tool", &[]).await.unwrap();
    until(&good, finished).await;
    let _ = (session("x"), TIME, next);
    backend.close().await;
}
