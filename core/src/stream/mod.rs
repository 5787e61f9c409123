//! Streams: how events reach an app without being lost, and without growing without bound.
//!
//! A [`KitStream`] is pulled in two steps: [`ready`](KitStream::ready) waits and takes nothing, so it may be dropped at
//! any moment; [`take`](KitStream::take) gives at once what is there. Everything else (`next`, `next_batch`,
//! `futures::Stream`) stands on these two and waits before it takes, so that a dropped call loses nothing either.
//! The sending side, [`StreamSink`], never waits: it says when the stream is full, and its owner catches up later.

mod merge;
mod queue;
mod sink;
mod wakers;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::{KitError, Result};
use crate::model::{Chat, ConnectionState, Event, EventKind, RunId};

pub use merge::Merge;
pub use sink::{Pushed, SinkBatch, StreamSink};

use queue::Shared;

pub(crate) use merge::{utf16_len, value_bytes};
pub(crate) use wakers::{Ready, Waited, Waiter, Wakers};

/// The events of a chat, or of all chats.
pub type EventStream = KitStream<Event>;
/// Chats that came to be by a command here.
pub type ChatStream = KitStream<Chat>;
/// How the connection is.
pub type ConnectionStream = KitStream<ConnectionState>;

/// How much a stream holds for a reader that is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Events at most.
    pub events: usize,
    /// Bytes at most, as estimated from the texts in them.
    pub bytes: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        // Enough for the burst of a busy turn; small enough that a hundred stalled readers don't matter.
        StreamLimits { events: 4096, bytes: 8 * 1024 * 1024 }
    }
}

/// A stream. It ends with `None`, after an error where something ended it. Closing or dropping it ends the work behind it.
pub struct KitStream<T: Merge> {
    shared: Arc<Shared<T>>,
    /// Who polls it as a `futures::Stream`.
    polling: Waiter,
}

impl<T: Merge> KitStream<T> {
    /// A stream and its sending side.
    pub fn channel(limits: StreamLimits) -> (StreamSink<T>, Self) {
        let shared = Arc::new(Shared::new(limits));
        (StreamSink::new(shared.clone()), KitStream { shared, polling: Waiter::default() })
    }

    /// A stream that fails at once.
    pub fn failed(error: KitError) -> Self {
        let (sink, stream) = Self::channel(StreamLimits::default());
        sink.end(Some(error));
        stream
    }

    /// Waits until [`take`](Self::take) has something to give, be it the error at the end. False: the stream has ended.
    /// Takes nothing: drop it at any moment.
    pub async fn ready(&self) -> bool {
        Ready::new(&*self.shared).await
    }

    /// Gives at once what is there, at most `max`: nothing, where [`ready`](Self::ready) would wait. The error that ended
    /// the stream comes once, after everything before it.
    ///
    /// With `futures::StreamExt` in scope write `(&stream).take(max)`, or that trait's own `take` is meant.
    pub fn take(&self, max: usize) -> Result<Vec<T>> {
        self.shared.take(max)
    }

    /// Waits for the next one.
    pub async fn next(&self) -> Option<Result<T>> {
        loop {
            if !self.ready().await {
                return None;
            }
            // Two readers of one stream may race for it: the slower one waits again.
            match self.take(1) {
                Ok(mut one) => match one.pop() {
                    Some(item) => return Some(Ok(item)),
                    None => continue,
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Waits for the next ones and gives what is there, at most `max`. Empty: the stream has ended.
    pub async fn next_batch(&self, max: usize) -> Result<Vec<T>> {
        loop {
            if !self.ready().await {
                return Ok(Vec::new());
            }
            let batch = self.take(max.max(1))?;
            if !batch.is_empty() {
                return Ok(batch);
            }
        }
    }

    /// How many places its queue has, holes included.
    #[cfg(test)]
    fn places(&self) -> usize {
        self.shared.lock().places()
    }

    /// Ends the stream: a pending `ready` gives false, what was not taken is dropped. Safe to call twice.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Ends the stream, from the reader's side, behind the first item for which `last` is true.
    pub(crate) fn end_after(&self, last: impl Fn(&T) -> bool + Send + 'static) {
        self.shared.end_after(Box::new(last));
    }
}

impl EventStream {
    /// The same stream, ended behind the event that tells that `run` has finished.
    pub fn until_run_finished(self, run: RunId) -> Self {
        self.end_after(move |event| {
            matches!(event.kind, EventKind::RunFinished(_)) && event.run.as_ref().is_some_and(|r| *r == run)
        });
        self
    }
}

impl<T: Merge> Drop for KitStream<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T: Merge> std::fmt::Debug for KitStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KitStream").finish_non_exhaustive()
    }
}

impl<T: Merge> futures::Stream for KitStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let KitStream { shared, polling } = &mut *self;
        loop {
            match shared.poll_ready(polling, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Ready(true) => match shared.take(1) {
                    Ok(mut one) => {
                        if let Some(item) = one.pop() {
                            return Poll::Ready(Some(Ok(item)));
                        }
                    }
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests;
