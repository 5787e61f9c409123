//! The JSON-RPC engine: requests and notifications over lines of JSON, with a child process or any pair of streams.
//!
//! It knows nothing of what is said over it. Its pieces:
//!
//! - [`Client`]: a connection, and the calls on it;
//! - [`Inbound`]: where notifications and the end of a connection go;
//! - [`Notifications`]: how a notification's parameters are read, in one pass over its line;
//! - [`RawResult`]: what a call gives, unread;
//! - [`HostCommand`]: how a host is started; its process ends with the connection, whatever happens;
//! - [`Recorder`] and [`Recording`]: both directions as JSON lines, secrets masked, and reading them again;
//! - [`RpcError`], [`SpawnError`], [`Ended`]: what can go wrong;
//! - [`Counters`]: what was passed over;
//! - [`framing`], [`head`], [`message`], [`redaction`]: the pure parts below.

mod calls;
mod client;
mod connection;
mod counters;
mod error;
pub mod framing;
pub mod head;
pub mod message;
mod outbox;
mod process;
mod raw_result;
mod recorder;
mod recording;
pub mod redaction;
mod spawn_error;
mod stderr_tail;

pub use client::{Client, ClientOptions, Timeout};
pub use connection::Inbound;
pub use counters::Counters;
pub use error::{Ended, ExitReport, RpcError};
pub use message::Notifications;
pub use process::{HostCommand, Patience};
pub use raw_result::RawResult;
pub use recorder::Recorder;
pub use recording::{Direction, Recorded, Recording, RecordingHeader};
pub use spawn_error::SpawnError;
pub use stderr_tail::STDERR_TAIL_BYTES;
