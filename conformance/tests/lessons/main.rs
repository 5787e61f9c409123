//! What went wrong for others, each a test here: lines and pipes, processes, order and replay, secrets.

#![allow(missing_docs, clippy::unwrap_used)]

mod lines;
mod order;
#[cfg(target_os = "linux")]
mod processes;
mod secrets;

use std::path::Path;

use kitport::rpc::HostCommand;

/// The reference host as a child process, with its arguments.
fn host(args: &[&str]) -> HostCommand {
    kitport_conformance::host_command(Path::new(env!("CARGO_BIN_EXE_conformance-host")), args)
}

/// What this app does in a process of its own, where it can be killed and measured.
fn app() -> std::process::Command {
    std::process::Command::new(env!("CARGO_BIN_EXE_conformance-app"))
}

/// What the app measured of a piece of work.
fn measured(work: &str, count: u64) -> Measured {
    let output = app().args(["measure", work, &count.to_string()]).output().unwrap();
    let (told, trouble) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{work} {count}: {told}{trouble}");
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let bytes = |name: &str| told[name].as_u64().unwrap();
    Measured { allocated: bytes("allocated"), peak: bytes("peak") }
}

/// Bytes over what was there before.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// All that was ever allocated: how much work it was.
    allocated: u64,
    /// The most at a time.
    peak: u64,
}
