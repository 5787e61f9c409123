//! What a snapshot does to a feed that is on display.
//!
//! The snapshot's items are the items, in its order. Four things are kept that it doesn't tell:
//! - what events told since the reload began and after the snapshot was taken;
//! - provisional text of runs that went on when it was taken, but not where the snapshot has the stored message of the
//!   same step: before the next tool call or user message that was on display before;
//! - nested tool calls of these runs;
//! - what no snapshot tells at all, see [`FeedState`](super::FeedState), as far as it still goes on.
//!
//! What is kept stands where it stood: behind the item that it stood behind, and before the next item that was on display
//! before. A reload costs the length of the chat, as its snapshot does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::item::FeedItem;
use super::order::{Items, Slot, Stamp};
use super::reducer::{FeedReducer, Loading};
use super::state::FeedState;
use super::tool;
use crate::model::{ChatSnapshot, Event, EventKind, Item, Message, RunId, Seq, ToolStatus};

impl Stamp {
    /// Whether it is from an event that the snapshot of a reload can't know: one that came since the reload began, and is
    /// after the snapshot.
    fn is_after(&self, loading: &Loading, snapshot: Seq) -> bool {
        self.tick > loading.tick && self.seq > snapshot
    }

    /// As [`is_after`](Self::is_after), and also true of a transient event at the snapshot's sequence, which may be from
    /// before the snapshot or after it.
    fn may_be_after(&self, loading: &Loading, snapshot: Seq) -> bool {
        self.is_after(loading, snapshot) || (self.tick > loading.tick && self.seq == snapshot && !self.durable)
    }
}

impl FeedReducer {
    /// Makes a snapshot's items those on display.
    pub(super) fn set_items(&mut self, items: Vec<Item>) {
        let stamp = Stamp { seq: self.snapshot_seq, durable: false, run: None, tick: 0 };
        // A host that tells an id twice means one item.
        let mut ids = HashSet::with_capacity(items.len());
        let items = items.into_iter().filter(|item| ids.insert(item.id().clone()));
        self.state.items = items.map(|item| (FeedItem::Told(Arc::new(item)), stamp.clone())).collect();
        self.rebuild_lanes();
    }

    pub(super) fn adopt(&mut self, loading: Loading, mut snapshot: ChatSnapshot) {
        let seq = snapshot.seq;
        let told = std::mem::take(&mut snapshot.items);
        let old = std::mem::replace(&mut self.state, FeedState::without_items(snapshot));
        self.snapshot_seq = seq;
        let mut going: HashSet<RunId> =
            self.state.runs().filter(|run| run.status.is_active()).map(|run| run.id.clone()).collect();
        for event in &loading.log {
            if is_news(event, seq) {
                if let (EventKind::RunStarted(_), Some(run)) = (&event.kind, &event.run) {
                    going.insert(run.clone());
                }
                self.apply_part(event);
            }
        }
        self.state.seq = old.seq.max(seq);
        self.merge(&old.items, told, &going, &loading);
        self.state.extra = old.extra;
        self.keep_what_goes_on();
        self.touched.whole();
    }

    fn merge(&mut self, old: &Items, told: Vec<Item>, going: &HashSet<RunId>, loading: &Loading) {
        let seq = self.snapshot_seq;
        let stamp = Stamp { seq, durable: false, run: None, tick: loading.tick };
        let mut places: HashMap<_, usize> = HashMap::with_capacity(told.len());
        let mut new: Vec<Option<(FeedItem, Stamp)>> = Vec::with_capacity(told.len());
        for item in told {
            if !places.contains_key(item.id()) {
                places.insert(item.id().clone(), new.len());
                new.push(Some((FeedItem::Told(Arc::new(item)), stamp.clone())));
            }
        }
        // For each place where the stretch that it is in ends, and where the step does.
        let mut ends = vec![new.len(); new.len() + 1];
        let mut step_ends = ends.clone();
        for at in (0..new.len()).rev() {
            let common = new[at].as_ref().map(|(item, _)| item).filter(|item| old.contains(item.id()));
            ends[at] = if common.is_some() { at } else { ends[at + 1] };
            step_ends[at] = if common.is_some_and(ends_step) { at } else { step_ends[at + 1] };
        }
        let mut claimed: HashSet<usize> = HashSet::new();
        let mut kept: Vec<Vec<(FeedItem, Stamp)>> = vec![Vec::new(); new.len() + 1];
        // Behind the last of the items that were found in both so far.
        let mut behind = 0;
        for slot in old.slots() {
            if let Some(&at) = places.get(slot.item.id()) {
                behind = behind.max(at + 1);
                if let Some(told) = &mut new[at] {
                    keep_newer(told, slot, loading, seq);
                }
                continue;
            }
            let end = ends[behind];
            let goes_on = slot.run().is_some_and(|run| going.contains(run));
            let is_reply = slot.item.is_provisional() && slot.stamp.durable;
            if slot.item.is_provisional() && !(is_reply && slot.stamp.is_after(loading, seq)) {
                let stored = (behind..step_ends[behind]).find(|at| {
                    let is_free = !claimed.contains(at);
                    is_free && new[*at].as_ref().is_some_and(|new| stands_for(&new.0, slot, goes_on))
                });
                if let Some(at) = stored {
                    claimed.insert(at);
                    behind = at + 1;
                    let id = slot.item.id();
                    if goes_on {
                        self.lanes.of(slot.run()).retired.insert(id.clone());
                    }
                } else if goes_on && !is_reply {
                    kept[end].push((slot.item.clone(), slot.stamp.clone()));
                }
            } else if slot.stamp.may_be_after(loading, seq) || (slot.item.is_nested() && goes_on) {
                kept[end].push((slot.item.clone(), slot.stamp.clone()));
            }
        }
        let last = kept.pop().unwrap_or_default();
        let merged = kept.into_iter().zip(new).flat_map(|(kept, new)| kept.into_iter().chain(new)).chain(last);
        self.state.items = merged.collect();
        self.rebuild_lanes();
    }

    /// Reads off the items what placing the next one needs to know.
    fn rebuild_lanes(&mut self) {
        let mut old = std::mem::take(&mut self.lanes);
        for slot in self.state.items.slots() {
            self.lanes.add(&slot.item, slot.run());
        }
        let active: Vec<RunId> =
            self.state.runs().filter(|run| run.status.is_active()).map(|run| run.id.clone()).collect();
        for run in active {
            self.lanes.of(Some(&run)).retired = std::mem::take(&mut old.of(Some(&run)).retired);
        }
    }

    /// Keeps of what no snapshot tells what still goes on, or has no end.
    fn keep_what_goes_on(&mut self) {
        let run = self.state.extra.thinking.as_ref().and_then(|thinking| thinking.run.clone());
        if run.is_none_or(|run| self.state.run(&run).is_none_or(|run| !run.status.is_active())) {
            self.state.extra.thinking = None;
        }
        if self.state.extra.jobs.iter().any(|job| job.finished) {
            Arc::make_mut(&mut self.state.extra.jobs).retain(|job| !job.finished);
        }
        let outputs: Vec<_> = self.state.extra.outputs.keys().cloned().collect();
        for id in outputs {
            if !is_running(self.state.items.get(&id)) {
                self.state.extra.outputs.remove_mut(&id);
            }
        }
        // A call whose beginning only the snapshot told may have ended since.
        let ends: Vec<_> = self.early_ends.keys().filter(|id| self.state.items.contains(id)).cloned().collect();
        for id in ends {
            let (Some(end), Some(at)) = (self.early_ends.remove(&id), self.state.items.position(&id)) else { continue };
            if let Some(slot) = self.state.items.slot(at)
                && let FeedItem::Told(item) = &slot.item
                && let Item::ToolCall(call) = &**item
                && call.status == ToolStatus::Running
            {
                let (mut call, stamp) = (call.clone(), slot.stamp.clone());
                tool::finish(&mut call, &end);
                self.state.items.set(at, FeedItem::Told(Item::ToolCall(call).into()), stamp);
            }
        }
    }
}

/// Whether an event tells something that a snapshot doesn't know. A transient one at its sequence may: applied once more
/// it does no harm, and left out it would be missed.
fn is_news(event: &Event, snapshot: Seq) -> bool {
    if event.durable { event.seq > snapshot } else { event.seq >= snapshot }
}

/// Of an item that was on display and is in the snapshot, the newer one; where they are the same the old one, as copies
/// of the state share it.
fn keep_newer(told: &mut (FeedItem, Stamp), old: &Slot, loading: &Loading, snapshot: Seq) {
    if old.stamp.is_after(loading, snapshot) || old.item.is_same(&told.0) {
        *told = (old.item.clone(), old.stamp.clone());
        return;
    }
    // Of a text that is being written the snapshot may tell less.
    let FeedItem::Live(live) = &old.item else { return };
    let FeedItem::Told(item) = &told.0 else { return };
    if let Item::AssistantMessage(Message { provisional: true, text, .. }) = &**item
        && super::text::LiveText::from(text.as_str()).len_utf16() <= live.text.len_utf16()
    {
        told.0 = FeedItem::Live(live.clone());
    }
}

/// Whether an item tells that the text before it is of another step than the text behind it.
fn ends_step(item: &FeedItem) -> bool {
    let FeedItem::Told(item) = item else { return false };
    match &**item {
        Item::UserMessage(_) => true,
        Item::ToolCall(call) => call.durable,
        _ => false,
    }
}

/// Whether a stored message is what became of a provisional one in the same step: of the same run or, where the host
/// doesn't tell the run, with its text. While the run goes on the text may have gone on, too.
fn stands_for(stored: &FeedItem, provisional: &Slot, goes_on: bool) -> bool {
    let FeedItem::Told(item) = stored else { return false };
    let Item::AssistantMessage(message) = &**item else { return false };
    if message.provisional {
        return false;
    }
    if let Some(run) = &message.run {
        return Some(run) == provisional.run();
    }
    let text = &message.text;
    match &provisional.item {
        FeedItem::Live(live) => live.text.begins(text) && (goes_on || live.text.len_bytes() == text.len()),
        FeedItem::Told(item) => matches!(&**item, Item::AssistantMessage(shown) if shown.text == *text),
    }
}

fn is_running(item: Option<&FeedItem>) -> bool {
    let Some(FeedItem::Told(item)) = item else { return false };
    matches!(&**item, Item::ToolCall(call) if call.status == ToolStatus::Running)
}
