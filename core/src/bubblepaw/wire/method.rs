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
        /// The session's id.
        session_id: ChatId,
    }
    /// What the client offers.
    InitializeParams {
        /// The version of the protocol.
        protocol_version: String,
        /// Who the client is.
        client: Party,
        /// Features, by their names.
        features: Vec<String>,
    }
    /// What the host offers.
    InitializeResult {
        /// The version of the protocol.
        protocol_version: String,
        /// Who the host is.
        host: Party,
        /// Features, by their names.
        features: Vec<String>,
        /// The host's workspace.
        workspace: Workspace,
    }
    /// Which page; both absent without pagination.
    SessionListParams {
        /// How many at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// Where the page begins; the first one where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }
    /// A page of sessions.
    SessionListResult {
        /// The sessions.
        sessions: Vec<SessionMeta>,
        /// What to pass for the next page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }
    /// The new session's title.
    SessionOpenParams {
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    }
    /// A session.
    SessionResult {
        /// The session.
        session: SessionMeta,
    }
    /// The new title.
    SessionRenameParams {
        /// The session's id.
        session_id: ChatId,
        /// Its title.
        title: String,
    }
    /// The message to rewind to.
    SessionRewindParams {
        /// The session's id.
        session_id: ChatId,
        /// The message's id.
        message_id: ItemId,
    }
    /// Approvals.
    ApprovalListResult {
        /// The approvals, in all states.
        approvals: Vec<Approval>,
    }
    /// A decision: approve, approve_session, deny.
    ApprovalDecideParams {
        /// The approval's id.
        approval_id: ApprovalId,
        /// `approve`, `approve_session` or `deny`.
        decision: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// After which sequence.
    EventsAfterParams {
        /// The session's id.
        session_id: ChatId,
        /// The sequence behind which to begin.
        after: u64,
        /// How many at most.
        limit: u64,
    }
    /// Durable events, ascending.
    EventsAfterResult {
        /// The events.
        events: Vec<super::HarnessEvent>,
        /// Whether there are more.
        has_more: bool,
        /// Whether events after the cursor are no longer kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resync: Option<bool>,
    }
    /// A text for a session.
    TextParams {
        /// The session's id.
        session_id: ChatId,
        /// The text.
        text: String,
    }
    /// The run that started.
    RunStartResult {
        /// The run's id.
        run_id: RunId,
        /// The message's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<ItemId>,
    }
    /// The run.
    RunResult {
        /// The run's id.
        run_id: RunId,
    }
    /// The input that was queued.
    InputResult {
        /// The input's id.
        input_id: InputId,
    }
    /// An answer.
    QuestionAnswerParams {
        /// The session's id.
        session_id: ChatId,
        /// The question's id.
        question_id: QuestionId,
        /// The text.
        text: String,
    }
    /// An answer to a child.
    QuestionAnswerChildParams {
        /// The parent's session.
        parent: ChatId,
        /// The child's session.
        child: ChatId,
        /// The question's id.
        question_id: QuestionId,
        /// The text.
        text: String,
    }
    /// A child.
    ChildCancelParams {
        /// The parent's session.
        parent: ChatId,
        /// The child's session.
        child: ChatId,
    }
    /// A range of store sequences.
    HistoryRangeParams {
        /// The session's id.
        session_id: ChatId,
        /// The first store sequence.
        first_seq: u64,
        /// The last store sequence.
        last_seq: u64,
        /// How many at most.
        limit: u64,
    }
    /// Messages of the range.
    HistoryRangeResult {
        /// The messages.
        entries: Vec<HistoryEntry>,
        /// Where the next page begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_seq: Option<u64>,
    }
    /// Chapters and episodes.
    ContextStructureResult {
        /// The chapters.
        chapters: Vec<Chapter>,
        /// The episodes.
        episodes: Vec<Episode>,
    }
    /// Compactions.
    ContextEventsResult {
        /// The events.
        events: Vec<ContextEvent>,
    }
    /// What the model sees.
    ContextViewResult {
        /// From how many tokens on the host compacts.
        threshold: u64,
        /// What the model sees, in order.
        items: Vec<ViewItem>,
    }
    /// Which summary.
    ContextSummaryParams {
        /// The session's id.
        session_id: ChatId,
        /// What kind it is.
        kind: String,
        /// Its id.
        id: String,
    }
    /// A summary.
    ContextSummaryResult {
        /// What kind it is.
        kind: String,
        /// Its id.
        id: String,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The text.
        text: String,
    }
    /// Providers and models.
    ProvidersListResult {
        /// The providers.
        providers: Vec<Provider>,
        /// The saved default model, as `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        main: Option<String>,
        /// The default model in use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        active_main: Option<String>,
    }
    /// The new default model.
    RolesSetMainParams {
        /// The model, as `provider/model`.
        model: String,
    }
    /// The default model.
    RolesSetMainResult {
        /// The saved default model, as `provider/model`.
        main: String,
    }
    /// A configuration value.
    ConfigSetParams {
        /// The key.
        key: String,
        /// The value.
        value: Value,
    }
}

/// A session as of `sequence`. `M` is what its messages are read as.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStateResult<M = Vec<Message>> {
    /// The session.
    pub session: SessionMeta,
    /// The sequence of the last durable event that it has.
    pub sequence: u64,
    /// The canonical messages, in order.
    pub messages: M,
    /// The runs.
    pub runs: Vec<Run>,
    /// Inputs that wait.
    pub inputs: Vec<Input>,
    /// Publications.
    pub outputs: Vec<Output>,
    /// The plan.
    pub todo: Vec<Todo>,
    /// The question that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The session's totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The sessions that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Child>>,
}
