//! Every set of features builds: without any, and with each one alone. All together is what the other steps build.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{cargo, output, run};

/// Checks every package of the workspace that has features, with the lints, which find what a feature leaves unused.
pub(crate) fn run_all() -> Result<()> {
    let metadata = output(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]));
    let metadata: Value = serde_json::from_str(&metadata.context("cargo metadata failed")?)?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().context("a package without a name")?;
        let features = package["features"].as_object().context("a package without features")?;
        let features: Vec<&str> = features.keys().map(String::as_str).filter(|feature| *feature != "default").collect();
        if features.is_empty() {
            continue;
        }
        clippy(name, "")?;
        for feature in features {
            clippy(name, feature)?;
        }
    }
    Ok(())
}

fn clippy(package: &str, features: &str) -> Result<()> {
    let mut clippy = cargo(["clippy", "--quiet", "--package", package, "--all-targets", "--no-default-features"]);
    if !features.is_empty() {
        clippy.args(["--features", features]);
    }
    run(clippy.args(["--", "-D", "warnings"]))
}
