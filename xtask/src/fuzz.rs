//! `cargo xtask fuzz`: the targets in `fuzz/`, each for a time. The same bodies run as property tests in `cargo test`.

use anyhow::{Result, bail};

use crate::command::{output, program, root, run};

/// Runs the targets, all where none is named.
pub(crate) fn run_targets(seconds: u32, targets: &[String]) -> Result<()> {
    let mut missing = Vec::new();
    if !root().join("fuzz").join("Cargo.toml").is_file() {
        missing.push("the folder fuzz/ with the targets");
    }
    // Sanitizers are nightly's.
    if output(nightly().arg("rustc").arg("--version")).is_none() {
        missing.push("a nightly toolchain (`rustup toolchain install nightly`)");
    }
    if output(program("cargo-fuzz").arg("--version")).is_none() {
        missing.push("cargo-fuzz (`cargo install --locked cargo-fuzz`)");
    }
    if !missing.is_empty() {
        bail!("nothing was fuzzed, there is missing: {}", missing.join("; "));
    }
    let listed = output(nightly().args(["cargo", "fuzz", "list"])).unwrap_or_default();
    let all: Vec<String> = listed.lines().map(str::to_owned).collect();
    if let Some(unknown) = targets.iter().find(|target| !all.contains(target)) {
        bail!("there is no target {unknown:?}, only {}", all.join(", "));
    }
    let chosen = if targets.is_empty() { &all } else { targets };
    for target in chosen {
        let time = format!("-max_total_time={seconds}");
        run(nightly().args(["cargo", "fuzz", "run", target, "--", &time]))?;
    }
    println!("{} targets, {seconds} s each: nothing found", chosen.len());
    Ok(())
}

fn nightly() -> std::process::Command {
    let mut command = program("rustup");
    // The cargo that runs this is not the one to use.
    command.args(["run", "nightly"]).env_remove("CARGO").env_remove("RUSTC");
    command
}
