//! 100 readers of as many busy chats, beside one more that reads its chat, and beside one that never does.
//!
//! The one more reads the first chat, so that it shares a connection with all and a chat with one of the busy ones.

use std::sync::Arc;

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
    let kept = pairs.spread(|without, with| without.wall / with.wall * 100.0);
    let rates = Row::new("stalled, rate", kept, Unit::Percent, Target::AtLeast(95.0))
        .sides(rate(pairs.floor(by_cpu)), rate(pairs.kit(by_cpu)))
        .note("what the busy readers keep of their rate; the floor is the same with the one more reading, too");
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
    let busy: Vec<_> = (0..CHATS).map(|nth| Arc::new(backend.events(&chat(nth), None))).collect();
    let one_more = backend.events(&chat(0), None);
    tokio::time::sleep(SETTLE_TIME).await;
    let mut readers: Vec<_> =
        busy.into_iter().map(|events| tokio::spawn(async move { read_run(&events).await })).collect();
    let clocks = Clocks::start();
    let reading = (!stalled).then(|| async { read_run(&one_more).await });
    let first = chat(0);
    let sent = backend.send(&first, "go", &[]);
    let all = async {
        for reader in readers.drain(..) {
            let (read, _) = reader.await.context("a reader failed")??;
            ensure!(read == script.expected(), "{read:?} was read, not {:?}", script.expected());
        }
        Ok(())
    };
    let one_more = async {
        match reading {
            Some(reading) => reading.await.map(|_| ()),
            None => Ok(()),
        }
    };
    let (sent, all, one_more) = tokio::join!(sent, all, one_more);
    sent?;
    all?;
    one_more?;
    let mut sample = clocks.stop(script.events());
    let gaps = backend.counters().gaps;
    if gaps > 0 {
        sample.note = Some(format!("{gaps} gaps"));
    }
    backend.close().await;
    Ok(sample)
}
