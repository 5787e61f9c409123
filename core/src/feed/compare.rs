//! Two states compared whole, which only a reload calls for.

use std::collections::HashMap;

use super::changed::{Changed, change};
use super::state::FeedState;

/// Finds what differs. Items that kept their order among each other stay; the fewest others move.
pub(super) fn whole(old: &FeedState, new: &FeedState, changed: &mut Changed) {
    let places: HashMap<_, _> = old.items().enumerate().map(|(at, item)| (item.id(), at)).collect();
    // The places in the old list of those that are in both, in the new order.
    let common: Vec<usize> = new.items().filter_map(|item| places.get(item.id()).copied()).collect();
    let mut stays = vec![false; old.item_count()];
    longest_rise(&common).into_iter().for_each(|at| stays[at] = true);

    let old_items: Vec<_> = old.items().collect();
    for (index, item) in new.items().enumerate() {
        match places.get(item.id()) {
            Some(&at) if stays[at] => {
                if !item.is_same(old_items[at]) {
                    changed.updated.push(change(item.id(), index));
                }
            }
            _ => changed.inserted.push(change(item.id(), index)),
        }
    }
    for (index, item) in old_items.iter().enumerate().rev() {
        if !stays[index] {
            changed.removed.push(change(item.id(), index));
        }
    }
    let parts = &mut changed.parts;
    // The trouble is no part of the state: it stays as it was noted.
    parts.chat &= old.chat != new.chat || old.extra.archived != new.extra.archived;
    parts.runs &= !old.runs().eq(new.runs());
    parts.queue &= old.queue != new.queue;
    parts.plan &= old.plan != new.plan;
    parts.approvals &= old.approvals != new.approvals;
    parts.question &= old.question != new.question;
    parts.children &= old.children != new.children;
    parts.usage &= old.usage != new.usage;
    parts.settings &= old.settings != new.settings;
    parts.workspace &= old.workspace != new.workspace;
    parts.compactions &= old.extra.compactions != new.extra.compactions;
    parts.view &= old.extra.view != new.extra.view;
    parts.jobs &= old.extra.jobs != new.extra.jobs;
    parts.thinking &= old.extra.thinking != new.extra.thinking;
    parts.outputs &= old.extra.outputs != new.extra.outputs;
}

/// The longest part of a list of different numbers that rises.
fn longest_rise(numbers: &[usize]) -> Vec<usize> {
    // For each length the place of the smallest number that a rise of that length can end with.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (at, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|&end| numbers[end] < *number);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut rise: Vec<_> =
        std::iter::successors(ends.last().copied(), |&at| before[at]).map(|at| numbers[at]).collect();
    rise.reverse();
    rise
}

#[cfg(test)]
mod tests {
    use super::longest_rise;

    #[test]
    fn the_fewest_move() {
        assert_eq!(longest_rise(&[]), [0usize; 0]);
        assert_eq!(longest_rise(&[0, 1, 2]), [0, 1, 2]);
        assert_eq!(longest_rise(&[3, 0, 1, 2]), [0, 1, 2]);
        assert_eq!(longest_rise(&[1, 2, 0]), [1, 2]);
        assert_eq!(longest_rise(&[2, 1, 0]).len(), 1);
        assert_eq!(longest_rise(&[4, 0, 5, 1, 6, 2]).len(), 3);
    }
}
