//! The replay of a long history: whether its time grows with its length alone, and how much memory it takes.

use anyhow::{Result, ensure};
use kitport::ChatReader;
use kitport::model::{ChatId, Seq};

use super::{MEBIBYTE, Size};
use crate::feeder::{Expected, Script};
use crate::sample::{Clocks, Sample};
use crate::table::{Row, Target, Unit};
use crate::worker::Job;
use crate::{kit, round};

/// How many events are taken at once.
const BATCH: usize = 1024;

pub(super) fn run(size: Size, rounds: u32) -> Result<Vec<Row>> {
    let job = |events| Job::Replay(Script::History { events });
    let pairs = round::in_turn(&job(size.of(100_000)), &job(size.of(1_000_000)), rounds)?;
    let by_cpu = |sample: &Sample| sample.cpu / sample.count as f64;
    let by_clock = |sample: &Sample| sample.wall / sample.count as f64;
    let more = |each: fn(&Sample) -> f64| pairs.spread(|few, many| (each(many) / each(few) - 1.0) * 100.0);
    let nanos = |seconds: f64| format!("{:.0} ns an event", seconds * 1e9);
    let time = Row::new("replay, time", more(by_cpu), Unit::Percent, Target::Within(15.0))
        .sides(nanos(pairs.floor(by_cpu)), nanos(pairs.kit(by_cpu)))
        .by_clock(more(by_clock))
        .note("how much more an event of the longer history costs than one of the shorter, which stands as the floor");
    let mebibytes = |sample: &Sample| sample.memory.map_or(f64::NAN, |bytes| bytes as f64 / MEBIBYTE);
    let shown = |value: f64| format!("{value:.1} MiB");
    let memory =
        Row::new("replay, memory", pairs.spread(|_, many| mebibytes(many)), Unit::Mebibytes, Target::AtMost(64.0))
            .sides(shown(pairs.floor(mebibytes)), shown(pairs.kit(mebibytes)))
            .note("the most above what there was with the snapshot loaded and nothing replayed");
    Ok(vec![time, memory])
}

/// One replay.
pub(crate) async fn kit(script: Script) -> Result<Sample> {
    let backend = kit::open(script).await?;
    let chat = ChatId::from("chat-0");
    let snapshot = backend.load_chat(&chat).await?;
    let clocks = Clocks::start();
    let events = backend.events(&chat, Some(Seq::START));
    let mut read = Expected::default();
    let mut last = Seq::START;
    // The snapshot stands behind its last event, which has two positions.
    let end = Seq(snapshot.seq.0 - 15);
    while last < end {
        let batch = events.next_batch(BATCH).await?;
        ensure!(!batch.is_empty(), "the stream ended");
        for event in batch.iter().filter(|event| event.durable) {
            ensure!(event.seq > last, "a durable event came twice or out of order");
            last = event.seq;
            read.durable += 1;
        }
    }
    let mut sample = clocks.stop(script.events());
    ensure!(read == script.expected(), "{read:?} was read, not {:?}", script.expected());
    let gaps = backend.counters().gaps;
    if gaps > 0 {
        sample.note = Some(format!("{gaps} gaps"));
    }
    backend.close().await;
    Ok(sample)
}
