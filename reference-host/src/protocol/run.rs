//! Runs: starting, steering, queueing, cancelling, going on.

use std::sync::Arc;

use kitport::bubblepaw::wire::{
    ChildCancel, EventData, Input, InputResult, Method, RunCancel, RunFollowUp, RunResult, RunResume, RunStart,
    RunStartResult, RunSteer, TextParams,
};
use kitport::model::{ChatId, InputId};

use super::request::Request;
use super::{Answer, nothing, result};
use crate::agent::{self, Begin};
use crate::failure::{Failure, Outcome};
use crate::host::{Host, Tx};

fn checked<M: Method<Params = TextParams>>(request: &Request<'_>) -> Outcome<TextParams> {
    let asked = request.params::<M>()?;
    if asked.text.trim().is_empty() {
        return Err(Failure::refused("text must not be blank"));
    }
    Ok(asked)
}

fn ready(tx: &mut Tx<'_>, session: &ChatId) -> Outcome<()> {
    tx.row(session)?;
    if tx.host.provider_enabled(tx.store)? { Ok(()) } else { Err(Failure::needs_setup()) }
}

/// Puts the answer before what the request causes, unless a fault wants it the other way round.
fn answered(tx: &mut Tx<'_>, request: &Request<'_>, json: String) -> Answer {
    if tx.host.options.faults.events_first {
        return Answer::Late(json);
    }
    tx.answer_first(request.answer(&json));
    Answer::Given
}

pub(super) fn start(host: &Arc<Host>, request: &Request<'_>) -> Outcome<Answer> {
    let asked = checked::<RunStart>(request)?;
    host.write(|tx| {
        ready(tx, &asked.session_id)?;
        let (run_id, message) = agent::begin(tx, Begin { session: &asked.session_id, text: &asked.text })?;
        let json = result::<RunStart>(&RunStartResult { run_id, message_id: Some(message) })?;
        Ok(answered(tx, request, json))
    })
}

pub(super) fn resume(host: &Arc<Host>, request: &Request<'_>) -> Outcome<Answer> {
    let asked = request.params::<RunResume>()?;
    host.write(|tx| {
        ready(tx, &asked.session_id)?;
        if tx.is_running(&asked.session_id)? {
            let num = tx.row(&asked.session_id)?.num;
            let last = tx.store.last_run(num)?;
            let live = tx.live(&asked.session_id)?;
            return match (last, &live.running) {
                // A run that waits for quota needn't wait any longer.
                (Some(last), Some(running)) if last.run.status == "waiting_for_quota" => {
                    running.hurry.notify_one();
                    Ok(Answer::Result(result::<RunResume>(&RunResult { run_id: last.run.run_id })?))
                }
                _ => Err(Failure::busy()),
            };
        }
        let run_id = agent::restart(tx, &asked.session_id)?;
        let json = result::<RunResume>(&RunResult { run_id })?;
        Ok(answered(tx, request, json))
    })
}

fn queue(tx: &mut Tx<'_>, asked: &TextParams, kind: &str) -> Outcome<InputId> {
    let now = tx.now;
    let row = tx.change(&asked.session_id)?;
    let num = row.num;
    let input = Input {
        input_id: InputId::from(row.new_id("input")),
        kind: kind.to_owned(),
        text: asked.text.clone(),
        created_at: Some(now),
    };
    tx.store.insert_input(num, &input)?;
    Ok(input.input_id)
}

pub(super) fn follow_up(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = checked::<RunFollowUp>(request)?;
    let input_id = host.write(|tx| {
        ready(tx, &asked.session_id)?;
        let input_id = queue(tx, &asked, "follow_up")?;
        tx.event(&asked.session_id, None, EventData::FollowupQueued {})?;
        if !tx.is_running(&asked.session_id)? {
            // The run it was to follow has ended meanwhile: its turn is now, after those that wait longer.
            let num = tx.row(&asked.session_id)?.num;
            if let Some(next) = tx.store.inputs(num, Some("follow_up"))?.into_iter().next() {
                tx.store.delete_input(&next.input_id)?;
                agent::begin(tx, Begin { session: &asked.session_id, text: &next.text })?;
            }
        }
        Ok(input_id)
    })?;
    result::<RunFollowUp>(&InputResult { input_id })
}

pub(super) fn steer(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = checked::<RunSteer>(request)?;
    let input_id = host.write(|tx| {
        tx.row(&asked.session_id)?;
        if !tx.is_running(&asked.session_id)? {
            return Err(Failure::refused("conflict: no run is running that could be steered"));
        }
        let input_id = queue(tx, &asked, "steer")?;
        tx.event(&asked.session_id, None, EventData::SteeringAccepted {})?;
        Ok(input_id)
    })?;
    result::<RunSteer>(&InputResult { input_id })
}

pub(super) fn cancel(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<RunCancel>()?;
    host.read(|tx| {
        // Nothing that runs is nothing to cancel: the run may have ended while the request was on its way.
        if let Some(running) = &tx.live(&asked.session_id)?.running {
            running.cancel.send_replace(true);
        }
        Ok(())
    })?;
    nothing()
}

pub(super) fn cancel_child(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ChildCancel>()?;
    host.write(|tx| {
        tx.row(&asked.parent)?;
        let row = tx.row(&asked.child)?.clone();
        if row.parent.as_ref() != Some(&asked.parent) {
            return Err(Failure::refused("invalid child: it is not a child of that session"));
        }
        if let Some(running) = &tx.live(&asked.child)?.running {
            running.cancel.send_replace(true);
            return Ok(());
        }
        match row.details.child.map(|child| child.state).as_deref() {
            Some("interrupted") => agent::cancel_interrupted(tx, &asked.child),
            _ => Err(Failure::refused("conflict: the child has already ended")),
        }
    })?;
    nothing()
}
