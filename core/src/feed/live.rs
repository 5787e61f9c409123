//! A feed that reads its events itself.
//!
//! One task a feed applies the events and loads snapshots; the state lies behind a lock that is held for a batch of events
//! at most. A slow app gets one update with all that changed, however much it was. Events go on being applied while a
//! snapshot is loaded. Reloads are coalesced, and each waits as long as the last one took: a storm of gaps asks the host
//! for one snapshot at a time, and leaves it half of its time.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::changed::Changed;
use super::reducer::{FeedReducer, Reload};
use super::state::FeedState;
use crate::error::{KitError, Result};
use crate::lock::lock;
use crate::model::{ChatId, ChatSnapshot};
use crate::port::ChatReader;
use crate::stream::{EventStream, Ready, Waited, Waiter, Wakers};

/// Events applied under one lock: few enough that an app which asks for the state hardly waits.
const BATCH_EVENTS: usize = 512;
/// Between two reloads at least, however fast the host answers.
const MIN_SPACING: Duration = Duration::from_millis(100);
/// After a reload that failed; twice as long after each further one.
const MIN_RETRY: Duration = Duration::from_millis(250);
/// Between two tries at most.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// A chat as an app shows it, kept up to date.
///
/// Pulled in two steps as a [`KitStream`](crate::KitStream) is: [`ready`](Self::ready) waits and takes nothing,
/// [`take`](Self::take) gives at once all that changed. The first update is the whole chat. Updates end with `None`, after
/// an error where something ended the events; the state stays readable. Closing or dropping the feed ends the work behind
/// it.
pub struct ChatFeed {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    /// Who polls it as a `futures::Stream`.
    polling: Waiter,
}

/// The state of a chat and what changed in it since the last update.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedUpdate {
    /// The state.
    pub state: FeedState,
    /// What changed.
    pub changed: Changed,
    /// Why the last reload failed: what is shown may be wrong until one succeeds, and it is being tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<KitError>,
}

struct Shared {
    inner: Mutex<Inner>,
    /// The app asked for a reload.
    asked: Notify,
}

struct Inner {
    reducer: FeedReducer,
    trouble: Option<KitError>,
    /// Set when there is no more to come; its error is given once.
    end: Option<Option<KitError>>,
    closed: bool,
    wakers: Wakers,
    /// Those who wait for a reload that has not begun.
    waiting: Vec<oneshot::Sender<Result<()>>>,
}

impl ChatFeed {
    /// Loads the chat and begins to follow its events.
    pub async fn open(reader: Arc<dyn ChatReader>, chat: &ChatId) -> Result<Self> {
        let snapshot = reader.load_chat(chat).await?;
        let events = reader.events(chat, Some(snapshot.seq));
        let inner = Inner {
            reducer: FeedReducer::new(snapshot),
            trouble: None,
            end: None,
            closed: false,
            wakers: Wakers::default(),
            waiting: Vec::new(),
        };
        let shared = Arc::new(Shared { inner: Mutex::new(inner), asked: Notify::new() });
        let follower = Follower { shared: shared.clone(), reader, chat: chat.clone() };
        let task = tokio::spawn(follower.follow(events));
        Ok(ChatFeed { shared, task, polling: Waiter::default() })
    }

    /// Waits until [`take`](Self::take) has something to give, be it the error at the end. False: there is no more to come.
    /// Takes nothing: drop it at any moment.
    pub async fn ready(&self) -> bool {
        Ready::new(&*self.shared).await
    }

    /// Gives at once all that changed since the last call: nothing, where [`ready`](Self::ready) would wait. The error that
    /// ended the events comes once, after everything before it.
    pub fn take(&self) -> Result<Option<FeedUpdate>> {
        self.shared.lock().take()
    }

    /// Waits for the next update.
    pub async fn next(&self) -> Option<Result<FeedUpdate>> {
        loop {
            if !self.ready().await {
                return None;
            }
            // Two readers of one feed may race for it: the slower one waits again.
            if let Some(update) = self.take().transpose() {
                return Some(update);
            }
        }
    }

    /// The state as it is now, also after the end.
    pub fn state(&self) -> FeedState {
        self.shared.lock().reducer.state().clone()
    }

    /// Loads the snapshot anew, for instance for the host's own ids of messages once a run has finished. Returns when it is
    /// in the state, or why it could not be loaded; it is then being tried again.
    pub async fn reload(&self) -> Result<()> {
        let done = {
            let mut inner = self.shared.lock();
            if inner.end.is_some() {
                return Err(KitError::closed());
            }
            let (sender, receiver) = oneshot::channel();
            inner.waiting.push(sender);
            inner.reducer.want_reload();
            receiver
        };
        self.shared.asked.notify_one();
        done.await.unwrap_or_else(|_| Err(KitError::closed()))
    }

    /// Ends the feed: a pending `ready` gives false. The state stays readable. Safe to call twice.
    pub fn close(&self) {
        self.task.abort();
        let mut inner = self.shared.lock();
        inner.closed = true;
        // A reader that closed asks for no error.
        inner.end = Some(None);
        inner.finish();
    }
}

impl Drop for ChatFeed {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for ChatFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatFeed").field("state", self.shared.lock().reducer.state()).finish_non_exhaustive()
    }
}

impl futures::Stream for ChatFeed {
    type Item = Result<FeedUpdate>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let ChatFeed { shared, polling, .. } = &mut *self;
        loop {
            match shared.poll_ready(polling, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Ready(true) => {
                    if let Some(update) = shared.lock().take().transpose() {
                        return Poll::Ready(Some(update));
                    }
                }
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The reducer panics nowhere; where it did all the same, its state is still one to show.
        lock(&self.inner)
    }
}

impl Waited for Shared {
    fn poll_ready(&self, waiter: &mut Waiter, cx: &mut Context<'_>) -> Poll<bool> {
        let mut inner = self.lock();
        if !inner.closed && inner.reducer.has_changed() {
            return Poll::Ready(true);
        }
        match &inner.end {
            Some(error) => Poll::Ready(error.is_some()),
            None => {
                inner.wakers.wait(waiter, cx.waker());
                Poll::Pending
            }
        }
    }

    fn leave(&self, waiter: &mut Waiter) {
        self.lock().wakers.leave(waiter);
    }
}

impl Inner {
    fn take(&mut self) -> Result<Option<FeedUpdate>> {
        if !self.closed && self.reducer.has_changed() {
            let changed = self.reducer.take();
            return Ok(Some(FeedUpdate {
                state: self.reducer.state().clone(),
                changed,
                trouble: self.trouble.clone(),
            }));
        }
        match self.end.as_mut().and_then(Option::take) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    fn end(&mut self, error: Option<KitError>) {
        self.end.get_or_insert(error);
        self.finish();
    }

    fn finish(&mut self) {
        // Dropped, they tell those who wait that the feed has ended.
        self.waiting.clear();
        self.wake();
    }

    fn wake(&mut self) {
        self.wakers.take().for_each(Waker::wake);
    }

    fn set_trouble(&mut self, trouble: Option<KitError>) {
        if trouble.is_some() || self.trouble.is_some() {
            self.trouble = trouble;
            self.reducer.touched.parts.trouble = true;
        }
    }
}

/// What the task of a feed has.
struct Follower {
    shared: Arc<Shared>,
    reader: Arc<dyn ChatReader>,
    chat: ChatId,
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Whatever ends the task, a runtime that shuts down or a reader that panics: nobody waits for it for ever.
        let error = std::thread::panicking().then(|| KitError::failed("following the chat's events failed"));
        self.shared.lock().end(error);
    }
}

/// A snapshot on its way.
struct Load {
    began: Instant,
    reload: Reload,
    snapshot: BoxFuture<'static, Result<ChatSnapshot>>,
    waiting: Vec<oneshot::Sender<Result<()>>>,
}

impl Follower {
    async fn follow(self, events: EventStream) {
        let mut load: Option<Load> = None;
        let mut not_before = Instant::now();
        let mut retry = MIN_RETRY;
        let mut wanted = false;
        loop {
            tokio::select! {
                alive = events.ready() => {
                    let batch = events.take(BATCH_EVENTS);
                    let mut inner = self.shared.lock();
                    match batch {
                        Ok(batch) if alive => {
                            batch.iter().for_each(|event| inner.reducer.apply(event));
                            wanted = inner.reducer.wants_reload();
                            if inner.reducer.has_changed() {
                                inner.wake();
                            }
                        }
                        Ok(_) => return inner.end(None),
                        Err(error) => return inner.end(Some(error)),
                    }
                }
                () = self.shared.asked.notified() => wanted = true,
                () = tokio::time::sleep_until(not_before), if wanted && load.is_none() => {
                    load = Some(self.begin());
                    wanted = false;
                }
                result = async { (&mut load.as_mut().expect("polled only while one is on its way").snapshot).await },
                    if load.is_some() =>
                {
                    let Some(done) = load.take() else { continue };
                    let took = done.began.elapsed();
                    if self.finish(done, result) {
                        retry = MIN_RETRY;
                        not_before = Instant::now() + took.max(MIN_SPACING);
                    } else {
                        not_before = Instant::now() + retry.max(took);
                        retry = (retry * 2).min(MAX_RETRY);
                    }
                    wanted = self.shared.lock().reducer.wants_reload();
                }
            }
        }
    }

    fn begin(&self) -> Load {
        let mut inner = self.shared.lock();
        let reload = inner.reducer.begin_reload();
        let waiting = std::mem::take(&mut inner.waiting);
        let (reader, chat) = (self.reader.clone(), self.chat.clone());
        let snapshot = Box::pin(async move { reader.load_chat(&chat).await });
        Load { began: Instant::now(), reload, snapshot, waiting }
    }

    /// Takes a snapshot that came, or why none did. False: another one is to be tried for.
    fn finish(&self, load: Load, result: Result<ChatSnapshot>) -> bool {
        let mut inner = self.shared.lock();
        let answer = match result {
            Ok(snapshot) => {
                if !inner.reducer.reload(load.reload, snapshot) {
                    inner.waiting.extend(load.waiting);
                    return false;
                }
                inner.set_trouble(None);
                Ok(())
            }
            Err(error) => {
                inner.reducer.abandon_reload(load.reload);
                inner.set_trouble(Some(error.clone()));
                Err(error)
            }
        };
        for waiting in load.waiting {
            // One that was dropped meanwhile needs no answer.
            let _ = waiting.send(answer.clone());
        }
        inner.wake();
        answer.is_ok()
    }
}
