//! What a connection passed over, counted.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a connection passed over since its start.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        pub(super) struct CounterCells {
            $(pub(super) $name: Cell,)*
        }

        impl CounterCells {
            pub(super) fn read(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Lines that are no JSON-RPC message: log lines, empty lines, half JSON, invalid UTF-8.
    skipped_lines,
    /// Answers to requests that were not made, or that nobody waits for any more.
    unknown_ids,
    /// Lines over the line limit.
    oversize,
    /// Notifications of interest whose parameters don't fit.
    malformed,
    /// Requests of the host: answered with -32601.
    host_requests,
}

#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU64);

impl Cell {
    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
