//! Events: what happens in a chat, one kind each.
//!
//! The list of kinds is one table, [`event_kinds!`]: a new kind is one entry there, and the compiler
//! (or the test that walks [`EventKind::KINDS`]) points out every place that must learn of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::macros::open_enum;
use super::{
    Approval, ApprovalId, ApprovalState, ChatId, Child, ChildState, Compaction, ContextView, Item, ItemId, JobId,
    PlanStep, Question, QuestionId, QueuedInput, RunId, RunStatus, Seq, Time, Usage,
};

/// One event of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The chat.
    pub chat: ChatId,
    /// The kit sequence: its own for a durable event, the final position of the last durable host event for a
    /// transient one.
    pub seq: Seq,
    /// Whether it has a place in the chat's history and replays. A transient event restates the newest value, or
    /// upserts by id: applying one twice changes nothing.
    pub durable: bool,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When it happened, where the host says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
    pub at: Option<Time>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $variant:ident = $kind:literal { $($(#[$fmeta:meta])* $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[serde(rename_all = "camelCase")]
            pub struct $variant {
                $($(#[$fmeta])* pub $field: $ty,)*
            }

            impl From<$variant> for EventKind {
                fn from(event: $variant) -> Self {
                    EventKind::$variant(event)
                }
            }
        )*

        /// What happened: one variant a kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind")]
        #[non_exhaustive]
        pub enum EventKind {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($variant),)*
        }

        impl EventKind {
            /// All kinds, in the order of the docs.
            pub const KINDS: &'static [&'static str] = &[$($kind,)*];

            /// The dotted name of the kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(EventKind::$variant(_) => $kind,)*
                }
            }
        }
    };
}

event_kinds! {
    /// The chat has a new title.
    ChatRenamed = "chat.renamed" {
        /// The title.
        title: String,
    }
    /// The chat was put away or brought back.
    ChatArchived = "chat.archived" {
        /// Whether it is put away now.
        archived: bool,
    }
    /// The chat's settings changed.
    ChatSettings = "chat.settings" {
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The profile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
    }
    /// The chat's workspace changed, or was told.
    ChatWorkspace = "chat.workspace" {
        /// The folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The branch of its repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    }
    /// A run started, or goes on after a wait.
    RunStarted = "run.started" {
        /// The model, where the host says; never on a resumed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Whether it goes on after a wait.
        resumed: bool,
    }
    /// A run waits, for instance for quota.
    RunWaiting = "run.waiting" {
        /// When it may go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<super::time_schema::TimeSchema>"))]
        resume_at: Option<Time>,
        /// Why it waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// A run ended.
    RunFinished = "run.finished" {
        /// How.
        status: RunStatus,
        /// Why it failed, in the host's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }
    /// A message of the user's was found. An upsert by id.
    MessageUser = "message.user" {
        /// The message, an item.
        message: Item,
        /// The item before it; absent for the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_id: Option<ItemId>,
    }
    /// A piece of the agent's text, provisional.
    MessageDelta = "message.delta" {
        /// The provisional message: `provisional:<run>:<n>`.
        message_id: ItemId,
        /// Where the piece begins, in UTF-16 units; what was shown from there on is cut.
        offset: u64,
        /// The piece.
        text: String,
    }
    /// The agent's reply, whole.
    MessageAssistant = "message.assistant" {
        /// The message: `provisional:<run>` on a durable event, the host's own id on an upsert.
        message_id: ItemId,
        /// The text.
        text: String,
        /// Whether the id is a provisional one.
        provisional: bool,
    }
    /// A line of the host's own. An upsert by id.
    MessageSystem = "message.system" {
        /// The line, an item.
        message: Item,
        /// The item before it, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_id: Option<ItemId>,
    }
    /// A piece of the agent's reasoning.
    ThinkingDelta = "thinking.delta" {
        /// Where the piece begins, in UTF-16 units.
        offset: u64,
        /// The piece.
        text: String,
    }
    /// A tool was called.
    ToolStarted = "tool.started" {
        /// The call, an item.
        call: Item,
    }
    /// A piece of a tool's output.
    ToolOutput = "tool.output" {
        /// The call.
        call_id: ItemId,
        /// Where the piece begins, in UTF-16 units.
        offset: u64,
        /// The piece.
        text: String,
    }
    /// A tool ended.
    ToolFinished = "tool.finished" {
        /// The call.
        call_id: ItemId,
        /// What it gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Whether the result is an error, where the host says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    }
    /// A file was changed.
    EditApplied = "edit.applied" {
        /// The edit, an item.
        edit: Item,
    }
    /// A change of a file was taken back.
    EditUndone = "edit.undone" {
        /// The edit.
        edit_id: ItemId,
    }
    /// The plan, whole.
    PlanUpdated = "plan.updated" {
        /// Its steps.
        steps: Vec<PlanStep>,
    }
    /// The agent asks for approval.
    ApprovalRequested = "approval.requested" {
        /// The request.
        approval: Approval,
    }
    /// An approval was decided, or expired.
    ApprovalResolved = "approval.resolved" {
        /// The request.
        approval_id: ApprovalId,
        /// Where it is now.
        state: ApprovalState,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// The agent asks; it ends an earlier question.
    QuestionAsked = "question.asked" {
        /// The question.
        question: Question,
    }
    /// The question no longer waits.
    QuestionResolved = "question.resolved" {
        /// The question, where it is known; never on a durable event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question_id: Option<QuestionId>,
    }
    /// The queue of inputs, whole.
    QueueUpdated = "queue.updated" {
        /// The inputs that wait.
        inputs: Vec<QueuedInput>,
    }
    /// A child was started.
    ChildSpawned = "child.spawned" {
        /// The child.
        child: Child,
    }
    /// A child asks.
    ChildQuestionAsked = "child.question_asked" {
        /// The child.
        child_id: ChatId,
        /// The question.
        question: Question,
    }
    /// A child's question no longer waits.
    ChildQuestionResolved = "child.question_resolved" {
        /// The child.
        child_id: ChatId,
        /// The question.
        question_id: QuestionId,
    }
    /// A child ended.
    ChildFinished = "child.finished" {
        /// The child.
        child_id: ChatId,
        /// How.
        state: ChildState,
        /// What it gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    }
    /// A compaction of the context was applied.
    CompactionUpdated = "compaction.updated" {
        /// The compaction.
        compaction: Compaction,
    }
    /// What the model sees changed.
    ContextChanged = "context.changed" {
        /// What it sees now.
        view: ContextView,
    }
    /// A background job started.
    JobStarted = "job.started" {
        /// The job.
        job: Job,
    }
    /// A piece of a job's output.
    JobOutput = "job.output" {
        /// The job.
        job_id: JobId,
        /// Where the piece begins, in UTF-16 units.
        offset: u64,
        /// The piece.
        text: String,
    }
    /// A job ended.
    JobFinished = "job.finished" {
        /// The job.
        job_id: JobId,
        /// How, in the host's word.
        status: String,
        /// Its exit code, where the host tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
    }
    /// The chat's totals changed.
    UsageUpdated = "usage.updated" {
        /// The totals.
        usage: Usage,
    }
    /// Load the snapshot anew: what is shown may be wrong.
    Gap = "gap" {
        /// Why.
        reason: GapReason,
        /// Whether durable events are gone (the stream goes on after `snapshot_seq`), or only the display is in doubt.
        lost: bool,
        /// The sequence of the fresh snapshot that the stream goes on from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot_seq: Option<Seq>,
    }
}

open_enum! {
    /// Why a stream can't vouch for what an app shows.
    GapReason {
        /// The host no longer keeps the events after the cursor.
        Retention = "retention",
        /// The cursor is above the host's newest event.
        Ahead = "ahead",
        /// An event is larger than the line limit.
        Oversize = "oversize",
        /// The host began its sequences anew.
        Epoch = "epoch",
        /// What was shown contradicts what the host confirmed.
        Mismatch = "mismatch",
        /// A child that had finished runs again.
        ChildRerun = "child_rerun",
        /// Only of `watch_all`, which has no replay: live events were lost.
        LiveLost = "live_lost",
    }
}

/// A background job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it is, in the host's word.
    pub status: String,
}
