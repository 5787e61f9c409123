//! The programs that `cargo xtask` starts for a person.

use anyhow::Result;

use crate::command::{cargo, run};

/// The demo, with the reference host, which it starts as a child process, built beside it.
pub(crate) fn demo(arguments: &[String]) -> Result<()> {
    run(&mut cargo(["build", "--package", "kitport-host", "--package", "kitport-cli", "--bins"]))?;
    run(cargo(["run", "--quiet", "--package", "kitport-cli", "--", "demo"]).args(arguments))
}

/// The benchmarks, with the reference host in a release build, too.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    run(&mut cargo(["build", "--release", "--package", "kitport-host", "--bins"]))?;
    run(cargo(["run", "--release", "--package", "kitport-bench", "--"]).args(arguments))
}
