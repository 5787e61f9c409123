//! The reference host of kitport: it speaks the BubblePaw stdio protocol as the contract has it, with sessions in
//! SQLite and an agent that does what the user's message says. It is for demos, tests and work on user interfaces, and
//! it does wrong on purpose what a [`Faults`] names.
//!
//! - [`serve`] speaks over any pair of pipes, [`embedded`] over pipes in this process.
//! - [`main_entry`] is the program, for binaries that want to be it.
//! - [`replay()`] plays a recording back as a host.
//! - What a message can say is on the page `SCRIPTS.md`.
//!
//! Inside: `protocol` reads requests and answers them, `agent` plays runs, `store` keeps what must last, `outbox`
//! carries lines to the writer, `host` ties them together.

mod agent;
mod cli;
mod embedded;
mod failure;
mod faults;
mod host;
mod options;
mod outbox;
mod protocol;
mod providers;
mod replay;
mod settings;
mod stdio;
mod store;

pub use cli::main_entry;
pub use embedded::{Embedded, embedded};
pub use faults::{FAULT_NAMES, Faults};
pub use options::HostOptions;
pub use protocol::{Served, serve};
pub use replay::{Pace, replay};
pub use settings::CONFIG_KEYS;
