//! Errors: few, stable kinds with data, the same in every language.
//!
//! [`KitError`] is what every call and stream of the kit fails with. It is cheap to clone, because one dead host ends
//! many calls at once, and it has a JSON form, because it crosses the bindings' border. The transport below has an
//! error of its own, [`RpcError`](crate::rpc::RpcError); an adapter's own table turns it into one of these.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Capability;

/// The result of every call.
pub type Result<T, E = KitError> = std::result::Result<T, E>;

/// What became of a command that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It was written, and no answer came: the host may have carried it out.
    Unknown,
    /// It never left: the host knows nothing of it.
    NotSent,
    /// The host said no.
    Refused,
}

/// What all errors carry beside their kind's own fields.
#[derive(Clone)]
pub struct ErrorInfo(Box<Info>);

#[derive(Clone)]
struct Info {
    message: String,
    outcome: Option<Outcome>,
    host_code: Option<i64>,
    host_data: Option<Value>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ErrorInfo {
    fn new(message: impl Into<String>) -> Self {
        ErrorInfo(Box::new(Info {
            message: message.into(),
            outcome: None,
            host_code: None,
            host_data: None,
            source: None,
        }))
    }
}

impl fmt::Debug for ErrorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // host_data is the host's own and may hold what a person typed: it is for the caller, not for logs.
        f.debug_struct("ErrorInfo")
            .field("message", &self.0.message)
            .field("outcome", &self.0.outcome)
            .field("host_code", &self.0.host_code)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ErrorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

/// What went wrong. `code()` names the kind; match on the variants for the kind's own fields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum KitError {
    /// The backend can't do this: its capability is off. Nothing was sent.
    Unsupported {
        /// The capability that is off.
        capability: Capability,
        /// The rest.
        info: ErrorInfo,
    },
    /// There is no such thing.
    NotFound(ErrorInfo),
    /// It contradicts what already is, for instance a decision already made.
    Conflict(ErrorInfo),
    /// A run goes on: a kind of conflict, see [`KitError::is_conflict`].
    Busy(ErrorInfo),
    /// The input can't be taken as it is.
    Invalid(ErrorInfo),
    /// It is not allowed.
    Denied(ErrorInfo),
    /// The host must be set up first; the message says how.
    NeedsSetup(ErrorInfo),
    /// It failed, for no reason that the kit could name.
    Failed(ErrorInfo),
    /// The host is gone.
    HostExited {
        /// Its exit code, where it ended by itself.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The last of what it wrote to stderr: whole lines, at most 4 KiB, secrets masked.
        stderr_tail: String,
        /// The rest.
        info: ErrorInfo,
    },
    /// The host speaks another version of the protocol.
    ProtocolMismatch {
        /// The version spoken here.
        expected: String,
        /// The host's version.
        actual: String,
        /// The rest.
        info: ErrorInfo,
    },
    /// No answer came in time.
    Timeout {
        /// The method that was not answered.
        method: String,
        /// The rest.
        info: ErrorInfo,
    },
    /// The backend, or the stream, was closed here.
    Closed(ErrorInfo),
    /// The app's own bridge failed; its exception is the source.
    Gateway(ErrorInfo),
}

impl KitError {
    /// The codes of all kinds.
    pub const CODES: &'static [&'static str] = &[
        "unsupported",
        "not_found",
        "conflict",
        "busy",
        "invalid",
        "denied",
        "needs_setup",
        "failed",
        "host_exited",
        "protocol_mismatch",
        "timeout",
        "closed",
        "gateway",
    ];

    /// The capability is off.
    pub fn unsupported(capability: Capability) -> Self {
        let message = format!("the backend does not offer {capability}");
        KitError::Unsupported { capability, info: ErrorInfo::new(message) }.with_outcome(Outcome::NotSent)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        KitError::NotFound(ErrorInfo::new(message))
    }

    /// It contradicts what already is.
    pub fn conflict(message: impl Into<String>) -> Self {
        KitError::Conflict(ErrorInfo::new(message))
    }

    /// A run goes on.
    pub fn busy(message: impl Into<String>) -> Self {
        KitError::Busy(ErrorInfo::new(message))
    }

    /// The input can't be taken as it is.
    pub fn invalid(message: impl Into<String>) -> Self {
        KitError::Invalid(ErrorInfo::new(message))
    }

    /// It is not allowed.
    pub fn denied(message: impl Into<String>) -> Self {
        KitError::Denied(ErrorInfo::new(message))
    }

    /// The host must be set up first.
    pub fn needs_setup(message: impl Into<String>) -> Self {
        KitError::NeedsSetup(ErrorInfo::new(message))
    }

    /// It failed.
    pub fn failed(message: impl Into<String>) -> Self {
        KitError::Failed(ErrorInfo::new(message))
    }

    /// The host is gone.
    pub fn host_exited(exit_code: Option<i32>, signal: Option<i32>, stderr_tail: impl Into<String>) -> Self {
        let message = match (exit_code, signal) {
            (Some(code), _) => format!("the host ended with exit code {code}"),
            (None, Some(signal)) => format!("the host was ended by signal {signal}"),
            (None, None) => "the host closed the connection".to_owned(),
        };
        KitError::HostExited { exit_code, signal, stderr_tail: stderr_tail.into(), info: ErrorInfo::new(message) }
    }

    /// The host speaks another version.
    pub fn protocol_mismatch(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        let (expected, actual) = (expected.into(), actual.into());
        let message = format!("the host speaks protocol {actual:?}, this client {expected:?}");
        KitError::ProtocolMismatch { expected, actual, info: ErrorInfo::new(message) }
    }

    /// No answer came in time.
    pub fn timeout(method: impl Into<String>) -> Self {
        let method = method.into();
        let message = format!("{method} was not answered in time");
        KitError::Timeout { method, info: ErrorInfo::new(message) }
    }

    /// It was closed here.
    pub fn closed() -> Self {
        KitError::Closed(ErrorInfo::new("the backend is closed"))
    }

    /// The app's own bridge failed.
    pub fn gateway(message: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let mut error = KitError::Gateway(ErrorInfo::new(message));
        error.info_mut().source = Some(Arc::from(source.into()));
        error
    }

    /// Says what became of the command.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.info_mut().outcome = Some(outcome);
        self
    }

    /// Adds the host's own code, and its data where it may be shown.
    #[must_use]
    pub fn with_host(mut self, code: i64, data: Option<Value>) -> Self {
        let info = self.info_mut();
        info.host_code = Some(code);
        info.host_data = data;
        self
    }

    /// Adds what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.info_mut().source = Some(Arc::from(source.into()));
        self
    }

    /// The kind's code, stable over versions and the same in every language.
    pub fn code(&self) -> &'static str {
        match self {
            KitError::Unsupported { .. } => "unsupported",
            KitError::NotFound(_) => "not_found",
            KitError::Conflict(_) => "conflict",
            KitError::Busy(_) => "busy",
            KitError::Invalid(_) => "invalid",
            KitError::Denied(_) => "denied",
            KitError::NeedsSetup(_) => "needs_setup",
            KitError::Failed(_) => "failed",
            KitError::HostExited { .. } => "host_exited",
            KitError::ProtocolMismatch { .. } => "protocol_mismatch",
            KitError::Timeout { .. } => "timeout",
            KitError::Closed(_) => "closed",
            KitError::Gateway(_) => "gateway",
        }
    }

    /// A sentence for a person.
    pub fn message(&self) -> &str {
        &self.info().message
    }

    /// What became of the command, where it was one.
    pub fn outcome(&self) -> Option<Outcome> {
        self.info().outcome
    }

    /// The host's own code, for every error that the host answered with.
    pub fn host_code(&self) -> Option<i64> {
        self.info().host_code
    }

    /// The host's own data, where an adapter's table says that it may be shown.
    pub fn host_data(&self) -> Option<&Value> {
        self.info().host_data.as_ref()
    }

    /// Whether it is a conflict: `Conflict`, or `Busy`, which is one.
    pub fn is_conflict(&self) -> bool {
        matches!(self, KitError::Conflict(_) | KitError::Busy(_))
    }

    fn info(&self) -> &Info {
        match self {
            KitError::Unsupported { info, .. }
            | KitError::HostExited { info, .. }
            | KitError::ProtocolMismatch { info, .. }
            | KitError::Timeout { info, .. }
            | KitError::NotFound(info)
            | KitError::Conflict(info)
            | KitError::Busy(info)
            | KitError::Invalid(info)
            | KitError::Denied(info)
            | KitError::NeedsSetup(info)
            | KitError::Failed(info)
            | KitError::Closed(info)
            | KitError::Gateway(info) => &info.0,
        }
    }

    fn info_mut(&mut self) -> &mut Info {
        match self {
            KitError::Unsupported { info, .. }
            | KitError::HostExited { info, .. }
            | KitError::ProtocolMismatch { info, .. }
            | KitError::Timeout { info, .. }
            | KitError::NotFound(info)
            | KitError::Conflict(info)
            | KitError::Busy(info)
            | KitError::Invalid(info)
            | KitError::Denied(info)
            | KitError::NeedsSetup(info)
            | KitError::Failed(info)
            | KitError::Closed(info)
            | KitError::Gateway(info) => &mut info.0,
        }
    }
}

impl fmt::Display for KitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl Error for KitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.info().source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// The JSON form of an error: what crosses the bindings' border.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "KitError"))]
#[serde(rename_all = "camelCase")]
struct ErrorForm {
    /// The kind.
    code: String,
    /// A sentence for a person.
    message: String,
    /// What became of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    /// The host's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_code: Option<i64>,
    /// The host's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_data: Option<Value>,
    /// Of `unsupported`: the capability that is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capability: Option<Capability>,
    /// Of `host_exited`: the exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Of `host_exited`: the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Of `host_exited`: the last of stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr_tail: Option<String>,
    /// Of `protocol_mismatch`: the version spoken here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// Of `protocol_mismatch`: the host's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actual: Option<String>,
    /// Of `timeout`: the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
}

impl From<&KitError> for ErrorForm {
    fn from(error: &KitError) -> Self {
        let info = error.info();
        let mut form = ErrorForm {
            code: error.code().to_owned(),
            message: info.message.clone(),
            outcome: info.outcome,
            host_code: info.host_code,
            host_data: info.host_data.clone(),
            capability: None,
            exit_code: None,
            signal: None,
            stderr_tail: None,
            expected: None,
            actual: None,
            method: None,
        };
        match error {
            KitError::Unsupported { capability, .. } => form.capability = Some(*capability),
            KitError::HostExited { exit_code, signal, stderr_tail, .. } => {
                form.exit_code = *exit_code;
                form.signal = *signal;
                form.stderr_tail = Some(stderr_tail.clone());
            }
            KitError::ProtocolMismatch { expected, actual, .. } => {
                form.expected = Some(expected.clone());
                form.actual = Some(actual.clone());
            }
            KitError::Timeout { method, .. } => form.method = Some(method.clone()),
            _ => {}
        }
        form
    }
}

impl TryFrom<ErrorForm> for KitError {
    type Error = String;

    fn try_from(form: ErrorForm) -> Result<Self, String> {
        let info = ErrorInfo(Box::new(Info {
            message: form.message,
            outcome: form.outcome,
            host_code: form.host_code,
            host_data: form.host_data,
            source: None,
        }));
        Ok(match form.code.as_str() {
            "unsupported" => {
                let capability = form.capability.ok_or("an unsupported error names no capability")?;
                KitError::Unsupported { capability, info }
            }
            "not_found" => KitError::NotFound(info),
            "conflict" => KitError::Conflict(info),
            "busy" => KitError::Busy(info),
            "invalid" => KitError::Invalid(info),
            "denied" => KitError::Denied(info),
            "needs_setup" => KitError::NeedsSetup(info),
            "failed" => KitError::Failed(info),
            "host_exited" => KitError::HostExited {
                exit_code: form.exit_code,
                signal: form.signal,
                stderr_tail: form.stderr_tail.unwrap_or_default(),
                info,
            },
            "protocol_mismatch" => KitError::ProtocolMismatch {
                expected: form.expected.unwrap_or_default(),
                actual: form.actual.unwrap_or_default(),
                info,
            },
            "timeout" => KitError::Timeout { method: form.method.unwrap_or_default(), info },
            "closed" => KitError::Closed(info),
            "gateway" => KitError::Gateway(info),
            other => return Err(format!("no kind of error has the code {other:?}")),
        })
    }
}

impl Serialize for KitError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ErrorForm::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KitError {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ErrorForm::deserialize(deserializer)?.try_into().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for KitError {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "KitError".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = ErrorForm::json_schema(generator);
        if let Some(code) = schema.get_mut("properties").and_then(|properties| properties.get_mut("code")) {
            code["x-open-enum"] = KitError::CODES.into();
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<KitError> {
        vec![
            KitError::unsupported(Capability::Fork),
            KitError::not_found("n"),
            KitError::conflict("c"),
            KitError::busy("b"),
            KitError::invalid("i").with_host(-32010, Some(serde_json::json!({"key": "k"}))),
            KitError::denied("d"),
            KitError::needs_setup("s"),
            KitError::failed("f").with_outcome(Outcome::Refused),
            KitError::host_exited(Some(3), None, "last words"),
            KitError::protocol_mismatch("0.1", "9"),
            KitError::timeout("session.list"),
            KitError::closed(),
            KitError::gateway("g", "the app's own"),
        ]
    }

    #[test]
    fn every_kind_has_its_code_and_survives_its_json_form() {
        let codes: Vec<_> = one_of_each().iter().map(KitError::code).collect();
        assert_eq!(codes, KitError::CODES);
        for error in one_of_each() {
            let form = serde_json::to_value(&error).unwrap();
            let back: KitError = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(serde_json::to_value(&back).unwrap(), form);
            assert_eq!(back.code(), error.code());
        }
    }

    #[test]
    fn busy_is_a_conflict() {
        assert!(KitError::busy("").is_conflict() && KitError::conflict("").is_conflict());
        assert!(!KitError::failed("").is_conflict());
    }

    #[test]
    fn the_cause_chain_is_kept() {
        let error = KitError::gateway("the bridge failed", "no such table");
        assert_eq!(error.source().unwrap().to_string(), "no such table");
    }

    #[test]
    fn debug_output_leaves_host_data_out() {
        let error = KitError::invalid("i").with_host(-32010, Some(serde_json::json!("sk-secret")));
        assert!(!format!("{error:?}").contains("sk-secret"));
    }
}
