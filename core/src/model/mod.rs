//! The model: what an app sees, whatever host stands behind it.
//!
//! One file a theme. Everything here is plain data with a serde form (camelCase keys, dotted event
//! kinds, absent fields left out) and knows nothing of hosts, wires, tasks or streams.
//! Words that a host may invent (statuses, roles, states) are *open* enums: an unknown one is
//! kept as [`Other`](RunStatus::Other) with the host's own word.

mod approval;
mod capability;
mod chat;
mod child;
mod connection;
mod constraint;
mod context;
mod event;
mod id;
mod item;
mod macros;
mod plan;
mod provider;
mod question;
mod run;
mod sequence;
#[cfg(feature = "schema")]
mod time_schema;
mod usage;

pub use approval::{Approval, ApprovalOption, ApprovalState, ChatApproval, Decision};
pub use capability::{Capabilities, Capability, CapabilityDetail, CapabilityTable, ProvidedBy};
pub use chat::{Chat, ChatPage, ChatSnapshot, Profile, Reference, Rewound, Sent, Settings, Workspace};
pub use child::{Child, ChildState};
pub use connection::{ConnectionState, ConnectionStatus, Counters, HostInfo};
pub use constraint::{Constraints, QuestionAnswers};
pub use context::{
    Chapter, Compaction, Context, ContextItem, ContextItemKind, ContextStructure, ContextSummary, ContextView, Episode,
    SummaryKind,
};
pub use event::*;
pub use id::{ApprovalId, ChatId, InputId, ItemId, JobId, QuestionId, RunId};
pub use item::{EditItem, EditState, HistoryItem, Item, Message, OtherMessage, ToolCall, ToolStatus};
pub use plan::{PlanStatus, PlanStep};
pub use provider::{Model, Provider, Providers};
pub use question::{Answer, Question};
pub use run::{InputKind, QueuedInput, Run, RunStatus, RunWait};
pub use sequence::Seq;
pub use usage::{ContextUsage, Usage};

/// A moment, in UTC; RFC 3339 in the JSON form.
pub type Time = jiff::Timestamp;

/// The version of the JSON form of model and events. It grows when a reader of the older form could
/// misread the newer one; new kinds and new fields alone don't change it.
pub const SCHEMA_VERSION: u32 = 1;
