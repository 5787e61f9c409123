//! Refusals: what a request is answered with when it isn't carried out. The words of the messages are part of the
//! contract: clients tell the reasons apart by them.

use kitport::bubblepaw::wire::code;
use serde_json::Value;

/// JSON-RPC: the line isn't JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the line isn't a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// Our own: a request before the handshake.
pub(crate) const NOT_INITIALIZED: i64 = -32002;
/// JSON-RPC: the host itself failed.
pub(crate) const INTERNAL: i64 = -32603;

/// The error of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// What a handler gives.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), data: None }
    }

    /// A command that failed for the reason that its words tell.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(code::COMMAND_FAILED, message)
    }

    pub(crate) fn params(message: impl std::fmt::Display) -> Self {
        Self::new(code::INVALID_PARAMS, format!("invalid params: {message}"))
    }

    pub(crate) fn unknown_session(id: &str) -> Self {
        Self::refused(format!("unknown session: {id}"))
    }

    pub(crate) fn busy() -> Self {
        Self::refused("session is busy: a run is already running")
    }

    pub(crate) fn needs_setup() -> Self {
        Self::new(
            code::NEEDS_SETUP,
            "no provider is configured: set provider.enabled with config.set, then choose a model with roles.set_main",
        )
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(INTERNAL, format!("the store failed: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(INTERNAL, format!("the store holds what can't be read: {error}"))
    }
}
