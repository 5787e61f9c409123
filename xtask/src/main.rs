//! The project's tasks: `cargo xtask <task>`. A person and the CI run the same ones.

mod command;
mod deny;
mod features;
mod fuzz;
mod program;
mod schema;
mod steps;
mod test;
mod windows;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The project's tasks", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Shows the main job: a chat with the reference host, from the first word to a killed host and back.
    Demo {
        /// Passed on to `kitport demo`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Checks everything that must hold before a change goes in.
    Test {
        /// The chaos and random tests run far more rounds.
        #[arg(long)]
        long: bool,
        /// Only these steps, by their names in the summary.
        steps: Vec<String>,
    },
    /// Measures, in a release build.
    Bench {
        /// Passed on to the benchmark program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Writes the schema that the languages' types are generated from.
    Schema {
        /// Only compares it with the committed one.
        #[arg(long)]
        check: bool,
    },
    /// Runs the fuzz targets.
    Fuzz {
        /// For how long each one runs.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
        /// Only these.
        targets: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Demo { arguments } => program::demo(&arguments),
        Task::Test { long, steps } => test::run_steps(long, &steps),
        Task::Bench { arguments } => program::bench(&arguments),
        Task::Schema { check } => schema::run(check),
        Task::Fuzz { seconds, targets } => fuzz::run_targets(seconds, &targets),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace, which says nothing about what failed.
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
