//! What turns a snapshot and events into the state of a feed. No I/O, no clock.
//!
//! [`FeedReducer`] is the whole of it: [`ChatFeed`](super::ChatFeed) drives one, and an app that reads its events itself
//! can drive one, too. What each event does to the items stands in `message` and `tool`, what it does to the rest in
//! `part`, what a reload does in `reload`.

use std::collections::HashMap;

use super::changed::{Changed, Touched};
use super::item::FeedItem;
use super::lane::Lanes;
use super::order::Stamp;
use super::state::FeedState;
use crate::model::{ChatSnapshot, Event, EventKind, Gap, Item, ItemId, RunId, Seq, ToolFinished};

/// Keeps the state of one chat.
pub struct FeedReducer {
    pub(super) state: FeedState,
    /// The state at the last [`take`](Self::take).
    given: Option<FeedState>,
    pub(super) touched: Touched,
    pub(super) lanes: Lanes,
    /// Ends of tool calls whose beginning is still to come.
    pub(super) early_ends: HashMap<ItemId, ToolFinished>,
    /// The newest snapshot's sequence: what transient events tell from before it, it tells better.
    pub(super) snapshot_seq: Seq,
    /// How many events were applied.
    pub(super) tick: u64,
    pub(super) loading: Option<Loading>,
    begun: u64,
    wants_reload: bool,
}

/// A reload that has begun: what comes meanwhile is newer than its snapshot may be.
pub(super) struct Loading {
    begun: u64,
    /// Events applied before it.
    pub(super) tick: u64,
    /// The sequence of the state then: a snapshot from before it is of no use.
    pub(super) floor: Seq,
    /// Events since then that changed something but the items.
    pub(super) log: Vec<Event>,
}

/// A reload that has begun, see [`FeedReducer::begin_reload`].
#[derive(Debug)]
#[must_use]
pub struct Reload(u64);

impl FeedReducer {
    /// Begins with a snapshot. Go on with the events after its `seq`.
    pub fn new(mut snapshot: ChatSnapshot) -> Self {
        let items = std::mem::take(&mut snapshot.items);
        let mut reducer = FeedReducer {
            snapshot_seq: snapshot.seq,
            state: FeedState::without_items(snapshot),
            given: None,
            touched: Touched::default(),
            lanes: Lanes::default(),
            early_ends: HashMap::new(),
            tick: 0,
            loading: None,
            begun: 0,
            wants_reload: false,
        };
        reducer.set_items(items);
        reducer.touched.whole();
        reducer
    }

    /// The state as it is now.
    pub fn state(&self) -> &FeedState {
        &self.state
    }

    /// Whether a gap asked for a new snapshot: see [`begin_reload`](Self::begin_reload).
    pub fn wants_reload(&self) -> bool {
        self.wants_reload
    }

    /// Asks for a new snapshot, as a gap does.
    pub fn want_reload(&mut self) {
        self.wants_reload = true;
    }

    /// Whether [`take`](Self::take) has something to give.
    pub fn has_changed(&self) -> bool {
        !self.touched.is_empty()
    }

    /// What changed since the last call, and at the first one the whole state.
    pub fn take(&mut self) -> Changed {
        let touched = std::mem::take(&mut self.touched);
        let changed = touched.resolve(self.given.as_ref(), &self.state);
        self.given = Some(self.state.clone());
        changed
    }

    /// Says that a snapshot is being loaded. What is applied from now on is not lost by it, however old it is when it
    /// comes. A reload that began before is given up.
    pub fn begin_reload(&mut self) -> Reload {
        self.wants_reload = false;
        self.begun += 1;
        let floor = self.state.seq;
        self.loading = Some(Loading { begun: self.begun, tick: self.tick, floor, log: Vec::new() });
        Reload(self.begun)
    }

    /// Takes the snapshot of a reload that has begun. False: it is of no use, and another one is wanted. That is so where
    /// it is older than what was known when the reload began, which no host's is that reads when it is asked, and where
    /// a gap meanwhile said that events were lost.
    pub fn reload(&mut self, reload: Reload, snapshot: ChatSnapshot) -> bool {
        let useful = match &self.loading {
            Some(loading) => {
                loading.begun == reload.0 && snapshot.seq >= loading.floor && snapshot.chat.id == self.state.chat.id
            }
            None => false,
        };
        match self.loading.take() {
            Some(loading) if useful => self.adopt(loading, snapshot),
            // A newer reload may have begun: it stays.
            other => {
                self.loading = other;
                self.abandon_reload(reload);
            }
        }
        useful
    }

    /// Says that no snapshot comes of a reload that has begun. Another one is wanted.
    pub fn abandon_reload(&mut self, reload: Reload) {
        self.loading = self.loading.take().filter(|loading| loading.begun != reload.0);
        self.wants_reload |= self.loading.is_none();
    }

    /// Applies an event. Durable ones that are known, and events of other chats, change nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.chat != self.state.chat.id || self.is_old(event) {
            return;
        }
        self.tick += 1;
        if event.durable {
            self.state.seq = event.seq;
        }
        let run = event.run.as_ref();
        match &event.kind {
            EventKind::ChatRenamed(_)
            | EventKind::ChatSettings(_)
            | EventKind::ChatWorkspace(_)
            | EventKind::RunStarted(_)
            | EventKind::RunWaiting(_)
            | EventKind::RunFinished(_)
            | EventKind::PlanUpdated(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved(_)
            | EventKind::QuestionAsked(_)
            | EventKind::QuestionResolved(_)
            | EventKind::QueueUpdated(_)
            | EventKind::ChildSpawned(_)
            | EventKind::ChildQuestionAsked(_)
            | EventKind::ChildQuestionResolved(_)
            | EventKind::ChildFinished(_)
            | EventKind::UsageUpdated(_) => {
                if let Some(loading) = &mut self.loading {
                    loading.log.push(event.clone());
                }
                self.apply_part(event);
                if let EventKind::RunFinished(_) = event.kind {
                    self.end_run(run);
                }
            }
            EventKind::MessageUser(e) => self.user_message(event, &e.message, e.after_id.as_ref()),
            EventKind::MessageSystem(e) => self.system_message(event, &e.message, e.after_id.as_ref()),
            EventKind::MessageDelta(e) => self.delta(event, e),
            EventKind::MessageAssistant(e) => self.assistant_message(event, e),
            EventKind::ToolStarted(e) => self.tool_started(event, &e.call),
            EventKind::ToolOutput(e) => self.tool_output(e),
            EventKind::ToolFinished(e) => self.tool_finished(event, e),
            EventKind::EditApplied(e) => self.upsert(event, &e.edit, self.state.items.len()),
            EventKind::EditUndone(e) => self.edit_undone(event, &e.edit_id),
            EventKind::ChatArchived(e) => self.archived(e.archived),
            EventKind::ThinkingDelta(e) => self.thinking(run, e),
            EventKind::CompactionUpdated(e) => self.compaction(&e.compaction),
            EventKind::ContextChanged(e) => self.view(&e.view),
            EventKind::JobStarted(e) => self.job_started(&e.job),
            EventKind::JobOutput(e) => self.job_output(e),
            EventKind::JobFinished(e) => self.job_finished(e),
            EventKind::Gap(e) => self.gap(e),
        }
    }

    /// Whether it is known already: a durable event by its sequence; a transient one where a newer snapshot tells what it
    /// tells. What no snapshot tells, and what goes on with an item on display, is never old.
    fn is_old(&self, event: &Event) -> bool {
        if event.durable {
            return event.seq <= self.state.seq;
        }
        match &event.kind {
            EventKind::MessageDelta(_)
            | EventKind::ThinkingDelta(_)
            | EventKind::ToolStarted(_)
            | EventKind::ToolOutput(_)
            | EventKind::ToolFinished(_)
            | EventKind::ChatArchived(_)
            | EventKind::CompactionUpdated(_)
            | EventKind::ContextChanged(_)
            | EventKind::JobStarted(_)
            | EventKind::JobOutput(_)
            | EventKind::JobFinished(_)
            | EventKind::Gap(_) => false,
            EventKind::ChatRenamed(_)
            | EventKind::ChatSettings(_)
            | EventKind::ChatWorkspace(_)
            | EventKind::RunStarted(_)
            | EventKind::RunWaiting(_)
            | EventKind::RunFinished(_)
            | EventKind::MessageUser(_)
            | EventKind::MessageAssistant(_)
            | EventKind::MessageSystem(_)
            | EventKind::EditApplied(_)
            | EventKind::EditUndone(_)
            | EventKind::PlanUpdated(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved(_)
            | EventKind::QuestionAsked(_)
            | EventKind::QuestionResolved(_)
            | EventKind::QueueUpdated(_)
            | EventKind::ChildSpawned(_)
            | EventKind::ChildQuestionAsked(_)
            | EventKind::ChildQuestionResolved(_)
            | EventKind::ChildFinished(_)
            | EventKind::UsageUpdated(_) => event.seq < self.snapshot_seq,
        }
    }

    /// What is shown may be wrong. Where events are lost the stream goes on after another sequence, which may be a lower
    /// one, and a snapshot that is on its way may be from before the loss.
    fn gap(&mut self, gap: &Gap) {
        self.wants_reload = true;
        if gap.lost {
            let seq = gap.snapshot_seq.unwrap_or(Seq::START);
            self.state.seq = seq;
            self.snapshot_seq = seq;
            self.loading = None;
        }
    }

    pub(super) fn stamp(&self, event: &Event) -> Stamp {
        Stamp { seq: event.seq, durable: event.durable, run: event.run.clone(), tick: self.tick }
    }

    /// Whether a run is known to have ended: what is transient of it comes too late.
    pub(super) fn has_ended(&self, run: Option<&RunId>) -> bool {
        run.and_then(|run| self.state.runs.get(run)).is_some_and(|run| !run.status.is_active())
    }

    /// Changes the item with that id, or puts a new one at `at`.
    pub(super) fn upsert(&mut self, event: &Event, item: &Item, at: usize) {
        let item = FeedItem::Told(item.clone().into());
        match self.state.items.position(item.id()) {
            Some(at) => self.set(event, at, item),
            None => self.insert(event, at, item),
        }
    }

    pub(super) fn insert(&mut self, event: &Event, at: usize, item: FeedItem) {
        self.touched.item(item.id());
        self.lanes.add(&item, item.run().or(event.run.as_ref()));
        let stamp = self.stamp(event);
        self.state.items.insert(at, item, stamp);
    }

    /// Puts an item at a place in place of the one with the same id.
    pub(super) fn set(&mut self, event: &Event, at: usize, item: FeedItem) {
        if self.state.items.slot(at).is_some_and(|slot| !slot.item.is_same(&item)) {
            self.touched.item(item.id());
        }
        let stamp = self.stamp(event);
        self.state.items.set(at, item, stamp);
    }
}

impl std::fmt::Debug for FeedReducer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedReducer").field("state", &self.state).finish_non_exhaustive()
    }
}
