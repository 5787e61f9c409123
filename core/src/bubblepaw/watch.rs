//! Live events of all chats, without replay: what `watch_all` gives.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::project::{Origin, Projector};
use super::sequence::Cursor;
use super::wire::HarnessEvent;
use crate::error::KitError;
use crate::lock::lock;
use crate::model::{ChatId, Event, Gap, GapReason};
use crate::stream::{EventStream, KitStream, Pushed, StreamLimits, StreamSink};

/// The streams that watch all chats. They share one projection a chat.
#[derive(Default)]
pub(crate) struct Watchers {
    /// Whether anybody watches: asked for every batch, so it costs no lock.
    any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sinks: Vec<StreamSink<Event>>,
    chats: HashMap<ChatId, Projector>,
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether anybody watches.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn watch(&self, limits: StreamLimits) -> EventStream {
        let (sink, stream) = KitStream::channel(limits);
        let mut state = self.lock();
        state.sinks.retain(|sink| !sink.is_ended());
        state.sinks.push(sink);
        self.any.store(true, Ordering::Release);
        stream
    }

    /// Projects live events of a chat and hands them out.
    pub(crate) fn events(&self, chat: &ChatId, events: &[HarnessEvent]) {
        if !self.any() {
            return;
        }
        let mut state = self.lock();
        let State { sinks, chats } = &mut *state;
        // A transient event carries the last durable sequence; what was before it does not come here.
        let first = events.first().filter(|event| !event.durable).map(|event| event.sequence);
        let projector = chats.entry(chat.clone()).or_insert_with(|| Projector::new(chat.clone(), Cursor::START));
        if projector.cursor == Cursor::START {
            projector.cursor = first.map_or(Cursor::START, Cursor::whole);
        }
        let mut projected = Vec::new();
        for event in events {
            projector.project(event.clone(), Origin::Live, &mut |event| projected.push(event));
        }
        let lost = live_lost(projector);
        sinks.retain(|sink| give(sink, &projected, &lost) != Pushed::Ended);
        self.forget_if_alone(&mut state);
    }

    /// Live events of a chat, or of all, were lost: there is no replay here, so the app is told.
    pub(crate) fn lost(&self, chat: Option<&ChatId>) {
        if !self.any() {
            return;
        }
        let mut state = self.lock();
        let State { sinks, chats } = &mut *state;
        if let Some(chat) = chat {
            chats.entry(chat.clone()).or_insert_with(|| Projector::new(chat.clone(), Cursor::START));
        }
        for (_, projector) in chats.iter_mut().filter(|(known, _)| chat.is_none_or(|chat| chat == *known)) {
            projector.lost();
            let lost = live_lost(projector);
            sinks.retain(|sink| sink.push(lost.clone()) != Pushed::Ended);
        }
        self.forget_if_alone(&mut state);
    }

    /// The host is gone, and with it live events of all chats. It may count from the beginning when it is back.
    pub(crate) fn down(&self) {
        self.lost(None);
        for projector in self.lock().chats.values_mut() {
            projector.cursor = Cursor::START;
        }
    }

    pub(crate) fn end(&self, error: Option<&KitError>) {
        let mut state = self.lock();
        for sink in state.sinks.drain(..) {
            sink.end(error.cloned());
        }
        self.forget_if_alone(&mut state);
    }

    fn forget_if_alone(&self, state: &mut State) {
        if state.sinks.is_empty() {
            self.any.store(false, Ordering::Release);
            state.chats.clear();
        }
    }
}

fn live_lost(projector: &Projector) -> Event {
    projector.transient(Gap { reason: GapReason::LiveLost, lost: true, snapshot_seq: None }, None)
}

/// Hands events to one reader; where it has no room the rest is lost, and it is told.
fn give(sink: &StreamSink<Event>, events: &[Event], lost: &Event) -> Pushed {
    let mut batch = sink.batch();
    for event in events {
        match batch.push(event.clone()) {
            Pushed::Taken => {}
            Pushed::Full => return batch.push(lost.clone()),
            Pushed::Ended => return Pushed::Ended,
        }
    }
    Pushed::Taken
}
