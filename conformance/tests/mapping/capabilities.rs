//! Capabilities and constraints: the mapping's table, the wire's table of features, and what each capability turns on.

use kitport::bubblepaw::wire::feature;
use kitport::door::Door;
use kitport_conformance::raw_host::RawHost;
use serde_json::{Value, json};

const ALWAYS: [&str; 6] = ["createChat", "send", "cancel", "rename", "resume", "usage"];

async fn door(features: &[&str]) -> Door {
    let (backend, _host) = RawHost::connect(features).await;
    Door::new(std::sync::Arc::new(backend))
}

/// The capabilities that are on, by the door, beside those that always are.
async fn on(features: &[&str]) -> Vec<String> {
    let all = door(features).await.call("capabilities", Value::Null).await.expect("the door answers");
    let all = all.as_object().expect("an object");
    assert_eq!(all.len(), 27, "a boolean for each");
    for always in ALWAYS {
        assert_eq!(all[always], true, "{always}");
    }
    let on = all.iter().filter(|(name, on)| **on == true && !ALWAYS.contains(&name.as_str()));
    on.map(|(name, _)| name.clone()).collect()
}

/// A feature turns on these, and alone: without it they are off, with a reason that names it.
async fn turns_on(feature: &str, names: &[(&str, &str)]) {
    let camel: Vec<_> = names.iter().map(|(camel, _)| *camel).collect();
    assert_eq!(on(&[feature]).await, camel);
    let without: Vec<_> = feature::ALL.iter().copied().filter(|other| *other != feature).collect();
    let door = door(&without).await;
    for (_, name) in names {
        let detail = door.call("detail", json!({"capability": name})).await.expect("the door answers");
        let why = format!("the host did not negotiate {feature}");
        assert_eq!(detail, json!({"on": false, "by": "host", "whyOff": why}));
    }
    let with = self::door(&[feature]).await;
    for (_, name) in names {
        let detail = with.call("detail", json!({"capability": name})).await.expect("the door answers");
        assert_eq!(detail, json!({"on": true, "by": "host"}));
    }
}

#[tokio::test]
async fn create_chat_send_cancel() {
    assert!(on(&[]).await.is_empty());
}

#[tokio::test]
async fn approve() {
    turns_on("approvals", &[("approve", "approve")]).await;
}

#[tokio::test]
async fn steer_questions_plan_rewind() {
    let all = ["steer", "questions", "plan", "rewind"];
    let mut got = on(&all).await;
    got.sort();
    assert_eq!(got, ["plan", "questions", "rewind", "steer"]);
}

#[tokio::test]
async fn steer() {
    turns_on("steer", &[("steer", "steer")]).await;
}

#[tokio::test]
async fn follow_up() {
    turns_on("follow_up", &[("followUp", "follow_up")]).await;
}

#[tokio::test]
async fn questions() {
    turns_on("questions", &[("questions", "questions")]).await;
}

#[tokio::test]
async fn plan() {
    turns_on("plan", &[("plan", "plan")]).await;
}

#[tokio::test]
async fn rewind() {
    turns_on("rewind", &[("rewind", "rewind")]).await;
}

#[tokio::test]
async fn context() {
    turns_on("context", &[("history", "history"), ("context", "context"), ("summary", "summary")]).await;
}

#[tokio::test]
async fn answer_child_question() {
    turns_on("question.answer_child", &[("answerChildQuestion", "answer_child_question")]).await;
}

#[tokio::test]
async fn child_events() {
    turns_on("child_events", &[("childEvents", "child_events")]).await;
}

#[tokio::test]
async fn children() {
    turns_on("child.cancel", &[("children", "children")]).await;
}

#[tokio::test]
async fn pagination() {
    turns_on("session.list.pagination", &[]).await;
}

#[tokio::test]
async fn providers() {
    turns_on("providers.list", &[("providers", "providers")]).await;
}

#[tokio::test]
async fn default_model_and_models() {
    turns_on("roles.set_main", &[("defaultModel", "default_model")]).await;
    let mut both = on(&["roles.set_main", "providers.list"]).await;
    both.sort();
    assert_eq!(both, ["defaultModel", "models", "providers"]);
}

#[tokio::test]
async fn rename_resume_usage() {
    let door = door(&[]).await;
    for name in ["rename", "resume", "usage"] {
        let detail = door.call("detail", json!({"capability": name})).await.unwrap();
        assert_eq!(detail, json!({"on": true, "by": "host"}));
    }
}

/// Off whatever the host says, each with a reason for a person.
#[tokio::test]
async fn other_optional_capabilities() {
    let mut claimed: Vec<&str> = feature::ALL.to_vec();
    claimed.extend(["jobs", "archive", "fork", "queue", "edits", "profiles", "telepathy"]);
    let door = door(&claimed).await;
    let table = door.call("capability_table", Value::Null).await.unwrap();
    for name in ["queue", "jobs", "archive", "fork", "edits", "profiles"] {
        assert_eq!(table[name]["on"], false, "{name}");
        let why = table[name]["whyOff"].as_str().unwrap();
        assert!(why.contains(' '), "a reason is a sentence: {why}");
    }
    let off: Vec<_> = table.as_object().unwrap().iter().filter(|(_, detail)| detail["on"] == false).collect();
    assert_eq!(off.len(), 6);
    // What was not asked for is not negotiated.
    let info = door.call("host_info", Value::Null).await.unwrap();
    assert_eq!(info["features"], json!(feature::ALL));
}

#[tokio::test]
async fn constraints() {
    for (features, follow_up) in [(&[][..], false), (&["follow_up"], true)] {
        let constraints = door(features).await.call("constraints", Value::Null).await.unwrap();
        assert_eq!(
            constraints,
            json!({
                "references": false,
                "questionAnswers": {"severalItems": false, "severalChoices": false, "choiceAndText": false, "skip": false},
                "followUpWhileRunning": follow_up,
            })
        );
    }
}

/// Every command and read whose capability is off fails before anything is sent, naming it.
#[tokio::test]
async fn what_is_off_is_not_sent() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let door = Door::new(std::sync::Arc::new(backend.clone()));
    for (capability, method, params) in [
        ("approve", "decide_approval", json!({"chat": "s", "approval": "p", "decision": "approve"})),
        ("approve", "pending_approvals", json!({})),
        ("steer", "steer", json!({"chat": "s", "text": "x"})),
        ("follow_up", "follow_up", json!({"chat": "s", "text": "x"})),
        ("questions", "answer_question", json!({"chat": "s", "question": "q", "answer": "a"})),
        (
            "answer_child_question",
            "answer_child_question",
            json!({"chat": "s", "child": "k", "question": "q", "answer": "a"}),
        ),
        ("rewind", "rewind", json!({"chat": "s", "message": "m"})),
        ("history", "load_history_range", json!({"chat": "s", "first": 1, "last": 2})),
        ("context", "load_context", json!({"chat": "s"})),
        ("summary", "load_summary", json!({"chat": "s", "kitId": "episode:1"})),
        ("children", "cancel_child", json!({"chat": "s", "child": "k"})),
        ("queue", "send_queued_now", json!({"chat": "s", "input": "i"})),
        ("queue", "edit_queued", json!({"chat": "s", "input": "i", "text": "x"})),
        ("queue", "remove_queued", json!({"chat": "s", "input": "i"})),
        ("jobs", "cancel_job", json!({"chat": "s", "job": "j"})),
        ("archive", "archive", json!({"chat": "s", "archived": false})),
        ("fork", "fork", json!({"chat": "s"})),
        ("edits", "undo_edit", json!({"chat": "s", "edit": "e"})),
        ("profiles", "list_profiles", json!({})),
        ("profiles", "set_profile", json!({"chat": "s", "profile": "f"})),
        ("providers", "list_providers", json!({})),
        ("default_model", "set_default_model", json!({"model": "p/m"})),
        ("models", "list_models", json!({})),
        ("models", "set_model", json!({"chat": "s", "model": "p/m"})),
    ] {
        let error = json!(door.call(method, params).await.unwrap_err());
        let message = format!("the backend does not offer {capability}");
        assert_eq!(
            error,
            json!({"code": "unsupported", "message": message, "outcome": "not_sent", "capability": capability}),
            "{method}"
        );
    }
    host.nothing_came(&backend).await;
}

/// Before the handshake is answered nothing else is sent, and it offers every feature of the contract.
#[tokio::test]
async fn handshake() {
    let (mut host, client) = RawHost::new();
    let options =
        kitport::bubblepaw::Options { client_name: "test".into(), client_version: "9".into(), ..Default::default() };
    let hello = json!({"protocol_version": "0.1", "host": {"name": "h", "version": "1"}, "features": [], "workspace": {"path": "/w"}});
    let (backend, ()) = tokio::join!(kitport::BubblePaw::connect(client.reader, client.writer, options), async {
        let request =
            json!({"protocol_version": "0.1", "client": {"name": "test", "version": "9"}, "features": feature::ALL});
        host.serve("initialize", request, hello).await;
    });
    host.nothing_came(&backend.unwrap()).await;
}
