//! The methods: their names, the features they belong to, what they take and give.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::feature;
use super::shape::*;
use crate::model::{ApprovalId, ChatId, InputId, ItemId, QuestionId, RunId};

/// A method of the contract.
pub trait Method {
    /// Its name on the wire.
    const NAME: &'static str;
    /// The feature it belongs to; without it the method is never sent.
    const FEATURE: Option<&'static str>;
    /// What it takes.
    type Params: Serialize + DeserializeOwned + Send + Sync;
    /// What it gives.
    type Result: Serialize + DeserializeOwned + Send;
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $wire:literal $(if $feature:path)?, $params:ty => $result:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
            impl Method for $name {
                const NAME: &'static str = $wire;
                const FEATURE: Option<&'static str> = methods!(@feature $($feature)?);
                type Params = $params;
                type Result = $result;
            }
        )*
        /// Every method's name and the feature it belongs to.
        pub const METHODS: &[(&str, Option<&str>)] = &[$(($wire, <$name as Method>::FEATURE)),*];
    };
    (@feature) => { None };
    (@feature $feature:path) => { Some($feature) };
}

methods! {
    /// The handshake.
    Initialize = "initialize", InitializeParams => InitializeResult;
    /// A page of sessions, or all of them.
    SessionList = "session.list", SessionListParams => SessionListResult;
    /// A new session.
    SessionOpen = "session.open", SessionOpenParams => SessionResult;
    /// One consistent read of a session.
    SessionState = "session.state", SessionParams => SessionStateResult;
    /// A new title.
    SessionRename = "session.rename", SessionRenameParams => Empty;
    /// A new session up to and with a message.
    SessionRewind = "session.rewind" if feature::REWIND, SessionRewindParams => SessionResult;
    /// A session's approvals, in all states.
    ApprovalList = "approval.list" if feature::APPROVALS, SessionParams => ApprovalListResult;
    /// A decision.
    ApprovalDecide = "approval.decide" if feature::APPROVALS, ApprovalDecideParams => Empty;
    /// Durable events after a sequence.
    EventsAfter = "events.after", EventsAfterParams => EventsAfterResult;
    /// Starts a run.
    RunStart = "run.start", TextParams => RunStartResult;
    /// Queues a text for the next run.
    RunFollowUp = "run.follow_up" if feature::FOLLOW_UP, TextParams => InputResult;
    /// Steers the run that goes on.
    RunSteer = "run.steer" if feature::STEER, TextParams => InputResult;
    /// Cancels the run that goes on.
    RunCancel = "run.cancel", SessionParams => Empty;
    /// Goes on after an interrupted run.
    RunResume = "run.resume", SessionParams => RunResult;
    /// Answers the session's question.
    QuestionAnswer = "question.answer" if feature::QUESTIONS, QuestionAnswerParams => Empty;
    /// Answers a child's question.
    QuestionAnswerChild = "question.answer_child" if feature::ANSWER_CHILD, QuestionAnswerChildParams => Empty;
    /// Cancels a child and what it started.
    ChildCancel = "child.cancel" if feature::CHILD_CANCEL, ChildCancelParams => Empty;
    /// Messages by store sequence.
    HistoryRange = "history.range" if feature::CONTEXT, HistoryRangeParams => HistoryRangeResult;
    /// Chapters and episodes.
    ContextStructure = "context.structure" if feature::CONTEXT, SessionParams => ContextStructureResult;
    /// Compactions.
    ContextEvents = "context.events" if feature::CONTEXT, SessionParams => ContextEventsResult;
    /// What the model sees.
    ContextView = "context.view" if feature::CONTEXT, SessionParams => ContextViewResult;
    /// A summary.
    ContextSummary = "context.summary" if feature::CONTEXT, ContextSummaryParams => ContextSummaryResult;
    /// Providers and models.
    ProvidersList = "providers.list" if feature::PROVIDERS, Empty => ProvidersListResult;
    /// Saves the default model.
    RolesSetMain = "roles.set_main" if feature::SET_MAIN, RolesSetMainParams => RolesSetMainResult;
    /// Sets a configuration value.
    ConfigSet = "config.set", ConfigSetParams => Empty;
}

shapes! {
    /// Nothing.
    Empty {}
    /// A session.
    SessionParams {
        session_id: ChatId,
    }
    /// What the client offers.
    InitializeParams {
        protocol_version: String,
        client: Party,
        features: Vec<String>,
    }
    /// What the host offers.
    InitializeResult {
        protocol_version: String,
        host: Party,
        features: Vec<String>,
        workspace: Workspace,
    }
    /// Which page; both absent without pagination.
    SessionListParams {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }
    /// A page of sessions.
    SessionListResult {
        sessions: Vec<SessionMeta>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }
    /// The new session's title.
    SessionOpenParams {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    }
    /// A session.
    SessionResult {
        session: SessionMeta,
    }
    /// The new title.
    SessionRenameParams {
        session_id: ChatId,
        title: String,
    }
    /// The message to rewind to.
    SessionRewindParams {
        session_id: ChatId,
        message_id: ItemId,
    }
    /// Approvals.
    ApprovalListResult {
        approvals: Vec<Approval>,
    }
    /// A decision: approve, approve_session, deny.
    ApprovalDecideParams {
        approval_id: ApprovalId,
        decision: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// After which sequence.
    EventsAfterParams {
        session_id: ChatId,
        after: u64,
        limit: u64,
    }
    /// Durable events, ascending.
    EventsAfterResult {
        events: Vec<super::HarnessEvent>,
        has_more: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resync: Option<bool>,
    }
    /// A text for a session.
    TextParams {
        session_id: ChatId,
        text: String,
    }
    /// The run that started.
    RunStartResult {
        run_id: RunId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<ItemId>,
    }
    /// The run.
    RunResult {
        run_id: RunId,
    }
    /// The input that was queued.
    InputResult {
        input_id: InputId,
    }
    /// An answer.
    QuestionAnswerParams {
        session_id: ChatId,
        question_id: QuestionId,
        text: String,
    }
    /// An answer to a child.
    QuestionAnswerChildParams {
        parent: ChatId,
        child: ChatId,
        question_id: QuestionId,
        text: String,
    }
    /// A child.
    ChildCancelParams {
        parent: ChatId,
        child: ChatId,
    }
    /// A range of store sequences.
    HistoryRangeParams {
        session_id: ChatId,
        first_seq: u64,
        last_seq: u64,
        limit: u64,
    }
    /// Messages of the range.
    HistoryRangeResult {
        entries: Vec<HistoryEntry>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_seq: Option<u64>,
    }
    /// Chapters and episodes.
    ContextStructureResult {
        chapters: Vec<Chapter>,
        episodes: Vec<Episode>,
    }
    /// Compactions.
    ContextEventsResult {
        events: Vec<ContextEvent>,
    }
    /// What the model sees.
    ContextViewResult {
        threshold: u64,
        items: Vec<ViewItem>,
    }
    /// Which summary.
    ContextSummaryParams {
        session_id: ChatId,
        kind: String,
        id: String,
    }
    /// A summary.
    ContextSummaryResult {
        kind: String,
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        text: String,
    }
    /// Providers and models.
    ProvidersListResult {
        providers: Vec<Provider>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        main: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        active_main: Option<String>,
    }
    /// The new default model.
    RolesSetMainParams {
        model: String,
    }
    /// The default model.
    RolesSetMainResult {
        main: String,
    }
    /// A configuration value.
    ConfigSetParams {
        key: String,
        value: Value,
    }
}

/// A session as of `sequence`. `M` is what its messages are read as.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // The fields are the contract's own words; its page explains them.
pub struct SessionStateResult<M = Vec<Message>> {
    pub session: SessionMeta,
    pub sequence: u64,
    pub messages: M,
    pub runs: Vec<Run>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub todo: Vec<Todo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Child>>,
}
