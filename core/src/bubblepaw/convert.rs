//! From the wire's shapes to the model's, one function a shape. Pure. Nothing is invented: what is absent stays absent.

use serde_json::Value;

use super::wire;
use crate::model::{
    Approval, ApprovalState, Chapter, Chat, Child, Compaction, ContextItem, ContextUsage, Episode, Item, Message,
    Model, OtherMessage, PlanStatus, PlanStep, Provider, Providers, Question, QueuedInput, Run, RunWait, Seq, ToolCall,
    ToolStatus, Usage,
};

pub(crate) const EPISODE: &str = "episode:";
pub(crate) const CHAPTER: &str = "chapter:";

pub(crate) fn chat(meta: wire::SessionMeta) -> Chat {
    Chat {
        id: meta.session_id,
        title: meta.title,
        created_at: meta.created_at,
        updated_at: meta.updated_at,
        parent_id: meta.parent_id,
        model: meta.model,
        run_status: None,
    }
}

pub(crate) fn run(run: wire::Run) -> Run {
    Run {
        id: run.run_id,
        status: run.status.as_str().into(),
        model: run.model,
        started_at: run.started_at,
        finished_at: run.finished_at,
        error: run.error,
        wait: run.wait.map(wait),
    }
}

pub(crate) fn wait(wait: wire::Wait) -> RunWait {
    RunWait { resume_at: wait.resume_at, reason: wait.reason }
}

pub(crate) fn input(input: wire::Input) -> QueuedInput {
    QueuedInput { id: input.input_id, kind: input.kind.as_str().into(), text: input.text, created_at: input.created_at }
}

pub(crate) fn plan_step(todo: wire::Todo) -> PlanStep {
    let status = match todo.status.as_str() {
        "pending" => PlanStatus::Todo,
        "in_progress" => PlanStatus::Now,
        "done" => PlanStatus::Done,
        other => PlanStatus::Other(other.to_owned()),
    };
    PlanStep { id: todo.id, text: todo.text, status }
}

pub(crate) fn question(question: wire::Question) -> Question {
    Question { id: question.question_id, text: question.text, suggestions: question.suggestions.unwrap_or_default() }
}

pub(crate) fn usage(usage: wire::Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        total_tokens: usage.total_tokens,
        cost_usd: usage.cost_usd,
        context: usage.context.map(|context| ContextUsage { used: context.used, window: context.window }),
    }
}

pub(crate) fn child(child: wire::Child) -> Child {
    Child {
        id: child.session_id,
        parent_id: child.parent_id,
        title: child.title,
        state: child.state.as_str().into(),
        question: child.question.map(question),
        result: child.result,
    }
}

pub(crate) fn approval_state(word: &str) -> ApprovalState {
    match word {
        "approved_session" => ApprovalState::ApprovedForSession,
        other => other.into(),
    }
}

pub(crate) fn approval(approval: wire::Approval) -> Approval {
    Approval {
        id: approval.approval_id,
        run: approval.run_id,
        call_id: approval.call_id,
        tool: approval.tool,
        title: approval.title,
        arguments: approval.arguments,
        state: approval_state(&approval.state),
        reason: approval.reason,
        options: None,
        created_at: approval.created_at,
    }
}

/// A call as it starts.
pub(crate) fn tool_call(call: wire::ToolCall, run: Option<crate::model::RunId>, durable: bool) -> ToolCall {
    ToolCall {
        id: call.call_id,
        name: call.name,
        arguments: Some(call.arguments),
        status: ToolStatus::Running,
        result: None,
        is_error: None,
        run,
        durable,
    }
}

/// A result; null counts as none.
pub(crate) fn result(result: Value) -> Option<Value> {
    (!result.is_null()).then_some(result)
}

/// The status of a call that ended.
pub(crate) fn ended_status(is_error: Option<bool>) -> ToolStatus {
    if is_error == Some(true) { ToolStatus::Failed } else { ToolStatus::Done }
}

/// A text publication as a system line; other publications have no renderer.
pub(crate) fn output(output: wire::Output) -> Option<Message> {
    if output.kind != "text" {
        return None;
    }
    Some(Message {
        id: output.output_id,
        text: output.text?,
        run: output.run_id,
        created_at: output.created_at,
        provisional: false,
    })
}

/// A message without its tool calls.
pub(crate) fn message(role: &str, message: Message) -> Item {
    match role {
        "user" => Item::UserMessage(message),
        "assistant" => Item::AssistantMessage(message),
        "system" => Item::SystemMessage(message),
        // A tool result whose call is not there is a line of the host's own.
        "tool" => Item::SystemMessage(message),
        other => Item::OtherMessage(OtherMessage {
            role: other.to_owned(),
            id: message.id,
            text: message.text,
            run: message.run,
            created_at: message.created_at,
            provisional: message.provisional,
        }),
    }
}

pub(crate) fn providers(list: wire::ProvidersListResult) -> Providers {
    let providers = list.providers.into_iter().map(provider).collect();
    Providers { providers, main: list.main, active_main: list.active_main }
}

fn provider(provider: wire::Provider) -> Provider {
    let models = provider.models.into_iter().map(|model| self::model(&provider.id, model)).collect();
    Provider { id: provider.id, kind: provider.kind, name: provider.name, has_key: provider.has_key, models }
}

/// A model's kit id is `provider/model`, as `roles.set_main` takes it.
fn model(provider: &str, model: wire::Model) -> Model {
    Model { id: format!("{provider}/{}", model.id), name: model.name, context_window: model.context_window }
}

/// The count of a span of store sequences: an upper bound, since they are not dense.
fn span(first: u64, last: u64) -> u64 {
    if last < first { 0 } else { (last - first).saturating_add(1) }
}

/// An id with the kit's prefix; one that has it already is left as it is.
pub(crate) fn prefixed(prefix: &str, id: &str) -> String {
    if id.starts_with(prefix) { id.to_owned() } else { format!("{prefix}{id}") }
}

pub(crate) fn chapter(chapter: wire::Chapter) -> Chapter {
    Chapter {
        id: prefixed(CHAPTER, &chapter.chapter_id),
        title: chapter.title,
        first_seq: Seq(chapter.first_seq),
        last_seq: Seq(chapter.last_seq),
        message_count: span(chapter.first_seq, chapter.last_seq),
        episodes: chapter.episodes.iter().map(|id| prefixed(EPISODE, id)).collect(),
    }
}

pub(crate) fn episode(episode: wire::Episode) -> Episode {
    Episode {
        id: prefixed(EPISODE, &episode.episode_id),
        title: episode.title,
        first_seq: Seq(episode.first_seq),
        last_seq: Seq(episode.last_seq),
        message_count: span(episode.first_seq, episode.last_seq),
    }
}

pub(crate) fn compaction(event: wire::ContextEvent) -> Compaction {
    Compaction {
        id: event.event_id,
        kind: event.kind,
        trigger: event.trigger,
        seq: event.seq.map(Seq),
        at: event.at,
        applied: event.applied,
        tokens_before: None,
        tokens_after: None,
    }
}

/// A part of the view, without a message's store sequence.
pub(crate) fn view_item(item: wire::ViewItem) -> ContextItem {
    let id = match item.kind.as_str() {
        "episode" => prefixed(EPISODE, &item.id),
        "chapter" => prefixed(CHAPTER, &item.id),
        _ => item.id,
    };
    ContextItem { kind: item.kind.as_str().into(), id, seq: None }
}
