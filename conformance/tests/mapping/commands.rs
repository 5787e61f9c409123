//! The commands: each row of the mapping's table, and each sentence of the kit about commands.

use kitport::door::Door;
use kitport::{AgentBackend, BubblePaw, CallExt};
use kitport_conformance::raw_host::{RawHost, json_of, while_host};
use serde_json::{Value, json};

use crate::stage::{chat, meta};

/// A backend by its door, as bindings see it, and its host.
async fn door(features: &[&str]) -> (Door, BubblePaw, RawHost) {
    let (backend, host) = RawHost::connect(features).await;
    (Door::new(std::sync::Arc::new(backend.clone())), backend, host)
}

/// A command that is one request: what is sent, what is answered, what comes of it.
async fn sends(feature: &[&str], call: (&str, Value), request: (&str, Value), answer: Value, result: Value) {
    let (door, _, mut host) = door(feature).await;
    let got = while_host(door.call(call.0, call.1), async {
        host.serve(request.0, request.1, answer).await;
    })
    .await;
    assert_eq!(json_of(got), result, "{}", call.0);
}

/// A command that fails with this error before anything is sent.
async fn sends_nothing(features: &[&str], method: &str, params: Value, error: Value) {
    let (door, backend, mut host) = door(features).await;
    let got = json_of(door.call(method, params.clone()).await);
    let mut got = got["error"].clone();
    // Words for a person may change; kinds and data may not.
    let message = got.as_object_mut().and_then(|got| got.remove("message"));
    assert!(message.is_some_and(|message| !message.as_str().unwrap_or_default().is_empty()));
    assert_eq!(got, error, "{method} {params}");
    host.nothing_came(&backend).await;
}

fn unsupported(capability: &str) -> Value {
    json!({"code": "unsupported", "outcome": "not_sent", "capability": capability})
}

fn invalid() -> Value {
    json!({"code": "invalid", "outcome": "not_sent"})
}

#[tokio::test]
async fn create_chat() {
    let made = json!({"session": meta("n", "Named", json!({"model": "p/m", "parent_id": "o"}))});
    let result = chat("n", "Named", json!({"model": "p/m", "parentId": "o"}));
    sends(
        &[],
        ("create_chat", json!({"title": "Named"})),
        ("session.open", json!({"title": "Named"})),
        made.clone(),
        result.clone(),
    )
    .await;
    sends(&[], ("create_chat", Value::Null), ("session.open", json!({})), made, result).await;
}

/// A busy refusal of run.start alone falls back to a follow-up, once; anything else is reported and sent once.
#[tokio::test]
async fn send() {
    let (run, text) = (json!({"chat": "s", "text": "Hi"}), json!({"session_id": "s", "text": "Hi"}));
    let busy = json!({"code": -32000, "message": "Session is BUSY: a run in progress"});
    sends(
        &[],
        ("send", run.clone()),
        ("run.start", text.clone()),
        json!({"run_id": "r", "message_id": "m"}),
        json!({"runId": "r", "queued": false}),
    )
    .await;

    let (door_, backend, mut host) = door(&["follow_up"]).await;
    let sent = while_host(door_.call("send", run.clone()), async {
        let asked = host.expect("run.start", text.clone()).await;
        host.refuse(&asked, busy.clone()).await;
        host.serve("run.follow_up", text.clone(), json!({"input_id": "i"})).await;
    })
    .await;
    assert_eq!(json_of(sent), json!({"inputId": "i", "queued": true}));
    host.nothing_came(&backend).await;

    // A follow-up that is refused, too, is not sent again.
    let sent = while_host(door_.call("send", run.clone()), async {
        let asked = host.expect("run.start", text.clone()).await;
        host.refuse(&asked, busy.clone()).await;
        let asked = host.expect("run.follow_up", text.clone()).await;
        host.refuse(&asked, busy.clone()).await;
    })
    .await;
    assert_eq!(json_of(sent)["error"]["code"], "failed", "busy means something for run.start alone");
    host.nothing_came(&backend).await;

    // Without follow_up it is busy.
    let (door_, backend, mut host) = door(&[]).await;
    let sent = while_host(door_.call("send", run.clone()), async {
        let asked = host.expect("run.start", text.clone()).await;
        host.refuse(&asked, busy).await;
    })
    .await;
    assert_eq!(
        json_of(sent),
        json!({"error": {"code": "busy", "message": "a run goes on in this chat", "outcome": "refused", "hostCode": -32000}})
    );
    host.nothing_came(&backend).await;

    // Another failure is no reason to send anything again.
    let (door_, backend, mut host) = door(&["follow_up"]).await;
    for (error, code) in [
        (json!({"code": -32000, "message": "no such session"}), "not_found"),
        (json!({"code": -32603, "message": "busy"}), "failed"),
        (json!({"code": -32004, "message": "busy: set provider.key"}), "needs_setup"),
    ] {
        let sent = while_host(door_.call("send", run.clone()), async {
            let asked = host.expect("run.start", text.clone()).await;
            host.refuse(&asked, error).await;
        })
        .await;
        assert_eq!(json_of(sent)["error"]["code"], code);
        host.nothing_came(&backend).await;
    }
}

/// Slash commands of the host, blank texts and references go nowhere; a path is plain text.
#[tokio::test]
async fn send_refuses_before_the_host_does() {
    let features = &["steer", "follow_up"];
    for text in ["/compact", "/a-b_c1 now", "/help\nplease", "", " \n"] {
        for method in ["send", "steer", "follow_up"] {
            sends_nothing(features, method, json!({"chat": "s", "text": text}), invalid()).await;
        }
    }
    let reference = json!({"chat": "s", "text": "Hi", "references": [{"kind": "file", "uri": "file:///a"}]});
    sends_nothing(features, "send", reference, invalid()).await;
    sends(
        &[],
        ("send", json!({"chat": "s", "text": "/usr/bin fails", "references": []})),
        ("run.start", json!({"session_id": "s", "text": "/usr/bin fails"})),
        json!({"run_id": "r"}),
        json!({"runId": "r", "queued": false}),
    )
    .await;
}

/// The host's real input ids.
#[tokio::test]
async fn steer_and_follow_up() {
    for (command, method) in [("steer", "run.steer"), ("follow_up", "run.follow_up")] {
        let params = json!({"chat": "s", "text": "More"});
        sends(
            &[command],
            (command, params.clone()),
            (method, json!({"session_id": "s", "text": "More"})),
            json!({"input_id": "real"}),
            json!({"inputId": "real", "queued": true}),
        )
        .await;
        sends_nothing(&[], command, params, unsupported(command)).await;
    }
}

#[tokio::test]
async fn send_queued_now_edit_queued_remove_queued() {
    let all = kitport::bubblepaw::wire::feature::ALL;
    for (method, params) in [
        ("send_queued_now", json!({"chat": "s", "input": "i"})),
        ("edit_queued", json!({"chat": "s", "input": "i", "text": "x"})),
        ("remove_queued", json!({"chat": "s", "input": "i"})),
    ] {
        sends_nothing(all, method, params, unsupported("queue")).await;
    }
}

#[tokio::test]
async fn cancel_and_resume() {
    let session = json!({"session_id": "s"});
    sends(&[], ("cancel", json!({"chat": "s"})), ("run.cancel", session.clone()), json!({}), Value::Null).await;
    sends(
        &[],
        ("resume", json!({"chat": "s"})),
        ("run.resume", session),
        json!({"run_id": "r2"}),
        json!({"runId": "r2", "queued": false}),
    )
    .await;
}

fn approval(id: &str, session: &str, state: &str) -> Value {
    json!({"approval_id": id, "session_id": session, "state": state})
}

/// The approval must be a pending one of that chat; anything else is said without asking the host to decide.
#[tokio::test]
async fn decide_approval() {
    let features = &["approvals"];
    for decision in ["approve", "approve_session", "deny"] {
        for reason in [None, Some("because")] {
            let (door, backend, mut host) = door(features).await;
            let mut params = json!({"chat": "s", "approval": "p", "decision": decision});
            let mut decide = json!({"approval_id": "p", "decision": decision});
            if let Some(reason) = reason {
                params["reason"] = json!(reason);
                decide["reason"] = json!(reason);
            }
            let got = while_host(door.call("decide_approval", params), async {
                let approvals = json!({"approvals": [approval("p", "s", "pending")]});
                host.serve("approval.list", json!({"session_id": "s"}), approvals).await;
                host.serve("approval.decide", decide, json!({})).await;
            })
            .await;
            assert_eq!(json_of(got), Value::Null);
            host.nothing_came(&backend).await;
        }
    }
    for (listed, code) in [
        (json!([]), "not_found"),
        (json!([approval("p", "other", "pending")]), "not_found"),
        (json!([approval("p2", "s", "pending")]), "not_found"),
        (json!([approval("p", "s", "approved")]), "conflict"),
        (json!([approval("p", "s", "approved_session")]), "conflict"),
        (json!([approval("p", "s", "denied")]), "conflict"),
        (json!([approval("p", "s", "expired")]), "conflict"),
    ] {
        let (door, backend, mut host) = door(features).await;
        let params = json!({"chat": "s", "approval": "p", "decision": "approve"});
        let got = while_host(door.call("decide_approval", params), async {
            host.serve("approval.list", json!({"session_id": "s"}), json!({"approvals": listed})).await;
        })
        .await;
        let error = json_of(got)["error"].clone();
        assert_eq!((&error["code"], &error["outcome"]), (&json!(code), &json!("not_sent")), "{listed}");
        host.nothing_came(&backend).await;
    }
    let option = json!({"chat": "s", "approval": "p", "decision": {"option": "always"}});
    sends_nothing(features, "decide_approval", option.clone(), invalid()).await;
    sends_nothing(&[], "decide_approval", option, unsupported("approve")).await;
}

/// One decided elsewhere meanwhile is a conflict, not a success.
#[tokio::test]
async fn decide_approval_that_was_decided_meanwhile() {
    for (words, code) in [
        ("approval already decided", "conflict"),
        ("already resolved", "conflict"),
        ("approval expired", "conflict"),
        ("unknown approval p", "not_found"),
        ("approval not found", "not_found"),
    ] {
        let (door, _, mut host) = door(&["approvals"]).await;
        let params = json!({"chat": "s", "approval": "p", "decision": "deny"});
        let got = while_host(door.call("decide_approval", params), async {
            let approvals = json!({"approvals": [approval("p", "s", "pending")]});
            host.serve("approval.list", json!({"session_id": "s"}), approvals).await;
            let asked = host.next().await;
            host.refuse(&asked, json!({"code": -32000, "message": words})).await;
        })
        .await;
        let error = json_of(got)["error"].clone();
        assert_eq!((&error["code"], &error["outcome"]), (&json!(code), &json!("refused")), "{words}");
        assert!(!error["message"].as_str().unwrap_or_default().contains(words));
    }
}

/// One chosen label or one text; no other shape is sent.
#[tokio::test]
async fn answer_question() {
    for answer in [
        json!("Green"),
        json!({"text": "Green"}),
        json!({"choice": "Green"}),
        json!({"choices": ["Green"]}),
        json!([{"choice": "Green"}]),
    ] {
        sends(
            &["questions"],
            ("answer_question", json!({"chat": "s", "question": "q", "answer": answer})),
            ("question.answer", json!({"session_id": "s", "question_id": "q", "text": "Green"})),
            json!({}),
            Value::Null,
        )
        .await;
    }
    for answer in [
        json!(["a", "b"]),
        json!([]),
        json!({"choices": ["a", "b"]}),
        json!({"choice": "a", "text": "b"}),
        json!({"choices": ["a"], "text": "b"}),
        json!({"skipped": true}),
        json!(" "),
    ] {
        let params = json!({"chat": "s", "question": "q", "answer": answer});
        sends_nothing(&["questions"], "answer_question", params, invalid()).await;
    }
    let params = json!({"chat": "s", "question": "q", "answer": "Green"});
    sends_nothing(&[], "answer_question", params, unsupported("questions")).await;
}

#[tokio::test]
async fn answer_child_question() {
    let features = &["question.answer_child"];
    let call = json!({"chat": "s", "child": "k", "question": "q", "answer": "Green"});
    let request = json!({"parent": "s", "child": "k", "question_id": "q", "text": "Green"});
    sends(
        features,
        ("answer_child_question", call.clone()),
        ("question.answer_child", request.clone()),
        json!({}),
        Value::Null,
    )
    .await;
    for (words, code) in [
        ("unknown question", "not_found"),
        ("the question expired", "not_found"),
        ("already answered", "conflict"),
        ("foreign child", "invalid"),
        ("not a child of this session", "invalid"),
        ("blank text", "invalid"),
    ] {
        let (door, _, mut host) = door(features).await;
        let got = while_host(door.call("answer_child_question", call.clone()), async {
            let asked = host.expect("question.answer_child", request.clone()).await;
            host.refuse(&asked, json!({"code": -32000, "message": words})).await;
        })
        .await;
        assert_eq!(json_of(got)["error"]["code"], code, "{words}");
    }
    for answer in [json!(""), json!({"skipped": true}), json!(["a", "b"])] {
        let mut call = call.clone();
        call["answer"] = answer;
        sends_nothing(features, "answer_child_question", call, invalid()).await;
    }
    sends_nothing(&["questions"], "answer_child_question", call, unsupported("answer_child_question")).await;
}

/// The snapshot is refreshed afterwards where a stream is open: `events::chat_renamed`.
#[tokio::test]
async fn rename() {
    sends(
        &[],
        ("rename", json!({"chat": "s", "title": "New"})),
        ("session.rename", json!({"session_id": "s", "title": "New"})),
        json!({}),
        Value::Null,
    )
    .await;
    sends_nothing(&[], "rename", json!({"chat": "s", "title": " "}), invalid()).await;
}

#[tokio::test]
async fn archive() {
    let all = kitport::bubblepaw::wire::feature::ALL;
    sends_nothing(all, "archive", json!({"chat": "s", "archived": true}), unsupported("archive")).await;
}

#[tokio::test]
async fn fork() {
    let all = kitport::bubblepaw::wire::feature::ALL;
    sends_nothing(all, "fork", json!({"chat": "s", "message": "m"}), unsupported("fork")).await;
    sends_nothing(all, "fork", json!({"chat": "s"}), unsupported("fork")).await;
}

/// A new chat, told by the answer and by `created_chats`; a provisional id is refused.
#[tokio::test]
async fn rewind() {
    sends(
        &["rewind"],
        ("rewind", json!({"chat": "s", "message": "m"})),
        ("session.rewind", json!({"session_id": "s", "message_id": "m"})),
        json!({"session": meta("n", "New", json!({}))}),
        json!({"chat": "s", "newChat": chat("n", "New", json!({})), "inPlace": false}),
    )
    .await;
    let provisional = json!({"chat": "s", "message": "provisional:r:1"});
    sends_nothing(&["rewind"], "rewind", provisional, invalid()).await;
    sends_nothing(&[], "rewind", json!({"chat": "s", "message": "m"}), unsupported("rewind")).await;
}

#[tokio::test]
async fn cancel_child() {
    let call = json!({"chat": "s", "child": "k"});
    sends(
        &["child.cancel"],
        ("cancel_child", call.clone()),
        ("child.cancel", json!({"parent": "s", "child": "k"})),
        json!({}),
        Value::Null,
    )
    .await;
    sends_nothing(&["child_events"], "cancel_child", call, unsupported("children")).await;
}

/// After it the crew is read anew, and the diff reaches the streams.
#[tokio::test]
async fn cancel_child_refreshes() {
    let child = json!([{"session_id": "k", "parent_id": "s", "title": "Kid", "state": "running"}]);
    let mut stage = crate::stage::Stage::open_with(&["child_events", "child.cancel"], json!({"children": child})).await;
    let (parent, kid) = ("s".into(), "k".into());
    while_host(stage.backend.cancel_child(&parent, &kid), async {
        stage.host.serve("child.cancel", json!({"parent": "s", "child": "k"}), json!({})).await;
    })
    .await
    .unwrap();
    stage.state["children"][0]["state"] = json!("cancelled");
    stage.reload().await;
    let finished = json!({"childId": "k", "state": "cancelled"});
    stage.gives(json!([crate::stage::transient(crate::stage::at(10, 15), "child.finished", finished)])).await;
    stage.gives_no_more().await;
}

#[tokio::test]
async fn cancel_job() {
    let all = kitport::bubblepaw::wire::feature::ALL;
    sends_nothing(all, "cancel_job", json!({"chat": "s", "job": "j"}), unsupported("jobs")).await;
}

#[tokio::test]
async fn undo_edit() {
    let all = kitport::bubblepaw::wire::feature::ALL;
    sends_nothing(all, "undo_edit", json!({"chat": "s", "edit": "e"}), unsupported("edits")).await;
}

fn providers() -> Value {
    json!({
        "providers": [{"id": "p", "kind": "local", "name": "Pond", "has_key": true, "key": "sk-secret", "models": [{"id": "m", "name": "M", "context_window": 9}]}, {"id": "o", "kind": "other", "has_key": false, "models": []}],
        "main": "p/m", "active_main": "p/m",
    })
}

/// Providers without keys; one default for all chats, so that set_model sets it; models need both features.
#[tokio::test]
async fn list_providers_set_default_model_list_models_set_model() {
    let both = &["providers.list", "roles.set_main"];
    sends(
        &["providers.list"],
        ("list_providers", Value::Null),
        ("providers.list", json!({})),
        providers(),
        json!({
            "providers": [{"id": "p", "kind": "local", "name": "Pond", "hasKey": true, "models": [{"id": "p/m", "name": "M", "contextWindow": 9}]}, {"id": "o", "kind": "other", "hasKey": false, "models": []}],
            "main": "p/m", "activeMain": "p/m",
        }),
    )
    .await;
    for params in [Value::Null, json!({"chat": "s"})] {
        let models = json!([{"id": "p/m", "name": "M", "contextWindow": 9}]);
        sends(both, ("list_models", params), ("providers.list", json!({})), providers(), models).await;
    }
    let (main, answer) = (json!({"model": "p/m"}), json!({"main": "p/m"}));
    let set_main = ("roles.set_main", main.clone());
    sends(&["roles.set_main"], ("set_default_model", main.clone()), set_main.clone(), answer.clone(), Value::Null)
        .await;
    sends(both, ("set_model", json!({"chat": "s", "model": "p/m"})), set_main, answer, Value::Null).await;
    for features in [&["providers.list"][..], &["roles.set_main"]] {
        sends_nothing(
            features,
            "list_models",
            Value::Null,
            json!({"code": "unsupported", "outcome": "not_sent", "capability": "models"}),
        )
        .await;
        sends_nothing(features, "set_model", json!({"chat": "s", "model": "p/m"}), unsupported("models")).await;
    }
    sends_nothing(&["roles.set_main"], "list_providers", Value::Null, unsupported("providers")).await;
    sends_nothing(&["providers.list"], "set_default_model", main, unsupported("default_model")).await;
    for model in ["m", "/m", "p/", ""] {
        sends_nothing(both, "set_default_model", json!({"model": model}), invalid()).await;
        sends_nothing(both, "set_model", json!({"chat": "s", "model": model}), invalid()).await;
    }
}

#[tokio::test]
async fn list_profiles_set_profile() {
    let all = kitport::bubblepaw::wire::feature::ALL;
    sends_nothing(all, "list_profiles", Value::Null, unsupported("profiles")).await;
    sends_nothing(all, "set_profile", json!({"chat": "s", "profile": "f"}), unsupported("profiles")).await;
}

/// `run` yields events until its own run has finished, and never queues.
#[tokio::test]
async fn run() {
    let (door_, backend, mut host) = door(&["follow_up"]).await;
    let call = json!({"chat": "s", "text": "Hi"});
    let text = json!({"session_id": "s", "text": "Hi"});
    let stream = while_host(door_.open_async("run", call.clone()), async {
        let asked = host.asked("run.start").await;
        assert_eq!(asked.params, text);
        let state = host.asked("session.state").await;
        host.answer(&state, crate::stage::state(10, json!({}))).await;
        // An event that overtakes the answer is kept.
        host.event(
            "s",
            json!({"sequence": 11, "type": "run_finished", "data": {"status": "completed"}, "run_id": "q"}),
        )
        .await;
        host.event("s", json!({"sequence": 12, "type": "run_started", "data": {}, "run_id": "r"})).await;
        host.answer(&asked, json!({"run_id": "r"})).await;
        host.event(
            "s",
            json!({"sequence": 13, "type": "run_finished", "data": {"status": "failed", "error": "no"}, "run_id": "r"}),
        )
        .await;
        host.event("s", json!({"sequence": 14, "type": "run_started", "data": {}, "run_id": "after"})).await;
    })
    .await
    .unwrap();
    let mut got = Vec::new();
    while stream.ready().await {
        got.extend(stream.take(usize::MAX).unwrap());
    }
    let kinds: Vec<_> = got.iter().map(|event| json!([event["kind"], event["run"], event["seq"]])).collect();
    assert_eq!(
        json!(kinds),
        json!([["run.finished", "q", 177], ["run.started", "r", 192], ["run.finished", "r", 209]])
    );

    let (door_, backend_, mut host_) = door(&["follow_up"]).await;
    let error = while_host(door_.open_async("run", call), async {
        let asked = host_.asked("run.start").await;
        host_.refuse(&asked, json!({"code": -32000, "message": "busy"})).await;
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), "busy");
    drop((backend, backend_));

    // What can't be sent is refused as for send, before a stream is opened.
    let (door_, backend, mut host) = door(&["follow_up"]).await;
    for text in ["", "/compact"] {
        let error = door_.open_async("run", json!({"chat": "s", "text": text})).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), ("invalid", Some(kitport::Outcome::NotSent)));
    }
    host.nothing_came(&backend).await;
}

/// `set_config` is BubblePaw's own, reached by its name.
#[tokio::test]
async fn set_config() {
    for value in [json!(1), json!(null), json!({"a": [1]}), json!("x")] {
        sends(
            &[],
            ("set_config", json!({"key": "agent.speed", "value": value})),
            ("config.set", json!({"key": "agent.speed", "value": value})),
            json!({}),
            Value::Null,
        )
        .await;
    }
}

/// A command that timed out may have been carried out; one whose time was over before it left was not sent; one that the
/// host refused says so; and one whose host ended after it was written is in doubt.
#[tokio::test]
async fn outcomes() {
    use std::time::Duration;
    let (backend, mut host) = RawHost::connect(&[]).await;
    let id = "s".into();
    let error = backend.cancel(&id).within(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(
        json!(error),
        json!({"code": "timeout", "message": "run.cancel was not answered in time", "outcome": "unknown", "method": "run.cancel"})
    );
    let late = host.expect("run.cancel", json!({"session_id": "s"})).await;
    host.answer(&late, json!({})).await;
    let error = backend.cancel(&id).within(Duration::ZERO).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("timeout", Some(kitport::Outcome::NotSent)));
    host.nothing_came(&backend).await;
    // One limit for all requests of a call: where the first has no answer, the command itself never left.
    let (inbox, mut slow) = RawHost::connect(&["approvals", "follow_up"]).await;
    let approval = "p".into();
    let deciding = inbox.decide_approval(&id, &approval, kitport::model::Decision::Approve, None);
    let error = deciding.within(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("timeout", Some(kitport::Outcome::NotSent)));
    slow.expect("approval.list", json!({"session_id": "s"})).await;
    let sending = inbox.send(&id, "Hi", &[]).within(Duration::from_secs(1));
    let error = while_host(sending, async {
        let asked = slow.next().await;
        slow.refuse(&asked, json!({"code": -32000, "message": "busy"})).await;
        slow.asked("run.follow_up").await;
    })
    .await
    .unwrap_err();
    assert_eq!(json!(error)["method"], "run.follow_up");
    assert_eq!(error.outcome(), Some(kitport::Outcome::Unknown));
    let refused = while_host(backend.cancel(&id), async {
        let asked = host.next().await;
        host.refuse(&asked, json!({"code": -32000, "message": "no"})).await;
    });
    assert_eq!(refused.await.unwrap_err().outcome(), Some(kitport::Outcome::Refused));
    let (error, ()) = tokio::join!(backend.cancel(&id), async {
        host.next().await;
        host.hang_up().await;
    });
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("host_exited", Some(kitport::Outcome::Unknown)));
    let error = backend.cancel(&id).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("host_exited", Some(kitport::Outcome::NotSent)));
}
