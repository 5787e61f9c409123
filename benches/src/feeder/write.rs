//! The feeder's writing side.

use std::io::{StdoutLock, Write};
use std::sync::mpsc::Receiver;

use anyhow::Result;
use memchr::memrchr;

use super::Request;
use super::script::{HISTORY_FROM_THE_START, Prepared};

/// How much of a script is written before requests are looked at again.
const PIECE_BYTES: usize = 256 * 1024;

pub(super) struct Writer {
    prepared: Prepared,
    /// How many bytes of the script the reader was sent.
    written: usize,
    stdout: StdoutLock<'static>,
    line: Vec<u8>,
}

impl Writer {
    pub(super) fn new(prepared: Prepared) -> Self {
        let written = if prepared.is_history { HISTORY_FROM_THE_START } else { 0 };
        Writer { prepared, written, stdout: std::io::stdout().lock(), line: Vec::new() }
    }

    /// Answers requests.
    pub(super) fn serve(&mut self, mut requests: impl Iterator<Item = Request>) -> Result<()> {
        requests.try_for_each(|request| self.answer(&request))
    }

    /// Answers requests, and writes the script when a run starts.
    pub(super) fn serve_and_blast(&mut self, requests: &Receiver<Request>) -> Result<()> {
        while let Ok(request) = requests.recv() {
            self.answer(&request)?;
            if request.method == "run.start" {
                self.blast(requests)?;
            }
        }
        Ok(())
    }

    fn blast(&mut self, requests: &Receiver<Request>) -> Result<()> {
        while self.written < self.prepared.bytes.len() {
            let rest = &self.prepared.bytes[self.written..];
            let piece = &rest[..rest.len().min(PIECE_BYTES)];
            let whole = memrchr(b'\n', piece).map_or(piece.len(), |end| end + 1);
            self.stdout.write_all(&piece[..whole])?;
            self.stdout.flush()?;
            self.written += whole;
            while let Ok(request) = requests.try_recv() {
                self.answer(&request)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: &Request) -> Result<()> {
        self.line.clear();
        let (line, params) = (&mut self.line, &request.params);
        write!(line, r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.id.get())?;
        match request.method.as_str() {
            "initialize" => line.extend_from_slice(
                br#"{"protocol_version":"0.1","host":{"name":"feeder","version":"1"},"features":[],"workspace":{"path":"/"}}"#,
            ),
            "session.state" => {
                // It may be large: it is not put together first.
                self.stdout.write_all(line)?;
                line.clear();
                for part in self.prepared.state(&params.session_id, self.written) {
                    self.stdout.write_all(part.as_bytes())?;
                }
            }
            "events.after" => {
                self.prepared.page(&params.session_id, self.written, params.after, params.limit, line)?;
            }
            "run.start" => line.extend_from_slice(br#"{"run_id":"run"}"#),
            _ => line.extend_from_slice(b"{}"),
        }
        line.extend_from_slice(b"}\n");
        self.stdout.write_all(line)?;
        self.stdout.flush()?;
        Ok(())
    }
}
