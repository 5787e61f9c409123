//! What a reload keeps, and what it takes from the snapshot.

use super::*;

fn item(value: Value) -> Item {
    from_json(value)
}

fn assistant(id: &str, run: Option<&str>, text: &str) -> Item {
    let mut form = json!({"kind": "assistant_message", "id": id, "text": text, "provisional": false});
    if let Some(run) = run {
        form["run"] = run.into();
    }
    item(form)
}

fn reload(feed: &mut FeedReducer, snapshot: ChatSnapshot) -> Changed {
    let reload = feed.begin_reload();
    assert!(feed.reload(reload, snapshot));
    feed.take()
}

/// A running second step: text, call, text.
fn streaming() -> FeedReducer {
    let mut snapshot = snapshot();
    snapshot.items.truncate(3);
    let mut feed = taken(snapshot);
    feed.apply(&delta(1, 0, "let me see"));
    feed.apply(&durable(110, "r2", "tool.started", tool("t2", true)));
    feed.apply(&now("tool.started", tool("n1", false)));
    feed.apply(&delta(2, 0, "there"));
    feed.take();
    feed
}

/// What the host has at that moment.
fn stored(seq: u64, run: Option<&str>) -> ChatSnapshot {
    let mut snapshot = snapshot();
    snapshot.seq = Seq(seq);
    snapshot.items.truncate(3);
    snapshot.items.push(assistant("a2", run, "let me see"));
    snapshot.items.push(from_json(tool("t2", true)["call"].clone()));
    snapshot
}

#[test]
fn a_reload_that_tells_the_same_changes_nothing() {
    let mut feed = reducer();
    assert_eq!(reload(&mut feed, snapshot()), Changed::default());
}

#[test]
fn a_reload_gives_the_hosts_own_ids_and_keeps_the_text_of_a_run_that_goes_on() {
    for run in [Some("r2"), None] {
        let mut feed = streaming();
        let changed = reload(&mut feed, stored(115, run));
        assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "a2", "t2", "n1", "provisional:r2:2"]);
        assert_eq!(places(&changed.removed), [("provisional:r2:1", 3)]);
        assert_eq!(places(&changed.inserted), [("a2", 3)]);
        // The text goes on; late pieces of the stored one don't bring it back.
        feed.apply(&delta(2, 5, " it is"));
        feed.apply(&delta(1, 0, "let"));
        assert_eq!(check::replies(feed.state()), ["answer", "let me see", "there it is"]);
    }
}

#[test]
fn a_reload_after_the_run_leaves_the_stored_items_only() {
    let mut feed = streaming();
    feed.apply(&durable(116, "r2", "run.finished", json!({"status": "completed"})));
    let mut told = stored(127, Some("r2"));
    told.items.push(assistant("a3", Some("r2"), "there"));
    told.runs[1].status = RunStatus::Completed;
    reload(&mut feed, told.clone());
    assert_eq!(check::settled(feed.state(), FeedReducer::new(told).state()), None);
    assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "a2", "t2", "a3"]);
}

#[test]
fn text_of_a_run_that_ended_while_the_snapshot_was_on_its_way_stays_until_the_next() {
    let mut feed = streaming();
    let reload = feed.begin_reload();
    let reply = json!({"messageId": "provisional:r2", "text": "there it is", "provisional": true});
    feed.apply(&durable(112, "r2", "message.assistant", reply));
    feed.apply(&durable(113, "r2", "run.finished", json!({"status": "completed"})));
    assert!(feed.reload(reload, stored(111, Some("r2"))));
    assert_eq!(check::replies(feed.state()), ["answer", "let me see", "there it is"]);
    assert_eq!(feed.state().run(&"r2".into()).unwrap().status, RunStatus::Completed);
    assert_eq!(feed.state().seq(), Seq(113));
}

#[test]
fn a_stored_reply_is_not_taken_for_the_same_words_of_the_next_run() {
    // The host doesn't tell the runs of messages.
    let mut told = snapshot();
    told.items = vec![assistant("a1", None, "ok")];
    let mut feed = taken(ChatSnapshot { items: Vec::new(), ..told.clone() });
    let reply = json!({"messageId": "provisional:r1", "text": "ok", "provisional": true});
    feed.apply(&durable(101, "r1", "message.assistant", reply));
    feed.apply(&delta(1, 0, "ok"));
    told.seq = Seq(110);
    reload(&mut feed, told);
    assert_eq!(ids(feed.state()), ["a1", "provisional:r2:1"]);
}

#[test]
fn a_new_user_message_in_the_snapshot_goes_before_the_text_that_was_there_without_it() {
    let mut snapshot = snapshot();
    snapshot.items.truncate(2);
    let mut feed = taken(snapshot.clone());
    feed.apply(&delta(1, 0, "text"));
    snapshot
        .items
        .push(item(json!({"kind": "user_message", "id": "u2", "text": "x", "run": "r2", "provisional": false})));
    reload(&mut feed, snapshot);
    assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "provisional:r2:1"]);
}

#[test]
fn what_came_since_the_reload_began_is_not_lost_by_an_older_snapshot() {
    let mut feed = reducer();
    let old = snapshot();
    let reload = feed.begin_reload();
    feed.apply(&durable(101, "r2", "tool.finished", json!({"callId": "t1", "result": "r"})));
    feed.apply(&durable(102, "r2", "tool.started", tool("t9", true)));
    feed.apply(&durable(103, "r2", "approval.resolved", json!({"approvalId": "ap1", "state": "approved"})));
    feed.apply(&durable(104, "r2", "question.resolved", json!({})));
    feed.apply(&durable(105, "r2", "run.finished", json!({"status": "failed", "error": "e"})));
    feed.apply(&durable(106, "r3", "run.started", json!({"resumed": false})));
    feed.apply(&now("chat.renamed", json!({"title": "New"})));
    feed.apply(&user("u9", "r3", Some("t9")));
    let before = feed.state().to_snapshot();
    assert!(feed.reload(reload, old));
    assert_eq!(feed.state().to_snapshot(), before);
}

#[test]
fn what_the_snapshot_knows_better_is_taken_from_it() {
    let mut feed = reducer();
    feed.apply(&event(100, false, "r2", "chat.renamed", json!({"title": "told before"})));
    feed.apply(&event(100, false, "r2", "usage.updated", json!({"usage": {"inputTokens": 1, "outputTokens": 1}})));
    let reload = feed.begin_reload();
    feed.apply(&durable(101, "r2", "plan.updated", json!({"steps": [{"text": "x", "status": "todo"}]})));
    let mut newer = snapshot();
    newer.seq = Seq(115);
    newer.chat.title = "newest".into();
    newer.items.remove(4);
    assert!(feed.reload(reload, newer.clone()));
    assert_eq!(feed.state().to_snapshot(), newer);
    // What the stream tells late is old by now.
    feed.apply(&event(101, false, "r2", "chat.renamed", json!({"title": "late"})));
    feed.apply(&durable(110, "r2", "tool.started", tool("t5", true)));
    feed.apply(&event(
        110,
        false,
        "r2",
        "message.delta",
        json!({"messageId": "provisional:r2:1", "offset": 0, "text": "late"}),
    ));
    feed.apply(&event(110, false, "r2", "tool.started", tool("n5", false)));
    assert_eq!(feed.state().to_snapshot(), newer);
}

#[test]
fn a_snapshot_from_before_the_reload_began_is_refused() {
    let mut feed = reducer();
    feed.apply(&durable(120, "r2", "tool.started", tool("t9", true)));
    let reload = feed.begin_reload();
    assert!(!feed.reload(reload, snapshot()));
    assert!(feed.wants_reload());
    assert!(feed.state().item(&"t9".into()).is_some());
    let reload = feed.begin_reload();
    assert!(!feed.wants_reload());
    let mut other = snapshot();
    other.chat.id = "d".into();
    other.seq = Seq(999);
    assert!(!feed.reload(reload, other), "nor one of another chat");
}

#[test]
fn a_snapshot_from_before_a_loss_is_refused_and_a_lower_sequence_is_taken() {
    let mut feed = reducer();
    let early = feed.begin_reload();
    feed.apply(&now("gap", json!({"reason": "epoch", "lost": true, "snapshotSeq": 16})));
    assert!(!feed.reload(early, snapshot()), "it is of the old epoch, and its sequence would hide the new one");
    assert!(feed.wants_reload());
    let reload = feed.begin_reload();
    feed.apply(&durable(17, "r9", "run.started", json!({"resumed": false})));
    let mut told = snapshot();
    told.seq = Seq(16);
    told.items.truncate(1);
    assert!(feed.reload(reload, told));
    assert_eq!(ids(feed.state()), ["u1"]);
    assert_eq!(feed.state().seq(), Seq(17));
    assert!(feed.state().run(&"r9".into()).is_some());
}

#[test]
fn a_reload_given_up_gives_way_to_the_next() {
    let mut feed = reducer();
    let first = feed.begin_reload();
    let second = feed.begin_reload();
    assert!(!feed.reload(first, snapshot()));
    assert!(!feed.wants_reload(), "the second one is on its way");
    assert!(feed.reload(second, snapshot()));
    let third = feed.begin_reload();
    feed.abandon_reload(third);
    assert!(feed.wants_reload());
}

#[test]
fn items_that_move_are_taken_out_and_put_in_and_no_others() {
    let mut feed = reducer();
    let mut told = snapshot();
    let moved = told.items.remove(0);
    told.items.insert(3, moved);
    told.items.remove(4);
    told.items.insert(0, assistant("a0", None, "new"));
    let changed = reload(&mut feed, told.clone());
    assert_eq!(places(&changed.removed), [("e1", 4), ("u1", 0)]);
    assert_eq!(places(&changed.inserted), [("a0", 0), ("u1", 4)]);
    assert!(changed.updated.is_empty());
}

#[test]
fn what_no_snapshot_tells_stays_as_far_as_it_goes_on() {
    let mut feed = reducer();
    feed.apply(&now("chat.archived", json!({"archived": true})));
    feed.apply(&now("context.changed", json!({"view": {"threshold": 9, "items": []}})));
    feed.apply(&now("thinking.delta", json!({"offset": 0, "text": "hm"})));
    feed.apply(&now("tool.output", json!({"callId": "t1", "offset": 0, "text": "out"})));
    for job in ["j1", "j2"] {
        feed.apply(&now("job.started", json!({"job": {"id": job, "status": "running"}})));
    }
    feed.apply(&now("job.finished", json!({"jobId": "j1", "status": "exited"})));
    feed.take();
    assert!(reload(&mut feed, snapshot()).parts.jobs);
    assert_eq!((feed.state().archived(), feed.state().jobs().len()), (Some(true), 1));
    assert!(feed.state().view().is_some() && feed.state().thinking().is_some());
    assert!(feed.state().output(&"t1".into()).is_some());
    let mut ended = snapshot();
    ended.runs[1].status = RunStatus::Completed;
    let Item::ToolCall(call) = &mut ended.items[3] else { unreachable!() };
    call.status = ToolStatus::Done;
    reload(&mut feed, ended);
    assert!(feed.state().thinking().is_none() && feed.state().output(&"t1".into()).is_none());
    assert!(feed.state().view().is_some());
}

#[test]
fn a_provisional_text_that_the_snapshot_tells_goes_on() {
    let mut told = snapshot();
    told.items.push(item(json!({
        "kind": "assistant_message", "id": "provisional:r2:1", "text": "so far", "run": "r2", "provisional": true,
    })));
    let mut feed = taken(told.clone());
    feed.apply(&delta(1, 6, " so good"));
    assert_eq!(text(feed.state(), "provisional:r2:1"), "so far so good");
    reload(&mut feed, told);
    assert_eq!(text(feed.state(), "provisional:r2:1"), "so far so good", "the snapshot's is older");
    feed.apply(&durable(
        101,
        "r2",
        "message.assistant",
        json!({"messageId": "provisional:r2", "text": "done", "provisional": true}),
    ));
    assert_eq!(ids(feed.state()).last(), Some(&"provisional:r2"));
    assert_eq!(feed.state().item_count(), 6);
}

#[test]
fn a_snapshot_that_tells_an_id_twice_means_one_item() {
    let mut told = snapshot();
    told.items.push(told.items[0].clone());
    told.runs.push(told.runs[0].clone());
    let mut feed = taken(told.clone());
    assert_eq!((feed.state().item_count(), feed.state().runs().len()), (5, 2));
    assert!(reload(&mut feed, told).is_empty());
}
