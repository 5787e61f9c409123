//! The programs that `cargo xtask` starts for a person.

use anyhow::Result;

use crate::command::{cargo, run};

/// The demo, with the reference host, which it starts as a child process, built beside it.
pub(crate) fn demo(arguments: &[String]) -> Result<()> {
    run(&mut cargo(["build", "--package", "kitport-host", "--package", "kitport-cli", "--bins"]))?;
    run(cargo(["run", "--quiet", "--package", "kitport-cli", "--", "demo"]).args(arguments))
}

/// The benchmarks. They bring their own host: the reference host would be what is measured.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    run(cargo(["run", "--release", "--package", "kitport-bench", "--"]).args(arguments))
}
