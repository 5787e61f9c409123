//! What the kit costs, held against a floor: the least that the same work could cost. `cargo xtask bench` runs it.
//!
//! Neither criterion nor divan fits here. Each figure is a ratio between two whole processes that read from a third one
//! over pipes, with their memory, and a ratio is only worth something when both sides are measured in turn, minutes in
//! which the machine may be busy with other things. So the harness is small and its own:
//!
//! - `feeder` is the host of every measurement: this program again, which speaks just enough of the contract, from
//!   bytes that it made before the clock starts, as fast as a pipe goes;
//! - `worker` runs one measurement of one side in a process of its own, bound to one core, the feeder to another;
//! - `measures` has one file a figure, with the floor and the kit's side of it;
//! - `round`, `stats` and `table` take the sides in turn, and the median of the ratios of all rounds.
//!
//! CPU time is user and system time of the reading process. It decides where throughput is meant, because other
//! programs on the machine disturb it less than they disturb the clock; the clock's ratio is printed beside it.

mod feeder;
mod floor;
mod kit;
mod machine;
mod measures;
mod round;
mod sample;
mod stats;
mod table;
mod worker;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(about = "Measures the kit against the least that the same work could cost", disable_version_flag = true)]
struct Arguments {
    /// Prints the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Only the figures whose name has this in it.
    #[arg(long)]
    only: Option<String>,
    /// How many rounds; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// A tenth of the work: to see that all goes, not what it costs.
    #[arg(long)]
    quick: bool,
    /// This process is the host of a measurement.
    #[arg(long, hide = true)]
    feeder: Option<String>,
    /// The core that the host is bound to.
    #[arg(long, hide = true)]
    core: Option<usize>,
    /// This process measures one side.
    #[arg(long, hide = true)]
    worker: Option<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(script) = &arguments.feeder {
        return feeder::run(&serde_json::from_str(script)?, arguments.core);
    }
    if let Some(job) = &arguments.worker {
        return worker::run(serde_json::from_str(job)?);
    }
    let size = if arguments.quick { measures::Size::QUICK } else { measures::Size::WHOLE };
    let only = arguments.only.as_deref().unwrap_or_default();
    let mut rows = Vec::new();
    for measure in measures::ALL.iter().filter(|measure| measure.name.contains(only)) {
        eprintln!("{}: {}", measure.name, measure.what);
        let found = (measure.run)(size, arguments.rounds)?;
        found.iter().for_each(|row| eprintln!("  {}", row.line()));
        rows.extend(found);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&table::Report::new(rows, arguments.rounds, arguments.quick))?);
    } else {
        print!("{}", table::Report::new(rows, arguments.rounds, arguments.quick).markdown());
    }
    Ok(())
}
