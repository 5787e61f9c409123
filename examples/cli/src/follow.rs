//! Follows a run to its end: prints it, asks the person what the run asks, cancels it on Ctrl-C.

use std::collections::HashSet;
use std::time::Duration;

use console::style;
use futures::StreamExt;
use futures::stream::SelectAll;
use kitport::model::{ChatId, Decision, Event, EventKind, RunId, RunStatus, Seq};
use kitport::{AgentBackend, BubblePaw, CallExt, ChatReader, EventStream, KitError};
use tokio::time::{Instant, sleep_until};

use crate::app::App;
use crate::desk::{Ask, Desk};
use crate::failure::{Exit, Failure};
use crate::input::{Lines, has_person};
use crate::output::{Live, Notes, clean};

/// How long a cancelled run may take to end.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// A chat whose run is followed.
pub(crate) struct Follow<'a> {
    app: &'a App,
    kit: &'a BubblePaw,
    chat: ChatId,
    events: EventStream,
    /// The chats that the run started, and those that they did: what they wait for, the run waits for.
    children: HashSet<ChatId>,
    of_children: SelectAll<EventStream>,
    desk: Desk,
    live: Live,
    approve_all: bool,
    lines: Option<Lines>,
    /// What the person was asked last.
    asked: Option<Ask>,
}

impl<'a> Follow<'a> {
    /// Begins to listen; do it before the run starts.
    pub(crate) fn new(app: &'a App, kit: &'a BubblePaw, chat: ChatId, approve_all: bool) -> Self {
        Follow {
            app,
            kit,
            events: kit.events(&chat, None),
            chat,
            children: HashSet::new(),
            of_children: SelectAll::new(),
            desk: Desk::default(),
            live: Live::new(app.out, Notes::Stderr),
            approve_all,
            lines: None,
            asked: None,
        }
    }

    /// What waited before the run goes on.
    pub(crate) async fn pending(&mut self) -> Result<(), Failure> {
        let snapshot = self.kit.load_chat(&self.chat).await?;
        self.desk.snapshot(&snapshot);
        for child in snapshot.children.iter().filter(|child| !child.state.is_finished()) {
            self.watch(&child.id);
        }
        Ok(())
    }

    /// Follows the run to its end.
    pub(crate) async fn run(mut self, run: &RunId) -> Result<Exit, Failure> {
        let mut cancel_until: Option<Instant> = None;
        self.live.wait();
        loop {
            self.ask().await?;
            tokio::select! {
                biased;
                () = self.app.interrupt.asked(), if cancel_until.is_none() => {
                    self.live.end_text()?;
                    self.app.out.note("cancelling the run; once more Ctrl-C ends at once");
                    cancel_until = Some(Instant::now() + CANCEL_PATIENCE);
                    self.kit.cancel(&self.chat).within(CANCEL_PATIENCE).await?;
                }
                () = sleep_until(cancel_until.unwrap_or_else(Instant::now)), if cancel_until.is_some() => {
                    return Err(Failure::interrupted().hint("the run did not end in time"));
                }
                event = self.events.next() => {
                    let event = event.unwrap_or_else(|| Err(KitError::closed()))?;
                    if let Some(exit) = self.event(&event, run)? {
                        return Ok(exit);
                    }
                }
                // What ends such a stream ends the chat's own, too, which tells it.
                Some(Ok(event)) = self.of_children.next(), if !self.of_children.is_empty() => self.child_event(&event),
                line = next_line(&mut self.lines), if self.asked.is_some() => self.line(line).await?,
            }
        }
    }

    /// Takes an event; gives how the run ended, where it did.
    fn event(&mut self, event: &Event, run: &RunId) -> Result<Option<Exit>, Failure> {
        self.live.event(event)?;
        self.desk.event(event);
        match &event.kind {
            EventKind::ChildSpawned(spawned) => self.watch(&spawned.child.id),
            EventKind::RunFinished(finished) if event.run.as_ref() == Some(run) => {
                return Ok(Some(match finished.status {
                    RunStatus::Completed => Exit::Done,
                    RunStatus::Cancelled => Exit::Cancelled,
                    RunStatus::Interrupted => Exit::CutOff,
                    _ => Exit::Failed,
                }));
            }
            _ => {}
        }
        Ok(None)
    }

    fn watch(&mut self, child: &ChatId) {
        if self.children.insert(child.clone()) {
            // From its beginning: it may have asked before it was heard of.
            self.of_children.push(self.kit.events(child, Some(Seq::START)));
        }
    }

    /// Takes an event of a chat that the run started.
    fn child_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ChildSpawned(spawned) => self.watch(&spawned.child.id),
            // Its own question is asked by its parent, in the parent's stream.
            EventKind::QuestionAsked(_) | EventKind::QuestionResolved(_) => {}
            _ => self.desk.event(event),
        }
    }

    /// Sees to what waits for a person.
    async fn ask(&mut self) -> Result<(), Failure> {
        while let Some(first) = self.desk.first().cloned() {
            if let (Ask::Approval { chat, approval }, true) = (&first, self.approve_all) {
                self.desk.take_first();
                match self.kit.decide_approval(chat, &approval.id, Decision::Approve, None).await {
                    // Somebody else was faster.
                    Ok(()) | Err(KitError::Conflict(_)) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            if self.asked.as_ref() == Some(&first) {
                return Ok(());
            }
            self.live.end_text()?;
            if self.app.out.json || !has_person() {
                let message = format!("the run waits for a person: {}", first.text());
                let hint = format!("`{}`, then `kitport send {} --resume`", first.elsewhere(), self.chat);
                return Err(Failure::waiting(message).hint(hint));
            }
            self.lines.get_or_insert_with(Lines::read);
            self.live.hold_still(true);
            prompt(&format!("{} {}", style("?").for_stderr().yellow().bold(), first.text()), first.choices());
            self.asked = Some(first);
        }
        if self.asked.take().is_some() {
            self.live.hold_still(false);
            self.app.out.note("it was decided elsewhere");
        }
        Ok(())
    }

    /// Takes what the person typed.
    async fn line(&mut self, line: Option<String>) -> Result<(), Failure> {
        let Some(asked) = self.asked.clone() else { return Ok(()) };
        let Some(line) = line else {
            let hint = format!("`{}`, then `kitport send {} --resume`", asked.elsewhere(), self.chat);
            return Err(Failure::waiting("the run waits for a person, and nobody types").hint(hint));
        };
        match asked.decide(self.kit, &line).await {
            None => prompt("that is no answer", asked.choices()),
            Some(Ok(())) => self.decided(),
            Some(Err(error)) if error.is_conflict() => {
                self.decided();
                self.app.out.note("it was decided elsewhere");
            }
            Some(Err(KitError::Invalid(info))) => prompt(&clean(&info.to_string()), asked.choices()),
            Some(Err(error)) => return Err(error.into()),
        }
        Ok(())
    }

    fn decided(&mut self) {
        self.asked = None;
        self.desk.take_first();
        self.live.hold_still(false);
    }
}

async fn next_line(lines: &mut Option<Lines>) -> Option<String> {
    match lines {
        Some(lines) => lines.next().await,
        None => std::future::pending().await,
    }
}

fn prompt(text: &str, choices: &str) {
    use std::io::Write;
    let choices = style(format!("({choices})")).for_stderr().dim();
    let mut out = std::io::stderr().lock();
    // Where nobody sees it nobody answers.
    let _ = write!(out, "{text}\n  {choices} ");
    let _ = out.flush();
}
