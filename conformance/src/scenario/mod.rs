//! Scenarios as data: what a person does through the door, and what must come of it. `conformance/README.md` is their page.
//!
//! The runner calls the door and nothing else, so that it does what the bindings do; every language runs the same files.

mod normal;
mod run;
mod step;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

pub use run::run;
pub use step::Step;

/// The variable that writes expectations anew instead of checking them.
pub const BLESS: &str = "KITPORT_BLESS";

/// A scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, that of its file.
    pub name: String,
    /// What it shows, in a sentence.
    pub shows: String,
    /// Arguments of the host, behind `stdio`. `$folder` is a folder of the scenario's own.
    #[serde(default)]
    pub host: Vec<String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Whether every stream's durable events come again in a replay from the beginning. True unless said.
    #[serde(default = "yes")]
    pub replays: bool,
}

fn yes() -> bool {
    true
}

/// The folder of the scenarios.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Names of all scenarios, sorted.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the scenarios are there");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let scenarios = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut names: Vec<_> =
        scenarios.map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

impl Scenario {
    /// Reads a scenario by its name.
    pub fn load(name: &str) -> Scenario {
        let path = folder().join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let scenario: Scenario =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(scenario.name, name, "a scenario is named as its file");
        scenario
    }

    /// Holds what came against what is expected. Panics with a diff where they differ; with `KITPORT_BLESS=1` what came is
    /// what is expected from now on.
    pub fn check(&self, got: &Value) {
        if std::env::var(BLESS).is_ok_and(|bless| bless == "1") {
            std::fs::write(self.expected(), pretty(got)).expect("the expectation can be written");
        } else if let Some(diff) = self.differs(got) {
            panic!("{}: {BLESS}=1 would expect this from now on\n{diff}", self.name);
        }
    }

    /// How what came differs from what is expected; none where it doesn't.
    pub fn differs(&self, got: &Value) -> Option<String> {
        let path = self.expected();
        let expected = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; {BLESS}=1 writes it", path.display()));
        diff(&expected, &pretty(got))
    }

    fn expected(&self) -> PathBuf {
        folder().join("expected").join(format!("{}.json", self.name))
    }
}

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).expect("a value is JSON"))
}

/// The lines that differ, with some around them; none where the texts are the same.
fn diff(expected: &str, got: &str) -> Option<String> {
    if expected == got {
        return None;
    }
    let diff = similar::TextDiff::from_lines(expected, got);
    Some(diff.unified_diff().context_radius(6).header("expected", "came").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_its_lines() {
        assert_eq!(diff("a\n", "a\n"), None);
        let shown = diff("{\n  \"a\": 1\n}\n", "{\n  \"a\": 2\n}\n").unwrap();
        assert!(shown.contains("-  \"a\": 1") && shown.contains("+  \"a\": 2"), "{shown}");
    }
}
