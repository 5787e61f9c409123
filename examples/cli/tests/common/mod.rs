//! The program under test, with a folder of its own for everything it keeps.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used)] // What is not there is a failure of its test.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kitport");

/// A user's home, empty at first.
pub(crate) struct Home(TempDir);

/// How a run of the program ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The lines of stdout as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }

    /// The one line of stdout as JSON.
    pub(crate) fn one(&self) -> Value {
        let mut lines = self.json();
        assert_eq!(lines.len(), 1, "{}", self.out);
        lines.remove(0)
    }

    /// The error that stderr tells as JSON: its last line.
    pub(crate) fn error(&self) -> Value {
        let line = self.err.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {}", self.err))
    }

    /// The same, having ended with this code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        for trace in ["panicked", "KitError", "ErrorInfo", "RUST_BACKTRACE"] {
            assert!(!self.err.contains(trace), "a person is told {trace}: {}", self.err);
        }
        self
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program with these arguments, on the embedded host of this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.0.path()).env("HOME", self.0.path()).env("NO_COLOR", "1");
        for name in ["XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA"] {
            command.env(name, self.path("data"));
        }
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    /// `--host` with the program itself as the host.
    pub(crate) fn host(&self, more: &[&str]) -> String {
        let db = self.path("spawned.db");
        let mut words = vec![PROGRAM, "host", "stdio", "--db", db.to_str().unwrap()];
        words.extend(more);
        format!("--host={}", shell_words::join(words))
    }
}

pub(crate) fn ran(output: std::process::Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The kinds of a list of events.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["kind"].as_str()).collect()
}
