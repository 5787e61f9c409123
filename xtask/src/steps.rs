//! Steps that run one after another: what each does, how long it took, and a summary. The first failure ends them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How a step ended that did not fail.
pub(crate) enum Done {
    /// It did its work.
    Passed,
    /// It could not do it here, and why.
    Skipped(String),
}

impl From<()> for Done {
    fn from((): ()) -> Self {
        Done::Passed
    }
}

type Work = Box<dyn FnOnce() -> Result<Done>>;

/// A list of steps.
#[derive(Default)]
pub(crate) struct Steps(Vec<(&'static str, Work)>);

impl Steps {
    /// Adds a step.
    pub(crate) fn add<D: Into<Done>>(&mut self, name: &'static str, work: impl FnOnce() -> Result<D> + 'static) {
        self.0.push((name, Box::new(move || work().map(Into::into))));
    }

    /// Runs them.
    pub(crate) fn run(self) -> Result<()> {
        let began = Instant::now();
        let count = self.0.len();
        let (mut passed, mut failed, mut lines) = (0, 0, Vec::new());
        for (index, (name, work)) in self.0.into_iter().enumerate() {
            if failed > 0 {
                lines.push(format!("  not run  {:>7}  {name}", ""));
                continue;
            }
            println!("\n== {name} ({} of {count})", index + 1);
            let began = Instant::now();
            let done = work();
            let took = seconds(began.elapsed());
            let (word, note) = match done {
                Ok(Done::Passed) => {
                    passed += 1;
                    ("passed", String::new())
                }
                Ok(Done::Skipped(why)) => ("SKIPPED", why),
                Err(error) => {
                    failed += 1;
                    ("FAILED", format!("{error:#}"))
                }
            };
            let note = if note.is_empty() { note } else { format!(": {note}") };
            println!("== {name}: {word} in {}{note}", took.trim_start());
            lines.push(format!("  {word:7}  {took}  {name}{note}"));
        }
        println!("\n== summary, {}", seconds(began.elapsed()).trim_start());
        lines.iter().for_each(|line| println!("{line}"));
        println!("{passed} passed, {failed} failed");
        if failed > 0 {
            bail!("a step failed");
        }
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{:>5.1} s", time.as_secs_f64())
}
