//! What a feeder has to tell, made from a few numbers, so that both sides of a figure get the very same bytes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use anyhow::Result;
use kitport::bubblepaw::wire::{EventData, HarnessEvent, Message, ToolCall};
use kitport::model::Time;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Everything was written before the reader came.
pub(super) const HISTORY_FROM_THE_START: usize = usize::MAX;

/// Deltas of a paragraph, as a model writes them.
const DELTAS_A_PARAGRAPH: u64 = 80;

/// Events that a chat gives in a row when several chats are busy.
const EVENTS_IN_A_ROW: u64 = 8;

/// What a feeder tells.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Script {
    /// Nothing but answers.
    Answers,
    /// A reply in small pieces.
    Deltas { deltas: u64 },
    /// Tool calls and their results.
    Tools { events: u64 },
    /// Several chats at once, each with pieces of text and tools.
    Chats { chats: u64, events_each: u64 },
    /// A chat with messages.
    Messages { messages: u64 },
    /// A history of events.
    History { events: u64 },
}

impl Script {
    /// How many events a blast has, those of its frame among them.
    pub(crate) fn events(&self) -> u64 {
        match *self {
            // Paragraphs confirm what the deltas said.
            Script::Deltas { deltas } => deltas + deltas / DELTAS_A_PARAGRAPH + 3,
            Script::Tools { events } => events + 2,
            Script::Chats { chats, events_each } => chats * (events_each + 3),
            Script::History { events } => events,
            Script::Answers | Script::Messages { .. } => 0,
        }
    }

    /// What each chat's reader must have read, if it read all: durable kit events, and bytes of text.
    pub(crate) fn expected(&self) -> Expected {
        match *self {
            Script::Deltas { deltas } => Expected { durable: 2, text: (0..deltas).map(|n| word(n).len() as u64).sum() },
            Script::Tools { events } => Expected { durable: events + 2, text: 0 },
            Script::Chats { events_each, .. } => {
                let text = (0..events_each).filter(|n| n % 4 != 3).map(|n| word(n).len() as u64).sum();
                Expected { durable: 2 + events_each / 4, text }
            }
            // Each run's end gives its text and its end.
            Script::History { events } => Expected { durable: events + events / RUN_EVENTS, text: 0 },
            Script::Answers | Script::Messages { .. } => Expected::default(),
        }
    }

    /// Makes the bytes.
    pub(super) fn prepare(&self) -> Result<Prepared> {
        let mut prepared = Prepared::default();
        match *self {
            Script::Answers => {}
            Script::Deltas { deltas } => {
                let mut chat = Chat::new(0);
                chat.begin(&mut prepared)?;
                let mut paragraph = String::new();
                for nth in 0..deltas {
                    let text = word(nth);
                    paragraph.push_str(text);
                    chat.transient(&mut prepared, EventData::TextDelta { text: text.to_owned() })?;
                    if nth % DELTAS_A_PARAGRAPH == DELTAS_A_PARAGRAPH - 1 {
                        let text = std::mem::take(&mut paragraph);
                        chat.transient(&mut prepared, EventData::Paragraph { text })?;
                    }
                }
                chat.end(&mut prepared)?;
            }
            Script::Tools { events } => {
                let mut chat = Chat::new(0);
                chat.durable(&mut prepared, EventData::RunStarted { model: None })?;
                for nth in 0..events {
                    chat.durable(&mut prepared, tool(nth))?;
                }
                chat.end(&mut prepared)?;
            }
            Script::Chats { chats, events_each } => {
                let mut all: Vec<_> = (0..chats).map(Chat::new).collect();
                for chat in &mut all {
                    chat.begin(&mut prepared)?;
                }
                for first in (0..events_each).step_by(EVENTS_IN_A_ROW as usize) {
                    for chat in &mut all {
                        for nth in first..(first + EVENTS_IN_A_ROW).min(events_each) {
                            match nth % 4 {
                                3 => chat.durable(&mut prepared, tool(nth / 4))?,
                                _ => {
                                    let text = word(nth).to_owned();
                                    chat.transient(&mut prepared, EventData::TextDelta { text })?;
                                }
                            }
                        }
                    }
                }
                for chat in &mut all {
                    chat.end(&mut prepared)?;
                }
            }
            Script::Messages { messages } => prepared.messages = (0..messages).map(message).collect(),
            Script::History { events } => {
                prepared.is_history = true;
                let mut chat = Chat::new(0);
                for nth in 0..events {
                    let data = match nth % RUN_EVENTS {
                        0 => EventData::RunStarted { model: Some("maker/model".to_owned()) },
                        last if last == RUN_EVENTS - 1 => finished(Some(PROSE.to_owned())),
                        nth => tool(nth - 1),
                    };
                    chat.durable(&mut prepared, data)?;
                }
            }
        }
        prepared.state = serde_json::to_string(&prepared.messages)?;
        prepared.messages = Vec::new();
        Ok(prepared)
    }
}

/// What a reader must have read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) durable: u64,
    pub(crate) text: u64,
}

/// Events of one run of a history.
const RUN_EVENTS: u64 = 50;

const PROSE: &str = "The parser reads each line once and hands it on. Nothing is kept that nobody asks for, so what \
                     a long reply costs is its own length. — That’s all.";

/// A piece of a reply, as models cut them.
fn word(nth: u64) -> &'static str {
    const WORDS: &[&str] =
        &["The", " parser", " reads", " each", " line", " once", ",", " naïve", " or", " not", ".\n\n"];
    WORDS[(nth % WORDS.len() as u64) as usize]
}

/// Calls and their results, in turn.
fn tool(nth: u64) -> EventData {
    let call_id = format!("call-{}", nth / 2).into();
    match nth % 2 {
        0 => {
            let arguments = json!({"path": "src/reader/line.rs", "first_line": nth, "lines": 200, "all": false});
            EventData::ToolStarted { call: ToolCall { call_id, name: "read_file".to_owned(), arguments } }
        }
        _ => EventData::ToolFinished { call_id, result: json!({"text": PROSE, "lines": 7}), is_error: Some(false) },
    }
}

fn finished(text: Option<String>) -> EventData {
    EventData::RunFinished { status: "completed".to_owned(), error: None, text }
}

fn time() -> Time {
    "2026-01-02T03:04:05.678Z".parse().expect("it is a time")
}

/// A message of a long chat: a person asks, the agent calls a tool, the tool answers, the agent replies.
fn message(nth: u64) -> Message {
    let run = nth / 4;
    let mut message = Message {
        message_id: format!("message-{nth}").into(),
        role: "assistant".to_owned(),
        text: PROSE.to_owned(),
        created_at: Some(time()),
        run_id: Some(format!("run-{run}").into()),
        tool_calls: None,
        tool_result: None,
    };
    let call_id = format!("call-{run}").into();
    match nth % 4 {
        0 => message.role = "user".to_owned(),
        1 => {
            let arguments = json!({"path": "src/reader/line.rs", "first_line": nth});
            message.text = String::new();
            message.tool_calls = Some(vec![ToolCall { call_id, name: "read_file".to_owned(), arguments }]);
        }
        2 => {
            message.role = "tool".to_owned();
            message.text = String::new();
            let result = json!({"text": PROSE, "lines": 7});
            message.tool_result = Some(kitport::bubblepaw::wire::ToolResult { call_id, result, is_error: None });
        }
        _ => {}
    }
    message
}

/// A chat whose events are written.
struct Chat {
    id: String,
    sequence: u64,
}

impl Chat {
    fn new(nth: u64) -> Self {
        Chat { id: format!("chat-{nth}"), sequence: 0 }
    }

    fn begin(&mut self, prepared: &mut Prepared) -> Result<()> {
        self.durable(prepared, EventData::RunStarted { model: None })?;
        self.transient(prepared, EventData::ModelRequest {})
    }

    fn end(&mut self, prepared: &mut Prepared) -> Result<()> {
        self.durable(prepared, finished(None))
    }

    fn durable(&mut self, prepared: &mut Prepared, data: EventData) -> Result<()> {
        self.sequence += 1;
        let event = self.event(data, true);
        let json = prepared.line(&self.id, &event)?;
        let kept = Kept { sequence: self.sequence, json, end: prepared.bytes.len() };
        prepared.kept.entry(self.id.clone()).or_default().push(kept);
        Ok(())
    }

    fn transient(&mut self, prepared: &mut Prepared, data: EventData) -> Result<()> {
        let event = self.event(data, false);
        prepared.line(&self.id, &event).map(|_| ())
    }

    fn event(&self, data: EventData, durable: bool) -> HarnessEvent {
        let at = durable.then(time);
        HarnessEvent { sequence: self.sequence, run_id: Some("run".into()), at, durable, data }
    }
}

/// A durable event in the script.
struct Kept {
    sequence: u64,
    /// Where the event stands.
    json: Range<usize>,
    /// Where its line ends.
    end: usize,
}

/// The bytes of a script, and what requests are answered from.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) bytes: Vec<u8>,
    /// Whether the events are a history that is only read back.
    pub(super) is_history: bool,
    kept: HashMap<String, Vec<Kept>>,
    messages: Vec<Message>,
    state: String,
}

impl Prepared {
    /// Writes a notification, and tells where the event stands in it.
    fn line(&mut self, chat: &str, event: &HarnessEvent) -> Result<Range<usize>> {
        let bytes = &mut self.bytes;
        write!(bytes, r#"{{"jsonrpc":"2.0","method":"event","params":{{"session_id":"{chat}","event":"#)?;
        let from = bytes.len();
        serde_json::to_writer(&mut *bytes, event)?;
        let json = from..bytes.len();
        bytes.extend_from_slice(b"}}\n");
        Ok(json)
    }

    /// The durable events of a chat that were sent.
    fn sent(&self, chat: &str, written: usize) -> &[Kept] {
        let kept = self.kept.get(chat).map_or([].as_slice(), Vec::as_slice);
        &kept[..kept.partition_point(|kept| kept.end <= written)]
    }

    /// A session's state, as of what was written: what stands before the messages, these, and what stands behind.
    pub(super) fn state(&self, chat: &str, written: usize) -> [Cow<'_, str>; 3] {
        let sequence = self.sent(chat, written).last().map_or(0, |last| last.sequence);
        let at = time();
        let head = format!(
            r#"{{"session":{{"session_id":"{chat}","title":"A chat","created_at":"{at}","updated_at":"{at}"}},"sequence":{sequence},"messages":"#
        );
        let tail = r#","runs":[],"inputs":[],"outputs":[],"todo":[]}"#;
        [head.into(), self.state.as_str().into(), tail.into()]
    }

    /// A page of a session's events.
    pub(super) fn page(&self, chat: &str, written: usize, after: u64, limit: usize, line: &mut Vec<u8>) -> Result<()> {
        let sent = self.sent(chat, written);
        let behind = &sent[sent.partition_point(|kept| kept.sequence <= after)..];
        let page = &behind[..behind.len().min(limit)];
        line.extend_from_slice(br#"{"events":["#);
        for (nth, kept) in page.iter().enumerate() {
            if nth > 0 {
                line.push(b',');
            }
            line.extend_from_slice(&self.bytes[kept.json.clone()]);
        }
        write!(line, r#"],"has_more":{}}}"#, page.len() < behind.len())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_the_events_that_it_says() {
        for script in [
            Script::Deltas { deltas: 1000 },
            Script::Tools { events: 10 },
            Script::Chats { chats: 3, events_each: 20 },
            Script::History { events: 100 },
        ] {
            let prepared = script.prepare().unwrap();
            let lines = prepared.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            assert_eq!(lines, script.events(), "{script:?}");
        }
    }

    #[test]
    fn answers_are_as_of_what_was_written() {
        let prepared = Script::Tools { events: 4 }.prepare().unwrap();
        let third = prepared.kept["chat-0"][2].end;
        let mut line = Vec::new();
        prepared.page("chat-0", third, 1, 10, &mut line).unwrap();
        let page: kitport::bubblepaw::wire::EventsAfterResult = serde_json::from_slice(&line).unwrap();
        assert_eq!(page.events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [2, 3]);
        assert!(!page.has_more);
        line.clear();
        prepared.page("chat-0", HISTORY_FROM_THE_START, 0, 2, &mut line).unwrap();
        let page: kitport::bubblepaw::wire::EventsAfterResult = serde_json::from_slice(&line).unwrap();
        assert!(page.events.len() == 2 && page.has_more);
        let state = prepared.state("chat-0", third).concat();
        let state: kitport::bubblepaw::wire::SessionStateResult = serde_json::from_str(&state).unwrap();
        assert_eq!(state.sequence, 3);
    }
}
