//! Which items of a run are on display, as far as placing the next one needs to know.

use std::collections::{HashMap, HashSet};

use super::item::FeedItem;
use crate::model::{Item, ItemId, RunId};

/// The runs that items on display belong to.
#[derive(Default)]
pub(super) struct Lanes(HashMap<Option<RunId>, Lane>);

/// One run's items.
#[derive(Default)]
pub(super) struct Lane {
    /// The first one.
    pub(super) first: Option<ItemId>,
    /// Whether a message of the user's is among them.
    pub(super) has_user: bool,
    /// The provisional ones, oldest first: one a step.
    pub(super) provisional: Vec<Provisional>,
    /// Provisional ids that the host's own messages took the place of: pieces that come late don't bring them back.
    pub(super) retired: HashSet<ItemId>,
}

/// A provisional item.
#[derive(Clone)]
pub(super) struct Provisional {
    pub(super) id: ItemId,
    /// A stored tool call of the run came after it: its step has ended.
    pub(super) over: bool,
}

impl Lanes {
    pub(super) fn get(&self, run: Option<&RunId>) -> Option<&Lane> {
        self.0.get(&run.cloned())
    }

    pub(super) fn of(&mut self, run: Option<&RunId>) -> &mut Lane {
        self.0.entry(run.cloned()).or_default()
    }

    /// A new item stands at the end of its run's.
    pub(super) fn add(&mut self, item: &FeedItem, run: Option<&RunId>) {
        let lane = self.of(run);
        lane.first.get_or_insert_with(|| item.id().clone());
        if item.is_provisional() {
            lane.provisional.push(Provisional { id: item.id().clone(), over: false });
        }
        let FeedItem::Told(item) = item else { return };
        match &**item {
            Item::UserMessage(_) => lane.has_user = true,
            Item::ToolCall(call) if call.durable => lane.end_step(),
            _ => {}
        }
    }
}

impl Lane {
    pub(super) fn end_step(&mut self) {
        self.provisional.iter_mut().rev().take_while(|p| !p.over).for_each(|p| p.over = true);
    }

    /// Another item took the place of a provisional one.
    pub(super) fn replace(&mut self, old: &ItemId, new: &FeedItem) {
        if self.first.as_ref() == Some(old) {
            self.first = Some(new.id().clone());
        }
        if let Some(at) = self.provisional.iter().position(|p| p.id == *old) {
            if new.is_provisional() {
                self.provisional[at] = Provisional { id: new.id().clone(), over: false };
            } else {
                self.provisional.remove(at);
            }
        }
        self.retired.insert(old.clone());
    }
}
