//! The host of a measurement: just enough of the contract, from bytes made beforehand, as fast as a pipe goes.
//!
//! One thread reads requests. The other answers them and, when a run starts, writes the whole script as notifications;
//! between two pieces of it, it answers what came meanwhile, as of what it has written.

mod script;
mod write;

use std::io::BufRead;
use std::sync::mpsc;
use std::thread;

use anyhow::Result;
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use script::{Expected, Script};

use crate::machine;

/// The arguments that make this program a feeder.
pub(crate) fn arguments(script: &Script) -> Result<[String; 2]> {
    Ok(["--feeder".to_owned(), serde_json::to_string(script)?])
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

/// Serves until stdin ends.
pub(crate) fn run(script: &Script) -> Result<()> {
    machine::bind_feeder();
    let prepared = script.prepare()?;
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            let request: Request = serde_json::from_str(&line).expect("the kit writes requests only");
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    write::Writer::new(prepared, requests).serve()
}
