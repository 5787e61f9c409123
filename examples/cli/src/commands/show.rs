//! `show`: a chat as it is now, its stored history, or its context.

use console::style;
use kitport::ChatReader;
use kitport::model::{ChatSnapshot, Context, HistoryItem, Item, Seq, ToolStatus};

use crate::app::App;
use crate::args::ShowArgs;
use crate::chat_ref;
use crate::failure::{Exit, Failure};
use crate::output::{Output, clean, item, one_line, plan, usage, value};

/// Above every sequence, and yet a number in every JSON.
const LAST: Seq = Seq((1 << 53) - 1);

/// The longest summary shown on a line.
const SUMMARY_CHARS: usize = 200;

pub(super) async fn run(app: &App, args: ShowArgs) -> Result<Exit, Failure> {
    app.with_backend(async |kit| {
        let chat = chat_ref::find(kit, &args.chat).await?;
        if args.history {
            let history = kit.load_history_range(&chat, Seq::START, LAST).await?;
            return if app.out.json { Ok(app.out.json(&history)?) } else { show_history(app.out, &history) };
        }
        if args.context {
            let context = kit.load_context(&chat).await?;
            if app.out.json {
                return Ok(app.out.json(&context)?);
            }
            let mut summaries = Vec::new();
            let structure = &context.structure;
            let ids = structure.chapters.iter().map(|c| &c.id).chain(structure.episodes.iter().map(|e| &e.id));
            for id in ids {
                summaries.push((id.clone(), kit.load_summary(&chat, id).await?.text));
            }
            return show_context(app.out, &context, &summaries);
        }
        let snapshot = kit.load_chat(&chat).await?;
        if app.out.json { Ok(app.out.json(&snapshot)?) } else { show_chat(app.out, &snapshot) }
    })
    .await?;
    Ok(Exit::Done)
}

fn show_chat(out: Output, snapshot: &ChatSnapshot) -> Result<(), Failure> {
    let chat = &snapshot.chat;
    out.line(style(clean(&chat.title)).bold().to_string())?;
    let model = snapshot.settings.model.as_deref().unwrap_or("no model yet");
    out.line(style(format!("{} · {} · as of sequence {}", chat.id, clean(model), snapshot.seq)).dim().to_string())?;
    for item in &snapshot.items {
        show_item(out, item)?;
    }
    let label = |name: &str| style(format!("{name}:")).dim().to_string();
    let mut rest: Vec<String> = Vec::new();
    if let Some(run) = snapshot.runs.last() {
        let error = run.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        rest.push(format!("{} {}{}", label("newest run"), run.status, one_line(&error, SUMMARY_CHARS)));
    }
    if !snapshot.plan.is_empty() {
        rest.push(format!("{} {}", label("plan"), plan(&snapshot.plan)));
    }
    for input in &snapshot.queue {
        rest.push(format!("{} {} {}", label("queued"), input.kind, one_line(&input.text, SUMMARY_CHARS)));
    }
    for approval in &snapshot.approvals {
        let title = approval.title.as_deref().or(approval.tool.as_deref()).unwrap_or_default();
        rest.push(format!("{} {} {}", label("waits for approval"), approval.id, one_line(title, SUMMARY_CHARS)));
    }
    if let Some(question) = &snapshot.question {
        rest.push(format!("{} {} {}", label("asks"), question.id, one_line(&question.text, SUMMARY_CHARS)));
    }
    for child in &snapshot.children {
        rest.push(format!("{} {} {} {}", label("child"), child.id, child.state, one_line(&child.title, SUMMARY_CHARS)));
        if let Some(question) = &child.question {
            rest.push(format!("{} {} {}", label("it asks"), question.id, one_line(&question.text, SUMMARY_CHARS)));
        }
    }
    if let Some(totals) = &snapshot.usage {
        rest.push(format!("{} {}", label("usage"), usage(totals)));
    }
    if !rest.is_empty() {
        out.line("")?;
    }
    rest.iter().try_for_each(|line| out.line(line))?;
    Ok(())
}

fn show_item(out: Output, shown: &Item) -> Result<(), Failure> {
    match shown {
        Item::UserMessage(message) => {
            out.line(format!("\n{} {}", style("you").green().bold(), clean(&message.text)))?
        }
        Item::AssistantMessage(message) => {
            out.line(format!("\n{} {}", style("agent").cyan().bold(), clean(&message.text)))?;
        }
        Item::SystemMessage(message) => out.line(format!("\n{} {}", style("host").yellow(), clean(&message.text)))?,
        Item::ToolCall(call) => {
            let (mark, result) = match call.status {
                ToolStatus::Done => ("✓", call.result.as_ref().map(value).unwrap_or_default()),
                ToolStatus::Failed => ("✗", call.result.as_ref().map(value).unwrap_or_default()),
                _ => ("…", String::new()),
            };
            let line = format!("  {} {} {}", style(mark).cyan(), item(shown), style(result).dim());
            out.line(line.trim_end())?;
        }
        other => out.line(format!("  {} {}", style("·").cyan(), item(other)))?,
    }
    Ok(())
}

fn show_history(out: Output, history: &[HistoryItem]) -> Result<(), Failure> {
    for HistoryItem { seq, item: shown } in history {
        let kind = match shown {
            Item::UserMessage(_) => "user",
            Item::AssistantMessage(_) => "assistant",
            Item::SystemMessage(_) => "system",
            Item::ToolCall(_) => "tool",
            Item::Edit(_) => "edit",
            _ => "other",
        };
        out.line(format!("{:>6}  {kind:<9}  {}", seq.0, item(shown)).trim_end())?;
    }
    if history.is_empty() {
        out.note("there is no history yet");
    }
    Ok(())
}

fn show_context(out: Output, context: &Context, summaries: &[(String, String)]) -> Result<(), Failure> {
    let view = &context.view;
    let mut head = format!("compacted above {} tokens", view.threshold);
    if let (Some(window), Some(reserve)) = (view.window, view.response_reserve) {
        head.push_str(&format!("; the window has {window}, {reserve} of them for the reply"));
    }
    out.line(head)?;
    out.line(style("\nWhat the model sees").bold().to_string())?;
    for item in &view.items {
        let seq = item.seq.map(|seq| seq.to_string()).unwrap_or_default();
        out.line(format!("{seq:>6}  {:<9}  {}", item.kind.as_str(), item.id))?;
    }
    out.line(style("\nWhat became of the rest").bold().to_string())?;
    let spans = context.structure.chapters.iter().map(|c| (&c.id, &c.title, c.first_seq, c.last_seq));
    let spans = spans.chain(context.structure.episodes.iter().map(|e| (&e.id, &e.title, e.first_seq, e.last_seq)));
    for (id, title, first, last) in spans {
        let title = one_line(title.as_deref().unwrap_or_default(), SUMMARY_CHARS);
        out.line(format!("{id}  {first} to {last}  {title}"))?;
        if let Some((_, text)) = summaries.iter().find(|(of, _)| of == id) {
            out.line(format!("    {}", style(one_line(text, SUMMARY_CHARS)).dim()))?;
        }
    }
    for compaction in &context.compactions {
        let applied = if compaction.applied { "applied" } else { "not applied yet" };
        out.line(format!("{}  {} by {}, {applied}", compaction.id, compaction.kind, compaction.trigger))?;
    }
    if context.compactions.is_empty() {
        out.line("nothing: all is in the view")?;
    }
    Ok(())
}
