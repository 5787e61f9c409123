//! The one table of methods and streams. A row is a name, its words, the capability it needs, its parameters in their
//! positional order, its result and the call. Tests hold it against the ports: the same methods with the same words
//! and the same parameters.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::params::read;
use super::reply::Reply;
use super::stream::DoorStream;
use crate::error::{KitError, Outcome, Result};
use crate::model::*;
use crate::port::AgentBackend;
use crate::stream::{KitStream, Merge};

/// Which port a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    /// It reads.
    ChatReader,
    /// It is a command.
    AgentBackend,
}

/// A row of the table.
pub(super) struct Row<T> {
    pub(super) name: &'static str,
    pub(super) port: Port,
    /// The capability it needs, where it needs one.
    #[cfg_attr(not(any(test, feature = "schema")), allow(dead_code))]
    pub(super) capability: Option<Capability>,
    pub(super) call: fn(Arc<dyn AgentBackend>, Value) -> BoxFuture<'static, Result<T>>,
    /// Its words, a line each.
    #[cfg(any(test, feature = "schema"))]
    pub(super) doc: &'static [&'static str],
    /// The schema of its parameters, an object.
    #[cfg(feature = "schema")]
    pub(super) params: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// The schema of its result, or of what the stream gives.
    #[cfg(feature = "schema")]
    pub(super) result: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

impl<T> Row<T> {
    /// A command that failed before the backend saw it was not sent.
    pub(super) fn not_sent(&self, error: KitError) -> KitError {
        not_sent(self.port, error)
    }
}

fn not_sent(port: Port, error: KitError) -> KitError {
    match port {
        Port::ChatReader => error,
        Port::AgentBackend => error.with_outcome(Outcome::NotSent),
    }
}

/// What a row gives, made from what the port gives: a method's result as it is, a stream of `T` for a stream.
trait Gives<T>: Sized {
    type Given;
    fn from(given: Self::Given) -> Self;
}

impl<T: Serialize + Send + 'static> Gives<T> for Reply {
    type Given = T;
    fn from(given: T) -> Self {
        Reply::new(given)
    }
}

impl<T: Merge + Serialize> Gives<T> for DoorStream {
    type Given = KitStream<T>;
    fn from(given: KitStream<T>) -> Self {
        given.into()
    }
}

macro_rules! rows {
    ($given:ty: $($port:ident {$(
        $(#[doc = $doc:literal])*
        $([$capability:ident])? $name:ident($($(#[$fmeta:meta])* $field:ident: $ty:ty),* $(,)?) -> $result:ty
            = |$backend:ident| $call:expr;
    )*})*) => {
        &[$($({
            #[derive(Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            struct Params {
                $($(#[$fmeta])* $field: $ty,)*
            }
            Row {
                name: stringify!($name),
                port: Port::$port,
                capability: rows!(@capability $($capability)?),
                call: |$backend, params| Box::pin(async move {
                    let Params { $($field,)* } =
                        read(stringify!($name), params).map_err(|error| not_sent(Port::$port, error))?;
                    Ok(<$given as Gives<$result>>::from($call))
                }),
                #[cfg(any(test, feature = "schema"))]
                doc: &[$($doc),*],
                #[cfg(feature = "schema")]
                params: <Params as schemars::JsonSchema>::json_schema,
                #[cfg(feature = "schema")]
                result: |generator| generator.subschema_for::<$result>(),
            }
        },)*)*]
    };
    (@capability) => { None };
    (@capability $capability:ident) => { Some(Capability::$capability) };
}

/// All methods.
pub(super) static METHODS: &[Row<Reply>] = rows! { Reply:
    ChatReader {
        /// What it can do, with the reasons for what it can't. It may change when a host is started anew.
        capability_table() -> CapabilityTable = |backend| backend.capability_table();

        /// What it can do, a boolean each.
        capabilities() -> Capabilities = |backend| backend.capabilities();

        /// One capability with its reason.
        detail(
            /// The capability.
            capability: Capability,
        ) -> CapabilityDetail = |backend| backend.detail(capability);

        /// Finer limits on inputs.
        constraints() -> Constraints = |backend| backend.constraints();

        /// Who the host is, where there is one.
        host_info() -> Option<HostInfo> = |backend| backend.host_info();

        /// What the connection met and went on from.
        counters() -> Counters = |backend| backend.counters();

        /// A page of chats. `query` filters the titles of this page only, whatever their case.
        list_chats(
            /// The page before's `next_cursor`; absent for the first page.
            cursor: Option<String>,
            /// A part of the title.
            query: Option<String>,
        ) -> ChatPage = |backend| backend.list_chats(cursor.as_deref(), query.as_deref()).await?;

        /// A chat as of one sequence.
        load_chat(
            /// The chat.
            chat: ChatId,
        ) -> ChatSnapshot = |backend| backend.load_chat(&chat).await?;

        /// Items whose store sequence is between `first` and `last`, both included.
        [History] load_history_range(
            /// The chat.
            chat: ChatId,
            /// The first store sequence.
            first: Seq,
            /// The last store sequence.
            last: Seq,
        ) -> Vec<HistoryItem> = |backend| backend.load_history_range(&chat, first, last).await?;

        /// Structure, compactions and view.
        [Context] load_context(
            /// The chat.
            chat: ChatId,
        ) -> Context = |backend| backend.load_context(&chat).await?;

        /// A summary, by `episode:<id>` or `chapter:<id>`.
        [Summary] load_summary(
            /// The chat.
            chat: ChatId,
            /// `episode:<id>` or `chapter:<id>`.
            kit_id: String,
        ) -> ContextSummary = |backend| backend.load_summary(&chat, &kit_id).await?;

        /// Providers, their models, and the default.
        [Providers] list_providers() -> Providers = |backend| backend.list_providers().await?;

        /// The models that a chat can use.
        [Models] list_models(
            /// The chat; absent for a new one.
            chat: Option<ChatId>,
        ) -> Vec<Model> = |backend| backend.list_models(chat.as_ref()).await?;

        /// The profiles that a chat can use.
        [Profiles] list_profiles(
            /// The chat; absent for a new one.
            chat: Option<ChatId>,
        ) -> Vec<Profile> = |backend| backend.list_profiles(chat.as_ref()).await?;

        /// The pending approvals of all chats.
        [Approve] pending_approvals() -> Vec<ChatApproval> = |backend| backend.pending_approvals().await?;

        /// Ends the backend: streams end without an error, pending calls with `KitError::Closed`. Returns when nothing of it
        /// is left. Safe to call twice.
        close() -> () = |backend| backend.close().await;
    }
    AgentBackend {
        /// Makes a new chat.
        [CreateChat] create_chat(
            /// Its title.
            title: Option<String>,
        ) -> Chat = |backend| backend.create_chat(title.as_deref()).await?;

        /// Sends a text: it starts a run or, where one goes on and the backend can, waits for its turn.
        [Send] send(
            /// The chat.
            chat: ChatId,
            /// The text.
            text: String,
            /// What it refers to.
            #[serde(default, deserialize_with = "super::params::list")]
            references: Vec<Reference>,
        ) -> Sent = |backend| backend.send(&chat, &text, &references).await?;

        /// Gives the run that goes on a new direction.
        [Steer] steer(
            /// The chat.
            chat: ChatId,
            /// The text.
            text: String,
        ) -> Sent = |backend| backend.steer(&chat, &text).await?;

        /// Queues a text for the next run.
        [FollowUp] follow_up(
            /// The chat.
            chat: ChatId,
            /// The text.
            text: String,
        ) -> Sent = |backend| backend.follow_up(&chat, &text).await?;

        /// Sends a queued input at once.
        [Queue] send_queued_now(
            /// The chat.
            chat: ChatId,
            /// The queued input.
            input: InputId,
        ) -> () = |backend| backend.send_queued_now(&chat, &input).await?;

        /// Changes the text of a queued input.
        [Queue] edit_queued(
            /// The chat.
            chat: ChatId,
            /// The queued input.
            input: InputId,
            /// Its new text.
            text: String,
        ) -> () = |backend| backend.edit_queued(&chat, &input, &text).await?;

        /// Takes a queued input back.
        [Queue] remove_queued(
            /// The chat.
            chat: ChatId,
            /// The queued input.
            input: InputId,
        ) -> () = |backend| backend.remove_queued(&chat, &input).await?;

        /// Cancels the run that goes on.
        [Cancel] cancel(
            /// The chat.
            chat: ChatId,
        ) -> () = |backend| backend.cancel(&chat).await?;

        /// Goes on after an interrupted run.
        [Resume] resume(
            /// The chat.
            chat: ChatId,
        ) -> Sent = |backend| backend.resume(&chat).await?;

        /// Decides an approval of that chat. An unknown one is not found, a decided one a conflict.
        [Approve] decide_approval(
            /// The chat.
            chat: ChatId,
            /// The approval.
            approval: ApprovalId,
            /// The decision.
            decision: Decision,
            /// Why.
            reason: Option<String>,
        ) -> () = |backend| backend.decide_approval(&chat, &approval, decision, reason.as_deref()).await?;

        /// Answers the chat's question.
        [Questions] answer_question(
            /// The chat.
            chat: ChatId,
            /// The question.
            question: QuestionId,
            /// The answer.
            answer: Answer,
        ) -> () = |backend| backend.answer_question(&chat, &question, answer).await?;

        /// Answers a child's question.
        [AnswerChildQuestion] answer_child_question(
            /// The chat, the child's parent.
            chat: ChatId,
            /// The child.
            child: ChatId,
            /// The question.
            question: QuestionId,
            /// The answer.
            answer: Answer,
        ) -> () = |backend| backend.answer_child_question(&chat, &child, &question, answer).await?;

        /// Gives the chat a new title.
        [Rename] rename(
            /// The chat.
            chat: ChatId,
            /// Its new title.
            title: String,
        ) -> () = |backend| backend.rename(&chat, &title).await?;

        /// Puts the chat away, or brings it back.
        [Archive] archive(
            /// The chat.
            chat: ChatId,
            /// Whether it is put away.
            archived: bool,
        ) -> () = |backend| backend.archive(&chat, archived).await?;

        /// Makes a new chat that begins like this one, up to and with `message` where one is given.
        [Fork] fork(
            /// The chat.
            chat: ChatId,
            /// The last message of the new chat.
            message: Option<ItemId>,
        ) -> Chat = |backend| backend.fork(&chat, message.as_ref()).await?;

        /// Goes back to a message. Files on disk that the host keeps checkpoints of are restored: **files change**.
        [Rewind] rewind(
            /// The chat.
            chat: ChatId,
            /// The message, by an id that is not provisional.
            message: ItemId,
        ) -> Rewound = |backend| backend.rewind(&chat, &message).await?;

        /// Cancels a child and what it started. `chat` must be its direct parent.
        [Children] cancel_child(
            /// The chat, the child's parent.
            chat: ChatId,
            /// The child.
            child: ChatId,
        ) -> () = |backend| backend.cancel_child(&chat, &child).await?;

        /// Cancels a background job.
        [Jobs] cancel_job(
            /// The chat.
            chat: ChatId,
            /// The job.
            job: JobId,
        ) -> () = |backend| backend.cancel_job(&chat, &job).await?;

        /// Takes a change of a file back.
        [Edits] undo_edit(
            /// The chat.
            chat: ChatId,
            /// The edit.
            edit: ItemId,
        ) -> () = |backend| backend.undo_edit(&chat, &edit).await?;

        /// Saves the default model, as `provider/model`.
        [DefaultModel] set_default_model(
            /// The model, as `provider/model`.
            model: String,
        ) -> () = |backend| backend.set_default_model(&model).await?;

        /// Sets the chat's model, as `provider/model`. Where the host has one default for all chats, it sets that; a run that
        /// goes on keeps its own.
        [Models] set_model(
            /// The chat.
            chat: ChatId,
            /// The model, as `provider/model`.
            model: String,
        ) -> () = |backend| backend.set_model(&chat, &model).await?;

        /// Sets the chat's profile.
        [Profiles] set_profile(
            /// The chat.
            chat: ChatId,
            /// The profile's id.
            profile: String,
        ) -> () = |backend| backend.set_profile(&chat, &profile).await?;
    }
};

/// All streams. Those of a reader open at once; a command's opens when the command was answered.
pub(super) static STREAMS: &[Row<DoorStream>] = rows! { DoorStream:
    ChatReader {
        /// The chat's events after `after`, without end. It attaches now, not when first read. `after` absent: from now on;
        /// [`Seq::START`]: from the chat's beginning. What fails, fails through the stream.
        events(
            /// The chat.
            chat: ChatId,
            /// A saved cursor.
            after: Option<Seq>,
        ) -> Event = |backend| backend.events(&chat, after);

        /// Chats that come to be by a command here (create, rewind, fork), from now on.
        created_chats() -> Chat = |backend| backend.created_chats();

        /// Live events of every chat, without replay: for lists, and for an inbox of approvals. Where live events were
        /// lost it yields a gap with the reason `live_lost`.
        watch_all() -> Event = |backend| backend.watch_all();

        /// How the connection is: its state now, then each change.
        connection() -> ConnectionState = |backend| backend.connection();
    }
    AgentBackend {
        /// Sends a text and yields the chat's events until its run has finished. It never waits for a turn: where a run goes
        /// on it fails with `KitError::Busy`.
        [Send] run(
            /// The chat.
            chat: ChatId,
            /// The text.
            text: String,
        ) -> Event = |backend| backend.run(&chat, &text).await?;
    }
};
