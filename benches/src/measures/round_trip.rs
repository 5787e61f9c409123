//! A small request there and back, against a bare line there and back with the same program at the other end.
//!
//! The child is on another core, as it mostly is where there is one. On the same core, which is the second row, nothing
//! but the work of the two programs is left of a round trip, not even the time that it takes to wake a core.
//!
//! All sides are in one process and take turns in short rows, so that the same moments of the machine count for all.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::Size;
use crate::feeder::{self, Script};
use crate::floor::Bare;
use crate::kit;
use crate::sample::Sample;
use crate::stats::Spread;
use crate::table::{Row, Target, Unit};
use crate::worker::{self, Job};

/// Round trips of one side before the other has its turn.
const IN_A_ROW: u32 = 200;

/// The floor, the runtime, the kit.
const SIDES: usize = 3;

pub(super) fn run(size: Size, rounds: u32) -> Result<Vec<Row>> {
    let trips = u32::try_from(size.of(20_000)).unwrap_or(u32::MAX);
    let mut rows = Vec::new();
    for (name, one_core) in [("round-trip", false), ("round-trip, one core", true)] {
        let samples = worker::measure_all(&Job::RoundTrips { rounds, trips, one_core })?;
        let side = |nth: usize| -> Vec<f64> { samples.iter().skip(nth).step_by(SIDES).map(|s| s.wall).collect() };
        let (bare, runtime, kit) = (side(0), side(1), side(2));
        let ratio = |times: &[f64]| Spread::of(bare.iter().zip(times).map(|(bare, time)| time / bare));
        let micros = |times: &[f64]| format!("{:.1} µs", Spread::of(times.iter().copied()).median * 1e6);
        let note = format!(
            "the same line through the async runtime's pipes and nothing else takes {}, {:.2} of the floor",
            micros(&runtime),
            ratio(&runtime).median
        );
        let row = Row::new(name, ratio(&kit), Unit::Ratio, Target::AtMost(1.5));
        rows.push(row.sides(micros(&bare), micros(&kit)).note(note));
    }
    Ok(rows)
}

/// The median times of a bare round trip, of one over the runtime's pipes, and of one of the kit's, for each round.
pub(crate) async fn all(rounds: u32, trips: u32) -> Result<Vec<Sample>> {
    let mut bare = Bare::start(Script::Answers)?;
    let mut runtime = Runtime::start()?;
    let backend = kit::open(Script::Answers).await?;
    let request = br#"{"jsonrpc":"2.0","id":12345,"method":"config.set","params":{"key":"a.key","value":"a value"}}"#;
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let (mut of_bare, mut of_runtime, mut of_kit) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..trips / IN_A_ROW {
            for _ in 0..IN_A_ROW {
                let since = Instant::now();
                bare.ask(request)?;
                of_bare.push(since.elapsed().as_secs_f64());
            }
            for _ in 0..IN_A_ROW {
                let since = Instant::now();
                runtime.ask(request).await?;
                of_runtime.push(since.elapsed().as_secs_f64());
            }
            for _ in 0..IN_A_ROW {
                let since = Instant::now();
                backend.set_config("a.key", json!("a value")).await?;
                of_kit.push(since.elapsed().as_secs_f64());
            }
        }
        for times in [of_bare, of_runtime, of_kit] {
            let count = times.len() as u64;
            samples.push(Sample { wall: Spread::of(times).median, count, ..Sample::default() });
        }
    }
    bare.end()?;
    runtime.end().await?;
    kitport::ChatReader::close(&backend).await;
    Ok(samples)
}

/// A feeder at the other end of the async runtime's pipes, for what these alone cost.
struct Runtime {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Runtime {
    fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(feeder::arguments(&Script::Answers)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().context("stdin is piped")?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        Ok(Runtime { child, stdin, stdout, line: Vec::new() })
    }

    async fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.line.clear();
        self.line.extend_from_slice(request);
        self.line.push(b'\n');
        self.stdin.write_all(&self.line).await?;
        self.line.clear();
        ensure!(self.stdout.read_until(b'\n', &mut self.line).await? > 0, "the feeder ended");
        Ok(())
    }

    async fn end(mut self) -> Result<()> {
        drop(self.stdin);
        let status = self.child.wait().await?;
        ensure!(status.success(), "the feeder ended with {status}");
        Ok(())
    }
}
