//! `load_chat` of a long chat, against parsing the same JSON out of memory into the wire types.
//!
//! The floor doesn't even read from the pipe: the kit's side does, and checks, cuts and converts what it read. The second row is a
//! later load in the same process, where the memory of earlier ones is used again. There, both sides also drop what they
//! loaded: allocators put off a part of that until the next load, which would count it for the wrong side.

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

/// Loads before the second row's: by then memory that was freed is used again.
const EARLIER_LOADS: u32 = 3;

pub(super) fn run(size: Size, rounds: u32) -> Result<Vec<Row>> {
    let script = Script::Messages { messages: size.of(100_000) };
    let mut rows = Vec::new();
    for (name, earlier) in [("snapshot", 0), ("snapshot, again", EARLIER_LOADS)] {
        let (floor, kit) = (Job::FloorSnapshot { script, earlier }, Job::KitSnapshot { script, earlier });
        let pairs = round::in_turn(&floor, &kit, rounds)?;
        let ratio = pairs.spread(|floor, kit| kit.cpu / floor.cpu);
        let clock = pairs.spread(|floor, kit| kit.wall / floor.wall);
        let millis = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
        let row = Row::new(name, ratio, Unit::Ratio, Target::AtMost(2.0));
        let sides = (millis(pairs.floor(|floor| floor.cpu)), millis(pairs.kit(|kit| kit.cpu)));
        rows.push(row.sides(sides.0, sides.1).by_clock(clock));
    }
    Ok(rows)
}

/// The floor's side.
pub(crate) fn floor(script: Script, earlier: u32) -> Result<Sample> {
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
    let mut sample = Sample::default();
    for _ in 0..=earlier {
        let clocks = Clocks::start();
        let state: SessionStateResult = serde_json::from_slice(bytes)?;
        let count = state.messages.len() as u64;
        if earlier > 0 {
            drop(state);
        }
        sample = clocks.stop(count);
    }
    Ok(sample)
}

/// The kit's side.
pub(crate) async fn kit(script: Script, earlier: u32) -> Result<Sample> {
    let backend = kit::open(script).await?;
    let chat = ChatId::from("chat-0");
    let mut sample = Sample::default();
    for _ in 0..=earlier {
        let clocks = Clocks::start();
        let snapshot = backend.load_chat(&chat).await?;
        let count = snapshot.items.len() as u64;
        ensure!(count > 0, "the chat has messages");
        if earlier > 0 {
            drop(snapshot);
        }
        sample = clocks.stop(count);
    }
    backend.close().await;
    Ok(sample)
}
