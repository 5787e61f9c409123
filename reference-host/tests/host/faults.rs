//! The faults, each seen from outside.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kitport::bubblepaw::wire::feature;
use serde_json::{Value, json};

use crate::client::{Client, durable, of_type};

/// A session that has seen something of everything.
fn busy(faults: &[&str]) -> (Client, String, Vec<Value>) {
    let mut args = Vec::new();
    for fault in faults {
        args.extend(["--fault", fault]);
    }
    let mut client = Client::ready(&args);
    let session = client.open();
    client.run(&session, "stream 80; tools 30; plan; tool; stream 40");
    // Whatever is dropped or repeated on the way, state tells the end.
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.state(&session)["runs"][0]["status"] != "completed" {
        assert!(Instant::now() < deadline);
    }
    client.close_stdin();
    client.drain();
    let events = client.events_of(&session, 0);
    (client, session, events)
}

fn clean() -> Vec<Value> {
    strip(&busy(&[]).2)
}

/// Events without their times.
fn strip(events: &[Value]) -> Vec<Value> {
    let without = |event: &Value| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().remove("at");
        event
    };
    events.iter().map(without).collect()
}

#[test]
fn noise_stands_between_lines_and_changes_none() {
    let (client, _, events) = busy(&["noise"]);
    assert_eq!(strip(&events), clean());
    let odd = client.seen.iter().filter(|line| serde_json::from_slice::<Value>(line).is_err()).count();
    assert!(odd > 20, "{odd}");
    assert!(client.seen.iter().any(|line| std::str::from_utf8(line).is_err()));
    assert!(client.seen.iter().any(Vec::is_empty));
}

#[test]
fn split_and_joined_writes_carry_the_same_bytes() {
    for fault in ["split", "joined"] {
        assert_eq!(strip(&busy(&[fault]).2), clean(), "{fault}");
    }
}

#[test]
fn durable_notifications_come_twice() {
    let (_, _, events) = busy(&["duplicates"]);
    let (all, mut once) = (durable(&events), durable(&events));
    once.sort_by_key(|event| event["sequence"].as_u64());
    once.dedup();
    assert!(all.len() > once.len() + 20);
    assert!(!all.is_sorted_by_key(|event| event["sequence"].as_u64()), "some come late");
    assert_eq!(strip(&once), durable(&clean()));
    let mut first = Vec::new();
    for event in &events {
        if event["durable"] == false || !first.contains(event) {
            first.push(event.clone());
        }
    }
    assert_eq!(strip(&first), clean(), "transient ones come once");
    let (_, _, events) = busy(&["transient-duplicates"]);
    assert!(of_type(&events, "text_delta").len() > of_type(&clean(), "text_delta").len() + 10);
    assert_eq!(strip(&durable(&events)), durable(&clean()));
}

#[test]
fn answers_overtake_each_other() {
    let mut client = Client::ready(&["--fault", "reorder"]);
    let ids: Vec<u64> = (0..40).map(|_| client.send("session.list", json!({}))).collect();
    for id in &ids {
        client.answer(*id).unwrap();
    }
    let order: Vec<Value> =
        client.seen.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap()["id"].clone()).collect();
    assert!(!order.is_sorted_by_key(|id| id.as_u64()));
}

#[test]
fn events_come_before_the_answer_that_caused_them() {
    let (client, _, events) = busy(&["events-first"]);
    let place = |what: &str| client.seen.iter().position(|line| String::from_utf8_lossy(line).contains(what)).unwrap();
    assert!(place("run_started") < place("\"message_id\":\"msg_1_1\"}"));
    assert_eq!(strip(&events), clean());
}

#[test]
fn dropped_notifications_are_told_and_can_be_read_again() {
    let mut client = Client::ready(&["--fault", "drop"]);
    let session = client.open();
    let run = client.send("run.start", json!({ "session_id": session, "text": "tools 60; stream 50" }));
    client.answer(run).unwrap();
    client.wait("gaps", |client| {
        (client.others.iter().filter(|other| other["method"] == "events.gap").count() > 5).then_some(())
    });
    let gap = client.others[0]["params"].clone();
    assert_eq!(gap["session_id"], session.as_str());
    while client.state(&session)["runs"][0]["status"] != "completed" {}
    let all = client.replayed(&session, 0);
    client.close_stdin();
    client.drain();
    let live = durable(&client.events_of(&session, 0));
    assert!(live.len() < all.len() && live.iter().all(|event| all.contains(event)));
}

#[test]
fn the_future_is_full_of_unknown_things() {
    let (mut client, session, events) = {
        let mut client = Client::ready(&["--fault", "future"]);
        let session = client.open();
        let events = client.play(&session, "plan; stream 40; tool");
        (client, session, events)
    };
    assert!(events.iter().any(|event| event["type"] == "aurora_sighted"));
    assert!(events.iter().any(|event| event["type"] == "aurora_faded" && event["durable"] == false));
    assert!(events.iter().any(|event| event["data"].get("x_future").is_some()));
    assert!(of_type(&client.replayed(&session, 0), "aurora_sighted").len() == 1);
    let state = client.state(&session);
    assert!(state.get("x_future").is_some());
    assert!(state["messages"].as_array().unwrap().iter().any(|message| message["role"] == "narrator"));
    assert_eq!(
        (state["outputs"][0]["kind"].as_str(), state["todo"][3]["status"].as_str()),
        (Some("hologram"), Some("blocked"))
    );
    assert!(client.others.iter().any(|other| other["method"] == "host.weather"));
    let mut client = Client::start(&["--fault", "future"]);
    let result = client.initialize(feature::ALL);
    assert!(result["features"].as_array().unwrap().contains(&json!("telepathy")));
}

#[test]
fn one_line_is_huge() {
    let (client, _, events) = busy(&["big-line=2"]);
    assert_eq!(client.seen.iter().filter(|line| line.len() > 2 * 1024 * 1024).count(), 1);
    assert_eq!(strip(&events).len(), clean().len() + 1);
}

#[test]
fn stderr_is_flooded_before_anything_is_answered() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kitport-host"));
    command.args(["stdio", "--fault", "stderr=3"]).stderr(Stdio::piped());
    let mut client = Client::spawn(&mut command);
    let mut stderr = client.child.stderr.take().unwrap();
    let drained = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stderr, &mut bytes).unwrap();
        bytes.len()
    });
    client.initialize(&[]);
    assert_eq!(client.finish(), Some(0));
    assert!(drained.join().unwrap() >= 3 * 1024 * 1024);
}

#[test]
fn the_host_exits_at_an_event() {
    let mut client = Client::ready(&["--fault", "exit=5@12"]);
    let session = client.open();
    client.send("run.start", json!({ "session_id": session, "text": "tools 100" }));
    client.drain();
    assert_eq!(client.child.wait().unwrap().code(), Some(5));
    assert_eq!(client.events.len(), 12);
}

#[test]
fn a_host_that_hangs_answers_no_more() {
    let mut client = Client::start(&["--fault", "hang=0"]);
    client.send("initialize", json!({}));
    let mut later = Client::ready(&["--fault", "hang=3"]);
    later.open();
    later.call("session.list", json!({})).unwrap();
    later.send("session.list", json!({}));
    std::thread::sleep(Duration::from_millis(150));
    for client in [&mut client, &mut later] {
        client.close_stdin();
        assert!(client.child.try_wait().unwrap().is_none(), "it doesn't end either");
        client.kill();
    }
    assert_eq!((client.seen.len(), later.seen.len()), (0, 3));
}

#[test]
fn a_slow_start_is_late_and_nothing_else() {
    let begun = Instant::now();
    let client = Client::ready(&["--fault", "slow-start=200"]);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn every_run_asks_the_client_first() {
    let mut client = Client::ready(&["--fault", "request"]);
    let session = client.open();
    client.run(&session, "say hi");
    let id = client.wait("a request", |client| client.others.first().map(|request| request["id"].clone()));
    client.write(
        &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" } }).to_string(),
    );
    client.event(&session, "session_settled");
}

#[cfg(unix)]
mod unix {
    use std::io::{BufRead, BufReader};

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;

    #[test]
    fn sigterm_and_the_end_of_stdin_are_ignored() {
        let mut client = Client::ready(&["--fault", "ignore-term"]);
        let pid = Pid::from_child(&client.child);
        kill_process(pid, Signal::TERM).unwrap();
        client.open();
        client.close_stdin();
        std::thread::sleep(Duration::from_millis(150));
        assert!(client.child.try_wait().unwrap().is_none());
        client.kill();

        let mut obeying = Client::ready(&[]);
        kill_process(Pid::from_child(&obeying.child), Signal::TERM).unwrap();
        obeying.drain();
        assert_eq!(obeying.child.wait().unwrap().code(), None);
    }

    #[test]
    fn a_grandchild_outlives_the_host_and_holds_its_pipes() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kitport-host"));
        command.args(["stdio", "--fault", "grandchild"]).stderr(Stdio::piped());
        let mut client = Client::spawn(&mut command);
        let mut told = String::new();
        BufReader::new(client.child.stderr.take().unwrap()).read_line(&mut told).unwrap();
        let number: i32 = told.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let grandchild = Pid::from_raw(number).unwrap();
        client.initialize(&[]);
        client.close_stdin();
        assert_eq!(client.child.wait().unwrap().code(), Some(0));
        test_kill_process(grandchild).unwrap();
        kill_process(grandchild, Signal::KILL).unwrap();
        // Only now does the pipe end.
        client.drain();
    }
}

#[test]
fn a_client_that_reads_nothing_stops_the_agents_not_the_host() {
    let mut client =
        Client::spawn(Command::new(env!("CARGO_BIN_EXE_kitport-host")).args(["stdio"]).stderr(Stdio::inherit()));
    client.initialize(&[]);
    let session = client.open();
    // The client's own thread reads all the time, so a second host is driven with a pipe that nobody reads.
    drop(client);
    let mut child = Command::new(env!("CARGO_BIN_EXE_kitport-host"))
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let initialize = json!({ "id": 1, "method": "initialize", "params": { "protocol_version": "0.1", "client": { "name": "x", "version": "0" }, "features": [] } });
    let open = json!({ "id": 2, "method": "session.open" });
    let start = json!({ "id": 3, "method": "run.start", "params": { "session_id": session, "text": "flood 2000000" } });
    for line in [initialize, open, start] {
        std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(400));
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    if let Some(line) = status.lines().find(|line| line.starts_with("VmRSS")) {
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kib < 64 * 1024, "memory grows while nobody reads: {line}");
    }
    let mut stdout = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut bytes).unwrap();
        bytes.iter().filter(|byte| **byte == b'\n').count()
    });
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(reading.join().unwrap() > 100);
}
