//! Constraints: finer limits than a capability tells.

use serde::{Deserialize, Serialize};

/// What inputs a host takes. What it doesn't is refused before anything is sent. The default is true for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Eq, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Constraints {
    /// Whether `send` takes references.
    pub references: bool,
    /// Which answers it takes.
    pub question_answers: QuestionAnswers,
    /// Whether a text can be queued while a run goes on.
    pub follow_up_while_running: bool,
}

/// Which shapes of answers a host takes, beside one text or one choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Eq, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswers {
    /// One answer for each item of a question.
    pub several_items: bool,
    /// More than one label.
    pub several_choices: bool,
    /// A label and a text together.
    pub choice_and_text: bool,
    /// No answer.
    pub skip: bool,
}

impl Default for Constraints {
    fn default() -> Self {
        Self { references: true, question_answers: QuestionAnswers::default(), follow_up_while_running: true }
    }
}

impl Default for QuestionAnswers {
    fn default() -> Self {
        Self { several_items: true, several_choices: true, choice_and_text: true, skip: true }
    }
}
