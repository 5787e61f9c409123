//! Reads and sequences: the mapping's table, the kit's table of reads, and each sentence about sequences.

use kitport::bubblepaw::Options;
use kitport::door::Door;
use kitport::model::Seq;
use kitport::{AgentBackend, ChatReader, StreamLimits};
use kitport_conformance::next;
use kitport_conformance::raw_host::{RawHost, json_of, while_host};
use serde_json::{Value, json};

use crate::stage::{START, Stage, at, chat, durable, meta, state, transient};

/// A read that is one request.
async fn reads(features: &[&str], call: (&str, Value), request: (&str, Value), answer: Value, result: Value) {
    let (backend, mut host) = RawHost::connect(features).await;
    let door = Door::new(std::sync::Arc::new(backend));
    let got = while_host(door.call(call.0, call.1), async {
        host.serve(request.0, request.1, answer).await;
    })
    .await;
    assert_eq!(json_of(got), result, "{}", call.0);
}

/// Without pagination all chats, newest first by their last change; with it pages of 100 in the host's order. The
/// query filters the titles of the page only. There is no run status.
#[tokio::test]
async fn list_chats() {
    let times = |updated: &str| json!({"updated_at": updated});
    let sessions = json!([
        meta("a", "Alpha", times("2026-01-01T00:00:01Z")),
        meta("b", "Beta", times("2026-01-01T00:00:03Z")),
        meta("c", "gamma", times("2026-01-01T00:00:02Z")),
    ]);
    let listed = |id: &str, title: &str, updated: &str| chat(id, title, json!({"updatedAt": updated}));
    let (a, b, c) = (
        listed("a", "Alpha", "2026-01-01T00:00:01Z"),
        listed("b", "Beta", "2026-01-01T00:00:03Z"),
        listed("c", "gamma", "2026-01-01T00:00:02Z"),
    );
    let all = json!({"sessions": sessions, "next_cursor": "ignored"});
    let request = ("session.list", json!({}));
    reads(&[], ("list_chats", Value::Null), request.clone(), all.clone(), json!({"chats": [b, c, a]})).await;
    reads(&[], ("list_chats", json!({"query": "GAM"})), request.clone(), all.clone(), json!({"chats": [c]})).await;
    reads(&[], ("list_chats", json!({"query": "zzz"})), request, all, json!({"chats": []})).await;

    let paged = &["session.list.pagination"];
    let page = json!({"sessions": sessions, "next_cursor": "n2"});
    let first = ("session.list", json!({"limit": 100}));
    reads(
        paged,
        ("list_chats", Value::Null),
        first.clone(),
        page.clone(),
        json!({"chats": [a, b, c], "nextCursor": "n2"}),
    )
    .await;
    reads(
        paged,
        ("list_chats", json!({"query": "a"})),
        first.clone(),
        page.clone(),
        json!({"chats": [a, b, c], "nextCursor": "n2"}),
    )
    .await;
    reads(
        paged,
        ("list_chats", json!({"query": "beta"})),
        first,
        page.clone(),
        json!({"chats": [b], "nextCursor": "n2"}),
    )
    .await;
    let next = ("session.list", json!({"limit": 100, "cursor": "n2"}));
    let last = json!({"sessions": [], "next_cursor": null});
    reads(paged, ("list_chats", json!({"cursor": "n2"})), next, last, json!({"chats": []})).await;
    // There is no page to go on from where the host gives none.
    let (backend, mut host) = RawHost::connect(&[]).await;
    let error = backend.list_chats(Some("n2"), None).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("invalid", Some(kitport::Outcome::NotSent)));
    host.nothing_came(&backend).await;
}

/// The state, then pending approvals, each field of the snapshot from its place.
#[tokio::test]
async fn load_chat() {
    let (backend, mut host) = RawHost::connect(&["approvals"]).await;
    let id = "s".into();
    let full = state(
        7,
        json!({
            "session": meta("s", "Title", json!({"model": "p/session", "parent_id": "o"})),
            "messages": [
                {"message_id": "u", "role": "user", "text": "Hi", "run_id": "r", "created_at": "2026-01-01T00:00:01Z"},
                {"message_id": "a", "role": "assistant", "text": "Look", "run_id": "r", "created_at": "2026-01-01T00:00:02Z", "tool_calls": [{"call_id": "c", "name": "n", "arguments": {"x": 1}}]},
                {"message_id": "t", "role": "tool", "text": "", "run_id": "r", "tool_result": {"call_id": "c", "result": {"y": 2}}},
                {"message_id": "w", "role": "narrator", "text": "Meanwhile"},
            ],
            "runs": [
                {"run_id": "q", "status": "failed", "error": "no", "model": "p/old"},
                {"run_id": "r", "status": "waiting_for_quota", "started_at": "2026-01-01T00:00:01Z", "wait": {"resume_at": "2026-01-01T01:00:00Z", "reason": "quota"}},
            ],
            "inputs": [{"input_id": "i", "kind": "follow_up", "text": "Then"}],
            "outputs": [{"output_id": "o", "kind": "text", "text": "Out", "run_id": "r", "created_at": "2026-01-01T00:00:03Z"}],
            "todo": [{"text": "do", "status": "in_progress"}],
            "question": {"question_id": "q1", "text": "Why?"},
            "usage": {"input_tokens": 1, "output_tokens": 2},
            "children": [{"session_id": "k", "parent_id": "s", "title": "Kid", "state": "waiting", "question": {"question_id": "kq", "text": "?"}}],
        }),
    );
    let approvals = json!({"approvals": [
        {"approval_id": "p1", "session_id": "s", "state": "approved"},
        {"approval_id": "p2", "session_id": "s", "state": "pending", "tool": "shell"},
        {"approval_id": "p3", "session_id": "other", "state": "pending"},
    ]});
    let snapshot = while_host(backend.load_chat(&id), async {
        host.serve("session.state", json!({"session_id": "s"}), full).await;
        host.serve("approval.list", json!({"session_id": "s"}), approvals).await;
    })
    .await
    .unwrap();
    assert_eq!(
        json!(snapshot),
        json!({
            "chat": chat("s", "Title", json!({"model": "p/session", "parentId": "o", "runStatus": "waiting_for_quota"})),
            "seq": 7 * 16 + 15,
            "items": [
                {"kind": "user_message", "id": "u", "text": "Hi", "run": "r", "createdAt": "2026-01-01T00:00:01Z", "provisional": false},
                {"kind": "assistant_message", "id": "a", "text": "Look", "run": "r", "createdAt": "2026-01-01T00:00:02Z", "provisional": false},
                {"kind": "tool_call", "id": "c", "name": "n", "arguments": {"x": 1}, "status": "done", "result": {"y": 2}, "run": "r", "durable": true},
                {"kind": "system_message", "id": "o", "text": "Out", "run": "r", "createdAt": "2026-01-01T00:00:03Z", "provisional": false},
                {"kind": "other_message", "role": "narrator", "id": "w", "text": "Meanwhile", "provisional": false},
            ],
            "runs": [
                {"id": "q", "status": "failed", "error": "no", "model": "p/old"},
                {"id": "r", "status": "waiting_for_quota", "startedAt": "2026-01-01T00:00:01Z", "wait": {"resumeAt": "2026-01-01T01:00:00Z", "reason": "quota"}},
            ],
            "queue": [{"id": "i", "kind": "follow_up", "text": "Then"}],
            "plan": [{"text": "do", "status": "now"}],
            "approvals": [{"id": "p2", "tool": "shell", "state": "pending"}],
            "question": {"id": "q1", "text": "Why?", "suggestions": []},
            "children": [{"id": "k", "parentId": "s", "title": "Kid", "state": "waiting", "question": {"id": "kq", "text": "?", "suggestions": []}}],
            "usage": {"inputTokens": 1, "outputTokens": 2},
            "settings": {"model": "p/old"},
            "workspace": {"path": "/work", "name": "work"},
        })
    );
    // approval.list belongs to approvals: without the feature it is not asked for.
    let (backend, mut host) = RawHost::connect(&[]).await;
    let snapshot = while_host(backend.load_chat(&id), async {
        host.serve("session.state", json!({"session_id": "s"}), state(1, json!({}))).await;
    })
    .await
    .unwrap();
    assert_eq!(snapshot.approvals, []);
    host.nothing_came(&backend).await;
}

fn waits(sequence: u64) -> Value {
    json!({"sequence": sequence, "type": "run_waiting_for_quota", "data": {"wait": {}}, "run_id": "r"})
}

fn waiting(host: u64) -> Value {
    durable(at(host, 0), "run.waiting", json!({"run": "r"}))
}

async fn take(events: &kitport::EventStream, count: usize) -> Value {
    let mut got = Vec::new();
    for _ in 0..count {
        got.push(json!(next(events).await));
    }
    Value::Array(got)
}

/// Pages of the history, then live events: those that came meanwhile follow, duplicates give nothing.
#[tokio::test]
async fn events() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), Some(Seq(at(10, 15))));
    // It attaches when called: what comes before the first answer is kept.
    let asked = host.asked("events.after").await;
    assert_eq!(asked.params, json!({"session_id": "s", "after": 10, "limit": 1000}));
    host.event("s", waits(13)).await;
    host.event("s", waits(14)).await;
    host.answer(&asked, json!({"events": [waits(11), waits(12)], "has_more": true})).await;
    let asked = host.asked("events.after").await;
    assert_eq!(asked.params, json!({"session_id": "s", "after": 12, "limit": 1000}));
    host.answer(&asked, json!({"events": [waits(13)], "has_more": false})).await;
    host.event("s", waits(14)).await;
    host.event("other", waits(15)).await;
    host.event("s", waits(16)).await;
    host.event("s", waits(12)).await;
    assert_eq!(take(&events, 5).await, json!([waiting(11), waiting(12), waiting(13), waiting(14), waiting(16)]));
}

/// What fails, fails through the stream; other streams live on.
#[tokio::test]
async fn events_of_a_chat_that_is_not_there() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let other = backend.events(&"s".into(), Some(Seq(at(10, 15))));
    host.serve(
        "events.after",
        json!({"session_id": "s", "after": 10, "limit": 1000}),
        json!({"events": [], "has_more": false}),
    )
    .await;
    let error = json!({"code": -32000, "message": "unknown session"});
    for (after, method) in [(None, "session.state"), (Some(Seq(0)), "events.after")] {
        let events = backend.events(&"gone".into(), after);
        loop {
            let asked = host.next().await;
            if asked.params["session_id"] == "gone" {
                assert_eq!(asked.method, method);
                host.refuse(&asked, error.clone()).await;
                break;
            }
            host.answer(&asked, state(10, json!({}))).await;
        }
        let (events, error) = kitport_conformance::rest(&events).await;
        assert_eq!((events.len(), error.map(|error| error.code())), (0, Some("not_found")));
    }
    host.event("s", waits(11)).await;
    loop {
        tokio::select! {
            event = next(&other) => if event.durable {
                assert_eq!(json!(event), waiting(11));
                break;
            },
            asked = host.next() => host.answer(&asked, state(10, json!({}))).await,
        }
    }
}

/// Streams of one chat, from wherever they begin, give the same durable events at the same positions.
#[tokio::test]
async fn streams_of_one_chat() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let cursors = [0, at(1, 0), at(2, 0), at(2, 15), at(5, 1)];
    let streams: Vec<_> = cursors.iter().map(|after| backend.events(&"s".into(), Some(Seq(*after)))).collect();
    let finished = |sequence: u64| json!({"sequence": sequence, "type": "run_finished", "data": {"status": "completed", "text": "t"}, "run_id": "r"});
    let mut told: Vec<Vec<u64>> = vec![Vec::new(); streams.len()];
    host.event("s", finished(4)).await;
    host.event("s", finished(5)).await;
    host.event("s", finished(4)).await;
    host.event("s", finished(6)).await;
    let last = at(6, 1);
    while told.iter().any(|told| told.last() != Some(&last)) {
        tokio::select! {
            asked = host.next() => match asked.method.as_str() {
                "events.after" => {
                    let after = asked.params["after"].as_u64().unwrap();
                    let page: Vec<_> = (after + 1..6).take(2).map(finished).collect();
                    let more = after + 1 + (page.len() as u64) < 6;
                    host.answer(&asked, json!({"events": page, "has_more": more})).await;
                }
                _ => host.answer(&asked, state(6, json!({}))).await,
            },
            (event, at) = async {
                let nexts = streams.iter().map(|stream| Box::pin(stream.ready()));
                let (_, ready, _) = futures::future::select_all(nexts).await;
                (streams[ready].take(1).unwrap().remove(0), ready)
            } => if event.durable { told[at].push(event.seq.0) },
        }
    }
    let all: Vec<u64> = (1..=6).flat_map(|host| [at(host, 0), at(host, 1)]).collect();
    for (after, told) in cursors.iter().zip(told) {
        let behind: Vec<_> = all.iter().copied().filter(|seq| seq > after).collect();
        assert_eq!(told, behind, "after {after}");
    }
}

/// Sixteen positions a host event; a snapshot has the final one; a cursor in the middle asks for the event again.
#[tokio::test]
async fn durable_sequence() {
    let finished =
        json!({"sequence": 11, "type": "run_finished", "data": {"status": "completed", "text": "Yes"}, "run_id": "r"});
    let reply = durable(
        at(11, 0),
        "message.assistant",
        json!({"messageId": "provisional:r", "text": "Yes", "provisional": true, "run": "r"}),
    );
    let end = durable(at(11, 1), "run.finished", json!({"status": "completed", "run": "r"}));
    for (after, asked_after, expected) in [
        (0, 0, json!([reply, end, waiting(12)])),
        (at(10, 0), 9, json!([reply, end, waiting(12)])),
        (at(10, 15), 10, json!([reply, end, waiting(12)])),
        (at(11, 0), 10, json!([end, waiting(12)])),
        (at(11, 1), 11, json!([waiting(12)])),
        (at(11, 7), 11, json!([waiting(12)])),
        (at(11, 15), 11, json!([waiting(12)])),
    ] {
        let (backend, mut host) = RawHost::connect(&[]).await;
        let events = backend.events(&"s".into(), Some(Seq(after)));
        let asked = host.asked("events.after").await;
        assert_eq!(asked.params, json!({"session_id": "s", "after": asked_after, "limit": 1000}));
        let page: Vec<_> = [finished.clone(), waits(12)]
            .into_iter()
            .filter(|event| event["sequence"].as_u64().unwrap() > asked_after)
            .collect();
        host.answer(&asked, json!({"events": page, "has_more": false})).await;
        assert_eq!(take(&events, expected.as_array().unwrap().len()).await, expected, "after {after}");
    }
}

/// Fragments carry the last durable sequence and an offset in UTF-16; joining in the middle skips what is ambiguous.
#[tokio::test]
async fn transient_sequence_and_offset() {
    let mut stage = Stage::open_with(&[], json!({"runs": [{"run_id": "r", "status": "running"}]})).await;
    stage.transient("text_delta", json!({"text": "skipped"})).await;
    stage.transient("paragraph", json!({"text": "skipped, too"})).await;
    stage.transient("model_request", json!({})).await;
    let delta = |host: u64, offset: u64, text: &str| {
        transient(
            at(host, 15),
            "message.delta",
            json!({"messageId": "provisional:r:1", "offset": offset, "text": text, "run": "r"}),
        )
    };
    stage.transient("text_delta", json!({"text": "a𝄞é"})).await;
    stage.gives(json!([delta(10, 0, "a𝄞é")])).await;
    stage.transient("text_delta", json!({"text": "b"})).await;
    stage.gives(json!([delta(10, 4, "b")])).await;
    stage.durable("run_waiting_for_quota", json!({"wait": {}})).await;
    stage.transient("text_delta", json!({"text": "c"})).await;
    stage.gives(json!([waiting(11), delta(11, 5, "c")])).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "waiting_for_quota"}]);
    stage.gives_no_more().await;
}

fn entry(seq: u64, message: Value) -> Value {
    json!({"seq": seq, "message": message})
}

/// Pages by next_seq; items carry the host's store sequence, which is not dense.
#[tokio::test]
async fn load_history_range() {
    let (backend, mut host) = RawHost::connect(&["context"]).await;
    let id = "s".into();
    let got = while_host(backend.load_history_range(&id, Seq(3), Seq(20)), async {
        let range = |from: u64| json!({"session_id": "s", "first_seq": from, "last_seq": 20, "limit": 500});
        let call = json!({"call_id": "c", "name": "n", "arguments": {}});
        let first = json!([
            entry(3, json!({"message_id": "u", "role": "user", "text": "Hi"})),
            entry(7, json!({"message_id": "a", "role": "assistant", "text": "", "tool_calls": [call]})),
        ]);
        host.serve("history.range", range(3), json!({"entries": first, "next_seq": 8})).await;
        let rest = json!([
            entry(9, json!({"message_id": "t", "role": "tool", "text": "", "tool_result": {"call_id": "c", "result": 1, "is_error": true}})),
            entry(20, json!({"message_id": "z", "role": "oracle", "text": "Hm"})),
        ]);
        host.serve("history.range", range(8), json!({"entries": rest})).await;
    })
    .await;
    assert_eq!(
        json_of(got),
        json!([
            {"seq": 3, "item": {"kind": "user_message", "id": "u", "text": "Hi", "provisional": false}},
            {"seq": 7, "item": {"kind": "tool_call", "id": "c", "name": "n", "arguments": {}, "status": "failed", "result": 1, "isError": true, "durable": true}},
            {"seq": 20, "item": {"kind": "other_message", "role": "oracle", "id": "z", "text": "Hm", "provisional": false}},
        ])
    );
    // A range that ends before it begins is refused here; one of a single sequence is none of these.
    let error = backend.load_history_range(&id, Seq(9), Seq(8)).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("invalid", Some(kitport::Outcome::NotSent)));
    let one = while_host(backend.load_history_range(&id, Seq(8), Seq(8)), async {
        let range = json!({"session_id": "s", "first_seq": 8, "last_seq": 8, "limit": 500});
        host.serve("history.range", range, json!({"entries": []})).await;
    });
    assert_eq!(json_of(one.await), json!([]));
    host.nothing_came(&backend).await;
}

/// Structure, compactions, view. Message ids of the view become store sequences, asked for once. The window is there
/// only where usage tells one at or above the threshold.
#[tokio::test]
async fn load_context_and_summary() {
    let (backend, mut host) = RawHost::connect(&["context"]).await;
    let door = Door::new(std::sync::Arc::new(backend.clone()));
    let structure = json!({
        "chapters": [{"chapter_id": "c1", "title": "One", "first_seq": 1, "last_seq": 9, "episodes": ["e1"]}],
        "episodes": [{"episode_id": "e1", "first_seq": 1, "last_seq": 4}],
    });
    let compactions = json!({"events": [{"event_id": "k", "kind": "episodes", "trigger": "manual", "seq": 4, "at": "2026-01-01T00:00:00Z", "applied": true}]});
    let view = json!({"threshold": 80, "items": [
        {"kind": "chapter", "id": "c1"}, {"kind": "episode", "id": "e2"}, {"kind": "message", "id": "m"}, {"kind": "message", "id": "unknown"}, {"kind": "rune", "id": "x"},
    ]});
    let session = json!({"session_id": "s"});
    for (round, (window, told)) in [
        (Some(100), json!([100, 20])),
        (Some(80), json!([80, 0])),
        (Some(79), json!([null, null])),
        (None, json!([null, null])),
    ]
    .into_iter()
    .enumerate()
    {
        let got = while_host(door.call("load_context", json!({"chat": "s"})), async {
            host.serve("context.structure", session.clone(), structure.clone()).await;
            let usage =
                window.map(|window| json!({"input_tokens": 1, "output_tokens": 1, "context": {"window": window}}));
            host.serve("session.state", session.clone(), state(1, json!({"usage": usage}))).await;
            host.serve("context.events", session.clone(), compactions.clone()).await;
            host.serve("context.view", session.clone(), view.clone()).await;
            // The unknown one may be new: only what is above the highest known sequence is asked for again.
            let asked = host.next().await;
            let from = if round == 0 { 1 } else { 6 };
            assert_eq!((asked.method.as_str(), &asked.params["first_seq"]), ("history.range", &json!(from)));
            let entries = if round == 0 {
                json!([entry(5, json!({"message_id": "m", "role": "user", "text": "Hi"}))])
            } else {
                json!([])
            };
            host.answer(&asked, json!({"entries": entries})).await;
        })
        .await;
        let mut expected = json!({
            "structure": {
                "chapters": [{"id": "chapter:c1", "title": "One", "firstSeq": 1, "lastSeq": 9, "messageCount": 9, "episodes": ["episode:e1"]}],
                "episodes": [{"id": "episode:e1", "firstSeq": 1, "lastSeq": 4, "messageCount": 4}],
            },
            "compactions": [{"id": "k", "kind": "episodes", "trigger": "manual", "seq": 4, "at": "2026-01-01T00:00:00Z", "applied": true}],
            "view": {"threshold": 80, "items": [
                {"kind": "chapter", "id": "chapter:c1"}, {"kind": "episode", "id": "episode:e2"}, {"kind": "message", "id": "m", "seq": 5}, {"kind": "message", "id": "unknown"}, {"kind": "rune", "id": "x"},
            ]},
        });
        if !told[0].is_null() {
            expected["view"]["window"] = told[0].clone();
            expected["view"]["responseReserve"] = told[1].clone();
        }
        assert_eq!(json_of(got), expected, "{window:?}");
    }
    for (kit, kind, id) in [("episode:1", "episode", "1"), ("chapter:a:b", "chapter", "a:b")] {
        let got = while_host(door.call("load_summary", json!({"chat": "s", "kitId": kit})), async {
            let request = json!({"session_id": "s", "kind": kind, "id": id});
            let answer = json!({"kind": kind, "id": id, "title": "T", "text": "In short"});
            host.serve("context.summary", request, answer).await;
        })
        .await;
        assert_eq!(json_of(got), json!({"id": kit, "kind": kind, "title": "T", "text": "In short"}));
    }
    for kit in ["", "1", "episode:", "chapter:", "message:1", "Episode:1", " episode:1"] {
        let got = json_of(door.call("load_summary", json!({"chat": "s", "kitId": kit})).await);
        assert_eq!(got["error"]["code"], "invalid", "{kit}");
    }
    host.nothing_came(&backend).await;
}

/// Chats that came to be by a command here, from now on.
#[tokio::test]
async fn created_chats() {
    let (backend, mut host) = RawHost::connect(&["rewind"]).await;
    let door = Door::new(std::sync::Arc::new(backend.clone()));
    let created = door.open("created_chats", Value::Null).unwrap();
    let (made, ()) = tokio::join!(door.call("create_chat", json!({})), async {
        host.serve("session.open", json!({}), json!({"session": meta("n", "New", json!({}))})).await;
    });
    made.unwrap();
    let (failed, ()) = tokio::join!(door.call("create_chat", json!({})), async {
        let asked = host.next().await;
        host.refuse(&asked, json!({"code": -32000, "message": "no"})).await;
    });
    failed.unwrap_err();
    let (source, message) = ("s".into(), "m".into());
    let (rewound, ()) = tokio::join!(backend.rewind(&source, &message), async {
        host.serve(
            "session.rewind",
            json!({"session_id": "s", "message_id": "m"}),
            json!({"session": meta("w", "Back", json!({}))}),
        )
        .await;
    });
    rewound.unwrap();
    assert!(created.ready().await);
    let got = created.take(9).unwrap();
    assert_eq!(json!(got), json!([chat("n", "New", json!({})), chat("w", "Back", json!({}))]));
    backend.close().await;
    assert!(!created.ready().await);
}

/// Live events of every chat, without asking the host for anything.
#[tokio::test]
async fn watch_all() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.watch_all();
    host.event("a", waits(5)).await;
    host.event("b", waits(3)).await;
    host.event("a", waits(5)).await;
    host.event("a", waits(6)).await;
    host.notify("events.gap", json!({"session_id": "b"})).await;
    let nested =
        json!({"sequence": 8, "type": "tool_finished", "data": {"call_id": "c.1", "result": null}, "durable": false});
    host.event("c", nested).await;
    let expected = |chat: &str, host: u64| {
        let mut event = waiting(host);
        event["chat"] = json!(chat);
        event
    };
    let mut lost = transient(at(3, 15), "gap", json!({"reason": "live_lost", "lost": true}));
    lost["chat"] = json!("b");
    // A transient event comes with the host's last durable sequence, also where no durable one was met yet.
    let mut nested = transient(at(8, 15), "tool.finished", json!({"callId": "c.1"}));
    nested["chat"] = json!("c");
    assert_eq!(take(&events, 5).await, json!([expected("a", 5), expected("b", 3), expected("a", 6), lost, nested]));
    host.nothing_came(&backend).await;
    // A reader without room is told that it lost events, and another one has them all.
    let limits = StreamLimits { events: 4, ..StreamLimits::default() };
    let (backend, mut host) = RawHost::connect_with(&[], Options { stream_limits: limits, ..RawHost::options() }).await;
    let (slow, busy) = (backend.watch_all(), backend.watch_all());
    for sequence in 1..=20 {
        host.event("a", waits(sequence)).await;
        assert_eq!(take(&busy, 1).await, json!([expected("a", sequence)]));
    }
    assert!(slow.ready().await);
    let held = slow.take(usize::MAX).unwrap();
    let (told, durable) = (json!(held), held.iter().filter(|event| event.durable).count());
    assert_eq!(told[0], expected("a", 1));
    assert!(durable <= 4, "{told}");
    assert_eq!((&json!(held.last())["kind"], &json!(held.last())["reason"]), (&json!("gap"), &json!("live_lost")));
    host.event("a", waits(21)).await;
    assert_eq!(take(&slow, 1).await, json!([expected("a", 21)]));
}

/// Pending approvals of all chats, over all pages.
#[tokio::test]
async fn pending_approvals() {
    let (backend, mut host) = RawHost::connect(&["approvals", "session.list.pagination"]).await;
    let approval =
        |id: &str, session: &str, state: &str| json!({"approval_id": id, "session_id": session, "state": state});
    let got = while_host(backend.pending_approvals(), async {
        let page = json!({"sessions": [meta("a", "A", json!({})), meta("gone", "G", json!({}))], "next_cursor": "2"});
        host.serve("session.list", json!({"limit": 100}), page).await;
        let list = json!({"approvals": [approval("1", "a", "pending"), approval("2", "a", "denied"), approval("3", "x", "pending")]});
        host.serve("approval.list", json!({"session_id": "a"}), list).await;
        let asked = host.expect("approval.list", json!({"session_id": "gone"})).await;
        host.refuse(&asked, json!({"code": -32000, "message": "no such session"})).await;
        let page = json!({"sessions": [meta("b", "B", json!({}))]});
        host.serve("session.list", json!({"limit": 100, "cursor": "2"}), page).await;
        host.serve("approval.list", json!({"session_id": "b"}), json!({"approvals": [approval("4", "b", "pending")]})).await;
    })
    .await;
    assert_eq!(
        json_of(got),
        json!([{"chat": "a", "approval": {"id": "1", "state": "pending"}}, {"chat": "b", "approval": {"id": "4", "state": "pending"}}])
    );
    // A host whose cursors go in a circle isn't asked for ever; any other failure is told.
    let got = while_host(backend.pending_approvals(), async {
        let page = |next: &str| json!({"sessions": [], "next_cursor": next});
        host.serve("session.list", json!({"limit": 100}), page("2")).await;
        host.serve("session.list", json!({"limit": 100, "cursor": "2"}), page("3")).await;
        host.serve("session.list", json!({"limit": 100, "cursor": "3"}), page("2")).await;
    })
    .await;
    assert_eq!(json_of(got), json!([]));
    let failed = while_host(backend.pending_approvals(), async {
        let page = json!({"sessions": [meta("a", "A", json!({}))]});
        host.serve("session.list", json!({"limit": 100}), page).await;
        let asked = host.expect("approval.list", json!({"session_id": "a"})).await;
        host.refuse(&asked, json!({"code": -32603, "message": "no"})).await;
    });
    assert_eq!(failed.await.unwrap_err().code(), "failed");
    let (backend, mut host) = RawHost::connect(&["session.list.pagination"]).await;
    let error = backend.pending_approvals().await.unwrap_err();
    assert_eq!(json!(error)["capability"], "approve");
    host.nothing_came(&backend).await;
}

/// Its state now, then each change.
#[tokio::test]
async fn connection() {
    let (backend, _host) = RawHost::connect(&[]).await;
    let door = Door::new(std::sync::Arc::new(backend));
    let states = door.open("connection", Value::Null).unwrap();
    assert!(states.ready().await);
    assert_eq!(json!(states.take(9).unwrap()), json!([{"status": "connected"}]));
    door.call("close", Value::Null).await.unwrap();
    assert!(states.ready().await);
    assert_eq!(json!(states.take(9).unwrap()), json!([{"status": "closed"}]));
    assert!(!states.ready().await);
}

/// Over a restart of the host: the stream stays, and the run that the host marked interrupted is told by the reload.
#[tokio::test]
async fn connection_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("host.db").to_string_lossy().into_owned();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_conformance-host"));
    let command = kitport_conformance::host_command(program, &["--db", &db]);
    let restart = kitport::bubblepaw::Restart::always();
    let backend = kitport::BubblePaw::spawn(command, Options { restart, ..Options::default() }).await.unwrap();
    let states = backend.connection();
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.events(&chat.id, None);
    backend.send(&chat.id, "ask Ready?; crash 3", &[]).await.unwrap();
    let asked = kitport_conformance::until(&events, |event| event.kind.name() == "question.asked").await;
    let kitport::model::EventKind::QuestionAsked(asked) = &asked.last().unwrap().kind else { unreachable!() };
    // The host may exit before its answer is out.
    let _ = backend.answer_question(&chat.id, &asked.question.id, "yes".into()).await;
    let rest = kitport_conformance::until(&events, |event| event.kind.name() == "run.finished").await;
    let finished = json!(rest.last());
    assert_eq!((&finished["durable"], &finished["status"]), (&json!(false), &json!("interrupted")));
    let durable: Vec<_> = rest.iter().filter(|event| event.durable).map(|event| event.kind.name()).collect();
    assert_eq!(
        durable,
        ["question.resolved", "tool.finished"],
        "durable events come once, before and behind the restart"
    );
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let state = states.next().await.unwrap().unwrap();
        seen.push(json!([state.status, state.reason.as_ref().map(|reason| reason.code())]));
    }
    assert_eq!(json!(seen), json!([["connected", null], ["restarting", "host_exited"], ["connected", null]]));
    assert_eq!(backend.counters().restarts, 1);
    backend.close().await;
}

/// Without `after` a stream starts at the snapshot taken then, or just below the first durable notification since.
#[tokio::test]
async fn after_absent() {
    // The snapshot is lower.
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), None);
    let asked = host.asked("session.state").await;
    host.event("s", waits(11)).await;
    host.event("s", waits(12)).await;
    host.answer(&asked, state(10, json!({}))).await;
    assert_eq!(take(&events, 2).await, json!([waiting(11), waiting(12)]));
    // The notification is lower: the snapshot has it already, and the stream gives it all the same.
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), None);
    let asked = host.asked("session.state").await;
    host.event("s", waits(11)).await;
    host.event("s", waits(12)).await;
    let runs = json!({"runs": [{"run_id": "r", "status": "waiting_for_quota"}]});
    host.answer(&asked, state(12, runs)).await;
    assert_eq!(take(&events, 2).await, json!([waiting(11), waiting(12)]));
}

/// What changed between such a start and the snapshot is told, though the snapshot is the first that was read.
#[tokio::test]
async fn after_absent_and_a_snapshot_that_is_ahead() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), None);
    let asked = host.asked("session.state").await;
    host.event("s", json!({"sequence": 11, "type": "run_started", "data": {}, "run_id": "r"})).await;
    host.event(
        "s",
        json!({"sequence": 12, "type": "run_finished", "data": {"status": "completed", "text": "Yes"}, "run_id": "r"}),
    )
    .await;
    let changes = json!({
        "session": meta("s", "Hi", json!({"model": "p/m"})),
        "messages": [
            {"message_id": "old", "role": "user", "text": "Before", "run_id": "q"},
            {"message_id": "m", "role": "user", "text": "Hi", "run_id": "r"},
            {"message_id": "a", "role": "assistant", "text": "Yes", "run_id": "r"},
        ],
        "runs": [{"run_id": "r", "status": "completed"}],
        "inputs": [{"input_id": "i", "kind": "follow_up", "text": "Next"}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    });
    host.answer(&asked, state(12, changes)).await;
    let message = json!({"kind": "user_message", "id": "m", "text": "Hi", "run": "r", "provisional": false});
    assert_eq!(
        take(&events, 7).await,
        json!([
            durable(at(11, 0), "run.started", json!({"resumed": false, "run": "r"})),
            durable(
                at(12, 0),
                "message.assistant",
                json!({"messageId": "provisional:r", "text": "Yes", "provisional": true, "run": "r"})
            ),
            durable(at(12, 1), "run.finished", json!({"status": "completed", "run": "r"})),
            transient(at(12, 15), "chat.settings", json!({"model": "p/m"})),
            transient(at(12, 15), "message.user", json!({"message": message, "afterId": "old", "run": "r"})),
            transient(
                at(12, 15),
                "queue.updated",
                json!({"inputs": [{"id": "i", "kind": "follow_up", "text": "Next"}]})
            ),
            transient(at(12, 15), "usage.updated", json!({"usage": {"inputTokens": 1, "outputTokens": 2}})),
        ])
    );
}

/// Above the host's newest: the app is told, and the stream goes on from the fresh snapshot.
#[tokio::test]
async fn after_ahead() {
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), Some(Seq(at(50, 1))));
    host.serve(
        "events.after",
        json!({"session_id": "s", "after": 50, "limit": 1000}),
        json!({"events": [], "has_more": false}),
    )
    .await;
    host.serve("session.state", json!({"session_id": "s"}), state(20, json!({}))).await;
    host.event("s", waits(21)).await;
    let gap = transient(at(20, 15), "gap", json!({"reason": "ahead", "lost": true, "snapshotSeq": at(20, 15)}));
    assert_eq!(take(&events, 2).await, json!([gap, waiting(21)]));
    // A cursor at the newest is not ahead.
    let (backend, mut host) = RawHost::connect(&[]).await;
    let events = backend.events(&"s".into(), Some(Seq(at(20, 1))));
    host.serve(
        "events.after",
        json!({"session_id": "s", "after": 20, "limit": 1000}),
        json!({"events": [], "has_more": false}),
    )
    .await;
    host.serve("session.state", json!({"session_id": "s"}), state(20, json!({}))).await;
    // What a snapshot tells an app that knows none, and no gap.
    let title = transient(at(20, 15), "chat.renamed", json!({"title": "Title"}));
    assert_eq!(take(&events, 2).await, json!([title, transient(at(20, 15), "chat.settings", json!({}))]));
    host.event("s", waits(21)).await;
    assert_eq!(take(&events, 1).await, json!([waiting(21)]));
}

/// A notification that was skipped for its size counts as a gap of all chats.
#[tokio::test]
async fn oversize_notification() {
    let options = Options { line_limit: 64 * 1024, ..Options::default() };
    let (backend, mut host) = RawHost::connect_with(&[], options).await;
    let events = backend.events(&"s".into(), None);
    host.serve("session.state", json!({"session_id": "s"}), state(START, json!({}))).await;
    host.event("s", waits(11)).await;
    assert_eq!(take(&events, 1).await, json!([waiting(11)]));
    host.event("s", json!({"sequence": 12, "type": "tool_finished", "data": {"call_id": "c", "result": "x".repeat(70_000)}, "run_id": "r"})).await;
    let asked = host.expect("events.after", json!({"session_id": "s", "after": 11, "limit": 1000})).await;
    host.answer(&asked, json!({"events": [waits(12)], "has_more": false})).await;
    assert_eq!(take(&events, 1).await, json!([waiting(12)]));
    assert_eq!(backend.counters().oversize, 1);
}

/// An answer that was skipped halves the limit; one event that is itself too large is lost, and the app is told.
#[tokio::test]
async fn oversize_answer() {
    let options = Options { line_limit: 64 * 1024, ..Options::default() };
    let (backend, mut host) = RawHost::connect_with(&[], options).await;
    let events = backend.events(&"s".into(), Some(Seq(at(10, 15))));
    let large = json!({"events": [{"sequence": 11, "type": "tool_finished", "data": {"call_id": "c", "result": "x".repeat(70_000)}}], "has_more": true});
    let mut limits = Vec::new();
    loop {
        let asked = host.next().await;
        if asked.method == "session.state" {
            host.answer(&asked, state(30, json!({}))).await;
            break;
        }
        limits.push(asked.params["limit"].as_u64().unwrap());
        host.answer(&asked, large.clone()).await;
    }
    assert_eq!(limits, [1000, 500, 250, 125, 62, 31, 15, 7, 3, 1]);
    host.event("s", waits(31)).await;
    let gap = transient(at(30, 15), "gap", json!({"reason": "oversize", "lost": true, "snapshotSeq": at(30, 15)}));
    assert_eq!(take(&events, 2).await, json!([gap, waiting(31)]));
    // Any other request whose answer was skipped fails at once.
    let id = "s".into();
    let error = while_host(backend.load_chat(&id), async {
        let asked = host.next().await;
        host.answer(
            &asked,
            state(31, json!({"messages": [{"message_id": "m", "role": "user", "text": "x".repeat(70_000)}]})),
        )
        .await;
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), "failed");
}

/// A durable event whose data doesn't fit takes its sequence and puts the display in doubt; the stream lives on.
#[tokio::test]
async fn malformed_events() {
    let mut stage = Stage::open(&[]).await;
    stage.durable("tool_started", json!({"call": 5})).await;
    stage.gives(json!([transient(at(11, 15), "gap", json!({"reason": "mismatch", "lost": false}))])).await;
    stage.reload().await;
    stage.host.event("s", json!({"type": "no sequence"})).await;
    stage.host.event("s", json!("no object")).await;
    stage.durable("run_waiting_for_quota", json!({"wait": {}})).await;
    stage.gives(json!([waiting(12)])).await;
    assert_eq!(stage.backend.counters().malformed, 3);
    stage.state["runs"] = json!([{"run_id": "r", "status": "waiting_for_quota"}]);
    stage.gives_no_more().await;
}

/// One reload in flight, at most one pending: many wishes make two.
#[tokio::test]
async fn reloads_are_shared() {
    let mut stage = Stage::open(&[]).await;
    let other = stage.backend.events(&"s".into(), None);
    stage.durable("session_settled", json!({})).await;
    let first = stage.host.asked("session.state").await;
    for _ in 0..20 {
        stage.durable("session_settled", json!({})).await;
    }
    stage.host.nothing_came(&stage.backend).await;
    stage.state["sequence"] = json!(stage.sequence);
    stage.state["session"]["title"] = json!("New");
    stage.host.answer(&first, stage.state.clone()).await;
    let second = stage.host.asked("session.state").await;
    stage.host.answer(&second, stage.state.clone()).await;
    stage.gives(json!([transient(at(stage.sequence, 15), "chat.renamed", json!({"title": "New"}))])).await;
    drop(other);
    stage.gives_no_more().await;
}

/// What a run that the host marked interrupted, and what an approval that it recovered, give without an event.
#[tokio::test]
async fn what_no_durable_event_told() {
    let run = json!([{"run_id": "r", "status": "running"}]);
    let approval = json!({"approval_id": "p", "session_id": "s", "state": "pending"});
    let mut stage = Stage::open_with(&["approvals"], json!({"runs": run})).await;
    stage.state["runs"] = json!([{"run_id": "r", "status": "interrupted", "error": "host restarted"}]);
    stage.approvals = vec![approval];
    stage.durable_with("session_settled", json!({}), json!({})).await;
    stage.reload().await;
    stage
        .gives(json!([
            transient(
                at(11, 15),
                "run.finished",
                json!({"status": "interrupted", "error": "host restarted", "run": "r"})
            ),
            transient(at(11, 15), "approval.requested", json!({"approval": {"id": "p", "state": "pending"}})),
        ]))
        .await;
    stage.gives_no_more().await;
}

/// A snapshot older than what events told since changes nothing that they told.
#[tokio::test]
async fn later_events_outrank_a_reload() {
    let mut stage = Stage::open_with(&["plan", "questions"], json!({})).await;
    stage.durable_with("session_settled", json!({}), json!({})).await;
    let asked = stage.host.asked("session.state").await;
    let old = state(11, json!({"todo": [], "runs": []}));
    stage.durable("run_started", json!({})).await;
    stage.durable("host_state_changed", json!({"key": "todo", "value": [{"text": "a", "status": "done"}]})).await;
    stage.durable("host_state_changed", json!({"key": "question", "value": {"question_id": "q", "text": "?"}})).await;
    stage
        .gives(json!([
            durable(at(12, 0), "run.started", json!({"resumed": false, "run": "r"})),
            durable(at(13, 0), "plan.updated", json!({"steps": [{"text": "a", "status": "done"}], "run": "r"})),
            durable(
                at(14, 1),
                "question.asked",
                json!({"question": {"id": "q", "text": "?", "suggestions": []}, "run": "r"})
            ),
        ]))
        .await;
    stage.host.answer(&asked, old).await;
    stage.state["todo"] = json!([{"text": "a", "status": "done"}]);
    stage.state["question"] = json!({"question_id": "q", "text": "?"});
    stage.state["runs"] = json!([{"run_id": "r", "status": "running"}]);
    stage.gives_no_more().await;
}

/// A reader that is slow holds no more than its bound, loses nothing durable, and is no hindrance to others.
#[tokio::test]
async fn slow_readers() {
    let limits = StreamLimits { events: 8, ..StreamLimits::default() };
    let options = Options { stream_limits: limits, ..Options::default() };
    let (backend, mut host) = RawHost::connect_with(&[], options).await;
    let slow = backend.events(&"s".into(), Some(Seq(at(10, 15))));
    let asked = host.asked("events.after").await;
    host.answer(&asked, json!({"events": [waits(11)], "has_more": false})).await;
    let asked = host.asked("session.state").await;
    host.answer(&asked, state(11, json!({"runs": [{"run_id": "r", "status": "waiting_for_quota"}]}))).await;
    assert_eq!(next(&slow).await.seq, Seq(at(11, 0)));
    for sequence in 12..60 {
        host.event("s", waits(sequence)).await;
    }
    host.nothing_came(&backend).await;
    let mut told = Vec::new();
    while told.last() != Some(&59) {
        tokio::select! {
            event = next(&slow) => if event.durable { told.push(event.seq.0 / 16) },
            asked = host.next() => match asked.method.as_str() {
                "events.after" => {
                    let after = asked.params["after"].as_u64().unwrap();
                    let page: Vec<_> = (after + 1..60).map(waits).collect();
                    host.answer(&asked, json!({"events": page, "has_more": false})).await;
                }
                _ => host.answer(&asked, state(59, json!({}))).await,
            }
        }
    }
    assert_eq!(told, (12..60).collect::<Vec<_>>());
}
