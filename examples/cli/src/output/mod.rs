//! What is printed: for a person or as JSON, on a terminal or in a pipe. Nothing else writes to stdout.

mod clean;
mod event;
mod live;
mod progress;
mod table;

use std::io::{self, Write};

use console::style;
use serde::Serialize;

pub(crate) use clean::{clean, one_line};
pub(crate) use event::{describe, item, plan, usage, value};
pub(crate) use live::{Live, Notes};
pub(crate) use progress::Progress;
pub(crate) use table::Table;

/// Where things are printed, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// As JSON.
    pub(crate) json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Output { json }
    }

    /// A value as a line of JSON.
    pub(crate) fn json<T: Serialize>(self, value: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        out.write_all(&line)?;
        out.flush()
    }

    /// A line.
    pub(crate) fn line(self, line: impl AsRef<str>) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{}", line.as_ref())
    }

    /// A piece of a line, seen at once.
    pub(crate) fn piece(self, piece: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(piece.as_bytes())?;
        out.flush()
    }

    /// A word to the person beside the output, on stderr; nothing where a program reads.
    pub(crate) fn note(self, note: impl AsRef<str>) {
        if !self.json {
            // A note that nobody can see is no failure.
            let _ = writeln!(io::stderr(), "{}", style(note.as_ref()).for_stderr().dim());
        }
    }
}
