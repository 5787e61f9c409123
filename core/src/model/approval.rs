//! Approvals: what the agent may do only when a person says so.

use super::macros::open_enum;
use super::{ApprovalId, ChatId, ItemId, RunId, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

open_enum! {
    /// Where an approval is.
    ApprovalState {
        /// It waits for a decision.
        Pending = "pending",
        /// It was approved, once.
        Approved = "approved",
        /// It was approved for the rest of the session.
        ApprovedForSession = "approved_for_session",
        /// It was denied.
        Denied = "denied",
        /// It can't be decided any more.
        Expired = "expired",
    }
}

/// A request for approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The run that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The tool call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<ItemId>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What it is about, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool would be called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Where it is.
    pub state: ApprovalState,
    /// Why it was decided so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The choices, where the host has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<ApprovalOption>>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub created_at: Option<Time>,
}

/// A choice that the host offers for an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalOption {
    /// Its id, for `Decision::Option`.
    pub id: String,
    /// What to call it.
    pub name: String,
    /// What it does, in the host's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// An approval with the chat it belongs to, for an inbox over all chats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatApproval {
    /// The chat.
    pub chat: ChatId,
    /// The approval.
    pub approval: Approval,
}

/// What a person decided. JSON: `"approve"`, `"approve_session"`, `"deny"` or `{"option": "id"}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// This once.
    Approve,
    /// For the rest of the session.
    ApproveSession,
    /// No.
    Deny,
    /// One of the approval's own options, by its id.
    Option(String),
}
