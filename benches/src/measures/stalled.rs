//! 100 readers of as many busy chats, alone, and beside one more that never reads.
//!
//! The one more has a stream of the first chat, so that it shares a connection with all and a chat with one of the busy
//! ones.

use anyhow::{Context, Result, ensure};
use kitport::model::ChatId;
use kitport::{AgentBackend, ChatReader};

use super::events::{SETTLE_TIME, read_run};
use super::{MEBIBYTE, Size, rate};
use crate::feeder::Script;
use crate::sample::{Clocks, Sample};
use crate::table::{Row, Target, Unit};
use crate::worker::Job;
use crate::{kit, round};

const CHATS: u64 = 100;

/// How much memory the stalled reader may take: its own bound is 8 MiB, and what it has pending has the same.
const MEMORY_MEBIBYTES: f64 = 32.0;

pub(super) fn run(size: Size, rounds: u32) -> Result<Vec<Row>> {
    let script = Script::Chats { chats: CHATS, events_each: size.of(10_000) };
    let pairs = round::in_turn(&Job::Busy { script, stalled: false }, &Job::Busy { script, stalled: true }, rounds)?;
    let by_cpu = |sample: &Sample| sample.count as f64 / sample.cpu;
    let kept = pairs.spread(|without, with| without.cpu / with.cpu * 100.0);
    let clock = pairs.spread(|without, with| without.wall / with.wall * 100.0);
    let rates = Row::new("stalled, rate", kept, Unit::Percent, Target::AtLeast(95.0))
        .sides(rate(pairs.floor(by_cpu)), rate(pairs.kit(by_cpu)))
        .by_clock(clock)
        .note("what the busy readers keep of the rate that they have alone, which stands as the floor");
    let mebibytes = |sample: &Sample| sample.memory.map_or(f64::NAN, |bytes| bytes as f64 / MEBIBYTE);
    let more = pairs.spread(|without, with| mebibytes(with) - mebibytes(without));
    let shown = |value: f64| format!("{value:.1} MiB");
    let memory = Row::new("stalled, memory", more, Unit::Mebibytes, Target::AtMost(MEMORY_MEBIBYTES))
        .sides(shown(pairs.floor(mebibytes)), shown(pairs.kit(mebibytes)))
        .note("how much more memory there is with the stalled reader; its stream is bounded by 8 MiB");
    Ok(vec![rates, memory])
}

/// All readers at once; the sample is that of the busy ones.
pub(crate) async fn kit(script: Script, stalled: bool) -> Result<Sample> {
    let backend = kit::open(script).await?;
    let chat = |nth: u64| ChatId::from(format!("chat-{nth}"));
    let busy: Vec<_> = (0..CHATS).map(|nth| backend.events(&chat(nth), None)).collect();
    let _never_read = stalled.then(|| backend.events(&chat(0), None));
    tokio::time::sleep(SETTLE_TIME).await;
    let readers: Vec<_> = busy.into_iter().map(|events| tokio::spawn(async move { read_run(&events).await })).collect();
    let clocks = Clocks::start();
    backend.send(&chat(0), "go", &[]).await?;
    for reader in readers {
        let (read, _) = reader.await.context("a reader failed")??;
        ensure!(read == script.expected(), "{read:?} was read, not {:?}", script.expected());
    }
    let mut sample = clocks.stop(script.events());
    let gaps = backend.counters().gaps;
    if gaps > 0 {
        sample.note = Some(format!("{gaps} gaps"));
    }
    backend.close().await;
    Ok(sample)
}
