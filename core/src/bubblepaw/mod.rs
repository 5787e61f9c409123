//! BubblePaw: the adapter for a host that speaks the BubblePaw stdio protocol 0.1.
//!
//! Pure parts, from the wire to the kit: [`wire`] (shapes), `convert`, `snapshot`, [`sequence`] (positions), `text`
//! (provisional text), `project` (events), `known` and `diff` (what a reload tells).

mod convert;
mod diff;
mod known;
mod project;
pub mod sequence;
mod snapshot;
mod text;
pub mod wire;
