//! One stream of a chat: where it is, what waits for it, and how it gets from one way of reading to another.
//!
//! A stream is *live* when it has been given every event up to the newest. Else it catches up: it reads pages of the
//! history, keeps live events that come meanwhile in `pending`, and joins the two by sequence. A reader that is too slow
//! for live events leaves live and catches up when it has room, so nothing durable is ever dropped.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use crate::bubblepaw::context::KnownContext;
use crate::bubblepaw::inbox::event_bytes;
use crate::bubblepaw::known::{Known, KnownItems};
use crate::bubblepaw::project::{Origin, Projector};
use crate::bubblepaw::sequence::Cursor;
use crate::bubblepaw::wire::HarnessEvent;
use crate::model::{ChatId, Event, GapReason, Run, RunFinished, RunId};
use crate::stream::{Pushed, StreamLimits, StreamSink};

/// Events that a page of the history has at most.
pub(crate) const PAGE_EVENTS: u64 = 1000;

/// A page of more bytes than this makes the next ones smaller: a page is held until the reader has taken it.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// How a stream reads at the moment.
#[derive(Debug)]
pub(crate) enum Mode {
    /// It has no place yet and takes that of the reload with this number.
    Starting { reload: u64 },
    /// It waits until its reader has room, and then catches up.
    Waiting,
    /// It waits for a page of the history.
    Fetching,
    /// It hands out a page as its reader has room.
    Handing { page: VecDeque<HarnessEvent>, more: bool, asked_after: u64 },
    /// The history has nothing behind its cursor; the reload with this number tells whether the cursor is too high.
    Checking { reload: u64 },
    /// Durable events are gone; it goes on from the reload with this number.
    Lost { reason: GapReason, reload: u64 },
    /// It is given events as they come.
    Live,
    /// The host is gone; it catches up when it is back.
    Disconnected,
}

/// Live events that came while a stream was not live.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    events: VecDeque<HarnessEvent>,
    bytes: usize,
    /// There were too many, or some were lost on the way: the history must be read again.
    overflow: bool,
    /// The first durable one and its run, since the stream began.
    first_durable: Option<(u64, Option<RunId>)>,
}

impl Pending {
    fn add(&mut self, event: &HarnessEvent, limits: StreamLimits) {
        if event.durable && self.first_durable.is_none() {
            self.first_durable = Some((event.sequence, event.run_id.clone()));
        }
        if self.overflow {
            return;
        }
        self.bytes += event_bytes(event);
        self.events.push_back(event.clone());
        if self.events.len() > limits.events || self.bytes > limits.bytes {
            self.lost();
        }
    }

    fn lost(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
        self.overflow = true;
    }

    fn clear(&mut self) {
        let first_durable = self.first_durable.take();
        *self = Pending { first_durable, ..Pending::default() };
    }
}

/// The run whose end a stream waits for, once it is known.
pub(crate) type Awaited = Arc<OnceLock<RunId>>;

/// One stream of a chat.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) id: u64,
    pub(crate) sink: StreamSink<Event>,
    limits: StreamLimits,
    pub(crate) projector: Projector,
    /// What its app knows; `None`: the same as the chat's other live streams.
    pub(crate) base: Option<Known>,
    pub(crate) mode: Mode,
    pub(crate) pending: Pending,
    /// Kit events that were projected but had no room.
    stuck: VecDeque<Event>,
    /// How many events to ask for: fewer after an answer that was too large.
    page_events: u64,
    /// Whether this catching up has met an event.
    met_any: bool,
    /// Everything up to this host sequence is known to be delivered once the history has nothing more.
    pub(crate) confirms: Option<u64>,
    /// The run whose end is told even where its own event was lost; `None`: there is none, or it was told by a reload.
    pub(crate) awaited: Option<Awaited>,
    /// Whether events were lost on the way to it, of which some may never come.
    pub(crate) missed: bool,
    /// The first reload whose diff is for this stream.
    pub(crate) diffs_from: u64,
    /// What its app knows of the context.
    pub(crate) context: KnownContext,
    /// The highest host sequence of an event that came while it was not live and asked for a reload: one as of an earlier
    /// sequence won't do.
    pub(crate) wants_reload_at: Option<u64>,
}

/// What a stream needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Nothing,
    /// A page of the history.
    Page,
    /// A reload that begins after now.
    Reload,
}

impl Subscriber {
    /// A stream that starts at `cursor`, or, where it is none, at the reload with number `reload`.
    pub(crate) fn new(
        chat: ChatId,
        sink: StreamSink<Event>,
        limits: StreamLimits,
        cursor: Option<Cursor>,
        base: Option<Known>,
    ) -> Self {
        let mode = if cursor.is_some() { Mode::Waiting } else { Mode::Starting { reload: 0 } };
        Subscriber {
            id: 0,
            sink,
            limits,
            projector: Projector::new(chat, cursor.unwrap_or(Cursor::START)),
            base,
            mode,
            pending: Pending::default(),
            stuck: VecDeque::new(),
            page_events: PAGE_EVENTS,
            met_any: false,
            confirms: None,
            awaited: None,
            missed: false,
            diffs_from: u64::MAX,
            context: KnownContext::default(),
            wants_reload_at: None,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Live)
    }

    pub(crate) fn page_events(&self) -> u64 {
        self.page_events
    }

    /// A live event of the host's. Gives what it asks for.
    pub(crate) fn live_event(&mut self, event: HarnessEvent) -> bool {
        if !self.is_live() {
            self.pending.add(&event, self.limits);
            return false;
        }
        self.deliver(event, Origin::Live)
    }

    /// Several at once, with one lock and one wake-up.
    pub(crate) fn live_events(&mut self, events: impl Iterator<Item = HarnessEvent>) -> bool {
        let mut all = false;
        let mut events = events.peekable();
        while events.peek().is_some() {
            if !self.is_live() {
                events.by_ref().for_each(|event| self.pending.add(&event, self.limits));
                break;
            }
            let Subscriber { sink, projector, base, stuck, context, .. } = self;
            let mut batch = sink.batch();
            let mut full = false;
            for event in events.by_ref() {
                learn(projector, base, context, &event, Origin::Live);
                all |= projector.project(event, Origin::Live, &mut |event| {
                    full = push_or_keep(&mut batch, stuck, event, full);
                });
                if full {
                    break;
                }
            }
            drop(batch);
            if full {
                // The reader is behind: what comes now it reads from the history when it has room.
                self.mode = Mode::Waiting;
            }
        }
        all
    }

    fn deliver(&mut self, event: HarnessEvent, origin: Origin) -> bool {
        let Subscriber { sink, projector, base, stuck, context, .. } = self;
        learn(projector, base, context, &event, origin);
        let mut batch = sink.batch();
        let mut full = !stuck.is_empty();
        let wants = projector.project(event, origin, &mut |event| {
            full = push_or_keep(&mut batch, stuck, event, full);
        });
        drop(batch);
        if full && self.is_live() {
            self.mode = Mode::Waiting;
        }
        wants
    }

    /// Gives an event of the adapter's own: it is state, or a gap, and always has room.
    pub(crate) fn tell(&mut self, event: Event) {
        self.sink.push(event);
    }

    /// Whether the end of the run that it waits for may be among what it missed.
    pub(crate) fn may_have_missed_its_run(&self) -> bool {
        self.missed && self.awaited.as_ref().is_some_and(|run| run.get().is_some())
    }

    /// Tells that the run it waits for has ended, where a reload shows it. Where its own event told it the stream has ended
    /// behind that, and this is not seen.
    pub(crate) fn tell_end_of_awaited(&mut self, runs: &[Run]) {
        let awaited = self.awaited.as_ref().and_then(|awaited| awaited.get());
        let Some(run) = runs.iter().find(|run| Some(&run.id) == awaited && !run.status.is_active()) else { return };
        let finished = RunFinished { status: run.status.clone(), error: run.error.clone() };
        self.tell(self.projector.transient(finished, Some(run.id.clone())));
        self.awaited = None;
    }

    /// Live events were lost on the way.
    pub(crate) fn lost(&mut self, known: Option<&Known>) -> Next {
        self.missed = true;
        match self.mode {
            Mode::Live => {
                self.leave_live(known);
                self.catch_up()
            }
            _ => {
                self.pending.lost();
                self.projector.lost();
                Next::Nothing
            }
        }
    }

    /// From now on what its app knows is its own affair: it will be behind the others.
    pub(crate) fn leave_live(&mut self, known: Option<&Known>) {
        if self.base.is_none() {
            self.base = Some(known.cloned().unwrap_or_else(|| Known::unknown(KnownItems::BeforeRun(None))));
        }
        self.projector.lost();
        self.diffs_from = u64::MAX;
        self.pending = Pending::default();
        self.mode = Mode::Waiting;
    }

    /// Everything up to `host_sequence` has happened, but not all of it came: the history tells whether there is more.
    pub(crate) fn confirm(&mut self, host_sequence: u64, known: Option<&Known>) -> Next {
        self.leave_live(known);
        self.confirms = Some(host_sequence);
        self.catch_up()
    }

    /// Begins to read the history from the cursor, where the reader has room.
    pub(crate) fn catch_up(&mut self) -> Next {
        self.met_any = false;
        if !self.give_stuck() || !self.sink.has_room() {
            self.mode = Mode::Waiting;
            return Next::Nothing;
        }
        self.pending.clear();
        // The fragments between what was given and where the history ends are in neither.
        self.projector.lost();
        self.mode = Mode::Fetching;
        Next::Page
    }

    /// The reader took something.
    pub(crate) fn drained(&mut self) -> Next {
        match &self.mode {
            Mode::Waiting => self.catch_up(),
            Mode::Handing { .. } => self.hand_out(),
            _ => Next::Nothing,
        }
    }

    /// A page of the history came.
    pub(crate) fn page(&mut self, events: Vec<HarnessEvent>, more: bool) -> Next {
        self.met_any |= !events.is_empty();
        let bytes: usize = events.iter().map(event_bytes).sum();
        if bytes > PAGE_BYTES {
            self.page_events = (self.page_events / 2).max(1);
        } else if bytes < PAGE_BYTES / 4 {
            self.page_events = (self.page_events * 2).min(PAGE_EVENTS);
        }
        let asked_after = self.projector.cursor.ask_after();
        self.mode = Mode::Handing { page: events.into(), more, asked_after };
        self.hand_out()
    }

    /// The answer was too large. `None`: a single event is, and it can't be had.
    pub(crate) fn smaller_page(&mut self) -> Option<Next> {
        if self.page_events == 1 {
            return None;
        }
        self.page_events /= 2;
        Some(Next::Page)
    }

    fn hand_out(&mut self) -> Next {
        if !self.give_stuck() {
            return Next::Nothing;
        }
        let Mode::Handing { page, more, asked_after } = std::mem::replace(&mut self.mode, Mode::Waiting) else {
            return Next::Nothing;
        };
        let mut page = page;
        if !self.sink.has_room() {
            self.mode = Mode::Handing { page, more, asked_after };
            return Next::Nothing;
        }
        while let Some(event) = page.pop_front() {
            self.deliver(event, Origin::Replay);
            if !self.stuck.is_empty() {
                self.mode = Mode::Handing { page, more, asked_after };
                return Next::Nothing;
            }
        }
        // A host that says there is more and doesn't move on would be asked for ever.
        if more && self.projector.cursor.ask_after() > asked_after {
            self.mode = Mode::Fetching;
            return Next::Page;
        }
        self.history_ended()
    }

    /// The history has nothing more: what came meanwhile follows.
    fn history_ended(&mut self) -> Next {
        if let Some(confirmed) = self.confirms.take() {
            self.projector.cursor = self.projector.cursor.max(Cursor::whole(confirmed));
        } else if !self.met_any && self.projector.cursor > Cursor::START {
            self.mode = Mode::Checking { reload: 0 };
            return Next::Reload;
        }
        self.join_live()
    }

    /// Delivers what is pending and goes live; where some of it was lost the history is read again.
    pub(crate) fn join_live(&mut self) -> Next {
        if self.pending.overflow {
            return self.catch_up();
        }
        let pending = std::mem::take(&mut self.pending);
        self.mode = Mode::Live;
        for event in pending.events {
            // A fragment from before what was replayed belongs to a place that is past.
            if !event.durable && event.sequence < self.projector.cursor.host {
                continue;
            }
            // A transient event says nothing of what a snapshot has.
            let at = if event.durable { event.sequence } else { u64::MAX };
            let wants = self.live_event(event);
            if wants {
                self.wants_reload_at = self.wants_reload_at.max(Some(at));
            }
        }
        Next::Reload
    }

    /// Takes its place at a snapshot, or just below the first durable event since the call, whichever is lower. The run of
    /// that event, where it was lower.
    pub(crate) fn start_at(&mut self, host_sequence: u64) -> Option<Option<RunId>> {
        let first = self.pending.first_durable.take();
        let lower = first.filter(|(sequence, _)| sequence.saturating_sub(1) < host_sequence);
        match lower {
            Some((sequence, run)) => {
                self.projector.cursor = Cursor::whole(sequence.saturating_sub(1));
                Some(run)
            }
            None => {
                self.projector.cursor = Cursor::whole(host_sequence);
                None
            }
        }
    }

    /// Gives what had no room. True: all of it has room now.
    fn give_stuck(&mut self) -> bool {
        let mut batch = self.sink.batch();
        while let Some(event) = self.stuck.front() {
            if batch.push(event.clone()) == Pushed::Full {
                return false;
            }
            self.stuck.pop_front();
        }
        true
    }

    /// Ends the stream, behind everything that was read for it.
    pub(crate) fn end(mut self, error: Option<crate::error::KitError>) {
        let mode = std::mem::replace(&mut self.mode, Mode::Waiting);
        let (page, pending) = match mode {
            Mode::Starting { .. } => {
                self.start_at(u64::MAX);
                (VecDeque::new(), !self.pending.overflow)
            }
            Mode::Handing { page, more, .. } => (page, !more && !self.pending.overflow),
            Mode::Checking { .. } => (VecDeque::new(), !self.pending.overflow),
            // Between what was delivered and what is pending there may be more.
            Mode::Waiting | Mode::Fetching | Mode::Lost { .. } | Mode::Live | Mode::Disconnected => {
                (VecDeque::new(), false)
            }
        };
        let pending = if pending { std::mem::take(&mut self.pending.events) } else { VecDeque::new() };
        let Subscriber { sink, projector, stuck, .. } = &mut self;
        let mut batch = sink.batch();
        stuck.drain(..).for_each(|event| batch.push_over(event));
        for event in page {
            projector.project(event, Origin::Replay, &mut |event| batch.push_over(event));
        }
        for event in pending {
            projector.project(event, Origin::Live, &mut |event| batch.push_over(event));
        }
        drop(batch);
        self.sink.end(error);
    }
}

/// What a durable event that was not delivered yet tells the stream's app.
fn learn(
    projector: &Projector,
    base: &mut Option<Known>,
    context: &mut KnownContext,
    event: &HarnessEvent,
    origin: Origin,
) {
    if !event.durable || projector.cursor.covers_whole(event.sequence) {
        return;
    }
    context.note(event);
    if let Some(base) = base {
        if let Some(run) = event.run_id.as_ref().filter(|_| origin == Origin::Replay) {
            base.begin_news_at(run);
        }
        base.apply(event);
    }
}

/// Adds an event to the stream, or, where there is no room, keeps it. Text that has no room is dropped: it is restated.
fn push_or_keep(
    batch: &mut crate::stream::SinkBatch<'_, Event>,
    stuck: &mut VecDeque<Event>,
    event: Event,
    full: bool,
) -> bool {
    if full {
        if event.durable {
            stuck.push_back(event);
        }
        return true;
    }
    match batch.push_or_return(event) {
        Ok(()) => false,
        Err(event) => {
            if event.durable {
                stuck.push_back(event);
            }
            true
        }
    }
}
