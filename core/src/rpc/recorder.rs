//! Writes both directions of a connection to a file, secrets masked: what is attached to a report.
//!
//! The connection must never wait for a disk. Lines go through a bounded queue to a thread of their own; where the queue
//! is full or the disk fails, lines are dropped and counted, and the connection goes on.
//!
//! Each line is masked by itself. A secret that is streamed in pieces over several lines, as a model's text is, is not
//! masked: whoever shares a recording looks it through first.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use super::recording::{Direction, Missing, RECORDING_VERSION, Recorded, RecordingHeader};
use super::redaction::Redactor;

/// How many lines may wait for the disk.
const QUEUE_LINES: usize = 16 * 1024;

/// How many bytes may wait for the disk.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// Records connections. Cheap to clone: all clones write to the same place. It ends with its last clone.
///
/// Secrets are masked line by line: one that is streamed in pieces over several lines is not masked. What was said is in
/// it, too, so look it through before you share it.
#[derive(Clone)]
pub struct Recorder {
    queue: SyncSender<Entry>,
    counts: Arc<Counts>,
    written: watch::Receiver<u64>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Counts {
    queued: AtomicU64,
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// Waits for what was recorded, without keeping the recorder alive.
#[derive(Clone)]
pub(super) struct Written {
    counts: Arc<Counts>,
    written: watch::Receiver<u64>,
}

enum Entry {
    Start { header: RecordingHeader, redactor: Box<Redactor> },
    Line { at: Timestamp, direction: Direction, bytes: Vec<u8>, oversize: bool },
}

impl Recorder {
    /// Records to a new file, which only this user may read. A file that is there already is replaced.
    pub fn to_file(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Recorder::to_writer(options.open(path)?)
    }

    /// Records to anything.
    pub fn to_writer(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, entries) = sync_channel(QUEUE_LINES);
        let counts = Arc::new(Counts::default());
        let (progress, written) = watch::channel(0);
        let thread_counts = Arc::clone(&counts);
        thread::Builder::new().name("kitport-recorder".into()).spawn(move || {
            Disk { out: BufWriter::new(writer), failed: false, told: 0, counts: thread_counts }
                .run(&entries, &progress);
        })?;
        Ok(Recorder { queue, counts, written })
    }

    /// How many lines were dropped, because the disk was full or too slow.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all that was recorded before is on its way to the disk.
    pub async fn flush(&self) {
        self.watch().wait().await;
    }

    pub(super) fn watch(&self) -> Written {
        Written { counts: Arc::clone(&self.counts), written: self.written.clone() }
    }

    /// Begins a connection.
    pub(super) fn start(&self, program: Option<String>, redactor: &Redactor) {
        let at = format!("{:.6}", Timestamp::now());
        let program = program.map(|program| redactor.mask(&program).into_owned());
        let header = RecordingHeader { version: RECORDING_VERSION, at, program };
        // Without its header and redactor nothing of the connection could be written: this one may wait.
        if self.queue.send(Entry::Start { header, redactor: Box::new(redactor.clone()) }).is_ok() {
            self.counts.queued.fetch_add(1, Ordering::Release);
        }
    }

    /// Records a line.
    pub(super) fn line(&self, direction: Direction, line: &[u8]) {
        self.push(direction, line, false);
    }

    /// Records the beginning of a line that was over the limit.
    pub(super) fn oversize(&self, direction: Direction, head: &[u8]) {
        self.push(direction, head, true);
    }

    fn push(&self, direction: Direction, line: &[u8], oversize: bool) {
        let before = self.counts.queued_bytes.fetch_add(line.len(), Ordering::Relaxed);
        // A single line may be larger than the bound, where nothing else waits.
        if before == 0 || before + line.len() <= QUEUE_BYTES {
            let entry = Entry::Line { at: Timestamp::now(), direction, bytes: line.to_vec(), oversize };
            if self.queue.try_send(entry).is_ok() {
                self.counts.queued.fetch_add(1, Ordering::Release);
                return;
            }
        }
        self.counts.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Written {
    /// Waits until all that was recorded before is written, or the recorder has ended.
    pub(super) async fn wait(mut self) {
        let wanted = self.counts.queued.load(Ordering::Acquire);
        let _ = self.written.wait_for(|written| *written >= wanted).await;
    }
}

struct Disk<W: Write> {
    out: BufWriter<W>,
    failed: bool,
    /// How many of the dropped lines are noted in the file.
    told: u64,
    counts: Arc<Counts>,
}

impl<W: Write> Disk<W> {
    fn run(mut self, entries: &Receiver<Entry>, progress: &watch::Sender<u64>) {
        let mut redactor = Redactor::plain();
        let mut start = Timestamp::now();
        let mut taken = 0;
        loop {
            // What is there is written in one go; the file is whole whenever there is a pause.
            let entry = match entries.try_recv() {
                Ok(entry) => entry,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    self.flush();
                    progress.send_replace(taken);
                    match entries.recv() {
                        Ok(entry) => entry,
                        Err(_) => break,
                    }
                }
            };
            match entry {
                Entry::Start { header, redactor: new } => {
                    redactor = *new;
                    start = Timestamp::now();
                    self.write(&header);
                }
                Entry::Line { at, direction, bytes, oversize } => {
                    self.tell_missing();
                    let text = String::from_utf8_lossy(&bytes);
                    let recorded = Recorded {
                        at: format!("{at:.6}"),
                        micros: u64::try_from(at.duration_since(start).as_micros()).unwrap_or(0),
                        dir: direction,
                        lossy: matches!(text, std::borrow::Cow::Owned(_)),
                        line: mask_line(&redactor, &text),
                        oversize,
                        connection: 0,
                    };
                    if !self.write(&recorded) {
                        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                    }
                    self.counts.queued_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
                }
            }
            taken += 1;
        }
        self.tell_missing();
        self.flush();
        progress.send_replace(taken);
    }

    fn tell_missing(&mut self) {
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        if dropped > self.told && !self.failed {
            let told = std::mem::replace(&mut self.told, dropped);
            self.write(&Missing { dropped: dropped - told });
        }
    }

    fn write(&mut self, line: &impl serde::Serialize) -> bool {
        if self.failed {
            return false;
        }
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.out.write_all(&line)
        });
        self.check(written)
    }

    fn flush(&mut self) {
        if !self.failed {
            let flushed = self.out.flush();
            self.check(flushed);
        }
    }

    fn check(&mut self, result: io::Result<()>) -> bool {
        if let Err(error) = &result {
            tracing::warn!(target: "kitport::rpc", outcome = ?error.kind(), "the recording can't be written");
            // Half a line may stand at its end: nothing can follow it.
            self.failed = true;
        }
        result.is_ok()
    }
}

/// A line with its secrets masked: by the names of members where it is JSON, else by its text.
fn mask_line(redactor: &Redactor, line: &str) -> String {
    // An escape may hide what a look at the text would find.
    let escaped = line.contains("\\u") || line.contains("\\/");
    if !escaped && !redactor.may_have_secret(line) {
        return line.to_owned();
    }
    match serde_json::from_str::<Value>(line) {
        Ok(mut value) => match mask_value(redactor, &mut value, "") {
            // Where nothing was masked the line stays as it was written.
            false => line.to_owned(),
            true => value.to_string(),
        },
        Err(_) => redactor.mask(line).into_owned(),
    }
}

fn mask_value(redactor: &Redactor, value: &mut Value, name: &str) -> bool {
    match value {
        Value::String(text) => match redactor.mask_member(name, text) {
            Some(masked) => {
                *text = masked;
                true
            }
            None => false,
        },
        // What is in a list is named by the list.
        Value::Array(items) => items.iter_mut().fold(false, |any, item| mask_value(redactor, item, name) | any),
        Value::Object(members) => {
            // `{"key": "api_key", "value": "…"}`: the name stands beside the value.
            let beside = ["key", "name"].iter().find_map(|&name| members.get(name)?.as_str().map(str::to_owned));
            let beside = beside.filter(|name| super::redaction::name_says_secret(name));
            members.iter_mut().fold(false, |any, (name, value)| {
                let name = match (&beside, name.as_str()) {
                    (Some(beside), "value") => beside,
                    _ => name,
                };
                mask_value(redactor, value, name) | any
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::super::recording::Recording;
    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shared {
        fn recording(&self) -> Recording {
            Recording::from_reader(io::Cursor::new(self.0.lock().unwrap().clone())).unwrap()
        }
    }

    #[tokio::test]
    async fn what_was_recorded_is_read_again() {
        let out = Shared::default();
        let recorder = Recorder::to_writer(out.clone()).unwrap();
        recorder.start(Some("the-host".into()), &Redactor::plain());
        recorder.line(Direction::Out, br#"{"id":1, "method":"a"}"#);
        recorder.line(Direction::In, b"noise \xff");
        recorder.oversize(Direction::In, b"{\"id\":7,");
        recorder.line(Direction::Err, b"log");
        recorder.flush().await;
        let mut recording = out.recording();
        assert_eq!(recording.header().program.as_deref(), Some("the-host"));
        let lines: Vec<Recorded> = recording.by_ref().map(Result::unwrap).collect();
        let seen: Vec<_> = lines.iter().map(|line| (line.dir, line.line.as_str(), line.lossy, line.oversize)).collect();
        assert_eq!(
            seen,
            [
                (Direction::Out, r#"{"id":1, "method":"a"}"#, false, false),
                (Direction::In, "noise \u{fffd}", true, false),
                (Direction::In, "{\"id\":7,", false, true),
                (Direction::Err, "log", false, false),
            ]
        );
        assert!(lines.is_sorted_by_key(|line| line.micros));
        let at: Timestamp = lines[0].at.parse().unwrap();
        assert!(lines[0].at.len() == "2025-01-01T00:00:00.000000Z".len() && at <= Timestamp::now());
    }

    #[tokio::test]
    async fn secrets_are_masked() {
        let out = Shared::default();
        let recorder = Recorder::to_writer(out.clone()).unwrap();
        let redactor = Redactor::for_variables([("MY_TOKEN", "very-own-value")]);
        recorder.start(Some("/home/ann/host".into()), &redactor);
        recorder.line(
            Direction::Out,
            br#"{"params":{"apiKey":"hush","keys":["hush"],"count":1.50,"text":"a very-own-value"}}"#,
        );
        recorder.line(Direction::Out, br#"{"params":{"key":"openai_api_key","value":"hush"}}"#);
        recorder.line(Direction::Out, br#"{"params":{"key":"theme","value":"dark"}}"#);
        recorder.line(Direction::In, br#"{"text":"Authorization: Bearer hush", "path":"\/home\/hush/x"}"#);
        recorder.line(Direction::Err, b"API_KEY=hush");
        recorder.flush().await;
        assert!(!String::from_utf8(out.0.lock().unwrap().clone()).unwrap().contains("hush"));
        let lines: Vec<String> = out.recording().map(|line| line.unwrap().line).collect();
        assert_eq!(
            lines,
            [
                r#"{"params":{"apiKey":"***","keys":["***"],"count":1.5,"text":"a ***"}}"#,
                r#"{"params":{"key":"openai_api_key","value":"***"}}"#,
                r#"{"params":{"key":"theme","value":"dark"}}"#,
                r#"{"text":"Authorization: Bearer ***","path":"/home/***/x"}"#,
                "API_KEY=***",
            ]
        );
        assert_eq!(out.recording().header().program.as_deref(), Some("/home/***/host"));
    }

    /// What the docs warn of. Where this changes they change, too.
    #[tokio::test]
    async fn a_secret_in_pieces_over_several_lines_is_not_masked() {
        let out = Shared::default();
        let recorder = Recorder::to_writer(out.clone()).unwrap();
        recorder.start(None, &Redactor::plain());
        let whole = format!(r#"{{"text":"ghp_{}"}}"#, "0123456789".repeat(3));
        recorder.line(Direction::In, whole.as_bytes());
        let pieces = [r#"{"text":"ghp_01234"}"#, r#"{"text":"5678901234567890123456789"}"#];
        for piece in pieces {
            recorder.line(Direction::In, piece.as_bytes());
        }
        recorder.flush().await;
        let lines: Vec<String> = out.recording().map(|line| line.unwrap().line).collect();
        assert_eq!(lines, [r#"{"text":"***"}"#, pieces[0], pieces[1]]);
    }

    #[tokio::test]
    async fn a_full_disk_drops_lines_and_nothing_else() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let recorder = Recorder::to_writer(Full).unwrap();
        recorder.start(None, &Redactor::plain());
        recorder.flush().await;
        for _ in 0..10 {
            recorder.line(Direction::In, b"line");
        }
        recorder.flush().await;
        assert_eq!(recorder.dropped(), 10);
    }

    #[tokio::test]
    async fn a_slow_disk_never_stops_the_connection_and_the_gap_is_noted() {
        #[derive(Clone, Default)]
        struct Slow {
            out: Shared,
            open: Arc<(Mutex<bool>, Condvar)>,
        }
        impl Write for Slow {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let mut open = self.open.0.lock().unwrap();
                while !*open {
                    open = self.open.1.wait(open).unwrap();
                }
                self.out.write(bytes)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let slow = Slow::default();
        let recorder = Recorder::to_writer(slow.clone()).unwrap();
        recorder.start(None, &Redactor::plain());
        let total = 2 * QUEUE_LINES as u64;
        for _ in 0..total {
            recorder.line(Direction::In, b"line");
        }
        assert!(recorder.dropped() > 0);
        *slow.open.0.lock().unwrap() = true;
        slow.open.1.notify_all();
        recorder.flush().await;
        recorder.line(Direction::In, b"last");
        recorder.flush().await;
        let mut recording = slow.out.recording();
        let lines = recording.by_ref().map(Result::unwrap).count() as u64;
        assert_eq!(lines + recording.dropped(), total + 1);
        assert_eq!(recording.dropped(), recorder.dropped());
    }

    #[tokio::test]
    async fn the_thread_ends_with_the_last_clone() {
        let recorder = Recorder::to_writer(Shared::default()).unwrap();
        let mut written = recorder.written.clone();
        drop(recorder.clone());
        recorder.flush().await;
        drop(recorder);
        while written.changed().await.is_ok() {}
    }

    #[cfg(unix)]
    #[test]
    fn a_recording_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.jsonl");
        let _recorder = Recorder::to_file(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
