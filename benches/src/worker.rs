//! One measurement of one side, in a process of its own: what one leaves behind can't help or hinder another, and the
//! memory is that of this one alone.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::feeder::{self, Script};
use crate::sample::Sample;
use crate::{floor, kit, machine, measures};

/// What a worker measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Reads all that a blast gives and looks at nothing.
    RawBytes(Script),
    /// Reads a blast, each line into its wire type.
    FloorEvents(Script),
    /// Reads a blast through the kit.
    KitEvents(Script),
    /// Reads a session's state into its wire types, out of memory.
    FloorSnapshot { script: Script, earlier: u32 },
    /// Loads a chat.
    KitSnapshot { script: Script, earlier: u32 },
    /// Replays a chat's history.
    Replay(Script),
    /// Bare lines and the kit's calls, in turn.
    RoundTrips { rounds: u32, trips: u32, one_core: bool },
    /// Many readers, alone or beside one that doesn't read.
    Busy { script: Script, stalled: bool },
}

/// The worker's side.
pub(crate) fn run(job: Job) -> Result<()> {
    if let Some((reader, feeder)) = machine::cores() {
        machine::bind(reader);
        feeder::bind_to(if matches!(job, Job::RoundTrips { one_core: true, .. }) { reader } else { feeder });
    }
    let samples = match job {
        Job::RawBytes(script) => vec![floor::raw_bytes(script)?],
        Job::FloorEvents(script) => vec![floor::events(script)?],
        Job::KitEvents(script) => vec![kit::run(measures::events::kit(script))?],
        Job::FloorSnapshot { script, earlier } => vec![measures::snapshot::floor(script, earlier)?],
        Job::KitSnapshot { script, earlier } => vec![kit::run(measures::snapshot::kit(script, earlier))?],
        Job::Replay(script) => vec![kit::run(measures::replay::kit(script))?],
        Job::RoundTrips { rounds, trips, .. } => kit::run(measures::round_trip::all(rounds, trips))?,
        Job::Busy { script, stalled } => vec![kit::run(measures::stalled::kit(script, stalled))?],
    };
    println!("{}", serde_json::to_string(&samples)?);
    Ok(())
}

/// Runs a worker that gives one sample.
pub(crate) fn measure(job: &Job) -> Result<Sample> {
    measure_all(job)?.pop().context("the worker measured nothing")
}

/// Runs a worker.
pub(crate) fn measure_all(job: &Job) -> Result<Vec<Sample>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--worker", &serde_json::to_string(job)?])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("a worker ended with {}", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
