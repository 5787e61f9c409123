//! Lines and pipes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kitport::bubblepaw::Options;
use kitport::model::{Event, EventKind, Seq};
use kitport::{AgentBackend, BubblePaw, ChatReader, Outcome};
use kitport_conformance::byte_host::{ByteHost, History, SESSION, event, event_line, line, session, transient};
use kitport_conformance::{assert_rising, durable, host_command, next, shell_host, until};
use serde_json::json;

use super::{host, measured};

const MIB: usize = 1024 * 1024;

fn finished(event: &Event) -> bool {
    matches!(event.kind, EventKind::RunFinished(_))
}

/// A run, live and replayed, on a host with these arguments: nothing differs, nothing is missing.
async fn run_and_replay(args: &[&str], script: &str) -> (BubblePaw, Vec<Event>) {
    let backend = BubblePaw::spawn(host(args), Options::default()).await.unwrap();
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.events(&chat.id, None);
    backend.send(&chat.id, script, &[]).await.unwrap();
    let live = until(&events, finished).await;
    assert_rising(&live);
    let replay = until(&backend.events(&chat.id, Some(Seq::START)), finished).await;
    assert_eq!(durable(&live), durable(&replay));
    (backend, live)
}

#[tokio::test]
async fn a_line_of_64_kib_1_mib_and_40_mib_arrives_whole() {
    let backend = BubblePaw::spawn(host(&[]), Options::default()).await.unwrap();
    for size in [64 * 1024, MIB, 40 * MIB] {
        let chat = backend.create_chat(None).await.unwrap();
        let events = backend.events(&chat.id, None);
        backend.send(&chat.id, &format!("big {size}"), &[]).await.unwrap();
        let live = until(&events, finished).await;
        let result = live.iter().find_map(|event| match &event.kind {
            EventKind::ToolFinished(tool) => tool.result.clone(),
            _ => None,
        });
        let result = result.expect("the tool has a result").to_string();
        assert!(result.len() >= size, "{size}: {} bytes came", result.len());
        // As the answer to a request, too.
        let replay = until(&backend.events(&chat.id, Some(Seq::START)), finished).await;
        assert_eq!(durable(&live), durable(&replay), "{size}");
    }
    assert_eq!(backend.counters().oversize, 0);
    backend.close().await;
}

#[tokio::test]
async fn an_answer_above_the_limit_fails_its_request_and_nothing_else() {
    let options = Options { line_limit: MIB, call_timeout: None, ..Options::default() };
    let (backend, host) = ByteHost::connect(options, &[]).await;
    let history = Arc::new(Mutex::new(History::default()));
    let host = host.serve(history.clone());
    let chat = SESSION.into();
    let other = backend.events(&chat, Some(Seq::START));
    history.lock().unwrap().push(&event(1, "run_started", json!({})));
    host.event(&event(1, "run_started", json!({})));
    assert_eq!(next(&other).await.kind.name(), "run.started");
    // A message larger than a line may be.
    let text = "x".repeat(2 * MIB);
    let message = json!([{"message_id": "m", "role": "user", "text": text}]);
    history.lock().unwrap().messages = Some(message.to_string());
    let error = backend.load_chat(&chat).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("failed", Some(Outcome::Unknown)));
    assert!(error.message().contains("session.state"), "{error}");
    // The connection and the streams live on.
    history.lock().unwrap().messages = None;
    backend.load_chat(&chat).await.unwrap();
    let finish = event(2, "run_finished", json!({"status": "completed"}));
    history.lock().unwrap().push(&finish);
    host.event(&finish);
    until(&other, finished).await;
    assert!(backend.counters().oversize >= 1);
    backend.close().await;
}

#[tokio::test]
async fn a_notification_above_the_limit_loses_no_event_of_any_stream() {
    let options = Options { line_limit: MIB, ..Options::default() };
    let backend = BubblePaw::spawn(host(&["--fault", "big-line=3"]), options).await.unwrap();
    let chat = backend.create_chat(None).await.unwrap();
    let other = backend.create_chat(None).await.unwrap();
    let (events, others) = (backend.events(&chat.id, None), backend.events(&other.id, None));
    backend.send(&chat.id, "tools 20; stream 50; tool", &[]).await.unwrap();
    backend.send(&other.id, "tools 20; stream 50; tool", &[]).await.unwrap();
    for (chat, events) in [(&chat, &events), (&other, &others)] {
        let live = until(events, finished).await;
        let replay = until(&backend.events(&chat.id, Some(Seq::START)), finished).await;
        assert_eq!(durable(&live), durable(&replay));
        assert!(live.iter().all(|event| !matches!(event.kind, EventKind::Gap(_))), "it is made good by replay");
    }
    assert_eq!(backend.counters().oversize, 1);
    backend.close().await;
}

#[tokio::test]
async fn an_event_above_the_limit_is_a_gap_and_the_stream_goes_on_behind_it() {
    let options = Options { line_limit: MIB, ..Options::default() };
    let (backend, host) = ByteHost::connect(options, &[]).await;
    let history = Arc::new(Mutex::new(History::default()));
    for sequence in 1..=40 {
        history.lock().unwrap().push(&event(sequence, "run_started", json!({})));
    }
    let big = json!({"call_id": "c", "result": "x".repeat(2 * MIB)});
    history.lock().unwrap().push(&event(41, "tool_finished", big));
    let host = host.serve(history.clone());
    let events = backend.events(&SESSION.into(), Some(Seq::START));
    let before = until(&events, |event| matches!(event.kind, EventKind::Gap(_))).await;
    assert_eq!(durable(&before).len(), 40, "what fits is delivered first");
    let EventKind::Gap(gap) = &before[40].kind else { panic!("{:?}", before[40]) };
    assert!(gap.lost);
    assert_eq!((gap.reason.as_str(), gap.snapshot_seq), ("oversize", Some(Seq(41 * 16 + 15))));
    let last = event(42, "run_finished", json!({"status": "completed"}));
    history.lock().unwrap().push(&last);
    host.event(&last);
    assert_eq!(durable(&until(&events, finished).await).len(), 1);
    backend.close().await;
}

#[tokio::test]
async fn a_line_above_the_limit_takes_no_more_memory_the_longer_it_is() {
    let (short, long) = (measured("oversize-line", 16), measured("oversize-line", 256));
    assert!(long.peak < 2 * MIB as u64, "256 MiB in one line held {long:?}");
    assert!(long.peak < short.peak + 256 * 1024, "{short:?}, {long:?}");
}

#[tokio::test]
async fn log_lines_empty_lines_half_json_and_invalid_utf8_are_skipped() {
    let (backend, _) = run_and_replay(&["--fault", "noise"], "tools 40; stream 200; unicode").await;
    assert!(backend.counters().skipped_lines > 10);
    backend.close().await;
}

#[tokio::test]
async fn noise_between_any_two_lines_changes_nothing() {
    let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
    let noise: [&[u8]; 12] = [
        b"\n",
        b"\r\n",
        b"   \n",
        b"[info] ready\n",
        b"{\"jsonrpc\":\"2.0\",\"meth\n",
        b"\xff\xfe\xc3\n",
        b"{}\n",
        b"null\n",
        b"7\n",
        b"[]\n",
        b"\"text\"\n",
        b"\x00\x00\n",
    ];
    let asked = tokio::spawn({
        let backend = backend.clone();
        async move { backend.list_chats(None, None).await }
    });
    let request = host.request().await.unwrap();
    for bytes in noise {
        host.write(bytes).await;
    }
    host.answer(&request.id, json!({"sessions": [session("a")]})).await;
    assert_eq!(asked.await.unwrap().unwrap().chats.len(), 1);
    assert_eq!(backend.counters().skipped_lines, noise.len() as u64);
    backend.close().await;
}

#[tokio::test]
async fn a_character_split_over_reads_is_whole() {
    let text = "é𝄞🏳️‍🌈\u{301}漢字🦊";
    let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
    let asked = tokio::spawn({
        let backend = backend.clone();
        async move { backend.list_chats(None, None).await }
    });
    let request = host.request().await.unwrap();
    let mut meta = session("a");
    meta["title"] = json!(text);
    let bytes = line(&json!({"jsonrpc": "2.0", "id": request.id, "result": {"sessions": [meta]}}));
    for byte in bytes {
        host.write(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.await.unwrap().unwrap().chats[0].title, text);
    backend.close().await;
    // And through a real pipe, in random pieces.
    let (backend, live) = run_and_replay(&["--fault", "split", "--seed", "7"], "unicode; stream 30; unicode").await;
    assert!(live.iter().all(|event| !serde_json::to_string(event).unwrap().contains('\u{fffd}')));
    assert!(live.iter().all(|event| !matches!(event.kind, EventKind::Gap(_))), "the deltas fit their paragraphs");
    backend.close().await;
}

#[tokio::test]
async fn only_lf_ends_a_line() {
    let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
    // Unescaped, as JSON allows it; CR has to be escaped, but may stand before the LF.
    for (title, escaped) in
        [("a\u{2028}b\u{2029}c\u{85}d", "a\u{2028}b\u{2029}c\u{85}d"), ("a\r\nb\rc", "a\\r\\nb\\rc")]
    {
        let asked = tokio::spawn({
            let backend = backend.clone();
            async move { backend.list_chats(None, None).await }
        });
        let request = host.request().await.unwrap();
        let bytes = line(&json!({"jsonrpc": "2.0", "id": request.id, "result": {"sessions": [session("a")]}}));
        let text = String::from_utf8(bytes).unwrap().replace("\"T\"", &format!("\"{escaped}\"")).replace('\n', "\r\n");
        host.write(text.as_bytes()).await;
        assert_eq!(asked.await.unwrap().unwrap().chats[0].title, title);
    }
    assert_eq!(backend.counters().skipped_lines, 0);
    backend.close().await;
}

#[tokio::test]
async fn a_large_request_and_a_large_answer_pass_each_other() {
    const SIZE: usize = 16 * MIB;
    let options = Options { call_timeout: None, ..Options::default() };
    let (backend, mut host) = ByteHost::connect(options, &[]).await;
    let reading = tokio::spawn({
        let backend = backend.clone();
        async move { backend.load_chat(&SESSION.into()).await }
    });
    let state = host.request().await.unwrap();
    let sending = tokio::spawn({
        let backend = backend.clone();
        async move { backend.send(&SESSION.into(), &"q".repeat(SIZE), &[]).await }
    });
    // This host reads nothing until its whole answer is taken.
    let text = "a".repeat(SIZE);
    let mut answer =
        json!({"session": session(SESSION), "sequence": 0, "runs": [], "inputs": [], "outputs": [], "todo": []});
    answer["messages"] = json!([{"message_id": "m", "role": "user", "text": text}]);
    tokio::time::timeout(kitport_conformance::NEVER, host.answer(&state.id, answer)).await.expect("it is read");
    assert_eq!(reading.await.unwrap().unwrap().items.len(), 1);
    let request = host.request().await.unwrap();
    assert_eq!(request.params["text"].as_str().unwrap().len(), SIZE);
    host.answer(&request.id, json!({"run_id": "r"})).await;
    sending.await.unwrap().unwrap();
    backend.close().await;
}

#[tokio::test]
async fn a_hundred_megabytes_of_stderr_stop_nothing() {
    let (backend, _) = run_and_replay(&["--fault", "stderr=100"], "tool; stream 20").await;
    backend.close().await;
}

#[tokio::test]
async fn a_host_that_exits_at_once_is_a_typed_error() {
    let scripts = [
        // Without a word, with a word, and with its stdin closed first: writing to it fails before it is gone.
        ("exit 3", 3, ""),
        ("echo 'no such table' >&2; exit 4", 4, "no such table"),
        ("exec <&-; sleep 0.1; echo late >&2; exit 5", 5, "late"),
    ];
    for (script, code, told) in scripts {
        let command = kitport::rpc::HostCommand::new("sh").args(["-c", script]);
        let error = BubblePaw::spawn(command, Options::default()).await.unwrap_err();
        let kitport::KitError::HostExited { exit_code, signal, stderr_tail, .. } = &error else {
            panic!("{script}: {error:?}")
        };
        assert_eq!((*exit_code, *signal), (Some(code), None), "{script}");
        assert_eq!(stderr_tail.trim(), told, "{script}");
    }
    // The reference host refuses an option that it doesn't know.
    let error = BubblePaw::spawn(host(&["--nonsense"]), Options::default()).await.unwrap_err();
    assert_eq!(error.code(), "host_exited");
    let error = BubblePaw::spawn(host_command("/bin/true".as_ref(), &[]), Options::default()).await.unwrap_err();
    assert_eq!(error.code(), "host_exited");
}

#[tokio::test]
async fn a_host_that_says_nothing_is_a_typed_error() {
    let options = Options { handshake_timeout: Duration::from_millis(200), ..Options::default() };
    let error = BubblePaw::spawn(host(&["--fault", "hang=0"]), options.clone()).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    // One that says another version is another error.
    let error = BubblePaw::spawn(host(&["--protocol-version", "0.2"]), Options::default()).await.unwrap_err();
    assert_eq!(error.code(), "protocol_mismatch");
    // One that closes its stdout and stays is gone all the same.
    let error = BubblePaw::spawn(shell_host("exec >&-; sleep 600"), options.clone()).await;
    match error {
        Ok(backend) => {
            let ended = backend.list_chats(None, None).await.unwrap_err();
            assert_eq!(ended.code(), "host_exited");
            backend.close().await;
        }
        Err(error) => assert_eq!(error.code(), "host_exited"),
    }
}

#[tokio::test]
async fn answers_to_nobody_are_counted() {
    let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
    for id in
        [json!(0), json!(99999), json!("1"), json!(null), json!(-4), json!(1.5), json!({"a": 1}), json!(1u64 << 60)]
    {
        host.answer(&id, json!({})).await;
    }
    let asked = tokio::spawn({
        let backend = backend.clone();
        async move { backend.list_chats(None, None).await }
    });
    let request = host.request().await.unwrap();
    host.write(&event_line(&transient(0, "text_delta", json!({"text": "x"})))).await;
    host.answer(&request.id, json!({"sessions": []})).await;
    asked.await.unwrap().unwrap();
    let counters = backend.counters();
    assert_eq!(counters.unknown_ids + counters.skipped_lines, 8, "{counters:?}");
    backend.close().await;
}
