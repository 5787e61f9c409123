//! Sequences: the place of an event in its chat.

use serde::{Deserialize, Serialize};

/// A kit sequence. Durable events of a chat have strictly increasing ones; any durable event's sequence, and a
/// snapshot's, may be saved as a cursor and given to `events` later. 0 is the beginning of a chat.
///
/// What the number is made of is the adapter's affair: compare and save it, don't calculate with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The beginning of a chat.
    pub const START: Seq = Seq(0);
}

impl std::fmt::Display for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
