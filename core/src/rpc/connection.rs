//! A connection's tasks: one reads and hands out, one writes, one drains stderr; and its end, which is told once.
//!
//! What was read before the end is handed out before the end. What was read before an answer is handed out before the
//! answer. Every call that waits is told the end, and every later one too.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::ChildStderr;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::coop::{Unconstrained, unconstrained};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::calls::{Calls, Fate};
use super::counters::CounterCells;
use super::error::{Ended, ExitReport};
use super::framing::{Frame, Framer};
use super::head::{Head, read_head};
use super::message::{Answer, Message, Notifications, read_text};
use super::outbox::Outbox;
use super::process::{Patience, Process};
use super::raw_result::RawResult;
use super::recorder::{Recorder, Written};
use super::recording::Direction;
use super::redaction::Redactor;
use super::stderr_tail::StderrTail;

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// How much is handed out until those that it was handed to get their turn: on one core they would fall behind else,
/// and the events of a whole pipe would pile up between them and the reading task.
const TURN_BYTES: usize = READ_BYTES;

/// How long the rest of the pipes is read when the process has gone: a stranger may hold their other ends.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// How long the process may take to go after its stdout ended, until the end is told without its exit code.
const EXIT_TIME: Duration = Duration::from_millis(250);

/// How long the reason is waited for when writing failed.
const WRITE_FAILED_TIME: Duration = Duration::from_secs(1);

/// A line of stderr longer than this is recorded as its beginning.
const RECORDED_STDERR_LINE_BYTES: usize = 64 * 1024;

/// Where notifications and the end go. Called from the reading task: what blocks here blocks the connection.
pub trait Inbound<N: Notifications>: Send + 'static {
    /// Notifications, in order: all that one read gave. What is left in `batch` is dropped.
    fn notifications(&mut self, batch: &mut Vec<N::Item>);

    /// A notification of interest whose parameters don't fit. They are the host's own: not for logs.
    fn malformed(&mut self, method: &str, params: Option<&RawValue>);

    /// Something was over the line limit and may have been a notification.
    fn oversize(&mut self);

    /// The connection has ended. Called once, after everything that was read.
    fn ended(&mut self, ended: &Ended);
}

/// What all parts of a connection share.
pub(super) struct Connection {
    pub(super) outbox: Outbox,
    pub(super) calls: Calls,
    pub(super) counters: CounterCells,
    pub(super) next_id: AtomicU64,
    pub(super) process: Option<Process>,
    pub(super) recorded: Option<Written>,
    patience: Patience,
    closing: watch::Sender<bool>,
    write_failed: watch::Sender<bool>,
    /// Whatever lives for this connection holds a receiver of it.
    alive: watch::Sender<()>,
}

/// What a connection is made of.
pub(super) struct Parts {
    pub(super) runtime: Handle,
    pub(super) recorder: Option<Recorder>,
    pub(super) patience: Patience,
    pub(super) line_limit: usize,
    pub(super) redactor: Redactor,
    pub(super) alive: watch::Sender<()>,
    pub(super) process: Option<(Process, ChildStderr)>,
}

impl Connection {
    pub(super) fn start<N, I>(
        reader: impl AsyncRead + Send + 'static,
        writer: impl tokio::io::AsyncWrite + Send + 'static,
        inbound: I,
        parts: Parts,
    ) -> Arc<Connection>
    where
        N: Notifications,
        I: Inbound<N>,
    {
        let (write_failed, _) = watch::channel(false);
        let (process, stderr) = parts.process.unzip();
        let connection = Arc::new(Connection {
            outbox: Outbox::new(writer, parts.runtime.clone(), parts.recorder.clone(), write_failed.clone()),
            calls: Calls::default(),
            counters: CounterCells::default(),
            next_id: AtomicU64::new(1),
            process,
            recorded: parts.recorder.as_ref().map(Recorder::watch),
            patience: parts.patience,
            closing: watch::Sender::new(false),
            write_failed,
            alive: parts.alive,
        });
        let tail = StderrTail::default();
        let (drained, draining) = watch::channel(());
        if let Some(stderr) = stderr {
            let drain = drain(stderr, tail.clone(), parts.recorder.clone(), connection.draining_is_over());
            let alive = connection.alive.subscribe();
            parts.runtime.spawn(async move {
                drain.await;
                drop((draining, alive));
            });
        }
        let dispatch = Dispatch {
            inbound,
            batch: Vec::new(),
            connection: Arc::clone(&connection),
            recorder: parts.recorder,
            ended: false,
            _alive: connection.alive.subscribe(),
        };
        let reading =
            Reading { framer: Framer::new(parts.line_limit), tail, redactor: parts.redactor, drained, dispatch };
        parts.runtime.spawn(reading.run(Box::pin(reader)));
        let writing =
            Writing { connection: Arc::clone(&connection), done: false, _alive: connection.alive.subscribe() };
        parts.runtime.spawn(writing.run());
        let watching = (Arc::clone(&connection), connection.alive.subscribe());
        parts.runtime.spawn(async move { watching.0.calls.watch_deadlines().await });
        connection
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins the end from this side: calls are ended, the host's stdin is closed, and then its process is ended.
    pub(super) fn close(&self) {
        if self.closing.send_replace(true) {
            return;
        }
        let unsent = self.outbox.finish();
        self.calls.end(Ended::Closed, &unsent);
        if let Some(process) = &self.process {
            process.end(self.patience);
        }
    }

    /// Waits until nothing lives for this connection any more.
    pub(super) async fn gone(&self) {
        self.alive.closed().await;
        if let Some(recorded) = &self.recorded {
            recorded.clone().wait().await;
        }
    }

    /// Ends what is left, when the reading side has.
    fn end(&self, ended: Ended) -> Ended {
        let unsent = self.outbox.abort();
        let ended = self.calls.end(ended, &unsent);
        if let Some(process) = &self.process {
            process.end(self.patience);
        }
        ended
    }

    /// Waits until it is no use to read stdout on.
    fn reading_is_over(&self) -> impl Future<Output = ()> + Send + use<> {
        let over = self.draining_is_over();
        let mut write_failed = self.write_failed.subscribe();
        async move {
            let stuck = async move {
                let _ = write_failed.wait_for(|failed| *failed).await;
                sleep(WRITE_FAILED_TIME).await;
            };
            tokio::select! {
                () = over => {}
                () = stuck => {}
            }
        }
    }

    /// Waits until nothing can come any more that is of use.
    fn draining_is_over(&self) -> impl Future<Output = ()> + Send + use<> {
        let exited = self.process.as_ref().map(Process::exited);
        let mut closing = self.closing.subscribe();
        // A process is ended by then, and its exit ends the reading before that.
        let last = match self.process {
            Some(_) => self.patience.after_eof + self.patience.after_request + DRAIN_TIME * 2,
            None => self.patience.after_eof,
        };
        async move {
            let gone = async move {
                match exited {
                    Some(exited) => drop(exited.await),
                    None => std::future::pending().await,
                }
                sleep(DRAIN_TIME).await;
            };
            let closed = async move {
                let _ = closing.wait_for(|closing| *closing).await;
                sleep(last).await;
            };
            tokio::select! {
                () = gone => {}
                () = closed => {}
            }
        }
    }
}

/// The writing task. Dropped in the middle, because the runtime ended, it still closes the host's stdin.
struct Writing {
    connection: Arc<Connection>,
    done: bool,
    _alive: watch::Receiver<()>,
}

impl Writing {
    async fn run(mut self) {
        self.connection.outbox.run().await;
        self.done = true;
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.done {
            self.connection.end(Ended::Closed);
        }
    }
}

/// The reading task.
struct Reading<N: Notifications, I: Inbound<N>> {
    framer: Framer,
    tail: StderrTail,
    redactor: Redactor,
    /// Closed when stderr has ended.
    drained: watch::Sender<()>,
    dispatch: Dispatch<N, I>,
}

impl<N: Notifications, I: Inbound<N>> Reading<N, I> {
    async fn run<R: AsyncRead>(mut self, mut reader: Pin<Box<R>>) {
        let connection = Arc::clone(&self.dispatch.connection);
        {
            let mut over = only_when_woken(connection.reading_is_over());
            let mut chunk = vec![0; READ_BYTES];
            let mut handed_bytes = 0;
            loop {
                if handed_bytes >= TURN_BYTES {
                    handed_bytes = 0;
                    tokio::select! {
                        biased;
                        _ = over.next() => break,
                        () = yield_now() => {}
                    }
                }
                // A host that never pauses is stopped too: from time to time the runtime makes a read wait.
                let read = tokio::select! {
                    biased;
                    read = reader.read(&mut chunk) => read,
                    _ = over.next() => break,
                };
                match read {
                    Ok(0) => {
                        self.finish();
                        break;
                    }
                    Ok(read) => {
                        if self.take(&chunk[..read]) {
                            handed_bytes += read;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        tracing::debug!(target: "kitport::rpc", outcome = ?error.kind(), "reading from the host failed");
                        self.finish();
                        break;
                    }
                }
            }
        }
        drop(reader);
        let ended = self.how_it_ended().await;
        self.dispatch.end(ended);
    }

    /// True: there were notifications in it.
    fn take(&mut self, chunk: &[u8]) -> bool {
        let mut frames = self.framer.feed(chunk);
        while let Some(frame) = frames.next() {
            self.dispatch.frame(frame);
        }
        self.dispatch.flush()
    }

    /// A host that goes may leave its last line without an end.
    fn finish(&mut self) {
        if let Some(frame) = self.framer.finish() {
            self.dispatch.frame(frame);
        }
        self.dispatch.flush();
    }

    async fn how_it_ended(&mut self) -> Ended {
        let connection = &self.dispatch.connection;
        if *connection.closing.borrow() {
            return Ended::Closed;
        }
        let mut report = ExitReport::default();
        if let Some(process) = &connection.process {
            if let Ok(exit) = timeout(EXIT_TIME, process.exited()).await {
                (report.exit_code, report.signal) = (exit.exit_code, exit.signal);
                let _ = timeout(DRAIN_TIME, self.drained.closed()).await;
            }
            report.stderr_tail = self.tail.text(&self.redactor);
        }
        Ended::Exited(report)
    }
}

/// Hands out what was read.
struct Dispatch<N: Notifications, I: Inbound<N>> {
    inbound: I,
    batch: Vec<N::Item>,
    connection: Arc<Connection>,
    recorder: Option<Recorder>,
    ended: bool,
    /// Last, so that it is dropped last.
    _alive: watch::Receiver<()>,
}

impl<N: Notifications, I: Inbound<N>> Dispatch<N, I> {
    fn frame(&mut self, frame: Frame<'_>) {
        if let Some(recorder) = &self.recorder {
            match &frame {
                Frame::Line(line) => recorder.line(Direction::In, line),
                Frame::Large(line) => recorder.line(Direction::In, line),
                Frame::Oversize { head } => recorder.oversize(Direction::In, head),
            }
        }
        match frame {
            Frame::Line(line) => match std::str::from_utf8(line) {
                Ok(line) => self.message(read_text::<N>(line), |at| RawResult::from(&line[at])),
                Err(_) => self.noise(),
            },
            Frame::Large(line) => match String::from_utf8(line) {
                Ok(line) => self.message(read_text::<N>(&line), |at| RawResult::within(line, at)),
                Err(_) => self.noise(),
            },
            Frame::Oversize { head } => self.oversize(head),
        }
    }

    fn message(&mut self, message: Message<N::Item>, result: impl FnOnce(Range<usize>) -> RawResult) {
        match message {
            Message::Notification(item) => self.batch.push(item),
            Message::Uninteresting => {}
            Message::Answer { id, answer } => {
                let fate = match answer {
                    Answer::Result(at) => Fate::Result(result(at)),
                    Answer::Error(error) => Fate::Error(error),
                    Answer::Unreadable => Fate::Unreadable,
                };
                self.complete(id, fate);
            }
            Message::Malformed { method, params } => {
                self.connection.counters.malformed.add_one();
                self.flush();
                self.inbound.malformed(&method, params.as_deref());
            }
            Message::Request { id } => {
                self.connection.counters.host_requests.add_one();
                let reply = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{{\"code\":-32601,\"message\":\"method not found\"}}}}\n",
                    id.get()
                );
                self.connection.outbox.push_reply(reply.into_bytes());
            }
            Message::Noise => self.noise(),
        }
    }

    fn noise(&self) {
        self.connection.counters.skipped_lines.add_one();
    }

    fn oversize(&mut self, head: &[u8]) {
        self.connection.counters.oversize.add_one();
        match read_head(head) {
            Head::Answer(id) => self.complete(Some(id), Fate::Oversize),
            Head::StrangeAnswer => self.connection.counters.unknown_ids.add_one(),
            Head::Call | Head::Unknown => {
                self.flush();
                self.inbound.oversize();
            }
        }
    }

    fn complete(&mut self, id: Option<u64>, fate: Fate) {
        // What came before the answer is handed out before it.
        self.flush();
        if !id.is_some_and(|id| self.connection.calls.complete(id, fate)) {
            self.connection.counters.unknown_ids.add_one();
        }
    }

    /// True: there was something to hand out.
    fn flush(&mut self) -> bool {
        if self.batch.is_empty() {
            return false;
        }
        self.inbound.notifications(&mut self.batch);
        self.batch.clear();
        true
    }

    fn end(&mut self, ended: Ended) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let ended = self.connection.calls.ended().unwrap_or(ended);
        self.inbound.ended(&ended);
        self.connection.end(ended);
    }
}

impl<N: Notifications, I: Inbound<N>> Drop for Dispatch<N, I> {
    fn drop(&mut self) {
        // The task was dropped in the middle: the runtime ended, or the handler panicked and can't be asked again.
        if std::thread::panicking() {
            self.connection.end(Ended::Closed);
        } else {
            self.end(Ended::Closed);
        }
    }
}

/// A future that costs next to nothing to ask while nothing happened to it, and that no budget of its task holds up.
fn only_when_woken<F: Future>(future: F) -> FuturesUnordered<Unconstrained<F>> {
    FuturesUnordered::from_iter([unconstrained(future)])
}

/// Reads stderr to its end, whatever comes: a host must never wait for somebody to read its log.
async fn drain(
    mut stderr: ChildStderr,
    tail: StderrTail,
    recorder: Option<Recorder>,
    over: impl Future<Output = ()> + Send,
) {
    let mut over = only_when_woken(over);
    let mut chunk = vec![0; READ_BYTES];
    let mut lines = recorder.map(|recorder| (recorder, Framer::new(RECORDED_STDERR_LINE_BYTES)));
    loop {
        let read = tokio::select! {
            biased;
            read = stderr.read(&mut chunk) => read,
            _ = over.next() => break,
        };
        let read = match read {
            Ok(0) => break,
            Ok(read) => &chunk[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        tail.push(read);
        if let Some((recorder, framer)) = &mut lines {
            let mut frames = framer.feed(read);
            while let Some(frame) = frames.next() {
                record_stderr(recorder, &frame);
            }
        }
    }
    if let Some((recorder, framer)) = &mut lines
        && let Some(frame) = framer.finish()
    {
        record_stderr(recorder, &frame);
    }
}

fn record_stderr(recorder: &Recorder, frame: &Frame<'_>) {
    match frame {
        Frame::Line(line) => recorder.line(Direction::Err, line),
        Frame::Large(line) => recorder.line(Direction::Err, line),
        Frame::Oversize { head } => recorder.oversize(Direction::Err, head),
    }
}
