//! The program `kitport`: shows and drives AI agents from a terminal. One file a subcommand in `commands`; it knows
//! the kit's ports, and of hosts only how to start one.

mod app;
mod args;
mod chat_ref;
mod commands;
mod connect;
mod demo;
mod desk;
mod failure;
mod follow;
mod input;
mod interrupt;
mod output;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use app::App;
use args::{Cli, Command};
use failure::{Exit, Failure};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return bad_arguments(&error, &arguments),
    };
    if let Command::Host { arguments } = cli.command {
        return commands::host::run(arguments);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("the program could not start: {error}")).report(cli.global.json),
    };
    let json = cli.global.json;
    let result = runtime.block_on(async {
        let app = App::new(cli.global)?;
        commands::run(app, cli.command).await
    });
    let code = match result {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(json),
    };
    // A thread may still wait for a line of the terminal; nobody waits for it.
    runtime.shutdown_background();
    code
}

fn bad_arguments(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if error.use_stderr() && arguments.iter().any(|argument| argument == "--json") {
        return Failure::bad_arguments(error).report(true);
    }
    // A reader that is gone needs no help text.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}
