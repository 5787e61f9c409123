//! What one measurement of one side gives, and the clocks behind it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::machine;

/// One measurement.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// How long it took, in seconds.
    pub(crate) wall: f64,
    /// How much CPU time the reading process took, in seconds.
    pub(crate) cpu: f64,
    /// How many events, messages or round trips there were.
    pub(crate) count: u64,
    /// How much memory more than before the measurement there was at most, in bytes.
    pub(crate) memory: Option<u64>,
    /// What else is worth a line, such as how often a stream had to read the history.
    pub(crate) note: Option<String>,
}

/// The clocks of a measurement.
pub(crate) struct Clocks {
    wall: Instant,
    cpu: Duration,
    resident: Option<u64>,
}

impl Clocks {
    pub(crate) fn start() -> Self {
        let resident = machine::resident_bytes();
        machine::forget_peak();
        Clocks { cpu: machine::cpu_time(), wall: Instant::now(), resident }
    }

    pub(crate) fn stop(self, count: u64) -> Sample {
        let (wall, cpu) = (self.wall.elapsed(), machine::cpu_time() - self.cpu);
        let memory = self.resident.and_then(|resident| Some(machine::peak_bytes()?.saturating_sub(resident)));
        Sample { wall: wall.as_secs_f64(), cpu: cpu.as_secs_f64(), count, memory, note: None }
    }
}
