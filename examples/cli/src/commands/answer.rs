//! `answer`: answers a question of a chat, or of a child of it.

use kitport::model::{ChatId, ChatSnapshot, Question};
use kitport::{AgentBackend, ChatReader, KitError};
use serde_json::json;

use super::approve::hint_resume;
use crate::app::App;
use crate::args::AnswerArgs;
use crate::chat_ref;
use crate::desk;
use crate::failure::{Exit, Failure};

pub(super) async fn run(app: &App, args: AnswerArgs) -> Result<Exit, Failure> {
    let (wanted, text) = match args.words.as_slice() {
        [question, text] => (Some(question.as_str()), text),
        [text] => (None, text),
        _ => return Err(Failure::usage("give the answer, with the question's id before it where there are several")),
    };
    app.with_backend(async |kit| {
        let chat = chat_ref::find(kit, &args.chat).await?;
        let snapshot = kit.load_chat(&chat).await?;
        let (child, question) = pick(&snapshot, wanted)?;
        let answer = desk::answer(question, text).ok_or_else(|| Failure::usage("the answer is blank"))?;
        match child {
            Some(child) => kit.answer_child_question(&chat, child, &question.id, answer.clone()).await?,
            None => kit.answer_question(&chat, &question.id, answer.clone()).await?,
        }
        if app.out.json {
            app.out.json(&json!({ "chat": chat, "question": question.id, "answer": answer }))?;
        } else {
            app.out.line(format!("answered: {}", question.id))?;
        }
        hint_resume(app, &chat, &snapshot);
        Ok(Exit::Done)
    })
    .await
}

type Open<'a> = (Option<&'a ChatId>, &'a Question);

/// The question that is meant: the one named, or the only one.
fn pick<'a>(snapshot: &'a ChatSnapshot, wanted: Option<&str>) -> Result<Open<'a>, Failure> {
    let own = snapshot.question.iter().map(|question| (None, question));
    let of_children = snapshot.children.iter().filter_map(|child| Some((Some(&child.id), child.question.as_ref()?)));
    let mut open: Vec<Open<'a>> = own.chain(of_children).collect();
    if let Some(wanted) = wanted {
        open.retain(|(_, question)| question.id.starts_with(wanted));
    }
    match open.as_slice() {
        [one] => Ok(*one),
        [] => {
            let message = match wanted {
                Some(wanted) => format!("the chat has no open question {wanted:?}"),
                None => "the chat has no open question".to_owned(),
            };
            Err(Failure::from(KitError::not_found(message)).hint(format!("`kitport show {}`", snapshot.chat.id)))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|(_, question)| question.id.as_str()).collect();
            let message = format!("several questions are open: {}", ids.join(", "));
            Err(Failure::usage(message).hint(format!("`kitport answer {} QUESTION TEXT`", snapshot.chat.id)))
        }
    }
}
