//! What changed between two states of a feed.
//!
//! While events are applied only ids are noted; what became of them is read off the two states at the end. So any number
//! of events gives one small [`Changed`], however slow the app is.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::state::FeedState;
use crate::model::{ItemId, JobId};

/// Noted ids, above which the two states are compared whole: it bounds what a stalled app costs.
const MAX_NOTED_IDS: usize = 8192;

/// What changed since the last update. To bring a list up to date: take out `removed` (their places are those of the old
/// list), put in `inserted` in their order (their places are those of the new list), then look at `updated`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// Items that are gone, the last one first; places in the old list.
    pub removed: Vec<ItemChange>,
    /// New items, the first one first; places in the new list. One that moved is in both lists.
    pub inserted: Vec<ItemChange>,
    /// Items that are another now, in order; places in the new list.
    pub updated: Vec<ItemChange>,
    /// Texts of which only the end changed: the items, jobs and outputs are in the other lists and parts, too.
    pub texts: Vec<TextChange>,
    /// What else changed.
    pub parts: Parts,
}

/// An item that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemChange {
    /// Its id.
    pub id: ItemId,
    /// Its place.
    pub index: usize,
    /// Of an inserted one: the removed one whose place it takes, as the host's own message does from a provisional one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<ItemId>,
}

/// A text of which only the end changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TextChange {
    /// Which text.
    pub text: TextOf,
    /// Where it begins to differ, in UTF-16 units: cut there and add [`LiveText::since`](super::LiveText::since).
    pub from: u64,
}

/// A text that grows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextOf {
    /// That of an item.
    Item(ItemId),
    /// The output of a tool call.
    Output(ItemId),
    /// The output of a job.
    Job(JobId),
    /// The agent's reasoning.
    Thinking,
}

macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident,)*) => {
        /// The parts of a state beside its items, and whether they changed.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct Parts {
            $($(#[$doc])* pub $part: bool,)*
        }

        impl Parts {
            /// Whether any of them changed.
            pub fn any(&self) -> bool {
                $(self.$part)||*
            }

            pub(super) const ALL: Parts = Parts { $($part: true,)* };
        }
    };
}

parts! {
    /// The chat's title, or whether it is put away.
    chat,
    /// The runs.
    runs,
    /// The queue.
    queue,
    /// The plan.
    plan,
    /// The pending approvals.
    approvals,
    /// The question.
    question,
    /// The children.
    children,
    /// The totals.
    usage,
    /// Model or profile.
    settings,
    /// The workspace.
    workspace,
    /// The compactions.
    compactions,
    /// What the model sees.
    view,
    /// The jobs.
    jobs,
    /// The agent's reasoning.
    thinking,
    /// Output of tools.
    outputs,
    /// Whether the feed could be reloaded: see [`FeedUpdate::trouble`](super::FeedUpdate::trouble).
    trouble,
}

impl Changed {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.inserted.is_empty() && self.updated.is_empty() && !self.parts.any()
    }
}

/// What was touched since the last update.
#[derive(Default)]
pub(super) struct Touched {
    /// Everything may differ.
    whole: bool,
    items: HashSet<ItemId>,
    /// Those of them that were taken out: one that is there again may be in another place.
    taken_out: HashSet<ItemId>,
    /// New ids, and the ids whose places they took.
    in_place_of: HashMap<ItemId, ItemId>,
    texts: HashMap<TextOf, u64>,
    pub(super) parts: Parts,
}

impl Touched {
    pub(super) fn is_empty(&self) -> bool {
        !self.whole && self.items.is_empty() && !self.parts.any()
    }

    #[cfg(test)]
    pub(super) fn noted(&self) -> usize {
        self.items.len()
    }

    pub(super) fn item(&mut self, id: &ItemId) {
        if !self.whole && !self.items.contains(id) {
            self.items.insert(id.clone());
            if self.items.len() > MAX_NOTED_IDS {
                self.whole();
            }
        }
    }

    /// An item was taken out.
    pub(super) fn taken_out(&mut self, id: &ItemId) {
        self.item(id);
        if !self.whole {
            self.taken_out.insert(id.clone());
        }
    }

    /// An item took the place of another.
    pub(super) fn in_place_of(&mut self, new: &ItemId, old: &ItemId) {
        self.item(old);
        self.item(new);
        let first = self.in_place_of.remove(old).unwrap_or_else(|| old.clone());
        self.in_place_of.insert(new.clone(), first);
    }

    /// A text differs from `from` on.
    pub(super) fn text(&mut self, of: TextOf, from: u64) {
        match &of {
            TextOf::Item(id) => self.item(id),
            TextOf::Output(_) => self.parts.outputs = true,
            TextOf::Job(_) => self.parts.jobs = true,
            TextOf::Thinking => self.parts.thinking = true,
        }
        if !self.whole {
            let lowest = self.texts.entry(of).or_insert(from);
            *lowest = from.min(*lowest);
        }
    }

    /// Everything may differ: the states are compared.
    pub(super) fn whole(&mut self) {
        self.whole = true;
        self.items.clear();
        self.taken_out.clear();
        self.texts.clear();
        self.parts = Parts { trouble: self.parts.trouble, ..Parts::ALL };
    }

    /// What changed from the old state to the new one. Costs what was touched, or one comparison after a reload.
    pub(super) fn resolve(mut self, old: Option<&FeedState>, new: &FeedState) -> Changed {
        let mut changed = Changed { parts: self.parts, ..Changed::default() };
        match old {
            None => {
                changed.inserted = new.items().enumerate().map(|(index, item)| change(item.id(), index)).collect();
                return changed;
            }
            Some(old) if self.whole => super::compare::whole(old, new, &mut changed),
            Some(old) => {
                for id in &self.items {
                    match (old.items.position(id), new.items.position(id)) {
                        (Some(index), None) => changed.removed.push(change(id, index)),
                        (None, Some(index)) => changed.inserted.push(change(id, index)),
                        (Some(was), Some(index)) if self.taken_out.contains(id) => {
                            changed.removed.push(change(id, was));
                            changed.inserted.push(change(id, index));
                        }
                        (Some(_), Some(index)) => changed.updated.push(change(id, index)),
                        (None, None) => {}
                    }
                }
                changed.removed.sort_unstable_by_key(|change| std::cmp::Reverse(change.index));
                changed.inserted.sort_unstable_by_key(|change| change.index);
                changed.updated.sort_unstable_by_key(|change| change.index);
            }
        }
        if let Some(old) = old {
            for inserted in &mut changed.inserted {
                inserted.in_place_of =
                    self.in_place_of.remove(&inserted.id).filter(|replaced| old.items.contains(replaced));
            }
            changed.texts = self.texts.into_iter().map(|(text, from)| TextChange { text, from }).collect();
            changed.texts.retain(|change| match &change.text {
                // A new text is read whole, and one that is gone not at all.
                TextOf::Item(id) if self.taken_out.contains(id) => false,
                TextOf::Item(id) => [old, new].iter().all(|s| s.item(id).is_some_and(|i| i.live_text().is_some())),
                TextOf::Output(id) => [old, new].iter().all(|state| state.output(id).is_some()),
                TextOf::Job(id) => [old, new].iter().all(|state| state.jobs().iter().any(|job| job.job.id == *id)),
                TextOf::Thinking => {
                    let of = |state: &FeedState| state.thinking().map(|thinking| thinking.run.clone());
                    of(old).is_some() && of(old) == of(new)
                }
            });
            changed.texts.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        }
        changed
    }
}

pub(super) fn change(id: &ItemId, index: usize) -> ItemChange {
    ItemChange { id: id.clone(), index, in_place_of: None }
}
