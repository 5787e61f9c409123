//! How runs begin, go on after an interruption, and end; what that means for queues, parents and what was pending.

use std::sync::Arc;

use kitport::bubblepaw::wire::{EventData, HostState, Run};
use kitport::model::{ChatId, ItemId, RunId};
use tokio::sync::{Notify, watch};

use super::{Ending, Runner, compact, text::StepText};
use crate::failure::{Failure, Outcome};
use crate::host::{NewMessage, Running, Tx};
use crate::store::{ChildDetails, RunRow};

/// Characters of a title that is taken from the first message.
const TITLE_CHARS: usize = 60;

/// A run to begin.
#[derive(Debug)]
pub(crate) struct Begin<'a> {
    pub(crate) session: &'a ChatId,
    /// The text of the user.
    pub(crate) text: &'a str,
}

/// Begins a run with a text of the user; gives the run and its message.
pub(crate) fn begin(tx: &mut Tx<'_>, new: Begin<'_>) -> Outcome<(RunId, ItemId)> {
    let Begin { session, text } = new;
    if tx.is_running(session)? {
        return Err(Failure::busy());
    }
    // What an interrupted run still waited for has no one to wait for it any more.
    let num = tx.row(session)?.num;
    if let Some(last) = tx.store.last_run(num)?
        && last.run.status == "interrupted"
    {
        expire_pending(tx, session, &last.run.run_id, &last.origin)?;
    }
    let row = tx.change(session)?;
    if std::mem::take(&mut row.details.untitled) {
        row.details.title = title_of(text);
    }
    let run_id = RunId::from(row.new_id("run"));
    let run_row = RunRow {
        session: num,
        origin: run_id.clone(),
        script: text.to_owned(),
        step: 0,
        run: new_run(tx, run_id.clone())?,
    };
    let message = tx.message(
        session,
        NewMessage { role: "user", text: text.to_owned(), run: Some(run_id.clone()), ..Default::default() },
    )?;
    launch(tx, session, run_row)?;
    Ok((run_id, message))
}

/// Goes on after an interrupted run: a new run takes over the steps that are left.
pub(crate) fn restart(tx: &mut Tx<'_>, session: &ChatId) -> Outcome<RunId> {
    let num = tx.row(session)?.num;
    let last = tx
        .store
        .last_run(num)?
        .filter(|last| last.run.status == "interrupted")
        .ok_or_else(|| Failure::refused("conflict: there is no interrupted run to resume"))?;
    let run_id = RunId::from(tx.change(session)?.new_id("run"));
    let run = new_run(tx, run_id.clone())?;
    launch(tx, session, RunRow { run, ..last })?;
    Ok(run_id)
}

fn new_run(tx: &mut Tx<'_>, run_id: RunId) -> Outcome<Run> {
    Ok(Run {
        run_id,
        status: "running".to_owned(),
        model: Some(tx.host.main_model(tx.store)?),
        started_at: Some(tx.now),
        finished_at: None,
        error: None,
        wait: None,
    })
}

fn launch(tx: &mut Tx<'_>, session: &ChatId, row: RunRow) -> Outcome<()> {
    tx.store.insert_run(&row)?;
    let details = &mut tx.change(session)?.details;
    details.model.clone_from(&row.run.model);
    tx.event(session, Some(&row.run.run_id), EventData::RunStarted { model: row.run.model.clone() })?;
    tell_parent(tx, session, "running", None)?;
    let (cancel, cancelled) = watch::channel(false);
    let hurry = Arc::new(Notify::new());
    let live = tx.live(session)?;
    let (tag, changed, next_id) = (live.tag.clone(), live.changed.clone(), live.row.next_id);
    let runner = Runner {
        host: tx.host.clone(),
        session: session.clone(),
        num: row.session,
        tag,
        run: row.run.clone(),
        origin: row.origin,
        script: row.script,
        at: row.step,
        steered: 0,
        cancel: cancelled,
        hurry: hurry.clone(),
        changed,
        rng: tx.rng(row.session, next_id),
        speed: std::time::Duration::ZERO,
        text: StepText::default(),
        begun: false,
        no_text: false,
        open_call: None,
    };
    tx.start(session, Running { run: row.run.run_id, cancel, hurry }, runner);
    Ok(())
}

fn title_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(TITLE_CHARS) {
        None if line.is_empty() => "New chat".to_owned(),
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
    }
}

/// Tells a child's new state to its parent; nothing where there is no parent.
pub(crate) fn tell_parent(tx: &mut Tx<'_>, session: &ChatId, state: &str, result: Option<String>) -> Outcome<()> {
    let row = tx.change(session)?;
    let Some(parent) = row.parent.clone() else { return Ok(()) };
    let question = row.details.child.take().and_then(|child| child.question);
    let question = if state == "waiting" || state == "running" { question } else { None };
    row.details.child = Some(ChildDetails { state: state.to_owned(), question, result });
    let data = EventData::ChildRunStateChanged { child: session.clone(), state: state.to_owned() };
    tx.event(&parent, None, data)?;
    Ok(())
}

/// Cancels a child that a killed host left interrupted, and what it started.
pub(crate) fn cancel_interrupted(tx: &mut Tx<'_>, session: &ChatId) -> Outcome<()> {
    let num = tx.row(session)?.num;
    if let Some(last) = tx.store.last_run(num)?
        && last.run.status == "interrupted"
    {
        expire_pending(tx, session, &last.run.run_id, &last.origin)?;
        tx.save_run(&Run { status: "cancelled".to_owned(), ..last.run })?;
    }
    tell_parent(tx, session, "cancelled", None)?;
    for child in tx.store.children_of(session)? {
        if child.details.child.as_ref().is_some_and(|child| child.state == "interrupted") {
            cancel_interrupted(tx, &child.id)?;
        }
    }
    Ok(())
}

/// Takes the steering inputs out of the queue: they become messages of the run.
pub(super) fn take_steering(tx: &mut Tx<'_>, session: &ChatId, run: &RunId) -> Outcome<Vec<String>> {
    let num = tx.row(session)?.num;
    let mut texts = Vec::new();
    for input in tx.store.inputs(num, Some("steer"))? {
        tx.store.delete_input(&input.input_id)?;
        tx.message(
            session,
            NewMessage { role: "user", text: input.text.clone(), run: Some(run.clone()), ..Default::default() },
        )?;
        texts.push(input.text);
    }
    Ok(texts)
}

/// Ends what a run still waited for: its approvals and questions expire.
fn expire_pending(tx: &mut Tx<'_>, session: &ChatId, run: &RunId, origin: &RunId) -> Outcome<()> {
    let num = tx.row(session)?.num;
    for row in tx.store.approvals(num)? {
        let mut approval = row.approval;
        if approval.state == "pending" && row.origin == *origin {
            approval.state = "expired".to_owned();
            approval.reason = Some("the run ended".to_owned());
            tx.store.save_approval(&approval)?;
            let data = EventData::ApprovalResolved {
                approval_id: approval.approval_id,
                state: approval.state,
                reason: approval.reason,
            };
            tx.event(session, Some(run), data)?;
        }
    }
    for question in tx.store.pending_questions(num)? {
        tx.store.save_question(&question.id, "expired", None)?;
        let details = &mut tx.change(session)?.details;
        if let Some(child) = &mut details.child {
            child.question = None;
        }
        if details.question.take().is_some() {
            let data = EventData::HostStateChanged(HostState::Question(None));
            tx.event(session, Some(run), data)?;
        }
    }
    Ok(())
}

impl Runner {
    /// Ends the run; gives the texts that came meanwhile instead, where a run that would complete must take them up.
    pub(super) fn finish(&mut self, ending: &Ending) -> Outcome<Option<Vec<String>>> {
        let host = self.host.clone();
        host.write(|tx| self.finish_in(tx, ending))
    }

    fn finish_in(&mut self, tx: &mut Tx<'_>, ending: &Ending) -> Outcome<Option<Vec<String>>> {
        let (session, run_id) = (self.session.clone(), self.run.run_id.clone());
        let steering = take_steering(tx, &session, &run_id)?;
        if ending.status == "completed" && !steering.is_empty() {
            return Ok(Some(steering));
        }
        expire_pending(tx, &session, &run_id, &self.origin)?;
        if let Some(call) = self.open_call.take() {
            self.end_call(tx, call.as_str(), serde_json::json!("the run ended"), true)?;
        }
        if ending.status == "cancelled" {
            for child in tx.store.children_of(&session)? {
                if let Some(running) = &tx.live(&child.id)?.running {
                    running.cancel.send_replace(true);
                }
            }
        }
        let text = self.text.whole();
        if !text.is_empty() {
            tx.message(
                &session,
                NewMessage { role: "assistant", text: text.clone(), run: self.run_id(), ..Default::default() },
            )?;
        }
        if self.begun {
            self.end_request(tx, text.len())?;
        }
        tx.store.apply_compactions(self.num)?;
        self.run.status = ending.status.clone();
        self.run.error = ending.error.clone();
        self.run.wait = None;
        self.run.finished_at = Some(tx.now);
        tx.save_run(&self.run)?;
        let told = (!self.no_text && !text.is_empty()).then(|| text.clone());
        let data = EventData::RunFinished { status: ending.status.clone(), error: ending.error.clone(), text: told };
        tx.event(&session, Some(&run_id), data)?;
        let result = (ending.status == "completed").then_some(text);
        tell_parent(tx, &session, &ending.status, result)?;
        tx.ended(&session, &run_id);
        match tx.store.inputs(self.num, Some("follow_up"))?.into_iter().next() {
            Some(next) => {
                tx.store.delete_input(&next.input_id)?;
                begin(tx, Begin { session: &session, text: &next.text })?;
            }
            None => {
                tx.event(&session, None, EventData::SessionSettled {})?;
            }
        }
        Ok(None)
    }

    /// Counts what a model request took, and tells it.
    pub(super) fn end_request(&mut self, tx: &mut Tx<'_>, text_bytes: usize) -> Outcome<()> {
        self.begun = false;
        compact::count_usage(tx, &self.session, &self.run.run_id, self.run.model.as_deref(), text_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_at_a_character() {
        assert_eq!(title_of("  Hello\nworld"), "Hello");
        assert_eq!(title_of(" \n"), "New chat");
        let long = "🦊".repeat(100);
        assert_eq!(title_of(&long).chars().count(), TITLE_CHARS + 1);
    }
}
