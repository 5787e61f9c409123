//! A session's state as a snapshot: canonical messages become items, tool results join their calls. Pure.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::RandomState;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{convert, sequence, wire};
use crate::model::{Approval, ApprovalState, ChatSnapshot, Item, ItemId, Message, Settings, Workspace};

/// A snapshot, and the approvals in all states, which a diff needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    pub(crate) host_sequence: u64,
    pub(crate) snapshot: ChatSnapshot,
    pub(crate) approvals: Vec<Approval>,
}

pub(crate) fn view(
    state: wire::SessionStateResult<Items>,
    approvals: Vec<wire::Approval>,
    workspace: Option<Workspace>,
) -> View {
    let chat_id = state.session.session_id.clone();
    let mut chat = convert::chat(state.session);
    let runs: Vec<_> = state.runs.into_iter().map(convert::run).collect();
    chat.run_status = runs.last().map(|run| run.status.clone());
    let model = runs.iter().rev().find_map(|run| run.model.clone()).or_else(|| chat.model.clone());
    let approvals: Vec<_> = approvals.into_iter().filter(|a| a.session_id == chat_id).map(convert::approval).collect();
    let pending = approvals.iter().filter(|a| a.state == ApprovalState::Pending).cloned().collect();
    let mut items = state.messages.into_vec();
    place_outputs(&mut items, state.outputs);
    let snapshot = ChatSnapshot {
        chat,
        seq: sequence::kit_final(state.sequence),
        items,
        runs,
        queue: state.inputs.into_iter().map(convert::input).collect(),
        plan: state.todo.into_iter().map(convert::plan_step).collect(),
        approvals: pending,
        question: state.question.map(convert::question),
        children: state.children.unwrap_or_default().into_iter().map(convert::child).collect(),
        usage: state.usage.map(convert::usage),
        settings: Settings { model, profile: None },
        workspace,
    };
    View { host_sequence: state.sequence, snapshot, approvals }
}

/// The items of canonical messages, in order.
///
/// Read as such from the wire, they are made while the messages are read, so that a long chat is never there twice.
#[derive(Debug, Default)]
pub(crate) struct Items {
    items: Vec<Item>,
    calls: HashMap<ItemId, usize, RandomState>,
}

impl Items {
    pub(crate) fn into_vec(self) -> Vec<Item> {
        self.items
    }

    fn add(&mut self, message: wire::Message) {
        let wire::Message { message_id, role, text, created_at, run_id, tool_calls, tool_result } = message;
        if let Some(result) = tool_result {
            let call = self.calls.get(&result.call_id).and_then(|at| self.items.get_mut(*at));
            if let Some(Item::ToolCall(call)) = call {
                call.status = convert::ended_status(result.is_error);
                call.result = convert::result(result.result);
                call.is_error = result.is_error;
                return;
            }
            let text = if text.is_empty() { plain(&result.result) } else { text };
            let line = Message { id: message_id, text, run: run_id, created_at, provisional: false };
            self.items.push(convert::message("tool", line));
            return;
        }
        let tool_calls = tool_calls.unwrap_or_default();
        // An assistant's message that only calls tools has no text to show.
        if !text.is_empty() || tool_calls.is_empty() {
            let line = Message { id: message_id, text, run: run_id.clone(), created_at, provisional: false };
            self.items.push(convert::message(&role, line));
        }
        for call in tool_calls {
            self.calls.insert(call.call_id.clone(), self.items.len());
            self.items.push(Item::ToolCall(convert::tool_call(call, run_id.clone(), true)));
        }
    }
}

impl Extend<wire::Message> for Items {
    fn extend<I: IntoIterator<Item = wire::Message>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.add(message));
    }
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<Items, A::Error> {
                let mut items = Items::default();
                while let Some(message) = messages.next_element()? {
                    items.add(message);
                }
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Messages)
    }
}

/// A result as a line: a string as it is, anything else as its JSON.
fn plain(result: &serde_json::Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}

/// Text publications stand behind what was there when they were made: by their time, else behind their run, else last.
fn place_outputs(items: &mut Vec<Item>, outputs: Vec<wire::Output>) {
    for output in outputs.into_iter().filter_map(convert::output) {
        let by_time = output
            .created_at
            .and_then(|at| items.iter().rposition(|item| created_at(item).is_some_and(|earlier| earlier <= at)));
        let by_run = || {
            let run = output.run.as_ref()?;
            items.iter().rposition(|item| item.run() == Some(run))
        };
        // Tool calls have no time of their own: they stay with the message that made them.
        let place = by_time
            .map(|at| at + 1 + items[at + 1..].iter().take_while(|item| matches!(item, Item::ToolCall(_))).count());
        let place = place.or_else(|| by_run().map(|at| at + 1)).unwrap_or(items.len());
        items.insert(place, Item::SystemMessage(output));
    }
}

fn created_at(item: &Item) -> Option<crate::model::Time> {
    match item {
        Item::UserMessage(m) | Item::AssistantMessage(m) | Item::SystemMessage(m) => m.created_at,
        Item::OtherMessage(m) => m.created_at,
        Item::ToolCall(_) | Item::Edit(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(state: serde_json::Value) -> View {
        view(serde_json::from_value(state).unwrap(), Vec::new(), None)
    }

    fn base() -> serde_json::Value {
        json!({
            "session": {"session_id": "s", "title": "t", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "model": "p/session"},
            "sequence": 3, "messages": [], "runs": [], "inputs": [], "outputs": [], "todo": []
        })
    }

    #[test]
    fn tool_results_join_their_calls_and_orphans_are_system_lines() {
        let mut state = base();
        state["messages"] = json!([
            {"message_id": "u", "role": "user", "text": "hi", "run_id": "r"},
            {"message_id": "a", "role": "assistant", "text": "", "run_id": "r", "tool_calls": [{"call_id": "c", "name": "n", "arguments": {}}, {"call_id": "open", "name": "n", "arguments": {}}]},
            {"message_id": "t", "role": "tool", "text": "", "run_id": "r", "tool_result": {"call_id": "c", "result": {"x": 1}, "is_error": true}},
            {"message_id": "o", "role": "tool", "text": "", "tool_result": {"call_id": "gone", "result": "text"}},
            {"message_id": "w", "role": "wizard", "text": "poof"},
        ]);
        let items = serde_json::to_value(of(state).snapshot.items).unwrap();
        assert_eq!(
            items,
            json!([
                {"kind": "user_message", "id": "u", "text": "hi", "run": "r", "provisional": false},
                {"kind": "tool_call", "id": "c", "name": "n", "arguments": {}, "status": "failed", "result": {"x": 1}, "isError": true, "run": "r", "durable": true},
                {"kind": "tool_call", "id": "open", "name": "n", "arguments": {}, "status": "running", "run": "r", "durable": true},
                {"kind": "system_message", "id": "o", "text": "text", "provisional": false},
                {"kind": "other_message", "role": "wizard", "id": "w", "text": "poof", "provisional": false},
            ])
        );
    }

    #[test]
    fn text_outputs_stand_where_they_were_made_and_others_are_not_shown() {
        let mut state = base();
        state["messages"] = json!([
            {"message_id": "u", "role": "user", "text": "1", "run_id": "r", "created_at": "2026-01-01T00:00:01Z"},
            {"message_id": "v", "role": "user", "text": "2", "created_at": "2026-01-01T00:00:05Z"},
        ]);
        state["outputs"] = json!([
            {"output_id": "timed", "kind": "text", "text": "x", "created_at": "2026-01-01T00:00:02Z"},
            {"output_id": "run", "kind": "text", "text": "y", "run_id": "r"},
            {"output_id": "last", "kind": "text", "text": "z"},
            {"output_id": "f", "kind": "file"}, {"output_id": "n", "kind": "brand_new", "text": "?"},
        ]);
        let ids: Vec<_> = of(state).snapshot.items.iter().map(|item| item.id().to_string()).collect();
        assert_eq!(ids, ["u", "run", "timed", "v", "last"]);
    }

    #[test]
    fn the_model_is_the_newest_runs_then_the_sessions() {
        assert_eq!(of(base()).snapshot.settings.model.as_deref(), Some("p/session"));
        let mut state = base();
        state["runs"] =
            json!([{"run_id": "1", "status": "completed", "model": "p/one"}, {"run_id": "2", "status": "puzzled"}]);
        let snapshot = of(state).snapshot;
        assert_eq!(snapshot.settings.model.as_deref(), Some("p/one"));
        assert_eq!(snapshot.chat.run_status.unwrap().as_str(), "puzzled");
        assert_eq!(snapshot.seq.0, 3 * 16 + 15);
    }
}
