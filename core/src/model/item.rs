//! Items: what a chat shows, in order.

use super::macros::open_enum;
use super::{ItemId, RunId, Seq, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One item of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Item {
    /// What the user said.
    UserMessage(Message),
    /// What the agent said.
    AssistantMessage(Message),
    /// A line of the host's own.
    SystemMessage(Message),
    /// A message of a role that this version doesn't know.
    OtherMessage(OtherMessage),
    /// A tool that the agent called.
    ToolCall(ToolCall),
    /// A change of a file.
    Edit(EditItem),
}

impl Item {
    /// Its id, unique in the chat.
    pub fn id(&self) -> &ItemId {
        match self {
            Item::UserMessage(m) | Item::AssistantMessage(m) | Item::SystemMessage(m) => &m.id,
            Item::OtherMessage(m) => &m.id,
            Item::ToolCall(call) => &call.id,
            Item::Edit(edit) => &edit.id,
        }
    }

    /// The run it belongs to.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Item::UserMessage(m) | Item::AssistantMessage(m) | Item::SystemMessage(m) => m.run.as_ref(),
            Item::OtherMessage(m) => m.run.as_ref(),
            Item::ToolCall(call) => call.run.as_ref(),
            Item::Edit(edit) => edit.run.as_ref(),
        }
    }
}

open_enum! {
    /// Where a tool call is.
    ToolStatus {
        /// It works, or its end is not known.
        Running = "running",
        /// It ended.
        Done = "done",
        /// It ended with an error.
        Failed = "failed",
    }
}

open_enum! {
    /// Where an edit is.
    EditState {
        /// It is in the file.
        Applied = "applied",
        /// It was taken back.
        Undone = "undone",
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id; `provisional:…` until the host's own is known.
    pub id: ItemId,
    /// Its text.
    pub text: String,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub created_at: Option<Time>,
    /// Whether the text is still being written, or not yet confirmed by the host.
    pub provisional: bool,
}

/// A message of a role that this version doesn't know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OtherMessage {
    /// The role, in the host's word.
    pub role: String,
    /// Its id.
    pub id: ItemId,
    /// Its text.
    pub text: String,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub created_at: Option<Time>,
    /// Always false today: only assistant text is provisional.
    pub provisional: bool,
}

/// A tool call. No exit code and no output is ever made up: what the host doesn't tell is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call's id.
    pub id: ItemId,
    /// The tool's name.
    pub name: String,
    /// What it was called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Where it is.
    pub status: ToolStatus,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Whether the result is an error, where the host says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// False for a nested call: shown while it happens, not stored.
    pub durable: bool,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EditItem {
    /// The edit's id.
    pub id: ItemId,
    /// The file.
    pub path: String,
    /// Whether it is in the file.
    pub state: EditState,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// An item of the history with its place in the host's store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryItem {
    /// The host's store sequence: increasing, not dense; no cursor for `events`.
    pub seq: Seq,
    /// The item.
    pub item: Item,
}
