//! The JSON form: `{"steps":[…]}`, each step a plain item in a string, or an object of one word with its arguments. It
//! says what plain words can't: texts with semicolons, arguments and results of tools, suggestions, plans.

use kitport::bubblepaw::wire::Todo;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Plan, Step, plain};

pub(super) fn looks_like(text: &str) -> bool {
    // A message that begins like an object but isn't one is talk; one with `steps` is a script, also a broken one.
    text.starts_with('{') && text.contains("\"steps\"")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    steps: Vec<Value>,
}

pub(super) fn read(text: &str) -> Result<Vec<Step>, String> {
    let steps = if text.starts_with('[') {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        serde_json::from_str::<Script>(text).map_err(|error| error.to_string())?.steps
    };
    steps.into_iter().map(step).collect()
}

fn step(value: Value) -> Result<Step, String> {
    match value {
        Value::String(item) => plain::step(&item).ok_or_else(|| format!("not a word of the script: {item}")),
        Value::Object(object) if object.len() == 1 => {
            let (word, args) = object.into_iter().next().expect("it has one entry");
            word_with(&word, args)
        }
        other => Err(format!("a step is a string or an object of one word, not {other}")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    text: String,
    #[serde(default)]
    suggestions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Child {
    #[serde(default = "one")]
    count: u64,
    steps: Vec<Value>,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    kind: String,
    #[serde(default)]
    text: Option<String>,
}

fn word_with(word: &str, args: Value) -> Result<Step, String> {
    fn typed<T: serde::de::DeserializeOwned>(word: &str, args: Value) -> Result<T, String> {
        serde_json::from_value(args).map_err(|error| format!("{word}: {error}"))
    }
    Ok(match (word, args) {
        // Texts are taken as they are, with semicolons and new lines.
        ("say", Value::String(text)) => Step::Say(text),
        ("reply", Value::String(text)) => Step::Reply(text),
        ("system", Value::String(text)) => Step::System(text),
        ("fail", Value::String(text)) => Step::Fail(text),
        ("end", Value::String(status)) => Step::End(status),
        ("ask", Value::String(text)) => Step::Ask { text, suggestions: Vec::new() },
        ("ask", args @ Value::Object(_)) => {
            let Ask { text, suggestions } = typed(word, args)?;
            Step::Ask { text, suggestions }
        }
        ("tool", args @ Value::Object(_)) => {
            let Tool { name, arguments, result, is_error } = typed(word, args)?;
            Step::Tool { name, arguments: Value::Object(arguments), result, is_error }
        }
        ("plan", args @ Value::Array(_)) => Step::Plan(Plan::Set(typed::<Vec<Todo>>(word, args)?)),
        ("child", args @ Value::Object(_)) => {
            let Child { count, steps } = typed(word, args)?;
            steps.iter().cloned().map(step).collect::<Result<Vec<_>, _>>()?;
            Step::Child { count, script: json!({ "steps": steps }).to_string() }
        }
        ("write", args @ Value::Object(_)) => {
            let Write { path, text } = typed(word, args)?;
            Step::Write { path, text }
        }
        ("output", args @ Value::Object(_)) => {
            let Output { kind, text } = typed(word, args)?;
            Step::Output { kind, text }
        }
        // Everything else is the plain form in other clothes.
        (word, args) => {
            let item = match &args {
                Value::Null | Value::Bool(true) => word.to_owned(),
                Value::String(text) => format!("{word} {text}"),
                Value::Number(number) => format!("{word} {number}"),
                _ => return Err(format!("{word} doesn't take {args}")),
            };
            plain::step(&item).ok_or_else(|| format!("not a word of the script: {item}"))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_step_are_read() {
        let text = r#"{"steps":["stream 5",{"stream":5},{"say":"a; b\nc"},{"retry":null},{"quota":0.5},
            {"tool":{"name":"grep","arguments":{"q":1},"result":[1],"is_error":true}},
            {"ask":{"text":"Why?","suggestions":["So"]}},{"plan":[{"text":"x","status":"blocked"}]},
            {"child":{"count":2,"steps":["tool",{"ask":"hm?"}]}},{"write":{"path":"a b","text":""}},
            {"output":{"kind":"hologram"}}]}"#;
        let steps = read(text).unwrap();
        assert_eq!(steps.len(), 11);
        assert_eq!(steps[0], steps[1]);
        assert_eq!(steps[2], Step::Say("a; b\nc".into()));
        let Step::Child { count: 2, script } = &steps[8] else { panic!("{:?}", steps[8]) };
        assert_eq!(read(script).unwrap().len(), 2);
    }

    #[test]
    fn what_is_broken_tells_where() {
        for (text, words) in [
            (r#"{"steps":["#, "EOF"),
            (r#"{"steps":["dance"]}"#, "dance"),
            (r#"{"steps":[{"tool":{"nam":"x"}}]}"#, "tool"),
            (r#"{"steps":[{"a":1,"b":2}]}"#, "one word"),
            (r#"{"steps":[],"more":1}"#, "more"),
            (r#"{"steps":[{"child":{"steps":["dance"]}}]}"#, "dance"),
            (r#"{"steps":[{"stream":[1]}]}"#, "stream"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
