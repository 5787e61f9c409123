//! How the program ends: exit codes, and errors told to a person or a program. Nothing else prints an error.

use std::io::{self, Write};
use std::process::ExitCode;

use console::style;
use kitport::KitError;
use kitport::error::Outcome;
use kitport::rpc::SpawnError;
use serde_json::{Value, json};

use crate::output::clean;

/// What the process exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// What was given can't be taken as it is.
    Usage,
    /// The host could not be started, is gone, or does not answer.
    HostGone,
    /// A person must decide.
    Waiting,
    /// The run was cut off.
    CutOff,
    /// It was cancelled.
    Cancelled,
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::HostGone => 3,
            Exit::Waiting => 4,
            Exit::CutOff => 5,
            // As a shell tells of a process that Ctrl-C ended.
            Exit::Cancelled => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// Why the program ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    what: What,
    hint: Option<String>,
}

#[derive(Debug)]
enum What {
    Kit(Box<KitError>),
    /// An error of the program's own.
    Own {
        code: &'static str,
        message: String,
        exit: Exit,
    },
    /// Nobody reads the output any more.
    OutputClosed,
    Interrupted,
}

impl From<KitError> for Failure {
    fn from(error: KitError) -> Self {
        Failure { what: What::Kit(Box::new(error)), hint: None }
    }
}

impl From<io::Error> for Failure {
    /// Only output fails with such an error.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { what: What::OutputClosed, hint: None },
            _ => Failure::failed(format!("the output could not be written: {error}")),
        }
    }
}

impl Failure {
    fn own(code: &'static str, message: impl Into<String>, exit: Exit) -> Self {
        Failure { what: What::Own { code, message: message.into(), exit }, hint: None }
    }

    /// What was given can't be taken as it is.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::own("usage", message, Exit::Usage)
    }

    /// The command line is no command: its first paragraph in one line, since what is missing stands below the first.
    pub(crate) fn bad_arguments(error: &clap::Error) -> Self {
        let text = error.to_string();
        let lines = text.trim().trim_start_matches("error: ").lines().map(str::trim);
        Failure::usage(lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// It failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Failure::own("failed", message, Exit::Failed)
    }

    /// A person must decide.
    pub(crate) fn waiting(message: impl Into<String>) -> Self {
        Failure::own("waiting", message, Exit::Waiting)
    }

    /// Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Failure { what: What::Interrupted, hint: None }
    }

    /// Adds what can be done about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what can be done about it, where the error has this code.
    pub(crate) fn hint_if(self, code: &str, hint: &str) -> Self {
        if self.code() == code { self.hint(hint) } else { self }
    }

    /// What went wrong in a few words, for a list; an error still where the program itself is to end.
    pub(crate) fn into_check(self) -> Result<String, Failure> {
        match self.what {
            What::OutputClosed | What::Interrupted => Err(self),
            _ => Ok(self.message()),
        }
    }

    /// The kind of error.
    pub(crate) fn code(&self) -> &'static str {
        match &self.what {
            What::Kit(error) => error.code(),
            What::Own { code, .. } => code,
            What::OutputClosed => "output_closed",
            What::Interrupted => "cancelled",
        }
    }

    fn exit(&self) -> Exit {
        match &self.what {
            What::Kit(error) if could_not_start(error) => Exit::HostGone,
            What::Kit(error) => match error.code() {
                "invalid" => Exit::Usage,
                "host_exited" | "protocol_mismatch" | "timeout" | "closed" => Exit::HostGone,
                _ => Exit::Failed,
            },
            What::Own { exit, .. } => *exit,
            // As other programs do in front of `head`.
            What::OutputClosed => Exit::Done,
            What::Interrupted => Exit::Cancelled,
        }
    }

    /// Tells it on stderr; gives what to exit with.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        let exit = self.exit();
        if !matches!(self.what, What::OutputClosed) {
            let text = if json { self.json().to_string() } else { self.for_person() };
            // There is nobody else to tell.
            let _ = writeln!(io::stderr(), "{text}");
        }
        exit.into()
    }

    fn hint_text(&self) -> Option<String> {
        if let Some(hint) = &self.hint {
            return Some(hint.clone());
        }
        let What::Kit(error) = &self.what else { return None };
        if could_not_start(error) {
            return Some("look at --host and --cwd".to_owned());
        }
        let hint = match error.code() {
            "unsupported" => "`kitport doctor` tells what the host offers, and why not the rest",
            "not_found" => "`kitport chats` lists the chats",
            "protocol_mismatch" => "another version of the host or of kitport may fit",
            _ => return None,
        };
        Some(hint.to_owned())
    }

    fn message(&self) -> String {
        match &self.what {
            What::Kit(error) => error.message().to_owned(),
            What::Own { message, .. } => message.clone(),
            What::OutputClosed => "the output was closed".to_owned(),
            What::Interrupted => "cancelled".to_owned(),
        }
    }

    fn json(&self) -> Value {
        let mut form = match &self.what {
            What::Kit(error) => serde_json::to_value(error).unwrap_or_else(|_| json!({ "code": error.code() })),
            _ => json!({ "code": self.code(), "message": self.message() }),
        };
        if let Some(hint) = self.hint_text() {
            form["hint"] = hint.into();
        }
        form
    }

    fn for_person(&self) -> String {
        if matches!(self.what, What::Interrupted) {
            return style("cancelled").for_stderr().dim().to_string();
        }
        let code = style(format!("({})", self.code())).for_stderr().dim();
        let label = match self.exit() {
            Exit::Waiting => style("waiting:").for_stderr().yellow().bold(),
            _ => style("error:").for_stderr().red().bold(),
        };
        let mut text = format!("{label} {} {code}", clean(&self.message()));
        if let What::Kit(error) = &self.what {
            if error.outcome() == Some(Outcome::Unknown) {
                text.push_str("\nIt is not known whether the host carried it out.");
            }
            if let KitError::HostExited { stderr_tail, .. } = &**error
                && !stderr_tail.trim().is_empty()
            {
                text.push_str("\nThe last that the host wrote to stderr:");
                for line in stderr_tail.trim_end().lines() {
                    text.push_str(&format!("\n  {}", clean(line)));
                }
            }
        }
        if let Some(hint) = self.hint_text() {
            text.push_str(&format!("\n{} {hint}", style("hint:").for_stderr().cyan()));
        }
        text
    }
}

fn could_not_start(error: &KitError) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<SpawnError>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_the_help_says() {
        let exits = [
            (KitError::invalid("i"), 2),
            (KitError::not_found("n"), 1),
            (KitError::host_exited(Some(1), None, ""), 3),
            (KitError::timeout("run.start"), 3),
            (KitError::failed("f").with_source(SpawnError::MissingFolder { folder: "/x".into() }), 3),
        ];
        for (error, code) in exits {
            assert_eq!(Failure::from(error.clone()).exit().code(), code, "{error}");
        }
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit().code(), 0);
    }

    #[test]
    fn the_json_form_is_the_kit_s_with_a_hint() {
        let form = Failure::from(KitError::not_found("no such chat")).json();
        assert_eq!((form["code"].as_str(), form["message"].as_str()), (Some("not_found"), Some("no such chat")));
        assert!(form["hint"].is_string());
    }

    #[test]
    fn what_a_host_writes_can_not_command_the_terminal() {
        let text = Failure::from(KitError::host_exited(Some(1), None, "bad\u{1b}[2Jluck")).for_person();
        assert!(text.contains("luck") && !text.contains("\u{1b}[2J"), "{text:?}");
    }
}
