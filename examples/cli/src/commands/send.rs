//! `send`: a text goes to the agent, its reply comes as it is written. stdout has the reply alone, stderr the rest.

use kitport::model::ChatId;
use kitport::{AgentBackend, BubblePaw};

use crate::app::App;
use crate::args::SendArgs;
use crate::chat_ref;
use crate::failure::{Exit, Failure};
use crate::follow::Follow;
use crate::input;

pub(super) async fn run(app: &App, args: SendArgs) -> Result<Exit, Failure> {
    let SendArgs { new, mut words, approve_all, resume } = args;
    let chat = if new.is_none() { Some(words.remove(0)) } else { None };
    let text = if resume { String::new() } else { text_of(&words).await? };
    if resume && !words.is_empty() {
        return Err(Failure::usage("--resume takes a chat and no text"));
    }
    // Before anything is made for it: a chat without a message would be left.
    if !resume && text.trim().is_empty() {
        let what = if words.is_empty() { "the text is missing" } else { "the text is blank" };
        return Err(Failure::usage(what).hint("`kitport send CHAT TEXT`, or `kitport send --new TITLE TEXT`"));
    }
    app.with_backend_to_end(async |kit| {
        // Once a run goes on, Ctrl-C cancels that first.
        let chat = tokio::select! {
            chat = find(app, kit, chat.as_deref(), new.as_deref()) => chat?,
            () = app.interrupt.asked() => return Err(Failure::interrupted()),
        };
        let mut follow = Follow::new(app, kit, chat.clone(), approve_all);
        let sent = if resume {
            follow.pending().await?;
            kit.resume(&chat).await?
        } else {
            kit.send(&chat, &text, &[]).await?
        };
        match sent.run_id {
            Some(run) => follow.run(&run).await,
            None => {
                app.out.note("a run goes on; the text waits for its turn");
                if app.out.json {
                    app.out.json(&sent)?;
                }
                Ok(Exit::Done)
            }
        }
    })
    .await
}

async fn text_of(words: &[String]) -> Result<String, Failure> {
    match words {
        [dash] if dash == "-" => {
            input::all().await.map_err(|error| Failure::usage(format!("stdin could not be read as text: {error}")))
        }
        words => Ok(words.join(" ")),
    }
}

async fn find(app: &App, kit: &BubblePaw, chat: Option<&str>, title: Option<&str>) -> Result<ChatId, Failure> {
    match chat {
        Some(chat) => chat_ref::find(kit, chat).await,
        None => {
            let chat = kit.create_chat(title).await?;
            app.out.note(format!("chat {}", chat.id));
            Ok(chat.id)
        }
    }
}
