//! `approve`: decides an approval, or lists those that wait.

use kitport::model::{Approval, ChatApproval, ChatId, ChatSnapshot, Decision, RunStatus};
use kitport::{AgentBackend, ChatReader, KitError};
use serde_json::json;

use crate::app::App;
use crate::args::ApproveArgs;
use crate::chat_ref;
use crate::failure::{Exit, Failure};
use crate::output::{Table, one_line, value};

/// The longest title in a list.
const TITLE_CHARS: usize = 60;

pub(super) async fn run(app: &App, args: ApproveArgs) -> Result<Exit, Failure> {
    let decision = match (args.deny, args.session) {
        (true, _) => Decision::Deny,
        (_, true) => Decision::ApproveSession,
        _ => Decision::Approve,
    };
    let (Some(chat), Some(approval)) = (args.chat, args.approval) else { return list(app).await };
    app.with_backend(async |kit| {
        let chat = chat_ref::find(kit, &chat).await?;
        let before = kit.load_chat(&chat).await?;
        let id = match pick(&before.approvals, &approval)? {
            Some(known) => known.id.clone(),
            // The host says what became of it.
            None => approval.as_str().into(),
        };
        kit.decide_approval(&chat, &id, decision.clone(), args.reason.as_deref())
            .await
            .map_err(|error| Failure::from(error).hint_if("not_found", "`kitport approve` lists those that wait"))?;
        let word = match decision {
            Decision::Deny => "denied",
            Decision::ApproveSession => "approved for the session",
            _ => "approved",
        };
        if app.out.json {
            app.out.json(&json!({ "chat": chat, "approval": id, "decision": decision }))?;
        } else {
            app.out.line(format!("{word}: {id}"))?;
        }
        hint_resume(app, &chat, &before);
        Ok(Exit::Done)
    })
    .await
}

fn pick<'a>(approvals: &'a [Approval], given: &str) -> Result<Option<&'a Approval>, Failure> {
    if let Some(whole) = approvals.iter().find(|approval| approval.id == *given) {
        return Ok(Some(whole));
    }
    let mut fitting = approvals.iter().filter(|approval| approval.id.starts_with(given));
    match (fitting.next(), fitting.next()) {
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("more than one approval begins with {given:?}")).hint("give more of the id"))
        }
        (one, _) => Ok(one),
    }
}

/// A run that was cut off while it waited goes on only when told so.
pub(super) fn hint_resume(app: &App, chat: &ChatId, before: &ChatSnapshot) {
    if before.runs.last().is_some_and(|run| run.status == RunStatus::Interrupted) {
        app.out.note(format!("the run was cut off meanwhile: `kitport send {chat} --resume` goes on"));
    }
}

async fn list(app: &App) -> Result<Exit, Failure> {
    let pending: Vec<ChatApproval> =
        app.with_backend(async |kit| Ok::<_, KitError>(kit.pending_approvals().await?).map_err(Failure::from)).await?;
    if app.out.json {
        app.out.json(&pending)?;
        return Ok(Exit::Done);
    }
    if pending.is_empty() {
        app.out.note("no approval waits");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["CHAT", "APPROVAL", "WHAT", "WITH"]);
    for ChatApproval { chat, approval } in &pending {
        let title = approval.title.as_deref().or(approval.tool.as_deref()).unwrap_or_default();
        let arguments = approval.arguments.as_ref().map(value).unwrap_or_default();
        table.row([chat.to_string(), approval.id.to_string(), one_line(title, TITLE_CHARS), arguments]);
    }
    for line in table.lines() {
        app.out.line(line)?;
    }
    app.out.note("`kitport approve CHAT APPROVAL` approves, with --deny it denies");
    Ok(Exit::Done)
}
