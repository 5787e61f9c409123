//! The shapes that methods and events share.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{ApprovalId, ChatId, InputId, ItemId, QuestionId, RunId, Time};

/// Declares wire structs: optional fields are left out when absent.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $ty,)*
        }
    )*};
}
pub(super) use shapes;

shapes! {
    /// What a list of sessions tells of one.
    SessionMeta {
        /// The session's id.
        session_id: ChatId,
        /// Its title.
        title: String,
        /// When it came to be.
        created_at: Time,
        /// When it last changed.
        updated_at: Time,
        /// The session that started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ChatId>,
        /// The model, as `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    }
    /// A canonical message.
    Message {
        /// The message's id.
        message_id: ItemId,
        /// Who speaks: `user`, `assistant`, `system`, `tool`, or a word of the host's own.
        role: String,
        /// The text.
        text: String,
        /// When it came to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
        /// The run's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        /// The tools that it calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<ToolCall>>,
        /// What a tool gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_result: Option<ToolResult>,
    }
    /// A tool call.
    ToolCall {
        /// The call's id.
        call_id: ItemId,
        /// Its name.
        name: String,
        /// What it is called with.
        arguments: Value,
    }
    /// What a tool call gave.
    ToolResult {
        /// The call's id.
        call_id: ItemId,
        /// What it gave.
        result: Value,
        /// Whether the result is an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    }
    /// A run. `status`: running, waiting_for_quota, completed, failed, cancelled, interrupted.
    Run {
        /// The run's id.
        run_id: RunId,
        /// Where it is.
        status: String,
        /// The model, as `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// When it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Time>,
        /// When it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<Time>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Wait>,
    }
    /// What a waiting run waits for.
    Wait {
        /// When it may go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume_at: Option<Time>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// A queued input. `kind`: steer, follow_up.
    Input {
        /// The input's id.
        input_id: InputId,
        /// What kind it is.
        kind: String,
        /// The text.
        text: String,
        /// When it came to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
    }
    /// A publication. `kind`: text, file, image, execution and others.
    Output {
        /// The publication's id.
        output_id: ItemId,
        /// What kind it is.
        kind: String,
        /// The text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The run's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        /// When it came to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
    }
    /// A step of the plan. `status`: pending, in_progress, done.
    Todo {
        /// Its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The text.
        text: String,
        /// Where it is.
        status: String,
    }
    /// A question.
    Question {
        /// The question's id.
        question_id: QuestionId,
        /// The text.
        text: String,
        /// Labels to choose from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suggestions: Option<Vec<String>>,
    }
    /// A session's totals.
    Usage {
        /// Tokens read.
        input_tokens: u64,
        /// Tokens written.
        output_tokens: u64,
        /// Tokens read from a cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cached_input_tokens: Option<u64>,
        /// All tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_tokens: Option<u64>,
        /// Cost in US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// How full the context is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<UsageContext>,
        /// Tokens of the last model request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_request: Option<LastRequest>,
    }
    /// How full the context is.
    UsageContext {
        /// Tokens in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
        /// Tokens that fit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    }
    /// Tokens of the last model request.
    LastRequest {
        /// Tokens read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        /// Tokens written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
    }
    /// A child session. `state`: running, waiting, completed, failed, cancelled, interrupted.
    Child {
        /// The session's id.
        session_id: ChatId,
        /// The session that started it.
        parent_id: ChatId,
        /// Its title.
        title: String,
        /// Where it is.
        state: String,
        /// The question that waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
        /// What it gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    }
    /// An approval. `state`: pending, approved, approved_session, denied, expired.
    Approval {
        /// The approval's id.
        approval_id: ApprovalId,
        /// The session's id.
        session_id: ChatId,
        /// The run's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        /// The call's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<ItemId>,
        /// The tool's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What it is called with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// Where it is.
        state: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When it came to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
    }
    /// Who takes part in the handshake.
    Party {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    }
    /// The host's workspace.
    Workspace {
        /// The folder.
        path: String,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
    /// A chapter of the context.
    Chapter {
        /// The chapter's id, without the kit's prefix.
        chapter_id: String,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The first store sequence.
        first_seq: u64,
        /// The last store sequence.
        last_seq: u64,
        /// The episodes.
        episodes: Vec<String>,
    }
    /// An episode of the context.
    Episode {
        /// The episode's id, without the kit's prefix.
        episode_id: String,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The first store sequence.
        first_seq: u64,
        /// The last store sequence.
        last_seq: u64,
    }
    /// A compaction.
    ContextEvent {
        /// The compaction's id.
        event_id: String,
        /// What kind it is.
        kind: String,
        /// What set it off.
        trigger: String,
        /// The store sequence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        /// When it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
        /// Whether the view has it.
        applied: bool,
    }
    /// A part of the view. `kind`: message, episode, chapter.
    ViewItem {
        /// What kind it is.
        kind: String,
        /// Its id.
        id: String,
    }
    /// A message with its store sequence.
    HistoryEntry {
        /// The store sequence.
        seq: u64,
        /// The message.
        message: Message,
    }
    /// A provider.
    Provider {
        /// Its id.
        id: String,
        /// What kind it is.
        kind: String,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Whether a key was found; the key itself is never told.
        has_key: bool,
        /// Its models.
        models: Vec<Model>,
    }
    /// A model of a provider.
    Model {
        /// Its id.
        id: String,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its window in tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    }
}
