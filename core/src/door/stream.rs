//! A stream of any kind with JSON out: `ready` waits and takes nothing, `take` gives at once what is there.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::reply::no_json;
use crate::error::Result;
use crate::stream::{KitStream, Merge};

/// An open stream. Cheap to clone: all clones read the same stream, and the last one that is dropped closes it.
#[derive(Clone)]
pub struct DoorStream(Arc<dyn AnyStream>);

impl DoorStream {
    /// Waits until [`take`](Self::take) has something to give. False: the stream has ended. Takes nothing: drop it at
    /// any moment.
    pub async fn ready(&self) -> bool {
        self.0.ready().await
    }

    /// Gives at once what is there, at most `max`. The error that ended the stream comes once, after everything before
    /// it.
    pub fn take(&self, max: usize) -> Result<Vec<Value>> {
        self.0.values(max)
    }

    /// The same as one JSON array, without a value for each: the fast way over a language's border.
    pub fn take_json(&self, max: usize) -> Result<String> {
        self.0.json(max)
    }

    /// Ends the stream: a pending `ready` gives false, what was not taken is dropped. Safe to call twice.
    pub fn close(&self) {
        self.0.close();
    }
}

impl<T: Merge + Serialize> From<KitStream<T>> for DoorStream {
    fn from(stream: KitStream<T>) -> Self {
        DoorStream(Arc::new(stream))
    }
}

impl std::fmt::Debug for DoorStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DoorStream").finish_non_exhaustive()
    }
}

trait AnyStream: Send + Sync {
    fn ready(&self) -> BoxFuture<'_, bool>;
    fn values(&self, max: usize) -> Result<Vec<Value>>;
    fn json(&self, max: usize) -> Result<String>;
    fn close(&self);
}

impl<T: Merge + Serialize> AnyStream for KitStream<T> {
    fn ready(&self) -> BoxFuture<'_, bool> {
        self.ready().boxed()
    }

    fn values(&self, max: usize) -> Result<Vec<Value>> {
        self.take(max)?.iter().map(|item| serde_json::to_value(item).map_err(no_json)).collect()
    }

    fn json(&self, max: usize) -> Result<String> {
        serde_json::to_string(&self.take(max)?).map_err(no_json)
    }

    fn close(&self) {
        self.close();
    }
}
