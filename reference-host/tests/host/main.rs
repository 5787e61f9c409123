//! Drives the real program over stdio with a small client of its own, which knows lines and JSON and nothing of kitport's.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

mod client;
mod faults;
mod methods;
mod replay;
mod restart;
mod runs;
mod script;
