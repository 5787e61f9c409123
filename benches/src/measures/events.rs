//! Events from a host's pipe to `next_batch`, against reading the same bytes and parsing each line into the wire type.

use std::time::Duration;

use anyhow::{Result, ensure};
use kitport::model::{ChatId, EventKind};
use kitport::{AgentBackend, ChatReader, EventStream};

use super::{Size, rate};
use crate::feeder::{Expected, Script};
use crate::sample::{Clocks, Sample};
use crate::table::{Row, Target, Unit};
use crate::worker::{self, Job};
use crate::{kit, round};

/// How many events are taken at once.
const BATCH: usize = 1024;

/// How long streams get to take their place before the clock starts.
pub(crate) const SETTLE_TIME: Duration = Duration::from_millis(300);

pub(super) fn deltas(size: Size, rounds: u32) -> Result<Vec<Row>> {
    run("deltas", Script::Deltas { deltas: size.of(1_000_000) }, rounds)
}

pub(super) fn tools(size: Size, rounds: u32) -> Result<Vec<Row>> {
    run("tools", Script::Tools { events: size.of(100_000) }, rounds)
}

fn run(name: &str, script: Script, rounds: u32) -> Result<Vec<Row>> {
    let pairs = round::in_turn(&Job::FloorEvents(script), &Job::KitEvents(script), rounds)?;
    let raw = worker::measure(&Job::RawBytes(script))?;
    let by_cpu = |sample: &Sample| sample.count as f64 / sample.cpu;
    let ratio = pairs.spread(|floor, kit| by_cpu(kit) / by_cpu(floor));
    let clock = pairs.spread(|floor, kit| floor.wall / kit.wall);
    let mut row = Row::new(name, ratio, Unit::Ratio, Target::AtLeast(0.5))
        .sides(rate(pairs.floor(by_cpu)), rate(pairs.kit(by_cpu)))
        .by_clock(clock)
        .note(format!("the feeder and the pipe alone give {} by the clock", rate(raw.count as f64 / raw.wall)));
    for note in pairs.notes() {
        row = row.note(note);
    }
    Ok(vec![row])
}

/// The kit's side.
pub(crate) async fn kit(script: Script) -> Result<Sample> {
    let backend = kit::open(script).await?;
    let chat = ChatId::from("chat-0");
    let events = backend.events(&chat, None);
    tokio::time::sleep(SETTLE_TIME).await;
    let clocks = Clocks::start();
    backend.send(&chat, "go", &[]).await?;
    let (read, batches) = read_run(&events).await?;
    let mut sample = clocks.stop(script.events());
    let gaps = backend.counters().gaps;
    // A reader that reads as fast as it can must have been given everything, or the rate says nothing.
    ensure!(read == script.expected(), "{read:?} was read, not {:?}; {gaps} gaps", script.expected());
    if gaps > 0 {
        sample.note = Some(format!("{gaps} gaps, {batches} batches"));
    }
    backend.close().await;
    Ok(sample)
}

/// Reads until a run has finished, as fast as it comes.
pub(crate) async fn read_run(events: &EventStream) -> Result<(Expected, u64)> {
    let (mut read, mut batches) = (Expected::default(), 0);
    loop {
        let batch = events.next_batch(BATCH).await?;
        ensure!(!batch.is_empty(), "the stream ended");
        batches += 1;
        for event in batch {
            read.durable += u64::from(event.durable);
            match event.kind {
                EventKind::MessageDelta(delta) => read.text += delta.text.len() as u64,
                EventKind::RunFinished(_) => return Ok((read, batches)),
                _ => {}
            }
        }
    }
}
