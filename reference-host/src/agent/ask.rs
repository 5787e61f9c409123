//! Questions: of a session to its user, of a child to whoever looks after its parent.

use kitport::bubblepaw::wire::{ChildQuestionValue, EventData, HostState, Question, feature};
use kitport::model::QuestionId;
use serde_json::json;

use super::{Runner, lifecycle};
use crate::failure::Outcome;
use crate::host::Tx;
use crate::store::QuestionRow;

impl Runner {
    /// Asks and waits for the answer; what is answered is the result of a tool call.
    pub(super) async fn ask(&mut self, text: &str, suggestions: &[String], key: u64) -> Outcome<()> {
        let call_id = self.lasting_call(key);
        let asked = self.host.read(|tx| tx.store.question_of_step(&self.origin, key))?;
        if asked.is_none() {
            self.start_call(&call_id, "ask_user", json!({ "text": text })).await?;
            let host = self.host.clone();
            if !host.write(|tx| self.put_question(tx, text, suggestions, key))? {
                return self.finish_call(&call_id, json!("nobody is there to answer"), true);
            }
        } else {
            self.open_call = Some(call_id.clone());
        }
        let question = self
            .wait_for(|tx| {
                let question = tx.store.question_of_step(&self.origin, key)?;
                Ok(question.filter(|question| question.state != "pending"))
            })
            .await?;
        match question.answer {
            Some(answer) => {
                self.finish_call(&call_id, json!({ "answer": answer }), false)?;
                self.say(&format!("You answered: {answer}"), false).await
            }
            None => self.finish_call(&call_id, json!("the question expired"), true),
        }
    }

    /// Shows the question; false where no one could answer it.
    fn put_question(&mut self, tx: &mut Tx<'_>, text: &str, suggestions: &[String], key: u64) -> Outcome<bool> {
        let session = self.session.clone();
        let parent = tx.row(&session)?.parent.clone();
        let can = match parent {
            Some(_) => tx.has(feature::ANSWER_CHILD) && tx.has(feature::CHILD_EVENTS),
            None => tx.has(feature::QUESTIONS),
        };
        if !can {
            return Ok(false);
        }
        let question = Question {
            question_id: QuestionId::from(tx.change(&session)?.new_id("question")),
            text: text.to_owned(),
            suggestions: (!suggestions.is_empty()).then(|| suggestions.to_vec()),
        };
        tx.store.insert_question(&QuestionRow {
            session: self.num,
            id: question.question_id.clone(),
            origin: self.origin.clone(),
            step: key,
            state: "pending".to_owned(),
            answer: None,
        })?;
        match parent {
            None => {
                tx.change(&session)?.details.question = Some(question.clone());
                let data = EventData::HostStateChanged(HostState::Question(Some(question)));
                tx.event(&session, Some(&self.run.run_id), data)?;
            }
            Some(parent) => {
                if let Some(child) = &mut tx.change(&session)?.details.child {
                    child.question = Some(question.clone());
                }
                let value = ChildQuestionValue { child: session.clone(), question };
                tx.event(&parent, None, EventData::HostStateChanged(HostState::ChildQuestion(value)))?;
                lifecycle::tell_parent(tx, &session, "waiting", None)?;
            }
        }
        Ok(true)
    }
}
