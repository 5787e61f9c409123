//! A connection to a host, and the calls on it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::calls::Fate;
use super::connection::{Connection, Inbound, Parts};
use super::counters::Counters;
use super::error::{Ended, RpcError};
use super::message::Notifications;
use super::process::{HostCommand, Patience, Pipes, Process};
use super::raw_result::RawResult;
use super::recorder::Recorder;
use super::redaction::Redactor;
use super::spawn_error::SpawnError;

/// How long a line may be, unless said otherwise.
const LINE_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// How long an answer may take, unless said otherwise.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a call waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timeout {
    /// As the connection's options say.
    #[default]
    Default,
    /// This long, from when the call was made.
    After(Duration),
    /// Until it comes, or the connection ends.
    Never,
}

/// What a connection is set up with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The runtime that the connection's tasks run on: one with I/O and time.
    pub runtime: Handle,
    /// How long a line may be, without its end. Longer ones are skipped.
    pub line_limit_bytes: usize,
    /// How long an answer may take; `None` is for ever.
    pub call_timeout: Option<Duration>,
    /// How long a host gets to end.
    pub patience: Patience,
    /// Records both directions.
    pub recorder: Option<Recorder>,
}

impl ClientOptions {
    /// The defaults: lines up to 64 MiB, answers within 60 s, an end within 3 s, no recording.
    pub fn new(runtime: Handle) -> Self {
        ClientOptions {
            runtime,
            line_limit_bytes: LINE_LIMIT_BYTES,
            call_timeout: Some(CALL_TIMEOUT),
            patience: Patience::default(),
            recorder: None,
        }
    }
}

/// A connection to a host. Cheap to clone; when the last clone is dropped the connection is closed in the background.
#[derive(Clone)]
pub struct Client {
    owner: Arc<Owner>,
}

/// Closes the connection with the last client, and with the last call that is under way.
struct Owner {
    connection: Arc<Connection>,
    call_timeout: Option<Duration>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.connection.close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("pid", &self.pid()).field("ended", &self.ended()).finish_non_exhaustive()
    }
}

impl Client {
    /// Speaks over a pair of streams.
    pub fn start<N: Notifications>(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
        inbound: impl Inbound<N>,
        options: ClientOptions,
    ) -> Client {
        let redactor = Redactor::for_variables(std::iter::empty::<(&str, String)>());
        if let Some(recorder) = &options.recorder {
            recorder.start(None, &redactor);
        }
        Client::begin(reader, writer, inbound, options, redactor, watch::Sender::new(()), None)
    }

    /// Starts a host and speaks over its stdin and stdout.
    pub async fn spawn<N: Notifications>(
        command: &HostCommand,
        inbound: impl Inbound<N>,
        options: ClientOptions,
    ) -> Result<Client, SpawnError> {
        let redactor = command.redactor();
        let alive = watch::Sender::new(());
        let (process, Pipes { stdin, stdout, stderr }) =
            Process::spawn(command, &options.runtime, alive.subscribe()).await?;
        if let Some(recorder) = &options.recorder {
            recorder.start(Some(command.program().display().to_string()), &redactor);
        }
        Ok(Client::begin(stdout, stdin, inbound, options, redactor, alive, Some((process, stderr))))
    }

    fn begin<N: Notifications>(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
        inbound: impl Inbound<N>,
        options: ClientOptions,
        redactor: Redactor,
        alive: watch::Sender<()>,
        process: Option<(Process, tokio::process::ChildStderr)>,
    ) -> Client {
        let call_timeout = options.call_timeout;
        let parts = Parts {
            runtime: options.runtime,
            recorder: options.recorder,
            patience: options.patience,
            line_limit: options.line_limit_bytes,
            redactor,
            alive,
            process,
        };
        let connection = Connection::start(reader, writer, inbound, parts);
        Client { owner: Arc::new(Owner { connection, call_timeout }) }
    }

    /// Calls a method and gives its result as it was written.
    ///
    /// The request is written when the call is first polled. Dropping the call abandons the answer; where the request
    /// was not begun to be written, it never is.
    pub fn call<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        timeout: Timeout,
    ) -> impl Future<Output = Result<RawResult, RpcError>> + Send + use<P> {
        let start = Instant::now();
        let owner = Arc::clone(&self.owner);
        let id = owner.connection.next_id();
        let frame = frame(id, method, params);
        let method = method.to_owned();
        let timeout = match timeout {
            Timeout::Default => owner.call_timeout,
            Timeout::After(time) => Some(time),
            Timeout::Never => None,
        };
        async move {
            let result = match frame {
                Ok(frame) => call(&owner.connection, id, &method, frame, start, timeout).await,
                Err(_) => Err(RpcError::Unwritable { method: method.clone() }),
            };
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
            let outcome = result.as_ref().map_or_else(RpcError::code, |_| "ok");
            tracing::debug!(target: "kitport::rpc", method, id, micros, outcome, "call");
            result
        }
    }

    /// Calls a method and reads its result.
    pub fn call_as<R: DeserializeOwned, P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        timeout: Timeout,
    ) -> impl Future<Output = Result<R, RpcError>> + Send + use<R, P> {
        let call = self.call(method, params, timeout);
        let method = method.to_owned();
        async move {
            let result = call.await?;
            serde_json::from_str(result.get()).map_err(|_| RpcError::Unreadable { method })
        }
    }

    /// What the connection passed over.
    pub fn counters(&self) -> Counters {
        self.owner.connection.counters.read()
    }

    /// The process id of a host that was started here.
    pub fn pid(&self) -> Option<u32> {
        self.owner.connection.process.as_ref().map(Process::id)
    }

    /// How the connection ended, where it has.
    pub fn ended(&self) -> Option<Ended> {
        self.owner.connection.calls.ended()
    }

    /// How many calls wait for an answer.
    pub fn calls_waiting(&self) -> usize {
        self.owner.connection.calls.waiting()
    }

    /// Closes the connection and waits until nothing of it is left: no task, no thread, no process.
    ///
    /// Calls that wait fail at once. The host's stdin ends; it gets time to go, is asked to, and is killed at last. Safe
    /// to call again, and from several tasks.
    pub async fn close(&self) {
        self.owner.connection.close();
        self.owner.connection.gone().await;
    }

    /// Begins what [`Client::close`] does and doesn't wait.
    pub fn shutdown(&self) {
        self.owner.connection.close();
    }
}

/// The request, as it is written.
fn frame<P: Serialize + ?Sized>(id: u64, method: &str, params: &P) -> Result<Vec<u8>, serde_json::Error> {
    let mut frame = Vec::with_capacity(128);
    frame.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    serde_json::to_writer(&mut frame, &id)?;
    frame.extend_from_slice(b",\"method\":");
    serde_json::to_writer(&mut frame, method)?;
    let without = frame.len();
    frame.extend_from_slice(b",\"params\":");
    let from = frame.len();
    serde_json::to_writer(&mut frame, params)?;
    // JSON-RPC knows no null parameters, only absent ones.
    if &frame[from..] == b"null" {
        frame.truncate(without);
    }
    frame.extend_from_slice(b"}\n");
    Ok(frame)
}

/// Leaves nothing behind, however its call ends.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
    done: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.connection.calls.leave(self.id);
            self.connection.outbox.withdraw(self.id);
        }
    }
}

async fn call(
    connection: &Connection,
    id: u64,
    method: &str,
    frame: Vec<u8>,
    start: Instant,
    timeout: Option<Duration>,
) -> Result<RawResult, RpcError> {
    let deadline = timeout.and_then(|timeout| start.checked_add(timeout));
    // Entered before it is written: the answer may be here before the write returns.
    let fate = connection.calls.enter(id, deadline).map_err(|ended| RpcError::ended(ended, false))?;
    let mut waiting = Waiting { connection, id, done: false };
    if !connection.outbox.push_call(id, frame) {
        // Whoever closed the outbox is about to end the calls, this one among them, and knows why.
        let ended = match fate.await {
            Ok(Fate::Ended { ended, .. }) => ended,
            _ => Ended::Closed,
        };
        return Err(RpcError::ended(ended, false));
    }
    let fate = fate.await;
    waiting.done = true;
    match fate {
        Ok(Fate::Result(result)) => Ok(result),
        Ok(Fate::Error(error)) => Err(RpcError::answered(method, error)),
        Ok(Fate::Unreadable) => Err(RpcError::Unreadable { method: method.to_owned() }),
        Ok(Fate::Oversize) => Err(RpcError::Oversize { method: method.to_owned() }),
        Ok(Fate::Late) => {
            let sent = !connection.outbox.withdraw(id);
            Err(RpcError::Timeout { method: method.to_owned(), sent })
        }
        Ok(Fate::Ended { ended, sent }) => Err(RpcError::ended(ended, sent)),
        // The table never drops a call without its fate.
        Err(_) => Err(RpcError::Closed { sent: true }),
    }
}
