//! The program: options, and the life of the process around a connection.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use kitport::rpc::Recording;

use crate::faults::{FAULT_NAMES, Faults, start_process_faults};
use crate::options::HostOptions;
use crate::protocol::{Served, serve};
use crate::replay::{Pace, replay};
use crate::stdio;

#[derive(Debug, Parser)]
#[command(name = "kitport-host", version, about = "The reference host of kitport")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Speaks the protocol on stdin and stdout.
    Stdio(Box<StdioArgs>),
    /// Plays a recording back as a host, on stdin and stdout.
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// The recording.
    file: PathBuf,
    /// Everything as soon as it may come.
    #[arg(long, conflicts_with = "speed")]
    at_once: bool,
    /// So many times as fast as recorded.
    #[arg(long, value_name = "TIMES", default_value_t = 1.0)]
    speed: f64,
}

#[derive(Debug, Args)]
struct StdioArgs {
    /// The database file; in memory without it.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// The folder that the agent writes in.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    workspace: PathBuf,
    /// A feature to offer; all of them where none is named. `none` offers none.
    #[arg(long = "feature", value_name = "NAME")]
    features: Vec<String>,
    /// A feature not to offer.
    #[arg(long = "without", value_name = "NAME")]
    without: Vec<String>,
    /// The protocol version to present.
    #[arg(long, value_name = "VERSION")]
    protocol_version: Option<String>,
    /// Keep only that many events of each session.
    #[arg(long, value_name = "EVENTS")]
    retention: Option<u64>,
    /// What everything random is made from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Milliseconds between two pieces of text.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    speed: u64,
    /// No provider is configured.
    #[arg(long)]
    no_provider: bool,
    /// A fault.
    #[arg(long = "fault", value_name = "FAULT", long_help = fault_help(), value_parser = checked_fault)]
    faults: Vec<String>,
}

fn fault_help() -> String {
    let mut help = String::from("Something to do wrong, any number of times:");
    for (name, what) in FAULT_NAMES {
        help.push_str(&format!("\n  {name}: {what}"));
    }
    help
}

fn checked_fault(fault: &str) -> Result<String, String> {
    Faults::named([fault]).map(|_| fault.to_owned())
}

impl StdioArgs {
    fn options(self) -> Result<HostOptions, String> {
        let mut options = HostOptions {
            db: self.db,
            workspace: self.workspace,
            retention_events: self.retention,
            seed: self.seed,
            speed: Duration::from_millis(self.speed),
            provider: !self.no_provider,
            faults: Faults::named(self.faults.iter().map(String::as_str))?,
            ..HostOptions::default()
        };
        if !self.features.is_empty() {
            options.features = self.features.into_iter().filter(|name| name != "none").collect();
        }
        options.features.retain(|name| !self.without.contains(name));
        if let Some(version) = self.protocol_version {
            options.protocol_version = version;
        }
        Ok(options)
    }
}

/// Runs the program with these arguments, the first being its name; gives what the process should exit with.
pub fn main_entry<I, T>(args: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let code = match cli.command {
        Command::Stdio(args) => match args.options() {
            Ok(options) => runtime.block_on(host(options)),
            Err(error) => {
                eprintln!("kitport-host: {error}");
                return ExitCode::from(2);
            }
        },
        Command::Replay(args) => runtime.block_on(play(args)),
    };
    // A thread may still wait for stdin; nobody waits for it.
    runtime.shutdown_background();
    code
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("kitport-host: {error}");
    ExitCode::FAILURE
}

async fn play(args: ReplayArgs) -> ExitCode {
    let recording = match Recording::read(&args.file) {
        Ok(recording) => recording,
        Err(error) => return failed(&format!("{}: {error}", args.file.display())),
    };
    let pace = if args.at_once { Pace::AtOnce } else { Pace::Times(args.speed) };
    let (input, output) = stdio::open();
    match replay(input, output, recording, pace).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::from(1),
        Err(error) => failed(&error),
    }
}

async fn host(options: HostOptions) -> ExitCode {
    start_process_faults(&options.faults);
    let (input, output) = stdio::open();
    match serve(input, output, options).await {
        Ok(Served::InputEnded) => ExitCode::SUCCESS,
        Ok(Served::Exit(code)) => std::process::exit(code),
        // A client that is gone is no failure of ours worth a word.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::from(1),
        Err(error) => failed(&error),
    }
}
