//! The small streams of a backend: new chats, and the state of the connection.

use std::sync::{Mutex, MutexGuard};

use crate::error::KitError;
use crate::lock::lock;
use crate::model::ConnectionState;
use crate::stream::{ConnectionStream, KitStream, Merge, StreamLimits, StreamSink};

/// Something told to everybody who listens.
pub(crate) struct Broadcast<T: Merge>(Mutex<Vec<StreamSink<T>>>);

impl<T: Merge> Default for Broadcast<T> {
    fn default() -> Self {
        Broadcast(Mutex::default())
    }
}

impl<T: Merge + Clone> Broadcast<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<StreamSink<T>>> {
        lock(&self.0)
    }

    pub(crate) fn subscribe(&self, limits: StreamLimits) -> KitStream<T> {
        let (sink, stream) = KitStream::channel(limits);
        let mut sinks = self.lock();
        sinks.retain(|sink| !sink.is_ended());
        sinks.push(sink);
        stream
    }

    pub(crate) fn tell(&self, item: &T) {
        let mut sinks = self.lock();
        sinks.retain(|sink| !sink.is_ended());
        for sink in sinks.iter() {
            // Few and small: a reader that never reads is not told more than its bound.
            sink.push(item.clone());
        }
    }

    pub(crate) fn end(&self, error: Option<KitError>) {
        for sink in self.lock().drain(..) {
            sink.end(error.clone());
        }
    }
}

/// The state of the connection: told to a new reader at once, and to all when it changes.
pub(crate) struct Latest(Mutex<State>);

struct State {
    now: ConnectionState,
    over: bool,
    sinks: Vec<StreamSink<ConnectionState>>,
}

impl State {
    fn set(&mut self, now: ConnectionState) {
        if self.over {
            return;
        }
        self.sinks.retain(|sink| !sink.is_ended());
        for sink in &self.sinks {
            sink.push(now.clone());
        }
        self.now = now;
    }
}

impl Latest {
    pub(crate) fn new(now: ConnectionState) -> Self {
        Latest(Mutex::new(State { now, over: false, sinks: Vec::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    pub(crate) fn subscribe(&self, limits: StreamLimits) -> ConnectionStream {
        let (sink, stream) = KitStream::channel(limits);
        let mut state = self.lock();
        sink.push(state.now.clone());
        state.sinks.retain(|sink| !sink.is_ended());
        if !state.over {
            state.sinks.push(sink);
        }
        stream
    }

    pub(crate) fn set(&self, now: ConnectionState) {
        self.lock().set(now);
    }

    /// The last state there is: behind it the streams end.
    pub(crate) fn end(&self, last: ConnectionState) {
        let mut state = self.lock();
        state.set(last);
        state.over = true;
        state.sinks.clear();
    }
}
