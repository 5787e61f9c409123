//! The steps of the tour. Each says what it does, does it through the kit, and waits for what must come of it.

use kitport::model::{
    Answer, Approval, Capability, Chat, ConnectionStatus, Decision, EventKind, InputKind, Item, RunStatus,
};
use kitport::stream::Merge;
use kitport::{AgentBackend, ChatReader, ChatStream, ConnectionStream, KitError, KitStream};

use super::host::DemoHost;
use super::stage::{Stage, in_time};
use crate::failure::Failure;
use crate::output::{one_line, usage};

/// Pieces of text after which the host is killed: the reply is well on its way, and far from its end.
const PIECES_BEFORE_KILL: usize = 12;

/// Plays all of them.
pub(super) async fn play(
    stage: &mut Stage<'_>,
    host: &DemoHost,
    chat: &Chat,
    created: &ChatStream,
) -> Result<(), Failure> {
    let connection = stage.kit.connection();
    meet(stage, chat, created, &connection).await?;
    reply(stage).await?;
    tools(stage).await?;
    approval(stage).await?;
    question(stage).await?;
    plan(stage).await?;
    child(stage).await?;
    queue(stage).await?;
    wait_for_quota(stage).await?;
    context(stage).await?;
    settings(stage).await?;
    kill(stage, host, &connection).await?;
    cancel(stage).await?;
    rewind(stage, created).await
}

async fn meet(
    stage: &mut Stage<'_>,
    chat: &Chat,
    created: &ChatStream,
    connection: &ConnectionStream,
) -> Result<(), Failure> {
    stage.step("A host", "a real child process, spoken to over its stdin and stdout")?;
    let state = next("the connection's state", connection).await?;
    stage.connection(&state)?;
    let on = Capability::ALL.iter().filter(|capability| stage.kit.detail(**capability).on).count();
    if let Some(host) = stage.kit.host_info() {
        let (name, version, protocol) = (&host.name, &host.version, &host.protocol_version);
        let count = Capability::ALL.len();
        stage.say("kit", &format!("{name} {version}, protocol {protocol}, {on} of {count} capabilities"))?;
    }
    let told = next("the new chat", created).await?;
    same("created_chats tells of the chat", &told.id, &chat.id)?;
    stage.say("kit", &format!("chat {} “{}”", chat.id, one_line(&chat.title, 60)))
}

async fn reply(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("A reply", "its text comes in pieces, provisional until the host confirms it")?;
    stage.run("stream 40").await?;
    stage.kind("message.delta").await?;
    stage.kind("message.user").await?;
    let totals = stage
        .wait("usage", |event| match &event.kind {
            EventKind::UsageUpdated(event) => Some(event.usage.clone()),
            _ => None,
        })
        .await?;
    stage.say("kit", &usage(&totals))
}

async fn tools(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("Tools", "a call with its result; nested calls are shown, but not stored; a line of the host's own")?;
    stage.run("tool; nested; output text The index is up to date.; say All read.").await?;
    stage.kind("message.system").await?;
    stage
        .wait("a nested call", |event| match &event.kind {
            EventKind::ToolStarted(started) if !event.durable => Some(started.call.id().clone()),
            _ => None,
        })
        .await
        .map(drop)
}

async fn approval(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("An approval", "the agent waits until a person has decided")?;
    let run = stage.send("approve shell; say It ran.").await?;
    let asked = requested(stage).await?;
    let (kit, chat) = (stage.kit, stage.chat.clone());
    let inbox = kit.pending_approvals().await?;
    same("the inbox of all chats", &inbox.iter().any(|waiting| waiting.approval.id == asked.id), &true)?;
    stage.say("you", "yes, this once")?;
    kit.decide_approval(&chat, &asked.id, Decision::Approve, Some("it is a demo")).await?;
    stage.kind("approval.resolved").await?;
    stage.completed(&run).await?;
    // A decision that was made already is an error, not a success.
    let again = kit.decide_approval(&chat, &asked.id, Decision::Deny, None).await;
    refused("a second decision", again, "conflict")
}

/// The approval that the step's run asks for.
async fn requested(stage: &mut Stage<'_>) -> Result<Approval, Failure> {
    stage
        .wait("the approval", |event| match &event.kind {
            EventKind::ApprovalRequested(asked) => Some(asked.approval.clone()),
            _ => None,
        })
        .await
}

async fn question(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("A question", "with labels to choose from, or any text")?;
    let run = stage.send("ask").await?;
    let asked = stage
        .wait("the question", |event| match &event.kind {
            EventKind::QuestionAsked(asked) => Some(asked.question.clone()),
            _ => None,
        })
        .await?;
    let choice = asked.suggestions.first().cloned().unwrap_or_else(|| "green".to_owned());
    stage.say("you", &choice)?;
    stage.kit.answer_question(&stage.chat, &asked.id, Answer::Choice { choice, text: None }).await?;
    stage.kind("question.resolved").await?;
    stage.completed(&run).await
}

async fn plan(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("A plan", "whole each time, so that an app only shows the newest")?;
    stage.run("plan; plan next; plan done; say Planned and done.").await?;
    stage.kind("plan.updated").await
}

async fn child(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("A child", "a chat that the agent started; it asks, and its question is answered through its parent")?;
    let run = stage.send("child ask, stream 8; say The child is back.").await?;
    let (child, question) = stage
        .wait("the child's question", |event| match &event.kind {
            EventKind::ChildQuestionAsked(asked) => Some((asked.child_id.clone(), asked.question.clone())),
            _ => None,
        })
        .await?;
    stage.say("you", "blue")?;
    stage.kit.answer_child_question(&stage.chat, &child, &question.id, "blue".into()).await?;
    stage.completed(&run).await?;
    stage.kind("child.spawned").await?;
    stage.kind("child.question_resolved").await?;
    stage.kind("child.finished").await?;
    let inner = stage.kit.load_chat(&child).await?;
    stage.say("kit", &format!("the child is a chat of its own, with {} items", inner.items.len()))
}

async fn queue(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step(
        "Steering and a queue",
        "a run that goes on takes a new direction, and another text waits for its turn",
    )?;
    // The approval holds the run until the queue was seen, however fast the host is.
    let run = stage.send("stream 60; approve deploy; stream 10").await?;
    stage.kind("message.delta").await?;
    let (kit, chat) = (stage.kit, stage.chat.clone());
    stage.say("you", "(steering) say Steered, as you wish.")?;
    kit.steer(&chat, "say Steered, as you wish.").await?;
    stage.say("you", "(queued) say And now the next text.")?;
    // `send` falls back to the queue by itself, because a run goes on.
    let queued = kit.send(&chat, "say And now the next text.", &[]).await?;
    same("the text waits for its turn", &queued.queued, &true)?;
    stage
        .wait("the queue", |event| match &event.kind {
            EventKind::QueueUpdated(queue) => {
                queue.inputs.iter().any(|input| input.kind == InputKind::FollowUp).then_some(())
            }
            _ => None,
        })
        .await?;
    let asked = requested(stage).await?;
    stage.say("you", "yes")?;
    kit.decide_approval(&chat, &asked.id, Decision::Approve, None).await?;
    stage.completed(&run).await?;
    // The next run is the one that was not sent.
    let next = stage
        .wait("the run of the queued text", |event| match (&event.kind, &event.run) {
            (EventKind::RunStarted(_), Some(next)) if *next != run => Some(next.clone()),
            _ => None,
        })
        .await?;
    stage.completed(&next).await
}

async fn wait_for_quota(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("A wait", "the provider's quota is used up; the run says so, and goes on by itself")?;
    stage.run("quota 0.3; say And on.").await?;
    stage.kind("run.waiting").await?;
    stage
        .wait("the end of the wait", |event| match &event.kind {
            EventKind::RunStarted(started) if started.resumed => Some(()),
            _ => None,
        })
        .await
}

async fn context(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("Context and usage", "what the model sees is folded when it grows; what it costs is told")?;
    stage.run("compact; say Folded.").await?;
    stage.kind("compaction.updated").await?;
    stage.kind("context.changed").await?;
    let (kit, chat) = (stage.kit, stage.chat.clone());
    let context = kit.load_context(&chat).await?;
    let episode = context.structure.episodes.first().ok_or_else(|| Failure::failed("nothing was folded"))?;
    let summary = kit.load_summary(&chat, &episode.id).await?;
    stage.say("kit", &format!("{}: {}", summary.id, one_line(&summary.text, 80)))?;
    let snapshot = kit.load_chat(&chat).await?;
    let totals = snapshot.usage.ok_or_else(|| Failure::failed("the chat has no usage"))?;
    stage.say("kit", &usage(&totals))
}

async fn settings(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("Title and model", "changed here, told to every stream of the chat")?;
    let (kit, chat) = (stage.kit, stage.chat.clone());
    kit.rename(&chat, "A tour, renamed").await?;
    stage.kind("chat.renamed").await?;
    let providers = kit.list_providers().await?;
    let models = providers.providers.iter().filter(|provider| provider.has_key).flat_map(|provider| &provider.models);
    let other = models.map(|model| &model.id).find(|id| Some(*id) != providers.active_main.as_ref());
    let other = other.ok_or_else(|| Failure::failed("the host has one model only"))?.clone();
    stage.say("you", &format!("use {other}"))?;
    kit.set_model(&chat, &other).await?;
    stage.run("say Another model speaks.").await?;
    stage
        .wait("a run of the other model", |event| match &event.kind {
            EventKind::RunStarted(started) => started.model.as_ref().filter(|model| **model == other).map(drop),
            _ => None,
        })
        .await
}

async fn kill(stage: &mut Stage<'_>, host: &DemoHost, connection: &ConnectionStream) -> Result<(), Failure> {
    stage.step("kill -9", "the host dies in the middle of a reply; it is started anew, and the stream stays open")?;
    let run = stage.send("tool; stream 120; tool").await?;
    let mut pieces = 0;
    stage
        .wait("the reply", |event| {
            pieces += usize::from(matches!(event.kind, EventKind::MessageDelta(_)));
            (pieces >= PIECES_BEFORE_KILL).then_some(())
        })
        .await?;
    let pid = host.kill()?;
    stage.say("kit", &format!("killed process {pid}"))?;
    for expected in [ConnectionStatus::Restarting, ConnectionStatus::Connected] {
        let state = next("the connection's state", connection).await?;
        stage.connection(&state)?;
        same("the state of the connection", &state.status, &expected)?;
    }
    same("starts anew", &stage.kit.counters().restarts, &1)?;
    stage.ended(&run, RunStatus::Interrupted).await?;
    stage.say("kit", "the same stream, from its cursor: the run was cut off, and is resumed")?;
    let resumed = stage.kit.resume(&stage.chat).await?.run_id;
    let resumed = resumed.ok_or_else(|| Failure::failed("nothing was resumed"))?;
    stage.completed(&resumed).await
}

async fn cancel(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.step("Cancel", "a run that goes on is ended")?;
    let run = stage.send("stream 400").await?;
    stage.kind("message.delta").await?;
    stage.kit.cancel(&stage.chat).await?;
    stage.ended(&run, RunStatus::Cancelled).await
}

async fn rewind(stage: &mut Stage<'_>, created: &ChatStream) -> Result<(), Failure> {
    stage.step("Rewind", "back to an earlier message, as a new chat; this one stays as it is")?;
    let (kit, chat) = (stage.kit, stage.chat.clone());
    let before = kit.load_chat(&chat).await?;
    let message = before.items.iter().filter(|item| matches!(item, Item::UserMessage(_))).nth(1);
    let message = message.ok_or_else(|| Failure::failed("the chat has no second message"))?.id().clone();
    let rewound = kit.rewind(&chat, &message).await?;
    let new = rewound.new_chat.ok_or_else(|| Failure::failed("the host made no new chat"))?;
    let told = next("the rewound chat", created).await?;
    same("created_chats tells of the rewound chat", &told.id, &new.id)?;
    let after = kit.load_chat(&new.id).await?;
    let last = after.items.last().map(|item| matches!(item, Item::UserMessage(_)));
    same("the rewound chat ends with the message", &last, &Some(true))?;
    let (old, new) = (before.items.len(), after.items.len());
    stage.say("kit", &format!("chat {} has {new} of the {old} items", after.chat.id))
}

/// The next of a stream that is not the chat's.
async fn next<T: Merge>(what: &str, stream: &KitStream<T>) -> Result<T, Failure> {
    let given = in_time(what, stream.next()).await?;
    Ok(given.unwrap_or_else(|| Err(KitError::closed()))?)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, should: &T) -> Result<(), Failure> {
    match is == should {
        true => Ok(()),
        false => Err(Failure::failed(format!("{what}: it is {is:?} and should be {should:?}"))),
    }
}

fn refused(what: &str, done: Result<(), KitError>, code: &str) -> Result<(), Failure> {
    match done {
        Err(error) if error.code() == code => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => Err(Failure::failed(format!("{what} was taken"))),
    }
}
