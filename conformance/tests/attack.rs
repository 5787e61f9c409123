//! Unlucky moments: what is lost, closed or read at the worst time, with a host whose every line is written here.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kitport::bubblepaw::Options;
use kitport::model::{Event, EventKind, Seq};
use kitport::{AgentBackend, ChatReader, StreamLimits};
use kitport_conformance::raw_host::{RawHost, while_host};
use kitport_conformance::{NEVER, next, rest, until};
use serde_json::{Value, json};

fn state(sequence: u64, changes: Value) -> Value {
    let mut state = json!({
        "session": {
            "session_id": "s",
            "title": "Title",
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-02T00:00:00Z",
        },
        "sequence": sequence,
        "messages": [],
        "runs": [],
        "inputs": [],
        "outputs": [],
        "todo": [],
    });
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    state.as_object_mut().unwrap().extend(changes);
    state
}

fn event(sequence: u64, event_type: &str, data: Value) -> Value {
    json!({"sequence": sequence, "type": event_type, "data": data, "run_id": "r"})
}

fn transient(sequence: u64, event_type: &str, data: Value) -> Value {
    json!({"sequence": sequence, "type": event_type, "data": data, "run_id": "r", "durable": false})
}

fn page(events: &[Value]) -> Value {
    json!({"events": events, "has_more": false})
}

/// Answers what a stream asks for, with this state and this history, for ever.
async fn serve(host: &mut RawHost, state: &Value, history: &[Value]) {
    loop {
        let asked = host.next().await;
        match asked.method.as_str() {
            "session.state" => host.answer(&asked, state.clone()).await,
            "events.after" => {
                let after = asked.params["after"].as_u64().unwrap();
                let events: Vec<_> =
                    history.iter().filter(|event| event["sequence"].as_u64().unwrap() > after).cloned().collect();
                host.answer(&asked, page(&events)).await;
            }
            other => panic!("{other} was not expected"),
        }
    }
}

/// A run whose end was lost before its stream had a place ends its stream all the same.
#[tokio::test]
async fn a_run_whose_end_came_before_its_stream_had_a_place_ends_it() {
    let ended = json!({"runs": [{"run_id": "r", "status": "completed"}]});
    let (backend, mut host) = RawHost::connect(&[]).await;
    let chat = "s".into();
    let started = while_host(backend.run(&chat, "hi"), async {
        let asked = host.asked("session.state").await;
        let run = host.asked("run.start").await;
        host.answer(&run, json!({"run_id": "r"})).await;
        host.notify("events.gap", json!({"session_id": "s"})).await;
        host.answer(&asked, state(12, ended.clone())).await;
    });
    let events = started.await.unwrap();
    let (state_now, history) = (state(12, ended.clone()), [event(11, "run_started", json!({}))]);
    let (told, error) = tokio::select! {
        told = rest(&events) => told,
        () = serve(&mut host, &state_now, &history) => unreachable!("it serves for ever"),
    };
    assert!(error.is_none());
    let last = told.last().expect("the end of the run");
    assert!(matches!(&last.kind, EventKind::RunFinished(end) if end.status.as_str() == "completed"), "{told:?}");
}

/// So does one whose end the history no longer has.
#[tokio::test]
async fn a_run_whose_end_is_no_longer_kept_ends_its_stream() {
    let ended = json!({"runs": [{"run_id": "r", "status": "completed"}]});
    let (backend, mut host) = RawHost::connect(&[]).await;
    let chat = "s".into();
    let started = while_host(backend.run(&chat, "hi"), async {
        let asked = host.asked("session.state").await;
        host.answer(&asked, state(10, json!({}))).await;
        let run = host.asked("run.start").await;
        host.answer(&run, json!({"run_id": "r"})).await;
        host.event("s", event(11, "run_started", json!({}))).await;
        host.notify("events.gap", json!({"session_id": "s"})).await;
    });
    let events = started.await.unwrap();
    let answering = async {
        loop {
            let asked = host.next().await;
            match asked.method.as_str() {
                "events.after" => host.answer(&asked, json!({"events": [], "has_more": false, "resync": true})).await,
                _ => host.answer(&asked, state(12, ended.clone())).await,
            }
        }
    };
    let (told, error) = tokio::select! {
        told = rest(&events) => told,
        () = answering => unreachable!("it answers for ever"),
    };
    assert!(error.is_none());
    let ends: Vec<_> = told.iter().filter(|event| matches!(event.kind, EventKind::RunFinished(_))).collect();
    assert_eq!(ends.len(), 1, "{told:?}");
}

/// A reader that falls behind while what waited for its stream is given: the text it missed is not shown as if it was there.
#[tokio::test]
async fn text_that_a_slow_reader_missed_leaves_no_hole() {
    let options = Options { stream_limits: StreamLimits { events: 8, bytes: 1 << 20 }, ..RawHost::options() };
    let (backend, mut host) = RawHost::connect_with(&[], options).await;
    let events = backend.events(&"s".into(), Some(Seq(10 * 16 + 15)));
    let asked = host.asked("events.after").await;
    let tool = |sequence: u64| {
        let call = json!({"call_id": sequence.to_string(), "name": "n", "arguments": {}});
        event(sequence, "tool_started", json!({"call": call}))
    };
    let mut all = vec![event(11, "run_started", json!({}))];
    all.extend((12..20).map(tool));
    // Together with what the history has this is more than there is room for.
    host.event("s", transient(16, "model_request", json!({}))).await;
    host.event("s", transient(16, "text_delta", json!({"text": "one "}))).await;
    for tool in &all[6..] {
        host.event("s", tool.clone()).await;
    }
    host.event("s", transient(19, "text_delta", json!({"text": "two "}))).await;
    host.answer(&asked, page(&all[..6])).await;
    let mut told = Vec::new();
    let state_now = state(19, json!({"runs": [{"run_id": "r", "status": "running"}]}));
    let reading = async {
        // It reads when all is there.
        tokio::time::sleep(Duration::from_millis(300)).await;
        told = until(&events, |event| event.seq.0 >= 19 * 16).await;
    };
    tokio::select! {
        () = reading => {}
        () = serve(&mut host, &state_now, &all) => unreachable!("it serves for ever"),
    }
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(500)) => {}
        () = serve(&mut host, &state_now, &all) => unreachable!("it serves for ever"),
    }
    host.event("s", transient(19, "text_delta", json!({"text": "three"}))).await;
    host.event("s", event(20, "run_finished", json!({"status": "completed"}))).await;
    all.push(event(20, "run_finished", json!({"status": "completed"})));
    let state_now = state(20, json!({"runs": [{"run_id": "r", "status": "completed"}]}));
    tokio::select! {
        more = until(&events, |event| matches!(event.kind, EventKind::RunFinished(_))) => told.extend(more),
        () = serve(&mut host, &state_now, &all) => unreachable!("it serves for ever"),
    }
    let mut shown = String::new();
    for event in &told {
        if let EventKind::MessageDelta(delta) = &event.kind {
            shown.truncate(delta.offset as usize);
            shown.push_str(&delta.text);
        }
    }
    assert!("one two three".starts_with(&shown), "{shown:?}");
}

/// A stream that begins above what there is doesn't make the chat's other streams go back.
#[tokio::test]
async fn a_stream_that_is_ahead_does_not_disturb_the_others() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), None);
    let asked = host.asked("session.state").await;
    host.answer(&asked, state(10, json!({}))).await;
    host.event("s", transient(10, "tool_finished", json!({"call_id": "ready", "result": null}))).await;
    next(&events).await;
    let ahead = backend.events(&"s".into(), Some(Seq(99 * 16)));
    let asked = host.asked("events.after").await;
    host.answer(&asked, page(&[])).await;
    let asked = host.asked("session.state").await;
    let todo = json!({"key": "todo", "value": [{"text": "t", "status": "done"}]});
    host.event("s", event(11, "host_state_changed", todo)).await;
    // The state as it was before.
    host.answer(&asked, state(10, json!({}))).await;
    let gap = next(&ahead).await;
    assert!(matches!(gap.kind, EventKind::Gap(_)));
    host.event("s", event(12, "tool_started", json!({"call": {"call_id": "c", "name": "n", "arguments": {}}}))).await;
    let told = until(&events, |event| matches!(event.kind, EventKind::ToolStarted(_))).await;
    let kinds: Vec<_> = told.iter().map(|event: &Event| (event.kind.name(), event.durable)).collect();
    assert_eq!(kinds, [("plan.updated", true), ("tool.started", true)]);
}

/// Whoever begins to watch while the backend is closed is told the end.
#[test]
fn a_watch_that_begins_during_close_ends() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..200 {
            let (backend, host) = RawHost::connect(&[]).await;
            let closed = Arc::new(AtomicBool::new(false));
            let watching = std::thread::spawn({
                let (backend, closed) = (backend.clone(), closed.clone());
                move || {
                    let mut streams = VecDeque::new();
                    while !closed.load(Ordering::Acquire) {
                        streams.push_back(backend.watch_all());
                        // The last ones began when the end was told.
                        streams.drain(..streams.len().saturating_sub(100_000));
                    }
                    streams
                }
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
            let _ = futures::FutureExt::now_or_never(backend.close());
            closed.store(true, Ordering::Release);
            for stream in watching.join().unwrap() {
                assert!(tokio::time::timeout(NEVER, rest(&stream)).await.unwrap().1.is_none());
            }
            drop(host);
        }
    });
}

#[cfg(target_os = "linux")]
mod processes {
    use kitport::BubblePaw;
    use kitport::bubblepaw::Restart;
    use kitport::rpc::HostCommand;
    use kitport_conformance::procs::{MARK, marked};
    use kitport_conformance::{eventually, shell_host};

    use super::*;

    fn options() -> Options {
        Options { close_grace: Duration::from_millis(500), ..Options::default() }
    }

    /// A host that takes the time it is given.
    async fn stubborn(mark: &str, script: &str, options: Options) -> BubblePaw {
        let command: HostCommand = shell_host(script).env(MARK, mark);
        BubblePaw::spawn(command, options).await.unwrap()
    }

    /// Every close waits until the process is gone, also where another one began to, or the host's end did.
    #[tokio::test]
    async fn every_close_waits_until_the_process_is_gone() {
        let mark = format!("attack-twice-{}", std::process::id());
        let backend = stubborn(&mark, "trap '' TERM; while :; do sleep 0.1; done", options()).await;
        let first = tokio::spawn({
            let backend = backend.clone();
            async move { backend.close().await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Given up: the second one has to wait for what the first began.
        first.abort();
        backend.close().await;
        assert_eq!(marked(&mark), [0u32; 0], "after a second close");

        let mark = format!("attack-eof-{}", std::process::id());
        let backend = stubborn(&mark, "trap '' TERM; exec >&-; while :; do sleep 0.1; done", options()).await;
        let (_, error) = rest(&backend.watch_all()).await;
        assert_eq!(error.map(|error| error.code()), Some("host_exited"));
        backend.close().await;
        assert_eq!(marked(&mark), [0u32; 0], "after an end of its output");
    }

    /// Two hosts on one store would be one too many.
    #[tokio::test]
    async fn a_host_is_started_anew_when_the_old_one_is_gone() {
        let mark = format!("attack-anew-{}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        // Whoever starts while another one lives says so.
        let script = format!(
            "trap '' TERM; mkdir {lock} || echo two >>{log}; echo one >>{log}; exec >&-; sleep 0.3; rmdir {lock}",
            lock = folder.path().join("lock").display(),
            log = log.display(),
        );
        let restart =
            Restart::Always { first_pause: Duration::from_millis(1), longest_pause: Duration::from_millis(1) };
        let backend = stubborn(&mark, &script, Options { restart, ..options() }).await;
        eventually("it is started anew", || backend.counters().restarts >= 2).await;
        backend.close().await;
        let log = std::fs::read_to_string(&log).unwrap();
        assert!(log.lines().count() >= 2 && !log.contains("two"), "{log}");
        assert_eq!(marked(&mark), [0u32; 0], "after close");
    }

    /// A host whose sequences begin anew with each start.
    fn forgetful(folder: &std::path::Path) -> HostCommand {
        // The first one counts from 100, the later ones from 5. Every request about a chat is answered as the reader asks.
        let script = format!(
            r#"
n=5; if mkdir {first} 2>/dev/null; then n=100; fi
while read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in
    *session.rename*)
      echo '{{"jsonrpc":"2.0","method":"event","params":{{"session_id":"s","event":{{"sequence":'$n',"type":"tool_finished","data":{{"call_id":"c'$n'","result":null}},"run_id":"r"}}}}}}'
      n=$((n+1))
      echo '{{"jsonrpc":"2.0","id":'$id',"result":{{}}}}';;
    *config.set*) exit 3;;
    *) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{}}}}';;
  esac
done"#,
            first = folder.join("first").display(),
        );
        shell_host(&script)
    }

    /// Watching goes on with a host that counts from the beginning again.
    #[tokio::test]
    async fn a_watch_goes_on_when_the_host_counts_anew() {
        let folder = tempfile::tempdir().unwrap();
        let restart =
            Restart::Always { first_pause: Duration::from_millis(1), longest_pause: Duration::from_millis(1) };
        let backend = BubblePaw::spawn(forgetful(folder.path()), Options { restart, ..options() }).await.unwrap();
        let watched = backend.watch_all();
        backend.rename(&"s".into(), "a").await.unwrap();
        assert_eq!(next(&watched).await.seq, Seq(100 * 16));
        backend.set_config("end", json!(1)).await.unwrap_err();
        eventually("it is started anew", || backend.counters().restarts >= 1).await;
        backend.rename(&"s".into(), "b").await.unwrap();
        let told = until(&watched, |event| event.durable).await;
        assert_eq!(told.last().unwrap().seq, Seq(5 * 16));
        backend.close().await;
    }
}
