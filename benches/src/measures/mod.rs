//! The figures, one file each.

pub(crate) mod events;
pub(crate) mod replay;
pub(crate) mod round_trip;
pub(crate) mod snapshot;
pub(crate) mod stalled;

use anyhow::Result;

use crate::table::Row;

/// How much work is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// What the targets' numbers are divided by.
    divisor: u64,
}

impl Size {
    pub(crate) const WHOLE: Size = Size { divisor: 1 };
    pub(crate) const QUICK: Size = Size { divisor: 10 };

    fn of(self, count: u64) -> u64 {
        count / self.divisor
    }
}

/// A figure, or several that belong together.
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) run: fn(Size, u32) -> Result<Vec<Row>>,
}

/// All figures.
pub(crate) const ALL: &[Measure] = &[
    Measure {
        name: "deltas",
        what: "small pieces of text, from the pipe to next_batch, against reading and parsing their lines",
        run: events::deltas,
    },
    Measure {
        name: "tools",
        what: "tool events, from the pipe to next_batch, against reading and parsing their lines",
        run: events::tools,
    },
    Measure { name: "round-trip", what: "a small request, against a bare line there and back", run: round_trip::run },
    Measure { name: "snapshot", what: "load_chat, against parsing the state out of memory", run: snapshot::run },
    Measure { name: "replay", what: "a history, ten times as long against once, and its memory", run: replay::run },
    Measure { name: "stalled", what: "100 readers alone, and beside one that doesn't read", run: stalled::run },
];

/// A rate in words.
fn rate(per_second: f64) -> String {
    match per_second {
        many if many >= 10e6 => format!("{:.0} M/s", many / 1e6),
        many if many >= 1e6 => format!("{:.2} M/s", many / 1e6),
        few => format!("{:.0} k/s", few / 1e3),
    }
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;
