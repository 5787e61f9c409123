//! The connection: who the host is, and how it does.

use super::Workspace;
use super::macros::open_enum;
use crate::KitError;
use serde::{Deserialize, Serialize};

open_enum! {
    /// How the connection is.
    ConnectionStatus {
        /// The host answers.
        Connected = "connected",
        /// The host is gone and is being started anew.
        Restarting = "restarting",
        /// It is over.
        Closed = "closed",
    }
}

/// How the connection is, and why.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConnectionState {
    /// How it is.
    pub status: ConnectionStatus,
    /// What ended it, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<KitError>,
}

/// Who the host is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the protocol that is spoken.
    pub protocol_version: String,
    /// What was negotiated, in the host's words.
    pub features: Vec<String>,
    /// Its workspace, as it reports it. Shown, not obeyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
}

/// What a connection met and went on from. They only grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Lines that were no JSON-RPC object.
    pub skipped_lines: u64,
    /// Answers to no open request, those of abandoned ones included.
    pub unknown_ids: u64,
    /// Lines over the limit.
    pub oversize: u64,
    /// Known notifications whose content did not fit.
    pub malformed: u64,
    /// Requests of the host, answered with -32601.
    pub host_requests: u64,
    /// Times that live notifications were lost, by the host or here, and made good by replay.
    pub gaps: u64,
    /// Times that the host was started anew.
    pub restarts: u64,
}
