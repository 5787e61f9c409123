//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use kitport::model::{EventKind, Seq};

const AFTER_HELP: &str = "\
A CHAT is an id, the beginning of one that no other chat has, or `last`.

Exit codes:
  0    done; the run completed
  1    it failed; the run failed
  2    the command line or what was given can't be taken as it is
  3    the host could not be started, is gone, or does not answer
  4    the run waits for a person, and nobody can be asked here
  5    the run was cut off; `kitport send CHAT --resume` goes on
  130  cancelled";

/// Shows and drives AI agents.
#[derive(Debug, Parser)]
#[command(name = "kitport", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every subcommand takes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// The host to start, as a shell would read it; without it, the reference host in this process.
    #[arg(long, global = true, value_name = "COMMAND")]
    pub(crate) host: Option<String>,
    /// The folder the host works in.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
    /// The file of the host in this process; in the user's data directory by default.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "host")]
    pub(crate) db: Option<PathBuf>,
    /// Prints JSON, a line for each thing; errors too, on stderr.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows all the kit can do with a host of its own, kills it, and checks that nothing was lost.
    Demo(DemoArgs),
    /// Tells what the host offers, and why not the rest.
    Doctor,
    /// Lists chats.
    Chats(ChatsArgs),
    /// Shows a chat.
    Show(ShowArgs),
    /// Prints a chat's events as they come.
    Tail(TailArgs),
    /// Sends a text and prints the reply.
    Send(SendArgs),
    /// Decides an approval; without arguments lists those that wait, of all chats.
    Approve(ApproveArgs),
    /// Answers a question of a chat, or of a chat that it started.
    Answer(AnswerArgs),
    /// Lists models, or sets the default one.
    Models(ModelsArgs),
    /// Runs another command and writes down all that is said to the host and by it: what to attach to a report.
    ///
    /// Secrets are masked line by line: one that the host streams in pieces over several lines is not masked. What was
    /// said is in the file, too, so look it through before you share it.
    Record(RecordArgs),
    /// The reference host.
    #[command(hide = true, disable_help_flag = true)]
    Host {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Passed to the demo's host, to see what goes wrong then.
    #[arg(long, hide = true, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) host_arg: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ChatsArgs {
    /// Only those whose title has this text in it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// All pages, not the first alone.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The chat.
    pub(crate) chat: String,
    /// The stored history, with its sequences.
    #[arg(long, conflicts_with = "context")]
    pub(crate) history: bool,
    /// What the model sees, and what became of the rest.
    #[arg(long)]
    pub(crate) context: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// The chat.
    pub(crate) chat: String,
    /// From behind this sequence on; 0 is the chat's beginning.
    #[arg(long, value_name = "SEQ", value_parser = seq)]
    pub(crate) after: Option<Seq>,
    /// The chat's items as they change, instead of its events.
    #[arg(long, conflicts_with_all = ["after", "until"])]
    pub(crate) feed: bool,
    /// Ends behind the first event of this kind.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub(crate) until: Option<String>,
}

fn seq(text: &str) -> Result<Seq, String> {
    text.parse().map(Seq).map_err(|_| "a sequence is a number from 0 on".to_owned())
}

fn kind(text: &str) -> Result<String, String> {
    match EventKind::KINDS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no such kind of event; there are {}", EventKind::KINDS.join(", "))),
    }
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// In a new chat of this title.
    #[arg(long, value_name = "TITLE")]
    pub(crate) new: Option<String>,
    /// The chat, unless it is a new one, and the text; `-` reads it from stdin.
    #[arg(value_name = "CHAT|TEXT", required = true)]
    pub(crate) words: Vec<String>,
    /// Approves all that the run asks for.
    #[arg(long)]
    pub(crate) approve_all: bool,
    /// Goes on after a run that was cut off; takes no text.
    #[arg(long, conflicts_with = "new")]
    pub(crate) resume: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The chat.
    #[arg(requires = "approval")]
    pub(crate) chat: Option<String>,
    /// The approval: its id, or the beginning of it.
    pub(crate) approval: Option<String>,
    /// Denies it.
    #[arg(long, requires = "approval", conflicts_with = "session")]
    pub(crate) deny: bool,
    /// Approves it for the rest of the session.
    #[arg(long, requires = "approval")]
    pub(crate) session: bool,
    /// Why.
    #[arg(long, value_name = "TEXT", requires = "approval")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The chat.
    pub(crate) chat: String,
    /// The question's id, where there are several, and the answer.
    #[arg(value_name = "QUESTION|TEXT", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Makes this the default.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) set: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The file, which is replaced.
    pub(crate) file: PathBuf,
    /// The command, as without `record`; `doctor` by default.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
