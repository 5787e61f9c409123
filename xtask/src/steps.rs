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

    /// Leaves out all but the named ones, where any is named.
    pub(crate) fn only(&mut self, named: &[String]) -> Result<()> {
        if let Some(unknown) = named.iter().find(|name| !self.0.iter().any(|(step, _)| step == name)) {
            let all: Vec<&str> = self.0.iter().map(|(step, _)| *step).collect();
            bail!("there is no step {unknown:?}, only {}", all.join(", "));
        }
        self.0.retain(|(step, _)| named.is_empty() || named.iter().any(|name| name == step));
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::{Done, Steps};

    fn steps(fails: &'static str, named: &[&str]) -> (bool, Vec<&'static str>) {
        let ran = Rc::new(RefCell::new(Vec::new()));
        let mut steps = Steps::default();
        for name in ["first", "second", "third"] {
            let ran = ran.clone();
            steps.add(name, move || {
                ran.borrow_mut().push(name);
                match name {
                    _ if name == fails => Err(anyhow::anyhow!("on purpose")),
                    "second" => Ok(Done::Skipped("not here".to_owned())),
                    _ => Ok(Done::Passed),
                }
            });
        }
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let passed = steps.only(&named).and_then(|()| steps.run()).is_ok();
        (passed, ran.take())
    }

    #[test]
    fn the_first_failure_ends_them_and_is_told() {
        assert_eq!(steps("second", &[]), (false, vec!["first", "second"]));
        assert_eq!(steps("third", &[]), (false, vec!["first", "second", "third"]));
    }

    #[test]
    fn one_that_is_skipped_is_no_failure() {
        assert_eq!(steps("none", &[]), (true, vec!["first", "second", "third"]));
    }

    #[test]
    fn only_the_named_ones_run_and_an_unknown_name_runs_none() {
        assert_eq!(steps("second", &["third"]), (true, vec!["third"]));
        assert_eq!(steps("none", &["third", "fourth"]), (false, vec![]));
    }
}
