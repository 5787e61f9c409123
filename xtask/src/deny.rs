//! Licences and advisories, by cargo-deny and `deny.toml`. Where the program isn't there, it is built from its source,
//! once, into `target/tools`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::{cargo, output, program, root, run};
use crate::steps::Done;

const VERSION: &str = "0.20.2";
/// Versions with this beginning read the same `deny.toml`.
const FITTING: &str = "cargo-deny 0.20.";

/// Licences, banned and doubled crates, and where crates come from.
pub(crate) fn licences() -> Result<()> {
    run(program(cargo_deny()?).args(["--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]))
}

/// Known holes in dependencies. They are told in a database that must be fetched: where it can't be, an older copy
/// serves, and where there is none the check is left out, loudly.
pub(crate) fn advisories() -> Result<Done> {
    let cargo_deny = cargo_deny()?;
    let fetched = run(program(&cargo_deny).args(["fetch", "db"]));
    if let Err(error) = &fetched {
        if !has_database() {
            return Ok(Done::Skipped(format!(
                "the database of advisories can't be fetched ({error}): NO DEPENDENCY WAS CHECKED FOR KNOWN HOLES"
            )));
        }
        println!("The database of advisories can't be fetched: an older copy is used.");
    }
    run(program(&cargo_deny).args(["--locked", "--offline", "check", "--hide-inclusion-graph", "advisories"]))?;
    Ok(Done::Passed)
}

/// Whether a database was fetched before: a folder, beside the lock file that a failed attempt leaves.
fn has_database() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let entries = home.and_then(|home| std::fs::read_dir(home.join("advisory-dbs")).ok());
    entries.is_some_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
}

/// The program: one that is installed and fits, else the one in `target/tools`, which is built where it is missing.
fn cargo_deny() -> Result<PathBuf> {
    let tools = root().join("target").join("tools");
    let own = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    for candidate in [PathBuf::from("cargo-deny"), own.clone()] {
        if output(program(&candidate).arg("--version")).is_some_and(|version| version.starts_with(FITTING)) {
            return Ok(candidate);
        }
    }
    println!("cargo-deny isn't here: it is built once, which takes some minutes.");
    let package = format!("cargo-deny@{VERSION}");
    run(cargo(["install", "--quiet", "--locked", &package, "--root"]).arg(&tools))
        .context("cargo-deny could not be built")?;
    Ok(own)
}
