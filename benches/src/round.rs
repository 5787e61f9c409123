//! Rounds: the sides of a figure take turns, so that what disturbs the machine disturbs both.

use anyhow::Result;

use crate::sample::Sample;
use crate::stats::Spread;
use crate::worker::{self, Job};

/// The samples of two sides, round by round.
pub(crate) struct Pairs(Vec<(Sample, Sample)>);

/// Measures the floor, then the kit, `rounds` times.
pub(crate) fn in_turn(floor: &Job, kit: &Job, rounds: u32) -> Result<Pairs> {
    let mut pairs = Vec::new();
    for round in 0..rounds {
        // Who comes first has a colder or a warmer machine: they take turns in that, too.
        let pair = if round % 2 == 0 {
            let floor = worker::measure(floor)?;
            (floor, worker::measure(kit)?)
        } else {
            let kit = worker::measure(kit)?;
            (worker::measure(floor)?, kit)
        };
        pairs.push(pair);
    }
    Ok(Pairs(pairs))
}

impl Pairs {
    /// What `figure` makes of each round's pair.
    pub(crate) fn spread(&self, figure: impl Fn(&Sample, &Sample) -> f64) -> Spread {
        Spread::of(self.0.iter().map(|(floor, kit)| figure(floor, kit)))
    }

    pub(crate) fn floor(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        self.spread(|floor, _| figure(floor)).median
    }

    pub(crate) fn kit(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        self.spread(|_, kit| figure(kit)).median
    }

    /// What the kit's side noted, once each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<_> = self.0.iter().filter_map(|(_, kit)| kit.note.clone()).collect();
        notes.sort();
        notes.dedup();
        notes
    }
}
