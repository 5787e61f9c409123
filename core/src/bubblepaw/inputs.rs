//! Inputs of an app, checked before anything is sent. Pure.

use crate::error::{KitError, Outcome, Result};
use crate::model::{Answer, Decision, Reference};

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(KitError::invalid(message).with_outcome(Outcome::NotSent))
}

/// A text to send: not blank, and no slash command of the host's, which would not start a run.
pub(crate) fn text(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return refuse("the text is blank");
    }
    if is_slash_command(text) {
        return refuse("slash commands of the host can't be sent as a text");
    }
    Ok(())
}

/// `^/[a-z][a-z0-9_-]*(\s|$)`
fn is_slash_command(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('/') else { return false };
    let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-'));
    let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
    word.starts_with(|c: char| c.is_ascii_lowercase()) && behind.chars().next().is_none_or(char::is_whitespace)
}

/// No references: the host takes text only.
pub(crate) fn references(references: &[Reference]) -> Result<()> {
    if references.is_empty() { Ok(()) } else { refuse("this host takes no references") }
}

/// One chosen label or one text.
pub(crate) fn answer(answer: Answer) -> Result<String> {
    let text = match answer {
        Answer::Plain(text) | Answer::Text { text } => text,
        Answer::Choice { choice, text: None } => choice,
        Answer::Choices { mut choices, text: None } if choices.len() == 1 => choices.remove(0),
        Answer::Several(mut items) if items.len() == 1 => return self::answer(items.remove(0)),
        Answer::Choice { .. } => return refuse("this host takes a label or a text, not both"),
        Answer::Choices { .. } => return refuse("this host takes one label"),
        Answer::Skipped { .. } => return refuse("this host takes no skipped answers"),
        Answer::Several(_) => return refuse("this host takes one answer"),
    };
    if text.trim().is_empty() { refuse("the answer is blank") } else { Ok(text) }
}

/// The host's word for a decision.
pub(crate) fn decision(decision: &Decision) -> Result<&'static str> {
    match decision {
        Decision::Approve => Ok("approve"),
        Decision::ApproveSession => Ok("approve_session"),
        Decision::Deny => Ok("deny"),
        Decision::Option(_) => refuse("this approval has no options"),
    }
}

/// A message that the host knows: a provisional one is the kit's own.
pub(crate) fn canonical(message: &str) -> Result<()> {
    if message.starts_with("provisional:") {
        return refuse("a provisional message has no place in the host's history yet: load the chat for its own id");
    }
    if message.is_empty() { refuse("the message's id is empty") } else { Ok(()) }
}

/// A model's id, `provider/model`.
pub(crate) fn model(model: &str) -> Result<()> {
    match model.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => Ok(()),
        _ => refuse("a model's id is provider/model"),
    }
}

/// A title: not blank.
pub(crate) fn title(title: &str) -> Result<()> {
    if title.trim().is_empty() { refuse("the title is blank") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_commands_are_refused_and_paths_are_not() {
        for command in ["/compact", "/a now", "/x-y_z1\targ", "/help\nmore", "/a\u{2028}b"] {
            assert!(text(command).is_err(), "{command:?}");
        }
        for plain in
            ["/usr/bin fails", "/", "//x", "/X", "/1a", "/compact!", "/é", " /compact", "/tmp.txt", "say /compact"]
        {
            assert!(text(plain).is_ok(), "{plain:?}");
        }
    }

    #[test]
    fn blank_text_is_refused() {
        for blank in ["", " ", "\n\t", "\u{2003}"] {
            assert_eq!(text(blank).unwrap_err().code(), "invalid");
        }
    }

    #[test]
    fn one_label_or_one_text_is_an_answer_and_nothing_else_is() {
        let read = |json: serde_json::Value| answer(serde_json::from_value(json).unwrap());
        for (json, text) in [
            (serde_json::json!("a"), "a"),
            (serde_json::json!({"text": "b"}), "b"),
            (serde_json::json!({"choice": "c"}), "c"),
            (serde_json::json!({"choices": ["d"]}), "d"),
            (serde_json::json!([{"choice": "e"}]), "e"),
        ] {
            assert_eq!(read(json).unwrap(), text);
        }
        for json in [
            serde_json::json!({"choices": ["a", "b"]}),
            serde_json::json!({"choices": []}),
            serde_json::json!({"choice": "a", "text": "b"}),
            serde_json::json!({"skipped": true}),
            serde_json::json!(["a", "b"]),
            serde_json::json!([]),
            serde_json::json!(" "),
        ] {
            assert_eq!(read(json.clone()).unwrap_err().code(), "invalid", "{json}");
        }
    }
}
