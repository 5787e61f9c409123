//! A host of bytes: the other end of a pipe in this process, as narrow as a real one, for what the reference host would never
//! write. Unlike [`raw_host`](crate::raw_host) it can answer by itself, from the history of one session.

use std::sync::{Arc, Mutex};

use kitport::BubblePaw;
use kitport::bubblepaw::Options;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

/// Bytes that the pipe holds, as the operating system's own do.
const PIPE_BYTES: usize = 64 * 1024;

/// The session that [`History`] knows.
pub const SESSION: &str = "s";

/// A time that the contract takes.
pub const TIME: &str = "2026-01-02T03:04:05Z";

/// A request, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its id.
    pub id: Value,
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// The host's end of a pipe.
#[derive(Debug)]
pub struct ByteHost {
    lines: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl ByteHost {
    /// A pipe: the client's end and the host's.
    pub fn pipe() -> (DuplexStream, ByteHost) {
        let (client, host) = duplex(PIPE_BYTES);
        let (read, writer) = split(host);
        (client, ByteHost { lines: BufReader::new(read), writer })
    }

    /// A backend that has shaken hands with the host, which offers these features.
    pub async fn connect(options: Options, features: &[&str]) -> (BubblePaw, ByteHost) {
        let (client, mut host) = ByteHost::pipe();
        let (reader, writer) = split(client);
        let connect = BubblePaw::connect(reader, writer, options);
        let (backend, ()) = tokio::join!(connect, host.shake_hands(features));
        (backend.expect("the handshake fits the contract"), host)
    }

    /// Answers the handshake.
    pub async fn shake_hands(&mut self, features: &[&str]) {
        let hello = self.request().await.expect("the client says hello");
        assert_eq!(hello.method, "initialize", "nothing else is sent before the handshake");
        self.answer(&hello.id, handshake(features)).await;
    }

    /// The next line with an id and a method; none when the client's side has ended.
    pub async fn request(&mut self) -> Option<Request> {
        loop {
            let message = self.message().await?;
            if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                return Some(Request { id: id.clone(), method: method.to_owned(), params: message["params"].clone() });
            }
        }
    }

    /// The next line, whatever it is; none when the client's side has ended.
    pub async fn message(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).await.expect("a pipe in this process doesn't fail");
        (!line.is_empty()).then(|| serde_json::from_slice(&line).expect("the client writes JSON"))
    }

    /// Writes bytes as they are. A client that is gone is no failure.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
        let _ = self.writer.flush().await;
    }

    /// Writes a value and ends the line.
    pub async fn line(&mut self, value: &Value) {
        self.write(&line(value)).await;
    }

    /// Answers a request.
    pub async fn answer(&mut self, id: &Value, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// Answers a request with an error.
    pub async fn refuse(&mut self, id: &Value, code: i64, message: &str) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})).await;
    }

    /// Writes an event of the session, live.
    pub async fn event(&mut self, event: &Value) {
        self.write(&event_line(event)).await;
    }

    /// Answers every request by the history in the background, until the client's side ends. What is sent to the handle
    /// is written between the answers, in order.
    pub fn serve(self, history: Arc<Mutex<History>>) -> Serving {
        let ByteHost { mut lines, mut writer } = self;
        let (out, mut waiting) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
        let answers = out.clone();
        let reading = async move {
            let mut line = Vec::new();
            loop {
                line.clear();
                match lines.read_until(b'\n', &mut line).await {
                    Ok(read) if read > 0 => {}
                    _ => return,
                }
                let message: Value = serde_json::from_slice(&line).expect("the client writes JSON");
                let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { continue };
                let answer =
                    history.lock().expect("nothing panics while it answers").answer(method, &message["params"]);
                let answer = match answer {
                    Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"),
                    Err(code) => format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":\"not found\"}}}}\n"
                    ),
                };
                if answers.send(answer.into_bytes()).is_err() {
                    return;
                }
            }
        };
        let writing = async move {
            while let Some(bytes) = waiting.recv().await {
                if writer.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        // The end of either is the end of the host: with its input its output ends, too.
        let task = tokio::spawn(async move {
            tokio::select! {
                () = reading => {}
                () = writing => {}
            }
        });
        Serving { out, task }
    }
}

/// A host that answers in the background. Dropping it ends the host.
#[derive(Debug)]
pub struct Serving {
    out: tokio::sync::mpsc::UnboundedSender<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Writes bytes behind what was written before.
    pub fn write(&self, bytes: impl Into<Vec<u8>>) {
        // A client that is gone reads nothing.
        let _ = self.out.send(bytes.into());
    }

    /// Writes an event of the session, live.
    pub fn event(&self, event: &Value) {
        self.write(event_line(event));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a host of one session keeps.
#[derive(Debug, Default)]
pub struct History {
    /// Durable events as JSON, ascending.
    pub events: Vec<String>,
    /// The sequence of the newest.
    pub newest: u64,
    /// The messages, as the JSON of a list.
    pub messages: Option<String>,
    /// Further fields of the state, as JSON beginning with a comma.
    pub more_state: String,
}

impl History {
    /// Keeps a durable event.
    pub fn push(&mut self, event: &Value) {
        self.newest = event["sequence"].as_u64().expect("a durable event has a sequence");
        self.events.push(event.to_string());
    }

    /// The answer to a request as JSON, or an error code.
    pub fn answer(&self, method: &str, params: &Value) -> Result<String, i64> {
        Ok(match method {
            "session.state" => format!(
                "{{\"session\":{},\"sequence\":{},\"messages\":{},\"runs\":[],\"inputs\":[],\"outputs\":[],\"todo\":[]{}}}",
                session(SESSION),
                self.newest,
                self.messages.as_deref().unwrap_or("[]"),
                self.more_state
            ),
            "session.list" => json!({"sessions": [session(SESSION)]}).to_string(),
            "session.open" => json!({"session": session(SESSION)}).to_string(),
            "approval.list" => "{\"approvals\":[]}".to_owned(),
            "events.after" => {
                let after = params["after"].as_u64().unwrap_or(0);
                let limit = params["limit"].as_u64().unwrap_or(1000) as usize;
                let start = self.events.partition_point(|event| sequence_of(event) <= after);
                let page = &self.events[start..(start + limit).min(self.events.len())];
                format!("{{\"events\":[{}],\"has_more\":{}}}", page.join(","), start + page.len() < self.events.len())
            }
            "run.start" => json!({"run_id": "r1"}).to_string(),
            "run.steer" | "run.follow_up" => json!({"input_id": "i1"}).to_string(),
            _ => return Err(-32601),
        })
    }
}

/// Events here begin with their sequence, so that looking for one reads no whole events.
fn sequence_of(event: &str) -> u64 {
    let digits = event.trim_start_matches("{\"sequence\":");
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().unwrap_or(0)
}

/// The answer to the handshake.
pub fn handshake(features: &[&str]) -> Value {
    json!({"protocol_version": "0.1", "host": {"name": "raw", "version": "1"}, "features": features,
        "workspace": {"path": "/w"}})
}

/// A session of the contract.
pub fn session(id: &str) -> Value {
    json!({"session_id": id, "title": "T", "created_at": TIME, "updated_at": TIME})
}

/// A durable event of the session.
pub fn event(sequence: u64, event_type: &str, data: Value) -> Value {
    json!({"sequence": sequence, "type": event_type, "data": data, "run_id": "r1", "at": TIME})
}

/// A transient one.
pub fn transient(sequence: u64, event_type: &str, data: Value) -> Value {
    json!({"sequence": sequence, "type": event_type, "data": data, "run_id": "r1", "durable": false})
}

/// A value as a line.
pub fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The notification of an event of the session.
pub fn event_line(event: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": "event", "params": {"session_id": SESSION, "event": event}}))
}
