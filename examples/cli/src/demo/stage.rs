//! What the steps play on: the chat, its live stream, and the print of both. All that the stream gives is kept.

use std::time::Duration;

use console::style;
use kitport::model::{ChatId, ConnectionState, Event, EventKind, RunId, RunStatus};
use kitport::{AgentBackend, BubblePaw, ChatReader, EventStream, KitError};
use serde_json::json;

use crate::app::App;
use crate::failure::Failure;
use crate::output::{Live, Notes, Output};

/// Longer than anything here takes: what has not come by then never comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The stage.
pub(super) struct Stage<'a> {
    pub(super) kit: &'a BubblePaw,
    pub(super) chat: ChatId,
    /// Every event that came.
    pub(super) seen: Vec<Event>,
    out: Output,
    events: EventStream,
    live: Live,
    steps: usize,
    /// Where the step that is played began.
    mark: usize,
}

impl<'a> Stage<'a> {
    /// Opens the live stream of a chat, before anything happens in it.
    pub(super) fn new(app: &App, kit: &'a BubblePaw, chat: ChatId) -> Self {
        let events = kit.events(&chat, None);
        let live = Live::new(app.out, Notes::Stdout);
        Stage { kit, chat, seen: Vec::new(), out: app.out, events, live, steps: 0, mark: 0 }
    }

    /// Begins a step: what it shows, and why that matters.
    pub(super) fn step(&mut self, title: &str, why: &str) -> Result<(), Failure> {
        self.live.end_text()?;
        self.steps += 1;
        self.mark = self.seen.len();
        if self.out.json {
            return Ok(self.out.json(&json!({ "step": self.steps, "title": title, "why": why }))?);
        }
        let head = style(format!("{:>2}  {title}", self.steps)).bold().underlined();
        Ok(self.out.line(format!("\n{head}  {}", style(why).dim()))?)
    }

    /// Says what is done.
    pub(super) fn say(&mut self, who: &str, text: &str) -> Result<(), Failure> {
        self.live.end_text()?;
        if self.out.json {
            return Ok(self.out.json(&json!({ "note": text, "by": who }))?);
        }
        Ok(self.out.line(format!("{} {text}", style(format!("{who}›")).green().bold()))?)
    }

    /// Shows how the connection is.
    pub(super) fn connection(&mut self, state: &ConnectionState) -> Result<(), Failure> {
        if self.out.json {
            return Ok(self.out.json(&json!({ "connection": state }))?);
        }
        let why = state.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Ok(self.live.note("⇄", "connection", &format!("{}{why}", state.status))?)
    }

    /// Sends a text; gives the run that it started.
    pub(super) async fn send(&mut self, text: &str) -> Result<RunId, Failure> {
        self.say("you", text)?;
        let sent = self.kit.send(&self.chat, text, &[]).await?;
        sent.run_id.ok_or_else(|| Failure::failed("the text was queued where it should have started a run"))
    }

    /// Sends a text and waits until its run has completed.
    pub(super) async fn run(&mut self, text: &str) -> Result<(), Failure> {
        let run = self.send(text).await?;
        self.completed(&run).await
    }

    /// Waits until a run has completed.
    pub(super) async fn completed(&mut self, run: &RunId) -> Result<(), Failure> {
        self.ended(run, RunStatus::Completed).await
    }

    /// Waits until a run has ended so.
    pub(super) async fn ended(&mut self, run: &RunId, how: RunStatus) -> Result<(), Failure> {
        let status = self
            .wait("the end of the run", |event| match &event.kind {
                EventKind::RunFinished(finished) if event.run.as_ref() == Some(run) => Some(finished.status.clone()),
                _ => None,
            })
            .await?;
        match status == how {
            true => Ok(()),
            false => Err(Failure::failed(format!("the run should end {how}, and ended {status}"))),
        }
    }

    /// Waits for an event of this kind.
    pub(super) async fn kind(&mut self, kind: &'static str) -> Result<(), Failure> {
        self.wait(kind, |event| (event.kind.name() == kind).then_some(())).await
    }

    /// Waits for an event that gives something; it may have come since the step began.
    pub(super) async fn wait<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Event) -> Option<T>,
    ) -> Result<T, Failure> {
        if let Some(found) = self.seen[self.mark..].iter().find_map(&mut look) {
            return Ok(found);
        }
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let Ok(event) = tokio::time::timeout_at(deadline, self.events.next()).await else {
                return Err(Failure::failed(format!("{what} did not come within {} s", PATIENCE.as_secs())));
            };
            let event = event.unwrap_or_else(|| Err(KitError::closed()))?;
            self.live.event(&event)?;
            let found = look(&event);
            self.seen.push(event);
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }
}

/// Waits for what is not an event of the chat.
pub(super) async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, Failure> {
    let given = tokio::time::timeout(PATIENCE, wait).await;
    given.map_err(|_| Failure::failed(format!("{what} did not come within {} s", PATIENCE.as_secs())))
}
