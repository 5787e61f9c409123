//! A recorded connection, played back as a host.

use std::io::Write;

use serde_json::{Value, json};

use crate::client::Client;

/// Records a session as a client would, with times of a thousandth of a second.
fn recording(client: &Client) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", json!({ "kitportRecording": 1, "at": "2026-01-01T00:00:00Z" })).unwrap();
    for (n, (dir, line)) in client.log.iter().enumerate() {
        writeln!(file, "{}", json!({ "at": "2026-01-01T00:00:00Z", "t": n * 1000, "dir": dir, "line": line })).unwrap();
    }
    file.flush().unwrap();
    file
}

#[test]
fn a_recording_plays_as_it_was() {
    let mut live = Client::ready(&["--fault", "noise"]);
    let session = live.open();
    live.run(&session, "stream 30; approve");
    let asked = live.event(&session, "approval_requested");
    let before = live.state(&session);
    let id = asked["data"]["approval"]["approval_id"].clone();
    live.call("approval.decide", json!({ "approval_id": id, "decision": "approve" })).unwrap();
    live.event(&session, "session_settled");
    let after = live.state(&session);
    let file = recording(&live);
    let path = file.path().to_str().unwrap();
    for pace in [&["--at-once"][..], &["--speed", "20"], &[]] {
        let mut args = vec![path];
        args.extend(pace);
        let mut played = Client::start_command(&["replay"], &args);
        played.next_id_from(1000);
        played.initialize(&["approvals"]);
        assert_eq!(played.open(), session);
        played.run(&session, "anything");
        assert_eq!(played.event(&session, "approval_requested"), asked);
        assert_eq!(played.state(&session), before);
        assert!(!played.events.iter().any(|(_, event)| event["type"] == "approval_resolved"));
        played.call("approval.decide", json!({ "approval_id": id, "decision": "approve" })).unwrap();
        played.event(&session, "session_settled");
        assert_eq!(played.events, live.events);
        assert_eq!(played.state(&session), after);
        assert_eq!(played.state(&session), after, "a read may be asked as often as one likes");
        let missed = played.replayed_whole(&session, asked["sequence"].as_u64().unwrap());
        assert!(missed.iter().any(|event| event["type"] == "run_finished"));
        let (code, message) = played.refused("session.rename", json!({ "session_id": session, "title": "x" }));
        assert!(code == -32000 && message.contains("not found in the recording"), "{message}");
        assert_eq!(played.finish(), Some(0));
    }
}

#[test]
fn what_cannot_be_played_is_told() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{{}}").unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    for path in [path.as_str(), "/no/such/recording"] {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_kitport-host")).args(["replay", path]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains(path));
    }
}

impl Client {
    /// Durable events after a sequence, in one page.
    fn replayed_whole(&mut self, session: &str, after: u64) -> Vec<Value> {
        let page = self.call("events.after", json!({ "session_id": session, "after": after, "limit": 1000 })).unwrap();
        page["events"].as_array().unwrap().clone()
    }
}
