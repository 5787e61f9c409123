//! The queue between a sink and its stream: bounded, merging, with one end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::StreamLimits;
use super::merge::{Merge, Weight};
use super::wakers::{Waited, Waiter, Wakers};
use crate::error::{KitError, Result};
use crate::lock::lock;

/// Merging begins when this part of the bound is used: a reader that keeps up sees every event as it came.
const MERGE_FROM: usize = 4;

/// A predicate that tells the last item.
pub(super) type Last<T> = Box<dyn Fn(&T) -> bool + Send>;

pub(super) struct Shared<T: Merge> {
    state: Mutex<State<T>>,
    /// Tells the owner of the sink that there is room again, or that the stream was closed.
    pub(super) drained: Mutex<Option<Arc<Notify>>>,
    limits: StreamLimits,
}

pub(super) struct State<T: Merge> {
    /// A merged-away item leaves a hole, so that places stay valid.
    items: VecDeque<Option<T>>,
    /// The place of the first item, counted from the stream's beginning.
    first: u64,
    held: usize,
    bytes: usize,
    /// The places of the newest state events, by what they tell.
    newest: HashMap<T::Key, u64>,
    wakers: Wakers,
    end: Option<End>,
    last: Option<Last<T>>,
    /// Whether the owner waits for room.
    wants_room: bool,
}

struct End {
    /// Given once, after the items.
    error: Option<KitError>,
}

impl<T: Merge> Shared<T> {
    pub(super) fn new(limits: StreamLimits) -> Self {
        let state = State {
            items: VecDeque::new(),
            first: 0,
            held: 0,
            bytes: 0,
            newest: HashMap::new(),
            wakers: Wakers::default(),
            end: None,
            last: None,
            wants_room: false,
        };
        Shared { state: Mutex::new(state), drained: Mutex::new(None), limits }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing here panics while it holds the lock, and a queue is sound after any step.
        lock(&self.state)
    }

    pub(super) fn take(&self, max: usize) -> Result<Vec<T>> {
        let mut state = self.lock();
        let mut taken = Vec::with_capacity(max.min(state.held));
        while taken.len() < max {
            let Some(slot) = state.items.pop_front() else { break };
            let place = state.first;
            state.first += 1;
            let Some(item) = slot else { continue };
            if let Weight::State(key) = item.weight()
                && state.newest.get(&key) == Some(&place)
            {
                state.newest.remove(&key);
            }
            state.held -= 1;
            state.bytes = state.bytes.saturating_sub(item.bytes());
            let is_last = state.last.as_ref().is_some_and(|last| last(&item));
            taken.push(item);
            if is_last {
                state.clear();
                state.end = Some(End { error: None });
                state.wants_room = true;
                break;
            }
        }
        let error = if taken.is_empty() && state.held == 0 && max > 0 {
            state.end.as_mut().and_then(|end| end.error.take())
        } else {
            None
        };
        let notify = state.wants_room && (state.end.is_some() || state.has_room(&self.limits));
        if notify {
            state.wants_room = false;
        }
        drop(state);
        if notify {
            self.notify_owner();
        }
        match error {
            Some(error) => Err(error),
            None => Ok(taken),
        }
    }

    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.clear();
        // A reader that closed asks for no error.
        let already = state.end.replace(End { error: None });
        let wakers = state.wakers.take();
        drop(state);
        wakers.for_each(Waker::wake);
        if already.is_none() {
            self.notify_owner();
        }
    }

    pub(super) fn end_after(&self, last: Last<T>) {
        let mut state = self.lock();
        state.last = Some(last);
    }

    fn notify_owner(&self) {
        let drained = lock(&self.drained);
        if let Some(notify) = &*drained {
            notify.notify_one();
        }
    }

    pub(super) fn limits(&self) -> &StreamLimits {
        &self.limits
    }
}

impl<T: Merge> Waited for Shared<T> {
    fn poll_ready(&self, waiter: &mut Waiter, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.lock();
        if state.held > 0 {
            return Poll::Ready(true);
        }
        match &state.end {
            Some(end) => Poll::Ready(end.error.is_some()),
            None => {
                state.wakers.wait(waiter, cx.waker());
                Poll::Pending
            }
        }
    }

    fn leave(&self, waiter: &mut Waiter) {
        self.lock().wakers.leave(waiter);
    }
}

impl<T: Merge> State<T> {
    fn clear(&mut self) {
        self.items.clear();
        self.newest.clear();
        self.first = 0;
        self.held = 0;
        self.bytes = 0;
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn end(&mut self, error: Option<KitError>) {
        self.end.get_or_insert(End { error });
    }

    pub(super) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> + use<T> {
        self.wakers.take()
    }

    pub(super) fn want_room(&mut self) {
        self.wants_room = true;
    }

    /// Half empty: far enough from the bound that the next batch doesn't hit it at once.
    pub(super) fn has_room(&self, limits: &StreamLimits) -> bool {
        self.held <= limits.events / 2 && self.bytes <= limits.bytes / 2
    }

    /// Adds an item, merging it where the reader is behind. Gives it back where there is no room.
    pub(super) fn push(&mut self, mut item: T, limits: &StreamLimits) -> Result<(), T> {
        let behind = self.held >= limits.events / MERGE_FROM || self.bytes >= limits.bytes / MERGE_FROM;
        let bytes = item.bytes();
        match item.weight() {
            // State is never refused: there is at most one of a key once it is merged.
            Weight::State(key) => {
                let place = self.first + self.items.len() as u64;
                if let Some(older) = self.newest.insert(key, place).filter(|_| behind)
                    && let Some(old) = self.items.get_mut((older - self.first) as usize).and_then(Option::take)
                {
                    self.held -= 1;
                    self.bytes = self.bytes.saturating_sub(old.bytes());
                    self.close_holes();
                }
            }
            Weight::Piece => {
                // A merged piece takes no place of its own, but its bytes count.
                if behind
                    && self.bytes + bytes <= limits.bytes
                    && let Some(Some(tail)) = self.items.back_mut()
                {
                    let before = tail.bytes();
                    match tail.absorb(item) {
                        None => {
                            self.bytes = self.bytes + tail.bytes() - before;
                            return Ok(());
                        }
                        Some(back) => item = back,
                    }
                }
                if self.is_full(bytes, limits) {
                    return Err(item);
                }
            }
            Weight::Whole => {
                if self.is_full(bytes, limits) {
                    return Err(item);
                }
            }
        }
        self.push_back(item);
        Ok(())
    }

    /// Closes the holes where they are most of the queue: state that is told for ever to a reader that never reads must
    /// not make it longer and longer.
    fn close_holes(&mut self) {
        const FEW_HOLES: usize = 32;
        if self.items.len() - self.held <= self.held + FEW_HOLES {
            return;
        }
        let mut to = self.first;
        for (from, item) in (self.first..).zip(self.items.iter()) {
            let Some(item) = item else { continue };
            if let Weight::State(key) = item.weight()
                && let Some(newest) = self.newest.get_mut(&key).filter(|newest| **newest == from)
            {
                *newest = to;
            }
            to += 1;
        }
        // The one that is being pushed comes next.
        let coming = self.first + self.items.len() as u64;
        if let Some(newest) = self.newest.values_mut().find(|newest| **newest == coming) {
            *newest = to;
        }
        self.items.retain(Option::is_some);
    }

    /// Adds an item whatever the bound says.
    pub(super) fn push_back(&mut self, item: T) {
        self.held += 1;
        self.bytes += item.bytes();
        self.items.push_back(Some(item));
    }

    /// One item always fits into an empty queue, however large it is.
    fn is_full(&self, bytes: usize, limits: &StreamLimits) -> bool {
        self.held > 0 && (self.held >= limits.events || self.bytes + bytes > limits.bytes)
    }
}
