//! The task of a chat: it merges replay and live events for all streams of the chat, and owns its reloads.
//!
//! It begins with the first stream and ends with the last. It alone touches the chat's state; the connection's
//! reading task only fills its inbox. Its themes are files of their own: `subscriber` (one stream), `replay` (pages of the
//! history), `reload`, `place` and `settle` (the state, and its diff), `look` (the context).

mod look;
mod place;
mod reload;
mod replay;
mod settle;
mod subscriber;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::context::Look;
use super::inbox::{Inbox, Mail};
use super::known::{Known, Recent};
use super::session::{Core, Page};
use super::wire::{EventData, HarnessEvent};
use crate::error::{KitError, Result};
use crate::model::{ChatId, ChatSettings};

use reload::Reloads;
use settle::Held;
pub(crate) use subscriber::{Awaited, Subscriber};
use subscriber::{Mode, Next};

type Fetching = Pin<Box<dyn Future<Output = (u64, Result<Page>)> + Send>>;
type Probing = Pin<Box<dyn Future<Output = (u64, Result<Page>)> + Send>>;
type Looking = Pin<Box<dyn Future<Output = (Option<u64>, Result<Look>)> + Send>>;

pub(crate) struct ChatTask {
    core: Arc<Core>,
    chat: ChatId,
    inbox: Arc<Inbox>,
    streams: Vec<Subscriber>,
    next_id: u64,
    drained: Arc<Notify>,
    connected: bool,
    /// What the live streams' apps know, as of the last reload and with what durable events told since.
    known: Option<Known>,
    /// What durable events changed that a reload under way may not have.
    recent: Recent,
    /// The highest durable host sequence that came live: what comes again is a duplicate.
    newest: u64,
    reloads: Reloads,
    held: Option<Held>,
    probing: Option<Probing>,
    pages: FuturesUnordered<Fetching>,
    looking: Option<Looking>,
    /// A look at the context is due, with the window that the newest state tells.
    look_with: Option<Option<u64>>,
}

impl ChatTask {
    pub(crate) fn start(core: Arc<Core>, chat: ChatId, inbox: Arc<Inbox>) {
        let runtime = core.runtime().clone();
        let task = ChatTask {
            core,
            chat,
            inbox,
            streams: Vec::new(),
            next_id: 1,
            drained: Arc::new(Notify::new()),
            connected: true,
            known: None,
            recent: Recent::default(),
            newest: 0,
            reloads: Reloads::default(),
            held: None,
            probing: None,
            pages: FuturesUnordered::new(),
            looking: None,
            look_with: None,
        };
        runtime.spawn(task.run());
    }

    async fn run(mut self) {
        loop {
            self.streams.retain(|stream| !stream.sink.is_ended());
            if self.streams.is_empty() && self.core.router().retire(&self.chat, &self.inbox) {
                return;
            }
            self.read_mail();
            self.begin_what_is_due();
            let due = [
                self.reloads.due_at().filter(|_| self.connected),
                self.held.as_ref().filter(|_| self.probing.is_none()).map(|held| held.until),
            ];
            let due = due.into_iter().flatten().min();
            let inbox = self.inbox.clone();
            let drained = self.drained.clone();
            tokio::select! {
                // The inbox last: its flood was looked at above, and must not keep the rest from its turn.
                biased;
                Some((id, page)) = self.pages.next() => self.page(id, page),
                (number, view) = self.reloads.finished() => self.reloaded(number, view),
                (number, page) = outcome(&mut self.probing) => self.probed(number, page),
                (window, look) = outcome(&mut self.looking) => self.looked(window, look),
                () = drained.notified() => self.reader_moved(),
                () = sleep_until(due) => self.settle_time_over(),
                () = inbox.filled() => {}
            }
        }
    }

    fn begin_what_is_due(&mut self) {
        if !self.connected {
            return;
        }
        let (core, chat) = (&self.core, &self.chat);
        self.reloads.begin_if_due(|| {
            let (core, chat) = (core.clone(), chat.clone());
            Box::pin(async move { core.load_view(&chat).await })
        });
        if self.looking.is_none()
            && let Some(window) = self.look_with.take()
        {
            let (core, chat) = (core.clone(), chat.clone());
            let mut known: Vec<_> = self.streams.iter().filter_map(|stream| stream.context.state()).cloned().collect();
            known.dedup_by(|a, b| Arc::ptr_eq(a, b));
            let announced = self.streams.iter().any(|stream| stream.context.awaits_compaction());
            self.looking = Some(Box::pin(async move { (window, core.look(&chat, window, known, announced).await) }));
        }
    }

    /// Reads all mail that is there.
    fn read_mail(&mut self) {
        let mail = self.inbox.take();
        if mail.is_empty() {
            return;
        }
        for mail in mail {
            match mail {
                Mail::Live(events) => self.live(events),
                Mail::Lost => self.lost(),
                Mail::Attach(stream) => self.attach(*stream),
                Mail::Refresh => drop(self.reloads.want()),
                Mail::Awaited => {
                    // Its end may be among what was lost before it was known.
                    if self.streams.iter().any(Subscriber::may_have_missed_its_run) {
                        self.reloads.want();
                    }
                }
                Mail::Down => self.down(),
                Mail::Up => self.up(),
                Mail::Over(error) => {
                    for stream in self.streams.drain(..) {
                        stream.end(error.clone());
                    }
                }
            }
        }
        self.diff_if_delivered();
    }

    fn attach(&mut self, mut stream: Subscriber) {
        stream.id = self.next_id;
        self.next_id += 1;
        stream.sink.notify_when_drained(self.drained.clone());
        if stream.sink.is_ended() {
            // Closed before anybody would be told of it.
            return;
        }
        match &mut stream.mode {
            Mode::Starting { reload } => {
                *reload = self.reloads.want();
                self.streams.push(stream);
            }
            _ if !self.connected => {
                stream.mode = Mode::Disconnected;
                self.streams.push(stream);
            }
            _ => {
                let next = stream.catch_up();
                self.streams.push(stream);
                self.go_on(self.streams.len() - 1, next);
            }
        }
    }

    /// Live events, in order.
    fn live(&mut self, mut events: Vec<HarnessEvent>) {
        events.retain(|event| {
            if event.durable {
                // A duplicate gives nothing, and must not undo what came behind it.
                if event.sequence <= self.newest {
                    return false;
                }
                self.newest = event.sequence;
                self.learn(event);
            }
            true
        });
        let mut wants_reload = false;
        if let Some((last, others)) = self.streams.split_last_mut() {
            for stream in others {
                wants_reload |= stream.live_events(events.iter().cloned());
            }
            wants_reload |= last.live_events(events.into_iter());
        }
        self.leave_where_behind();
        if wants_reload {
            self.reloads.want();
        }
    }

    /// What a fresh durable event tells the chat's live streams.
    fn learn(&mut self, event: &HarnessEvent) {
        self.recent.add(event);
        if let EventData::RunStarted { model: Some(model) } = &event.data {
            self.model_changed(model, event);
        }
        if let Some(known) = &mut self.known {
            known.apply(event);
        }
    }

    /// A run that starts tells the model before any reload does.
    fn model_changed(&mut self, model: &str, event: &HarnessEvent) {
        // Where it is not known what the app knows the next reload tells.
        let told_now = |known: &mut Known| known.model.as_mut().map(|told| told.replace(model.to_owned()));
        let shared = self.known.as_mut().and_then(told_now);
        for stream in self.streams.iter_mut().filter(|stream| stream.is_live()) {
            let told = match &mut stream.base {
                Some(base) => told_now(base),
                None => shared.clone(),
            };
            if told.is_some_and(|told| told.as_deref() != Some(model)) {
                let settings = ChatSettings { model: Some(model.to_owned()), profile: None };
                let told = stream.projector.transient(settings, event.run_id.clone());
                stream.tell(told);
            }
        }
    }

    /// Streams that had no room have left live: from now on they know what they know.
    fn leave_where_behind(&mut self) {
        let known = self.known.as_ref();
        for stream in self.streams.iter_mut().filter(|stream| matches!(stream.mode, Mode::Waiting)) {
            if stream.base.is_none() {
                stream.leave_live(known);
            }
        }
    }

    /// Live events were lost, here or by the host.
    fn lost(&mut self) {
        let known = self.known.take();
        // What durable events changed is not known without holes any more; each stream learns it from its replay.
        self.recent.clear();
        self.held = None;
        for index in 0..self.streams.len() {
            // No reload now: each stream asks for one when its replay has reached live.
            let next = self.streams[index].lost(known.as_ref());
            self.go_on(index, next);
        }
    }

    fn down(&mut self) {
        self.connected = false;
        self.pages.clear();
        self.probing = None;
        self.looking = None;
        self.look_with = None;
        self.reloads.interrupt();
        self.held = None;
        let known = self.known.take();
        self.recent.clear();
        for stream in &mut self.streams {
            // What it was about to ask for, it asks for when the host is back.
            stream.lost(known.as_ref());
            // A host that begins anew may never come to it.
            stream.confirms = None;
            match stream.mode {
                // They wait for a reload, which comes when the host is back.
                Mode::Starting { .. } | Mode::Lost { .. } => {}
                _ => stream.mode = Mode::Disconnected,
            }
        }
    }

    fn up(&mut self) {
        self.connected = true;
        // A host that kept its sequences goes on above; one that began anew is found out by its snapshot.
        self.newest = 0;
        for index in 0..self.streams.len() {
            if matches!(self.streams[index].mode, Mode::Disconnected) {
                let next = self.streams[index].catch_up();
                self.go_on(index, next);
            }
        }
    }

    /// Does what a stream needs next.
    fn go_on(&mut self, index: usize, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Page => self.fetch(index),
            Next::Reload => {
                let number = self.reloads.want();
                let stream = &mut self.streams[index];
                match &mut stream.mode {
                    Mode::Checking { reload } => *reload = number,
                    _ => stream.diffs_from = number,
                }
                // The one that was just asked for begins after all that came.
                stream.wants_reload_at = None;
            }
        }
    }

    fn reader_moved(&mut self) {
        for index in 0..self.streams.len() {
            let next = if self.connected || matches!(self.streams[index].mode, Mode::Handing { .. }) {
                self.streams[index].drained()
            } else {
                Next::Nothing
            };
            self.go_on(index, next);
        }
        self.diff_if_delivered();
    }
}

impl Drop for ChatTask {
    fn drop(&mut self) {
        // Also where the runtime ended in the middle, or before the task ever ran: no stream waits for it for ever, not
        // even one that only asked to be attached.
        let mail = self.core.router().abandon(&self.chat, &self.inbox);
        let mut error = std::thread::panicking().then(|| KitError::failed("following the chat's events failed"));
        let mut streams = std::mem::take(&mut self.streams);
        for mail in mail {
            match mail {
                Mail::Attach(stream) => streams.push(*stream),
                Mail::Over(over) => error = error.or(over),
                _ => {}
            }
        }
        streams.into_iter().for_each(|stream| stream.end(error.clone()));
    }
}

/// Whether the connection is gone, which its own end tells better.
fn is_connection_error(error: &KitError) -> bool {
    matches!(error, KitError::HostExited { .. } | KitError::Closed(_))
}

/// Waits for what runs; for ever, where nothing does.
async fn outcome<T>(running: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
