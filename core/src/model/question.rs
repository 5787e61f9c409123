//! Questions of the agent and their answers.

use super::QuestionId;
use serde::{Deserialize, Serialize};

/// A question that the agent waits on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Its id.
    pub id: QuestionId,
    /// What it asks.
    pub text: String,
    /// Labels to choose from; empty for free text alone.
    pub suggestions: Vec<String>,
}

/// An answer. JSON: a string, `{"text"}`, `{"choice", "text"?}`, `{"choices", "text"?}`, `{"skipped": true}`, or a list
/// of these for a question of several items. What a host can't take is refused before anything is sent: see
/// [`Constraints`](super::Constraints).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a string, {text}, {choice, text?}, {choices, text?}, {skipped} or a list of these"
)]
#[non_exhaustive]
pub enum Answer {
    /// A plain string: one text answer.
    Plain(String),
    /// One text answer.
    Text {
        /// The text.
        text: String,
    },
    /// One chosen label.
    Choice {
        /// The label.
        choice: String,
        /// A text beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Several chosen labels.
    Choices {
        /// The labels.
        choices: Vec<String>,
        /// A text beside them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The question is left unanswered on purpose.
    Skipped {
        /// True.
        skipped: bool,
    },
    /// One answer for each item of the question.
    Several(Vec<Answer>),
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Answer::Plain(text.to_owned())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Answer::Plain(text)
    }
}
