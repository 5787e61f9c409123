//! `record`: any other command, with all that is said to the host and by it written to a file.

use std::ffi::OsString;

use clap::Parser;
use kitport::rpc::Recorder;

use crate::app::App;
use crate::args::{Cli, Command, Global, RecordArgs};
use crate::failure::{Exit, Failure};

pub(super) async fn run(mut app: App, args: RecordArgs) -> Result<Exit, Failure> {
    let (inner, command) = parse(args.command)?;
    app.global = merged(app.global, inner);
    app.out.json = app.global.json;
    let out = app.out;
    let recorder = Recorder::to_file(&args.file)
        .map_err(|error| Failure::usage(format!("the file {} can't be written: {error}", args.file.display())))?;
    app.recorder = Some(recorder.clone());
    let done = super::run(app, command).await;
    recorder.flush().await;
    let dropped = match recorder.dropped() {
        0 => String::new(),
        count => format!("; {count} lines are missing, because the disk was full or too slow"),
    };
    out.note(format!(
        "recorded to {}{dropped}. Secrets are masked as far as they can be told; what was said is in it: look before you share it",
        args.file.display()
    ));
    done
}

fn parse(mut words: Vec<OsString>) -> Result<(Global, Command), Failure> {
    if words.is_empty() {
        words.push("doctor".into());
    }
    let cli = Cli::try_parse_from(std::iter::once(OsString::from("kitport")).chain(words))
        .map_err(|error| Failure::bad_arguments(&error))?;
    match cli.command {
        Command::Record(_) => Err(Failure::usage("a recording can't be recorded")),
        command => Ok((cli.global, command)),
    }
}

/// What is said before `record` counts, too; what is said behind it counts more.
fn merged(outer: Global, inner: Global) -> Global {
    // A host and a file of the other kind of host exclude each other.
    let (host, db) = match (inner.host, inner.db) {
        (None, None) => (outer.host, outer.db),
        own => own,
    };
    Global { host, db, cwd: inner.cwd.or(outer.cwd), json: inner.json || outer.json }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_before_and_behind_count() {
        let (inner, command) =
            parse(["send", "--json", "last", "hi", "--host", "inner"].map(OsString::from).into()).unwrap();
        assert!(matches!(command, Command::Send(_)));
        let outer = Global { db: Some("x".into()), ..Global::default() };
        let both = merged(outer, inner);
        assert_eq!((both.host.as_deref(), both.db, both.json), (Some("inner"), None, true));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for bad in [&["dance"][..], &["record", "x"], &["tail"]] {
            assert_eq!(parse(bad.iter().map(OsString::from).collect()).unwrap_err().code(), "usage");
        }
        assert!(matches!(parse(Vec::new()).unwrap().1, Command::Doctor));
    }
}
