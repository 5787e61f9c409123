//! Where messages and replies go.

use super::*;

/// The chat of a run whose first steps are told live.
fn live() -> FeedReducer {
    let mut snapshot = snapshot();
    snapshot.items.truncate(2);
    snapshot.runs.truncate(1);
    let mut feed = taken(snapshot);
    feed.apply(&durable(101, "r2", "run.started", json!({"resumed": false})));
    feed
}

fn reply(seq: u64, text: &str) -> Event {
    let fields = json!({"messageId": "provisional:r2", "text": text, "provisional": true});
    durable(seq, "r2", "message.assistant", fields)
}

fn own(id: &str, text: &str) -> Event {
    now("message.assistant", json!({"messageId": id, "text": text, "provisional": false}))
}

/// Two steps with a tool call between them.
fn two_steps() -> FeedReducer {
    let mut feed = live();
    feed.apply(&delta(1, 0, "let me see"));
    feed.apply(&durable(102, "r2", "tool.started", tool("t1", true)));
    feed.apply(&durable(103, "r2", "tool.finished", json!({"callId": "t1"})));
    feed.apply(&delta(2, 0, "there"));
    feed
}

#[test]
fn a_runs_first_user_message_goes_before_its_text_and_calls() {
    for after in ["a1", "an id that only the host knows"] {
        let mut feed = two_steps();
        feed.apply(&user("u2", "r2", Some(after)));
        assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "provisional:r2:1", "t1", "provisional:r2:2"], "{after}");
        // One that steers goes behind what it names, else behind the run's items.
        feed.apply(&user("u3", "r2", Some("t1")));
        feed.apply(&user("u4", "r2", Some("unknown")));
        let steered = ["u1", "a1", "u2", "provisional:r2:1", "t1", "u3", "provisional:r2:2", "u4"];
        assert_eq!(ids(feed.state()), steered, "{after}");
    }
}

#[test]
fn a_user_message_behind_nothing_is_the_first_item() {
    let mut snapshot = snapshot();
    snapshot.items.clear();
    snapshot.runs.truncate(1);
    let mut feed = taken(snapshot);
    feed.apply(&delta(1, 0, "text"));
    feed.apply(&user("u2", "r2", None));
    assert_eq!(ids(feed.state()), ["u2", "provisional:r2:1"]);
}

#[test]
fn a_message_of_an_earlier_run_that_comes_late_goes_before_the_later_run() {
    let mut feed = live();
    feed.apply(&durable(102, "r2", "run.finished", json!({"status": "cancelled"})));
    feed.apply(&durable(103, "r3", "run.started", json!({"resumed": false})));
    feed.apply(&durable(104, "r4", "run.started", json!({"resumed": false})));
    let mut call = durable(105, "r4", "tool.started", tool("t4", true));
    let EventKind::ToolStarted(started) = &mut call.kind else { unreachable!() };
    let Item::ToolCall(started) = &mut started.call else { unreachable!() };
    started.run = Some("r4".into());
    feed.apply(&call);
    feed.apply(&user("u2", "r2", Some("unknown")));
    assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "t4"]);
    feed.apply(&user("u4", "r4", Some("unknown")));
    feed.apply(&user("u3", "r3", Some("unknown")));
    assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "u3", "u4", "t4"]);
}

#[test]
fn what_another_run_left_behind_an_item_stays_with_it() {
    let mut feed = two_steps();
    feed.apply(&durable(104, "r2", "run.finished", json!({"status": "cancelled"})));
    feed.apply(&user("u3", "r3", Some("t1")));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2:1", "t1", "provisional:r2:2", "u3"]);
}

#[test]
fn the_reply_takes_the_place_of_the_newest_text() {
    let mut feed = two_steps();
    feed.apply(&reply(104, "there it is"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2:1", "t1", "provisional:r2"]);
    assert_eq!(check::replies(feed.state()), ["answer", "let me see", "there it is"]);
}

#[test]
fn the_reply_replaces_a_text_that_it_contradicts() {
    let mut feed = two_steps();
    feed.apply(&reply(104, "something else"));
    assert_eq!(check::replies(feed.state()), ["answer", "let me see", "something else"]);
}

#[test]
fn the_reply_goes_to_the_end_where_its_text_was_never_seen() {
    let mut feed = live();
    feed.apply(&reply(102, "all of it"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2"]);
    // Only the first step was seen: its text is another.
    let mut feed = live();
    feed.apply(&delta(1, 0, "let me see"));
    feed.apply(&durable(102, "r2", "tool.started", tool("t1", true)));
    feed.apply(&reply(103, "there it is"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2:1", "t1", "provisional:r2"]);
    // The host ended the run behind its tool: the first step's text is the reply.
    let mut feed = live();
    feed.apply(&delta(1, 0, "let me"));
    feed.apply(&durable(102, "r2", "tool.started", tool("t1", true)));
    feed.apply(&reply(103, "let me see"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2", "t1"]);
}

#[test]
fn a_run_that_was_taken_up_again_replies_again() {
    let mut feed = two_steps();
    feed.apply(&reply(104, "there"));
    feed.apply(&durable(105, "r2", "run.finished", json!({"status": "interrupted"})));
    feed.apply(&durable(106, "r2", "run.started", json!({"resumed": false})));
    feed.apply(&delta(3, 0, "and on"));
    feed.apply(&reply(107, "and on it goes"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2:1", "t1", "provisional:r2"]);
    assert_eq!(check::replies(feed.state()), ["answer", "let me see", "and on it goes"]);
}

#[test]
fn the_hosts_own_messages_take_the_places_of_their_texts() {
    // Told in order, and only the last one told: the texts say which is which.
    for told in [&[("a2", "let me see"), ("a3", "there it is")][..], &[("a3", "there it is")]] {
        let mut feed = two_steps();
        feed.apply(&durable(104, "r2", "run.finished", json!({"status": "completed"})));
        told.iter().for_each(|(id, text)| feed.apply(&own(id, text)));
        let first = if told.len() == 2 { "a2" } else { "provisional:r2:1" };
        assert_eq!(ids(feed.state()), ["u1", "a1", first, "t1", "a3"]);
        assert_eq!(check::replies(feed.state()), ["answer", "let me see", "there it is"]);
    }
}

#[test]
fn the_hosts_own_message_for_no_text_goes_to_the_end() {
    let mut feed = live();
    feed.apply(&own("a2", "all of it"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "a2"]);
}

#[test]
fn a_reply_told_once_more_changes_its_text_alone() {
    let mut snapshot = snapshot();
    let Item::AssistantMessage(message) = &mut snapshot.items[1] else { unreachable!() };
    (message.run, message.created_at) = (None, Some(time(5)));
    let mut feed = taken(snapshot);
    feed.apply(&own("a1", "other"));
    let told = form(feed.state(), "a1");
    assert_eq!(
        (&told["text"], told.get("run"), &told["createdAt"]),
        (&json!("other"), None, &json!("1970-01-01T00:00:05Z"))
    );
}

#[test]
fn nested_calls_show_and_do_not_end_a_step() {
    let mut feed = live();
    feed.apply(&delta(1, 0, "let me see"));
    feed.apply(&now("tool.started", tool("n1", false)));
    feed.apply(&delta(1, 10, "…"));
    feed.apply(&reply(102, "other words"));
    assert_eq!(ids(feed.state()), ["u1", "a1", "provisional:r2", "n1"]);
}

#[test]
fn texts_of_two_steps_are_two_items_and_astral_characters_count_twice() {
    let mut feed = two_steps();
    feed.apply(&delta(2, 5, " 𝄞"));
    feed.apply(&delta(2, 8, "!"));
    feed.apply(&delta(1, 10, "…"));
    assert_eq!(check::replies(feed.state()), ["answer", "let me see…", "there 𝄞!"]);
    feed.apply(&delta(2, 7, "?"));
    assert_eq!(text(feed.state(), "provisional:r2:2"), "there \u{FFFD}?");
}

#[test]
fn a_text_with_a_hole_says_that_it_is_not_whole() {
    let mut feed = live();
    feed.apply(&delta(1, 0, "abc"));
    feed.take();
    feed.apply(&delta(1, 9, "xyz"));
    assert_eq!(places(&feed.take().updated), [("provisional:r2:1", 2)]);
    let item = feed.state().item(&"provisional:r2:1".into()).unwrap();
    assert!(!item.live_text().unwrap().is_whole());
    assert_eq!(text(feed.state(), "provisional:r2:1"), "abc");
    feed.apply(&reply(102, "abcdefghixyz"));
    assert_eq!(check::replies(feed.state()), ["answer", "abcdefghixyz"]);
}
