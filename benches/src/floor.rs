//! The least that reading a host's events could cost: blocking reads of the same pipe, and the wire type.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use kitport::bubblepaw::wire::{EventData, EventNotification};
use serde::Deserialize;

use crate::feeder::{self, Script};
use crate::sample::{Clocks, Sample};

/// How much is read at once: what a pipe holds, as in the kit.
const READ_BYTES: usize = 64 * 1024;

/// A feeder at the other end of two pipes.
pub(crate) struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Bare {
    pub(crate) fn start(script: Script) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(feeder::arguments(&script)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().context("stdin is piped")?;
        let stdout = BufReader::with_capacity(READ_BYTES, child.stdout.take().context("stdout is piped")?);
        let mut bare = Bare { child, stdin, stdout, line: Vec::new() };
        bare.ask(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)?;
        Ok(bare)
    }

    /// Writes a line and reads one.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.line.clear();
        self.line.extend_from_slice(request);
        self.line.push(b'\n');
        self.stdin.write_all(&self.line)?;
        self.read_line()
    }

    pub(crate) fn read_line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        ensure!(self.stdout.read_until(b'\n', &mut self.line)? > 0, "the feeder ended");
        Ok(self.line.trim_ascii_end())
    }

    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.stdin);
        let status = self.child.wait()?;
        ensure!(status.success(), "the feeder ended with {status}");
        Ok(())
    }
}

const START: &[u8] = br#"{"jsonrpc":"2.0","id":2,"method":"run.start","params":{"session_id":"chat-0","text":"go"}}"#;

/// Reads a blast, each line into its wire type.
pub(crate) fn events(script: Script) -> Result<Sample> {
    #[derive(Deserialize)]
    struct Line<'a> {
        method: &'a str,
        params: EventNotification,
    }
    let mut bare = Bare::start(script)?;
    let clocks = Clocks::start();
    bare.ask(START)?;
    let mut count = 0;
    loop {
        let line: Line<'_> = serde_json::from_slice(bare.read_line()?)?;
        if line.method != "event" {
            bail!("the feeder sends events only");
        }
        count += 1;
        if matches!(std::hint::black_box(line.params).event.data, EventData::RunFinished { .. }) {
            break;
        }
    }
    let sample = clocks.stop(count);
    ensure!(count == script.events(), "{count} events came, not {}", script.events());
    bare.end()?;
    Ok(sample)
}

/// Reads all bytes of a blast and looks at nothing: what the feeder and the pipe can do.
pub(crate) fn raw_bytes(script: Script) -> Result<Sample> {
    let mut bare = Bare::start(script)?;
    let mut chunk = vec![0; READ_BYTES];
    let clocks = Clocks::start();
    bare.ask(START)?;
    // Whoever closes stdin gets what is being written, and then the end.
    drop(bare.stdin);
    let mut bytes = 0;
    loop {
        match bare.stdout.read(&mut chunk)? {
            0 => break,
            read => bytes += read,
        }
    }
    let mut sample = clocks.stop(script.events());
    sample.note = Some(format!("{bytes}"));
    let _ = bare.child.wait()?;
    Ok(sample)
}
