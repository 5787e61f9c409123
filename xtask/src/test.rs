//! `cargo xtask test`: all that must hold, in the order in which a mistake is cheapest to find.

use anyhow::Result;

use crate::command::{cargo, run};
use crate::steps::Steps;
use crate::{deny, features, schema, windows};

/// Set for the tests when they are to run for long.
const LONG: &str = "KITPORT_LONG";

/// Runs the steps, all where none is named.
pub(crate) fn run_steps(long: bool, named: &[String]) -> Result<()> {
    let mut steps = Steps::default();
    steps.add("format", || run(&mut cargo(["fmt", "--all", "--check"])));
    steps.add("lints", || {
        run(&mut cargo(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
    });
    // Tests start the programs as child processes.
    steps.add("programs", || run(&mut cargo(["build", "--workspace", "--bins"])));
    steps.add("tests", move || {
        let arguments = ["test", "--workspace", "--all-features", "--lib", "--bins", "--tests", "--examples"];
        let mut tests = cargo(arguments);
        tests.arg("--no-fail-fast");
        if long {
            tests.env(LONG, "1");
        }
        run(&mut tests)
    });
    steps.add("doc-tests", || run(&mut cargo(["test", "--workspace", "--all-features", "--doc"])));
    steps.add("docs", || {
        run(cargo(["doc", "--no-deps", "--workspace", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.add("schema", || schema::run(true));
    steps.add("features", features::run_all);
    steps.add("windows", windows::check);
    steps.add("licences", deny::licences);
    steps.add("advisories", deny::advisories);
    steps.only(named)?;
    steps.run()
}
