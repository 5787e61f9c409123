//! Comparing two states of one chat: for tests of adapters and hosts, with the promise that a feed makes.
//!
//! A feed that was built live and then reloaded, with no run going on, equals one opened anew: see [`settled`]. Before
//! that the two differ in provisional text and nested tool calls only: see [`unsettled`].

use std::fmt::Debug;

use super::item::FeedItem;
use super::state::FeedState;
use crate::model::{Item, Run};

/// What differs between two states in what a snapshot tells, in a sentence; nothing where they are equal.
pub fn settled(live: &FeedState, anew: &FeedState) -> Option<String> {
    let (live, anew) = (live.to_snapshot(), anew.to_snapshot());
    first([
        list("items", &live.items, &anew.items),
        list("runs", &live.runs, &anew.runs),
        list("children", &live.children, &anew.children),
        (live != anew).then(|| format!("the feed has {live:?}, one opened anew {anew:?}")),
    ])
}

/// What differs between a state built live and that of a feed opened anew, but for what may: provisional text and the place
/// of what became of it (an event tells a reply's text, and no place), nested tool calls, the times of runs and chat, which
/// events need not tell, and the sequence, which a host counts on for events that are of no concern to a feed.
pub fn unsettled(live: &FeedState, anew: &FeedState) -> Option<String> {
    let items = |state: &FeedState| -> Vec<Item> {
        let stays = state.items().filter(|item| !item.is_passing() && reply(item).is_none());
        stays.map(|item| item.to_item().into_owned()).collect()
    };
    let known = live.items().filter_map(|item| Some((reply(item)?, reply(anew.item(item.id())?)?)));
    let (texts, texts_anew): (Vec<_>, Vec<_>) = known.unzip();
    let runs = |state: &FeedState| -> Vec<Run> {
        state.runs().cloned().map(|run| Run { started_at: None, finished_at: None, ..run }).collect()
    };
    first([
        list("items", &items(live), &items(anew)),
        list("replies", &texts, &texts_anew),
        list("runs", &runs(live), &runs(anew)),
        list("queue", live.queue(), anew.queue()),
        list("plan", live.plan(), anew.plan()),
        list("approvals", live.approvals(), anew.approvals()),
        list("children", live.children(), anew.children()),
        one("title", &live.chat().title, &anew.chat().title),
        one("question", &live.question(), &anew.question()),
        one("usage", &live.usage(), &anew.usage()),
        one("settings", live.settings(), anew.settings()),
        one("workspace", &live.workspace(), &anew.workspace()),
    ])
}

/// The texts of the agent's messages in display order, provisional ones too: what a person reads.
pub fn replies(state: &FeedState) -> Vec<String> {
    state.items().filter_map(reply).collect()
}

fn reply(item: &FeedItem) -> Option<String> {
    match &*item.to_item() {
        Item::AssistantMessage(message) => Some(message.text.clone()),
        _ => None,
    }
}

fn first<const N: usize>(differences: [Option<String>; N]) -> Option<String> {
    differences.into_iter().flatten().next()
}

fn one<T: PartialEq + Debug>(what: &str, live: &T, anew: &T) -> Option<String> {
    (live != anew).then(|| format!("{what}: the feed has {live:?}, one opened anew {anew:?}"))
}

fn list<T: PartialEq + Debug>(what: &str, live: &[T], anew: &[T]) -> Option<String> {
    let at = live.iter().zip(anew).position(|(a, b)| a != b).unwrap_or(live.len().min(anew.len()));
    let (a, b) = (live.get(at), anew.get(at));
    (a.is_some() || b.is_some()).then(|| format!("{what} at {at}: the feed has {a:?}, one opened anew {b:?}"))
}
