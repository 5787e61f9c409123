//! The host of a measurement: just enough of the contract, from bytes made beforehand, as fast as a pipe goes.
//!
//! One thread reads requests, but for round trips, where there is no other. The other answers them and, when a run starts, writes the whole script as notifications;
//! between two pieces of it, it answers what came meanwhile, as of what it has written.

mod script;
mod write;

use std::io::BufRead;
use std::sync::{OnceLock, mpsc};
use std::thread;

use anyhow::Result;
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use script::{Expected, Script};

use crate::machine;

/// The core that feeders are bound to. The worker's own binding would be inherited otherwise.
static CORE: OnceLock<usize> = OnceLock::new();

/// Has the feeders that this process starts bound to a core.
pub(crate) fn bind_to(core: usize) {
    let _ = CORE.set(core);
}

/// The arguments that make this program a feeder.
pub(crate) fn arguments(script: &Script) -> Result<Vec<String>> {
    let mut arguments = vec!["--feeder".to_owned(), serde_json::to_string(script)?];
    if let Some(core) = CORE.get() {
        arguments.extend(["--core".to_owned(), core.to_string()]);
    }
    Ok(arguments)
}

/// A request, as far as a feeder looks at it.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    id: Box<RawValue>,
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Debug, Default, Deserialize)]
struct Params {
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    after: u64,
    #[serde(default)]
    limit: usize,
}

/// What comes in on stdin.
fn requests() -> impl Iterator<Item = Request> {
    std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .map(|line| serde_json::from_str(&line).expect("the kit and the floor write requests only"))
}

/// Serves until stdin ends.
pub(crate) fn run(script: &Script, core: Option<usize>) -> Result<()> {
    if let Some(core) = core {
        machine::bind(core);
    }
    let mut writer = write::Writer::new(script.prepare()?);
    if matches!(script, Script::Answers) {
        // Round trips: another thread in between would be a part of what is measured.
        return writer.serve(requests());
    }
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || requests().try_for_each(|request| sender.send(request)));
    writer.serve_and_blast(&receiver)
}
