//! Chats: what a list shows, and the snapshot of one.

use super::{
    Approval, ChatId, Child, InputId, Item, PlanStep, Question, QueuedInput, Run, RunId, RunStatus, Seq, Time, Usage,
};
use serde::{Deserialize, Serialize};

/// A chat, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Chat {
    /// Its id.
    pub id: ChatId,
    /// Its title.
    pub title: String,
    /// When it came to be.
    #[cfg_attr(feature = "schema", schemars(with = "super::time_schema::TimeSchema"))]
    pub created_at: Time,
    /// When it last changed.
    #[cfg_attr(feature = "schema", schemars(with = "super::time_schema::TimeSchema"))]
    pub updated_at: Time,
    /// The chat that started it, for a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<ChatId>,
    /// The model it uses, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The status of its newest run, where the host tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_status: Option<RunStatus>,
}

/// A page of chats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatPage {
    /// The chats of this page, in the host's order.
    pub chats: Vec<Chat>,
    /// What to pass to get the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The settings of a chat that a host lets an app see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The model: the newest run's, else the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The profile, where the host has profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Where a chat works, as the host reports it. Shown, not obeyed: the app chose the folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// The folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The branch of its repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A chat as of one sequence: everything an app needs to show it. Events after `seq` carry on from here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatSnapshot {
    /// The chat.
    pub chat: Chat,
    /// The sequence it is as of; a cursor for `events`.
    pub seq: Seq,
    /// What to show, in order.
    pub items: Vec<Item>,
    /// The runs the host still tells of.
    pub runs: Vec<Run>,
    /// Inputs that wait for their turn.
    pub queue: Vec<QueuedInput>,
    /// The plan, empty where there is none.
    pub plan: Vec<PlanStep>,
    /// Pending approvals.
    pub approvals: Vec<Approval>,
    /// The question that waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Chats that this one started.
    pub children: Vec<Child>,
    /// The chat's own totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Model and profile.
    pub settings: Settings,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
}

/// Something an input refers to: a file, a page, another chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// What it is.
    pub kind: String,
    /// Where it is.
    pub uri: String,
    /// What to call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What became of a sent text: a run that started, or an input that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The run that started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The input that was queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<InputId>,
    /// Whether it waits for its turn.
    pub queued: bool,
}

/// What a rewind made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    /// The chat that was rewound.
    pub chat: ChatId,
    /// The chat that goes on from there, where the host makes a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_chat: Option<Chat>,
    /// Whether the chat itself was cut back.
    pub in_place: bool,
}

/// A named set of settings that a host offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
