//! The feed: a chat as an app shows it, kept up to date.
//!
//! [`ChatFeed`] is what most apps want: it loads a chat's snapshot, applies its events, loads the snapshot anew after a
//! gap, and gives the state with what changed. It knows the [`ChatReader`](crate::ChatReader) port and no host.
//! [`FeedReducer`] below it is the same without I/O. [`check`] compares states, for tests.

mod changed;
pub mod check;
mod compare;
mod item;
mod lane;
mod live;
mod message;
mod order;
mod part;
mod reducer;
mod reload;
mod state;
mod text;
mod tool;
mod tree;

pub use changed::{Changed, ItemChange, Parts, TextChange, TextOf};
pub use item::{FeedItem, LiveMessage};
pub use live::{ChatFeed, FeedUpdate};
pub use reducer::{FeedReducer, Reload};
pub use state::{FeedJob, FeedState, Thinking};
pub use text::LiveText;

#[cfg(test)]
mod tests;
