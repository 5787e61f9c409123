//! Children: chats that a chat started.

use super::macros::open_enum;
use super::{ChatId, Question};
use serde::{Deserialize, Serialize};

open_enum! {
    /// Where a child is.
    ChildState {
        /// It works.
        Running = "running",
        /// It waits, for instance for an answer.
        Waiting = "waiting",
        /// It ended well.
        Completed = "completed",
        /// It ended with an error.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It was cut off.
        Interrupted = "interrupted",
    }
}

impl ChildState {
    /// Whether a child with this state has ended. An unknown state has not: it may yet tell more.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted)
    }
}

/// A chat that another one started. Its id is a chat id: it can be loaded and streamed as a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// Its id.
    pub id: ChatId,
    /// The chat that started it.
    pub parent_id: ChatId,
    /// Its title.
    pub title: String,
    /// Where it is.
    pub state: ChildState,
    /// What it waits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}
