//! The plain form: words separated by `;` or new lines. A word counts only with arguments that fit, so that ordinary
//! sentences stay sentences.

use std::time::Duration;

use serde_json::json;

use super::{Plan, Step};

/// The most of anything that one step makes; a typing error shall not fill a disk.
const MOST: u64 = 100_000_000;

pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', '\n']).map(str::trim).filter(|item| !item.is_empty())
}

/// Reads one item; none where it isn't a word of the language.
pub(crate) fn step(item: &str) -> Option<Step> {
    let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
    let rest = rest.trim();
    let args: Vec<&str> = rest.split_whitespace().collect();
    let text = || rest.to_owned();
    Some(match (word.to_ascii_lowercase().as_str(), args.as_slice()) {
        ("stream", []) => Step::Stream { words: 60, slow: false },
        ("stream", [words]) => Step::Stream { words: count(words)?, slow: false },
        ("stream", [words, "slow"]) => Step::Stream { words: count(words)?, slow: true },
        ("say", [_, ..]) => Step::Say(text()),
        ("tool", []) => tool("read_file"),
        ("tool", [name]) => tool(name),
        ("nested", []) => Step::Nested,
        ("approve", []) => Step::Approve { tool: "shell".into() },
        ("approve", [tool]) => Step::Approve { tool: (*tool).into() },
        ("ask", []) => {
            Step::Ask { text: "Which colour shall it be?".into(), suggestions: vec!["green".into(), "blue".into()] }
        }
        ("ask", _) => Step::Ask { text: text(), suggestions: Vec::new() },
        ("plan", []) => Step::Plan(Plan::Make),
        ("plan", ["next"]) => Step::Plan(Plan::Next),
        ("plan", ["done"]) => Step::Plan(Plan::Done),
        ("plan", ["clear"]) => Step::Plan(Plan::Clear),
        ("child", _) => child(rest)?,
        ("compact", []) => Step::Compact { late: false },
        ("compact", ["late"]) => Step::Compact { late: true },
        ("quota", []) => Step::Quota(Duration::from_secs(1)),
        ("quota", [seconds]) => Step::Quota(seconds_of(seconds)?),
        ("output", []) => Step::Output { kind: "text".into(), text: None },
        ("output", [kind @ ("text" | "file" | "image" | "execution")]) => {
            Step::Output { kind: (*kind).into(), text: None }
        }
        ("output", ["text", ..]) => {
            Step::Output { kind: "text".into(), text: Some(rest["text".len()..].trim().to_owned()) }
        }
        ("system", [_, ..]) => Step::System(text()),
        ("fail", []) => Step::Fail("the script said so".into()),
        ("fail", _) => Step::Fail(text()),
        ("end", [status]) => Step::End((*status).into()),
        ("retry", []) => Step::Retry,
        ("mismatch", []) => Step::Mismatch,
        ("notext", []) => Step::NoText,
        ("sleep", [ms]) => Step::Sleep(Duration::from_millis(count(ms)?)),
        ("write", [path, _, ..]) => {
            Step::Write { path: (*path).into(), text: rest[path.len()..].trim_start().to_owned() }
        }
        ("flood", [n]) => Step::Flood(count(n)?),
        ("tools", [n]) => Step::Tools(count(n)?),
        ("big", [bytes]) => Step::Big(count(bytes)?),
        ("crash", []) => Step::Crash(70),
        ("crash", [code]) => Step::Crash(code.parse().ok()?),
        ("unicode", []) => Step::Unicode,
        ("request", []) => Step::Request,
        _ => return None,
    })
}

fn count(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok().filter(|count| *count <= MOST)
}

fn seconds_of(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn tool(name: &str) -> Step {
    Step::Tool {
        name: name.into(),
        arguments: json!({ "path": "notes/today.md" }),
        result: json!({ "lines": 3, "text": "one\ntwo\nthree" }),
        is_error: false,
    }
}

/// `child`, `child 3`, `child ask`, `child 2 stream 10, tool`: the child's own steps are separated by commas.
fn child(rest: &str) -> Option<Step> {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (count, script) = match count(first) {
        Some(count) => (count, after.trim()),
        None => (1, rest),
    };
    let script: Vec<&str> = script.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    // A child of a child takes all the rest: there is one kind of comma only.
    let script = match script.iter().position(|item| item.starts_with("child")) {
        Some(at) => {
            let mut items: Vec<String> = script[..at].iter().map(|item| (*item).to_owned()).collect();
            items.push(script[at..].join(", "));
            items
        }
        None => script.iter().map(|item| (*item).to_owned()).collect(),
    };
    if script.iter().any(|item| step(item).is_none()) {
        return None;
    }
    let script = if script.is_empty() { "stream 20; tool".to_owned() } else { script.join("; ") };
    Some(Step::Child { count, script })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code spans of the first column of the page's table.
    fn page() -> Vec<&'static str> {
        let page = include_str!("../../../SCRIPTS.md");
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn every_word_of_the_page_is_read() {
        assert!(page().len() > 40);
        for item in page() {
            assert!(step(item).is_some(), "{item}");
        }
    }

    #[test]
    fn every_step_has_a_word_on_the_page() {
        let on_page: Vec<_> = page().into_iter().filter_map(step).collect();
        let kinds: std::collections::HashSet<_> = on_page.iter().map(std::mem::discriminant).collect();
        // All but `reply`, which is what text without words becomes.
        assert_eq!(kinds.len(), 25);
        for item in ["stream 1_000 slow", "STREAM 3", "output text Hello all"] {
            assert!(step(item).is_some(), "{item}");
        }
    }

    #[test]
    fn what_does_not_fit_is_no_word() {
        for item in [
            "say",
            "stream many",
            "stream 5 fast",
            "tool up the shed",
            "plan a trip",
            "child of mine",
            "quota -1",
            "quota x",
            "sleep",
            "write a.txt",
            "flood",
            "flood 999999999999",
            "crash hard",
            "unicode is fun",
            "dance",
        ] {
            assert_eq!(step(item), None, "{item}");
        }
    }

    #[test]
    fn a_child_takes_steps_between_commas() {
        assert_eq!(step("child 2 stream 5, tool"), Some(Step::Child { count: 2, script: "stream 5; tool".into() }));
        let nested = step("child retry, child ask, tool");
        assert_eq!(nested, Some(Step::Child { count: 1, script: "retry; child ask, tool".into() }));
    }

    #[test]
    fn a_text_keeps_its_inner_spaces() {
        assert_eq!(step("write a.txt  x  y"), Some(Step::Write { path: "a.txt".into(), text: "x  y".into() }));
    }
}
