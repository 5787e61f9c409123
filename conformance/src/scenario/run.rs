//! The runner: plays a scenario's steps through the door against a host in a process of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use kitport::BubblePaw;
use kitport::bubblepaw::Options;
use kitport::door::{Door, DoorStream};
use serde_json::{Map, Value, json};

use super::Scenario;
use super::normal::Normal;
use super::step::{Await, Call, Open, Step};
use crate::{NEVER, host_command};

/// A stream and what was read of it.
struct Reading {
    stream: DoorStream,
    /// The chat whose events they are, where they are.
    chat: Option<Value>,
    items: Vec<Value>,
    /// Items up to here were waited for: what lies behind them came or not, as it happened.
    waited: usize,
}

struct Play<'a> {
    name: &'a str,
    program: &'a Path,
    args: Vec<String>,
    door: Door,
    variables: HashMap<String, Value>,
    /// In the order in which they were opened.
    streams: Vec<(String, Reading)>,
    outcomes: Vec<Value>,
}

/// Plays a scenario with `program` as its host, with `more` arguments. Gives what came, normalised.
pub async fn run(scenario: &Scenario, program: &Path, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let place = folder.path().to_string_lossy().into_owned();
    let mut args: Vec<String> = vec!["--workspace".to_owned(), place.clone()];
    args.extend(scenario.host.iter().map(|arg| arg.replace("$folder", &place)));
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    let mut play = Play {
        name: &scenario.name,
        program,
        door: open(program, &args).await,
        args,
        variables: HashMap::new(),
        streams: Vec::new(),
        outcomes: Vec::new(),
    };
    for (number, step) in scenario.steps.iter().enumerate() {
        tokio::time::timeout(NEVER, play.step(step))
            .await
            .unwrap_or_else(|_| panic!("{}: step {number} does not end: {step:?}", scenario.name));
    }
    play.check_streams(scenario.replays).await;
    play.door.call("close", Value::Null).await.expect("a backend closes");
    play.report(&place)
}

async fn open(program: &Path, args: &[String]) -> Door {
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let backend = BubblePaw::spawn(host_command(program, &args), Options::default()).await;
    Door::new(Arc::new(backend.expect("the host starts")))
}

impl Play<'_> {
    async fn step(&mut self, step: &Step) {
        match step {
            Step::Call(call) => self.call(call).await,
            Step::Open(open) => self.open(open).await,
            Step::Await(wait) => self.wait(wait).await,
            Step::Ended(ended) => {
                let reading = self.reading(&ended.ended);
                let error = loop {
                    if !reading.stream.ready().await {
                        break None;
                    }
                    match reading.stream.take(usize::MAX) {
                        Ok(items) => reading.items.extend(items),
                        Err(error) => break Some(json!(error)),
                    }
                };
                let mut outcome = json!({"ended": ended.ended});
                if let Some(error) = error {
                    outcome["error"] = error;
                }
                self.outcomes.push(outcome);
            }
            Step::Restart(_) => {
                self.door.call("close", Value::Null).await.expect("a backend closes");
                self.door = open(self.program, &self.args).await;
            }
        }
    }

    async fn call(&mut self, call: &Call) {
        let params = self.filled(&call.params);
        let mut outcome = json!({"call": call.call});
        for _ in 1..call.times {
            let earlier = self.door.call(&call.call, params.clone()).await;
            earlier.unwrap_or_else(|error| panic!("{}: {} failed: {error}", self.name, call.call));
        }
        match self.door.call(&call.call, params).await {
            Ok(result) => {
                if let Some(keep) = &call.keep {
                    self.variables.insert(keep.clone(), result.clone());
                }
                outcome["result"] = match (&result, call.only.as_slice()) {
                    (Value::Object(fields), only @ [_, ..]) => {
                        let chosen = only.iter().filter_map(|name| Some((name.clone(), fields.get(name)?.clone())));
                        Value::Object(chosen.collect())
                    }
                    _ => result,
                };
            }
            Err(error) => {
                assert!(call.keep.is_none(), "{}: {} failed: {error:?}", self.name, call.call);
                outcome["error"] = json!(error);
            }
        }
        self.outcomes.push(outcome);
    }

    async fn open(&mut self, open: &Open) {
        let params = self.filled(&open.params);
        let chat = params.get("chat").filter(|_| open.open == "events").cloned();
        let stream = self.door.open_async(&open.open, params).await;
        let stream = stream.unwrap_or_else(|error| panic!("{}: {} does not open: {error}", self.name, open.open));
        self.streams.push((open.name.clone(), Reading { stream, chat, items: Vec::new(), waited: 0 }));
    }

    fn reading(&mut self, name: &str) -> &mut Reading {
        let found = self.streams.iter_mut().find(|(known, _)| known == name);
        &mut found.unwrap_or_else(|| panic!("there is no stream {name}")).1
    }

    async fn wait(&mut self, wait: &Await) {
        let fields = self.fill(&wait.fields);
        let name = self.name.to_owned();
        let reading = self.reading(&wait.stream);
        let patterns = match fields {
            Value::Array(patterns) => patterns,
            one => vec![one],
        };
        let from = reading.waited;
        let mut item = Value::Null;
        for fields in patterns {
            let found = loop {
                if let Some(found) = reading.items[from..].iter().position(|item| has(item, &fields)) {
                    break from + found;
                }
                assert!(reading.stream.ready().await, "{name}: the stream ended before {fields}");
                let items = reading.stream.take(usize::MAX);
                reading.items.extend(items.unwrap_or_else(|error| panic!("{name}: before {fields}: {error}")));
            };
            reading.waited = reading.waited.max(found + 1);
            item = reading.items[found].clone();
        }
        if let Some(keep) = &wait.keep {
            self.variables.insert(keep.clone(), item);
        }
    }

    fn filled(&self, params: &Map<String, Value>) -> Value {
        self.fill(&Value::Object(params.clone()))
    }

    /// The value with variables in place of their names.
    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(path) => {
                    let mut parts = path.split('.');
                    let name = parts.next().unwrap_or_default();
                    let variable = self.variables.get(name);
                    let variable = variable.unwrap_or_else(|| panic!("{}: there is no ${name}", self.name));
                    let found = parts.try_fold(variable, |value, part| match part.parse::<usize>() {
                        Ok(index) => value.get(index),
                        Err(_) => value.get(part),
                    });
                    found.unwrap_or_else(|| panic!("{}: ${path} is not in {variable}", self.name)).clone()
                }
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), self.fill(field))).collect(),
            other => other.clone(),
        }
    }

    /// What is true of every scenario: durable sequences increase, and a replay gives the same durable events.
    async fn check_streams(&mut self, replays: bool) {
        for (stream, reading) in &self.streams {
            let durable: Vec<_> = reading.items.iter().filter(|item| item["durable"] == true).collect();
            let sequences: Vec<_> = durable.iter().filter_map(|event| event["seq"].as_u64()).collect();
            assert_eq!(sequences.len(), durable.len());
            let Some(chat) = &reading.chat else { continue };
            assert!(sequences.is_sorted_by(|a, b| a < b), "{}: {stream}: {sequences:?}", self.name);
            let Some(last) = sequences.last().filter(|_| replays) else { continue };
            let replay = self.door.open("events", json!({"chat": chat, "after": 0})).expect("a stream opens");
            let mut again = Vec::new();
            while again.last().is_none_or(|event: &Value| event["seq"].as_u64() < Some(*last)) {
                assert!(tokio::time::timeout(NEVER, replay.ready()).await.expect("the replay goes on"));
                let items = replay.take(usize::MAX).expect("the replay is well");
                again.extend(items.into_iter().filter(|item| item["durable"] == true));
            }
            again.retain(|event| sequences.contains(&event["seq"].as_u64().unwrap_or_default()));
            assert_eq!(json!(again), json!(durable), "{}: {stream}: the replay differs", self.name);
        }
    }

    fn report(self, folder: &str) -> Value {
        let mut streams = Map::new();
        for (name, reading) in self.streams {
            let waited = reading.items.into_iter().take(reading.waited);
            // Of events the durable ones; of other streams all.
            let items = waited.filter(|item| item.get("durable").is_none_or(|durable| durable == true));
            streams.insert(name, items.collect());
        }
        Normal::new(folder).value(&json!({"outcomes": self.outcomes, "streams": streams}))
    }
}

/// Whether `item` has all of `fields`.
fn has(item: &Value, fields: &Value) -> bool {
    match (item, fields) {
        (Value::Object(item), Value::Object(fields)) => {
            fields.iter().all(|(key, field)| item.get(key).is_some_and(|value| has(value, field)))
        }
        (item, field) => item == field,
    }
}
