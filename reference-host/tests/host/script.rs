//! The words of the script language, as the program plays them.

use serde_json::json;

use crate::client::{Client, durable, of_type, shown, types};

fn play(text: &str) -> (Client, String, Vec<serde_json::Value>) {
    let mut client = Client::ready(&[]);
    let session = client.open();
    let events = client.play(&session, text);
    (client, session, events)
}

#[test]
fn text_streams_in_deltas_and_paragraphs_and_ends_as_told() {
    for text in ["stream 200", "say Hello there.", "unicode", "Just talk to me", "say a; say b; stream 120"] {
        let (mut client, session, events) = play(text);
        assert_eq!(types(&events)[..2], ["run_started", "model_request"]);
        let steps = shown(&events);
        assert_eq!(steps.len(), 1, "{text}");
        let finished = of_type(&events, "run_finished")[0].clone();
        assert_eq!(finished["data"]["status"], "completed");
        assert_eq!(finished["data"]["text"], steps[0].as_str());
        let messages = client.state(&session)["messages"].clone();
        assert_eq!(messages[1]["text"], steps[0].as_str());
        let last = events.iter().filter(|event| event["type"] == "text_delta").map(|event| &event["sequence"]);
        assert!(last.into_iter().all(|sequence| sequence == &events[0]["sequence"]));
    }
    let words = shown(&play("stream 200").2)[0].split_whitespace().count();
    assert_eq!(words, 200);
}

#[test]
fn the_same_seed_says_the_same() {
    let texts: Vec<String> = ["1", "1", "2"]
        .iter()
        .map(|seed| {
            let mut client = Client::ready(&["--seed", seed]);
            let session = client.open();
            shown(&client.play(&session, "stream 50")).remove(0)
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
}

#[test]
fn tools_make_steps() {
    let (_, _, events) = play("say before; tool grep; say after; tool");
    let steps = shown(&events);
    assert_eq!(steps, ["before", "after", "Done."]);
    let started = of_type(&events, "tool_started");
    assert_eq!(started[0]["data"]["call"]["name"], "grep");
    let finished = of_type(&events, "tool_finished");
    assert_eq!(finished[0]["data"]["call_id"], started[0]["data"]["call"]["call_id"]);
    assert_eq!(of_type(&events, "usage.last_request").len(), 3);
    let script =
        json!({ "steps": [{ "tool": { "name": "x", "arguments": { "a": [1] }, "result": null, "is_error": true } }] });
    let (_, _, events) = play(&script.to_string());
    let finished = of_type(&events, "tool_finished")[0]["data"].clone();
    assert_eq!((finished["result"].is_null(), finished["is_error"].as_bool()), (true, Some(true)));
}

#[test]
fn nested_calls_are_shown_and_never_stored() {
    let (mut client, session, events) = play("nested");
    let (kept, all) = (durable(&events), of_type(&events, "tool_started").len());
    assert_eq!((of_type(&kept, "tool_started").len(), all), (1, 3));
    assert_eq!(of_type(&events, "tool_finished").len(), 3);
    assert_eq!(client.replayed(&session, 0), kept);
    let nested = of_type(&events, "tool_started")[1].clone();
    assert_eq!(nested["sequence"], of_type(&events, "tool_started")[0]["sequence"]);
}

#[test]
fn many_tools_are_many_events() {
    let (mut client, session, events) = play("tools 150");
    assert_eq!(of_type(&events, "tool_finished").len(), 150);
    let messages = client.state(&session)["messages"].as_array().unwrap().clone();
    assert_eq!(messages.iter().filter(|message| message["role"] == "tool").count(), 150);
}

#[test]
fn a_retry_throws_text_away() {
    let (mut client, session, events) = play("say lost; retry; say kept");
    assert_eq!(shown(&events), ["lost", "kept"]);
    assert_eq!(of_type(&events, "run_finished")[0]["data"]["text"], "kept");
    assert_eq!(client.state(&session)["messages"].as_array().unwrap().len(), 2);
    let (_, _, alone) = play("retry");
    assert_eq!(shown(&alone).len(), 2);
}

#[test]
fn a_mismatch_contradicts_the_deltas() {
    let (_, _, events) = play("mismatch");
    let deltas: String =
        of_type(&events, "text_delta").iter().map(|event| event["data"]["text"].as_str().unwrap()).collect();
    let paragraph = of_type(&events, "paragraph")[0]["data"]["text"].as_str().unwrap();
    assert_ne!(deltas, paragraph);
    assert_eq!(of_type(&events, "run_finished")[0]["data"]["text"], paragraph);
}

#[test]
fn a_run_can_end_without_its_text() {
    let (mut client, session, events) = play("say hidden; notext");
    assert_eq!(of_type(&events, "run_finished")[0]["data"].get("text"), None);
    assert_eq!(client.state(&session)["messages"][1]["text"], "hidden");
}

#[test]
fn runs_fail_and_end_in_words_of_their_own() {
    let (mut client, session, events) = play("say half; fail no more honey");
    let finished = of_type(&events, "run_finished")[0]["data"].clone();
    assert_eq!((finished["status"].as_str(), finished["error"].as_str()), (Some("failed"), Some("no more honey")));
    let run = client.state(&session)["runs"][0].clone();
    assert_eq!((run["status"].as_str(), run["error"].as_str()), (Some("failed"), Some("no more honey")));
    let (_, _, events) = play("end evaporated");
    assert_eq!(of_type(&events, "run_finished")[0]["data"]["status"], "evaporated");
    let (_, _, events) = play("script: no such word");
    let error = of_type(&events, "run_finished")[0]["data"]["error"].as_str().unwrap();
    assert!(error.contains("no such word"));
}

#[test]
fn plans_are_told_whole_each_time() {
    let (mut client, session, events) = play("plan; plan next; plan done; plan clear; plan");
    let plans: Vec<Vec<&str>> = of_type(&events, "host_state_changed")
        .iter()
        .map(|event| {
            event["data"]["value"].as_array().unwrap().iter().map(|todo| todo["status"].as_str().unwrap()).collect()
        })
        .collect();
    let (p, n, d) = ("pending", "in_progress", "done");
    let expected = [vec![n, p, p], vec![d, n, p], vec![d, d, n], vec![d, d, d], vec![], vec![n, p, p], vec![d, n, p]];
    assert_eq!(plans, expected);
    assert_eq!(client.state(&session)["todo"].as_array().unwrap().len(), 3);
}

#[test]
fn outputs_are_told_and_kept() {
    let (mut client, session, events) = play("output; output file; output image; output execution; output text A B");
    let kinds: Vec<_> =
        of_type(&events, "output.record").iter().map(|event| event["data"]["output"]["kind"].clone()).collect();
    assert_eq!(kinds, ["text", "file", "image", "execution", "text"]);
    let outputs = client.state(&session)["outputs"].clone();
    assert_eq!((outputs.as_array().unwrap().len(), outputs[4]["text"].as_str()), (5, Some("A B")));
    assert_eq!(outputs[0], of_type(&events, "output.record")[0]["data"]["output"]);
}

#[test]
fn quota_is_waited_for_or_skipped() {
    let (_, _, events) = play("quota 0.05; say on");
    let waiting = of_type(&events, "run_waiting_for_quota")[0];
    assert!(waiting["data"]["wait"]["resume_at"].is_string());
    assert_eq!(of_type(&events, "run_quota_resumed").len(), 1);

    let mut client = Client::ready(&[]);
    let session = client.open();
    let run = client.run(&session, "quota 1000; say on");
    client.event(&session, "run_waiting_for_quota");
    let state = client.state(&session)["runs"][0].clone();
    assert_eq!(state["status"], "waiting_for_quota");
    assert!(state["wait"]["reason"].is_string());
    let resumed = client.call("run.resume", json!({ "session_id": session })).unwrap();
    assert_eq!(resumed["run_id"], run.as_str());
    client.event(&session, "session_settled");
    assert_eq!(client.state(&session)["runs"][0]["status"], "completed");
}

#[test]
fn floods_and_big_results_come_whole() {
    let (_, _, events) = play("flood 5000");
    assert_eq!(of_type(&events, "text_delta").len(), 5000);
    assert_eq!(shown(&events).len(), 1);
    let (mut client, session, events) = play("big 3_000_000");
    let result = of_type(&events, "tool_finished")[0]["data"]["result"].as_str().unwrap().len();
    assert_eq!(result, 3_000_000);
    let state = client.state(&session).to_string();
    assert!(state.len() < 1_000_000, "the canonical message keeps a cut result: {}", state.len());
}

#[test]
fn a_sleep_and_a_slow_stream_are_pauses_only() {
    let (_, _, events) = play("sleep 20; stream 3 slow");
    assert_eq!(shown(&events)[0].split_whitespace().count(), 3);
    let mut client = Client::ready(&["--speed", "1"]);
    let session = client.open();
    let events = client.play(&session, "stream 20; tool");
    assert_eq!(shown(&events).len(), 2);
}

#[test]
fn a_run_asks_the_client_and_waits_for_the_answer() {
    let mut client = Client::ready(&[]);
    let session = client.open();
    client.run(&session, "request; say on");
    let request = client.wait("a request of the host", |client| client.others.first().cloned());
    assert_eq!(request["method"], "workspace.trust");
    assert!(!client.events.iter().any(|(_, event)| event["type"] == "run_finished"));
    client.write(
        &json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -32601, "message": "no" } }).to_string(),
    );
    client.event(&session, "session_settled");
}

#[test]
fn files_are_written_inside_the_workspace_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::ready(&["--workspace", folder.path().to_str().unwrap()]);
    let session = client.open();
    let events = client.play(&session, "write notes/a.txt Hello fox; write ../b.txt no; write /tmp/kitport-no.txt no");
    let results: Vec<bool> =
        of_type(&events, "tool_finished").iter().map(|event| event["data"]["is_error"] == true).collect();
    assert_eq!(results, [false, true, true]);
    assert_eq!(std::fs::read_to_string(folder.path().join("notes/a.txt")).unwrap(), "Hello fox");
    assert!(!folder.path().parent().unwrap().join("b.txt").exists());
}

#[test]
fn a_crash_leaves_with_its_code() {
    for (text, code) in [("say a; crash", 70), ("crash 3", 3)] {
        let mut client = Client::ready(&[]);
        let session = client.open();
        client.send("run.start", json!({ "session_id": session, "text": text }));
        client.drain();
        assert_eq!(client.child.wait().unwrap().code(), Some(code));
        assert!(!client.events.iter().any(|(_, event)| event["type"] == "run_finished"));
    }
}
