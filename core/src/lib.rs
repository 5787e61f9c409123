//! One API for apps that show and drive AI agents, whatever agent host stands behind it.

pub mod bubblepaw;
mod call;
pub mod door;
pub mod error;
pub mod feed;
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
