//! The wire contract of the BubblePaw stdio protocol 0.1: names and shapes, and nothing else.
//!
//! Client and reference host share these types, so that a difference found against a real host is a change here
//! alone. They read leniently (unknown fields and words are carried or ignored, null counts as absent in an
//! optional field) and write exactly.

mod event;
mod method;
mod shape;

pub use event::{
    ChildAnswerValue, ChildQuestionValue, EventData, EventNotification, EventsGap, HarnessEvent, HostState,
    Notification, RawPage, lenient_event,
};
pub use method::*;
pub use shape::*;

/// The version of the protocol.
pub const PROTOCOL_VERSION: &str = "0.1";

/// The JSON-RPC error codes of the contract.
pub mod code {
    /// Failed, for the reason that the message's words tell.
    pub const COMMAND_FAILED: i64 = -32000;
    /// The host must be set up first.
    pub const NEEDS_SETUP: i64 = -32004;
    /// `config.set`: no such key.
    pub const CONFIG_UNKNOWN_KEY: i64 = -32010;
    /// `config.set`: wrong type.
    pub const CONFIG_WRONG_TYPE: i64 = -32011;
    /// `config.set`: invalid value.
    pub const CONFIG_INVALID_VALUE: i64 = -32012;
    /// `config.set`: it could not be written.
    pub const CONFIG_WRITE_FAILED: i64 = -32013;
    /// JSON-RPC: no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// JSON-RPC: the parameters don't fit.
    pub const INVALID_PARAMS: i64 = -32602;
}

/// The features that a client can ask for, by their names on the wire.
pub mod feature {
    /// Approvals.
    pub const APPROVALS: &str = "approvals";
    /// Steering a run that goes on.
    pub const STEER: &str = "steer";
    /// Queueing a text while a run goes on.
    pub const FOLLOW_UP: &str = "follow_up";
    /// Questions of the agent.
    pub const QUESTIONS: &str = "questions";
    /// Answers to a child's question.
    pub const ANSWER_CHILD: &str = "question.answer_child";
    /// Plans.
    pub const PLAN: &str = "plan";
    /// Rewinding to a message.
    pub const REWIND: &str = "rewind";
    /// History, context and summaries.
    pub const CONTEXT: &str = "context";
    /// Events of children.
    pub const CHILD_EVENTS: &str = "child_events";
    /// Cancelling a child.
    pub const CHILD_CANCEL: &str = "child.cancel";
    /// Lists of sessions in pages.
    pub const PAGINATION: &str = "session.list.pagination";
    /// Providers and their models.
    pub const PROVIDERS: &str = "providers.list";
    /// Setting the default model.
    pub const SET_MAIN: &str = "roles.set_main";

    /// All of them.
    pub const ALL: &[&str] = &[
        APPROVALS,
        STEER,
        FOLLOW_UP,
        QUESTIONS,
        ANSWER_CHILD,
        PLAN,
        REWIND,
        CONTEXT,
        CHILD_EVENTS,
        CHILD_CANCEL,
        PAGINATION,
        PROVIDERS,
        SET_MAIN,
    ];
}
