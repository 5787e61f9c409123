//! Each subcommand does its job, on the embedded host and on a spawned one, for a person and for a program.

#![allow(clippy::unwrap_used)] // What is not there is a failure of its test.

mod common;

use common::{Home, kinds};
use serde_json::json;

#[test]
fn a_reply_is_all_of_stdout() {
    let home = Home::new();
    let sent = home.run(&["send", "--new", "Trip", "tool; say Over the hills."]).ends(0);
    assert_eq!(sent.out, "Over the hills.\n");
    assert!(sent.err.contains("read_file") && sent.err.contains("completed"), "{}", sent.err);
    assert!(!sent.out.contains('\u{1b}') && !sent.err.contains('\u{1b}'), "a pipe gets plain lines");
}

#[test]
fn chats_are_there_again_next_time() {
    let home = Home::new();
    assert!(home.run(&["chats"]).ends(0).err.contains("no chat yet"));
    home.run(&["send", "--new", "Trip to the hills", "say a"]).ends(0);
    home.run(&["send", "--new", "Letters", "say b"]).ends(0);
    let listed = home.run(&["chats"]).ends(0).out;
    assert!(listed.contains("Trip to the hills") && listed.contains("Letters"), "{listed}");
    let some = home.run(&["chats", "--query", "LETTER", "--json"]).ends(0).one();
    assert_eq!(some["chats"].as_array().unwrap().len(), 1);
    assert!(home.path("data").join("kitport").join("host.db").exists());
}

#[test]
fn all_pages_are_listed() {
    let home = Home::new();
    let host = home.host(&[]);
    // A hundred chats are a page; children are chats, too.
    home.run(&[&host, "send", "--new", "Many", "child 105 say x"]).ends(0);
    let page = |args: &[&str]| home.run(&[&[host.as_str(), "chats"][..], args].concat()).ends(0);
    let first = page(&["--json"]).one();
    assert_eq!(first["chats"].as_array().unwrap().len(), 100);
    assert!(first["nextCursor"].is_string() && page(&[]).err.contains("--all"));
    let all = page(&["--all", "--json"]).one();
    assert_eq!(all["chats"].as_array().unwrap().len(), 106);
    assert!(all.get("nextCursor").is_none() && !page(&["--all"]).err.contains("--all"));
}

#[test]
fn a_chat_is_named_by_id_beginning_or_last() {
    let home = Home::new();
    home.run(&["send", "--new", "One", "say first"]).ends(0);
    home.run(&["send", "--new", "Two", "say second"]).ends(0);
    let last = home.run(&["show", "last", "--json"]).ends(0).one();
    assert_eq!(last["chat"]["title"], "Two");
    let id = last["chat"]["id"].as_str().unwrap();
    let unique = &id[..id.len() - 1];
    assert_eq!(home.run(&["show", unique, "--json"]).ends(0).one()["chat"]["id"], id);
    let both = home.run(&["show", "ses_"]).ends(2);
    assert!(both.err.contains("more than one"), "{}", both.err);
}

#[test]
fn show_tells_a_chat_its_history_and_its_context() {
    let home = Home::new();
    home.run(&["send", "--new", "Long", "say one; plan; tool"]).ends(0);
    home.run(&["send", "last", "compact; say two"]).ends(0);
    let chat = home.run(&["show", "last"]).ends(0).out;
    for part in ["Long", "one", "read_file", "two", "plan:", "usage:", "completed"] {
        assert!(chat.contains(part), "{part}: {chat}");
    }
    let history = home.run(&["show", "last", "--history", "--json"]).ends(0).one();
    let seqs: Vec<u64> = history.as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert!(seqs.len() > 3 && seqs.is_sorted(), "{seqs:?}");
    assert!(home.run(&["show", "last", "--history"]).ends(0).out.contains("user"));
    let context = home.run(&["show", "last", "--context", "--json"]).ends(0).one();
    assert_eq!(context["compactions"][0]["applied"], true);
    let shown = home.run(&["show", "last", "--context"]).ends(0).out;
    assert!(shown.contains("episode:") && shown.contains("applied"), "{shown}");
}

#[test]
fn tail_replays_what_came_and_ends_where_it_is_told() {
    let home = Home::new();
    let live = home.run(&["send", "--json", "--new", "T", "tool; say x"]).ends(0).json();
    let durable = |events: &[serde_json::Value]| -> Vec<serde_json::Value> {
        events.iter().filter(|event| event["durable"] == true).cloned().collect()
    };
    let all = home.run(&["tail", "last", "--after", "0", "--until", "run.finished", "--json"]).ends(0).json();
    assert_eq!(durable(&all), durable(&live));
    let seqs: Vec<u64> = durable(&all).iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let middle = seqs[1].to_string();
    let rest = home.run(&["tail", "last", "--after", &middle, "--until", "run.finished", "--json"]).ends(0).json();
    assert_eq!(durable(&rest), durable(&all)[2..]);
    let shown = home.run(&["tail", "last", "--after", "0", "--until", "run.finished"]).ends(0).out;
    assert!(shown.lines().next().unwrap().contains("run.started"), "{shown}");
}

#[test]
fn an_approval_is_decided_in_another_process_and_the_run_goes_on() {
    for (flags, word, ends) in [
        (&[][..], "approved", "It ran."),
        (&["--session"], "approved_for_session", "It ran."),
        (&["--deny", "--reason", "too loud"], "denied", "It ran."),
    ] {
        let home = Home::new();
        let waits = home.run(&["send", "--new", "A", "approve shell; say It ran."]).ends(4);
        assert!(waits.err.contains("kitport approve ses_") && waits.err.contains("--resume"), "{}", waits.err);
        let pending = home.run(&["approve", "--json"]).ends(0).one();
        let (chat, approval) = (pending[0]["chat"].as_str().unwrap(), pending[0]["approval"]["id"].as_str().unwrap());
        assert!(home.run(&["approve"]).ends(0).out.contains(approval));
        let decided = home.run(&[&["approve", chat, approval][..], flags].concat()).ends(0);
        assert!(decided.err.contains("--resume"), "{}", decided.err);
        assert!(home.run(&["approve", chat, approval]).ends(1).err.contains("conflict"));
        assert_eq!(home.run(&["approve", "--json"]).ends(0).one(), json!([]));
        let resumed = home.run(&["send", chat, "--resume"]).ends(0);
        assert!(resumed.out.contains(ends), "{}", resumed.out);
        let events = home.run(&["tail", chat, "--after", "0", "--until", "approval.resolved", "--json"]).ends(0).json();
        assert_eq!(events.last().unwrap()["state"], word);
    }
}

#[test]
fn all_can_be_approved_from_the_start() {
    let home = Home::new();
    let sent = home.run(&["send", "--new", "A", "--approve-all", "approve; approve; child approve; say Ran."]).ends(0);
    assert_eq!(sent.out, "Ran.\n");
}

#[test]
fn questions_are_answered_by_label_text_and_of_a_child() {
    let home = Home::new();
    home.run(&["send", "--new", "Q", "ask"]).ends(4);
    let asked = home.run(&["show", "last", "--json"]).ends(0).one()["question"]["id"].clone();
    let told = home.run(&["answer", "last", "2", "--json"]).ends(0).one();
    assert_eq!((&told["question"], &told["answer"]), (&asked, &json!({"choice": "blue"})));
    assert_eq!(home.run(&["send", "last", "--resume"]).ends(0).out, "You answered: blue\n");

    let waits = home.run(&["send", "last", "child ask why so?; say Back."]).ends(4);
    assert!(waits.err.contains("a child asks: why so?"), "{}", waits.err);
    let snapshot = home.run(&["show", "last", "--json"]).ends(0).one();
    let question = snapshot["children"][0]["question"]["id"].as_str().unwrap();
    let missing = home.run(&["answer", "last", "nonsense", "because"]).ends(1);
    assert!(missing.err.contains("no open question"), "{}", missing.err);
    home.run(&["answer", "last", question, "because"]).ends(0);
    assert!(home.run(&["send", "last", "--resume"]).ends(0).out.contains("Back."));
    home.run(&["answer", "last", "again"]).ends(1);
}

#[test]
fn models_are_listed_and_set() {
    let home = Home::new();
    let before = home.run(&["models", "--json"]).ends(0).one();
    let models = before["providers"].as_array().unwrap().iter().filter(|p| p["hasKey"] == true);
    let mut models = models.flat_map(|p| p["models"].as_array().unwrap());
    let other = models.find(|model| model["id"] != before["main"]).unwrap()["id"].as_str().unwrap();
    let after = home.run(&["models", "--set", other, "--json"]).ends(0).one();
    assert_eq!(after["main"], other);
    assert!(home.run(&["models"]).ends(0).out.contains("saved and active"));
    let unknown = home.run(&["models", "--set", "no/such"]).ends(1);
    assert!(unknown.err.contains("not_found") && unknown.err.contains("kitport models"), "{}", unknown.err);
    home.run(&["models", "--set", "nonsense"]).ends(2);
}

#[test]
fn doctor_tells_why_a_capability_is_off() {
    let home = Home::new();
    let host = home.host(&["--without", "rewind"]);
    let told = home.run(&[&host, "doctor", "--json"]).ends(0).one();
    assert_eq!(told["host"]["name"], "kitport-host");
    assert_eq!(told["capabilities"]["steer"], json!({"on": true, "by": "host"}));
    assert_eq!(told["capabilities"]["rewind"]["on"], false);
    assert!(told["capabilities"]["rewind"]["whyOff"].as_str().unwrap().contains("rewind"));
    assert_eq!(told["constraints"]["references"], false);
    assert_eq!(told["counters"]["skippedLines"], 0);
    let shown = home.run(&[&host, "doctor"]).ends(0).out;
    let line = shown.lines().find(|line| line.contains("✗") && line.contains("rewind")).unwrap();
    assert!(line.len() > "✗  rewind".len() + 5, "{line}");
}

#[test]
fn a_recording_has_both_directions_and_no_secret() {
    let home = Home::new();
    let file = home.path("session.jsonl");
    let recorded =
        home.run(&["record", file.to_str().unwrap(), "send", "--new", "R", "say hi, sk-abcdefghijklmnop1234"]);
    let recorded = recorded.ends(0);
    assert!(recorded.out.contains("hi") && recorded.err.contains("recorded to"), "{}", recorded.err);
    let lines: Vec<_> = kitport::rpc::Recording::read(&file).unwrap().map(Result::unwrap).collect();
    let has = |direction, part: &str| lines.iter().any(|line| line.dir == direction && line.line.contains(part));
    assert!(has(kitport::rpc::Direction::Out, "run.start") && has(kitport::rpc::Direction::In, "text_delta"));
    assert!(!std::fs::read_to_string(&file).unwrap().contains("sk-abcdefghijklmnop1234"));
    // Without a command it records the handshake and what doctor asks.
    home.run(&["record", file.to_str().unwrap()]).ends(0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("initialize"));
}

#[test]
fn events_come_as_lines_of_json() {
    let home = Home::new();
    let host = home.host(&[]);
    let events = home.run(&[&host, "send", "--json", "--new", "J", "tool; plan; say x"]).ends(0).json();
    let kinds = kinds(&events);
    for kind in ["run.started", "message.delta", "tool.started", "tool.finished", "plan.updated", "run.finished"] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    for event in &events {
        serde_json::from_value::<kitport::model::Event>(event.clone()).unwrap();
    }
}

#[test]
fn a_run_s_end_is_the_exit_code() {
    let home = Home::new();
    for (script, code) in [("say x", 0), ("fail out of luck", 1), ("end cancelled", 130), ("end interrupted", 5)] {
        home.run(&["send", "--new", "E", script]).ends(code);
    }
    home.run(&["send", "--new", "E", "end evaporated"]).ends(1);
}

#[test]
fn what_a_model_writes_can_not_command_the_terminal() {
    let home = Home::new();
    let sent = home.run(&["send", "--new", "X", "say a\u{1b}[2Jb"]).ends(0);
    assert_eq!(sent.out, "a\u{FFFD}[2Jb\n");
    let shown = home.run(&["show", "last"]).ends(0);
    assert!(!shown.out.contains('\u{1b}'), "{:?}", shown.out);
}

#[test]
fn a_text_comes_from_a_pipe() {
    use std::io::Write;
    let home = Home::new();
    let mut command = home.command(&["send", "--new", "P", "-"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"say piped\n").unwrap();
    assert_eq!(common::ran(child.wait_with_output().unwrap()).ends(0).out, "piped\n");
}
