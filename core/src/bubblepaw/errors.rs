//! What the host's errors become. The table of words is data, in one place.
//!
//! The host's own message is shown for the codes that say so and for no others; of `-32000` only its words count.

use super::wire::code;
use crate::error::{KitError, Outcome};
use crate::rpc::{ExitReport, RpcError};

/// A kind of error that words can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// There is no such thing.
    NotFound,
    /// It contradicts what already is.
    Conflict,
    /// A run goes on.
    Busy,
    /// The input can't be taken.
    Invalid,
    /// It is not allowed.
    Denied,
}

/// Words of a `-32000` message, and what they mean.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The method whose errors the row is for; none: all methods.
    pub method: Option<&'static str>,
    /// The words, whole ones, whatever their case.
    pub words: &'static [&'static str],
    /// What they mean.
    pub meaning: Meaning,
}

/// A method's own rows come first, then the general ones; of each the first that fits.
pub const WORDS: &[Row] = &[
    Row { method: Some("run.start"), words: &["busy", "already running", "run in progress"], meaning: Meaning::Busy },
    Row { method: Some("question.answer_child"), words: &["already answered"], meaning: Meaning::Conflict },
    Row {
        method: Some("question.answer_child"),
        words: &["foreign", "blank", "not a child"],
        meaning: Meaning::Invalid,
    },
    Row {
        method: Some("question.answer_child"),
        words: &["unknown", "expired", "not found"],
        meaning: Meaning::NotFound,
    },
    Row { method: Some("question.answer"), words: &["already answered"], meaning: Meaning::Conflict },
    Row {
        method: Some("question.answer"),
        words: &["unknown question", "expired", "not found"],
        meaning: Meaning::NotFound,
    },
    Row {
        method: Some("approval.decide"),
        words: &["already decided", "already resolved", "expired"],
        meaning: Meaning::Conflict,
    },
    Row { method: Some("approval.decide"), words: &["not found", "unknown approval"], meaning: Meaning::NotFound },
    Row { method: Some("roles.set_main"), words: &["unknown model", "unknown provider"], meaning: Meaning::NotFound },
    Row {
        method: None,
        words: &["not found", "no such", "unknown session", "unknown message"],
        meaning: Meaning::NotFound,
    },
    Row { method: None, words: &["conflict", "already"], meaning: Meaning::Conflict },
    Row { method: None, words: &["denied", "not allowed", "forbidden"], meaning: Meaning::Denied },
    Row { method: None, words: &["invalid", "must", "blank", "empty"], meaning: Meaning::Invalid },
];

/// What the words of a `-32000` message of `method` mean.
fn meaning(method: &str, message: &str) -> Option<Meaning> {
    let message = message.to_lowercase();
    let own = WORDS.iter().filter(|row| row.method == Some(method));
    let general = WORDS.iter().filter(|row| row.method.is_none());
    own.chain(general).find(|row| row.words.iter().any(|words| has_words(&message, words))).map(|row| row.meaning)
}

/// Whether `words` stand in `text` as whole words.
fn has_words(text: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).any(|(at, found)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + found.len()..].chars().next())
    })
}

/// The kit's error for one of the transport's.
pub(crate) fn kit_error(method: &str, error: RpcError) -> KitError {
    let kit = match &error {
        RpcError::Answered { rpc_code, rpc_message, rpc_data, .. } => {
            answered(method, *rpc_code, rpc_message, rpc_data.clone())
        }
        RpcError::Timeout { .. } => KitError::timeout(method).with_outcome(outcome(&error)),
        RpcError::Ended { end, .. } => host_exited(end).with_outcome(outcome(&error)),
        RpcError::Closed { .. } => KitError::closed().with_outcome(outcome(&error)),
        // The host did answer; what it said can't be told.
        RpcError::Oversize { .. } => {
            KitError::failed(format!("the answer to {method} is over the line limit")).with_outcome(Outcome::Unknown)
        }
        RpcError::Unreadable { .. } => unreadable(method),
        _ => KitError::failed(format!("{method} failed")).with_outcome(outcome(&error)),
    };
    kit.with_source(error)
}

/// The error for a host that is gone.
pub(crate) fn host_exited(report: &ExitReport) -> KitError {
    KitError::host_exited(report.exit_code, report.signal, report.stderr_tail.clone())
}

/// The error for an answer whose shape doesn't fit: it names the method, never the payload.
pub(crate) fn unreadable(method: &str) -> KitError {
    KitError::failed(format!("the answer to {method} does not fit the protocol")).with_outcome(Outcome::Unknown)
}

fn outcome(error: &RpcError) -> Outcome {
    if error.sent() { Outcome::Unknown } else { Outcome::NotSent }
}

fn answered(method: &str, rpc_code: i64, message: &str, data: Option<serde_json::Value>) -> KitError {
    let config = method == "config.set";
    let (error, data) = match rpc_code {
        code::NEEDS_SETUP => (KitError::needs_setup(message), None),
        code::CONFIG_UNKNOWN_KEY | code::CONFIG_WRONG_TYPE | code::CONFIG_INVALID_VALUE if config => {
            (KitError::invalid(message), data)
        }
        code::CONFIG_WRITE_FAILED if config => (KitError::failed(message), data),
        code::COMMAND_FAILED => (by_words(method, message), None),
        _ => (KitError::failed(format!("the host could not carry out {method}")), None),
    };
    error.with_host(rpc_code, data).with_outcome(Outcome::Refused)
}

fn by_words(method: &str, message: &str) -> KitError {
    match meaning(method, message) {
        Some(Meaning::NotFound) => KitError::not_found(format!("{method}: the host knows no such thing")),
        Some(Meaning::Conflict) => KitError::conflict(format!("{method}: it was decided or done already")),
        Some(Meaning::Busy) => KitError::busy("a run goes on in this chat"),
        Some(Meaning::Invalid) => KitError::invalid(format!("{method}: the host can't take this input")),
        Some(Meaning::Denied) => KitError::denied(format!("{method}: the host does not allow it")),
        None => KitError::failed(format!("the host could not carry out {method}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(method: &str, rpc_code: i64, message: &str) -> KitError {
        let error = RpcError::Answered {
            method: method.into(),
            rpc_code,
            rpc_message: message.into(),
            rpc_data: Some(serde_json::json!(7)),
        };
        kit_error(method, error)
    }

    #[test]
    fn each_word_of_the_table_means_what_its_row_says() {
        for row in WORDS {
            for words in row.words {
                let method = row.method.unwrap_or("session.rename");
                let got = code_of(method, -32000, &format!("Oh: {}!", words.to_uppercase()));
                let want = match row.meaning {
                    Meaning::NotFound => "not_found",
                    Meaning::Conflict => "conflict",
                    Meaning::Busy => "busy",
                    Meaning::Invalid => "invalid",
                    Meaning::Denied => "denied",
                };
                assert_eq!(got.code(), want, "{method}: {words}");
                assert_eq!((got.host_code(), got.host_data()), (Some(-32000), None));
                assert!(!got.message().contains("Oh:"), "the host's text is not shown");
                assert_eq!(got.outcome(), Some(Outcome::Refused));
            }
        }
    }

    #[test]
    fn a_methods_own_row_comes_before_the_general_one() {
        assert_eq!(code_of("approval.decide", -32000, "expired").code(), "conflict");
        assert_eq!(code_of("question.answer", -32000, "expired").code(), "not_found");
        assert_eq!(code_of("question.answer_child", -32000, "blank answer").code(), "invalid");
        assert_eq!(code_of("session.rename", -32000, "busy").code(), "failed");
        assert_eq!(code_of("run.start", -32000, "unknown session, already running").code(), "busy");
    }

    #[test]
    fn only_whole_words_count() {
        assert_eq!(code_of("session.rename", -32000, "mustard").code(), "failed");
        assert_eq!(code_of("session.rename", -32000, "alreadyish invalid_key").code(), "failed");
        assert_eq!(code_of("session.rename", -32000, "title must not be empty").code(), "invalid");
    }

    #[test]
    fn codes_with_a_row_of_their_own() {
        let setup = code_of("run.start", -32004, "set provider.key first");
        assert_eq!((setup.code(), setup.message()), ("needs_setup", "set provider.key first"));
        for (rpc_code, code) in [(-32010, "invalid"), (-32011, "invalid"), (-32012, "invalid"), (-32013, "failed")] {
            let error = code_of("config.set", rpc_code, "the host's text");
            assert_eq!((error.code(), error.message()), (code, "the host's text"));
            assert_eq!((error.host_code(), error.host_data()), (Some(rpc_code), Some(&serde_json::json!(7))));
            let elsewhere = code_of("run.start", rpc_code, "the host's text");
            assert_eq!((elsewhere.code(), elsewhere.host_data()), ("failed", None));
            assert!(!elsewhere.message().contains("the host's text"));
        }
    }

    #[test]
    fn any_other_code_is_a_failure_with_a_fixed_message() {
        for rpc_code in [-32601, -32602, -32603, -1, 0, 42] {
            let error = code_of("run.steer", rpc_code, "already not found secret");
            assert_eq!((error.code(), error.host_code()), ("failed", Some(rpc_code)));
            assert!(!error.message().contains("secret"));
        }
    }
}
