//! The task of a chat: it merges replay and live events for all streams of the chat, and owns its reloads.
//!
//! It begins with the first stream and ends with the last. It alone touches the chat's state; the connection's
//! reading task only fills its inbox.

mod reload;
mod subscriber;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::context::{Look, window};
use super::diff::{Change, diff};
use super::inbox::{Inbox, Mail};
use super::known::{Known, KnownItems, Recent};
use super::sequence;
use super::session::{Core, Page};
use super::snapshot::View;
use super::wire::{EventData, HarnessEvent};
use crate::error::{KitError, Result};
use crate::model::{ChatId, ChatSettings, CompactionUpdated, ContextChanged, Gap, GapReason, Seq};
use crate::stream::Pushed;

use reload::Reloads;
pub(crate) use subscriber::Subscriber;
use subscriber::{Mode, Next};

/// How long an event that a snapshot has already may still be on its way, until the history is asked for it.
const SETTLE_TIME: Duration = Duration::from_millis(100);

type Fetching = Pin<Box<dyn Future<Output = (u64, Result<Page>)> + Send>>;
type Probing = Pin<Box<dyn Future<Output = (u64, Result<Page>)> + Send>>;
type Looking = Pin<Box<dyn Future<Output = (Option<u64>, Result<Look>)> + Send>>;

/// A reload whose diff waits until everything up to it is delivered.
struct Held {
    number: u64,
    view: View,
    until: Instant,
}

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
            if let Some(mail) = self.inbox.try_take() {
                self.mail(mail);
            }
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

    fn mail(&mut self, mail: VecDeque<Mail>) {
        for mail in mail {
            match mail {
                Mail::Live(events) => self.live(events),
                Mail::Lost => self.lost(),
                Mail::Attach(stream) => self.attach(*stream),
                Mail::Refresh => drop(self.reloads.want()),
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

    fn fetch(&mut self, index: usize) {
        let stream = &self.streams[index];
        let (core, chat, id) = (self.core.clone(), self.chat.clone(), stream.id);
        let (after, limit) = (stream.projector.cursor.ask_after(), stream.page_events());
        self.pages.push(Box::pin(async move { (id, core.load_page(&chat, after, limit).await) }));
    }

    fn page(&mut self, id: u64, page: Result<Page>) {
        let Some(index) = self.streams.iter().position(|stream| stream.id == id) else { return };
        let stream = &mut self.streams[index];
        if !matches!(stream.mode, Mode::Fetching) {
            return;
        }
        match page {
            Ok(Page::Events { events, more }) => {
                let next = stream.page(events, more);
                self.go_on(index, next);
            }
            Ok(Page::Gone) => self.durable_lost(index, GapReason::Retention),
            Ok(Page::TooLarge) => match stream.smaller_page() {
                Some(next) => self.go_on(index, next),
                None => self.durable_lost(index, GapReason::Oversize),
            },
            Err(error) if is_connection_error(&error) => stream.mode = Mode::Disconnected,
            Err(error) => self.streams.swap_remove(index).end(Some(error)),
        }
        self.diff_if_delivered();
    }

    /// Durable events are gone: the stream goes on from a fresh snapshot.
    fn durable_lost(&mut self, index: usize, reason: GapReason) {
        let reload = self.reloads.want();
        let stream = &mut self.streams[index];
        stream.projector.lost();
        stream.mode = Mode::Lost { reason, reload };
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

    fn reloaded(&mut self, number: u64, view: Result<View>) {
        match view {
            Ok(view) => {
                // What came before the answer is delivered before the answer is looked at.
                if let Some(mail) = self.inbox.try_take() {
                    self.mail(mail);
                }
                if self.core.has_context() {
                    // What the model sees changes with the state: a late compaction is applied without an event of its own.
                    self.look_with = Some(window(&view.snapshot.usage));
                }
                self.place(number, &view);
                self.held = Some(Held { number, view, until: Instant::now() + SETTLE_TIME });
                self.diff_if_delivered();
            }
            Err(error) if is_connection_error(&error) => {
                self.reloads.want();
                // The end of the connection is on its way; until then nothing is asked of it.
                self.connected = false;
            }
            Err(error) => self.reload_failed(number, error),
        }
    }

    /// Streams that waited for this reload take their place.
    fn place(&mut self, number: u64, view: &View) {
        let snapshot_seq = sequence::kit_final(view.host_sequence);
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            let next = match &stream.mode {
                Mode::Starting { reload } if *reload <= number => {
                    let base = match stream.start_at(view.host_sequence) {
                        // It starts below the snapshot: what changed in between is news to its app.
                        Some(run) => {
                            let mut known = Known::unknown(KnownItems::BeforeRun(run));
                            // A title hardly changes in that moment, and would look like a rename each time.
                            known.title = Some(view.snapshot.chat.title.clone());
                            known
                        }
                        None => Known::of(view, None, &Recent::default()),
                    };
                    stream.base = Some(base);
                    Some(stream.join_live())
                }
                Mode::Checking { reload } if *reload <= number => {
                    if stream.projector.cursor.host > view.host_sequence {
                        // The host began anew: what was known of higher sequences is of another life.
                        self.newest = view.host_sequence;
                        self.recent.clear();
                        Some(go_on_after(stream, GapReason::Ahead, view, snapshot_seq))
                    } else {
                        Some(stream.join_live())
                    }
                }
                Mode::Lost { reason, reload } if *reload <= number => {
                    let reason = reason.clone();
                    Some(go_on_after(stream, reason, view, snapshot_seq))
                }
                _ => None,
            };
            match next {
                // This reload is the one it was placed by; another tells something new only where an event that came
                // meanwhile, behind the snapshot, asks for it.
                Some(Next::Reload) => {
                    let stream = &mut self.streams[index];
                    stream.diffs_from = number;
                    if stream.wants_reload_at.take().is_some_and(|at| at > view.host_sequence) {
                        self.reloads.want();
                    }
                }
                Some(next) => self.go_on(index, next),
                None => {}
            }
        }
    }

    /// A diff is made once every durable event up to the snapshot is delivered.
    fn diff_if_delivered(&mut self) {
        let Some(held) = &self.held else { return };
        let (number, sequence) = (held.number, held.view.host_sequence);
        let concerned = self.streams.iter().filter(|stream| stream.is_live() && stream.diffs_from <= number);
        let lowest = concerned.map(|stream| stream.projector.cursor).min();
        if let Some(lowest) = lowest.filter(|lowest| lowest.host < sequence) {
            // A host may count what it tells nobody: the history says whether there is anything between.
            if self.probing.is_none() && self.connected {
                let (core, chat) = (self.core.clone(), self.chat.clone());
                self.probing = Some(Box::pin(async move {
                    (number, core.load_page(&chat, lowest.ask_after(), subscriber::PAGE_EVENTS).await)
                }));
            }
            return;
        }
        let Some(Held { number, view, .. }) = self.held.take() else { return };
        let child_events = self.core.has_child_events();
        let mut shared: Option<Vec<Change>> = None;
        for stream in self.streams.iter_mut().filter(|stream| stream.is_live() && stream.diffs_from <= number) {
            let changes = match (stream.base.take(), &self.known) {
                (Some(base), _) => diff(&base, &view, &self.recent, child_events),
                (None, Some(known)) => {
                    shared.get_or_insert_with(|| diff(known, &view, &self.recent, child_events)).clone()
                }
                (None, None) => Vec::new(),
            };
            let mut batch = stream.sink.batch();
            for Change { run, kind } in changes {
                if batch.push(stream.projector.transient(kind, run)) == Pushed::Ended {
                    break;
                }
            }
        }
        self.recent.forget_up_to(sequence);
        let run_model = self.known.take().and_then(|known| known.run_model);
        self.known = Some(Known::of(&view, run_model, &self.recent));
    }

    /// What the history has between the live streams and the reload that is held.
    fn probed(&mut self, number: u64, page: Result<Page>) {
        self.probing = None;
        if let Some(mail) = self.inbox.try_take() {
            self.mail(mail);
        }
        let Some(held) = self.held.as_ref().filter(|held| held.number == number) else { return };
        let sequence = held.view.host_sequence;
        // Where it can't be told, the time to settle runs out, and each stream reads the history for itself.
        let Ok(Page::Events { events, more: false }) = page else { return };
        let last = events.iter().map(|event| event.sequence).filter(|host| *host <= sequence).max();
        let delivered = |stream: &Subscriber| last.is_none_or(|last| stream.projector.cursor.covers_whole(last));
        if self.streams.iter().filter(|stream| stream.is_live()).all(delivered) {
            for stream in self.streams.iter_mut().filter(|stream| stream.is_live()) {
                stream.projector.cursor = stream.projector.cursor.max(sequence::Cursor::whole(sequence));
            }
            self.diff_if_delivered();
        }
    }

    /// What a snapshot has should have come by now.
    fn settle_time_over(&mut self) {
        let now = Instant::now();
        let Some(held) = self.held.take_if(|held| held.until <= now) else { return };
        let known = self.known.take();
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            let behind = stream.projector.cursor.host < held.view.host_sequence;
            if stream.is_live() && behind {
                let next = stream.confirm(held.view.host_sequence, known.as_ref());
                self.go_on(index, next);
            }
        }
        self.known = known;
        self.reloads.want();
    }

    fn reload_failed(&mut self, number: u64, error: KitError) {
        let gone = matches!(error, KitError::NotFound(_));
        let mut index = 0;
        while index < self.streams.len() {
            let stream = &mut self.streams[index];
            let waits = match stream.mode {
                Mode::Starting { reload } | Mode::Checking { reload } | Mode::Lost { reload, .. } => reload <= number,
                _ => false,
            };
            if waits || gone {
                // It has no place without a snapshot.
                self.streams.swap_remove(index).end(Some(error.clone()));
                continue;
            }
            if stream.is_live() {
                // What the state would have told is missing: the app had better look itself.
                let doubt = stream.projector.doubt(GapReason::Mismatch);
                stream.tell(doubt);
            }
            index += 1;
        }
    }

    /// What the model sees was looked at.
    fn looked(&mut self, window: Option<u64>, look: Result<Look>) {
        self.looking = None;
        // What came before the answer is known before the answer is looked at.
        if let Some(mail) = self.inbox.try_take() {
            self.mail(mail);
        }
        let Ok(Look { state, view }) = look else {
            // The next reload looks again; a chat's other events don't depend on it.
            return;
        };
        let state = Arc::new(state);
        for stream in self.streams.iter_mut().filter(|stream| stream.is_live()) {
            let (applied, view_is_news) = stream.context.news(&state);
            if view_is_news && view.is_none() {
                // It was announced, or the stream came, while the look was under way.
                self.look_with.get_or_insert(window);
                continue;
            }
            for compaction in applied {
                stream.tell(stream.projector.transient(CompactionUpdated { compaction }, None));
            }
            if let Some(view) = view.as_ref().filter(|_| view_is_news) {
                stream.tell(stream.projector.transient(ContextChanged { view: view.clone() }, None));
            }
            stream.context.learn(&state);
        }
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

/// Tells that durable events are gone, and goes on after the fresh snapshot.
fn go_on_after(stream: &mut Subscriber, reason: GapReason, view: &View, snapshot_seq: Seq) -> Next {
    stream.projector.cursor = sequence::Cursor::whole(view.host_sequence);
    stream.projector.lost();
    stream.base = Some(Known::of(view, None, &Recent::default()));
    let gap = stream.projector.transient(Gap { reason, lost: true, snapshot_seq: Some(snapshot_seq) }, None);
    stream.tell(gap);
    stream.join_live()
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
