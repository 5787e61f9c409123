//! The subcommands, one file each.

mod answer;
mod approve;
mod chats;
mod doctor;
pub(crate) mod host;
mod models;
mod record;
mod send;
mod show;
mod tail;

use crate::app::App;
use crate::args::Command;
use crate::demo;
use crate::failure::{Exit, Failure};

/// Runs a subcommand.
pub(crate) async fn run(app: App, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::run(&app, args).await,
        Command::Doctor => doctor::run(&app).await,
        Command::Chats(args) => chats::run(&app, args).await,
        Command::Show(args) => show::run(&app, args).await,
        Command::Tail(args) => tail::run(&app, args).await,
        Command::Send(args) => send::run(&app, args).await,
        Command::Approve(args) => approve::run(&app, args).await,
        Command::Answer(args) => answer::run(&app, args).await,
        Command::Models(args) => models::run(&app, args).await,
        Command::Record(args) => Box::pin(record::run(app, args)).await,
        // It is the host's own program, and was started before.
        Command::Host { .. } => Err(Failure::usage("the host can't be recorded")),
    }
}
