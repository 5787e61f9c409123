//! The agent's plan.

use super::macros::open_enum;
use serde::{Deserialize, Serialize};

open_enum! {
    /// Where a step of a plan is.
    PlanStatus {
        /// Not begun.
        Todo = "todo",
        /// Being done.
        Now = "now",
        /// Done.
        Done = "done",
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// Its id, where the host has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What is to be done.
    pub text: String,
    /// Where it is.
    pub status: PlanStatus,
}
