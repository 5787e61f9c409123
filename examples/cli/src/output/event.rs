//! An event in a few words.

use kitport::model::{EventKind, Item, PlanStatus, PlanStep, Usage};
use serde_json::Value;

use super::one_line;

/// The longest text of a line that tells of an event.
const TEXT_CHARS: usize = 100;

/// What an event says beside its kind.
pub(crate) fn describe(kind: &EventKind) -> String {
    let words = |text: &str| one_line(text, TEXT_CHARS);
    match kind {
        EventKind::ChatRenamed(event) => words(&event.title),
        EventKind::ChatArchived(event) => if event.archived { "put away" } else { "brought back" }.to_owned(),
        EventKind::ChatSettings(event) => words(event.model.as_deref().unwrap_or_default()),
        EventKind::ChatWorkspace(event) => words(event.path.as_deref().unwrap_or_default()),
        EventKind::RunStarted(event) => {
            let model = event.model.as_deref().map(|model| format!("with {model}"));
            if event.resumed { "goes on after its wait".to_owned() } else { words(&model.unwrap_or_default()) }
        }
        EventKind::RunWaiting(event) => words(event.reason.as_deref().unwrap_or("it waits")),
        EventKind::RunFinished(event) => match &event.error {
            Some(error) => words(&format!("{}: {error}", event.status)),
            None => event.status.to_string(),
        },
        EventKind::MessageUser(event) => item(&event.message),
        EventKind::MessageSystem(event) => item(&event.message),
        EventKind::MessageDelta(event) => format!("@{} {}", event.offset, words(&event.text)),
        EventKind::MessageAssistant(event) => words(&event.text),
        EventKind::ThinkingDelta(event) => words(&event.text),
        EventKind::ToolStarted(event) => item(&event.call),
        EventKind::ToolOutput(event) => format!("{} {}", event.call_id, words(&event.text)),
        EventKind::ToolFinished(event) => {
            let failed = if event.is_error == Some(true) { "failed " } else { "" };
            format!("{} {failed}{}", event.call_id, event.result.as_ref().map(value).unwrap_or_default())
        }
        EventKind::EditApplied(event) => item(&event.edit),
        EventKind::EditUndone(event) => event.edit_id.to_string(),
        EventKind::PlanUpdated(event) => plan(&event.steps),
        EventKind::ApprovalRequested(event) => {
            let approval = &event.approval;
            let title = approval.title.as_deref().or(approval.tool.as_deref()).unwrap_or_default();
            let arguments = approval.arguments.as_ref().map(value).unwrap_or_default();
            format!("{} {} {arguments}", approval.id, words(title))
        }
        EventKind::ApprovalResolved(event) => {
            format!("{} {} {}", event.approval_id, event.state, words(event.reason.as_deref().unwrap_or_default()))
        }
        EventKind::QuestionAsked(event) => format!("{} {}", event.question.id, words(&event.question.text)),
        EventKind::QuestionResolved(event) => event.question_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        EventKind::QueueUpdated(event) => {
            let inputs: Vec<String> =
                event.inputs.iter().map(|input| format!("{}: {}", input.kind, input.text)).collect();
            if inputs.is_empty() { "empty".to_owned() } else { words(&inputs.join(" · ")) }
        }
        EventKind::ChildSpawned(event) => format!("{} {}", event.child.id, words(&event.child.title)),
        EventKind::ChildQuestionAsked(event) => format!("{} {}", event.child_id, words(&event.question.text)),
        EventKind::ChildQuestionResolved(event) => event.child_id.to_string(),
        EventKind::ChildFinished(event) => {
            format!("{} {} {}", event.child_id, event.state, words(event.result.as_deref().unwrap_or_default()))
        }
        EventKind::CompactionUpdated(event) => format!("{} by {}", event.compaction.kind, event.compaction.trigger),
        EventKind::ContextChanged(event) => {
            format!("{} parts, compacted above {} tokens", event.view.items.len(), event.view.threshold)
        }
        EventKind::JobStarted(event) => words(event.job.title.as_deref().unwrap_or(&event.job.id)),
        EventKind::JobOutput(event) => format!("{} {}", event.job_id, words(&event.text)),
        EventKind::JobFinished(event) => format!("{} {}", event.job_id, words(&event.status)),
        EventKind::UsageUpdated(event) => usage(&event.usage),
        EventKind::Gap(event) => {
            format!("{}, {}", event.reason, if event.lost { "durable events are gone" } else { "nothing is lost" })
        }
        // A later version's kind has its name.
        _ => String::new(),
    }
    .trim_end()
    .to_owned()
}

/// An item in a few words.
pub(crate) fn item(item: &Item) -> String {
    match item {
        Item::UserMessage(message) | Item::AssistantMessage(message) | Item::SystemMessage(message) => {
            one_line(&message.text, TEXT_CHARS)
        }
        Item::OtherMessage(message) => format!("({}) {}", message.role, one_line(&message.text, TEXT_CHARS)),
        Item::ToolCall(call) => {
            format!("{} {}", one_line(&call.name, TEXT_CHARS), call.arguments.as_ref().map(value).unwrap_or_default())
        }
        Item::Edit(edit) => one_line(&edit.path, TEXT_CHARS),
        _ => String::new(),
    }
}

/// A value on one line; a plain text without its quotes.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text, TEXT_CHARS),
        other => one_line(&other.to_string(), TEXT_CHARS),
    }
}

/// A plan on one line.
pub(crate) fn plan(steps: &[PlanStep]) -> String {
    let steps = steps.iter().map(|step| {
        let mark = match step.status {
            PlanStatus::Done => "✓",
            PlanStatus::Now => "▸",
            _ => "·",
        };
        format!("{mark} {}", one_line(&step.text, TEXT_CHARS))
    });
    let plan = steps.collect::<Vec<_>>().join("   ");
    if plan.is_empty() { "empty".to_owned() } else { plan }
}

/// Totals on one line.
pub(crate) fn usage(usage: &Usage) -> String {
    let mut text = format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
    if let Some(cost) = usage.cost_usd {
        text.push_str(&format!(", ${cost:.4}"));
    }
    if let Some(context) = &usage.context
        && let (Some(used), Some(window)) = (context.used, context.window)
    {
        text.push_str(&format!(", {used} of {window} in the context"));
    }
    text
}
