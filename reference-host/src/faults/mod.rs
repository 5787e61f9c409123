//! Faults: what a host does wrong on purpose, so that a client can be tried against it. Each has a name for `--fault`;
//! all that looks random comes from the seed.

mod pen;
mod process;
mod write;

pub(crate) use pen::Pen;
pub(crate) use process::start as start_process_faults;
pub(crate) use write::WriteFault;

use std::str::FromStr;

/// What a host does wrong. The default does nothing wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// Lines on stdout that are no messages.
    pub noise: bool,
    /// Lines are written in random pieces with pauses.
    pub split: bool,
    /// Many lines are written at once, after a pause.
    pub joined: bool,
    /// Durable notifications come twice, at once or later.
    pub duplicates: bool,
    /// Transient notifications come twice.
    pub transient_duplicates: bool,
    /// Answers overtake each other.
    pub reorder: bool,
    /// What a run.start causes comes before its answer.
    pub events_first: bool,
    /// Live notifications are dropped, and `events.gap` tells so.
    pub drop: bool,
    /// A run's first line is followed by a notification of that many MiB.
    pub big_line_mib: Option<u64>,
    /// That many MiB of text on stderr at the start.
    pub stderr_mib: Option<u64>,
    /// The host exits when that many events were written, with this code.
    pub exit_at: Option<(u64, i32)>,
    /// Nothing is read or answered after that many requests; with 0 not even the handshake.
    pub hang_after: Option<u64>,
    /// Nothing happens for that many milliseconds at the start.
    pub slow_start_ms: Option<u64>,
    /// Neither SIGTERM nor the end of stdin ends the host.
    pub ignore_term: bool,
    /// A process of its own that outlives it and holds its pipes.
    pub grandchild: bool,
    /// The host asks the client something when a run starts, and the run waits for the answer.
    pub request: bool,
    /// Types, fields, roles and words that the contract doesn't know.
    pub future: bool,
}

/// The names, what they take and what they do, for the help and the documentation.
pub const FAULT_NAMES: &[(&str, &str)] = &[
    ("noise", "log lines, empty lines, half JSON and invalid UTF-8 on stdout, in between"),
    ("split", "lines are written in random pieces with pauses"),
    ("joined", "many lines are written at once, after a pause"),
    ("duplicates", "durable notifications come twice, at once or later"),
    ("transient-duplicates", "transient notifications come twice"),
    ("reorder", "answers overtake each other"),
    ("events-first", "what a run.start causes comes before its answer"),
    ("drop", "live notifications are dropped, and events.gap tells so"),
    ("big-line=MIB", "a run's first line is followed by a notification of that size"),
    ("stderr=MIB", "that much text on stderr at the start"),
    ("exit=CODE@EVENT", "the host exits with CODE when that many events were written"),
    ("hang=REQUESTS", "nothing is read or answered after that many requests; hang=0: not even the handshake"),
    ("slow-start=MS", "nothing happens for that long at the start"),
    ("ignore-term", "neither SIGTERM nor the end of stdin ends the host"),
    ("grandchild", "a process of its own outlives it and holds its pipes"),
    ("request", "the host asks the client something in each run, and waits for the answer"),
    ("future", "types, fields, roles and words that the contract doesn't know"),
];

impl Faults {
    /// Adds a fault by its name, as `--fault` takes it.
    pub fn add(&mut self, fault: &str) -> Result<(), String> {
        let (name, value) = match fault.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (fault, None),
        };
        let on = match name {
            "noise" => &mut self.noise,
            "split" => &mut self.split,
            "joined" => &mut self.joined,
            "duplicates" => &mut self.duplicates,
            "transient-duplicates" => &mut self.transient_duplicates,
            "reorder" => &mut self.reorder,
            "events-first" => &mut self.events_first,
            "drop" => &mut self.drop,
            "ignore-term" => &mut self.ignore_term,
            "grandchild" => &mut self.grandchild,
            "request" => &mut self.request,
            "future" => &mut self.future,
            "big-line" => return number(fault, value).map(|n| self.big_line_mib = Some(n)),
            "stderr" => return number(fault, value).map(|n| self.stderr_mib = Some(n)),
            "hang" => return number(fault, value).map(|n| self.hang_after = Some(n)),
            "slow-start" => return number(fault, value).map(|n| self.slow_start_ms = Some(n)),
            "exit" => {
                let (code, event) = value.and_then(|value| value.split_once('@')).ok_or_else(|| bad(fault))?;
                self.exit_at = Some((number(fault, Some(event))?, number(fault, Some(code))?));
                return Ok(());
            }
            _ => return Err(format!("unknown fault: {name}")),
        };
        if value.is_some() {
            return Err(bad(fault));
        }
        *on = true;
        Ok(())
    }

    /// Reads faults by their names.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Faults, String> {
        let mut faults = Faults::default();
        names.into_iter().try_for_each(|name| faults.add(name))?;
        Ok(faults)
    }
}

fn bad(fault: &str) -> String {
    format!("this fault takes something else: {fault}")
}

fn number<T: FromStr>(fault: &str, value: Option<&str>) -> Result<T, String> {
    value.and_then(|value| value.parse().ok()).ok_or_else(|| bad(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_does_something() {
        for (name, _) in FAULT_NAMES {
            let example = match name.split_once('=') {
                None => (*name).to_owned(),
                Some(("exit", _)) => "exit=3@10".to_owned(),
                Some((name, _)) => format!("{name}=5"),
            };
            let faults = Faults::named([example.as_str()]).unwrap();
            assert_ne!(faults, Faults::default(), "{example}");
        }
        assert_eq!(Faults::named(["exit=3@10"]).unwrap().exit_at, Some((10, 3)));
    }

    #[test]
    fn the_readme_names_every_fault_and_every_key() {
        let readme = include_str!("../../README.md");
        for name in FAULT_NAMES.iter().chain(crate::settings::CONFIG_KEYS).map(|(name, _)| name) {
            assert!(readme.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for wrong in ["", "nois", "noise=1", "hang", "hang=x", "exit=3", "exit=a@b", "big-line=-1"] {
            assert!(Faults::named([wrong]).is_err(), "{wrong}");
        }
    }
}
