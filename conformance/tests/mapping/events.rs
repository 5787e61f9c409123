//! The events: each row of the mapping's table, and each sentence of the kit about how events arise.

use kitport::{AgentBackend, ChatReader};
use kitport_conformance::raw_host::{RawHost, json_of, while_host};
use serde_json::{Value, json};

use crate::stage::{START, Stage, at, chat, durable, meta, state, transient};

fn run(status: &str) -> Value {
    json!({"run_id": "r", "status": status, "model": "p/m"})
}

#[tokio::test]
async fn chat_renamed() {
    let mut stage = Stage::open(&[]).await;
    let id = "s".into();
    while_host(stage.backend.rename(&id, "New"), async {
        stage.host.serve("session.rename", json!({"session_id": "s", "title": "New"}), json!({})).await;
    })
    .await
    .unwrap();
    stage.state["session"]["title"] = json!("New");
    stage.reload().await;
    stage.gives(json!([transient(at(START, 15), "chat.renamed", json!({"title": "New"}))])).await;
    stage.gives_no_more().await;
}

/// There is no archive: no event of the host's gives `chat.archived`, and the command is not sent.
#[tokio::test]
async fn chat_archived() {
    let mut stage = Stage::open(&[]).await;
    let error = json_of(stage.backend.archive(&"s".into(), true).await);
    assert_eq!(
        error,
        json!({"error": {"code": "unsupported", "message": "the backend does not offer archive", "outcome": "not_sent", "capability": "archive"}})
    );
    stage.host.nothing_came(&stage.backend).await;
    stage.durable("session_archived", json!({"archived": true})).await;
    stage.gives_no_more().await;
}

/// The newest run_started's model, else the runs', else the session's.
#[tokio::test]
async fn chat_settings() {
    let mut stage = Stage::open(&[]).await;
    stage.durable("run_started", json!({"model": "p/new"})).await;
    stage
        .gives(json!([
            transient(at(10, 15), "chat.settings", json!({"model": "p/new", "run": "r"})),
            durable(at(11, 0), "run.started", json!({"model": "p/new", "resumed": false, "run": "r"})),
        ]))
        .await;
    // The state that follows says no more than what is known.
    stage.state["runs"] = json!([{"run_id": "r", "status": "running", "model": "p/new"}]);
    stage.reload().await;
    stage.durable("run_finished", json!({"status": "completed"})).await;
    stage.gives(json!([durable(at(12, 1), "run.finished", json!({"status": "completed", "run": "r"}))])).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "completed", "model": "p/new"}]);
    stage.gives_no_more().await;
}

/// A run's model that a stream only met in its replay, or together with the snapshot it began at, is told by the reload.
#[tokio::test]
async fn chat_settings_after_a_replay() {
    let mut stage = Stage::open(&[]).await;
    stage.host.notify("events.gap", json!({"session_id": "s"})).await;
    let asked = stage.host.asked("events.after").await;
    let missed = json!([{"sequence": 11, "type": "run_started", "data": {"model": "p/new"}, "run_id": "r"}]);
    stage.host.answer(&asked, json!({"events": missed, "has_more": false})).await;
    stage.sequence = 11;
    stage.state["runs"] = json!([{"run_id": "r", "status": "running", "model": "p/new"}]);
    stage
        .gives(json!([durable(at(11, 0), "run.started", json!({"model": "p/new", "resumed": false, "run": "r"}))]))
        .await;
    stage.reload().await;
    stage.gives(json!([transient(at(11, 15), "chat.settings", json!({"model": "p/new"}))])).await;
    stage.gives_no_more().await;
}

/// What an event asks for that came with the snapshot is not forgotten: the user's message follows.
#[tokio::test]
async fn message_user_of_a_run_that_starts_with_the_stream() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), None);
    let asked = host.asked("session.state").await;
    host.event("s", json!({"sequence": 11, "type": "run_started", "data": {"model": "p/m"}, "run_id": "r"})).await;
    host.answer(&asked, state(START, json!({}))).await;
    let asked = host.asked("session.state").await;
    let changes = json!({
        "runs": [{"run_id": "r", "status": "running", "model": "p/m"}],
        "messages": [{"message_id": "m", "role": "user", "text": "Hi", "run_id": "r"}],
    });
    host.answer(&asked, state(11, changes)).await;
    let mut got = Vec::new();
    while got.len() < 3 {
        got.push(json!(kitport_conformance::next(&events).await));
    }
    assert_eq!(
        json!(got),
        json!([
            durable(at(11, 0), "run.started", json!({"model": "p/m", "resumed": false, "run": "r"})),
            transient(at(11, 15), "chat.settings", json!({"model": "p/m"})),
            transient(
                at(11, 15),
                "message.user",
                json!({"message": {"kind": "user_message", "id": "m", "text": "Hi", "run": "r", "provisional": false}, "run": "r"})
            ),
        ])
    );
}

/// The folder is the app's; what the host says is shown in the snapshot, and no event tells of a change.
#[tokio::test]
async fn chat_workspace() {
    let options = kitport::bubblepaw::Options { workspace: Some("/app".into()), ..Default::default() };
    let (backend, mut host) = RawHost::connect_with(&[], options).await;
    let id = "s".into();
    let snapshot = while_host(backend.load_chat(&id), async {
        host.serve("session.state", json!({"session_id": "s"}), state(1, json!({}))).await;
    })
    .await
    .unwrap();
    assert_eq!(json!(snapshot.workspace), json!({"path": "/app", "name": "work"}));
    let (backend, mut host) = RawHost::connect(&[]).await;
    let snapshot = while_host(backend.load_chat(&id), async {
        host.serve("session.state", json!({"session_id": "s"}), state(1, json!({}))).await;
    })
    .await
    .unwrap();
    assert_eq!(json!(snapshot.workspace), json!({"path": "/work", "name": "work"}));
}

#[tokio::test]
async fn run_started() {
    let mut stage = Stage::open_with(&[], json!({"session": meta("s", "Title", json!({"model": "p/m"}))})).await;
    stage
        .durable_with("run_started", json!({"model": "p/m"}), json!({"run_id": "r", "at": "2026-01-03T00:00:00Z"}))
        .await;
    stage
        .gives(json!([durable(
            at(11, 0),
            "run.started",
            json!({"model": "p/m", "resumed": false, "run": "r", "at": "2026-01-03T00:00:00Z"})
        )]))
        .await;
    stage.durable("run_waiting_for_quota", json!({"wait": {}})).await;
    stage.durable("run_quota_resumed", json!({})).await;
    stage
        .gives(json!([
            durable(at(12, 0), "run.waiting", json!({"run": "r"})),
            durable(at(13, 0), "run.started", json!({"resumed": true, "run": "r"})),
        ]))
        .await;
    stage.state["runs"] = json!([run("running")]);
    stage.gives_no_more().await;
}

#[tokio::test]
async fn run_waiting() {
    let mut stage = Stage::open(&[]).await;
    stage
        .durable("run_waiting_for_quota", json!({"wait": {"resume_at": "2026-01-03T00:00:00Z", "reason": "quota"}}))
        .await;
    stage
        .gives(json!([durable(
            at(11, 0),
            "run.waiting",
            json!({"resumeAt": "2026-01-03T00:00:00Z", "reason": "quota", "run": "r"})
        )]))
        .await;
    stage.state["runs"] =
        json!([{"run_id": "r", "status": "waiting_for_quota", "wait": {"resume_at": "2026-01-03T00:00:00Z"}}]);
    stage.gives_no_more().await;
}

/// Statuses map one to one; an unknown one is kept as the host's word.
#[tokio::test]
async fn run_finished() {
    for (status, error) in [
        ("completed", Value::Null),
        ("failed", json!("out of ink")),
        ("cancelled", Value::Null),
        ("interrupted", Value::Null),
        ("hibernating", Value::Null),
    ] {
        let mut stage = Stage::open(&[]).await;
        stage.durable("run_finished", json!({"status": status, "error": error})).await;
        let mut fields = json!({"status": status, "run": "r"});
        if !error.is_null() {
            fields["error"] = error;
        }
        stage.gives(json!([durable(at(11, 1), "run.finished", fields)])).await;
        stage.gives_no_more().await;
    }
}

/// A user's message is in the state only: it is recovered by the reload that follows the run's start.
#[tokio::test]
async fn message_user() {
    let before = json!([{"message_id": "m1", "role": "user", "text": "Before", "run_id": "q"}]);
    let mut stage = Stage::open_with(&[], json!({"messages": before})).await;
    stage.durable("run_started", json!({})).await;
    stage.gives(json!([durable(at(11, 0), "run.started", json!({"resumed": false, "run": "r"}))])).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "running"}]);
    stage.state["messages"] = json!([
        {"message_id": "m1", "role": "user", "text": "Before", "run_id": "q"},
        {"message_id": "m2", "role": "user", "text": "Now", "run_id": "r", "created_at": "2026-01-03T00:00:00Z"},
    ]);
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(11, 15),
            "message.user",
            json!({
                "message": {"kind": "user_message", "id": "m2", "text": "Now", "run": "r", "createdAt": "2026-01-03T00:00:00Z", "provisional": false},
                "afterId": "m1",
                "run": "r",
            })
        )]))
        .await;
    stage.gives_no_more().await;
}

/// A text that steered the run: its place is behind what was there before, and the queue is empty again.
#[tokio::test]
async fn message_user_that_steers() {
    let mut stage = running().await;
    let call = json!({"call_id": "c", "name": "n", "arguments": {}});
    stage.durable("tool_started", json!({"call": call})).await;
    let started = json!({"kind": "tool_call", "id": "c", "name": "n", "arguments": {}, "status": "running", "run": "r", "durable": true});
    stage.gives(json!([durable(at(12, 0), "tool.started", json!({"call": started, "run": "r"}))])).await;
    stage.durable("steering_accepted", json!({})).await;
    stage.state["messages"] = json!([
        {"message_id": "a", "role": "assistant", "text": "Look", "run_id": "r", "tool_calls": [call]},
        {"message_id": "u", "role": "user", "text": "Left, please", "run_id": "r"},
    ]);
    stage.reload().await;
    let steering = json!({"kind": "user_message", "id": "u", "text": "Left, please", "run": "r", "provisional": false});
    stage
        .gives(json!([
            transient(
                at(13, 15),
                "message.assistant",
                json!({"messageId": "a", "text": "Look", "provisional": false, "run": "r"})
            ),
            transient(at(13, 15), "message.user", json!({"message": steering, "afterId": "c", "run": "r"})),
        ]))
        .await;
    stage.gives_no_more().await;
}

fn delta(host: u64, offset: u64, text: &str) -> Value {
    transient(
        at(host, 15),
        "message.delta",
        json!({"messageId": "provisional:r:1", "offset": offset, "text": text, "run": "r"}),
    )
}

/// A stream with a run that has started.
async fn running() -> Stage {
    let mut stage = Stage::open(&[]).await;
    stage.durable("run_started", json!({})).await;
    stage.gives(json!([durable(at(11, 0), "run.started", json!({"resumed": false, "run": "r"}))])).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "running"}]);
    stage.reload().await;
    stage
}

/// Matching prefixes give only the missing suffix; a contradiction gives a gap and the confirmed text.
#[tokio::test]
async fn message_delta() {
    let mut stage = running().await;
    stage.transient("model_request", json!({})).await;
    stage.transient("text_delta", json!({"text": "One 𝄞"})).await;
    stage.gives(json!([delta(11, 0, "One 𝄞")])).await;
    stage.transient("paragraph", json!({"text": "One 𝄞 two.\n\n"})).await;
    stage.gives(json!([delta(11, 6, " two.\n\n")])).await;
    stage.transient("text_delta", json!({"text": "Wrong"})).await;
    stage.gives(json!([delta(11, 13, "Wrong")])).await;
    stage.transient("paragraph", json!({"text": "Right"})).await;
    stage
        .gives(json!([
            transient(at(11, 15), "gap", json!({"reason": "mismatch", "lost": false, "run": "r"})),
            delta(11, 13, "Right"),
        ]))
        .await;
    stage.reload().await;
    stage.gives_no_more().await;
}

/// A retry: the shown text is cut, and the state is read anew.
#[tokio::test]
async fn message_delta_retry() {
    let mut stage = running().await;
    stage.transient("model_request", json!({})).await;
    stage.transient("text_delta", json!({"text": "Thrown away"})).await;
    stage.gives(json!([delta(11, 0, "Thrown away")])).await;
    stage.transient("model_request", json!({})).await;
    stage.gives(json!([delta(11, 0, "")])).await;
    stage.reload().await;
    stage.gives_no_more().await;
}

/// After a tool a model request is a new step, with an id of its own, and the shown text stays.
#[tokio::test]
async fn message_delta_next_step() {
    let mut stage = running().await;
    stage.transient("model_request", json!({})).await;
    stage.transient("text_delta", json!({"text": "First"})).await;
    stage.gives(json!([delta(11, 0, "First")])).await;
    stage.durable("tool_finished", json!({"call_id": "c", "result": null})).await;
    stage.gives(json!([durable(at(12, 0), "tool.finished", json!({"callId": "c", "run": "r"}))])).await;
    stage.transient("model_request", json!({})).await;
    stage.transient("text_delta", json!({"text": "Second"})).await;
    stage
        .gives(json!([transient(
            at(12, 15),
            "message.delta",
            json!({"messageId": "provisional:r:2", "offset": 0, "text": "Second", "run": "r"})
        )]))
        .await;
    stage.gives_no_more().await;
}

/// The run's end completes the reply without a gap; where it has no text the reload supplies it.
#[tokio::test]
async fn message_assistant() {
    let mut stage = running().await;
    stage.durable("run_finished", json!({"status": "completed", "text": "Done."})).await;
    stage
        .gives(json!([
            durable(
                at(12, 0),
                "message.assistant",
                json!({"messageId": "provisional:r", "text": "Done.", "provisional": true, "run": "r"})
            ),
            durable(at(12, 1), "run.finished", json!({"status": "completed", "run": "r"})),
        ]))
        .await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "completed"}]);
    stage.state["messages"] = json!([{"message_id": "a1", "role": "assistant", "text": "Done.", "run_id": "r"}]);
    stage.gives_no_more().await;

    let mut stage = running().await;
    stage.durable("run_finished", json!({"status": "completed"})).await;
    stage.gives(json!([durable(at(12, 1), "run.finished", json!({"status": "completed", "run": "r"}))])).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "completed"}]);
    stage.state["messages"] = json!([{"message_id": "a1", "role": "assistant", "text": "Done.", "run_id": "r"}]);
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(12, 15),
            "message.assistant",
            json!({"messageId": "a1", "text": "Done.", "provisional": false, "run": "r"})
        )]))
        .await;
    stage.gives_no_more().await;
}

/// Canonical system messages and results without a call come from the state; text publications are durable lines;
/// other publications give nothing.
#[tokio::test]
async fn message_system() {
    let mut stage = Stage::open(&[]).await;
    for (id, kind) in [("o1", "file"), ("o2", "image"), ("o3", "execution"), ("o4", "hologram")] {
        stage.durable("output.record", json!({"output": {"output_id": id, "kind": kind, "text": "not shown"}})).await;
    }
    stage
        .durable("output.record", json!({"output": {"output_id": "o5", "kind": "text", "text": "Shown", "created_at": "2026-01-03T00:00:00Z"}}))
        .await;
    stage
        .gives(json!([durable(
            at(15, 0),
            "message.system",
            json!({
                "message": {"kind": "system_message", "id": "o5", "text": "Shown", "run": "r", "createdAt": "2026-01-03T00:00:00Z", "provisional": false},
                "run": "r",
            })
        )]))
        .await;
    stage.state["outputs"] = json!([
        {"output_id": "o1", "kind": "file", "text": "not shown"},
        {"output_id": "o5", "kind": "text", "text": "Shown", "run_id": "r"},
    ]);
    stage.state["messages"] = json!([
        {"message_id": "y", "role": "system", "text": "A line"},
        {"message_id": "t", "role": "tool", "text": "", "tool_result": {"call_id": "gone", "result": {"x": 1}}},
    ]);
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage
        .gives(json!([
            transient(at(16, 15), "message.system", json!({"message": {"kind": "system_message", "id": "y", "text": "A line", "provisional": false}})),
            transient(at(16, 15), "message.system", json!({"message": {"kind": "system_message", "id": "t", "text": "{\"x\":1}", "provisional": false}, "afterId": "y"})),
        ]))
        .await;
    stage.gives_no_more().await;
}

/// There is no reasoning text: a host that sends some is not heard, and nothing is made up.
#[tokio::test]
async fn thinking() {
    let mut stage = running().await;
    stage.transient("reasoning_delta", json!({"text": "Hm."})).await;
    stage.transient("model_request", json!({"reasoning": "Hm."})).await;
    stage.gives_no_more().await;
}

#[tokio::test]
async fn tool_started_and_finished() {
    let mut stage = Stage::open(&[]).await;
    let call = json!({"call_id": "c", "name": "shell", "arguments": {"command": "ls"}});
    stage.durable("tool_started", json!({"call": call})).await;
    stage.durable("tool_finished", json!({"call_id": "c", "result": {"exit": 1}, "is_error": true})).await;
    stage
        .gives(json!([
            durable(
                at(11, 0),
                "tool.started",
                json!({
                    "call": {"kind": "tool_call", "id": "c", "name": "shell", "arguments": {"command": "ls"}, "status": "running", "run": "r", "durable": true},
                    "run": "r",
                })
            ),
            durable(at(12, 0), "tool.finished", json!({"callId": "c", "result": {"exit": 1}, "isError": true, "run": "r"})),
        ]))
        .await;
    // Canonical calls and results make the item of a snapshot, and no event that repeats it.
    stage.state["messages"] = json!([
        {"message_id": "a", "role": "assistant", "text": "", "run_id": "r", "tool_calls": [call]},
        {"message_id": "t", "role": "tool", "text": "", "run_id": "r", "tool_result": {"call_id": "c", "result": {"exit": 1}, "is_error": true}},
    ]);
    stage.state["sequence"] = json!(12);
    let id = "s".into();
    let snapshot = while_host(stage.backend.load_chat(&id), async {
        stage.host.serve("session.state", json!({"session_id": "s"}), stage.state.clone()).await;
    })
    .await
    .unwrap();
    assert_eq!(
        json!(snapshot.items),
        json!([{"kind": "tool_call", "id": "c", "name": "shell", "arguments": {"command": "ls"}, "status": "failed", "result": {"exit": 1}, "isError": true, "run": "r", "durable": true}])
    );
    stage.gives_no_more().await;
}

/// Nested calls are shown, never stored, and take no sequence.
#[tokio::test]
async fn nested_transient_tools() {
    let mut stage = Stage::open(&[]).await;
    stage.transient("tool_started", json!({"call": {"call_id": "c.1", "name": "read", "arguments": {}}})).await;
    stage.transient("tool_finished", json!({"call_id": "c.1", "result": "text"})).await;
    stage
        .gives(json!([
            transient(
                at(10, 15),
                "tool.started",
                json!({
                    "call": {"kind": "tool_call", "id": "c.1", "name": "read", "arguments": {}, "status": "running", "run": "r", "durable": false},
                    "run": "r",
                })
            ),
            transient(at(10, 15), "tool.finished", json!({"callId": "c.1", "result": "text", "run": "r"})),
        ]))
        .await;
    stage.gives_no_more().await;
}

/// No output is streamed and no edit is told: words that might mean them are ignored.
#[tokio::test]
async fn tool_output_and_edits() {
    let mut stage = Stage::open(&[]).await;
    stage.transient("tool_output", json!({"call_id": "c", "text": "out"})).await;
    stage.durable("edit_applied", json!({"path": "a"})).await;
    stage.durable("edit_undone", json!({"path": "a"})).await;
    let error = json_of(stage.backend.undo_edit(&"s".into(), &"e".into()).await);
    assert_eq!(error["error"]["capability"], "edits");
    stage.host.nothing_came(&stage.backend).await;
    stage.gives_no_more().await;
}

#[tokio::test]
async fn plan_updated() {
    let todo = json!([
        {"id": "1", "text": "a", "status": "done"},
        {"text": "b", "status": "in_progress"},
        {"text": "c", "status": "pending"},
        {"text": "d", "status": "blocked"},
    ]);
    let steps = json!([
        {"id": "1", "text": "a", "status": "done"},
        {"text": "b", "status": "now"},
        {"text": "c", "status": "todo"},
        {"text": "d", "status": "blocked"},
    ]);
    let mut stage = Stage::open(&["plan"]).await;
    stage.durable("host_state_changed", json!({"key": "todo", "value": todo})).await;
    stage.gives(json!([durable(at(11, 0), "plan.updated", json!({"steps": steps, "run": "r"}))])).await;
    stage.state["todo"] = todo;
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    // A plan that no event told.
    stage.state["todo"] = json!([{"text": "z", "status": "done"}]);
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage
        .gives(json!([transient(at(13, 15), "plan.updated", json!({"steps": [{"text": "z", "status": "done"}]}))]))
        .await;
    stage.gives_no_more().await;
}

fn approval(state: &str) -> Value {
    json!({"approval_id": "p", "session_id": "s", "run_id": "r", "call_id": "c", "tool": "shell", "title": "Run it", "arguments": {"a": 1}, "state": state, "created_at": "2026-01-03T00:00:00Z"})
}

fn kit_approval(state: &str) -> Value {
    json!({"id": "p", "run": "r", "callId": "c", "tool": "shell", "title": "Run it", "arguments": {"a": 1}, "state": state, "createdAt": "2026-01-03T00:00:00Z"})
}

/// From its event, or from approval.list where no event told.
#[tokio::test]
async fn approval_requested() {
    let mut stage = Stage::open(&["approvals"]).await;
    stage.durable("approval_requested", json!({"approval": approval("pending")})).await;
    stage
        .gives(json!([durable(
            at(11, 0),
            "approval.requested",
            json!({"approval": kit_approval("pending"), "run": "r"})
        )]))
        .await;
    stage.approvals = vec![approval("pending")];
    stage.gives_no_more().await;

    let mut stage = Stage::open(&["approvals"]).await;
    let mut foreign = approval("pending");
    foreign["session_id"] = json!("other");
    foreign["approval_id"] = json!("foreign");
    stage.approvals = vec![approval("pending"), foreign];
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(11, 15),
            "approval.requested",
            json!({"approval": kit_approval("pending"), "run": "r"})
        )]))
        .await;
    stage.gives_no_more().await;
}

#[tokio::test]
async fn approval_resolved() {
    for (word, kit) in [
        ("approved", "approved"),
        ("approved_session", "approved_for_session"),
        ("denied", "denied"),
        ("expired", "expired"),
        ("shelved", "shelved"),
    ] {
        let mut stage = Stage::open_approving(&["approvals"], json!({}), vec![approval("pending")]).await;
        stage.durable("approval_resolved", json!({"approval_id": "p", "state": word, "reason": "so"})).await;
        stage
            .gives(json!([durable(
                at(11, 0),
                "approval.resolved",
                json!({"approvalId": "p", "state": kit, "reason": "so", "run": "r"})
            )]))
            .await;
        stage.approvals = vec![approval(word)];
        stage.gives_no_more().await;
    }
    // Decided without an event.
    let mut stage = Stage::open_approving(&["approvals"], json!({}), vec![approval("pending")]).await;
    stage.approvals = vec![approval("approved_session")];
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(11, 15),
            "approval.resolved",
            json!({"approvalId": "p", "state": "approved_for_session", "run": "r"})
        )]))
        .await;
    stage.gives_no_more().await;
}

/// Asked at position 1, resolved at position 0 without an id; a cleared question triggers a reload.
#[tokio::test]
async fn question_asked_and_resolved() {
    let mut stage = Stage::open(&["questions"]).await;
    let question = json!({"question_id": "q", "text": "Why?", "suggestions": ["So"]});
    stage.durable("host_state_changed", json!({"key": "question", "value": question})).await;
    stage
        .gives(json!([durable(
            at(11, 1),
            "question.asked",
            json!({"question": {"id": "q", "text": "Why?", "suggestions": ["So"]}, "run": "r"})
        )]))
        .await;
    stage.state["question"] = question;
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage.durable("host_state_changed", json!({"key": "question", "value": null})).await;
    stage.gives(json!([durable(at(13, 0), "question.resolved", json!({"run": "r"}))])).await;
    stage.state["question"] = Value::Null;
    stage.reload().await;
    // One that no event told is asked, and resolved with its id.
    stage.state["question"] = json!({"question_id": "q2", "text": "And?"});
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(14, 15),
            "question.asked",
            json!({"question": {"id": "q2", "text": "And?", "suggestions": []}})
        )]))
        .await;
    stage.state["question"] = Value::Null;
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage.gives(json!([transient(at(15, 15), "question.resolved", json!({"questionId": "q2"}))])).await;
    // A child's question is no question of the chat.
    let childs = json!({"child": "k", "question": {"question_id": "kq", "text": "?"}});
    stage.durable("host_state_changed", json!({"key": "child_question", "value": childs})).await;
    stage.reload().await;
    stage.gives_no_more().await;
}

/// Ids are in the state only; the command's own answer has them, too.
#[tokio::test]
async fn queue_changes() {
    for (event, kind) in
        [("steering_accepted", "steer"), ("followup_queued", "follow_up"), ("followup_queued", "someday")]
    {
        let mut stage = Stage::open(&["steer", "follow_up"]).await;
        stage.durable(event, json!({})).await;
        stage.state["inputs"] =
            json!([{"input_id": "i", "kind": kind, "text": "More", "created_at": "2026-01-03T00:00:00Z"}]);
        stage.reload().await;
        stage
            .gives(json!([transient(
                at(11, 15),
                "queue.updated",
                json!({"inputs": [{"id": "i", "kind": kind, "text": "More", "createdAt": "2026-01-03T00:00:00Z"}]})
            )]))
            .await;
        stage.state["inputs"] = json!([]);
        stage.durable_with("session_settled", json!({}), json!({})).await;
        stage.reload().await;
        stage.gives(json!([transient(at(12, 15), "queue.updated", json!({"inputs": []}))])).await;
        stage.gives_no_more().await;
    }
}

fn child(state: &str) -> Value {
    json!({"session_id": "k", "parent_id": "s", "title": "Kid", "state": state})
}

/// The diff gives spawned, asked, resolved, finished; a finished child that runs again gives a gap.
#[tokio::test]
async fn child_events() {
    let mut stage = Stage::open(&["child_events"]).await;
    stage.durable_with("child_run_state_changed", json!({"child": "k", "state": "running"}), json!({})).await;
    stage.state["children"] = json!([child("running")]);
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(11, 15),
            "child.spawned",
            json!({"child": {"id": "k", "parentId": "s", "title": "Kid", "state": "running"}})
        )]))
        .await;
    let question = json!({"question_id": "kq", "text": "Which?", "suggestions": ["a"]});
    stage
        .durable_with(
            "host_state_changed",
            json!({"key": "child_question", "value": {"child": "k", "question": question}}),
            json!({}),
        )
        .await;
    stage.state["children"][0]["state"] = json!("waiting");
    stage.state["children"][0]["question"] = question;
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(12, 15),
            "child.question_asked",
            json!({"childId": "k", "question": {"id": "kq", "text": "Which?", "suggestions": ["a"]}})
        )]))
        .await;
    stage
        .durable_with(
            "host_state_changed",
            json!({"key": "child_question_answer", "value": {"child": "k", "question_id": "kq"}}),
            json!({}),
        )
        .await;
    stage.state["children"] = json!([child("running")]);
    stage.reload().await;
    stage
        .gives(json!([transient(at(13, 15), "child.question_resolved", json!({"childId": "k", "questionId": "kq"}))]))
        .await;
    stage.durable_with("child_run_state_changed", json!({"child": "k", "state": "completed"}), json!({})).await;
    stage.state["children"] = json!([child("completed")]);
    stage.state["children"][0]["result"] = json!("All done");
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(14, 15),
            "child.finished",
            json!({"childId": "k", "state": "completed", "result": "All done"})
        )]))
        .await;
    stage.durable_with("child_run_state_changed", json!({"child": "k", "state": "running"}), json!({})).await;
    stage.state["children"] = json!([child("running")]);
    stage.reload().await;
    stage.gives(json!([transient(at(15, 15), "gap", json!({"reason": "child_rerun", "lost": false}))])).await;
    stage.gives_no_more().await;

    // Without the feature there are none; the snapshot has the children all the same.
    let mut stage = Stage::open(&[]).await;
    stage.durable_with("child_run_state_changed", json!({"child": "k", "state": "running"}), json!({})).await;
    stage.state["children"] = json!([child("running")]);
    stage.reload().await;
    stage.gives_no_more().await;
}

/// Answers one reload and the look at the context that goes with it, whichever is asked first.
async fn look(stage: &mut Stage, compactions: Value, view: Value) {
    let asked = stage.host.asked("context.events").await;
    stage.host.answer(&asked, json!({"events": compactions})).await;
    let asked = stage.host.asked("context.view").await;
    stage.host.answer(&asked, view).await;
}

fn compaction(applied: bool) -> Value {
    json!([{"event_id": "e", "kind": "episodes", "trigger": "manual", "seq": 3, "applied": applied}])
}

/// A compaction that is shown as applied, and the view where it differs; also where it is applied later, which no
/// event of the host's tells.
#[tokio::test]
async fn compaction_events() {
    let (before, after) =
        (json!({"threshold": 100, "items": []}), json!({"threshold": 100, "items": [{"kind": "episode", "id": "1"}]}));
    let told = |host: u64| {
        json!([
            transient(
                at(host, 15),
                "compaction.updated",
                json!({"compaction": {"id": "e", "kind": "episodes", "trigger": "manual", "seq": 3, "applied": true}})
            ),
            transient(
                at(host, 15),
                "context.changed",
                json!({"view": {"threshold": 100, "items": [{"kind": "episode", "id": "episode:1"}]}})
            ),
        ])
    };
    let mut stage = Stage::open(&["context"]).await;
    look(&mut stage, json!([]), before.clone()).await;
    stage.durable("context_compaction", json!({"event_id": "e", "kind": "episodes", "trigger": "manual"})).await;
    stage.reload().await;
    look(&mut stage, compaction(true), after.clone()).await;
    stage.gives(told(11)).await;
    stage.gives_no_more().await;

    let mut stage = Stage::open(&["context"]).await;
    look(&mut stage, json!([]), before.clone()).await;
    stage.durable("context_compaction", json!({"event_id": "e", "kind": "episodes", "trigger": "manual"})).await;
    stage.reload().await;
    look(&mut stage, compaction(false), before).await;
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    look(&mut stage, compaction(true), after).await;
    stage.gives(told(12)).await;
    stage.gives_no_more().await;

    // Without the feature the context is not asked for.
    let mut stage = Stage::open(&[]).await;
    stage.durable("context_compaction", json!({"event_id": "e", "kind": "episodes", "trigger": "manual"})).await;
    stage.reload().await;
    stage.host.nothing_came(&stage.backend).await;
    stage.gives_no_more().await;
}

#[tokio::test]
async fn job_events() {
    let mut stage = Stage::open(&[]).await;
    stage.durable("process_started", json!({"process_id": "j"})).await;
    stage.durable("job.started", json!({"job": "j"})).await;
    let error = json_of(stage.backend.cancel_job(&"s".into(), &"j".into()).await);
    assert_eq!(error["error"]["capability"], "jobs");
    stage.host.nothing_came(&stage.backend).await;
    stage.gives_no_more().await;
}

/// The session's own totals, only where they changed, and never the sum of what runs tell.
#[tokio::test]
async fn usage_updated() {
    let mut stage = Stage::open_with(&[], json!({"usage": {"input_tokens": 1, "output_tokens": 2}})).await;
    stage.durable("usage.last_request", json!({"input_tokens": 100, "output_tokens": 200})).await;
    stage.state["usage"] = json!({
        "input_tokens": 11, "output_tokens": 22, "cached_input_tokens": 3, "total_tokens": 33, "cost_usd": 0.5,
        "context": {"used": 7, "window": 100}, "last_request": {"input_tokens": 100},
    });
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(11, 15),
            "usage.updated",
            json!({"usage": {"inputTokens": 11, "outputTokens": 22, "cachedInputTokens": 3, "totalTokens": 33, "costUsd": 0.5, "context": {"used": 7, "window": 100}}})
        )]))
        .await;
    // The same again, after a run's end and after a rest: nothing changed.
    stage.durable("run_finished", json!({"status": "completed"})).await;
    stage.gives(json!([durable(at(12, 1), "run.finished", json!({"status": "completed", "run": "r"}))])).await;
    stage.reload().await;
    stage.gives_no_more().await;
}

/// `events.gap` yields no gap: the stream replays from its last delivered durable cursor, and reloads once.
#[tokio::test]
async fn gap() {
    let mut stage = Stage::open(&[]).await;
    stage.durable("run_waiting_for_quota", json!({"wait": {}})).await;
    stage.gives(json!([durable(at(11, 0), "run.waiting", json!({"run": "r"}))])).await;
    stage.host.notify("events.gap", json!({"session_id": "s", "last_sequence": 14})).await;
    let asked = stage.host.expect("events.after", json!({"session_id": "s", "after": 11, "limit": 1000})).await;
    stage.host.nothing_came(&stage.backend).await;
    let missed = json!([
        {"sequence": 12, "type": "run_quota_resumed", "data": {}, "run_id": "r"},
        {"sequence": 14, "type": "tool_finished", "data": {"call_id": "c", "result": 1}, "run_id": "r"},
    ]);
    stage.host.answer(&asked, json!({"events": missed, "has_more": false})).await;
    stage.sequence = 14;
    stage
        .gives(json!([
            durable(at(12, 0), "run.started", json!({"resumed": true, "run": "r"})),
            durable(at(14, 0), "tool.finished", json!({"callId": "c", "result": 1, "run": "r"})),
        ]))
        .await;
    stage.state["todo"] = json!([{"text": "x", "status": "done"}]);
    stage.state["runs"] = json!([run("running")]);
    stage.reload().await;
    stage
        .gives(json!([
            transient(at(14, 15), "chat.settings", json!({"model": "p/m"})),
            transient(at(14, 15), "plan.updated", json!({"steps": [{"text": "x", "status": "done"}]})),
        ]))
        .await;
    stage.gives_no_more().await;
}

/// `resync`: durable events are gone, and the stream goes on after a fresh snapshot.
#[tokio::test]
async fn gap_retention() {
    let mut stage = Stage::open(&[]).await;
    stage.host.notify("events.gap", json!({"session_id": "s"})).await;
    let asked = stage.host.asked("events.after").await;
    stage.host.answer(&asked, json!({"events": [], "has_more": false, "resync": true})).await;
    stage.sequence = 40;
    stage.state["sequence"] = json!(40);
    // The reload that the loss asks for, and the one that places the stream: whichever is answered places it.
    stage.reload().await;
    stage
        .gives(json!([transient(
            at(40, 15),
            "gap",
            json!({"reason": "retention", "lost": true, "snapshotSeq": at(40, 15)})
        )]))
        .await;
    stage.durable("run_waiting_for_quota", json!({"wait": {}})).await;
    stage.gives(json!([durable(at(41, 0), "run.waiting", json!({"run": "r"}))])).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "waiting_for_quota"}]);
    stage.gives_no_more().await;
}

/// Other keys of the host's state are ignored, as are unknown kinds; a settled session is read anew, without a gap.
#[tokio::test]
async fn other_host_state_and_session_settled() {
    let mut stage = Stage::open(&[]).await;
    stage.durable("host_state_changed", json!({"key": "weather", "value": {"sun": true}})).await;
    stage.durable("aurora_sighted", json!({"colour": "green"})).await;
    stage.transient("aurora_faded", json!(["no", "object"])).await;
    stage.host.nothing_came(&stage.backend).await;
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage.gives_no_more().await;
}

/// Events of the chats that a command here made are the chats themselves, not their events.
#[tokio::test]
async fn rewound_chat_is_told_by_created_chats() {
    let (backend, mut host) = RawHost::connect(&["rewind"]).await;
    let created = backend.created_chats();
    let (source, message) = ("s".into(), "m".into());
    let rewound = while_host(backend.rewind(&source, &message), async {
        let new = meta("n", "New", json!({}));
        host.serve("session.rewind", json!({"session_id": "s", "message_id": "m"}), json!({"session": new})).await;
    })
    .await
    .unwrap();
    assert_eq!(json!(rewound), json!({"chat": "s", "newChat": chat("n", "New", json!({})), "inPlace": false}));
    assert_eq!(json!(created.next().await.unwrap().unwrap()), chat("n", "New", json!({})));
}
