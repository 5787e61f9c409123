//! A small request there and back, against a bare line there and back with the same program at the other end.
//!
//! The child is on another core, as it mostly is where there is one. On the same core, which is the second row, nothing
//! but the work of the two programs is left of a round trip, not even the time that it takes to wake a core.
//!
//! Both sides are in one process and take turns in short rows, so that the same moments of the machine count for both.

use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::Size;
use crate::feeder::Script;
use crate::floor::Bare;
use crate::kit;
use crate::sample::Sample;
use crate::stats::Spread;
use crate::table::{Row, Target, Unit};
use crate::worker::{self, Job};

/// Round trips of one side before the other has its turn.
const IN_A_ROW: u32 = 200;

pub(super) fn run(size: Size, rounds: u32) -> Result<Vec<Row>> {
    let trips = u32::try_from(size.of(20_000)).unwrap_or(u32::MAX);
    let mut rows = Vec::new();
    for (name, one_core) in [("round-trip", false), ("round-trip, one core", true)] {
        let samples = worker::measure_all(&Job::RoundTrips { rounds, trips, one_core })?;
        let (bare, kit): (Vec<_>, Vec<_>) = samples.chunks_exact(2).map(|pair| (pair[0].wall, pair[1].wall)).unzip();
        let ratio = Spread::of(bare.iter().zip(&kit).map(|(bare, kit)| kit / bare));
        let micros = |times: Vec<f64>| format!("{:.1} µs", Spread::of(times).median * 1e6);
        rows.push(Row::new(name, ratio, Unit::Ratio, Target::AtMost(1.5)).sides(micros(bare), micros(kit)));
    }
    Ok(rows)
}

/// The median times of a bare round trip and of one of the kit's, for each round.
pub(crate) async fn both(rounds: u32, trips: u32) -> Result<Vec<Sample>> {
    let mut bare = Bare::start(Script::Answers)?;
    let backend = kit::open(Script::Answers).await?;
    let request = br#"{"jsonrpc":"2.0","id":12345,"method":"config.set","params":{"key":"a.key","value":"a value"}}"#;
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let (mut of_bare, mut of_kit) = (Vec::new(), Vec::new());
        for _ in 0..trips / IN_A_ROW {
            for _ in 0..IN_A_ROW {
                let since = Instant::now();
                bare.ask(request)?;
                of_bare.push(since.elapsed().as_secs_f64());
            }
            for _ in 0..IN_A_ROW {
                let since = Instant::now();
                backend.set_config("a.key", json!("a value")).await?;
                of_kit.push(since.elapsed().as_secs_f64());
            }
        }
        for times in [of_bare, of_kit] {
            let count = times.len() as u64;
            samples.push(Sample { wall: Spread::of(times).median, count, ..Sample::default() });
        }
    }
    bare.end()?;
    kitport::ChatReader::close(&backend).await;
    Ok(samples)
}
