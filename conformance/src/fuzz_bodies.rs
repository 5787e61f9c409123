//! The bodies of the fuzz targets, as functions of bytes: the targets in `fuzz/` and the property tests share them.

use std::sync::{Arc, Mutex};

use kitport::ChatReader;
use kitport::bubblepaw::Options;
use kitport::model::{EventKind, Seq};
use kitport::rpc::framing::{Frame, Framer, KEPT_CAPACITY_BYTES, OVERSIZE_HEAD_BYTES};
use kitport::rpc::head::read_head;
use serde_json::{Value, json};

use crate::byte_host::{ByteHost, History, SESSION, Serving, event, event_line};

/// A frame that is kept.
#[derive(Debug, PartialEq, Eq)]
enum Owned {
    Line(Vec<u8>),
    Oversize(Vec<u8>),
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Owned::Line(line.to_vec()),
            Frame::Large(line) => Owned::Line(line),
            Frame::Oversize { head } => Owned::Oversize(head.to_vec()),
        }
    }
}

/// Any bytes in any pieces: the frames are those of the definition, and an unfinished line holds no more than its limit.
///
/// The first two bytes choose the limit, the third how the rest is cut. With the highest bit of the limit, lines are large:
/// the first few of one byte stand for many.
pub fn framing(data: &[u8]) {
    let [low, high, cut, bytes @ ..] = data else { return };
    let large = high & 0x80 != 0;
    let scale = if large { KEPT_CAPACITY_BYTES / 4096 } else { 1 };
    let limit = usize::from(u16::from_le_bytes([*low, *high])) % 8192 * scale;
    let stretched;
    let bytes = match large {
        true => {
            stretched = stretch(bytes);
            &stretched
        }
        false => bytes,
    };
    let mut framer = Framer::new(limit);
    let mut frames = Vec::new();
    let (mut rest, mut random) = (bytes, u32::from(*cut) | 1);
    while !rest.is_empty() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = ((random >> 20) as usize % (usize::from(*cut) + 1) * scale + 1).min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        let mut found = framer.feed(piece);
        while let Some(frame) = found.next() {
            frames.push(Owned::from(frame));
        }
        let most = limit.max(OVERSIZE_HEAD_BYTES) * 2 + 64;
        assert!(framer.held_bytes() <= most, "{} bytes are held at a limit of {limit}", framer.held_bytes());
    }
    frames.extend(framer.finish().map(Owned::from));
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let wanted: Vec<Owned> = lines
        .into_iter()
        .map(|line| match line.len() > limit {
            true => Owned::Oversize(line[..line.len().min(OVERSIZE_HEAD_BYTES)].to_vec()),
            false => Owned::Line(line.to_vec()),
        })
        .collect();
    assert_eq!(frames, wanted);
    for frame in &frames {
        // Whatever stands there, reading it only tells what it is.
        match frame {
            Owned::Line(bytes) | Owned::Oversize(bytes) => drop(read_head(bytes)),
        }
    }
}

/// Makes the first few bytes of one kind long.
fn stretch(bytes: &[u8]) -> Vec<u8> {
    const LONG: u8 = b'L';
    const MOST: usize = 3;
    let mut out = Vec::new();
    let mut left = MOST;
    for byte in bytes {
        let many = *byte == LONG && left > 0;
        left -= usize::from(many);
        out.resize(out.len() + if many { KEPT_CAPACITY_BYTES + 1 } else { 1 }, *byte);
    }
    out
}

/// Any lines of a host as they come, then events of the contract's types with any content: nothing panics, durable
/// sequences rise, live and replayed events are the same, and the connection lives on.
///
/// Lines that begin with a digit are made into events of a type; the others are written as they are.
pub async fn projection(data: &[u8]) {
    // An event is at most as large as the data, which is small.
    let (backend, host) = ByteHost::connect(Options::default(), kitport::bubblepaw::wire::feature::ALL).await;
    let history = Arc::new(Mutex::new(History::default()));
    let host = host.serve(history.clone());
    let live = backend.events(&SESSION.into(), Some(Seq::START));
    let watching = backend.watch_all();
    for line in data.split(|byte| *byte == b'\n') {
        match line {
            [kind @ b'0'..=b'9', rest @ ..] => host_event(&host, &history, usize::from(kind - b'0'), rest),
            // A raw event of that session would be live and not in the history: a host that lies.
            raw if contains(raw, SESSION_FIELD) => {}
            raw => host.write([raw, b"\n"].concat()),
        }
    }
    // A host may say that something was lost at any time.
    host.write(format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"events.gap\",\"params\":{{\"session_id\":\"{SESSION}\"}}}}\n"
    ));
    let last = {
        let mut history = history.lock().expect("nothing panics while it answers");
        let last = history.newest + 1;
        let end = event(last, "run_finished", json!({"status": "completed", "text": "the end"}));
        history.push(&end);
        host.event(&end);
        Seq(last * 16 + 1)
    };
    let seen = read_to(&live, last).await;
    let replayed = read_to(&backend.events(&SESSION.into(), Some(Seq::START)), last).await;
    assert_eq!(seen, replayed, "live and replayed");
    backend.load_chat(&SESSION.into()).await.expect("the connection lives on");
    drop(watching.take(100_000));
    backend.close().await;
}

const SESSION_FIELD: &[u8] = b"\"method\":\"event";

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The durable events up to a sequence.
async fn read_to(events: &kitport::EventStream, last: Seq) -> Vec<kitport::model::Event> {
    let mut seen: Vec<kitport::model::Event> = Vec::new();
    loop {
        let next = tokio::time::timeout(crate::NEVER, events.next()).await.expect("the stream goes on");
        let event = next.expect("the stream goes on").expect("no content ends a stream");
        if let EventKind::Gap(gap) = &event.kind {
            assert!(!gap.lost, "the history is whole: {gap:?}");
        }
        // Its JSON form is what the bindings get.
        serde_json::to_string(&event).expect("an event has a JSON form");
        if event.durable {
            assert!(
                seen.last().is_none_or(|before| before.seq < event.seq),
                "{:?} came after {:?}",
                event.seq,
                seen.last()
            );
            let is_last = event.seq >= last;
            seen.push(event);
            if is_last {
                return seen;
            }
        }
    }
}

/// One event of a type: with the content as its data where it is JSON, as its text or result else.
fn host_event(host: &Serving, history: &Mutex<History>, kind: usize, content: &[u8]) {
    let (types, content) = match content.split_first() {
        Some((choice, content)) => (usize::from(*choice) + kind, content),
        None => (kind, content),
    };
    let known = kitport::bubblepaw::wire::EventData::TYPES;
    let event_type = known[types % known.len()];
    let text = String::from_utf8_lossy(content);
    let data: Value = serde_json::from_slice(content).unwrap_or_else(|_| {
        json!({"text": text, "status": text, "call_id": text, "result": text, "state": text, "child": text, "key": "todo",
            "value": [{"text": text, "status": text}], "call": {"call_id": text, "name": text, "arguments": {}},
            "approval_id": text, "event_id": text, "kind": text, "trigger": text, "wait": {"reason": text},
            "output": {"output_id": text, "kind": "text", "text": text},
            "approval": {"approval_id": text, "session_id": SESSION, "state": text}})
    });
    let mut history = history.lock().expect("nothing panics while it answers");
    let transient = matches!(event_type, "text_delta" | "paragraph" | "model_request") || kind % 4 == 3;
    let run = format!("r{}", kind % 3);
    if transient {
        host.event(
            &json!({"sequence": history.newest, "type": event_type, "data": data, "run_id": run, "durable": false}),
        );
        return;
    }
    let sequence = history.newest + 1 + (kind as u64 % 2);
    let event = json!({"sequence": sequence, "type": event_type, "data": data, "run_id": run});
    history.push(&event);
    match kind {
        // It may come twice, and it may be lost, which the host says.
        8 => {
            host.write(event_line(&event));
            host.write(event_line(&event));
        }
        9 => host.write(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"events.gap\",\"params\":{{\"session_id\":\"{SESSION}\",\"last_sequence\":{sequence}}}}}\n"
        )),
        _ => host.event(&event),
    }
}
