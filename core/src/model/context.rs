//! The context: what of a chat the model sees, and what was made of the rest.

use super::macros::open_enum;
use super::{Seq, Time};
use serde::{Deserialize, Serialize};

/// Structure, compactions and view of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// Chapters and episodes.
    pub structure: ContextStructure,
    /// What was folded, and when.
    pub compactions: Vec<Compaction>,
    /// What the model sees.
    pub view: ContextView,
}

/// Chapters and episodes of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextStructure {
    /// Chapters.
    pub chapters: Vec<Chapter>,
    /// Episodes.
    pub episodes: Vec<Episode>,
}

/// A chapter: a span of episodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Chapter {
    /// `chapter:…`.
    pub id: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first store sequence.
    pub first_seq: Seq,
    /// The last store sequence.
    pub last_seq: Seq,
    /// An upper bound: store sequences are not dense.
    pub message_count: u64,
    /// The ids of its episodes, `episode:…`.
    pub episodes: Vec<String>,
}

/// An episode: a span of messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Episode {
    /// `episode:…`.
    pub id: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first store sequence.
    pub first_seq: Seq,
    /// The last store sequence.
    pub last_seq: Seq,
    /// An upper bound: store sequences are not dense.
    pub message_count: u64,
}

/// What the model sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextView {
    /// From how many tokens on the host compacts.
    pub threshold: u64,
    /// The model's window in tokens, where the session's usage tells one at or above the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Window minus threshold, where the window is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_reserve: Option<u64>,
    /// What is in it, in order.
    pub items: Vec<ContextItem>,
}

/// One thing the model sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextItem {
    /// What it is.
    pub kind: ContextItemKind,
    /// Its id: a message's own, `episode:…` or `chapter:…`.
    pub id: String,
    /// A message's store sequence, where the history has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
}

open_enum! {
    /// What a part of the view is.
    ContextItemKind {
        /// A message as it is.
        Message = "message",
        /// The summary of an episode.
        Episode = "episode",
        /// The summary of a chapter.
        Chapter = "chapter",
    }
}

open_enum! {
    /// What a summary is of.
    SummaryKind {
        /// An episode.
        Episode = "episode",
        /// A chapter.
        Chapter = "chapter",
    }
}

/// A folding of the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Its id.
    pub id: String,
    /// What was done, in the host's word.
    pub kind: String,
    /// What set it off, in the host's word.
    pub trigger: String,
    /// The store sequence it is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// When it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub at: Option<Time>,
    /// Whether the view has it.
    pub applied: bool,
    /// Tokens before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Tokens after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
}

/// The text that stands for an episode or a chapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextSummary {
    /// `episode:…` or `chapter:…`.
    pub id: String,
    /// What it is of.
    pub kind: SummaryKind,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The summary.
    pub text: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub created_at: Option<Time>,
}
