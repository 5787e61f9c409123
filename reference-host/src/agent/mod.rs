//! The scripted agent: plays one run of one session as a task of its own. It changes the world through transactions
//! only, so that it can be dropped at any await.

mod ask;
mod child;
mod compact;
mod lifecycle;
mod prose;
mod publish;
mod script;
mod text;
mod tool;

use std::sync::Arc;
use std::time::Duration;

use kitport::bubblepaw::wire::{EventData, Run, Wait};
use kitport::model::{ChatId, RunId, Time};
use tokio::sync::{Notify, watch};

use crate::failure::Outcome;
use crate::host::{Host, NewMessage, Tx};
use crate::outbox::{Kind, Piece, Tag};
use script::Step;

pub(crate) use compact::threshold;
pub(crate) use lifecycle::{Begin, begin, cancel_interrupted, restart, tell_parent};

/// What `slow` means where the host runs at full speed.
const SLOW: Duration = Duration::from_millis(30);

/// Steps that steering put in are counted from here, apart from those of the script.
const STEERED_STEPS: u64 = 1 << 32;

/// A run that is being played.
#[derive(Debug)]
pub(crate) struct Runner {
    host: Arc<Host>,
    session: ChatId,
    num: i64,
    tag: Arc<Tag>,
    run: Run,
    /// The first of the runs that continue each other.
    origin: RunId,
    script: String,
    /// The step that comes next.
    at: u64,
    steered: u64,
    cancel: watch::Receiver<bool>,
    hurry: Arc<Notify>,
    changed: Arc<Notify>,
    rng: fastrand::Rng,
    speed: Duration,
    text: text::StepText,
    /// Whether a model request goes on.
    begun: bool,
    no_text: bool,
    /// A tool call without its end.
    open_call: Option<String>,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
struct Ending {
    status: String,
    error: Option<String>,
}

impl Ending {
    fn new(status: &str) -> Ending {
        Ending { status: status.to_owned(), error: None }
    }

    fn failed(error: impl Into<String>) -> Ending {
        Ending { status: "failed".to_owned(), error: Some(error.into()) }
    }
}

impl Runner {
    /// Plays the run to its end.
    pub(crate) async fn play(mut self) {
        if let Err(failure) = self.play_all().await {
            // Without a store there is nothing to go on with; what was committed is there at the next start.
            eprintln!("kitport-host: {}", failure.message);
            self.host.die(74);
        }
    }

    async fn play_all(&mut self) -> Outcome<()> {
        self.speed = self.host.speed()?;
        let mut cancel = self.cancel.clone();
        let cancelled = async move {
            // The sender lives as long as the run goes on.
            let _ = cancel.wait_for(|cancelled| *cancelled).await;
        };
        tokio::pin!(cancelled);
        let mut ending = tokio::select! {
            biased;
            () = &mut cancelled => Ending::new("cancelled"),
            ending = self.steps() => ending?,
        };
        // A text that came while the run ended is still taken up.
        while let Some(steered) = self.finish(&ending)? {
            ending = tokio::select! {
                biased;
                () = &mut cancelled => Ending::new("cancelled"),
                ending = self.steered(steered) => ending?,
            };
        }
        Ok(())
    }

    async fn steps(&mut self) -> Outcome<Ending> {
        let steps = match script::read(&self.script) {
            Ok(steps) => steps,
            Err(error) => {
                self.begin().await?;
                return Ok(Ending::failed(format!("script: {error}")));
            }
        };
        if self.host.options.faults.request {
            self.ask_client().await?;
        }
        if self.host.options.faults.future {
            self.show_the_future()?;
        }
        while let Some(step) = usize::try_from(self.at).ok().and_then(|at| steps.get(at)) {
            if let Some(ending) = self.step(step, self.at).await? {
                return Ok(ending);
            }
            self.at += 1;
            let (run, at) = (self.run.run_id.clone(), self.at);
            let steered = self.host.write(|tx| {
                tx.store.save_run_step(&run, at)?;
                lifecycle::take_steering(tx, &self.session, &run)
            })?;
            if let Some(ending) = self.play_steered(steered).await? {
                return Ok(ending);
            }
        }
        self.last_words().await?;
        Ok(Ending::new("completed"))
    }

    async fn steered(&mut self, texts: Vec<String>) -> Outcome<Ending> {
        if let Some(ending) = self.play_steered(texts).await? {
            return Ok(ending);
        }
        self.last_words().await?;
        Ok(Ending::new("completed"))
    }

    async fn play_steered(&mut self, texts: Vec<String>) -> Outcome<Option<Ending>> {
        for text in texts {
            match script::read(&text) {
                Ok(steps) => {
                    for step in steps {
                        let key = STEERED_STEPS + self.steered;
                        self.steered += 1;
                        if let Some(ending) = self.step(&step, key).await? {
                            return Ok(Some(ending));
                        }
                    }
                }
                Err(error) => self.say(&format!("That was no script: {error}"), false).await?,
            }
        }
        Ok(None)
    }

    /// A model says something after its tools.
    async fn last_words(&mut self) -> Outcome<()> {
        if self.text.is_empty() && !self.no_text {
            self.say("Done.", false).await?;
        }
        self.close_paragraph().await
    }

    /// Plays one step. `key` tells it from the others of its run and of those that continue it.
    async fn step(&mut self, step: &Step, key: u64) -> Outcome<Option<Ending>> {
        match step {
            Step::Stream { words, slow } => {
                let text = prose::words(&mut self.rng, *words);
                self.say(&text, *slow).await?;
            }
            Step::Say(text) => self.say(text, false).await?,
            Step::Reply(text) => self.reply(text).await?,
            Step::Unicode => self.say(prose::UNICODE, false).await?,
            Step::Retry => self.retry().await?,
            Step::Mismatch => self.mismatch().await?,
            Step::Flood(count) => self.flood(*count).await?,
            Step::NoText => self.no_text = true,
            Step::Tool { name, arguments, result, is_error } => {
                self.tool(name, arguments.clone(), result.clone(), *is_error).await?;
            }
            Step::Nested => self.nested().await?,
            Step::Tools(count) => self.tools(*count).await?,
            Step::Big(bytes) => self.big(*bytes).await?,
            Step::Write { path, text } => self.write_file(path, text).await?,
            Step::Approve { tool } => self.approve(tool, key).await?,
            Step::Ask { text, suggestions } => self.ask(text, suggestions, key).await?,
            Step::Child { count, script } => self.children(*count, script, key).await?,
            Step::Plan(plan) => self.plan(plan)?,
            Step::Output { kind, text } => self.output(kind, text.as_deref())?,
            Step::System(text) => {
                let new = NewMessage { role: "system", text: text.clone(), run: self.run_id(), ..Default::default() };
                self.host.write(|tx| tx.message(&self.session, new))?;
            }
            Step::Compact { late } => {
                self.host.write(|tx| compact::compact(tx, &self.session, &self.run.run_id, "manual", *late))?;
            }
            Step::Quota(wait) => self.quota(*wait).await?,
            Step::Sleep(time) => tokio::time::sleep(*time).await,
            Step::Request => {
                self.ask_client().await?;
                self.say("The client answered.", false).await?;
            }
            Step::Fail(error) => {
                self.begin().await?;
                return Ok(Some(Ending::failed(error)));
            }
            Step::End(status) => {
                self.last_words().await?;
                return Ok(Some(Ending::new(status)));
            }
            Step::Crash(code) => {
                self.host.die(*code);
                std::future::pending::<()>().await;
            }
        }
        Ok(None)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run.run_id.clone())
    }

    /// A pause that belongs to the host's speed.
    async fn pause(&self, times: u32) {
        if self.speed.is_zero() {
            self.host.outbox.room().await;
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.speed * times).await;
        }
    }

    /// Waits until a look at the store finds something.
    async fn wait_for<T>(&self, mut look: impl FnMut(&mut Tx<'_>) -> Outcome<Option<T>>) -> Outcome<T> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = self.host.read(&mut look)? {
                return Ok(found);
            }
            changed.await;
        }
    }

    async fn quota(&mut self, wait: Duration) -> Outcome<()> {
        let told = Wait {
            resume_at: Time::now().checked_add(wait).ok(),
            reason: Some("the quota of this minute is used up".to_owned()),
        };
        self.run.status = "waiting_for_quota".to_owned();
        self.run.wait = Some(told.clone());
        self.host.write(|tx| {
            tx.save_run(&self.run)?;
            tx.event(&self.session, Some(&self.run.run_id), EventData::RunWaitingForQuota { wait: told })
        })?;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.hurry.notified() => {}
        }
        self.run.status = "running".to_owned();
        self.run.wait = None;
        self.host.write(|tx| {
            tx.save_run(&self.run)?;
            tx.event(&self.session, Some(&self.run.run_id), EventData::RunQuotaResumed {})
        })?;
        Ok(())
    }

    /// Asks the client something that no client knows; what it answers doesn't matter, that it answers does.
    async fn ask_client(&self) -> Outcome<()> {
        let mut answers = self.host.client_answers.subscribe();
        let before = *answers.borrow_and_update();
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":"host-{}","method":"workspace.trust","params":{{"session_id":"{}"}}}}"#,
            self.run.run_id, self.session
        );
        self.host.outbox.line(Kind::Other, |buffer| {
            buffer.extend_from_slice(request.as_bytes());
            buffer.push(b'\n');
        });
        // The host outlives its runs, and with it the sender.
        let _ = answers.wait_for(|count| *count > before).await;
        Ok(())
    }

    /// What a later version of the contract might bring.
    fn show_the_future(&mut self) -> Outcome<()> {
        self.host.write(|tx| {
            tx.foreign_event(&self.session, "aurora_sighted", r#"{"colour":"green","call_id":5}"#)?;
            tx.message(
                &self.session,
                NewMessage {
                    role: "narrator",
                    text: "Meanwhile.".to_owned(),
                    run: self.run_id(),
                    ..Default::default()
                },
            )
        })?;
        self.output("hologram", None)?;
        let mut once = Some(("aurora_faded", Piece::Json(r#"{"colour":null}"#)));
        self.host.outbox.transients(&self.tag, &self.run.run_id, || once.take());
        Ok(())
    }
}
