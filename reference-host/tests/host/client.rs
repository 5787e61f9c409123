//! A raw client: writes requests, reads lines, keeps what came.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use kitport::bubblepaw::wire::{HarnessEvent, feature};
use serde_json::{Value, json};

/// How long anything is waited for before the test fails: far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    /// Every line that came, in order.
    pub(crate) seen: Vec<Vec<u8>>,
    /// Events that came, as `(session, event)`.
    pub(crate) events: Vec<(String, Value)>,
    /// Other notifications and requests of the host.
    pub(crate) others: Vec<Value>,
    /// Answers that came, by id.
    answers: Vec<Value>,
    /// Every line in both directions, for recordings.
    pub(crate) log: Vec<(&'static str, String)>,
    next_id: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl Client {
    /// Starts the program and leaves it at that.
    pub(crate) fn start(args: &[&str]) -> Client {
        Client::start_command(&["stdio"], args)
    }

    pub(crate) fn start_command(command: &[&str], args: &[&str]) -> Client {
        Client::spawn(
            Command::new(env!("CARGO_BIN_EXE_kitport-host")).args(command).args(args).stderr(Stdio::inherit()),
        )
    }

    pub(crate) fn spawn(command: &mut Command) -> Client {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut from = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match from.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) if line.pop() != Some(b'\n') => return,
                    Ok(_) => {
                        if send.send(line).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        let stdin = child.stdin.take();
        Client {
            child,
            stdin,
            lines,
            seen: Vec::new(),
            events: Vec::new(),
            others: Vec::new(),
            answers: Vec::new(),
            log: Vec::new(),
            next_id: 1,
        }
    }

    /// Starts the program and shakes hands with all features.
    pub(crate) fn ready(args: &[&str]) -> Client {
        let mut client = Client::start(args);
        client.initialize(feature::ALL);
        client
    }

    pub(crate) fn initialize(&mut self, features: &[&str]) -> Value {
        let client = json!({ "name": "raw", "version": "0" });
        self.call("initialize", json!({ "protocol_version": "0.1", "client": client, "features": features })).unwrap()
    }

    /// Ids from here on, so that they are other ones than those of a recording.
    pub(crate) fn next_id_from(&mut self, id: u64) {
        self.next_id = id;
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.log.push(("out", line.to_owned()));
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Sends a request; gives its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Refusal> {
        let place = self.wait("an answer", |client| client.answers.iter().position(|answer| answer["id"] == id));
        let mut answer = self.answers.remove(place);
        match answer.get("error") {
            None => Ok(answer["result"].take()),
            Some(error) => Err(Refusal {
                code: error["code"].as_i64().unwrap(),
                message: error["message"].as_str().unwrap().to_owned(),
                data: error["data"].clone(),
            }),
        }
    }

    /// The code and words of a call that must fail.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let refusal = self.call(method, params.clone());
        let refusal = refusal.expect_err(&format!("{method} {params} was carried out"));
        (refusal.code, refusal.message)
    }

    /// Waits until a look at what came finds something.
    pub(crate) fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&Client) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.take(line),
                Err(error) => {
                    let last: Vec<_> = self.seen.iter().rev().take(12).map(|l| String::from_utf8_lossy(l)).collect();
                    panic!("no {what}: {error}; the last lines, newest first: {last:#?}")
                }
            }
        }
    }

    fn take(&mut self, line: Vec<u8>) {
        self.log.push(("in", String::from_utf8_lossy(&line).into_owned()));
        if let Ok(value) = serde_json::from_slice::<Value>(&line)
            && value.get("jsonrpc").is_some()
        {
            match value["method"].as_str() {
                Some("event") => {
                    let session = value["params"]["session_id"].as_str().unwrap().to_owned();
                    let event = value["params"]["event"].clone();
                    // Whatever is told must be what the contract knows to read.
                    serde_json::from_value::<HarnessEvent>(event.clone()).unwrap();
                    self.events.push((session, event));
                }
                Some(_) => self.others.push(value),
                None => self.answers.push(value),
            }
        }
        self.seen.push(line);
    }

    /// Takes in what came until the host says nothing more: its side is closed.
    pub(crate) fn drain(&mut self) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.take(line),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("the host's side was never closed"),
            }
        }
    }

    /// A new session's id.
    pub(crate) fn open(&mut self) -> String {
        let result = self.call("session.open", json!({})).unwrap();
        result["session"]["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn run(&mut self, session: &str, text: &str) -> String {
        let result = self.call("run.start", json!({ "session_id": session, "text": text })).unwrap();
        result["run_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn state(&mut self, session: &str) -> Value {
        self.call("session.state", json!({ "session_id": session })).unwrap()
    }

    /// Waits for an event of a session that isn't in `events` before `from`.
    pub(crate) fn event_from(&mut self, from: usize, session: &str, event_type: &str) -> Value {
        let mut from = from;
        self.wait(event_type, |client| {
            // Each event is looked at once, however many there are.
            let new = &client.events[from..];
            from = client.events.len();
            let found = new.iter().find(|(of, event)| of == session && event["type"] == event_type);
            found.map(|(_, event)| event.clone())
        })
    }

    pub(crate) fn event(&mut self, session: &str, event_type: &str) -> Value {
        self.event_from(0, session, event_type)
    }

    /// Runs a script to its end; gives the session's events since then.
    pub(crate) fn play(&mut self, session: &str, text: &str) -> Vec<Value> {
        let from = self.events.len();
        self.run(session, text);
        self.event_from(from, session, "session_settled");
        self.events_of(session, from)
    }

    pub(crate) fn events_of(&self, session: &str, from: usize) -> Vec<Value> {
        self.events[from..].iter().filter(|(of, _)| of == session).map(|(_, event)| event.clone()).collect()
    }

    /// All durable events of a session by events.after, in small pages.
    pub(crate) fn replayed(&mut self, session: &str, mut after: u64) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let params = json!({ "session_id": session, "after": after, "limit": 7 });
            let page = self.call("events.after", params).unwrap();
            assert_ne!(page["resync"], true);
            let page_events = page["events"].as_array().unwrap();
            events.extend(page_events.iter().cloned());
            match page["has_more"].as_bool().unwrap() {
                true => after = page_events.last().unwrap()["sequence"].as_u64().unwrap(),
                false => return events,
            }
        }
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes the client's side; gives the exit code, once everything came.
    pub(crate) fn finish(mut self) -> Option<i32> {
        self.close_stdin();
        self.drain();
        self.child.wait().unwrap().code()
    }

    /// Ends the host as kill -9 does, and takes in what it had written.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.drain();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The types of events, in order.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

pub(crate) fn of_type<'e>(events: &'e [Value], event_type: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == event_type).collect()
}

pub(crate) fn durable(events: &[Value]) -> Vec<Value> {
    events.iter().filter(|event| event["durable"] != false).cloned().collect()
}

/// The text that transient events show at the end of each step, checked against its own confirmations.
pub(crate) fn shown(events: &[Value]) -> Vec<String> {
    let (mut steps, mut step, mut open) = (Vec::new(), String::new(), String::new());
    for event in events {
        let text = event["data"]["text"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "text_delta" => open.push_str(text),
            "paragraph" => {
                assert_eq!(text, open, "a paragraph is its deltas");
                step.push_str(&std::mem::take(&mut open));
            }
            "model_request" | "run_finished" => {
                step.push_str(&std::mem::take(&mut open));
                steps.push(std::mem::take(&mut step));
            }
            _ => {}
        }
    }
    // The first request comes before any text.
    steps.remove(0);
    steps
}
