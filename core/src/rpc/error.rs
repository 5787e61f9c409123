//! Errors of the transport: a fixed kind and message each, beside what the host said.

use std::error::Error;
use std::fmt;

use serde_json::Value;

use super::message::ErrorObject;

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It was closed here.
    Closed,
    /// The host went: it exited, or closed its end.
    Exited(ExitReport),
}

/// How a host went.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExitReport {
    /// Its exit code, where it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last of what it wrote to stderr: whole lines, at most 4 KiB, secrets masked.
    pub stderr_tail: String,
}

impl fmt::Debug for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The tail is for the person whose host it is, not for logs.
        f.debug_struct("ExitReport")
            .field("exit_code", &self.exit_code)
            .field("signal", &self.signal)
            .field("stderr_tail_bytes", &self.stderr_tail.len())
            .finish()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Closed => f.write_str("the connection is closed"),
            Ended::Exited(ExitReport { exit_code: Some(code), .. }) => {
                write!(f, "the host ended with exit code {code}")
            }
            Ended::Exited(ExitReport { signal: Some(signal), .. }) => {
                write!(f, "the host was ended by signal {signal}")
            }
            Ended::Exited(_) => f.write_str("the host closed the connection"),
        }
    }
}

/// Why a call failed. Messages are ours; what the host said is told by the accessors alone.
#[derive(Clone)]
#[non_exhaustive]
pub enum RpcError {
    /// The host answered with an error.
    Answered {
        /// The method that was called.
        method: String,
        /// The host's code.
        rpc_code: i64,
        /// The host's message.
        rpc_message: String,
        /// The host's data.
        rpc_data: Option<Value>,
    },
    /// No answer came in time.
    Timeout {
        /// The method that was called.
        method: String,
        /// Whether the request, or a part of it, was written.
        sent: bool,
    },
    /// The host went.
    Ended {
        /// How.
        end: ExitReport,
        /// Whether the request, or a part of it, was written.
        sent: bool,
    },
    /// The connection was closed here.
    Closed {
        /// Whether the request, or a part of it, was written.
        sent: bool,
    },
    /// The answer was over the line limit.
    Oversize {
        /// The method that was called.
        method: String,
    },
    /// The answer is not of the shape that it must have.
    Unreadable {
        /// The method that was called.
        method: String,
    },
    /// The parameters can't be written as JSON.
    Unwritable {
        /// The method that was called.
        method: String,
    },
}

impl RpcError {
    pub(super) fn answered(method: &str, error: ErrorObject) -> Self {
        RpcError::Answered {
            method: method.to_owned(),
            rpc_code: error.code,
            rpc_message: error.message,
            rpc_data: error.data,
        }
    }

    pub(super) fn ended(ended: Ended, sent: bool) -> Self {
        match ended {
            Ended::Closed => RpcError::Closed { sent },
            Ended::Exited(end) => RpcError::Ended { end, sent },
        }
    }

    /// The kind, stable over versions.
    pub fn code(&self) -> &'static str {
        match self {
            RpcError::Answered { .. } => "answered",
            RpcError::Timeout { .. } => "timeout",
            RpcError::Ended { .. } => "ended",
            RpcError::Closed { .. } => "closed",
            RpcError::Oversize { .. } => "oversize",
            RpcError::Unreadable { .. } => "unreadable",
            RpcError::Unwritable { .. } => "unwritable",
        }
    }

    /// The method that was called, where the kind tells.
    pub fn method(&self) -> Option<&str> {
        match self {
            RpcError::Answered { method, .. }
            | RpcError::Timeout { method, .. }
            | RpcError::Oversize { method }
            | RpcError::Unreadable { method }
            | RpcError::Unwritable { method } => Some(method),
            RpcError::Ended { .. } | RpcError::Closed { .. } => None,
        }
    }

    /// The code that the host answered with.
    pub fn rpc_code(&self) -> Option<i64> {
        match self {
            RpcError::Answered { rpc_code, .. } => Some(*rpc_code),
            _ => None,
        }
    }

    /// The message that the host answered with. It is the host's own: not for logs.
    pub fn rpc_message(&self) -> Option<&str> {
        match self {
            RpcError::Answered { rpc_message, .. } => Some(rpc_message),
            _ => None,
        }
    }

    /// The data that the host answered with. It is the host's own: not for logs.
    pub fn rpc_data(&self) -> Option<&Value> {
        match self {
            RpcError::Answered { rpc_data, .. } => rpc_data.as_ref(),
            _ => None,
        }
    }

    /// Whether the request, or a part of it, was written. Where it was not, the host knows nothing of it.
    pub fn sent(&self) -> bool {
        match self {
            RpcError::Timeout { sent, .. } | RpcError::Ended { sent, .. } | RpcError::Closed { sent } => *sent,
            RpcError::Answered { .. } | RpcError::Oversize { .. } | RpcError::Unreadable { .. } => true,
            RpcError::Unwritable { .. } => false,
        }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RpcError::Answered { method, .. } => write!(f, "the host answered {method} with an error"),
            RpcError::Timeout { method, .. } => write!(f, "{method} was not answered in time"),
            RpcError::Ended { end, .. } => Ended::Exited(end.clone()).fmt(f),
            RpcError::Closed { .. } => Ended::Closed.fmt(f),
            RpcError::Oversize { method } => write!(f, "the answer to {method} was over the line limit"),
            RpcError::Unreadable { method } => write!(f, "the answer to {method} could not be read"),
            RpcError::Unwritable { method } => write!(f, "the parameters of {method} could not be written"),
        }
    }
}

impl fmt::Debug for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RpcError");
        shown.field("code", &self.code()).field("sent", &self.sent());
        if let Some(method) = self.method() {
            shown.field("method", &method);
        }
        if let Some(rpc_code) = self.rpc_code() {
            shown.field("rpc_code", &rpc_code);
        }
        if let RpcError::Ended { end, .. } = self {
            shown.field("end", end);
        }
        // rpc_message and rpc_data are the host's and may hold what a person typed.
        shown.finish()
    }
}

impl Error for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<RpcError> {
        let end = ExitReport { exit_code: Some(3), signal: None, stderr_tail: "hush".into() };
        let method = "m".to_owned();
        vec![
            RpcError::answered("m", ErrorObject { code: -1, message: "hush".into(), data: Some("hush".into()) }),
            RpcError::Timeout { method: method.clone(), sent: true },
            RpcError::ended(Ended::Exited(end), false),
            RpcError::ended(Ended::Closed, true),
            RpcError::Oversize { method: method.clone() },
            RpcError::Unreadable { method: method.clone() },
            RpcError::Unwritable { method },
        ]
    }

    #[test]
    fn nothing_of_the_host_shows_in_display_or_debug() {
        for error in all() {
            assert!(!format!("{error} {error:?} {error:#?}").contains("hush"), "{error}");
        }
    }

    #[test]
    fn what_the_host_said_is_told_by_the_accessors() {
        let error = &all()[0];
        assert_eq!(error.rpc_code(), Some(-1));
        assert_eq!(error.rpc_message(), Some("hush"));
        assert_eq!(error.rpc_data(), Some(&Value::from("hush")));
        assert_eq!(error.method(), Some("m"));
    }

    #[test]
    fn every_kind_tells_whether_it_was_sent() {
        let sent: Vec<_> = all().iter().map(|error| (error.code(), error.sent())).collect();
        assert_eq!(
            sent,
            [
                ("answered", true),
                ("timeout", true),
                ("ended", false),
                ("closed", true),
                ("oversize", true),
                ("unreadable", true),
                ("unwritable", false)
            ]
        );
    }
}
