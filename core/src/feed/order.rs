//! The items of a feed in display order, found by place or by id.
//!
//! Each item has a label, a number that grows with the place; ids are found by their label, so that an insertion in the
//! middle renumbers nothing. Where there is no number left between two neighbours the labels around them are spread
//! anew. What each thing costs, for n items: an id's place, an insertion, a change, a removal O(log n), at the end too;
//! a copy O(1).

use rpds::HashTrieMapSync;

use super::item::FeedItem;
use super::tree::{Iter, Tree};
use crate::model::{ItemId, RunId, Seq};

/// Between the labels of two items that were added at the end.
const LABEL_GAP: u64 = 1 << 32;
/// What spreading leaves between two labels at least, so that the next one is far off.
const MIN_SPREAD_GAP: u64 = 1 << 16;
/// Items whose labels are spread at first; twice as many where that gives too little.
const SPREAD_ITEMS: usize = 32;

/// The event that last changed an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    /// Its sequence.
    pub(super) seq: Seq,
    /// Whether it was a durable one.
    pub(super) durable: bool,
    /// Its run: hosts don't tell it of each item.
    pub(super) run: Option<RunId>,
    /// How many events had been applied then.
    pub(super) tick: u64,
}

#[derive(Clone)]
pub(super) struct Slot {
    label: u64,
    pub(super) item: FeedItem,
    pub(super) stamp: Stamp,
}

impl Slot {
    /// The run it belongs to, as far as the item or its event told.
    pub(super) fn run(&self) -> Option<&RunId> {
        self.item.run().or(self.stamp.run.as_ref())
    }
}

#[derive(Clone)]
pub(super) struct Items {
    tree: Tree<Slot>,
    labels: HashTrieMapSync<ItemId, u64>,
}

impl Items {
    pub(super) fn new() -> Self {
        Items { tree: Tree::new(), labels: HashTrieMapSync::new_sync() }
    }

    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    pub(super) fn slot(&self, at: usize) -> Option<&Slot> {
        self.tree.get(at)
    }

    pub(super) fn slots(&self) -> Iter<'_, Slot> {
        self.tree.iter()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.labels.contains_key(id)
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        let label = *self.labels.get(id)?;
        let (mut low, mut high) = (0, self.len());
        // What changes is mostly at the end.
        if high > 0 && self.label(high - 1) == label {
            return Some(high - 1);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.label(middle) < label { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }

    pub(super) fn get(&self, id: &str) -> Option<&FeedItem> {
        self.slot(self.position(id)?).map(|slot| &slot.item)
    }

    pub(super) fn push(&mut self, item: FeedItem, stamp: Stamp) {
        self.insert(self.len(), item, stamp);
    }

    /// Puts an item before the one at `at`. Its id is a new one.
    pub(super) fn insert(&mut self, at: usize, item: FeedItem, stamp: Stamp) {
        let at = at.min(self.len());
        let label = match self.label_before(at) {
            Some(label) => label,
            None => {
                self.spread(at);
                self.label_before(at).expect("spreading left room on both sides")
            }
        };
        self.labels.insert_mut(item.id().clone(), label);
        self.tree.insert(at, Slot { label, item, stamp });
    }

    /// Puts an item in the place of another; their ids may differ.
    pub(super) fn set(&mut self, at: usize, item: FeedItem, stamp: Stamp) {
        let Some(slot) = self.tree.get_mut(at) else { return };
        if slot.item.id() != item.id() {
            self.labels.remove_mut(slot.item.id());
            self.labels.insert_mut(item.id().clone(), slot.label);
        }
        slot.item = item;
        slot.stamp = stamp;
    }

    /// The item at a place, to change all of it but its id.
    pub(super) fn item_mut(&mut self, at: usize, stamp: Stamp) -> Option<&mut FeedItem> {
        let slot = self.tree.get_mut(at)?;
        slot.stamp = stamp;
        Some(&mut slot.item)
    }

    pub(super) fn remove(&mut self, at: usize) {
        if let Some(slot) = self.tree.remove(at) {
            self.labels.remove_mut(slot.item.id());
        }
    }

    /// How many items lie in leaves that an older copy does not share.
    #[cfg(test)]
    pub(super) fn copied_since(&self, old: &Items) -> usize {
        self.tree.not_shared_with(&old.tree)
    }

    fn label(&self, at: usize) -> u64 {
        self.tree.get(at).map_or(u64::MAX, |slot| slot.label)
    }

    /// A label for a new item before the one at `at`, where there is one left.
    fn label_before(&self, at: usize) -> Option<u64> {
        let left = if at == 0 { 0 } else { self.label(at - 1) };
        if at == self.len() {
            return left.checked_add(LABEL_GAP);
        }
        let label = left + (self.label(at) - left) / 2;
        (label > left).then_some(label)
    }

    /// Spreads the labels around `at` evenly: of few items where they have numbers enough between them, else of more.
    fn spread(&mut self, at: usize) {
        let mut count = SPREAD_ITEMS;
        loop {
            let first = at.saturating_sub(count / 2);
            let last = (first + count).min(self.len());
            let left = if first == 0 { 0 } else { self.label(first - 1) };
            let items = (last - first) as u64 + 1;
            let right = if last == self.len() { left.saturating_add(items * LABEL_GAP) } else { self.label(last) };
            let gap = (right - left) / items;
            if gap >= MIN_SPREAD_GAP || last - first == self.len() {
                for (n, place) in (first..last).enumerate() {
                    let Some(slot) = self.tree.get_mut(place) else { break };
                    slot.label = left + gap * (n as u64 + 1);
                    self.labels.insert_mut(slot.item.id().clone(), slot.label);
                }
                return;
            }
            count *= 2;
        }
    }
}

impl FromIterator<(FeedItem, Stamp)> for Items {
    fn from_iter<I: IntoIterator<Item = (FeedItem, Stamp)>>(slots: I) -> Self {
        let mut items = Items::new();
        slots.into_iter().for_each(|(item, stamp)| items.push(item, stamp));
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::model::{EditItem, EditState, Item};
    use proptest::prelude::*;

    fn item(id: usize) -> FeedItem {
        let edit = EditItem { id: id.to_string().into(), path: String::new(), state: EditState::Applied, run: None };
        FeedItem::Told(Arc::new(Item::Edit(edit)))
    }

    fn check(items: &Items, list: &[usize]) {
        assert!(items.slots().map(|slot| slot.item.id().to_string()).eq(list.iter().map(usize::to_string)));
        let labels: Vec<_> = items.slots().map(|slot| slot.label).collect();
        assert!(labels.is_sorted_by(|a, b| a < b), "labels grow");
        for (at, id) in list.iter().enumerate() {
            assert_eq!(items.position(&id.to_string()), Some(at));
        }
        assert_eq!(items.labels.size(), list.len());
    }

    proptest! {
        #[test]
        fn an_id_is_found_at_its_place(steps in prop::collection::vec((0u8..8, any::<usize>()), 0..600)) {
            let (mut items, mut list) = (Items::new(), Vec::new());
            for (id, (what, at)) in steps.into_iter().enumerate() {
                match what {
                    0 if !list.is_empty() => {
                        items.remove(at % list.len());
                        list.remove(at % list.len());
                    }
                    1 if !list.is_empty() => {
                        items.set(at % list.len(), item(id), Stamp::default());
                        let at = at % list.len();
                        list[at] = id;
                    }
                    2 => {
                        items.push(item(id), Stamp::default());
                        list.push(id);
                    }
                    _ => {
                        let at = at % (list.len() + 1);
                        items.insert(at, item(id), Stamp::default());
                        list.insert(at, id);
                    }
                }
            }
            check(&items, &list);
        }
    }

    #[test]
    fn inserting_at_one_place_again_and_again_finds_room() {
        for at in [0, 500, 999] {
            let (mut items, mut list): (Items, Vec<_>) =
                ((0..1000).map(|id| (item(id), Stamp::default())).collect(), (0..1000).collect());
            for id in 1000..4000 {
                // Before a fixed item, and after a fixed one: both squeeze the labels towards one side.
                let at = if id % 2 == 0 { at } else { list.len() - (1000 - at) };
                items.insert(at, item(id), Stamp::default());
                list.insert(at, id);
            }
            check(&items, &list);
        }
    }
}
