//! The order of a replay, without its time: which recorded line may come next, and what a request is answered with.

use std::collections::HashMap;

use kitport::bubblepaw::wire::{self, Method};
use kitport::rpc::{Direction, Recorded};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::known::Known;
use crate::failure::Failure;
use crate::protocol::{Request, error_line};

/// Methods that only read: they are answered out of turn, and nothing waits for them.
const READS: &[&str] = &[
    wire::SessionList::NAME,
    wire::SessionState::NAME,
    wire::ApprovalList::NAME,
    wire::EventsAfter::NAME,
    wire::HistoryRange::NAME,
    wire::ContextStructure::NAME,
    wire::ContextEvents::NAME,
    wire::ContextView::NAME,
    wire::ContextSummary::NAME,
    wire::ProvidersList::NAME,
];

/// How far ahead in the recording a state may lie that a client waits for; anything later would time out.
const SOON_US: u64 = 2_000_000;

#[derive(Debug)]
enum Entry {
    /// A request of the recorded client; a free one is nothing to wait for.
    Request { method: String, params: Value, free: bool, answer: Option<usize> },
    /// An answer to the request at that place; a state with its session and sequence.
    Answer { to: usize, json: String, state: Option<(String, u64)> },
    /// Anything else that the host wrote: a durable event with its session, or not.
    Line { line: String, event: Option<(String, u64)> },
    /// On stderr.
    Err(String),
    /// What the recorded client wrote beside requests.
    Nothing,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Played {
    Out(String),
    Err(String),
}

/// What a request causes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// This answer.
    Now(Vec<u8>),
    /// The answer comes in its turn; the recording goes on from this time of its own.
    Opened {
        at_us: u64,
    },
    None,
}

/// A recording that is being played.
#[derive(Debug)]
pub(super) struct Player {
    entries: Vec<(u64, Entry)>,
    at: usize,
    used: Vec<bool>,
    /// The ids that the client gave to the request at that place, for an answer in its turn.
    ids: HashMap<usize, Vec<String>>,
    known: Known,
}

#[derive(Deserialize)]
struct Form<'l> {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(borrow, default)]
    result: Option<&'l RawValue>,
    #[serde(borrow, default)]
    error: Option<&'l RawValue>,
}

/// The part of a state that says of when it is.
#[derive(Deserialize)]
struct State {
    sequence: u64,
}

impl Player {
    pub(super) fn new(recorded: Vec<Recorded>) -> Player {
        let mut entries: Vec<(u64, Entry)> = Vec::with_capacity(recorded.len());
        // Each connection of a recording has ids of its own.
        let mut open: HashMap<(usize, String), usize> = HashMap::new();
        let mut known = Known::default();
        for recorded in recorded {
            let connection = recorded.connection;
            let form: Option<Form<'_>> = serde_json::from_str(&recorded.line).ok();
            let place = entries.len();
            let entry = match (recorded.dir, form) {
                (Direction::Err, _) => Entry::Err(recorded.line),
                (Direction::Out, Some(Form { id, method: Some(method), params, .. })) if !id.is_null() => {
                    open.insert((connection, id.to_string()), place);
                    // A client shakes hands once, however often the recorded host was started again.
                    let again = connection > 0 && method == wire::Initialize::NAME;
                    Entry::Request { free: again || READS.contains(&method.as_str()), method, params, answer: None }
                }
                (Direction::Out, _) => Entry::Nothing,
                (Direction::In, Some(Form { id, method: None, result, error, .. }))
                    if open.contains_key(&(connection, id.to_string())) && (result.is_some() || error.is_some()) =>
                {
                    let to = open.remove(&(connection, id.to_string())).expect("it was found just now");
                    let mut state = None;
                    if let (_, Entry::Request { answer, method, params, .. }) = &mut entries[to] {
                        *answer = Some(place);
                        match (method.as_str(), result) {
                            (wire::EventsAfter::NAME, Some(result)) => {
                                known.page(params, &serde_json::from_str(result.get()).unwrap_or_default());
                            }
                            (wire::SessionState::NAME, Some(result)) => {
                                let session = params.get("session_id").and_then(Value::as_str);
                                let sequence = serde_json::from_str::<State>(result.get()).ok();
                                state =
                                    session.zip(sequence).map(|(session, state)| (session.to_owned(), state.sequence));
                            }
                            _ => {}
                        }
                    }
                    let json = match (result, error) {
                        (Some(result), _) => format!("\"result\":{result}"),
                        (None, Some(error)) => format!("\"error\":{error}"),
                        (None, None) => continue,
                    };
                    Entry::Answer { to, json, state }
                }
                (Direction::In, form) => {
                    let event = form.filter(|form| form.method.as_deref() == Some("event")).and_then(|form| {
                        let event = form.params.get("event")?;
                        let durable = event.get("durable").and_then(Value::as_bool).unwrap_or(true);
                        let session = form.params.get("session_id")?.as_str()?.to_owned();
                        let sequence = event.get("sequence")?.as_u64()?;
                        durable.then(|| known.event(&session, sequence, event))?;
                        Some((session, sequence))
                    });
                    Entry::Line { line: recorded.line, event }
                }
            };
            entries.push((recorded.micros, entry));
        }
        let used = vec![false; entries.len()];
        Player { entries, at: 0, used, ids: HashMap::new(), known }
    }

    /// Passes what isn't played: reads, what the client wrote, answers that nobody waits for.
    fn skip(&mut self) {
        while let Some((_, entry)) = self.entries.get(self.at) {
            let gate = match entry {
                Entry::Request { free, .. } => !free && !self.used[self.at],
                Entry::Answer { to, .. } => self.ids.contains_key(to),
                Entry::Line { .. } | Entry::Err(_) => true,
                Entry::Nothing => false,
            };
            if gate {
                return;
            }
            self.at += 1;
        }
    }

    /// The time of the next line, unless a command must come first or the recording is over.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        self.skip();
        match self.entries.get(self.at)? {
            (_, Entry::Request { .. }) => None,
            (at, _) => Some(*at),
        }
    }

    /// The next line, or lines where many wait for one answer.
    pub(super) fn play(&mut self) -> Option<Played> {
        self.next_time()?;
        let played = match &self.entries[self.at].1 {
            Entry::Line { line, event } => {
                if let Some((session, sequence)) = event {
                    self.known.told(session, *sequence);
                }
                Some(Played::Out(line.clone()))
            }
            Entry::Err(line) => Some(Played::Err(line.clone())),
            Entry::Answer { to, json, state } => {
                if let Some((session, sequence)) = state {
                    self.known.told(session, *sequence);
                }
                let ids = self.ids.remove(to).unwrap_or_default();
                let lines: Vec<_> =
                    ids.iter().map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{json}}}")).collect();
                Some(Played::Out(lines.join("\n")))
            }
            Entry::Request { .. } | Entry::Nothing => None,
        };
        self.at += 1;
        played
    }

    /// Matches a request of the client.
    pub(super) fn request(&mut self, request: &Request<'_>) -> Reply {
        let asked: Value = serde_json::from_str(request.params_json()).unwrap_or(Value::Null);
        let read = READS.contains(&request.method);
        let found = match request.method {
            wire::EventsAfter::NAME => return Reply::Now(request.answer(&self.known.after(&asked))),
            wire::SessionState::NAME => self.find_state(&asked),
            method => self.find(method, &asked, read),
        };
        let Some(place) = found else {
            let failure = Failure::refused(format!("not found in the recording: {}", request.method));
            return Reply::Now(error_line(request.id, &failure));
        };
        let (time, Entry::Request { answer, .. }) = &self.entries[place] else { return Reply::None };
        let (time, answer) = (*time, *answer);
        self.used[place] = true;
        let ahead = answer.is_some_and(|answer| answer >= self.at);
        if !read {
            // Commands that the client left out open their gates as well.
            for (used, (_, entry)) in self.used[..place].iter_mut().zip(&self.entries) {
                *used |= matches!(entry, Entry::Request { method, .. } if !READS.contains(&method.as_str()));
            }
            if ahead {
                // Its answer comes in its turn, with what came before and after it.
                self.ids.entry(place).or_default().push(request.id.to_owned());
                return Reply::Opened { at_us: time };
            }
        } else if ahead && request.method == wire::SessionState::NAME && answer.is_some_and(|at| self.comes_soon(at)) {
            self.ids.entry(place).or_default().push(request.id.to_owned());
            return Reply::None;
        }
        match answer.map(|answer| &self.entries[answer].1) {
            Some(Entry::Answer { json, state, .. }) => {
                if let Some((session, sequence)) = state {
                    // It may tell more than was played; from now on that is known.
                    self.known.told(session, *sequence);
                }
                Reply::Now(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{json}}}\n", request.id).into_bytes())
            }
            // The recorded host never answered, and neither does this one.
            _ if read => Reply::None,
            _ => Reply::Opened { at_us: time },
        }
    }

    /// Whether the recording gets to that place by itself, and soon.
    fn comes_soon(&self, place: usize) -> bool {
        let (now, _) = self.entries[self.at];
        let (then, _) = self.entries[place];
        let way = self.entries[self.at..place].iter().zip(&self.used[self.at..place]);
        let gate =
            way.into_iter().any(|((_, entry), used)| matches!(entry, Entry::Request { free, .. } if !free && !used));
        !gate && then.saturating_sub(now) <= SOON_US
    }

    /// The recorded state that fits what the client was told: one of the same sequence, else the next that comes soon,
    /// else the last one, else the first.
    fn find_state(&self, asked: &Value) -> Option<usize> {
        let session = asked.get("session_id").and_then(Value::as_str)?;
        let horizon = self.known.horizon(session);
        let (mut fitting, mut last, mut soon, mut first) = (None, None, None, None);
        for (at, (_, entry)) in self.entries.iter().enumerate() {
            let Entry::Answer { to, state: Some((of, sequence)), .. } = entry else { continue };
            if of != session {
                continue;
            }
            if at < self.at {
                last = Some(*to);
                if *sequence == horizon {
                    fitting = Some(*to);
                }
            } else {
                first = first.or(Some(*to));
                if soon.is_none() && self.comes_soon(at) {
                    soon = Some(*to);
                }
            }
        }
        fitting.or(soon).or(last).or(first)
    }

    /// The recorded request that this one stands for.
    fn find(&self, method: &str, asked: &Value, read: bool) -> Option<usize> {
        let fits = |place: &usize, exact: bool| match &self.entries[*place].1 {
            Entry::Request { method: recorded, params, .. } => recorded == method && (!exact || params == asked),
            _ => false,
        };
        let unused = |exact: bool| (0..self.entries.len()).find(|place| !self.used[*place] && fits(place, exact));
        let used = |exact: bool| (0..self.entries.len()).rev().find(|place| self.used[*place] && fits(place, exact));
        let found = unused(true).or_else(|| if read { used(true) } else { None }).or_else(|| unused(false));
        if read { found.or_else(|| used(false)) } else { found }
    }
}

#[cfg(test)]
mod tests {
    use kitport::bubblepaw::wire::code;

    use super::*;
    use crate::protocol::{Incoming, read_request};

    fn recording(lines: &[(&str, &str)]) -> Vec<Recorded> {
        let mut text = String::from("{\"kitportRecording\":1}\n");
        for (n, (dir, line)) in lines.iter().enumerate() {
            text.push_str(&match *dir {
                "again" => String::from("{\"kitportRecording\":1}"),
                dir => serde_json::json!({ "at": "x", "t": n * 1000, "dir": dir, "line": line }).to_string(),
            });
            text.push('\n');
        }
        let recording = kitport::rpc::Recording::from_reader(std::io::Cursor::new(text)).unwrap();
        recording.map(Result::unwrap).collect()
    }

    fn ask(player: &mut Player, line: &str) -> Reply {
        read_request(line.as_bytes(), |incoming| match incoming {
            Ok(Incoming::Request(request)) => player.request(&request),
            other => panic!("{other:?}"),
        })
    }

    fn now(reply: Reply) -> Value {
        let Reply::Now(line) = reply else { panic!("{reply:?}") };
        serde_json::from_slice(&line).unwrap()
    }

    fn event(sequence: u64) -> String {
        format!(
            r#"{{"method":"event","params":{{"session_id":"s","event":{{"sequence":{sequence},"type":"x","data":{{}}}}}}}}"#
        )
    }

    #[test]
    fn lines_wait_for_the_commands_that_caused_them() {
        let (first, second) = (event(1), event(2));
        let mut player = Player::new(recording(&[
            ("in", "starting up"),
            ("out", r#"{"id":1,"method":"initialize","params":{}}"#),
            ("in", r#"{"id":1,"result":{"v":1}}"#),
            ("out", r#"{"id":2,"method":"session.list","params":{}}"#),
            ("in", r#"{"id":2,"result":{"sessions":[]}}"#),
            ("out", r#"{"id":3,"method":"run.start","params":{"session_id":"s","text":"a"}}"#),
            ("in", &first),
            ("err", "a log line"),
            ("in", r#"{"id":3,"result":{"run_id":"r"}}"#),
            ("in", &second),
        ]));
        assert_eq!(player.play(), Some(Played::Out("starting up".into())));
        assert_eq!(player.play(), None);
        assert_eq!(ask(&mut player, r#"{"id":70,"method":"initialize"}"#), Reply::Opened { at_us: 1000 });
        assert_eq!(player.play(), Some(Played::Out(r#"{"jsonrpc":"2.0","id":70,"result":{"v":1}}"#.into())));
        assert_eq!(player.play(), None, "the run has not started");
        for id in [71, 72] {
            let line = format!(r#"{{"id":{id},"method":"session.list","params":{{"limit":100}}}}"#);
            assert_eq!(now(ask(&mut player, &line))["id"], id);
        }
        let empty = now(ask(&mut player, r#"{"id":73,"method":"events.after","params":{"session_id":"s","after":0}}"#));
        assert_eq!(empty["result"]["events"], serde_json::json!([]));
        let start = r#"{"id":"x","method":"run.start","params":{"session_id":"s","text":"other"}}"#;
        assert_eq!(ask(&mut player, start), Reply::Opened { at_us: 5000 });
        assert_eq!(player.play(), Some(Played::Out(first)));
        assert_eq!(player.play(), Some(Played::Err("a log line".into())));
        assert_eq!(player.play(), Some(Played::Out(r#"{"jsonrpc":"2.0","id":"x","result":{"run_id":"r"}}"#.into())));
        assert_eq!(player.play(), Some(Played::Out(second)));
        assert_eq!(player.play(), None);
        let page = now(ask(&mut player, r#"{"id":74,"method":"events.after","params":{"session_id":"s","after":1}}"#));
        assert_eq!(page["result"]["events"][0]["sequence"], 2);
        assert_eq!(now(ask(&mut player, start))["error"]["code"], code::COMMAND_FAILED);
    }

    #[test]
    fn a_later_command_opens_the_gates_before_it() {
        let (first, second) = (event(1), event(2));
        let mut player = Player::new(recording(&[
            ("out", r#"{"id":1,"method":"session.rename","params":{}}"#),
            ("in", r#"{"id":1,"result":{}}"#),
            ("in", &first),
            ("out", r#"{"id":2,"method":"run.start","params":{}}"#),
            ("in", &second),
        ]));
        assert_eq!(player.play(), None);
        assert_eq!(ask(&mut player, r#"{"id":5,"method":"run.start","params":{}}"#), Reply::Opened { at_us: 3000 });
        assert_eq!(player.play(), Some(Played::Out(first)));
        assert_eq!(player.play(), Some(Played::Out(second)));
    }

    #[test]
    fn a_host_that_was_started_again_shakes_no_hands_in_a_replay() {
        let (first, second) = (event(1), event(2));
        let mut player = Player::new(recording(&[
            ("out", r#"{"id":1,"method":"initialize","params":{}}"#),
            ("in", r#"{"id":1,"result":{"v":1}}"#),
            ("in", &first),
            ("again", ""),
            ("out", r#"{"id":1,"method":"initialize","params":{}}"#),
            ("in", r#"{"id":1,"result":{"v":2}}"#),
            ("in", &second),
        ]));
        ask(&mut player, r#"{"id":9,"method":"initialize","params":{}}"#);
        let played: Vec<_> = std::iter::from_fn(|| player.play()).collect();
        let answer = r#"{"jsonrpc":"2.0","id":9,"result":{"v":1}}"#.to_owned();
        assert_eq!(played, [Played::Out(answer), Played::Out(first), Played::Out(second)]);
    }

    #[test]
    fn a_state_fits_what_was_told() {
        let (first, second) = (event(1), event(2));
        let state = |id: u64| format!(r#"{{"id":{id},"method":"session.state","params":{{"session_id":"s"}}}}"#);
        let answer = |id: u64, sequence: u64| format!(r#"{{"id":{id},"result":{{"sequence":{sequence}}}}}"#);
        let mut player = Player::new(recording(&[
            ("out", r#"{"id":1,"method":"run.start","params":{}}"#),
            ("in", &first),
            ("out", &state(2)),
            ("in", &answer(2, 1)),
            ("in", &second),
            ("out", r#"{"id":3,"method":"run.cancel","params":{}}"#),
            ("out", &state(4)),
            ("in", &answer(4, 2)),
        ]));
        let page = r#"{"id":9,"method":"events.after","params":{"session_id":"s","after":0,"limit":5}}"#;
        ask(&mut player, r#"{"id":5,"method":"run.start","params":{}}"#);
        assert_eq!(now(ask(&mut player, page))["result"]["events"], serde_json::json!([]));
        // It comes soon: it waits for the event before it.
        assert_eq!(ask(&mut player, &state(6)), Reply::None);
        assert_eq!(player.play(), Some(Played::Out(first)));
        let Some(Played::Out(answered)) = player.play() else { panic!("the state has its turn") };
        assert!(answered.contains(r#""id":6,"result":{"sequence":1}"#), "{answered}");
        assert_eq!(now(ask(&mut player, &state(7)))["result"]["sequence"], 1);
        assert_eq!(player.play(), Some(Played::Out(second)));
        assert_eq!(player.play(), None);
        // The one of sequence 2 lies behind a command: the last one is what there is.
        assert_eq!(now(ask(&mut player, &state(8)))["result"]["sequence"], 1);
        assert_eq!(now(ask(&mut player, page))["result"]["events"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_state_from_ahead_takes_its_events_along() {
        let first = event(1);
        let state = r#"{"id":2,"method":"session.state","params":{"session_id":"s"}}"#;
        let mut player = Player::new(recording(&[
            ("out", r#"{"id":1,"method":"run.start","params":{}}"#),
            ("in", &first),
            ("out", state),
            ("in", r#"{"id":2,"result":{"sequence":1}}"#),
        ]));
        assert_eq!(now(ask(&mut player, state))["result"]["sequence"], 1);
        let page = r#"{"id":9,"method":"events.after","params":{"session_id":"s","after":0,"limit":5}}"#;
        assert_eq!(now(ask(&mut player, page))["result"]["events"][0]["sequence"], 1);
    }
}
