//! The errors: the mapping's section, the wire's tables of codes and words, and each sentence of the kit about errors.

use kitport::bubblepaw::Options;
use kitport::door::Door;
use kitport::{AgentBackend, ChatReader};
use kitport_conformance::raw_host::{RawHost, json_of, while_host};
use kitport_conformance::{host_command, next, rest};
use serde_json::{Value, json};

/// What a call becomes when the host answers with this error.
async fn becomes(method: &str, params: Value, error: Value) -> Value {
    let all = kitport::bubblepaw::wire::feature::ALL;
    let (backend, mut host) = RawHost::connect(all).await;
    let door = Door::new(std::sync::Arc::new(backend));
    let got = while_host(door.call(method, params), async {
        let mut asked = host.next().await;
        if asked.method == "approval.list" {
            let approvals = json!({"approvals": [{"approval_id": "p", "session_id": "s", "state": "pending"}]});
            host.answer(&asked, approvals).await;
            asked = host.next().await;
        }
        host.refuse(&asked, error).await;
    })
    .await;
    json_of(got)["error"].clone()
}

async fn words(method: &str, params: Value, table: &[(&str, &str)]) {
    for (words, code) in table {
        // Whole words, whatever their case, and never shown.
        let message = format!("Secret: {}!", words.to_uppercase());
        let error =
            becomes(method, params.clone(), json!({"code": -32000, "message": message, "data": {"secret": 1}})).await;
        assert_eq!(error["code"], *code, "{method}: {words}");
        assert_eq!((&error["hostCode"], &error["outcome"]), (&json!(-32000), &json!("refused")));
        let text = error.to_string().to_lowercase();
        assert!(!text.contains("secret"), "{text}");
        assert!(error.get("hostData").is_none());
        // As a part of another word they mean nothing.
        let error = becomes(method, params.clone(), json!({"code": -32000, "message": format!("x{words}x")})).await;
        assert_eq!(error["code"], "failed", "{method}: x{words}x");
    }
}

#[tokio::test]
async fn words_of_run_start() {
    // With follow_up a busy refusal would wait for its turn instead: `commands::send` has that.
    for text in ["busy", "already running", "run in progress"] {
        let (backend, mut host) = RawHost::connect(&[]).await;
        let id = "s".into();
        let error = while_host(backend.send(&id, "Hi", &[]), async {
            let asked = host.next().await;
            host.refuse(&asked, json!({"code": -32000, "message": format!("The session is {text}.")})).await;
        })
        .await
        .unwrap_err();
        assert_eq!(
            json!(error),
            json!({"code": "busy", "message": "a run goes on in this chat", "outcome": "refused", "hostCode": -32000})
        );
        assert!(error.is_conflict(), "busy is a kind of conflict");
    }
}

#[tokio::test]
async fn words_of_question_answer_child() {
    let params = json!({"chat": "s", "child": "k", "question": "q", "answer": "a"});
    words(
        "answer_child_question",
        params,
        &[
            ("already answered", "conflict"),
            ("foreign", "invalid"),
            ("blank", "invalid"),
            ("not a child", "invalid"),
            ("unknown", "not_found"),
            ("expired", "not_found"),
            ("not found", "not_found"),
        ],
    )
    .await;
}

#[tokio::test]
async fn words_of_question_answer() {
    let params = json!({"chat": "s", "question": "q", "answer": "a"});
    let table = [
        ("already answered", "conflict"),
        ("unknown question", "not_found"),
        ("expired", "not_found"),
        ("not found", "not_found"),
    ];
    words("answer_question", params, &table).await;
}

#[tokio::test]
async fn words_of_approval_decide() {
    let params = json!({"chat": "s", "approval": "p", "decision": "deny"});
    words(
        "decide_approval",
        params,
        &[
            ("already decided", "conflict"),
            ("already resolved", "conflict"),
            ("expired", "conflict"),
            ("not found", "not_found"),
            ("unknown approval", "not_found"),
        ],
    )
    .await;
}

#[tokio::test]
async fn words_of_roles_set_main() {
    let table = [("unknown model", "not_found"), ("unknown provider", "not_found")];
    words("set_default_model", json!({"model": "p/m"}), &table).await;
}

#[tokio::test]
async fn words_in_general() {
    words(
        "rename",
        json!({"chat": "s", "title": "t"}),
        &[
            ("not found", "not_found"),
            ("no such", "not_found"),
            ("unknown session", "not_found"),
            ("unknown message", "not_found"),
            ("conflict", "conflict"),
            ("already", "conflict"),
            ("denied", "denied"),
            ("not allowed", "denied"),
            ("forbidden", "denied"),
            ("invalid", "invalid"),
            ("must", "invalid"),
            ("blank", "invalid"),
            ("empty", "invalid"),
            ("anything else", "failed"),
        ],
    )
    .await;
}

/// The method's own row comes first, then the general one, the first that fits.
#[tokio::test]
async fn words_in_their_order() {
    for (method, params, message, code) in [
        (
            "decide_approval",
            json!({"chat": "s", "approval": "p", "decision": "deny"}),
            "not found, or expired",
            "conflict",
        ),
        ("answer_question", json!({"chat": "s", "question": "q", "answer": "a"}), "invalid: expired", "not_found"),
        ("rename", json!({"chat": "s", "title": "t"}), "already not found", "not_found"),
        ("rename", json!({"chat": "s", "title": "t"}), "must not be denied", "denied"),
        ("rename", json!({"chat": "s", "title": "t"}), "expired", "failed"),
    ] {
        let error = becomes(method, params, json!({"code": -32000, "message": message})).await;
        assert_eq!(error["code"], code, "{message}");
    }
}

/// -32004, from any method: the host's own message, which says what to set up.
#[tokio::test]
async fn needs_setup() {
    for (method, params) in
        [("send", json!({"chat": "s", "text": "Hi"})), ("create_chat", json!({})), ("list_chats", json!({}))]
    {
        let error =
            becomes(method, params, json!({"code": -32004, "message": "set provider.key", "data": {"x": 1}})).await;
        let want =
            json!({"code": "needs_setup", "message": "set provider.key", "outcome": "refused", "hostCode": -32004});
        assert_eq!(error, want, "{method}");
    }
}

/// -32010 to -32013 of config.set keep the host's code, message and data; the same codes from elsewhere don't.
#[tokio::test]
async fn config_set_refusals() {
    for (code, kit) in [(-32010, "invalid"), (-32011, "invalid"), (-32012, "invalid"), (-32013, "failed")] {
        let host = json!({"code": code, "message": "The host's text", "data": {"key": "a", "known": ["b"]}});
        let error = becomes("set_config", json!({"key": "a", "value": 1}), host.clone()).await;
        assert_eq!(
            error,
            json!({"code": kit, "message": "The host's text", "outcome": "refused", "hostCode": code, "hostData": {"key": "a", "known": ["b"]}})
        );
        let error = becomes("rename", json!({"chat": "s", "title": "t"}), host).await;
        assert_eq!(error["code"], "failed");
        assert_eq!((&error["hostCode"], error.get("hostData")), (&json!(code), None));
        assert!(!error.to_string().contains("The host's text"));
    }
    // config.set's other errors follow the general rules.
    let error = becomes(
        "set_config",
        json!({"key": "a", "value": 1}),
        json!({"code": -32000, "message": "forbidden", "data": 1}),
    )
    .await;
    assert_eq!((&error["code"], error.get("hostData")), (&json!("denied"), None));
}

/// Any other code fails with a fixed message; also -32601 after its feature was negotiated.
#[tokio::test]
async fn any_other_code() {
    for code in [-32601, -32602, -32603, -32700, -32001, 0, 7] {
        let error = becomes(
            "steer",
            json!({"chat": "s", "text": "x"}),
            json!({"code": code, "message": "already busy secret", "data": {"secret": 1}}),
        )
        .await;
        assert_eq!(
            error,
            json!({"code": "failed", "message": "the host could not carry out run.steer", "outcome": "refused", "hostCode": code})
        );
    }
}

#[tokio::test]
async fn protocol_mismatch() {
    for hello in [
        json!({"protocol_version": "0.2", "host": {"name": "h", "version": "1"}, "features": [], "workspace": {"path": "/w"}}),
        json!({"protocol_version": "0.2", "host": "of another shape"}),
    ] {
        let (backend, _) = RawHost::greet(hello, RawHost::options()).await;
        assert_eq!(
            json!(backend.unwrap_err()),
            json!({"code": "protocol_mismatch", "message": "the host speaks protocol \"0.2\", this client \"0.1\"", "expected": "0.1", "actual": "0.2"})
        );
    }
    for hello in [json!({}), json!({"protocol_version": 1}), json!({"protocol_version": "0.1"}), json!([])] {
        let (backend, _) = RawHost::greet(hello.clone(), RawHost::options()).await;
        let error = json!(backend.unwrap_err());
        assert_eq!(error["code"], "failed", "{hello}");
        assert!(error["message"].as_str().unwrap().contains("initialize"));
    }
}

/// Typed, with the exit code and a bounded, redacted tail of stderr: for calls in flight, later calls and streams.
#[tokio::test]
async fn host_exited() {
    let command = host_command(std::path::Path::new(env!("CARGO_BIN_EXE_conformance-host")), &["--fault", "exit=7@1"]);
    let backend = kitport::BubblePaw::spawn(command, Options::default()).await.unwrap();
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.events(&chat.id, Some(kitport::model::Seq::START));
    let sent = backend.send(&chat.id, "stream 20", &[]).await;
    let (_, error) = rest(&events).await;
    let error = error.expect("the stream ends with an error");
    let kitport::KitError::HostExited { exit_code, signal, stderr_tail, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*exit_code, *signal), (Some(7), None));
    assert!(stderr_tail.len() <= 4096);
    assert!(events.next().await.is_none(), "once");
    let later = json!(backend.send(&chat.id, "again", &[]).await.unwrap_err());
    assert_eq!(
        (&later["code"], &later["exitCode"], &later["outcome"]),
        (&json!("host_exited"), &json!(7), &json!("not_sent"))
    );
    assert!(sent.is_ok() || sent.is_err_and(|error| error.code() == "host_exited"));
}

/// A host that hangs up fails what is in flight, later calls, and every stream after what was read for it.
#[tokio::test]
async fn host_hangs_up() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), Some(kitport::model::Seq(176)));
    let watching = backend.watch_all();
    let created = backend.created_chats();
    let asked = host.asked("events.after").await;
    let read = json!([{"sequence": 12, "type": "run_quota_resumed", "data": {}, "run_id": "r"}]);
    host.answer(&asked, json!({"events": read, "has_more": false})).await;
    assert_eq!(json!(next(&events).await)["seq"], 192);
    let id = "s".into();
    let (in_flight, ()) = tokio::join!(backend.cancel(&id), async {
        host.asked("run.cancel").await;
        host.event("s", json!({"sequence": 13, "type": "run_finished", "data": {"status": "failed"}, "run_id": "r"}))
            .await;
        host.hang_up().await;
    });
    let gone = json!({"code": "host_exited", "message": "the host closed the connection", "outcome": "unknown", "stderrTail": ""});
    assert_eq!(json!(in_flight.unwrap_err()), gone);
    let (last, error) = rest(&events).await;
    assert_eq!(last.iter().map(|event| event.seq.0).collect::<Vec<_>>(), [13 * 16 + 1]);
    assert_eq!(error.map(|error| error.code()), Some("host_exited"));
    let (last, error) = rest(&watching).await;
    assert_eq!((last.len(), error.map(|error| error.code())), (1, Some("host_exited")));
    for created in [created, backend.created_chats()] {
        assert_eq!(created.next().await.expect("the end").unwrap_err().code(), "host_exited");
        assert!(created.next().await.is_none(), "once");
    }
    let mut states = backend.connection();
    let state = futures::StreamExt::next(&mut states).await.expect("how it is").expect("no error");
    assert_eq!(json!(state.status), "closed");
    assert_eq!(json!(state.reason)["code"], "host_exited");
    let later = backend.events(&"s".into(), None);
    assert_eq!(rest(&later).await.1.map(|error| error.code()), Some("host_exited"));
}

/// `close` ends streams without an error, and pending calls with `closed`.
#[tokio::test]
async fn close() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), None);
    let watching = backend.watch_all();
    let created = backend.created_chats();
    let id = "s".into();
    let (pending, ()) = tokio::join!(backend.cancel(&id), async {
        host.asked("run.cancel").await;
        backend.close().await;
    });
    assert_eq!(
        json!(pending.unwrap_err()),
        json!({"code": "closed", "message": "the backend is closed", "outcome": "unknown"})
    );
    assert!(rest(&events).await.1.is_none());
    assert!(rest(&watching).await.1.is_none());
    assert!(created.next().await.is_none());
    assert!(backend.created_chats().next().await.is_none());
    backend.close().await;
    let later = backend.cancel(&id).await.unwrap_err();
    assert_eq!((later.code(), later.outcome()), ("closed", Some(kitport::Outcome::NotSent)));
}

/// An answer that doesn't fit fails that one read, naming the method and never the payload; everything else lives on.
#[tokio::test]
async fn unreadable_answers() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let id = "s".into();
    for answer in [json!({"secret": 1}), json!([]), json!("secret"), Value::Null, json!({"session": {"session_id": 5}})]
    {
        let error = while_host(backend.load_chat(&id), async {
            host.serve("session.state", json!({"session_id": "s"}), answer).await;
        })
        .await
        .unwrap_err();
        assert_eq!(error.code(), "failed");
        assert!(error.message().contains("session.state"), "{error}");
        assert!(!json!(error).to_string().contains("secret"));
        host.nothing_came(&backend).await;
    }
    // Null in an optional field counts as absent; unknown fields and words are no reason to fail.
    let state = crate::stage::state(
        1,
        json!({"question": null, "usage": null, "children": null, "aura": "green", "runs": [{"run_id": "r", "status": "dreaming", "model": null}]}),
    );
    let snapshot = while_host(backend.load_chat(&id), async {
        host.serve("session.state", json!({"session_id": "s"}), state).await;
    })
    .await
    .unwrap();
    assert_eq!(json!(snapshot.runs), json!([{"id": "r", "status": "dreaming"}]));
}

/// Lines that are no messages are skipped and counted; a request of the host's is refused with -32601.
#[tokio::test]
async fn foreign_lines() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    for line in ["INFO migrating", "", "{\"jsonrpc\":", "[1,2]", "42"] {
        host.line(line).await;
    }
    host.line(&json!({"jsonrpc": "2.0", "id": 999_999, "result": {}}).to_string()).await;
    host.line(&json!({"jsonrpc": "2.0", "id": "h1", "method": "workspace.trust", "params": {}}).to_string()).await;
    host.notify("weather", json!({"sun": true})).await;
    host.notify("event", json!({"session_id": 5})).await;
    let refused = host.next_line().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("h1"), &json!(-32601)));
    host.nothing_came(&backend).await;
    let counters = json!(backend.counters());
    assert_eq!(
        counters,
        json!({"skippedLines": 5, "unknownIds": 1, "oversize": 0, "malformed": 1, "hostRequests": 1, "gaps": 0, "restarts": 0})
    );
}
