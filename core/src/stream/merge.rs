//! What a queue may do with an item when the reader is behind.
//!
//! One table for all event kinds: a new kind must be placed here, the compiler sees to it.

use std::hash::Hash;

use serde_json::Value;

use crate::model::{Chat, ConnectionState, Event, EventKind, Item};

/// How much an item weighs against the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weight<K> {
    /// It must be delivered as it is; when there is no room the stream catches up by replay.
    Whole,
    /// A piece of text, or of what is only shown: adjacent pieces of one text become one; when there is no room it is
    /// dropped, and what is stored is restated later.
    Piece,
    /// The newest value of something: the newer one replaces the older one, and the newest is never lost.
    State(K),
}

/// An item of a stream, as the queue sees it.
pub trait Merge: Send + Sized + 'static {
    /// What a state item tells the newest value of.
    type Key: Eq + Hash + Send;

    /// What may be done with it.
    fn weight(&self) -> Weight<Self::Key>;

    /// About how many bytes it holds.
    fn bytes(&self) -> usize;

    /// Appends `next` where the two are adjacent pieces of one text; gives it back where not.
    fn absorb(&mut self, next: Self) -> Option<Self>;
}

/// What a transient state event tells the newest value of: its kind, and the id it is keyed by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StateKey {
    chat: crate::model::ChatId,
    kind: &'static str,
    id: String,
}

impl Merge for Event {
    type Key = StateKey;

    fn weight(&self) -> Weight<StateKey> {
        if self.durable {
            return Weight::Whole;
        }
        let id = match &self.kind {
            EventKind::MessageDelta(_)
            | EventKind::ThinkingDelta(_)
            | EventKind::ToolOutput(_)
            | EventKind::JobOutput(_)
            // Nested ones: each has an id of its own, so that nothing would ever replace them, and they are only shown.
            | EventKind::ToolStarted(_)
            | EventKind::ToolFinished(_) => {
                return Weight::Piece;
            }
            EventKind::ChatRenamed(_)
            | EventKind::ChatArchived(_)
            | EventKind::ChatSettings(_)
            | EventKind::ChatWorkspace(_)
            | EventKind::PlanUpdated(_)
            | EventKind::QuestionAsked(_)
            | EventKind::QuestionResolved(_)
            | EventKind::QueueUpdated(_)
            | EventKind::ContextChanged(_)
            | EventKind::UsageUpdated(_) => String::new(),
            // A run's newest status counts, and the words tell which it is.
            EventKind::RunStarted(_) | EventKind::RunWaiting(_) | EventKind::RunFinished(_) => {
                self.run.as_deref().unwrap_or_default().to_owned()
            }
            EventKind::MessageUser(e) => e.message.id().to_string(),
            EventKind::MessageSystem(e) => e.message.id().to_string(),
            EventKind::MessageAssistant(e) => e.message_id.to_string(),
            EventKind::EditApplied(e) => e.edit.id().to_string(),
            EventKind::EditUndone(e) => e.edit_id.to_string(),
            EventKind::ApprovalRequested(e) => e.approval.id.to_string(),
            EventKind::ApprovalResolved(e) => e.approval_id.to_string(),
            EventKind::ChildSpawned(e) => e.child.id.to_string(),
            EventKind::ChildQuestionAsked(e) => format!("{}/{}", e.child_id, e.question.id),
            EventKind::ChildQuestionResolved(e) => format!("{}/{}", e.child_id, e.question_id),
            EventKind::ChildFinished(e) => e.child_id.to_string(),
            EventKind::CompactionUpdated(e) => e.compaction.id.clone(),
            EventKind::JobStarted(e) => e.job.id.to_string(),
            EventKind::JobFinished(e) => e.job_id.to_string(),
            // A gap that lost something and one that didn't are two things to say.
            EventKind::Gap(e) => format!("{}/{}", e.reason, e.lost),
        };
        Weight::State(StateKey { chat: self.chat.clone(), kind: self.kind.name(), id })
    }

    fn bytes(&self) -> usize {
        size_of::<Event>() + kind_bytes(&self.kind)
    }

    fn absorb(&mut self, next: Self) -> Option<Self> {
        if self.chat != next.chat || self.run != next.run || self.durable || next.durable {
            return Some(next);
        }
        let seq = next.seq;
        let adjacent = match (&mut self.kind, &next.kind) {
            (EventKind::MessageDelta(a), EventKind::MessageDelta(b)) => {
                a.message_id == b.message_id && extend(&mut a.text, a.offset, &b.text, b.offset)
            }
            (EventKind::ThinkingDelta(a), EventKind::ThinkingDelta(b)) => {
                extend(&mut a.text, a.offset, &b.text, b.offset)
            }
            (EventKind::ToolOutput(a), EventKind::ToolOutput(b)) => {
                a.call_id == b.call_id && extend(&mut a.text, a.offset, &b.text, b.offset)
            }
            (EventKind::JobOutput(a), EventKind::JobOutput(b)) => {
                a.job_id == b.job_id && extend(&mut a.text, a.offset, &b.text, b.offset)
            }
            _ => false,
        };
        if !adjacent {
            return Some(next);
        }
        self.seq = seq;
        None
    }
}

/// Appends `next` to `text` where it begins at its end, in UTF-16 units. Long texts are left as they are: measuring
/// them again for every piece would cost their length each time.
fn extend(text: &mut String, offset: u64, next: &str, next_offset: u64) -> bool {
    const MAX_MERGED_BYTES: usize = 4096;
    if text.len() > MAX_MERGED_BYTES || offset + utf16_len(text) != next_offset {
        return false;
    }
    text.push_str(next);
    true
}

/// The length in UTF-16 units.
pub(crate) fn utf16_len(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    // One unit a character, two for those beyond the basic plane, whose first byte alone is 0xF0 or more.
    text.bytes().map(|byte| u64::from((byte & 0xC0) != 0x80) + u64::from(byte >= 0xF0)).sum()
}

fn kind_bytes(kind: &EventKind) -> usize {
    match kind {
        EventKind::MessageDelta(e) => e.text.len(),
        EventKind::ThinkingDelta(e) => e.text.len(),
        EventKind::ToolOutput(e) => e.text.len(),
        EventKind::JobOutput(e) => e.text.len(),
        EventKind::MessageAssistant(e) => e.text.len(),
        EventKind::MessageUser(e) => item_bytes(&e.message),
        EventKind::MessageSystem(e) => item_bytes(&e.message),
        EventKind::ToolStarted(e) => item_bytes(&e.call),
        EventKind::ToolFinished(e) => e.result.as_ref().map_or(0, value_bytes),
        EventKind::EditApplied(e) => item_bytes(&e.edit),
        EventKind::ApprovalRequested(e) => e.approval.arguments.as_ref().map_or(0, value_bytes),
        EventKind::PlanUpdated(e) => e.steps.iter().map(|step| size_of_val(step) + step.text.len()).sum(),
        EventKind::QueueUpdated(e) => e.inputs.iter().map(|input| size_of_val(input) + input.text.len()).sum(),
        EventKind::QuestionAsked(e) => e.question.text.len(),
        EventKind::ChildQuestionAsked(e) => e.question.text.len(),
        EventKind::ChildFinished(e) => e.result.as_ref().map_or(0, String::len),
        EventKind::ContextChanged(e) => e.view.items.iter().map(|item| size_of_val(item) + item.id.len()).sum(),
        // Small ones: what the struct itself holds is near enough.
        EventKind::ChatRenamed(_)
        | EventKind::ChatArchived(_)
        | EventKind::ChatSettings(_)
        | EventKind::ChatWorkspace(_)
        | EventKind::RunStarted(_)
        | EventKind::RunWaiting(_)
        | EventKind::RunFinished(_)
        | EventKind::EditUndone(_)
        | EventKind::ApprovalResolved(_)
        | EventKind::QuestionResolved(_)
        | EventKind::ChildSpawned(_)
        | EventKind::ChildQuestionResolved(_)
        | EventKind::CompactionUpdated(_)
        | EventKind::JobStarted(_)
        | EventKind::JobFinished(_)
        | EventKind::UsageUpdated(_)
        | EventKind::Gap(_) => 0,
    }
}

fn item_bytes(item: &Item) -> usize {
    match item {
        Item::UserMessage(m) | Item::AssistantMessage(m) | Item::SystemMessage(m) => m.text.len(),
        Item::OtherMessage(m) => m.text.len(),
        Item::ToolCall(call) => {
            call.arguments.as_ref().map_or(0, value_bytes) + call.result.as_ref().map_or(0, value_bytes)
        }
        Item::Edit(edit) => edit.path.len(),
    }
}

pub(crate) fn value_bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_bytes).sum(),
            Value::Object(entries) => entries.iter().map(|(key, value)| key.len() + value_bytes(value)).sum(),
            _ => 0,
        }
}

impl Merge for Chat {
    type Key = ();
    fn weight(&self) -> Weight<()> {
        Weight::Whole
    }
    fn bytes(&self) -> usize {
        size_of::<Chat>() + self.title.len()
    }
    fn absorb(&mut self, next: Self) -> Option<Self> {
        Some(next)
    }
}

impl Merge for ConnectionState {
    type Key = ();
    fn weight(&self) -> Weight<()> {
        Weight::State(())
    }
    fn bytes(&self) -> usize {
        size_of::<ConnectionState>()
    }
    fn absorb(&mut self, next: Self) -> Option<Self> {
        Some(next)
    }
}
