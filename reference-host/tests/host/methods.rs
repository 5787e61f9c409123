//! Methods that need no run, or a short one: what they give and what they refuse.

use std::collections::BTreeSet;

use kitport::bubblepaw::wire::{METHODS, SessionStateResult, feature};
use serde_json::{Value, json};

use crate::client::{Client, durable};

#[test]
fn the_handshake_comes_first_and_once() {
    let mut client = Client::start(&[]);
    assert_eq!(client.refused("session.list", json!({})).0, -32002);
    assert_eq!(client.refused("initialize", json!({ "protocol_version": 1 })).0, -32602);
    let result = client.initialize(&["plan", "telepathy", "approvals"]);
    assert_eq!(result["protocol_version"], "0.1");
    assert_eq!(result["features"], json!(["plan", "approvals"]));
    assert_eq!(result["host"]["name"], "kitport-host");
    assert!(result["workspace"]["path"].as_str().unwrap().starts_with('/'));
    assert_eq!(client.refused("initialize", json!({})).0, -32600);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn the_host_offers_what_it_is_told_and_presents_its_version() {
    let mut client = Client::start(&["--without", "plan", "--without", "rewind", "--protocol-version", "0.9"]);
    let result = client.initialize(feature::ALL);
    assert_eq!(result["protocol_version"], "0.9");
    let features = result["features"].as_array().unwrap();
    assert_eq!(features.len(), feature::ALL.len() - 2);
    assert!(!features.contains(&json!("plan")));
    let mut client = Client::start(&["--feature", "none"]);
    assert_eq!(client.initialize(feature::ALL)["features"], json!([]));
}

#[test]
fn methods_of_features_that_were_not_negotiated_do_not_exist() {
    let mut client = Client::start(&[]);
    client.initialize(&[]);
    for (method, feature) in METHODS {
        if feature.is_some() {
            assert_eq!(client.refused(method, json!({})).0, -32601, "{method}");
        }
    }
    assert_eq!(client.refused("session.delete", json!({})).0, -32601);
}

#[test]
fn parameters_that_do_not_fit_are_refused_by_every_method() {
    let mut client = Client::ready(&[]);
    for (method, _) in METHODS.iter().filter(|(method, _)| *method != "initialize") {
        assert_eq!(client.refused(method, json!([1])).0, -32602, "{method}");
        let takes_nothing_needed = ["session.list", "session.open", "providers.list"].contains(method);
        if !takes_nothing_needed {
            assert_eq!(client.refused(method, Value::Null).0, -32602, "{method}");
        }
    }
}

#[test]
fn sessions_that_nobody_knows_are_not_found() {
    let mut client = Client::ready(&[]);
    let params = json!({ "session_id": "nope", "parent": "nope", "child": "nope", "title": "t", "text": "t",
        "message_id": "msg_1_1", "after": 0, "limit": 1, "first_seq": 0, "last_seq": 1, "kind": "episode", "id": "x",
        "question_id": "q" });
    let without_session = [
        "initialize",
        "session.list",
        "session.open",
        "approval.decide",
        "providers.list",
        "roles.set_main",
        "config.set",
    ];
    for (method, _) in METHODS.iter().filter(|(method, _)| !without_session.contains(method)) {
        let (code, message) = client.refused(method, params.clone());
        assert_eq!((code, message.as_str()), (-32000, "unknown session: nope"), "{method}");
    }
}

#[test]
fn lines_that_are_no_requests_do_no_harm() {
    let mut client = Client::ready(&[]);
    for line in [
        "",
        "garbage",
        "{\"half\":",
        "[]",
        "7",
        "{\"jsonrpc\":\"2.0\",\"method\":\"note\"}",
        "{\"id\":5}",
        "{\"id\":\"stray\",\"result\":{}}",
    ] {
        client.write(line);
    }
    let id = "\u{2028}text";
    client.write(&json!({ "jsonrpc": "2.0", "id": id, "method": "session.list" }).to_string());
    client.wait("the answer by a text id", |client| {
        client.seen.iter().any(|line| String::from_utf8_lossy(line).contains(id)).then_some(())
    });
    let errors =
        client.seen.iter().filter(|line| line.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\"")).count();
    assert_eq!(errors, 6, "notifications and answers are not answered");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn a_request_of_many_megabytes_is_read() {
    let mut client = Client::ready(&[]);
    let title = "t".repeat(8 * 1024 * 1024);
    let result = client.call("session.open", json!({ "title": title })).unwrap();
    assert_eq!(result["session"]["title"].as_str().unwrap().len(), title.len());
}

#[test]
fn titles_are_given_taken_from_the_first_message_and_changed() {
    let mut client = Client::ready(&[]);
    let titled = client.call("session.open", json!({ "title": " Mine " })).unwrap();
    assert_eq!(titled["session"]["title"], "Mine");
    assert_eq!(client.refused("session.open", json!({ "title": " " })), (-32000, "title must not be blank".into()));
    let session = client.open();
    client.play(&session, "say hi\nsay there");
    assert_eq!(client.state(&session)["session"]["title"], "say hi");
    client.call("session.rename", json!({ "session_id": session, "title": "Other" })).unwrap();
    client.play(&session, "say more");
    let state = client.state(&session);
    assert_eq!(state["session"]["title"], "Other");
    assert!(state["session"]["updated_at"].as_str() > state["session"]["created_at"].as_str());
    let (code, message) = client.refused("session.rename", json!({ "session_id": session, "title": "\t" }));
    assert_eq!((code, message.as_str()), (-32000, "title must not be blank"));
}

#[test]
fn lists_come_in_pages_newest_first_or_whole() {
    let mut client = Client::ready(&[]);
    let made: Vec<String> = (0..7).map(|_| client.open()).collect();
    let (mut listed, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = client.call("session.list", json!({ "limit": 3, "cursor": cursor })).unwrap();
        pages += 1;
        listed
            .extend(page["sessions"].as_array().unwrap().iter().map(|s| s["session_id"].as_str().unwrap().to_owned()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
        // What is made between two pages moves none of those that are listed already.
        client.open();
    }
    assert_eq!(pages, 3);
    assert_eq!(listed, made.iter().rev().cloned().collect::<Vec<_>>());
    let (code, message) = client.refused("session.list", json!({ "cursor": "page 2" }));
    assert_eq!((code, message.as_str()), (-32000, "invalid cursor"));

    let mut whole = Client::start(&[]);
    whole.initialize(&[]);
    (0..5).for_each(|_| drop(whole.open()));
    let list = whole.call("session.list", json!({ "limit": 2 })).unwrap();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 5);
    assert_eq!(list.get("next_cursor"), None);
}

#[test]
fn events_come_again_as_they_came_live() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    let live = durable(&client.play(&session, "stream 30; tools 40; plan; ask-nothing; output; tool"));
    assert_eq!(client.replayed(&session, 0), live);
    let sequences: Vec<u64> = live.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b));
    assert!(sequences.windows(2).any(|pair| pair[1] - pair[0] > 1), "dense sequences hide errors: {sequences:?}");
    let middle = sequences[sequences.len() / 2];
    let later = client.replayed(&session, middle);
    assert_eq!(later[..], live[live.len() / 2 + 1..]);
    assert_eq!(client.replayed(&session, 1 << 50), Vec::<Value>::new());
    assert_eq!(client.state(&session)["sequence"], *sequences.last().unwrap());
    let limits = json!({ "session_id": session, "after": 0, "limit": 0 });
    assert_eq!(client.refused("events.after", limits).0, -32602);
}

#[test]
fn events_of_features_that_were_not_negotiated_stay_away() {
    let mut client = Client::start(&[]);
    client.initialize(&[]);
    let session = client.open();
    let events = client.play(&session, "plan; approve; child; compact; ask; say end");
    let told: BTreeSet<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for hidden in ["approval_requested", "child_run_state_changed", "context_compaction", "host_state_changed"] {
        assert!(!told.contains(hidden), "{hidden}");
    }
    assert_eq!(client.replayed(&session, 0), durable(&events));
    let state = client.state(&session);
    assert_eq!(state["todo"], json!([]));
    assert_eq!(state.get("children"), None);
    assert_eq!(events.last().unwrap()["type"], "session_settled");
}

#[test]
fn retention_keeps_the_newest_events_and_tells_what_is_gone() {
    let mut client = Client::ready(&["--retention", "10"]);
    let session = client.open();
    let live = durable(&client.play(&session, "tools 20"));
    let kept = &live[live.len() - 10..];
    let gone = live[live.len() - 11]["sequence"].as_u64().unwrap();
    assert_eq!(client.replayed(&session, gone), kept);
    for after in [0, gone - 1] {
        let page = client.call("events.after", json!({ "session_id": session, "after": after, "limit": 5 })).unwrap();
        assert_eq!(page, json!({ "events": [], "has_more": false, "resync": true }));
    }
    client.call("config.set", json!({ "key": "retention.events", "value": null })).unwrap();
    let more = durable(&client.play(&session, "tools 20"));
    assert_eq!(client.replayed(&session, gone).len(), 10 + more.len());
}

#[test]
fn state_is_what_the_contract_says() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    let empty = client.state(&session);
    assert_eq!((empty["sequence"].as_u64(), empty["messages"].as_array().unwrap().len()), (Some(0), 0));
    client.play(&session, "say one; tool grep; system careful; say two; output; plan");
    let value = client.state(&session);
    let state: SessionStateResult = serde_json::from_value(value).unwrap();
    let roles: Vec<&str> = state.messages.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "system", "assistant"]);
    let run = &state.runs[0];
    assert_eq!((run.status.as_str(), run.model.as_deref()), ("completed", Some("meadow/large")));
    assert!(run.started_at.unwrap() <= run.finished_at.unwrap());
    assert!(state.messages.iter().all(|message| message.run_id.as_ref() == Some(&run.run_id)));
    let call = &state.messages[1].tool_calls.as_ref().unwrap()[0];
    assert_eq!((state.messages[1].text.as_str(), call.name.as_str()), ("one", "grep"));
    assert_eq!(state.messages[2].tool_result.as_ref().unwrap().call_id, call.call_id);
    assert_eq!((state.messages[3].text.as_str(), state.messages[4].text.as_str()), ("careful", "two"));
    assert_eq!((state.outputs.len(), state.todo.len()), (1, 3));
    let usage = state.usage.unwrap();
    assert_eq!(usage.total_tokens, Some(usage.input_tokens + usage.output_tokens));
    assert_eq!(usage.context.unwrap().window, Some(200_000));
}

#[test]
fn providers_and_the_default_model() {
    let mut client = Client::ready(&[]);
    let providers = client.call("providers.list", json!({})).unwrap();
    assert_eq!(providers["main"], "meadow/large");
    assert_eq!(providers["providers"].as_array().unwrap().len(), 2);
    let set = client.call("roles.set_main", json!({ "model": "meadow/small" })).unwrap();
    assert_eq!(set, json!({ "main": "meadow/small" }));
    let session = client.open();
    let events = client.play(&session, "say hi");
    assert_eq!(events[0]["data"]["model"], "meadow/small");
    assert_eq!(client.state(&session)["session"]["model"], "meadow/small");
    client.call("roles.set_main", json!({ "model": "burrow/tiny" })).unwrap();
    let providers = client.call("providers.list", json!({})).unwrap();
    assert_eq!(
        (providers["main"].as_str(), providers["active_main"].as_str()),
        (Some("burrow/tiny"), Some("meadow/large"))
    );
    for (model, words) in [("meadow/none", "unknown model"), ("none/x", "unknown provider"), ("large", "must be")] {
        let (code, message) = client.refused("roles.set_main", json!({ "model": model }));
        assert_eq!(code, -32000);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn without_a_provider_no_run_starts_until_one_is_set_up() {
    let mut client = Client::ready(&["--no-provider"]);
    let session = client.open();
    for method in ["run.start", "run.follow_up"] {
        let (code, message) = client.refused(method, json!({ "session_id": session, "text": "hi" }));
        assert_eq!(code, -32004);
        assert!(message.contains("provider.enabled") && message.contains("roles.set_main"), "{message}");
    }
    assert_eq!(client.call("providers.list", json!({})).unwrap(), json!({ "providers": [] }));
    client.call("config.set", json!({ "key": "provider.enabled", "value": true })).unwrap();
    client.play(&session, "say hi");
}

#[test]
fn configuration_is_checked_and_refusals_carry_data() {
    let mut client = Client::ready(&[]);
    for (key, value, code) in [
        ("agent.colour", json!(1), -32010),
        ("agent.speed", json!("x"), -32011),
        ("agent.speed", json!(-5), -32012),
        ("host.name", json!("x"), -32013),
    ] {
        let refusal = client.call("config.set", json!({ "key": key, "value": value })).unwrap_err();
        assert_eq!(refusal.code, code, "{key}");
        assert_eq!(refusal.data["key"], key);
        assert!(!refusal.message.is_empty());
    }
    client.call("config.set", json!({ "key": "agent.approvals", "value": "allow" })).unwrap();
    let session = client.open();
    let events = client.play(&session, "approve");
    assert!(!events.iter().any(|event| event["type"] == "approval_requested"));
}
