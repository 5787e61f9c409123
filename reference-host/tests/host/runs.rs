//! Runs as they meet people: busy sessions, queues, cancelling, approvals, questions, children, context, rewinding.

use serde_json::{Value, json};

use crate::client::{Client, durable, of_type, shown};

fn pending(client: &mut Client, session: &str) -> Vec<Value> {
    let list = client.call("approval.list", json!({ "session_id": session })).unwrap();
    list["approvals"].as_array().unwrap().iter().filter(|approval| approval["state"] == "pending").cloned().collect()
}

fn decide(client: &mut Client, approval: &Value, decision: &str) -> Result<Value, crate::client::Refusal> {
    let id = &approval["data"]["approval"]["approval_id"];
    client.call("approval.decide", json!({ "approval_id": id, "decision": decision, "reason": "so be it" }))
}

#[test]
fn a_run_is_answered_before_its_events() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.play(&session, "say hi");
    let answer = client.seen.iter().position(|line| line.windows(8).any(|part| part == b"\"run_id\"")).unwrap();
    assert!(client.seen[answer].starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":3"));
}

#[test]
fn a_busy_session_says_so_and_queues() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    let first = client.run(&session, "sleep 60000");
    let (code, message) = client.refused("run.start", json!({ "session_id": session, "text": "x" }));
    assert_eq!((code, message.as_str()), (-32000, "session is busy: a run is already running"));
    assert!(client.refused("run.resume", json!({ "session_id": session })).1.contains("already running"));
    let queued: Vec<Value> = ["say two", "say three"]
        .iter()
        .map(|text| {
            client.call("run.follow_up", json!({ "session_id": session, "text": text })).unwrap()["input_id"].clone()
        })
        .collect();
    let inputs = client.state(&session)["inputs"].clone();
    assert_eq!((&inputs[0]["input_id"], inputs[0]["kind"].as_str()), (&queued[0], Some("follow_up")));
    assert_eq!(inputs[1]["input_id"], queued[1]);
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    client.event(&session, "session_settled");
    let state = client.state(&session);
    assert_eq!(state["inputs"], json!([]));
    let statuses: Vec<_> =
        state["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["cancelled", "completed", "completed"]);
    let events = client.events_of(&session, 0);
    assert_eq!(of_type(&events, "followup_queued").len(), 2);
    assert_eq!(of_type(&events, "session_settled").len(), 1, "a session with a queue isn't settled");
    assert_eq!(events.iter().find(|event| event["type"] == "run_finished").unwrap()["run_id"], first.as_str());
    assert_eq!(client.refused("run.start", json!({ "session_id": session, "text": " \n" })).0, -32000);
}

#[test]
fn a_follow_up_of_nothing_starts_at_once() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.call("run.follow_up", json!({ "session_id": session, "text": "say late" })).unwrap();
    client.event(&session, "session_settled");
    assert_eq!(client.state(&session)["messages"][1]["text"], "late");
}

#[test]
fn steering_is_taken_up_between_steps_and_at_the_end() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    assert!(client.refused("run.steer", json!({ "session_id": session, "text": "x" })).1.contains("conflict"));
    client.run(&session, "sleep 150; tool");
    let steered = client.call("run.steer", json!({ "session_id": session, "text": "say turned" })).unwrap();
    assert_eq!(client.state(&session)["inputs"][0]["input_id"], steered["input_id"]);
    client.event(&session, "session_settled");
    let state = client.state(&session);
    let texts: Vec<_> =
        state["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(texts[..3], ["sleep 150; tool", "say turned", "turned"]);
    assert_eq!(state["inputs"], json!([]));
    assert_eq!(state["messages"][1]["run_id"], state["messages"][0]["run_id"]);
    assert_eq!(of_type(&client.events_of(&session, 0), "steering_accepted").len(), 1);
}

#[test]
fn cancelling_keeps_what_was_said_and_ends_what_was_open() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    // Nothing that runs is nothing to cancel.
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    client.run(&session, "say so far; approve");
    let asked = client.event(&session, "approval_requested");
    client.call("run.steer", json!({ "session_id": session, "text": "too late" })).unwrap();
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    client.event(&session, "session_settled");
    let events = client.events_of(&session, 0);
    assert_eq!(of_type(&events, "approval_resolved")[0]["data"]["state"], "expired");
    assert_eq!(of_type(&events, "tool_finished")[0]["data"]["is_error"], true);
    assert_eq!(of_type(&events, "run_finished")[0]["data"]["status"], "cancelled");
    let refusal = decide(&mut client, &asked, "approve").unwrap_err();
    assert!(refusal.message.contains("expired"), "{refusal:?}");
    let state = client.state(&session);
    assert!(state["messages"].as_array().unwrap().iter().any(|message| message["text"] == "too late"));
    assert_eq!(state["inputs"], json!([]));

    client.run(&session, "say partial; sleep 60000");
    client.wait("text", |client| {
        client.events.iter().any(|(_, e)| e["type"] == "text_delta" && e["run_id"] != asked["run_id"]).then_some(())
    });
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    let from = client.events.iter().rposition(|(_, event)| event["type"] == "run_started").unwrap();
    let finished = client.event_from(from, &session, "run_finished");
    assert_eq!(finished["data"]["text"], "partial");
    assert_eq!(client.state(&session)["messages"].as_array().unwrap().last().unwrap()["text"], "partial");
}

#[test]
fn approvals_are_decided_once() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.run(&session, "approve git");
    let asked = client.event(&session, "approval_requested");
    let approval = &asked["data"]["approval"];
    assert_eq!(pending(&mut client, &session), std::slice::from_ref(approval));
    assert_eq!((approval["tool"].as_str(), approval["session_id"].as_str()), (Some("git"), Some(session.as_str())));
    let unknown = json!({ "approval_id": "none", "decision": "approve" });
    assert_eq!(client.refused("approval.decide", unknown), (-32000, "unknown approval: none".into()));
    assert_eq!(decide(&mut client, &asked, "maybe").unwrap_err().code, -32602);
    decide(&mut client, &asked, "approve").unwrap();
    client.event(&session, "session_settled");
    let resolved = client.event(&session, "approval_resolved");
    assert_eq!(
        (resolved["data"]["state"].as_str(), resolved["data"]["reason"].as_str()),
        (Some("approved"), Some("so be it"))
    );
    assert!(decide(&mut client, &asked, "deny").unwrap_err().message.contains("already decided"));
    assert_eq!(pending(&mut client, &session), Vec::<Value>::new());
    let finished = client.event(&session, "tool_finished");
    assert_eq!((&finished["data"]["call_id"], finished["data"].get("is_error")), (&approval["call_id"], None));
}

#[test]
fn a_denied_tool_fails_and_one_approved_for_the_session_is_not_asked_about_again() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.run(&session, "approve git");
    let asked = client.event(&session, "approval_requested");
    decide(&mut client, &asked, "deny").unwrap();
    let finished = client.event(&session, "tool_finished");
    assert_eq!(
        (finished["data"]["is_error"].as_bool(), finished["data"]["result"].as_str()),
        (Some(true), Some("denied: so be it"))
    );
    client.event(&session, "session_settled");
    let from = client.events.len();
    client.run(&session, "approve git; approve git; approve rm");
    let asked = client.event_from(from, &session, "approval_requested");
    decide(&mut client, &asked, "approve_session").unwrap();
    client.wait("the other tool's approval", |client| {
        let events = client.events_of(&session, from);
        let asked = of_type(&events, "approval_requested");
        let tools: Vec<_> = asked.iter().map(|event| event["data"]["approval"]["tool"].as_str().unwrap()).collect();
        (tools == ["git", "rm"]).then_some(())
    });
    assert_eq!(client.event_from(from, &session, "approval_resolved")["data"]["state"], "approved_session");
}

#[test]
fn questions_are_answered_once() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.run(&session, "ask Which way?");
    let asked = client.event(&session, "host_state_changed");
    assert_eq!(
        (asked["data"]["key"].as_str(), asked["data"]["value"]["text"].as_str()),
        (Some("question"), Some("Which way?"))
    );
    assert_eq!(client.state(&session)["question"], asked["data"]["value"]);
    let id = asked["data"]["value"]["question_id"].clone();
    let params = |id: &Value, text: &str| json!({ "session_id": session, "question_id": id, "text": text });
    assert!(client.refused("question.answer", params(&id, " ")).1.contains("blank"));
    assert!(client.refused("question.answer", params(&json!("none"), "x")).1.contains("unknown question"));
    client.call("question.answer", params(&id, "left")).unwrap();
    client.event(&session, "session_settled");
    let events = client.events_of(&session, 0);
    assert!(of_type(&events, "host_state_changed")[1]["data"]["value"].is_null());
    assert_eq!(client.state(&session).get("question"), None);
    assert_eq!(of_type(&events, "run_finished")[0]["data"]["text"], "You answered: left");
    assert!(client.refused("question.answer", params(&id, "right")).1.contains("already answered"));

    let from = client.events.len();
    client.run(&session, "ask");
    let asked = client.event_from(from, &session, "host_state_changed");
    assert_eq!(asked["data"]["value"]["suggestions"], json!(["green", "blue"]));
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    client.event_from(from, &session, "session_settled");
    let id = &asked["data"]["value"]["question_id"];
    assert!(client.refused("question.answer", params(id, "late")).1.contains("expired"));
    assert_eq!(client.state(&session).get("question"), None);
}

#[test]
fn children_are_sessions_that_their_parent_hears_of() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    let events = client.play(&session, "child 2 say small, tool");
    let told: Vec<_> = of_type(&events, "child_run_state_changed")
        .iter()
        .map(|event| event["data"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(told.iter().filter(|state| **state == "running").count(), 2);
    assert_eq!(told.iter().filter(|state| **state == "completed").count(), 2);
    let children = client.state(&session)["children"].clone();
    assert_eq!(children.as_array().unwrap().len(), 2);
    let child = children[0]["session_id"].as_str().unwrap();
    assert_eq!((children[0]["state"].as_str(), children[0]["result"].as_str()), (Some("completed"), Some("Done.")));
    let state = client.state(child);
    assert_eq!(state["session"]["parent_id"], session.as_str());
    assert_eq!(client.replayed(child, 0), durable(&client.events_of(child, 0)));
    assert_eq!(shown(&client.events_of(child, 0)), ["small", "Done."]);
    // A child that ended runs again like any session, and its parent hears it.
    let from = client.events.len();
    client.play(child, "say again");
    client.wait("the rerun", |client| {
        let told = client.events_of(&session, from);
        let states: Vec<_> = told.iter().map(|event| event["data"]["state"].clone()).collect();
        (states == [json!("running"), json!("completed")]).then_some(())
    });
}

#[test]
fn a_childs_question_is_its_parents_to_answer() {
    let mut client = Client::ready(&[]);
    let (session, stranger) = (client.open(), client.open());
    client.run(&session, "child ask Now what?");
    let asked = client.event(&session, "host_state_changed");
    assert_eq!(asked["data"]["key"], "child_question");
    let value = asked["data"]["value"].clone();
    let child = value["child"].as_str().unwrap().to_owned();
    let id = value["question"]["question_id"].clone();
    client.wait("the child waits", |client| {
        client.events.iter().any(|(_, event)| event["data"]["state"] == "waiting").then_some(())
    });
    let state = client.state(&session);
    assert_eq!(state["children"][0]["question"], value["question"]);
    assert_eq!(state.get("question"), None);
    assert_eq!(client.state(&child).get("question"), None, "it is no question of the child's own user");
    let params = |parent: &str, child: &str, id: &Value, text: &str| json!({ "parent": parent, "child": child, "question_id": id, "text": text });
    for (params, words) in [
        (params(&stranger, &child, &id, "x"), "not a child"),
        (params(&session, &stranger, &id, "x"), "not a child"),
        (params(&session, &child, &id, " "), "blank"),
        (params(&session, &child, &json!("none"), "x"), "unknown question"),
    ] {
        let (code, message) = client.refused("question.answer_child", params);
        assert_eq!(code, -32000);
        assert!(message.contains(words), "{message}");
    }
    let own = json!({ "session_id": child, "question_id": id, "text": "x" });
    assert!(client.refused("question.answer", own).1.contains("unknown question"));
    client.call("question.answer_child", params(&session, &child, &id, "onwards")).unwrap();
    client.event(&session, "session_settled");
    let events = client.events_of(&session, 0);
    let answered = of_type(&events, "host_state_changed")[1];
    assert_eq!(
        answered["data"],
        json!({ "key": "child_question_answer", "value": { "child": child, "question_id": id } })
    );
    assert!(client.refused("question.answer_child", params(&session, &child, &id, "x")).1.contains("already answered"));
    assert_eq!(client.state(&session)["children"][0]["result"], "You answered: onwards");
}

#[test]
fn a_child_is_cancelled_with_what_it_started_by_its_direct_parent() {
    let mut client = Client::ready(&[]);
    let (session, stranger) = (client.open(), client.open());
    client.run(&session, "child child ask");
    let asked = client.wait("the grandchild's question", |client| {
        client.events.iter().find(|(_, event)| event["data"]["key"] == "child_question").cloned()
    });
    let (child, grandchild) = (asked.0, asked.1["data"]["value"]["child"].as_str().unwrap().to_owned());
    for (parent, child, words) in
        [(&session, &grandchild, "not a child"), (&stranger, &child, "not a child"), (&child, &session, "not a child")]
    {
        let (code, message) = client.refused("child.cancel", json!({ "parent": parent, "child": child }));
        assert!(code == -32000 && message.contains(words) && message.contains("invalid"), "{message}");
    }
    client.call("child.cancel", json!({ "parent": session, "child": child })).unwrap();
    client.event(&session, "session_settled");
    client.event(&grandchild, "session_settled");
    for id in [&child, &grandchild] {
        assert_eq!(client.state(id)["runs"][0]["status"], "cancelled");
    }
    let state = client.state(&session);
    assert_eq!(
        (state["children"][0]["state"].as_str(), state["runs"][0]["status"].as_str()),
        (Some("cancelled"), Some("completed"))
    );
    let late = json!({ "parent": child, "child": grandchild, "question_id": asked.1["data"]["value"]["question"]["question_id"], "text": "x" });
    assert!(client.refused("question.answer_child", late).1.contains("expired"));
    assert!(client.refused("child.cancel", json!({ "parent": session, "child": child })).1.contains("already ended"));
}

#[test]
fn cancelling_a_run_cancels_its_children() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.run(&session, "child 2 sleep 60000");
    client.wait("both children", |client| {
        let told = client.events_of(&session, 0);
        (of_type(&told, "child_run_state_changed").len() == 2).then_some(())
    });
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    client.wait("both ends", |client| {
        let told = client.events_of(&session, 0);
        (of_type(&told, "child_run_state_changed").iter().filter(|event| event["data"]["state"] == "cancelled").count()
            == 2)
            .then_some(())
    });
}

#[test]
fn the_context_is_compacted_into_episodes_and_chapters() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    let params = json!({ "session_id": session });
    client.play(&session, "tools 5; say one");
    let whole = client.call("context.view", params.clone()).unwrap();
    let messages = client.state(&session)["messages"].as_array().unwrap().len();
    assert_eq!((whole["items"].as_array().unwrap().len(), whole["threshold"].as_u64()), (messages, Some(160_000)));
    let events = client.play(&session, "compact");
    let told = of_type(&events, "context_compaction")[0]["data"].clone();
    let facts = client.call("context.events", params.clone()).unwrap();
    assert_eq!(
        (&facts["events"][0]["event_id"], facts["events"][0]["applied"].as_bool()),
        (&told["event_id"], Some(true))
    );
    let view = client.call("context.view", params.clone()).unwrap();
    let kinds: Vec<_> = view["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["episode", "message", "message"]);
    // Late ones are in force when the run has ended.
    client.run(&session, "compact late; ask");
    let from = client.events.len();
    client.event_from(from, &session, "host_state_changed");
    let before = client.call("context.view", params.clone()).unwrap();
    assert_eq!(before["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "episode").count(), 1);
    client.call("run.cancel", params.clone()).unwrap();
    client.event_from(from, &session, "session_settled");
    let after = client.call("context.view", params.clone()).unwrap();
    assert_eq!(after["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "episode").count(), 2);
    client.play(&session, "compact");
    let structure = client.call("context.structure", params.clone()).unwrap();
    let (chapter, episodes) = (&structure["chapters"][0], structure["episodes"].as_array().unwrap());
    assert_eq!((chapter["episodes"].as_array().unwrap().len(), episodes.len()), (3, 3));
    assert_eq!(chapter["first_seq"], episodes[0]["first_seq"]);
    let view = client.call("context.view", params.clone()).unwrap();
    assert_eq!((&view["items"][0]["kind"], &view["items"][0]["id"]), (&json!("chapter"), &chapter["chapter_id"]));
    let summary = |kind: &str, id: &Value| json!({ "session_id": session, "kind": kind, "id": id });
    for (kind, id) in [("chapter", &chapter["chapter_id"]), ("episode", &episodes[0]["episode_id"])] {
        assert!(client.call("context.summary", summary(kind, id)).unwrap()["text"].as_str().unwrap().len() > 10);
    }
    assert!(client.refused("context.summary", summary("chapter", &episodes[0]["episode_id"])).1.contains("not found"));
    assert!(client.refused("context.summary", summary("saga", &json!("x"))).1.contains("invalid"));
}

#[test]
fn a_full_context_is_compacted_by_itself() {
    let mut client = Client::ready(&[]);
    client.call("roles.set_main", json!({ "model": "meadow/small" })).unwrap();
    let session = client.open();
    client.play(&session, "flood 20000");
    let events = client.play(&session, "say on");
    assert_eq!(of_type(&events, "context_compaction")[0]["data"]["trigger"], "threshold");
    let context = client.state(&session)["usage"]["context"].clone();
    assert!(context["used"].as_u64() < context["window"].as_u64());
}

#[test]
fn history_comes_by_store_sequence_in_pages() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.play(&session, "tools 30");
    let all = client.state(&session)["messages"].as_array().unwrap().clone();
    let (mut first, mut entries) = (0, Vec::new());
    loop {
        let params = json!({ "session_id": session, "first_seq": first, "last_seq": 1_000_000, "limit": 4 });
        let page = client.call("history.range", params).unwrap();
        entries.extend(page["entries"].as_array().unwrap().iter().cloned());
        match page["next_seq"].as_u64() {
            Some(next) => first = next,
            None => break,
        }
    }
    let messages: Vec<_> = entries.iter().map(|entry| entry["message"].clone()).collect();
    assert_eq!(messages, all);
    let seqs: Vec<u64> = entries.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b) && seqs.last().unwrap() - seqs[0] >= seqs.len() as u64, "{seqs:?}");
    let part = json!({ "session_id": session, "first_seq": seqs[3], "last_seq": seqs[5], "limit": 100 });
    assert_eq!(client.call("history.range", part).unwrap()["entries"].as_array().unwrap().len(), 3);
    let wrong = json!({ "session_id": session, "first_seq": 9, "last_seq": 3, "limit": 1 });
    assert_eq!(client.refused("history.range", wrong).0, -32602);
}

#[test]
fn a_rewind_makes_a_new_session_and_restores_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| std::fs::read_to_string(folder.path().join(name)).ok();
    let mut client = Client::ready(&["--workspace", folder.path().to_str().unwrap()]);
    let session = client.open();
    client.play(&session, "write a.txt one; write mine.txt one");
    client.play(&session, "say between");
    client.play(&session, "write a.txt two; write b.txt new; write a.txt three; write mine.txt two");
    std::fs::write(folder.path().join("mine.txt"), "changed by a person").unwrap();
    let messages = client.state(&session)["messages"].as_array().unwrap().clone();
    let place = messages.iter().position(|message| message["text"] == "between").unwrap();
    let params = json!({ "session_id": session, "message_id": messages[place]["message_id"] });
    let made = client.call("session.rewind", params).unwrap()["session"].clone();
    assert_eq!((file("a.txt").as_deref(), file("b.txt")), (Some("one"), None));
    assert_eq!(file("mine.txt").as_deref(), Some("changed by a person"), "what others changed isn't ours to restore");
    assert_eq!(
        client.state(&session)["messages"].as_array().unwrap().len(),
        messages.len(),
        "the source stays as it is"
    );
    let rewound = made["session_id"].as_str().unwrap().to_owned();
    let copy = client.state(&rewound);
    let texts = |messages: &[Value]| messages.iter().map(|message| message["text"].clone()).collect::<Vec<_>>();
    let copied = copy["messages"].as_array().unwrap();
    assert_eq!(texts(copied), texts(&messages[..=place]));
    assert_ne!(copied[0]["message_id"], messages[0]["message_id"]);
    assert_eq!(copy["runs"].as_array().unwrap().len(), 2);
    assert_eq!(copied[0]["run_id"], copy["runs"][0]["run_id"]);
    assert_eq!((copy["sequence"].as_u64(), copy["session"].get("parent_id")), (Some(0), None));
    client.play(&rewound, "say onwards");
    for id in ["provisional:run_1_1", "msg_1_999999", "", messages[0]["message_id"].as_str().unwrap()] {
        let (code, message) = client.refused("session.rewind", json!({ "session_id": rewound, "message_id": id }));
        assert!(code == -32000 && message.starts_with("unknown message"), "{message}");
    }
}

#[test]
fn sessions_run_side_by_side() {
    let mut client = Client::ready(&[]);
    let sessions: Vec<String> = (0..20).map(|_| client.open()).collect();
    for session in &sessions {
        client.send("run.start", json!({ "session_id": session, "text": "stream 100; tool; stream 100; tools 20" }));
    }
    for session in &sessions {
        client.event(session, "session_settled");
        let live = durable(&client.events_of(session, 0));
        assert_eq!(client.replayed(session, 0), live);
    }
}
