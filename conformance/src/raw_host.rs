//! A host whose every line a test writes itself: it reads the client's requests and answers with the JSON it is given.
//!
//! It knows JSON lines and nothing of the contract, so that a test says exactly what goes over the wire.

use std::collections::VecDeque;
use std::time::Duration;

use kitport::bubblepaw::Options;
use kitport::{BubblePaw, KitError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};

use crate::NEVER;

/// Bytes that each direction of the pipe holds.
const PIPE_BYTES: usize = 1024 * 1024;

/// A request of the client's.
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
pub struct RawHost {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    /// Requests that were read while another one was looked for.
    waiting: VecDeque<Request>,
}

/// The client's end of a pipe.
#[derive(Debug)]
pub struct ClientEnd {
    /// What the host writes.
    pub reader: ReadHalf<DuplexStream>,
    /// What the host reads.
    pub writer: WriteHalf<DuplexStream>,
}

impl RawHost {
    /// A host that nobody speaks with yet.
    pub fn new() -> (RawHost, ClientEnd) {
        let (near, far) = duplex(PIPE_BYTES);
        let (reader, writer) = split(near);
        let lines = BufReader::new(reader).lines();
        let (client_reader, client_writer) = split(far);
        let host = RawHost { lines, writer, waiting: VecDeque::new() };
        (host, ClientEnd { reader: client_reader, writer: client_writer })
    }

    /// A backend on a host that negotiated `features`.
    pub async fn connect(features: &[&str]) -> (BubblePaw, RawHost) {
        RawHost::connect_with(features, RawHost::options()).await
    }

    /// Options for a host that does not go away by itself: nobody waits for it.
    pub fn options() -> Options {
        Options { close_grace: Duration::ZERO, ..Options::default() }
    }

    /// The same, with options.
    pub async fn connect_with(features: &[&str], options: Options) -> (BubblePaw, RawHost) {
        let hello = json!({
            "protocol_version": "0.1",
            "host": {"name": "raw", "version": "1"},
            "features": features,
            "workspace": {"path": "/work", "name": "work"},
        });
        let (backend, host) = RawHost::greet(hello, options).await;
        (backend.expect("the handshake is a good one"), host)
    }

    /// Answers the handshake with `hello`, and gives what came of it.
    pub async fn greet(hello: Value, options: Options) -> (Result<BubblePaw, KitError>, RawHost) {
        let (mut host, client) = RawHost::new();
        let shaking = BubblePaw::connect(client.reader, client.writer, options);
        let answering = async {
            let request = host.asked("initialize").await;
            host.answer(&request, hello).await;
            host
        };
        tokio::join!(shaking, answering)
    }

    /// The next line, whatever it is.
    pub async fn next_line(&mut self) -> Value {
        let line = tokio::time::timeout(NEVER, self.lines.next_line()).await.expect("the client asks in time");
        let line = line.expect("the pipe is whole").expect("the client is there");
        let message: Value = serde_json::from_str(&line).expect("the client writes JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    async fn read(&mut self) -> Request {
        let mut message = self.next_line().await;
        Request {
            id: message["id"].take(),
            method: message["method"].as_str().expect("a request has a method").to_owned(),
            params: message["params"].take(),
        }
    }

    /// The next request of `method`; others that come before it wait for their turn.
    pub async fn asked(&mut self, method: &str) -> Request {
        if let Some(at) = self.waiting.iter().position(|request| request.method == method) {
            return self.waiting.remove(at).expect("it was just found");
        }
        loop {
            let request = self.read().await;
            if request.method == method {
                return request;
            }
            self.waiting.push_back(request);
        }
    }

    /// The next request of all.
    pub async fn next(&mut self) -> Request {
        match self.waiting.pop_front() {
            Some(request) => request,
            None => self.read().await,
        }
    }

    /// The next request of all is this one.
    pub async fn expect(&mut self, method: &str, params: Value) -> Request {
        let request = self.next().await;
        assert_eq!((request.method.as_str(), &request.params), (method, &params));
        request
    }

    /// Answers a request.
    pub async fn answer(&mut self, request: &Request, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": request.id, "result": result}).to_string()).await;
    }

    /// Refuses a request.
    pub async fn refuse(&mut self, request: &Request, error: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": request.id, "error": error}).to_string()).await;
    }

    /// Expects this request and answers it.
    pub async fn serve(&mut self, method: &str, params: Value, result: Value) {
        let request = self.expect(method, params).await;
        self.answer(&request, result).await;
    }

    /// Tells something without being asked.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// An event of a session.
    pub async fn event(&mut self, session: &str, event: Value) {
        self.notify("event", json!({"session_id": session, "event": event})).await;
    }

    /// Writes a line as it is.
    pub async fn line(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.expect("the client reads");
        self.writer.write_all(b"\n").await.expect("the client reads");
    }

    /// Checks that the client sent nothing up to now but what was taken: what it sends next comes next.
    pub async fn nothing_came(&mut self, backend: &BubblePaw) {
        let probe = backend.set_config("probe", json!(true));
        let answering = self.serve("config.set", json!({"key": "probe", "value": true}), json!({}));
        let (probed, ()) = tokio::join!(probe, answering);
        probed.expect("the probe is answered");
    }

    /// Closes the host's output, as a process that ends does.
    pub async fn hang_up(mut self) {
        self.writer.shutdown().await.expect("the pipe is whole");
    }
}

/// The outcome of a call beside what the host does meanwhile.
pub async fn while_host<T>(call: impl Future<Output = T>, host: impl Future<Output = ()>) -> T {
    tokio::time::timeout(NEVER, async { tokio::join!(call, host).0 }).await.expect("the call ends in time")
}

/// A result as JSON: what came, or the error's JSON form under `error`.
pub fn json_of<T: serde::Serialize>(result: Result<T, KitError>) -> Value {
    match result {
        Ok(value) => json!(value),
        Err(error) => json!({"error": error}),
    }
}
