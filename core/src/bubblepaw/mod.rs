//! BubblePaw: the adapter for a host that speaks the BubblePaw stdio protocol 0.1.
//!
//! Pure parts, from the wire to the kit: [`wire`] (shapes), `convert`, `snapshot`, [`sequence`] (positions), `text`
//! (provisional text), `project` (events), `known` and `diff` (what a reload tells), `inputs` (what an app may send),
//! [`errors`] (the table of words).
//!
//! Moving parts: `session` (the connection over its restarts) and its `supervisor`, `handshake`, `notify` and `router` (from
//! the connection to the chats), `inbox` and `chat` (one task a chat, for all its streams), `watch` and `broadcast`
//! (streams over all chats), `history` and `context` (reads with a memory), `backend` (the ports).

mod backend;
mod broadcast;
mod chat;
mod context;
mod convert;
mod diff;
pub mod errors;
mod handshake;
mod history;
mod inbox;
mod inputs;
mod known;
mod notify;
mod options;
mod project;
mod router;
mod rpc_call;
pub mod sequence;
mod session;
mod snapshot;
mod supervisor;
mod text;
mod watch;
pub mod wire;

pub use backend::BubblePaw;
pub use options::{Options, Restart};
