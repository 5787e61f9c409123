//! The calls that wait for an answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::error::Ended;
use super::message::Answer;
use super::outbox::Unsent;

/// What became of a call.
pub(super) enum Fate {
    Answered(Answer),
    Oversize,
    Ended { ended: Ended, sent: bool },
}

/// The table of waiting calls. Whether the connection has ended stands under the same lock, so that no call can be
/// entered that nobody will end.
#[derive(Default)]
pub(super) struct Calls {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: HashMap<u64, oneshot::Sender<Fate>>,
    ended: Option<Ended>,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a call, unless the connection has ended.
    pub(super) fn enter(&self, id: u64) -> Result<oneshot::Receiver<Fate>, Ended> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.lock();
        if let Some(ended) = &inner.ended {
            return Err(ended.clone());
        }
        inner.waiting.insert(id, sender);
        Ok(receiver)
    }

    /// Takes a call out that nobody waits for any more.
    pub(super) fn leave(&self, id: u64) {
        let _ = self.lock().waiting.remove(&id);
    }

    /// Tells a call its fate. `false`: there is no such call.
    pub(super) fn complete(&self, id: u64, fate: Fate) -> bool {
        let Some(sender) = self.lock().waiting.remove(&id) else { return false };
        sender.send(fate).is_ok()
    }

    /// Ends all calls, and the later ones. The first end is the one that counts, and is given back.
    pub(super) fn end(&self, ended: Ended, unsent: &Unsent) -> Ended {
        let mut inner = self.lock();
        let ended = inner.ended.get_or_insert(ended).clone();
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        for (id, sender) in waiting {
            let _ = sender.send(Fate::Ended { ended: ended.clone(), sent: !unsent.has(id) });
        }
        ended
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.lock().ended.clone()
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}
