//! One test for each kind of event, under its name.

use super::*;

/// Makes the tests, and the list of kinds that have one.
macro_rules! kinds {
    ($($kind:literal $name:ident $body:block)*) => {
        $(#[test] fn $name() $body)*

        #[test]
        fn every_kind_has_a_test_of_its_name() {
            let tests = [$(($kind, stringify!($name)),)*];
            assert_eq!(tests.map(|(kind, _)| kind), EventKind::KINDS);
            for (kind, name) in tests {
                assert_eq!(kind.replace('.', "_"), name);
            }
        }
    };
}

kinds! {
    "chat.renamed" chat_renamed {
        let mut feed = reducer();
        apply_part(&mut feed, &now("chat.renamed", json!({"title": "New"})), json!(["chat"]));
        assert_eq!(feed.state().chat().title, "New");
    }
    "chat.archived" chat_archived {
        let mut feed = reducer();
        apply_part(&mut feed, &now("chat.archived", json!({"archived": true})), json!(["chat"]));
        apply_part(&mut feed, &now("chat.archived", json!({"archived": false})), json!(["chat"]));
        assert_eq!(feed.state().archived(), Some(false));
    }
    "chat.settings" chat_settings {
        let mut feed = reducer();
        apply_part(&mut feed, &now("chat.settings", json!({"profile": "p"})), json!(["settings"]));
        let settings = Settings { model: None, profile: Some("p".into()) };
        assert_eq!(*feed.state().settings(), settings, "the settings are told whole");
    }
    "chat.workspace" chat_workspace {
        let mut feed = reducer();
        apply_part(&mut feed, &now("chat.workspace", json!({"path": "/x", "branch": "b"})), json!(["workspace"]));
        assert_eq!(feed.state().workspace().unwrap().branch.as_deref(), Some("b"));
        apply_part(&mut feed, &now("chat.workspace", json!({})), json!(["workspace"]));
        assert_eq!(feed.state().workspace(), None);
    }
    "run.started" run_started {
        let mut feed = reducer();
        let mut started = durable(101, "r3", "run.started", json!({"model": "p/new", "resumed": false}));
        started.at = Some(time(7));
        apply_part(&mut feed, &started, json!(["runs", "settings"]));
        let run = feed.state().run(&"r3".into()).unwrap();
        assert_eq!((&run.status, run.started_at, run.model.as_deref()), (&RunStatus::Running, Some(time(7)), Some("p/new")));
        assert_eq!(feed.state().settings().model.as_deref(), Some("p/new"));
        // Going on after a wait.
        apply(&mut feed, &durable(102, "r3", "run.waiting", json!({"reason": "quota"})));
        apply_part(&mut feed, &durable(103, "r3", "run.started", json!({"resumed": true})), json!(["runs"]));
        let run = feed.state().run(&"r3".into()).unwrap();
        assert_eq!((&run.status, &run.wait, run.model.as_deref()), (&RunStatus::Running, &None, Some("p/new")));
    }
    "run.waiting" run_waiting {
        let mut feed = reducer();
        let waiting = durable(101, "r2", "run.waiting", json!({"resumeAt": "2026-01-01T00:00:09Z", "reason": "quota"}));
        apply_part(&mut feed, &waiting, json!(["runs"]));
        let run = feed.state().run(&"r2".into()).unwrap();
        assert_eq!(run.status, RunStatus::WaitingForQuota);
        assert_eq!(run.wait.as_ref().unwrap().reason.as_deref(), Some("quota"));
    }
    "run.finished" run_finished {
        let mut feed = reducer();
        apply(&mut feed, &now("thinking.delta", json!({"offset": 0, "text": "hm"})));
        let mut finished = durable(101, "r2", "run.finished", json!({"status": "odd", "error": "e"}));
        finished.at = Some(time(9));
        apply_part(&mut feed, &finished, json!(["runs", "thinking"]));
        let run = feed.state().run(&"r2".into()).unwrap();
        assert_eq!((run.status.as_str(), run.error.as_deref(), run.finished_at), ("odd", Some("e"), Some(time(9))));
        // What comes late of an ended run brings nothing back.
        for late in [delta(1, 0, "late"), now("thinking.delta", json!({"offset": 0, "text": "x"})), now("tool.started", tool("n1", false))] {
            apply_part(&mut feed, &late, json!([]));
        }
        assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "t1", "e1"]);
        assert_eq!(feed.state().thinking(), None);
    }
    "message.user" message_user {
        let mut feed = reducer();
        let changed = apply_part(&mut feed, &user("u3", "r3", Some("t1")), json!([]));
        assert_eq!(places(&changed.inserted), [("u3", 4)]);
        let mut again = user("u3", "r3", Some("u1"));
        let EventKind::MessageUser(message) = &mut again.kind else { unreachable!() };
        let Item::UserMessage(message) = &mut message.message else { unreachable!() };
        message.text = "other".into();
        let changed = apply_part(&mut feed, &again, json!([]));
        assert_eq!(places(&changed.updated), [("u3", 4)], "a known one stays in its place");
        assert_eq!(text(feed.state(), "u3"), "other");
    }
    "message.delta" message_delta {
        let mut feed = reducer();
        let changed = apply_part(&mut feed, &delta(1, 0, "Hel"), json!([]));
        assert_eq!(places(&changed.inserted), [("provisional:r2:1", 5)]);
        assert!(changed.texts.is_empty(), "a new text is read whole");
        let changed = apply_part(&mut feed, &delta(1, 3, "lo"), json!([]));
        assert_eq!(places(&changed.updated), [("provisional:r2:1", 5)]);
        assert_eq!(json!(changed.texts), json!([{"text": {"item": "provisional:r2:1"}, "from": 3}]));
        apply(&mut feed, &delta(1, 2, "y"));
        assert_eq!(form(feed.state(), "provisional:r2:1"), json!({
            "kind": "assistant_message", "id": "provisional:r2:1", "text": "Hey", "run": "r2", "provisional": true,
        }));
        let changed = apply(&mut feed, &delta(1, 0, ""));
        assert_eq!(places(&changed.removed), [("provisional:r2:1", 5)], "no text is no item");
        apply(&mut feed, &durable(101, "r2", "tool.started", tool("t2", true)));
        apply(&mut feed, &delta(1, 0, "Anew"));
        assert_eq!(ids(feed.state()).last(), Some(&"provisional:r2:1"), "a retry begins behind what came since");
        // A stored message is never cut.
        apply_part(&mut feed, &now("message.delta", json!({"messageId": "a1", "offset": 0, "text": "x"})), json!([]));
        assert_eq!(text(feed.state(), "a1"), "answer");
    }
    "message.assistant" message_assistant {
        let mut feed = reducer();
        apply(&mut feed, &delta(1, 0, "Hel"));
        let reply = json!({"messageId": "provisional:r2", "text": "Hello", "provisional": true});
        let changed = apply_part(&mut feed, &durable(101, "r2", "message.assistant", reply), json!([]));
        assert_eq!(places(&changed.removed), [("provisional:r2:1", 5)]);
        assert_eq!(places(&changed.inserted), [("provisional:r2", 5)]);
        assert_eq!(changed.inserted[0].in_place_of, Some("provisional:r2:1".into()));
        let own = json!({"messageId": "a2", "text": "Hello", "provisional": false});
        let changed = apply_part(&mut feed, &now("message.assistant", own), json!([]));
        assert_eq!(changed.inserted[0].in_place_of, Some("provisional:r2".into()));
        assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "t1", "e1", "a2"]);
        let own = json!({"messageId": "a2", "text": "Hello!", "provisional": false});
        let changed = apply_part(&mut feed, &now("message.assistant", own), json!([]));
        assert_eq!(places(&changed.updated), [("a2", 5)]);
        // Pieces that come late don't bring the provisional text back.
        apply_part(&mut feed, &delta(1, 5, "!"), json!([]));
        assert_eq!(feed.state().item_count(), 6);
    }
    "message.system" message_system {
        let mut feed = reducer();
        let line = |id: &str, text: &str| json!({"kind": "system_message", "id": id, "text": text, "provisional": false});
        apply(&mut feed, &durable(101, "r2", "message.system", json!({"message": line("s1", "out")})));
        apply(&mut feed, &now("message.system", json!({"message": line("s2", "line"), "afterId": "u1"})));
        apply(&mut feed, &now("message.system", json!({"message": line("s3", "line"), "afterId": "gone"})));
        assert_eq!(ids(feed.state()), ["u1", "s2", "a1", "u2", "t1", "e1", "s1", "s3"]);
        let changed = apply(&mut feed, &now("message.system", json!({"message": line("s1", "more")})));
        assert_eq!(places(&changed.updated), [("s1", 6)]);
    }
    "thinking.delta" thinking_delta {
        let mut feed = reducer();
        apply_part(&mut feed, &now("thinking.delta", json!({"offset": 0, "text": "so 𝄞"})), json!(["thinking"]));
        let changed = apply_part(&mut feed, &now("thinking.delta", json!({"offset": 5, "text": "!"})), json!(["thinking"]));
        assert_eq!(json!(changed.texts), json!([{"text": "thinking", "from": 5}]));
        let thinking = feed.state().thinking().unwrap();
        assert_eq!((thinking.run.clone(), thinking.text.to_string()), (Some("r2".into()), "so 𝄞!".into()));
        apply(&mut feed, &event(u64::MAX, false, "r9", "thinking.delta", json!({"offset": 0, "text": "new"})));
        assert_eq!(feed.state().thinking().unwrap().text.to_string(), "new", "another run's takes its place");
    }
    "tool.started" tool_started {
        let mut feed = reducer();
        apply(&mut feed, &durable(101, "r2", "tool.started", tool("t2", true)));
        apply(&mut feed, &now("tool.started", tool("n1", false)));
        assert_eq!(ids(feed.state()), ["u1", "a1", "u2", "t1", "e1", "t2", "n1"]);
        assert_eq!(form(feed.state(), "n1")["durable"], json!(false));
        apply(&mut feed, &durable(102, "r2", "tool.finished", json!({"callId": "t2", "result": 1})));
        apply_part(&mut feed, &now("tool.started", tool("t2", true)), json!([]));
        assert_eq!(form(feed.state(), "t2")["status"], "done", "an ended call is not begun again");
    }
    "tool.output" tool_output {
        let mut feed = reducer();
        apply_part(&mut feed, &now("tool.output", json!({"callId": "t1", "offset": 0, "text": "ab"})), json!(["outputs"]));
        let changed = apply_part(&mut feed, &now("tool.output", json!({"callId": "t1", "offset": 1, "text": "c"})), json!(["outputs"]));
        assert_eq!(json!(changed.texts), json!([{"text": {"output": "t1"}, "from": 1}]));
        assert_eq!(feed.state().output(&"t1".into()).unwrap().to_string(), "ac");
        apply_part(&mut feed, &now("tool.output", json!({"callId": "none", "offset": 0, "text": "x"})), json!([]));
        assert_eq!(feed.state().output(&"none".into()), None);
    }
    "tool.finished" tool_finished {
        let mut feed = reducer();
        let end = json!({"callId": "t1", "result": {"a": 1}, "isError": true});
        let changed = apply(&mut feed, &durable(101, "r2", "tool.finished", end));
        assert_eq!(places(&changed.updated), [("t1", 3)]);
        let call = form(feed.state(), "t1");
        assert_eq!((&call["status"], &call["result"], &call["isError"]), (&json!("failed"), &json!({"a": 1}), &json!(true)));
        // An end without a beginning waits for it.
        apply_part(&mut feed, &now("tool.finished", json!({"callId": "n1"})), json!([]));
        assert_eq!(feed.state().item_count(), 5);
        apply(&mut feed, &now("tool.started", tool("n1", false)));
        let call = form(feed.state(), "n1");
        assert_eq!((&call["status"], call.get("result"), call.get("isError")), (&json!("done"), None, None), "nothing is made up");
        // Something else by that id is left alone.
        apply_part(&mut feed, &now("tool.finished", json!({"callId": "u1", "result": 1})), json!([]));
        assert_eq!(form(feed.state(), "u1").get("result"), None);
    }
    "edit.applied" edit_applied {
        let mut feed = reducer();
        let edit = |id: &str, path: &str| json!({"edit": {"kind": "edit", "id": id, "path": path, "state": "applied"}});
        apply(&mut feed, &now("edit.applied", edit("e2", "b.txt")));
        let changed = apply(&mut feed, &now("edit.applied", edit("e1", "c.txt")));
        assert_eq!(places(&changed.updated), [("e1", 4)]);
        assert_eq!(ids(feed.state()).last(), Some(&"e2"));
    }
    "edit.undone" edit_undone {
        let mut feed = reducer();
        let changed = apply(&mut feed, &now("edit.undone", json!({"editId": "e1"})));
        assert_eq!(places(&changed.updated), [("e1", 4)]);
        assert_eq!(form(feed.state(), "e1")["state"], "undone");
        apply_part(&mut feed, &now("edit.undone", json!({"editId": "none"})), json!([]));
        apply_part(&mut feed, &now("edit.undone", json!({"editId": "u1"})), json!([]));
    }
    "plan.updated" plan_updated {
        let mut feed = reducer();
        let steps = json!({"steps": [{"text": "do", "status": "now"}]});
        apply_part(&mut feed, &durable(101, "r2", "plan.updated", steps), json!(["plan"]));
        assert_eq!(feed.state().plan()[0].status, PlanStatus::Now);
    }
    "approval.requested" approval_requested {
        let mut feed = reducer();
        let asked = |id: &str, state: &str, title: &str| json!({"approval": {"id": id, "state": state, "title": title}});
        apply_part(&mut feed, &durable(101, "r2", "approval.requested", asked("ap2", "pending", "t")), json!(["approvals"]));
        apply_part(&mut feed, &now("approval.requested", asked("ap2", "pending", "new")), json!(["approvals"]));
        assert_eq!(feed.state().approvals()[1].title.as_deref(), Some("new"));
        apply_part(&mut feed, &now("approval.requested", asked("ap1", "expired", "t")), json!(["approvals"]));
        apply_part(&mut feed, &now("approval.requested", asked("ap3", "denied", "t")), json!([]));
        assert_eq!(feed.state().approvals().len(), 1, "only pending ones are shown");
    }
    "approval.resolved" approval_resolved {
        let mut feed = reducer();
        apply_part(&mut feed, &durable(101, "r2", "approval.resolved", json!({"approvalId": "none", "state": "denied"})), json!([]));
        apply_part(&mut feed, &durable(102, "r2", "approval.resolved", json!({"approvalId": "ap1", "state": "denied"})), json!(["approvals"]));
        assert!(feed.state().approvals().is_empty());
    }
    "question.asked" question_asked {
        let mut feed = reducer();
        let question = json!({"question": {"id": "q2", "text": "and?", "suggestions": ["a"]}});
        apply_part(&mut feed, &durable(101, "r2", "question.asked", question), json!(["question"]));
        assert_eq!(feed.state().question().unwrap().id, "q2");
    }
    "question.resolved" question_resolved {
        let mut feed = reducer();
        apply_part(&mut feed, &now("question.resolved", json!({"questionId": "other"})), json!([]));
        assert!(feed.state().question().is_some());
        apply_part(&mut feed, &durable(101, "r2", "question.resolved", json!({})), json!(["question"]));
        assert_eq!(feed.state().question(), None);
        let mut feed = reducer();
        apply_part(&mut feed, &now("question.resolved", json!({"questionId": "q1"})), json!(["question"]));
    }
    "queue.updated" queue_updated {
        let mut feed = reducer();
        let inputs = json!({"inputs": [{"id": "i1", "kind": "follow_up", "text": "then"}]});
        apply_part(&mut feed, &now("queue.updated", inputs), json!(["queue"]));
        assert_eq!(feed.state().queue()[0].id, "i1");
        apply_part(&mut feed, &now("queue.updated", json!({"inputs": []})), json!(["queue"]));
    }
    "child.spawned" child_spawned {
        let mut feed = reducer();
        let child = |id: &str, title: &str| json!({"child": {"id": id, "parentId": "c", "title": title, "state": "running"}});
        apply_part(&mut feed, &now("child.spawned", child("k2", "Second")), json!(["children"]));
        apply_part(&mut feed, &now("child.spawned", child("k1", "First")), json!(["children"]));
        let titles: Vec<_> = feed.state().children().iter().map(|child| child.title.as_str()).collect();
        assert_eq!(titles, ["First", "Second"]);
    }
    "child.question_asked" child_question_asked {
        let mut feed = reducer();
        let question = |child: &str| json!({"childId": child, "question": {"id": "q", "text": "?", "suggestions": []}});
        apply_part(&mut feed, &now("child.question_asked", question("none")), json!([]));
        apply_part(&mut feed, &now("child.question_asked", question("k1")), json!(["children"]));
        assert_eq!(feed.state().children()[0].question.as_ref().unwrap().id, "q");
    }
    "child.question_resolved" child_question_resolved {
        let mut feed = reducer();
        let question = json!({"childId": "k1", "question": {"id": "q", "text": "?", "suggestions": []}});
        apply(&mut feed, &now("child.question_asked", question));
        apply_part(&mut feed, &now("child.question_resolved", json!({"childId": "k1", "questionId": "old"})), json!([]));
        apply_part(&mut feed, &now("child.question_resolved", json!({"childId": "k1", "questionId": "q"})), json!(["children"]));
        assert_eq!(feed.state().children()[0].question, None);
    }
    "child.finished" child_finished {
        let mut feed = reducer();
        let question = json!({"childId": "k1", "question": {"id": "q", "text": "?", "suggestions": []}});
        apply(&mut feed, &now("child.question_asked", question));
        apply_part(&mut feed, &now("child.finished", json!({"childId": "k1", "state": "failed", "result": "r"})), json!(["children"]));
        let child = &feed.state().children()[0];
        assert_eq!((&child.state, child.result.as_deref(), &child.question), (&ChildState::Failed, Some("r"), &None));
    }
    "compaction.updated" compaction_updated {
        let mut feed = reducer();
        let told = |applied: bool| json!({"compaction": {"id": "x", "kind": "fold", "trigger": "auto", "applied": applied}});
        apply_part(&mut feed, &now("compaction.updated", told(false)), json!(["compactions"]));
        apply_part(&mut feed, &now("compaction.updated", told(true)), json!(["compactions"]));
        assert_eq!(feed.state().compactions().len(), 1);
        assert!(feed.state().compactions()[0].applied);
    }
    "context.changed" context_changed {
        let mut feed = reducer();
        apply_part(&mut feed, &now("context.changed", json!({"view": {"threshold": 9, "items": []}})), json!(["view"]));
        assert_eq!(feed.state().view().unwrap().threshold, 9);
    }
    "job.started" job_started {
        let mut feed = reducer();
        let job = json!({"job": {"id": "j", "title": "serve", "status": "running"}});
        apply_part(&mut feed, &now("job.started", job.clone()), json!(["jobs"]));
        apply(&mut feed, &now("job.finished", json!({"jobId": "j", "status": "exited"})));
        apply_part(&mut feed, &now("job.started", job), json!([]));
        assert_eq!(feed.state().jobs()[0].job.status, "exited", "an ended job is not begun again");
    }
    "job.output" job_output {
        let mut feed = reducer();
        apply(&mut feed, &now("job.started", json!({"job": {"id": "j", "status": "running"}})));
        apply_part(&mut feed, &now("job.output", json!({"jobId": "j", "offset": 0, "text": "up"})), json!(["jobs"]));
        let changed = apply_part(&mut feed, &now("job.output", json!({"jobId": "j", "offset": 2, "text": "!"})), json!(["jobs"]));
        assert_eq!(json!(changed.texts), json!([{"text": {"job": "j"}, "from": 2}]));
        assert_eq!(feed.state().jobs()[0].output.to_string(), "up!");
        apply_part(&mut feed, &now("job.output", json!({"jobId": "none", "offset": 0, "text": "x"})), json!([]));
    }
    "job.finished" job_finished {
        let mut feed = reducer();
        apply(&mut feed, &now("job.started", json!({"job": {"id": "j", "status": "running"}})));
        apply_part(&mut feed, &now("job.finished", json!({"jobId": "j", "status": "exited", "exitCode": 3})), json!(["jobs"]));
        let job = &feed.state().jobs()[0];
        assert_eq!((job.job.status.as_str(), job.exit_code, job.finished), ("exited", Some(3), true));
        apply_part(&mut feed, &now("job.finished", json!({"jobId": "none", "status": "exited"})), json!([]));
    }
    "usage.updated" usage_updated {
        let mut feed = reducer();
        apply_part(&mut feed, &now("usage.updated", json!({"usage": {"inputTokens": 5, "outputTokens": 6}})), json!(["usage"]));
        assert_eq!(feed.state().usage().unwrap().output_tokens, 6);
    }
    "gap" gap {
        let mut feed = reducer();
        apply_part(&mut feed, &now("gap", json!({"reason": "mismatch", "lost": false})), json!([]));
        assert!(feed.wants_reload());
        assert_eq!(feed.state().seq(), Seq(100));
        // Lost: the stream goes on after another sequence, here a lower one.
        apply(&mut feed, &now("gap", json!({"reason": "epoch", "lost": true, "snapshotSeq": 16})));
        assert_eq!(feed.state().seq(), Seq(16));
        apply_part(&mut feed, &durable(17, "r2", "plan.updated", json!({"steps": [{"text": "x", "status": "todo"}]})), json!(["plan"]));
    }
}

#[test]
fn what_is_known_or_of_another_chat_changes_nothing() {
    let mut feed = reducer();
    let steps = json!({"steps": [{"text": "x", "status": "todo"}]});
    apply_part(&mut feed, &durable(100, "r2", "plan.updated", steps.clone()), json!([]));
    let mut other = durable(101, "r2", "plan.updated", steps.clone());
    other.chat = "d".into();
    apply_part(&mut feed, &other, json!([]));
    assert_eq!(feed.state().seq(), Seq(100));
    // A transient event from before the snapshot: the snapshot tells the newer title.
    apply_part(&mut feed, &event(99, false, "r2", "chat.renamed", json!({"title": "older"})), json!([]));
    apply_part(&mut feed, &durable(101, "r2", "plan.updated", steps), json!(["plan"]));
    assert_eq!(feed.state().seq(), Seq(101));
}

#[test]
fn the_json_form_has_everything_and_leaves_out_what_is_absent() {
    let mut feed = reducer();
    let form = serde_json::to_value(feed.state()).unwrap();
    let keys: Vec<_> = form.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "chat",
            "seq",
            "items",
            "runs",
            "queue",
            "plan",
            "approvals",
            "children",
            "settings",
            "compactions",
            "jobs",
            "outputs",
            "question",
        ]
    );
    let mut snapshot = serde_json::to_value(snapshot()).unwrap();
    for (key, value) in snapshot.as_object_mut().unwrap() {
        assert_eq!(form[key], *value, "{key}");
    }
    apply(&mut feed, &delta(1, 0, "x"));
    assert_eq!(serde_json::to_value(feed.state()).unwrap()["items"][5]["text"], "x");
    let back: ChatSnapshot = from_json(serde_json::to_value(feed.state()).unwrap());
    assert_eq!(back, feed.state().to_snapshot());
}
