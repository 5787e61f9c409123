//! What an update costs: what changed, whatever the length of the chat. Counted, not timed.

use super::*;

fn long(items: usize) -> ChatSnapshot {
    let mut snapshot = snapshot();
    let message = |n: usize| {
        from_json(
            json!({"kind": "user_message", "id": format!("m{n}"), "text": "x", "run": "r1", "provisional": false}),
        )
    };
    snapshot.items = (0..items).map(message).collect();
    snapshot
}

/// How many of the new state's items are no longer shared with the old one.
fn copied(old: &FeedState, new: &FeedState) -> usize {
    new.items.copied_since(&old.items)
}

#[test]
fn an_update_copies_a_few_leaves_whatever_the_length_of_the_chat() {
    let changes = |items: usize| {
        let mut feed = taken(long(items));
        let mut most = 0;
        for n in 0..200u64 {
            let old = feed.state().clone();
            match n % 4 {
                0 => feed.apply(&delta(1, n, "text")),
                1 => feed.apply(&user(&format!("u{n}"), "r2", Some(&format!("m{}", items / 2)))),
                2 => feed.apply(&durable(200 + n, "r2", "tool.started", tool(&format!("t{n}"), true))),
                _ => feed.apply(&durable(200 + n, "r2", "tool.finished", json!({"callId": format!("t{}", n - 1)}))),
            }
            let changed = feed.take();
            assert_eq!(changed.inserted.len() + changed.updated.len() + changed.removed.len(), 1);
            most = most.max(copied(&old, feed.state()));
        }
        most
    };
    let (short, long) = (changes(1_000), changes(100_000));
    assert!(long <= 2 * short.max(64), "{long} items copied in a long chat, {short} in a short one");
}

#[test]
fn a_stalled_app_gets_one_update_and_what_it_holds_back_is_bounded() {
    let mut feed = taken(long(10));
    for n in 0..20_000u64 {
        feed.apply(&durable(200 + n, "r2", "tool.started", tool(&format!("t{n}"), true)));
    }
    assert!(feed.touched.noted() <= 8192 + 1);
    let changed = feed.take();
    assert_eq!(changed.inserted.len(), 20_000);
    assert!(changed.removed.is_empty() && changed.updated.is_empty());
    assert_eq!(changed.inserted[0].index, 10);
    assert!(feed.take().is_empty());
}

/// The pieces of memory that a text lies in.
fn pieces(state: &FeedState) -> Vec<*const u8> {
    let item = state.item(&"provisional:r2:1".into()).unwrap();
    item.live_text().unwrap().chunks().map(str::as_ptr).collect()
}

#[test]
fn a_piece_of_text_copies_a_little_of_it_while_the_app_holds_on_to_states() {
    let mut feed = taken(long(10));
    feed.apply(&delta(1, 0, &"x".repeat(1 << 20)));
    let mut held = Vec::new();
    for n in 0..200u64 {
        let old = feed.state().clone();
        feed.apply(&delta(1, (1 << 20) + n, "y"));
        let (before, after) = (pieces(&old), pieces(feed.state()));
        let copied = after.iter().filter(|piece| !before.contains(piece)).count();
        assert!(copied <= 4, "{copied} of {} pieces copied", after.len());
        held.push(old);
    }
    for (n, state) in held.iter().enumerate() {
        let item = state.item(&"provisional:r2:1".into()).unwrap();
        assert_eq!(item.live_text().unwrap().len_utf16(), (1 << 20) + n as u64);
    }
}
