//! The shapes that methods and events share.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{ApprovalId, ChatId, InputId, ItemId, QuestionId, RunId, Time};

/// Declares wire structs: optional fields are left out when absent.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[allow(missing_docs)] // The fields are the contract's own words; its page explains them.
        pub struct $name {
            $($(#[$fmeta])* pub $field: $ty,)*
        }
    )*};
}
pub(super) use shapes;

shapes! {
    /// What a list of sessions tells of one.
    SessionMeta {
        session_id: ChatId,
        title: String,
        created_at: Time,
        updated_at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ChatId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    }
    /// A canonical message.
    Message {
        message_id: ItemId,
        role: String,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<ToolCall>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_result: Option<ToolResult>,
    }
    /// A tool call.
    ToolCall {
        call_id: ItemId,
        name: String,
        arguments: Value,
    }
    /// What a tool call gave.
    ToolResult {
        call_id: ItemId,
        result: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    }
    /// A run. `status`: running, waiting_for_quota, completed, failed, cancelled, interrupted.
    Run {
        run_id: RunId,
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Wait>,
    }
    /// What a waiting run waits for.
    Wait {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume_at: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// A queued input. `kind`: steer, follow_up.
    Input {
        input_id: InputId,
        kind: String,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
    }
    /// A publication. `kind`: text, file, image, execution and others.
    Output {
        output_id: ItemId,
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
    }
    /// A step of the plan. `status`: pending, in_progress, done.
    Todo {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        text: String,
        status: String,
    }
    /// A question.
    Question {
        question_id: QuestionId,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suggestions: Option<Vec<String>>,
    }
    /// A session's totals.
    Usage {
        input_tokens: u64,
        output_tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cached_input_tokens: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_tokens: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<UsageContext>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_request: Option<LastRequest>,
    }
    /// How full the context is.
    UsageContext {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    }
    /// Tokens of the last model request.
    LastRequest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
    }
    /// A child session. `state`: running, waiting, completed, failed, cancelled, interrupted.
    Child {
        session_id: ChatId,
        parent_id: ChatId,
        title: String,
        state: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    }
    /// An approval. `state`: pending, approved, approved_session, denied, expired.
    Approval {
        approval_id: ApprovalId,
        session_id: ChatId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<ItemId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        state: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Time>,
    }
    /// Who takes part in the handshake.
    Party {
        name: String,
        version: String,
    }
    /// The host's workspace.
    Workspace {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
    /// A chapter of the context.
    Chapter {
        chapter_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        first_seq: u64,
        last_seq: u64,
        episodes: Vec<String>,
    }
    /// An episode of the context.
    Episode {
        episode_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        first_seq: u64,
        last_seq: u64,
    }
    /// A compaction.
    ContextEvent {
        event_id: String,
        kind: String,
        trigger: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
        applied: bool,
    }
    /// A part of the view. `kind`: message, episode, chapter.
    ViewItem {
        kind: String,
        id: String,
    }
    /// A message with its store sequence.
    HistoryEntry {
        seq: u64,
        message: Message,
    }
    /// A provider.
    Provider {
        id: String,
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        has_key: bool,
        models: Vec<Model>,
    }
    /// A model of a provider.
    Model {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    }
}
