//! What goes out: lines wait in one buffer until the writer has taken them, always whole lines in the order in which
//! they were pushed. Pushing never waits (it happens under the host's lock); whoever makes lines asks for [`Outbox::room`]
//! first, so that a slow reader slows the agents down instead of filling the memory.

use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kitport::model::ChatId;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::faults::{Faults, Pen, WriteFault};

/// Past this many waiting bytes nobody makes more. Big enough to keep a pipe of 64 KiB busy, small against a chat.
const ROOM_BYTES: usize = 256 * 1024;

/// A buffer that one huge line made larger than this is given back.
const KEEP_BYTES: usize = 4 * 1024 * 1024;

/// How long the host must have been quiet before held-back lines go out: longer than any agent's pause between lines
/// at full speed, shorter than a person would notice.
const IDLE: Duration = Duration::from_millis(20);

/// A session as notifications name it, with the sequence of its newest durable event.
#[derive(Debug)]
pub(crate) struct Tag {
    pub(crate) id: ChatId,
    /// The id as JSON.
    quoted: String,
    /// Written and read under the outbox's lock, so that a transient event always fits the line before it.
    last: AtomicU64,
}

impl Tag {
    pub(crate) fn new(id: ChatId, last: u64) -> Tag {
        let quoted = serde_json::to_string(id.as_str()).expect("a string can be written as JSON");
        Tag { id, quoted, last: AtomicU64::new(last) }
    }
}

/// What a line is, for the faults.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// The answer to the handshake, which no fault touches.
    Handshake,
    Answer,
    Event {
        session: &'a ChatId,
        sequence: u64,
        durable: bool,
    },
    /// A request of the host, or a notification of its own.
    Other,
}

/// Lines that a transaction made, to be pushed when it is committed.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    ends: Vec<(usize, std::sync::Arc<Tag>, u64, u32)>,
}

impl Lines {
    /// Adds a durable event, given as JSON.
    pub(crate) fn event(&mut self, tag: &std::sync::Arc<Tag>, sequence: u64, features: u32, json: &str) {
        self.bytes.extend_from_slice(EVENT_HEAD);
        self.bytes.extend_from_slice(tag.quoted.as_bytes());
        self.bytes.extend_from_slice(b",\"event\":");
        self.bytes.extend_from_slice(json.as_bytes());
        self.bytes.extend_from_slice(b"}}\n");
        self.ends.push((self.bytes.len(), tag.clone(), sequence, features));
    }
}

const EVENT_HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"session_id\":";

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    /// Write what is there, then end.
    finishing: bool,
    /// Nothing is taken any more.
    closed: bool,
    negotiated: u32,
    pen: Option<Box<Pen>>,
    /// Exit with a code when that many events were written.
    exit_at: Option<(u64, i32)>,
    events: u64,
    exit: Option<i32>,
}

impl State {
    fn line(&mut self, kind: Kind<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.closed {
            return;
        }
        let start = self.buffer.len();
        write(&mut self.buffer);
        if let Some(pen) = &mut self.pen {
            pen.touch(&mut self.buffer, start, kind);
        }
        if matches!(kind, Kind::Event { .. })
            && let Some((count, code)) = self.exit_at
        {
            self.events += 1;
            if self.events == count {
                self.exit = Some(code);
                self.closed = true;
            }
        }
    }
}

/// Why the writer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Everything is out.
    All,
    /// The host is to exit now, with this code.
    Exit(i32),
}

/// The buffer between those who make lines and the one who writes them.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    drained: Notify,
}

impl Outbox {
    pub(crate) fn new(faults: &Faults, seed: u64) -> Outbox {
        let state = State { pen: Pen::new(faults, seed), exit_at: faults.exit_at, ..State::default() };
        Outbox { state: Mutex::new(state), filled: Notify::new(), drained: Notify::new() }
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let result = f(&mut self.state.lock().expect("nothing panics while it pushes a line"));
        self.filled.notify_one();
        result
    }

    /// Sets the features whose events go out.
    pub(crate) fn negotiate(&self, features: u32) {
        self.with(|state| state.negotiated = features);
    }

    pub(crate) fn line(&self, kind: Kind<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.with(|state| state.line(kind, write));
    }

    /// Pushes an answer where there is one, then the events of a transaction, with no line between them.
    pub(crate) fn committed(&self, answer: Option<&[u8]>, lines: &Lines) {
        self.with(|state| {
            if let Some(answer) = answer {
                state.line(Kind::Answer, |buffer| buffer.extend_from_slice(answer));
            }
            let mut start = 0;
            for (end, tag, sequence, features) in &lines.ends {
                let bytes = &lines.bytes[start..*end];
                start = *end;
                tag.last.store(*sequence, Ordering::Relaxed);
                if features & !state.negotiated == 0 {
                    let kind = Kind::Event { session: &tag.id, sequence: *sequence, durable: true };
                    state.line(kind, |buffer| buffer.extend_from_slice(bytes));
                }
            }
        });
    }

    /// Pushes transient events of a run while `next` gives their type and data.
    pub(crate) fn transients<'d>(
        &self,
        tag: &Tag,
        run: &str,
        mut next: impl FnMut() -> Option<(&'static str, Piece<'d>)>,
    ) {
        self.with(|state| {
            let sequence = tag.last.load(Ordering::Relaxed);
            while let Some((event_type, data)) = next() {
                let kind = Kind::Event { session: &tag.id, sequence, durable: false };
                state.line(kind, |buffer| {
                    buffer.extend_from_slice(EVENT_HEAD);
                    buffer.extend_from_slice(tag.quoted.as_bytes());
                    write!(buffer, ",\"event\":{{\"sequence\":{sequence},\"type\":\"{event_type}\",\"data\":")
                        .expect("a vector takes every byte");
                    data.write(buffer);
                    writeln!(buffer, ",\"run_id\":\"{run}\",\"durable\":false}}}}}}")
                        .expect("a vector takes every byte");
                });
            }
        });
    }

    /// Waits until there is room for more lines.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.with(|state| state.closed || state.buffer.len() < ROOM_BYTES) {
                return;
            }
            drained.await;
        }
    }

    /// Lets the writer write what is there and end.
    pub(crate) fn finish(&self) {
        self.with(|state| {
            if let Some(pen) = &mut state.pen {
                pen.idle(&mut state.buffer);
            }
            state.finishing = true;
            state.closed = true;
        });
        self.drained.notify_waiters();
    }

    /// Writes lines as they come, until `finish`, an exit or an error.
    pub(crate) async fn write_all<W: AsyncWrite + Unpin>(
        &self,
        mut to: W,
        fault: Option<WriteFault>,
    ) -> io::Result<Written> {
        let mut fault = fault;
        let mut spare = Vec::new();
        loop {
            let (mut full, ending, exit, held) = {
                let mut state = self.state.lock().expect("nothing panics while it pushes a line");
                let full = std::mem::replace(&mut state.buffer, std::mem::take(&mut spare));
                let held = state.pen.as_ref().is_some_and(|pen| pen.holds());
                (full, state.finishing, state.exit, held)
            };
            if full.is_empty() {
                spare = full;
                to.flush().await?;
                if let Some(code) = exit {
                    return Ok(Written::Exit(code));
                }
                if ending {
                    return Ok(Written::All);
                }
                if !held {
                    self.filled.notified().await;
                } else if tokio::time::timeout(IDLE, self.filled.notified()).await.is_err() {
                    let mut state = self.state.lock().expect("nothing panics while it pushes a line");
                    let State { pen, buffer, .. } = &mut *state;
                    if let Some(pen) = pen {
                        pen.idle(buffer);
                    }
                }
                continue;
            }
            match &mut fault {
                None => to.write_all(&full).await?,
                Some(fault) => fault.write(&mut to, &full).await?,
            }
            full.clear();
            if full.capacity() > KEEP_BYTES {
                full = Vec::new();
            }
            spare = full;
            self.drained.notify_waiters();
        }
    }
}

/// The data of a transient event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece<'d> {
    Empty,
    /// `{"text":…}`
    Text(&'d str),
    /// JSON as it is.
    Json(&'d str),
}

impl Piece<'_> {
    fn write(self, buffer: &mut Vec<u8>) {
        match self {
            Piece::Empty => buffer.extend_from_slice(b"{}"),
            Piece::Text(text) => {
                buffer.extend_from_slice(b"{\"text\":");
                serde_json::to_writer(&mut *buffer, text).expect("a string can be written as JSON");
                buffer.push(b'}');
            }
            Piece::Json(json) => buffer.extend_from_slice(json.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_come_out_in_order_and_transients_carry_the_last_sequence() {
        let outbox = Outbox::new(&Faults::default(), 1);
        let tag = Arc::new(Tag::new("s".into(), 4));
        let mut lines = Lines::default();
        lines.event(&tag, 7, 0, "{\"sequence\":7}");
        lines.event(&tag, 9, 2, "{\"sequence\":9}");
        let mut texts = ["a\"", "b"].into_iter();
        outbox.transients(&tag, "r", || texts.next().map(|text| ("text_delta", Piece::Text(text))));
        outbox.committed(Some(b"answer\n"), &lines);
        outbox.transients(&tag, "r", {
            let mut once = Some(("model_request", Piece::Empty));
            move || once.take()
        });
        outbox.finish();
        let mut out = Vec::new();
        assert_eq!(outbox.write_all(&mut out, None).await.unwrap(), Written::All);
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].contains("\"sequence\":4,\"type\":\"text_delta\",\"data\":{\"text\":\"a\\\"\"}"), "{out}");
        assert_eq!(lines[2], "answer");
        assert!(lines[3].ends_with("{\"sequence\":7}}}"), "{out}");
        assert_eq!(lines.len(), 5, "an event of a feature that wasn't negotiated stays away: {out}");
        assert!(
            lines[4]
                .contains("\"sequence\":9,\"type\":\"model_request\",\"data\":{},\"run_id\":\"r\",\"durable\":false")
        );
    }

    #[tokio::test]
    async fn room_waits_for_the_reader() {
        let outbox = Arc::new(Outbox::new(&Faults::default(), 1));
        outbox.line(Kind::Other, |buffer| buffer.resize(ROOM_BYTES + 1, b'x'));
        let waiting = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        let (near, mut far) = tokio::io::duplex(64);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_all(near, None).await }
        });
        let mut read = vec![0; ROOM_BYTES + 1];
        far.read_exact(&mut read).await.unwrap();
        waiting.await.unwrap();
        outbox.finish();
        assert_eq!(writer.await.unwrap().unwrap(), Written::All);
    }
}
