//! `load_chat` of a long chat, against parsing the same JSON out of memory into the wire types.
//!
//! The floor doesn't even read from the pipe: the kit's side does, and checks, cuts and converts what it read.

use anyhow::{Result, ensure};
use kitport::ChatReader;
use kitport::bubblepaw::wire::SessionStateResult;
use kitport::model::ChatId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Size;
use crate::feeder::Script;
use crate::floor::Bare;
use crate::sample::{Clocks, Sample};
use crate::table::{Row, Target, Unit};
use crate::worker::Job;
use crate::{kit, round};

/// Loads in a worker; the median counts.
const LOADS: usize = 1;

pub(super) fn run(size: Size, rounds: u32) -> Result<Vec<Row>> {
    let script = Script::Messages { messages: size.of(100_000) };
    let pairs = round::in_turn(&Job::FloorSnapshot(script), &Job::KitSnapshot(script), rounds)?;
    let ratio = pairs.spread(|floor, kit| kit.cpu / floor.cpu);
    let clock = pairs.spread(|floor, kit| kit.wall / floor.wall);
    let millis = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    let row = Row::new("snapshot", ratio, Unit::Ratio, Target::AtMost(2.0))
        .sides(millis(pairs.floor(|floor| floor.cpu)), millis(pairs.kit(|kit| kit.cpu)))
        .by_clock(clock);
    Ok(vec![row])
}

/// The floor's side.
pub(crate) fn floor(script: Script) -> Result<Sample> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let mut bare = Bare::start(script)?;
    let line =
        bare.ask(br#"{"jsonrpc":"2.0","id":2,"method":"session.state","params":{"session_id":"chat-0"}}"#)?.to_vec();
    bare.end()?;
    let bytes = serde_json::from_slice::<Line<'_>>(&line)?.result.get().as_bytes();
    let mut samples = Vec::new();
    for _ in 0..LOADS {
        let clocks = Clocks::start();
        let state: SessionStateResult = serde_json::from_slice(bytes)?;
        samples.push(clocks.stop(state.messages.len() as u64));
    }
    Ok(middle(samples))
}

/// The kit's side.
pub(crate) async fn kit(script: Script) -> Result<Sample> {
    let backend = kit::open(script).await?;
    let chat = ChatId::from("chat-0");
    let mut samples = Vec::new();
    for _ in 0..LOADS {
        let clocks = Clocks::start();
        let snapshot = backend.load_chat(&chat).await?;
        samples.push(clocks.stop(snapshot.items.len() as u64));
        ensure!(!snapshot.items.is_empty(), "the chat has messages");
    }
    backend.close().await;
    Ok(middle(samples))
}

/// The sample with the median of the CPU times.
fn middle(mut samples: Vec<Sample>) -> Sample {
    eprintln!("{:?}", samples.iter().map(|s| (s.cpu * 1e3, s.wall * 1e3)).collect::<Vec<_>>());
    samples.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    samples.swap_remove(samples.len() / 2)
}
