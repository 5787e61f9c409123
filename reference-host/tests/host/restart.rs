//! A host that is killed and started again on its file.

use serde_json::{Value, json};

use crate::client::{Client, durable, of_type};

fn on_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("host.db").to_str().unwrap().to_owned();
    (folder, db)
}

#[test]
fn a_closed_host_comes_back_with_everything() {
    let (_folder, db) = on_file();
    let mut client = Client::ready(&["--db", &db]);
    let session = client.open();
    client.play(&session, "stream 50; tool; plan; output; compact");
    client.call("roles.set_main", json!({ "model": "meadow/small" })).unwrap();
    let (state, events) = (client.state(&session), client.replayed(&session, 0));
    assert_eq!(client.finish(), Some(0));
    let mut client = Client::ready(&["--db", &db]);
    assert_eq!(client.state(&session), state);
    assert_eq!(client.replayed(&session, 0), events);
    assert_eq!(client.call("providers.list", json!({})).unwrap()["main"], "meadow/small");
    let more = client.play(&session, "say more");
    assert!(more[0]["sequence"].as_u64() > state["sequence"].as_u64());
}

#[test]
fn a_killed_run_is_interrupted_and_can_go_on() {
    let (_folder, db) = on_file();
    let mut client = Client::ready(&["--db", &db]);
    let session = client.open();
    let run = client.run(&session, "say first; tool; sleep 60000; say last");
    client.event(&session, "tool_finished");
    client.call("run.follow_up", json!({ "session_id": session, "text": "say queued" })).unwrap();
    client.kill();
    let seen = durable(&client.events_of(&session, 0));
    let mut client = Client::ready(&["--db", &db]);
    assert_eq!(client.replayed(&session, 0), seen, "recovery itself tells no event");
    let state = client.state(&session);
    assert_eq!(
        (state["runs"][0]["run_id"].as_str(), state["runs"][0]["status"].as_str()),
        (Some(run.as_str()), Some("interrupted"))
    );
    assert_eq!(state["inputs"].as_array().unwrap().len(), 1);
    // The pause is the step that was interrupted: cancelling it leaves nothing to resume.
    let resumed = client.call("run.resume", json!({ "session_id": session })).unwrap()["run_id"].clone();
    assert_ne!(resumed, run.as_str());
    let started = client.event(&session, "run_started");
    assert_eq!(started["run_id"], resumed);
    assert!(started["sequence"].as_u64() > seen.last().unwrap()["sequence"].as_u64());
    client.call("run.cancel", json!({ "session_id": session })).unwrap();
    client.event(&session, "session_settled");
    let statuses: Vec<Value> =
        client.state(&session)["runs"].as_array().unwrap().iter().map(|run| run["status"].clone()).collect();
    assert_eq!(statuses, ["interrupted", "cancelled", "completed"]);
    assert!(client.refused("run.resume", json!({ "session_id": session })).1.contains("conflict"));
}

#[test]
fn approvals_and_questions_outlive_the_host() {
    let (_folder, db) = on_file();
    let mut client = Client::ready(&["--db", &db]);
    let (approving, asking) = (client.open(), client.open());
    client.run(&approving, "approve git; say approved");
    client.run(&asking, "ask Which?; say thanks");
    let approval = client.event(&approving, "approval_requested")["data"]["approval"].clone();
    let question = client.event(&asking, "host_state_changed")["data"]["value"].clone();
    client.kill();
    let mut client = Client::ready(&["--db", &db]);
    let list = client.call("approval.list", json!({ "session_id": approving })).unwrap();
    assert_eq!(list["approvals"], json!([approval]));
    assert_eq!(client.state(&asking)["question"], question);
    // Decided while nothing runs, used when the run goes on.
    client.call("approval.decide", json!({ "approval_id": approval["approval_id"], "decision": "approve" })).unwrap();
    client.event(&approving, "approval_resolved");
    client.call("run.resume", json!({ "session_id": approving })).unwrap();
    let finished = client.event(&approving, "tool_finished");
    assert_eq!(finished["data"]["call_id"], approval["call_id"]);
    client.event(&approving, "session_settled");
    let events = client.events_of(&approving, 0);
    assert_eq!((of_type(&events, "approval_requested").len(), of_type(&events, "tool_started").len()), (0, 0));
    // Answered while the run goes on again.
    client.call("run.resume", json!({ "session_id": asking })).unwrap();
    let answer = json!({ "session_id": asking, "question_id": question["question_id"], "text": "this" });
    client.call("question.answer", answer).unwrap();
    client.event(&asking, "session_settled");
    let events = client.events_of(&asking, 0);
    assert_eq!(of_type(&events, "tool_finished")[0]["data"]["result"]["answer"], "this");
}

#[test]
fn a_new_run_gives_up_what_an_interrupted_one_waited_for() {
    let (_folder, db) = on_file();
    let mut client = Client::ready(&["--db", &db]);
    let session = client.open();
    client.run(&session, "approve git");
    let approval = client.event(&session, "approval_requested")["data"]["approval"]["approval_id"].clone();
    client.kill();
    let mut client = Client::ready(&["--db", &db]);
    let events = client.play(&session, "say something else");
    assert_eq!(of_type(&events, "approval_resolved")[0]["data"]["state"], "expired");
    let late = json!({ "approval_id": approval, "decision": "approve" });
    assert!(client.refused("approval.decide", late).1.contains("expired"));
}

#[test]
fn children_are_interrupted_with_their_parent_and_go_on_with_it() {
    let (_folder, db) = on_file();
    let mut client = Client::ready(&["--db", &db]);
    let session = client.open();
    client.run(&session, "child ask; say end");
    let asked = client.event(&session, "host_state_changed")["data"]["value"].clone();
    client.kill();
    let mut client = Client::ready(&["--db", &db]);
    let child = client.state(&session)["children"][0].clone();
    assert_eq!((child["state"].as_str(), &child["question"]), (Some("interrupted"), &asked["question"]));
    client.call("run.resume", json!({ "session_id": session })).unwrap();
    let answer = json!({ "parent": session, "child": child["session_id"], "question_id": asked["question"]["question_id"], "text": "yes" });
    client.call("question.answer_child", answer).unwrap();
    client.event(&session, "session_settled");
    let state = client.state(&session);
    assert_eq!(
        (state["children"].as_array().unwrap().len(), state["children"][0]["state"].as_str()),
        (1, Some("completed"))
    );

    let from = client.events.len();
    client.run(&session, "child sleep 60000");
    client.event_from(from, &session, "child_run_state_changed");
    client.kill();
    let mut client = Client::ready(&["--db", &db]);
    let child = client.state(&session)["children"][1]["session_id"].clone();
    client.call("child.cancel", json!({ "parent": session, "child": child })).unwrap();
    assert_eq!(client.state(&session)["children"][1]["state"], "cancelled");
    assert_eq!(client.event(&session, "child_run_state_changed")["data"]["state"], "cancelled");
}

#[test]
fn whatever_a_client_saw_is_there_after_any_kill() {
    let (_folder, db) = on_file();
    let mut rng = fastrand::Rng::with_seed(11);
    let mut session = String::new();
    let mut seen: Vec<Value> = Vec::new();
    for round in 0..12 {
        let mut client = Client::ready(&["--db", &db]);
        if round == 0 {
            session = client.open();
        }
        let known = client.replayed(&session, 0);
        assert!(known.len() >= seen.len() && seen.iter().all(|event| known.contains(event)), "round {round}");
        let sequences: Vec<_> = known.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert!(sequences.is_sorted_by(|a, b| a < b));
        client.run(&session, "stream 30; tools 30; tool; tools 30; plan; tools 300; sleep 60000");
        let lines = rng.usize(1..250);
        client.wait("some events", |client| (client.events.len() >= lines).then_some(()));
        client.kill();
        seen = known;
        seen.extend(durable(&client.events_of(&session, 0)));
    }
}

#[test]
fn a_crash_in_the_script_loses_nothing_that_was_told() {
    let (_folder, db) = on_file();
    let mut client = Client::ready(&["--db", &db]);
    let session = client.open();
    client.send("run.start", json!({ "session_id": session, "text": "tools 50; crash 9" }));
    client.drain();
    assert_eq!(client.child.wait().unwrap().code(), Some(9));
    let seen = durable(&client.events_of(&session, 0));
    let mut client = Client::ready(&["--db", &db]);
    let known = client.replayed(&session, 0);
    assert!(seen.iter().all(|event| known.contains(event)));
    assert_eq!(of_type(&known, "tool_finished").len(), 50);
    assert_eq!(client.state(&session)["runs"][0]["status"], "interrupted");
}
