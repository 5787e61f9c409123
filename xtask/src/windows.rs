//! Whether the core compiles for Windows, where this toolchain can.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{cargo, output, program, run};
use crate::steps::Done;

/// Any of them shows it. The core has no C in it, so none needs a linker or a C compiler for `cargo check`.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu"];

/// Checks the core.
pub(crate) fn check() -> Result<Done> {
    let sysroot = output(program("rustc").args(["--print", "sysroot"])).context("rustc could not be asked")?;
    let installed = |target: &&str| Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir();
    let Some(target) = TARGETS.into_iter().find(|target| installed(target)) else {
        return Ok(Done::Skipped(format!("no Windows target here; get one with `rustup target add {}`", TARGETS[1])));
    };
    run(&mut cargo(["check", "--package", "kitport", "--all-features", "--target", target]))?;
    Ok(Done::Passed)
}
