//! Answers to questions, of a session and of its children.

use std::sync::Arc;

use kitport::bubblepaw::wire::{ChildAnswerValue, EventData, HostState, QuestionAnswer, QuestionAnswerChild};
use kitport::model::ChatId;

use super::nothing;
use super::request::Request;
use crate::agent;
use crate::failure::{Failure, Outcome};
use crate::host::{Host, Tx};
use crate::store::QuestionRow;

/// The question, if it waits for an answer.
fn pending(tx: &mut Tx<'_>, session: &ChatId, id: &str) -> Outcome<QuestionRow> {
    let num = tx.row(session)?.num;
    let question = tx.store.question(num, id)?.ok_or_else(|| Failure::refused(format!("unknown question: {id}")))?;
    match question.state.as_str() {
        "pending" => Ok(question),
        "answered" => Err(Failure::refused("question was already answered")),
        _ => Err(Failure::refused("question expired: its run has ended")),
    }
}

pub(super) fn answer(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<QuestionAnswer>()?;
    if asked.text.trim().is_empty() {
        return Err(Failure::refused("answer must not be blank"));
    }
    host.write(|tx| {
        let row = tx.row(&asked.session_id)?;
        if row.parent.is_some() {
            // A child's question isn't the session's own: its parent is asked.
            return Err(Failure::refused(format!("unknown question: {}", asked.question_id)));
        }
        let question = pending(tx, &asked.session_id, &asked.question_id)?;
        tx.store.save_question(&question.id, "answered", Some(&asked.text))?;
        tx.change(&asked.session_id)?.details.question = None;
        tx.event(&asked.session_id, None, EventData::HostStateChanged(HostState::Question(None)))
    })?;
    nothing()
}

pub(super) fn answer_child(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<QuestionAnswerChild>()?;
    if asked.text.trim().is_empty() {
        return Err(Failure::refused("blank answer"));
    }
    host.write(|tx| {
        tx.row(&asked.parent)?;
        if tx.row(&asked.child)?.parent.as_ref() != Some(&asked.parent) {
            return Err(Failure::refused("foreign child: it is not a child of that session"));
        }
        let question = pending(tx, &asked.child, &asked.question_id)?;
        tx.store.save_question(&question.id, "answered", Some(&asked.text))?;
        let value = ChildAnswerValue { child: asked.child.clone(), question_id: question.id };
        tx.event(&asked.parent, None, EventData::HostStateChanged(HostState::ChildQuestionAnswer(value)))?;
        if let Some(child) = &mut tx.change(&asked.child)?.details.child {
            child.question = None;
            // An interrupted child keeps the answer until it is resumed.
            if child.state == "waiting" {
                agent::tell_parent(tx, &asked.child, "running", None)?;
            }
        }
        Ok(())
    })?;
    nothing()
}
