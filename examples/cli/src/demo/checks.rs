//! What came against what must come. Each check tells what it found, also where it passed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use console::style;
use kitport::model::{ChatId, Event, EventKind, Seq};
use kitport::{BubblePaw, ChatFeed, ChatReader, KitError};
use serde_json::json;

use super::host::DemoHost;
use super::stage::in_time;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// The kinds that the steps bring about. Those that are not here a BubblePaw host has nothing for, or come where
/// something is lost.
const EXPECTED: &[&str] = &[
    "chat.renamed",
    "run.started",
    "run.waiting",
    "run.finished",
    "message.user",
    "message.delta",
    "message.assistant",
    "message.system",
    "tool.started",
    "tool.finished",
    "plan.updated",
    "approval.requested",
    "approval.resolved",
    "question.asked",
    "question.resolved",
    "queue.updated",
    "child.spawned",
    "child.question_asked",
    "child.question_resolved",
    "child.finished",
    "compaction.updated",
    "context.changed",
    "usage.updated",
];

struct Check {
    name: &'static str,
    /// What was found, or what is wrong.
    result: Result<String, String>,
}

/// All checks, in their order.
pub(super) struct Checks(Vec<Check>);

impl Checks {
    pub(super) fn new() -> Self {
        Checks(Vec::new())
    }

    fn add(&mut self, name: &'static str, result: Result<String, String>) {
        self.0.push(Check { name, result });
    }

    /// Whether the steps came to their end. What ends the program is no check.
    pub(super) fn played(&mut self, played: Result<(), Failure>) -> Result<(), Failure> {
        let result = match played {
            Ok(()) => Ok("each step got what it waited for".to_owned()),
            Err(failure) => Err(failure.into_check()?),
        };
        self.add("every step went as it should", result);
        Ok(())
    }

    /// Durable events never go back.
    pub(super) fn order(&mut self, seen: &[Event]) {
        let seqs: Vec<Seq> = durable(seen).map(|event| event.seq).collect();
        let wrong = seqs.windows(2).find(|pair| pair[0] >= pair[1]);
        let result = match wrong {
            None => Ok(format!("{} durable events, the last one at {}", seqs.len(), last(&seqs))),
            Some(pair) => Err(format!("{} came after {}", pair[1], pair[0])),
        };
        self.add("sequences strictly increase", result);
    }

    /// All that was to be seen was seen, and nothing was lost.
    pub(super) fn kinds(&mut self, seen: &[Event]) {
        let kinds: BTreeSet<&str> = seen.iter().map(|event| event.kind.name()).collect();
        let missing: Vec<&str> = EXPECTED.iter().copied().filter(|kind| !kinds.contains(kind)).collect();
        let result = match missing.is_empty() {
            true => Ok(format!("{} kinds in {} events", kinds.len(), seen.len())),
            false => Err(format!("missing: {}", missing.join(", "))),
        };
        self.add("every kind of event was seen", result);
        let gap = seen.iter().find_map(|event| match &event.kind {
            EventKind::Gap(gap) => Some(format!("a gap: {}", gap.reason)),
            _ => None,
        });
        self.add("no gap in the live stream", gap.map_or_else(|| Ok("none".to_owned()), Err));
    }

    /// What is replayed from the beginning is what came live, through the kill.
    pub(super) async fn replay(&mut self, kit: &BubblePaw, chat: &ChatId, seen: &[Event]) {
        let result = replayed(kit, chat, seen).await;
        self.add("a replay gives what came live", result);
    }

    /// The feed that lived through it all shows what one opened now shows.
    pub(super) async fn feed(&mut self, kit: &BubblePaw, chat: &ChatId, live: &ChatFeed) {
        let result = compared(kit, chat, live).await.unwrap_or_else(|error| Err(error.to_string()));
        self.add("the live feed is as one opened anew", result);
    }

    /// Nothing of the host is left.
    pub(super) fn no_process_left(&mut self, host: &DemoHost) {
        let (started, alive) = (host.pids(), host.alive());
        let result = match (started.len(), alive.is_empty()) {
            (0, _) => Err("no process was seen to start".to_owned()),
            (count, true) => Ok(format!("{count} were started, {count} are gone")),
            (_, false) => Err(format!("still there: {alive:?}")),
        };
        self.add("no process is left", result);
    }

    /// Prints them; done only if all passed.
    pub(super) fn print(self, out: Output, took: Duration) -> Result<Exit, Failure> {
        let failed = self.0.iter().filter(|check| check.result.is_err()).count();
        for Check { name, result } in &self.0 {
            let (Ok(detail) | Err(detail)) = result;
            if out.json {
                out.json(&json!({ "check": name, "passed": result.is_ok(), "detail": detail }))?;
                continue;
            }
            let mark = if result.is_ok() { style("pass").green() } else { style("FAIL").red().bold() };
            out.line(format!("{mark}  {name:<38}  {}", style(detail).dim()))?;
        }
        let (count, seconds) = (self.0.len(), took.as_secs_f64());
        if out.json {
            out.json(&json!({ "passed": failed == 0, "checks": count, "failed": failed, "seconds": seconds }))?;
        } else {
            let end = match failed {
                0 => style(format!("All {count} checks passed")).green().bold(),
                _ => style(format!("{failed} of {count} checks failed")).red().bold(),
            };
            out.line(format!("\n{end} in {seconds:.1} s"))?;
        }
        Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
    }
}

fn durable(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| event.durable)
}

fn last(seqs: &[Seq]) -> Seq {
    seqs.last().copied().unwrap_or_default()
}

async fn replayed(kit: &BubblePaw, chat: &ChatId, seen: &[Event]) -> Result<String, String> {
    let live: Vec<&Event> = durable(seen).collect();
    let Some(end) = live.last().map(|event| event.seq) else { return Err("nothing came live".to_owned()) };
    let stream = kit.events(chat, Some(Seq::START));
    let mut replay = Vec::new();
    while replay.last().is_none_or(|event: &Event| event.seq < end) {
        let given = in_time("the replay", stream.next()).await;
        match given {
            Err(_) => return Err(format!("only {} of {} events came", replay.len(), live.len())),
            Ok(None) => return Err("the stream ended".to_owned()),
            Ok(Some(Err(error))) => return Err(error.to_string()),
            Ok(Some(Ok(Event { kind: EventKind::Gap(gap), .. }))) if gap.lost => {
                return Err(format!("the host no longer has all events: {}", gap.reason));
            }
            Ok(Some(Ok(event))) => replay.extend(Some(event).filter(|event| event.durable)),
        }
    }
    if let Some(at) = (0..live.len().max(replay.len())).find(|at| live.get(*at).copied() != replay.get(*at)) {
        let tell = |event: Option<&Event>| {
            event.map_or("nothing".to_owned(), |event| format!("{} {}", event.seq, event.kind.name()))
        };
        return Err(format!("at {at}: live {}, replayed {}", tell(live.get(at).copied()), tell(replay.get(at))));
    }
    Ok(format!("{} durable events, each the same", replay.len()))
}

async fn compared(kit: &BubblePaw, chat: &ChatId, live: &ChatFeed) -> Result<Result<String, String>, KitError> {
    live.reload().await?;
    let anew = ChatFeed::open(Arc::new(kit.clone()), chat).await?;
    let (old, new) = (live.state().to_snapshot(), anew.state().to_snapshot());
    if old == new {
        return Ok(Ok(format!("{} items, as of {}", new.items.len(), new.seq)));
    }
    let differs = old.items.iter().zip(&new.items).position(|(old, new)| old != new);
    Ok(Err(match differs {
        Some(at) => format!("item {at} differs: {} and {}", old.items[at].id(), new.items[at].id()),
        None if old.items.len() != new.items.len() => {
            format!("{} items, and {} anew", old.items.len(), new.items.len())
        }
        None => "what is beside the items differs".to_owned(),
    }))
}
