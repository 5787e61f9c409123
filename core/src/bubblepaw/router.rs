//! From a connection to the chats: who gets which notification. Called from the reading task, so nothing here waits.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::inbox::{Inbox, Mail};
use super::notify::HostNotifications;
use super::watch::Watchers;
use super::wire::{HarnessEvent, Notification, lenient_event};
use crate::lock::lock;
use crate::model::ChatId;
use crate::rpc::{Ended, Inbound};

/// Oversize notifications make all chats replay; a flood of them must not make a flood of replays.
const OVERSIZE_PAUSE: Duration = Duration::from_secs(1);

/// The end of a connection, with its number.
pub(crate) struct EndedConnection {
    pub(crate) generation: u64,
    pub(crate) ended: Ended,
}

/// Who listens to what.
pub(crate) struct Router {
    chats: Mutex<HashMap<ChatId, Arc<Inbox>>>,
    pub(crate) watchers: Watchers,
    ends: mpsc::UnboundedSender<EndedConnection>,
    pub(crate) gaps: AtomicU64,
    pub(crate) malformed: AtomicU64,
    runtime: tokio::runtime::Handle,
}

impl Router {
    pub(crate) fn new(runtime: tokio::runtime::Handle) -> (Arc<Self>, mpsc::UnboundedReceiver<EndedConnection>) {
        let (ends, ended) = mpsc::unbounded_channel();
        let router = Router {
            chats: Mutex::default(),
            watchers: Watchers::default(),
            ends,
            gaps: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            runtime,
        };
        (Arc::new(router), ended)
    }

    fn chats(&self) -> MutexGuard<'_, HashMap<ChatId, Arc<Inbox>>> {
        lock(&self.chats)
    }

    /// Hands mail to a chat's task, which `start` starts where there is none.
    pub(crate) fn deliver_or_start(&self, chat: &ChatId, mail: Mail, start: impl FnOnce(Arc<Inbox>)) {
        let inbox = {
            let mut chats = self.chats();
            if let Some(inbox) = chats.get(chat) {
                return inbox.push(mail);
            }
            let inbox = Arc::new(Inbox::default());
            inbox.push(mail);
            chats.insert(chat.clone(), inbox.clone());
            inbox
        };
        // Not under the lock: where the runtime has ended the task is dropped at once, and takes its leave here.
        start(inbox);
    }

    /// Hands mail to a chat's task, if there is one.
    pub(crate) fn deliver(&self, chat: &ChatId, mail: Mail) {
        if let Some(inbox) = self.chats().get(chat) {
            inbox.push(mail);
        }
    }

    /// Hands mail to every chat's task.
    pub(crate) fn deliver_to_all(&self, mail: impl Fn() -> Mail) {
        self.chats().values().for_each(|inbox| inbox.push(mail()));
    }

    /// A task with no streams asks to end. True: nothing waits for it any more, and it must end.
    pub(crate) fn retire(&self, chat: &ChatId, inbox: &Arc<Inbox>) -> bool {
        let mut chats = self.chats();
        if !inbox.is_empty() {
            return false;
        }
        forget(&mut chats, chat, inbox);
        true
    }

    /// A task is dropped, at its end or in the middle: gives the mail that it will not read. Later mail finds no inbox.
    pub(crate) fn abandon(&self, chat: &ChatId, inbox: &Arc<Inbox>) -> VecDeque<Mail> {
        let mut chats = self.chats();
        forget(&mut chats, chat, inbox);
        inbox.take()
    }

    /// Live events of all chats may have been lost.
    pub(crate) fn all_lost(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
        self.watchers.lost(None);
        self.deliver_to_all(|| Mail::Lost);
    }
}

/// Forgets a task's inbox, unless a later task has taken its place.
fn forget(chats: &mut HashMap<ChatId, Arc<Inbox>>, chat: &ChatId, inbox: &Arc<Inbox>) {
    if chats.get(chat).is_some_and(|known| Arc::ptr_eq(known, inbox)) {
        chats.remove(chat);
    }
}

/// One connection's way to the router.
pub(crate) struct Handler {
    pub(crate) router: Arc<Router>,
    pub(crate) generation: u64,
    pub(crate) oversize: Arc<OversizePause>,
}

/// When the last flood of oversize lines was made good, and whether another round is due.
#[derive(Default)]
pub(crate) struct OversizePause(Mutex<PauseState>);

#[derive(Default)]
struct PauseState {
    last: Option<Instant>,
    due: bool,
}

impl Handler {
    /// Hands out events of one chat.
    fn events(&self, chat: &ChatId, events: impl Iterator<Item = HarnessEvent>) {
        if self.router.watchers.any() {
            let events: Vec<_> = events.collect();
            self.router.watchers.events(chat, &events);
            self.deliver(chat, events.into_iter());
        } else {
            self.deliver(chat, events);
        }
    }

    fn deliver(&self, chat: &ChatId, events: impl Iterator<Item = HarnessEvent>) {
        let inbox = self.router.chats().get(chat).cloned();
        match inbox {
            Some(inbox) => {
                if !inbox.push_live(events) {
                    self.router.gaps.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => events.for_each(drop),
        }
    }
}

impl Inbound<HostNotifications> for Handler {
    fn notifications(&mut self, batch: &mut Vec<Notification>) {
        // Runs of events of one chat go together: one lock and one wake-up for each run.
        let mut rest = batch.drain(..);
        while let Some(first) = rest.as_slice().first() {
            match first {
                Notification::Event(first) => {
                    let chat = first.session_id.clone();
                    let of_chat = |other: &&Notification| match other {
                        Notification::Event(other) => other.session_id == chat,
                        Notification::Gap(_) => false,
                    };
                    let count = rest.as_slice().iter().take_while(of_chat).count();
                    let events = rest.by_ref().take(count).filter_map(|notification| match notification {
                        Notification::Event(event) => Some(event.event),
                        Notification::Gap(_) => None,
                    });
                    self.events(&chat, events);
                }
                Notification::Gap(gap) => {
                    self.router.gaps.fetch_add(1, Ordering::Relaxed);
                    self.router.watchers.lost(Some(&gap.session_id));
                    self.router.deliver(&gap.session_id, Mail::Lost);
                    rest.next();
                }
            }
        }
    }

    fn malformed(&mut self, method: &str, params: Option<&RawValue>) {
        #[derive(serde::Deserialize)]
        struct Params<'a> {
            session_id: ChatId,
            #[serde(borrow)]
            event: &'a RawValue,
        }
        self.router.malformed.fetch_add(1, Ordering::Relaxed);
        let Some(params) = params.filter(|_| method == Notification::EVENT) else { return };
        // With a session, a sequence and a type it is an event all the same, whose content is in doubt.
        let Ok(Params { session_id, event }) = serde_json::from_str::<Params<'_>>(params.get()) else { return };
        if let Ok(event) = lenient_event(event) {
            self.events(&session_id, std::iter::once(event));
        }
    }

    fn oversize(&mut self) {
        let mut pause = lock(&self.oversize.0);
        let since = pause.last.map(|last| last.elapsed());
        match since {
            Some(since) if since < OVERSIZE_PAUSE => {
                // One round at the end of the pause stands for all that came in it.
                if !std::mem::replace(&mut pause.due, true) {
                    let (router, oversize) = (self.router.clone(), self.oversize.clone());
                    self.router.runtime.spawn(async move {
                        tokio::time::sleep(OVERSIZE_PAUSE - since).await;
                        {
                            let mut pause = lock(&oversize.0);
                            *pause = PauseState { last: Some(Instant::now()), due: false };
                        }
                        router.all_lost();
                    });
                }
            }
            _ => {
                pause.last = Some(Instant::now());
                drop(pause);
                self.router.all_lost();
            }
        }
    }

    fn ended(&mut self, ended: &Ended) {
        // Where nobody listens any more the backend is gone, and its streams with it.
        let _ = self.router.ends.send(EndedConnection { generation: self.generation, ended: ended.clone() });
    }
}
