//! The script language: what the user's message tells the agent to do. Plain words or JSON; `SCRIPTS.md` is its page.

mod json;
mod plain;

use std::time::Duration;

use kitport::bubblepaw::wire::Todo;
use serde_json::Value;

/// One thing that the agent does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// So many words of text; slowly where told.
    Stream { words: u64, slow: bool },
    /// This text.
    Say(String),
    /// An answer to a text that is no script.
    Reply(String),
    /// A tool call.
    Tool { name: String, arguments: Value, result: Value, is_error: bool },
    /// A tool that calls tools: nested calls aren't durable.
    Nested,
    /// A tool that needs approval.
    Approve { tool: String },
    /// A question to the user.
    Ask { text: String, suggestions: Vec<String> },
    /// The plan.
    Plan(Plan),
    /// Children, each with a script of its own.
    Child { count: u64, script: String },
    /// A compaction of the context; applied at the end of the run where it is late.
    Compact { late: bool },
    /// A wait for quota.
    Quota(Duration),
    /// A publication.
    Output { kind: String, text: Option<String> },
    /// A system message.
    System(String),
    /// The run fails.
    Fail(String),
    /// The run ends with a status of any name.
    End(String),
    /// The text of this step is thrown away, and the model asked anew.
    Retry,
    /// A paragraph that contradicts its deltas.
    Mismatch,
    /// The end of the run doesn't tell the text.
    NoText,
    /// Nothing for a while.
    Sleep(Duration),
    /// A tool that writes a file of the workspace.
    Write { path: String, text: String },
    /// So many small deltas.
    Flood(u64),
    /// So many tool calls.
    Tools(u64),
    /// A tool result of so many bytes.
    Big(u64),
    /// The host exits.
    Crash(i32),
    /// Text that is hard on counters of characters.
    Unicode,
    /// The host asks the client something and waits for the answer.
    Request,
}

/// What becomes of the plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plan {
    /// Three steps, the first of them done.
    Make,
    /// These steps.
    Set(Vec<Todo>),
    /// The step now is done, the next begins.
    Next,
    /// All is done.
    Done,
    /// No plan any more.
    Clear,
}

/// What stands before a script that should not be taken for anything else.
const PREFIX: &str = "script:";

/// The fence around a script in a longer text.
const FENCE: &str = "```";

/// Reads a message. A text without any word of the language is answered in a friendly way.
pub(crate) fn read(text: &str) -> Result<Vec<Step>, String> {
    let whole = text.trim();
    if let Some(script) = whole.strip_prefix(PREFIX) {
        return strict(script.trim());
    }
    if let Some((_, rest)) = whole.split_once(FENCE)
        && let Some((script, _)) = rest.split_once(FENCE)
    {
        return strict(script.strip_prefix("script").unwrap_or(script).trim());
    }
    if json::looks_like(whole) {
        return json::read(whole);
    }
    let items: Vec<(&str, Option<Step>)> = plain::items(whole).map(|item| (item, plain::step(item))).collect();
    if items.iter().all(|(_, step)| step.is_none()) {
        return Ok(vec![Step::Reply(whole.to_owned())]);
    }
    Ok(items.into_iter().map(|(item, step)| step.unwrap_or_else(|| Step::Reply(item.to_owned()))).collect())
}

/// Reads what is surely a script: a word that isn't known is an error.
fn strict(script: &str) -> Result<Vec<Step>, String> {
    if script.starts_with('{') || script.starts_with('[') {
        return json::read(script);
    }
    plain::items(script)
        .map(|item| plain::step(item).ok_or_else(|| format!("not a word of the script: {item}")))
        .collect()
}

pub(crate) use plain::step as plain_step;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_words_is_answered() {
        for text in
            ["Hello there", "I have a plan for the toolshed", "stream of thoughts", "/usr/bin fails", "", "{not json"]
        {
            assert_eq!(read(text).unwrap(), [Step::Reply(text.to_owned())], "{text}");
        }
    }

    #[test]
    fn words_and_talk_can_be_mixed() {
        assert_eq!(read("hello; retry").unwrap(), [Step::Reply("hello".into()), Step::Retry]);
    }

    #[test]
    fn a_fence_or_a_prefix_makes_a_script_and_is_strict() {
        let both = [Step::Retry, Step::Unicode];
        assert_eq!(read("script: retry; unicode").unwrap(), both);
        assert_eq!(read("Please:\n```script\nretry\nunicode\n```\nThanks").unwrap(), both);
        assert_eq!(read("```\n{\"steps\":[\"retry\",\"unicode\"]}\n```").unwrap(), both);
        assert!(read("script: retyr").is_err());
        assert!(read("```retry; nonsense```").is_err());
    }
}
