//! The calls that wait for an answer, and their deadlines.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use tokio::sync::{Notify, oneshot};

use super::error::Ended;
use super::message::ErrorObject;
use super::outbox::Unsent;
use super::raw_result::RawResult;
use crate::lock::lock;

/// What became of a call.
pub(super) enum Fate {
    Result(RawResult),
    Error(ErrorObject),
    Unreadable,
    Oversize,
    Late,
    Ended { ended: Ended, sent: bool },
}

/// The table of waiting calls. Whether the connection has ended stands under the same lock, so that no call can be
/// entered that nobody will end.
///
/// One task watches all deadlines. A timer for each call would cost more than the rest of the call, and mostly no call
/// is the one that would be late.
#[derive(Default)]
pub(super) struct Calls {
    inner: Mutex<Inner>,
    /// Wakes the task that watches the deadlines.
    sooner: Notify,
}

#[derive(Default)]
struct Inner {
    waiting: HashMap<u64, Waiting>,
    ended: Option<Ended>,
    /// When the deadlines are looked at next. Mostly later than needed: its call was answered meanwhile.
    watched: Option<Instant>,
}

struct Waiting {
    sender: oneshot::Sender<Fate>,
    deadline: Option<Instant>,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Enters a call, unless the connection has ended.
    pub(super) fn enter(&self, id: u64, deadline: Option<Instant>) -> Result<oneshot::Receiver<Fate>, Ended> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.lock();
        if let Some(ended) = &inner.ended {
            return Err(ended.clone());
        }
        inner.waiting.insert(id, Waiting { sender, deadline });
        if let Some(deadline) = deadline
            && inner.watched.is_none_or(|watched| deadline < watched)
        {
            inner.watched = Some(deadline);
            drop(inner);
            self.sooner.notify_one();
        }
        Ok(receiver)
    }

    /// Takes a call out that nobody waits for any more.
    pub(super) fn leave(&self, id: u64) {
        let _ = self.lock().waiting.remove(&id);
    }

    /// Tells a call its fate. `false`: there is no such call.
    pub(super) fn complete(&self, id: u64, fate: Fate) -> bool {
        let Some(waiting) = self.lock().waiting.remove(&id) else { return false };
        waiting.sender.send(fate).is_ok()
    }

    /// Ends all calls, and the later ones. The first end is the one that counts, and is given back.
    pub(super) fn end(&self, ended: Ended, unsent: &Unsent) -> Ended {
        let mut inner = self.lock();
        let ended = inner.ended.get_or_insert(ended).clone();
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        for (id, waiting) in waiting {
            let _ = waiting.sender.send(Fate::Ended { ended: ended.clone(), sent: !unsent.has(id) });
        }
        self.sooner.notify_one();
        ended
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.lock().ended.clone()
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Tells late calls that they are late, until the connection has ended.
    pub(super) async fn watch_deadlines(&self) {
        loop {
            let next = {
                let mut inner = self.lock();
                if inner.ended.is_some() {
                    return;
                }
                let now = Instant::now();
                let late = |waiting: &Waiting| waiting.deadline.is_some_and(|deadline| deadline <= now);
                for (_, waiting) in inner.waiting.extract_if(|_, waiting| late(waiting)) {
                    let _ = waiting.sender.send(Fate::Late);
                }
                inner.watched = inner.waiting.values().filter_map(|waiting| waiting.deadline).min();
                inner.watched
            };
            match next {
                Some(next) => {
                    let _ = tokio::time::timeout_at(next.into(), self.sooner.notified()).await;
                }
                None => self.sooner.notified().await,
            }
        }
    }
}
