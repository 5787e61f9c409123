//! The engine over a pair of streams: lines, calls, order, and the end.

#![allow(clippy::unwrap_used, reason = "tests")]

mod rpc_support;

use std::time::Duration;

use kitport::rpc::{Client, ClientOptions, Ended, ExitReport, Patience, RpcError, Timeout};
use rpc_support::{Event, Inbox, Seen, eventually, options, soon};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

/// The other side, played by hand.
struct Host {
    requests: BufReader<ReadHalf<DuplexStream>>,
    out: WriteHalf<DuplexStream>,
}

impl Host {
    async fn request(&mut self) -> Value {
        let mut line = String::new();
        soon(self.requests.read_line(&mut line)).await.unwrap();
        assert!(line.ends_with('\n'), "{line:?}");
        serde_json::from_str(&line).unwrap()
    }

    async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.out.write_all(bytes.as_ref())).await.unwrap();
    }

    async fn line(&mut self, value: Value) {
        self.write(format!("{value}\n")).await;
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.line(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn event(&mut self, n: u64, text: &str) {
        self.line(json!({"jsonrpc": "2.0", "method": "event", "params": {"n": n, "text": text}})).await;
    }
}

fn connect_with(room: usize, inbox: Inbox, options: ClientOptions) -> (Client, Host) {
    let (ours, theirs) = duplex(room);
    let (reader, writer) = split(ours);
    let (requests, out) = split(theirs);
    (Client::start(reader, writer, inbox, options), Host { requests: BufReader::new(requests), out })
}

fn connect() -> (Client, Host, Inbox) {
    let inbox = Inbox::new();
    let (client, host) = connect_with(64 * 1024, inbox.clone(), options());
    (client, host, inbox)
}

fn event(n: u64, text: &str) -> Event {
    Event { n, text: text.to_owned() }
}

const GONE: Ended = Ended::Exited(ExitReport { exit_code: None, signal: None, stderr_tail: String::new() });

fn call(client: &Client, method: &str) -> tokio::task::JoinHandle<Result<Value, RpcError>> {
    tokio::spawn(client.call_as::<Value, _>(method, &json!({}), Timeout::Never))
}

#[tokio::test]
async fn a_request_is_written_as_json_rpc() {
    let (client, mut host, _inbox) = connect();
    let calling = tokio::spawn(client.call("a.\"b", &json!({"x": [1]}), Timeout::Default));
    let request = host.request().await;
    assert_eq!(request, json!({"jsonrpc": "2.0", "id": request["id"], "method": "a.\"b", "params": {"x": [1]}}));
    assert!(request["id"].is_u64());
    host.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"b\":1.0, \"a\":2}}}}\n", request["id"])).await;
    assert_eq!(soon(calling).await.unwrap().unwrap().get(), "{\"b\":1.0, \"a\":2}");
    let calling = tokio::spawn(client.call("none", &(), Timeout::Default));
    let request = host.request().await;
    assert_eq!(request.get("params"), None);
    host.answer(&request, Value::Null).await;
    assert_eq!(soon(calling).await.unwrap().unwrap().get(), "null");
}

#[tokio::test]
async fn answers_out_of_order_reach_their_calls() {
    let (client, mut host, _inbox) = connect();
    let calls: Vec<_> = (0..50).map(|nth| call(&client, &format!("m{nth}"))).collect();
    let mut requests = Vec::new();
    for _ in &calls {
        requests.push(host.request().await);
    }
    requests.sort_by_key(|request| request["method"].as_str().unwrap().chars().rev().collect::<String>());
    for request in &requests {
        host.answer(request, request["method"].clone()).await;
    }
    for (nth, call) in calls.into_iter().enumerate() {
        assert_eq!(soon(call).await.unwrap().unwrap(), json!(format!("m{nth}")));
    }
    assert_eq!(client.calls_waiting(), 0);
}

#[tokio::test]
async fn an_event_before_the_answer_is_handed_out_before_it_and_one_after_it_too() {
    let (client, mut host, inbox) = connect();
    let inbox_then = inbox.clone();
    let answer = client.call("m", &json!({}), Timeout::Default);
    let calling = tokio::spawn(async move {
        answer.await.unwrap();
        inbox_then.events().len()
    });
    let request = host.request().await;
    let mut all = String::new();
    for n in 0..100 {
        all += &format!("{}\n", json!({"method": "event", "params": {"n": n}}));
    }
    all += &format!("{}\n", json!({"id": request["id"], "result": 1}));
    all += &format!("{}\n", json!({"method": "event", "params": {"n": 100}}));
    host.write(all).await;
    assert!(soon(calling).await.unwrap() >= 100);
    inbox.wait_count(101).await;
    assert!(inbox.events().iter().map(|event| event.n).eq(0..=100));
}

#[tokio::test]
async fn lines_of_64_kib_1_mib_and_40_mib_arrive_whole() {
    let (client, mut host, inbox) = connect();
    for (nth, length) in [64 * 1024, 1024 * 1024, 40 * 1024 * 1024].into_iter().enumerate() {
        let text = "a€".repeat(length / 4);
        let calling = call(&client, "big");
        let request = host.request().await;
        host.answer(&request, json!(text)).await;
        assert!(soon(calling).await.unwrap().unwrap() == json!(text), "{length}");
        host.event(nth as u64, &text).await;
        let seen = inbox.wait_count(nth + 1).await;
        assert!(seen[nth] == Seen::Event(event(nth as u64, &text)), "{length}");
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_request_and_the_connection_lives_on() {
    let inbox = Inbox::new();
    let mut options = options();
    options.line_limit_bytes = 1000;
    let (client, mut host) = connect_with(4096, inbox.clone(), options);
    for (prefix, suffix) in [("{\"jsonrpc\":\"2.0\",\"id\":", ""), ("{\"id\":", ",\"jsonrpc\":\"2.0\"")] {
        let big = call(&client, "big");
        let request = host.request().await;
        let other = call(&client, "other");
        let other_request = host.request().await;
        let line = format!("{prefix}{}{suffix},\"result\":\"{}\"}}\n", request["id"], "x".repeat(1_000_000));
        host.write(line).await;
        let error = soon(big).await.unwrap().unwrap_err();
        assert!(matches!(&error, RpcError::Oversize { method } if method == "big"), "{error:?}");
        assert!(error.sent());
        host.answer(&other_request, json!(1)).await;
        assert_eq!(soon(other).await.unwrap().unwrap(), json!(1));
    }
    assert_eq!(inbox.seen(), []);
    host.event(1, &"x".repeat(1000)).await;
    host.event(2, "").await;
    assert_eq!(inbox.wait_count(2).await, [Seen::Oversize, Seen::Event(event(2, ""))]);
    assert_eq!(client.counters().oversize, 3);
}

#[tokio::test]
async fn noise_is_skipped_and_counted() {
    let (client, mut host, inbox) = connect();
    host.write(
        b"migrating 1/3\n\n\r\n{\"half\": \n[1]\n{\"method\":\"event\",\"params\":{\"n\":1,\"text\":\"\xff\"}}\n",
    )
    .await;
    host.write(b"{\"method\":\"other\",\"params\":{\"n\":1}}\n").await;
    host.event(1, "").await;
    assert_eq!(inbox.wait_count(1).await, [Seen::Event(event(1, ""))]);
    assert_eq!(client.counters().skipped_lines, 6);
}

#[tokio::test]
async fn a_character_split_over_reads_is_whole() {
    let (_client, mut host, inbox) = connect();
    let line = "{\"method\":\"event\",\"params\":{\"n\":1,\"text\":\"€😀\"}}\n";
    for byte in line.as_bytes() {
        host.write([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(inbox.wait_count(1).await, [Seen::Event(event(1, "€😀"))]);
}

#[tokio::test]
async fn line_separators_and_cr_inside_a_string_do_not_split() {
    let (client, mut host, inbox) = connect();
    let text = "a\u{2028}b\u{2029}c\u{85}d";
    host.write(format!("{{\"method\":\"event\",\"params\":{{\"n\":1,\"text\":\"{text}\"}}}}\r\n")).await;
    assert_eq!(inbox.wait_count(1).await, [Seen::Event(event(1, text))]);
    assert_eq!(client.counters().skipped_lines, 0);
}

#[tokio::test]
async fn a_large_write_while_the_host_writes_a_large_answer_does_not_deadlock() {
    let inbox = Inbox::new();
    let (client, mut host) = connect_with(4096, inbox.clone(), options());
    let text = "x".repeat(8 * 1024 * 1024);
    let first = call(&client, "first");
    let request = host.request().await;
    let second = tokio::spawn(client.call_as::<Value, _>("second", &json!({"text": text}), Timeout::Never));
    // The host reads nothing until its own answer is out.
    host.answer(&request, json!(text)).await;
    assert_eq!(soon(first).await.unwrap().unwrap(), json!(text));
    let request = host.request().await;
    assert_eq!(request["params"]["text"], json!(text));
    host.answer(&request, json!(2)).await;
    assert_eq!(soon(second).await.unwrap().unwrap(), json!(2));
}

#[tokio::test]
async fn the_end_fails_pending_and_later_calls_once_after_what_was_read() {
    let (client, mut host, inbox) = connect();
    let calling = call(&client, "m");
    host.request().await;
    host.event(1, "").await;
    host.write("{\"method\":\"event\",\"params\":{\"n\":2}}").await;
    drop(host);
    match soon(calling).await.unwrap().unwrap_err() {
        RpcError::Ended { end, sent: true } => assert_eq!(end, ExitReport::default()),
        other => panic!("{other:?}"),
    }
    let later = soon(client.call("later", &json!({}), Timeout::Never)).await.unwrap_err();
    assert!(matches!(later, RpcError::Ended { sent: false, .. }), "{later:?}");
    inbox.wait_end().await;
    assert_eq!(inbox.seen(), [Seen::Event(event(1, "")), Seen::Event(event(2, "")), Seen::Ended(GONE)]);
    assert_eq!(client.ended(), Some(GONE));
    soon(client.close()).await;
    assert_eq!(inbox.ends().len(), 1);
}

#[tokio::test]
async fn a_request_of_the_host_is_answered_with_its_id() {
    let (client, mut host, _inbox) = connect();
    for id in [json!(7), json!("a\"1"), json!(-1.5)] {
        host.line(json!({"jsonrpc": "2.0", "id": id, "method": "event", "params": {"n": 1}})).await;
        let answer = host.request().await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"], json!(-32601));
    }
    assert_eq!(client.counters().host_requests, 3);
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_counted() {
    let (client, mut host, inbox) = connect();
    host.line(json!({"id": 999, "result": 1})).await;
    host.line(json!({"id": "1", "result": 1})).await;
    host.line(json!({"id": null, "error": {"code": -32700, "message": "parse error"}})).await;
    host.event(1, "").await;
    inbox.wait_count(1).await;
    assert_eq!(client.counters().unknown_ids, 3);
}

#[tokio::test]
async fn a_notification_that_does_not_fit_is_told_in_its_place() {
    let (client, mut host, inbox) = connect();
    host.event(1, "").await;
    host.line(json!({"method": "event", "params": {"n": "two"}})).await;
    host.event(3, "").await;
    let malformed = Seen::Malformed("event".into(), Some("{\"n\":\"two\"}".into()));
    assert_eq!(inbox.wait_count(3).await, [Seen::Event(event(1, "")), malformed, Seen::Event(event(3, ""))]);
    assert_eq!(client.counters().malformed, 1);
}

#[tokio::test]
async fn an_error_of_the_host_is_carried_by_the_accessors_alone() {
    let (client, mut host, _inbox) = connect();
    let calling = call(&client, "m");
    let request = host.request().await;
    host.line(json!({"id": request["id"], "error": {"code": -32000, "message": "hush", "data": {"k": "hush"}}})).await;
    let error = soon(calling).await.unwrap().unwrap_err();
    assert_eq!((error.rpc_code(), error.rpc_message()), (Some(-32000), Some("hush")));
    assert_eq!(error.rpc_data(), Some(&json!({"k": "hush"})));
    assert!(!format!("{error} {error:?}").contains("hush"));
}

#[tokio::test]
async fn a_result_of_another_shape_fails_that_call_alone() {
    let (client, mut host, _inbox) = connect();
    let calling = tokio::spawn(client.call_as::<Vec<u64>, _>("m", &json!({}), Timeout::Never));
    let request = host.request().await;
    host.answer(&request, json!({"x": 1})).await;
    assert!(matches!(soon(calling).await.unwrap(), Err(RpcError::Unreadable { .. })));
    let calling = call(&client, "n");
    let request = host.request().await;
    host.line(json!({"id": request["id"]})).await;
    assert!(matches!(soon(calling).await.unwrap(), Err(RpcError::Unreadable { .. })));
    assert_eq!(client.ended(), None);
}

#[tokio::test]
async fn parameters_that_are_no_json_fail_before_anything_is_sent() {
    let (client, mut host, _inbox) = connect();
    let strange = std::collections::HashMap::from([((1, 2), 3)]);
    let error = soon(client.call("m", &strange, Timeout::Never)).await.unwrap_err();
    assert!(matches!(error, RpcError::Unwritable { .. }) && !error.sent());
    call(&client, "next");
    assert_eq!(host.request().await["method"], "next");
}

#[tokio::test]
async fn a_call_that_timed_out_says_whether_it_was_written() {
    let (client, mut host) = connect_with(64, Inbox::new(), options());
    let soon_over = Timeout::After(Duration::from_millis(20));
    let error = soon(client.call("m", &json!({}), soon_over)).await.unwrap_err();
    assert!(matches!(&error, RpcError::Timeout { method, sent: true } if method == "m"), "{error:?}");
    // The pipe is full with this one, so the next can't be begun.
    let stuck = call(&client, &"x".repeat(1000));
    tokio::task::yield_now().await;
    let error = soon(client.call("never", &json!({}), soon_over)).await.unwrap_err();
    assert!(matches!(error, RpcError::Timeout { sent: false, .. }), "{error:?}");
    let late = host.request().await;
    assert_eq!(late["method"], "m");
    let request = host.request().await;
    let last = call(&client, "last");
    assert_eq!(host.request().await["method"], "last");
    host.answer(&late, json!(0)).await;
    host.answer(&request, json!(1)).await;
    assert_eq!(soon(stuck).await.unwrap().unwrap(), json!(1));
    assert_eq!(client.counters().unknown_ids, 1);
    last.abort();
    eventually("the calls are gone", || client.calls_waiting() == 0).await;
}

#[tokio::test]
async fn the_connection_s_own_time_out_counts_where_the_call_has_none() {
    let mut options = options();
    options.call_timeout = Some(Duration::from_millis(20));
    let (client, _host) = connect_with(4096, Inbox::new(), options);
    let error = soon(client.call("m", &json!({}), Timeout::Default)).await.unwrap_err();
    assert!(matches!(error, RpcError::Timeout { .. }));
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_and_is_not_written_if_it_was_not_begun() {
    let (client, mut host) = connect_with(64, Inbox::new(), options());
    // Never polled: nothing happens.
    drop(client.call("unpolled", &json!({}), Timeout::Never));
    let stuck = call(&client, &"x".repeat(1000));
    tokio::task::yield_now().await;
    let waiting = call(&client, "dropped");
    eventually("both wait", || client.calls_waiting() == 2).await;
    waiting.abort();
    stuck.abort();
    eventually("the calls are gone", || client.calls_waiting() == 0).await;
    let next = call(&client, "next");
    // The one that was begun arrives whole; the other never does.
    assert_eq!(host.request().await["method"], "x".repeat(1000));
    let request = host.request().await;
    assert_eq!(request["method"], "next");
    host.answer(&request, json!(1)).await;
    assert_eq!(soon(next).await.unwrap().unwrap(), json!(1));
}

#[tokio::test]
async fn close_fails_pending_calls_ends_the_host_s_input_and_is_safe_from_two_tasks() {
    let (client, mut host, inbox) = connect();
    let calling = call(&client, "m");
    host.request().await;
    let closing: Vec<_> = (0..2)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.close().await })
        })
        .collect();
    assert!(matches!(soon(calling).await.unwrap(), Err(RpcError::Closed { sent: true })));
    assert!(matches!(soon(client.call("x", &(), Timeout::Never)).await, Err(RpcError::Closed { sent: false })));
    // The host still has its say.
    assert_eq!(soon(host.requests.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    host.event(1, "last words").await;
    drop(host);
    for closing in closing {
        soon(closing).await.unwrap();
    }
    soon(client.close()).await;
    assert_eq!(inbox.seen(), [Seen::Event(event(1, "last words")), Seen::Ended(Ended::Closed)]);
}

#[tokio::test]
async fn close_during_a_write_finishes_that_frame_and_tells_the_others_that_they_never_left() {
    let (client, mut host) = connect_with(64, Inbox::new(), options());
    let begun = call(&client, &"x".repeat(1000));
    tokio::task::yield_now().await;
    let waiting = call(&client, "waiting");
    eventually("both wait", || client.calls_waiting() == 2).await;
    client.shutdown();
    assert!(matches!(soon(begun).await.unwrap(), Err(RpcError::Closed { sent: true })));
    assert!(matches!(soon(waiting).await.unwrap(), Err(RpcError::Closed { sent: false })));
    assert_eq!(host.request().await["method"], "x".repeat(1000));
    assert_eq!(soon(host.requests.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    drop(host);
    soon(client.close()).await;
}

#[tokio::test]
async fn close_does_not_wait_for_ever_for_a_host_that_neither_reads_nor_ends() {
    let mut options = options();
    options.patience = Patience::new(Duration::from_millis(50), Duration::ZERO);
    let inbox = Inbox::new();
    let (client, host) = connect_with(64, inbox.clone(), options);
    let stuck = call(&client, &"x".repeat(1000));
    tokio::task::yield_now().await;
    soon(client.close()).await;
    assert!(matches!(soon(stuck).await.unwrap(), Err(RpcError::Closed { sent: true })));
    assert_eq!(inbox.ends(), [Ended::Closed]);
    drop(host);
}

#[tokio::test]
async fn dropping_the_last_client_closes_in_the_background() {
    let (client, mut host, inbox) = connect();
    let clone = client.clone();
    let calling = call(&client, "m");
    let request = host.request().await;
    drop((client, clone));
    // A call under way keeps the connection.
    host.answer(&request, json!(1)).await;
    assert_eq!(soon(calling).await.unwrap().unwrap(), json!(1));
    assert_eq!(soon(host.requests.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    drop(host);
    assert_eq!(inbox.wait_end().await, Ended::Closed);
}

#[tokio::test]
async fn a_host_that_stops_reading_and_goes_on_talking_is_ended() {
    let (ours, theirs) = duplex(64);
    let (reader, _writer) = split(ours);
    let (broken, gone) = duplex(64);
    drop(gone);
    let inbox = Inbox::new();
    let client = Client::start(reader, broken, inbox.clone(), options());
    let first = call(&client, "first");
    tokio::task::yield_now().await;
    let second = call(&client, "second");
    for call in [first, second] {
        let error = soon(call).await.unwrap().unwrap_err();
        assert!(matches!(error, RpcError::Ended { sent: false, .. }), "{error:?}");
    }
    assert_eq!(inbox.wait_end().await, GONE);
    drop(theirs);
    soon(client.close()).await;
}

#[tokio::test]
async fn a_slow_handler_loses_nothing() {
    let mut inbox = Inbox::new();
    inbox.slow = Some(Duration::from_millis(1));
    let (client, mut host) = connect_with(1024, inbox.clone(), options());
    for n in 0..2000 {
        host.event(n, "").await;
    }
    inbox.wait_count(2000).await;
    assert!(inbox.events().iter().map(|event| event.n).eq(0..2000));
    drop(client);
}

#[tokio::test]
async fn small_answers_pass_a_large_one() {
    let (client, mut host, _inbox) = connect();
    let large = call(&client, "large");
    let large_request = host.request().await;
    let small: Vec<_> = (0..20).map(|nth| call(&client, &format!("s{nth}"))).collect();
    let mut requests = Vec::new();
    for _ in &small {
        requests.push(host.request().await);
    }
    let text = "y".repeat(10 * 1024 * 1024);
    for request in &requests[..10] {
        host.answer(request, json!(1)).await;
    }
    host.answer(&large_request, json!(text)).await;
    for request in &requests[10..] {
        host.answer(request, json!(2)).await;
    }
    for (nth, call) in small.into_iter().enumerate() {
        assert_eq!(soon(call).await.unwrap().unwrap(), json!(if nth < 10 { 1 } else { 2 }));
    }
    assert!(soon(large).await.unwrap().unwrap() == json!(text));
}

#[tokio::test]
async fn a_handler_that_panics_ends_the_calls() {
    let mut inbox = Inbox::new();
    inbox.panics = true;
    let (client, mut host) = connect_with(4096, inbox, options());
    let calling = call(&client, "m");
    host.request().await;
    host.event(1, "").await;
    assert!(matches!(soon(calling).await.unwrap(), Err(RpcError::Closed { sent: true })));
    soon(client.close()).await;
}

#[test]
fn a_runtime_that_ends_ends_the_connection() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
    let inbox = Inbox::new();
    let (client, host) = {
        let _runtime = runtime.enter();
        connect_with(4096, inbox.clone(), ClientOptions::new(runtime.handle().clone()))
    };
    let other = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let pending = client.call("m", &json!({}), Timeout::Default);
    let calling = other.spawn(pending);
    other.block_on(eventually("it waits", || client.calls_waiting() == 1));
    runtime.shutdown_timeout(Duration::from_secs(30));
    assert!(matches!(other.block_on(soon(calling)).unwrap(), Err(RpcError::Closed { sent: true })));
    assert!(matches!(
        other.block_on(soon(client.call("n", &(), Timeout::Default))),
        Err(RpcError::Closed { sent: false })
    ));
    assert_eq!(inbox.ends(), [Ended::Closed]);
    other.block_on(soon(client.close()));
    drop((client, host));
}

#[test]
fn a_call_can_be_polled_by_whoever_has_no_runtime_s_timer() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
    let (client, mut host) = {
        let _runtime = runtime.enter();
        connect_with(4096, Inbox::new(), ClientOptions::new(runtime.handle().clone()))
    };
    let answering = runtime.spawn(async move {
        let request = host.request().await;
        host.answer(&request, json!(1)).await;
        host
    });
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(other.block_on(client.call_as::<u64, _>("m", &(), Timeout::Default)).unwrap(), 1);
    let error = other.block_on(client.call("m", &(), Timeout::After(Duration::from_millis(20)))).unwrap_err();
    assert!(matches!(error, RpcError::Timeout { sent: true, .. }));
    let _host = runtime.block_on(answering).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_some_dropped_through_a_narrow_pipe_get_their_own_answers() {
    let inbox = Inbox::new();
    let (client, mut host) = connect_with(97, inbox.clone(), options());
    let serving = tokio::spawn(async move {
        let mut line = String::new();
        while host.requests.read_line(&mut line).await.unwrap() > 0 {
            let request: Value = serde_json::from_str(&line).unwrap();
            let n = request["params"]["n"].as_u64().unwrap();
            host.event(n, "").await;
            host.answer(&request, json!(n)).await;
            line.clear();
        }
    });
    let mut tasks = Vec::new();
    for task in 0..20_u64 {
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            for nth in 0..100 {
                let n = task * 1000 + nth;
                let call =
                    client.call_as::<u64, _>("m", &json!({"n": n, "pad": "x".repeat(nth as usize)}), Timeout::Never);
                if nth % 3 == 2 {
                    // Dropped somewhere in the middle.
                    let _ = tokio::time::timeout(Duration::from_micros(nth * 7), call).await;
                } else {
                    assert_eq!(call.await.unwrap(), n);
                }
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert_eq!(client.calls_waiting(), 0);
    assert_eq!(client.counters().skipped_lines, 0);
    soon(client.close()).await;
    soon(serving).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_made_while_the_connection_ends_never_hangs() {
    for round in 0..200 {
        let (client, host, _inbox) = connect();
        let calls: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.call("m", &json!({}), Timeout::Never).await })
            })
            .collect();
        if round % 2 == 0 {
            drop(host);
            for call in calls {
                assert!(matches!(soon(call).await.unwrap(), Err(RpcError::Ended { .. })));
            }
        } else {
            client.shutdown();
            for call in calls {
                assert!(matches!(soon(call).await.unwrap(), Err(RpcError::Closed { .. })));
            }
        }
    }
}
