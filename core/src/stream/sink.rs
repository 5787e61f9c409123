//! The sending side of a stream. It never waits.

use std::sync::Arc;
use std::task::Waker;

use tokio::sync::Notify;

use super::merge::Merge;
use super::queue::{Shared, State};
use crate::error::KitError;
use crate::lock::lock;

/// What became of a pushed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the queue.
    Taken,
    /// There is no room: the reader is behind. Catch up when [`StreamSink::has_room`] says so.
    Full,
    /// The stream has ended.
    Ended,
}

/// The sending side of a stream. Dropping it ends the stream without an error.
pub struct StreamSink<T: Merge> {
    shared: Arc<Shared<T>>,
}

impl<T: Merge> StreamSink<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        StreamSink { shared }
    }

    /// `notify` is told when a full stream has room again, and when the reader closes.
    pub fn notify_when_drained(&self, notify: Arc<Notify>) {
        *lock(&self.shared.drained) = Some(notify);
    }

    /// Adds an item.
    pub fn push(&self, item: T) -> Pushed {
        self.batch().push(item)
    }

    /// Holds the queue for several items: one lock and one wake-up for all of them.
    pub fn batch(&self) -> SinkBatch<'_, T> {
        SinkBatch { state: self.shared.lock(), shared: &self.shared, pushed: false }
    }

    /// Whether the reader has come far enough that pushing is worth while. Where not, the owner is told when it has.
    pub fn has_room(&self) -> bool {
        let mut state = self.shared.lock();
        let room = state.is_ended() || state.has_room(self.shared.limits());
        if !room {
            state.want_room();
        }
        room
    }

    /// Whether the stream has ended, by either side.
    pub fn is_ended(&self) -> bool {
        self.shared.lock().is_ended()
    }

    /// Ends the stream, with an error where something ended it. What is in the queue is still given.
    pub fn end(&self, error: Option<KitError>) {
        let wakers = {
            let mut state = self.shared.lock();
            state.end(error);
            state.take_wakers()
        };
        wakers.for_each(Waker::wake);
    }
}

impl<T: Merge> Drop for StreamSink<T> {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl<T: Merge> std::fmt::Debug for StreamSink<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamSink").finish_non_exhaustive()
    }
}

/// The queue, held for several items. Readers are woken when it is dropped.
pub struct SinkBatch<'a, T: Merge> {
    state: std::sync::MutexGuard<'a, State<T>>,
    shared: &'a Shared<T>,
    pushed: bool,
}

impl<T: Merge> SinkBatch<'_, T> {
    /// Adds an item.
    pub fn push(&mut self, item: T) -> Pushed {
        match self.push_or_return(item) {
            Ok(()) if self.state.is_ended() => Pushed::Ended,
            Ok(()) => Pushed::Taken,
            Err(_) => Pushed::Full,
        }
    }

    /// Adds an item, or gives it back where there is no room. A stream that has ended takes everything and keeps nothing.
    pub fn push_or_return(&mut self, item: T) -> Result<(), T> {
        if self.state.is_ended() {
            return Ok(());
        }
        let pushed = self.state.push(item, self.shared.limits());
        match pushed {
            Ok(()) => self.pushed = true,
            Err(_) => self.state.want_room(),
        }
        pushed
    }

    /// Adds an item whatever the bound says: the last ones before the end.
    pub(crate) fn push_over(&mut self, item: T) {
        if !self.state.is_ended() {
            self.state.push_back(item);
            self.pushed = true;
        }
    }
}

impl<T: Merge> Drop for SinkBatch<'_, T> {
    fn drop(&mut self) {
        if self.pushed {
            // Woken under the lock: a reader on another thread waits for a moment at most, and no waker is lost.
            self.state.take_wakers().for_each(Waker::wake);
        }
    }
}
