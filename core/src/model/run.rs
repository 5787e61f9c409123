//! Runs of the agent, and the inputs that wait for one.

use super::macros::open_enum;
use super::{InputId, RunId, Time};
use serde::{Deserialize, Serialize};

open_enum! {
    /// Where a run is.
    RunStatus {
        /// It works.
        Running = "running",
        /// It waits until the provider's quota allows more.
        WaitingForQuota = "waiting_for_quota",
        /// It ended well.
        Completed = "completed",
        /// It ended with an error.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It was cut off, for instance by a restart of the host.
        Interrupted = "interrupted",
    }
}

impl RunStatus {
    /// Whether a run with this status goes on. An unknown status counts as ended: nothing may wait for it for ever.
    pub fn is_active(&self) -> bool {
        matches!(self, RunStatus::Running | RunStatus::WaitingForQuota)
    }
}

open_enum! {
    /// What a queued input is for.
    InputKind {
        /// It steers the run that goes on.
        Steer = "steer",
        /// It starts the next run.
        FollowUp = "follow_up",
    }
}

/// One run of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Where it is.
    pub status: RunStatus,
    /// The model it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub finished_at: Option<Time>,
    /// Why it failed, in the host's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<RunWait>,
}

/// What a waiting run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunWait {
    /// When it may go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub resume_at: Option<Time>,
    /// Why it waits, in the host's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An input that waits for its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedInput {
    /// Its id.
    pub id: InputId,
    /// What it is for.
    pub kind: InputKind,
    /// Its text.
    pub text: String,
    /// When it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub created_at: Option<Time>,
}
