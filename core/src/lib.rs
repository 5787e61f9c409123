//! One API for apps that show and drive AI agents, whatever agent host stands behind it.
//!
//! An app holds a backend: [`BubblePaw`] today, more hosts later. It reads through [`ChatReader`] and commands through
//! [`AgentBackend`]; both are object-safe, so that an app's own code can take any backend.
//!
//! ```no_run
//! use kitport::bubblepaw::Options;
//! use kitport::rpc::HostCommand;
//! use kitport::{AgentBackend, BubblePaw, ChatFeed, ChatReader};
//!
//! # async fn main_job() -> kitport::Result<()> {
//! let host = HostCommand::new("bubblepaw").arg("stdio").cwd("/project");
//! let backend = std::sync::Arc::new(BubblePaw::spawn(host, Options::default()).await?);
//! let chat = backend.create_chat(Some("Fix the tests")).await?;
//! let feed = ChatFeed::open(backend.clone(), &chat.id).await?;
//! backend.send(&chat.id, "Why does the build fail?", &[]).await?;
//! while let Some(update) = feed.next().await {
//!     println!("{} items", update?.state.items().len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What is where:
//!
//! - [`model`]: chats, items, events, capabilities: plain data with a JSON form.
//! - [`ChatReader`], [`AgentBackend`], [`CallExt`]: the ports, and time-outs of single calls.
//! - [`error`]: few, stable kinds of errors with data.
//! - [`stream`]: streams that lose nothing and hold no more than their bound.
//! - [`feed`]: a chat as a list that keeps itself up to date.
//! - [`door`]: every method and stream by its name, JSON in and out, for bindings to other languages.
//! - [`bubblepaw`]: the adapter for hosts that speak the BubblePaw stdio protocol.
//! - [`rpc`]: the JSON-RPC engine below it, usable alone.
//!
//! The feature `schema` adds JSON Schemas of all of it (`door::schema`).

pub mod bubblepaw;
mod call;
pub mod door;
pub mod error;
pub mod feed;
mod lock;
pub mod model;
mod port;
pub mod rpc;
pub mod stream;

pub use bubblepaw::BubblePaw;
pub use call::{CallExt, Limit, limit};
pub use error::{ErrorInfo, KitError, Outcome, Result};
pub use feed::{Changed, ChatFeed, FeedState, FeedUpdate};
pub use port::{AgentBackend, ChatReader};
pub use stream::{ChatStream, ConnectionStream, EventStream, KitStream, StreamLimits, StreamSink};
