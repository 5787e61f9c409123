//! The backend: the ports, method by method, over the session.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::chat::Awaited;
use super::history::history_items;
use super::options::Options;
use super::session::Core;
use super::wire::{self, Method, feature};
use super::{convert, inputs};
use crate::error::{KitError, Outcome, Result};
use crate::model::{
    Answer, ApprovalId, ApprovalState, Capability, CapabilityTable, Chat, ChatApproval, ChatId, ChatPage, ChatSnapshot,
    Constraints, Context, ContextSummary, Counters, Decision, HistoryItem, HostInfo, ItemId, Model, Providers,
    QuestionId, Reference, Rewound, RunId, Sent, Seq,
};
use crate::port::{AgentBackend, ChatReader};
use crate::rpc::HostCommand;
use crate::stream::{ChatStream, ConnectionStream, EventStream};

/// Chats that one page has.
const PAGE_CHATS: u64 = 100;

/// A backend whose host speaks the BubblePaw stdio protocol. Cheap to clone; dropping the last clone ends the host in the
/// background, [`close`](ChatReader::close) ends it and waits.
#[derive(Clone)]
pub struct BubblePaw {
    core: Arc<Core>,
    _owner: Arc<Owner>,
}

/// Ends the backend with its last clone. Streams hold the core, not this.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

impl std::fmt::Debug for BubblePaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BubblePaw").field("host", &self.core.host_info().name).finish_non_exhaustive()
    }
}

impl BubblePaw {
    /// Starts a host and shakes hands with it. A host that ends or says nothing meanwhile is an error, and no process is
    /// left behind.
    pub async fn spawn(command: HostCommand, options: Options) -> Result<Self> {
        Core::spawn(command, options).await.map(Self::new)
    }

    /// Shakes hands over a pair of streams.
    pub async fn connect(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
        options: Options,
    ) -> Result<Self> {
        Core::connect(reader, writer, options).await.map(Self::new)
    }

    fn new(core: Arc<Core>) -> Self {
        BubblePaw { _owner: Arc::new(Owner(core.clone())), core }
    }

    /// The features that were negotiated, by their names on the wire.
    pub fn features(&self) -> Vec<String> {
        self.core.host_info().features
    }

    /// Sets a value of the host's configuration. What the host refuses comes back with its own message, code and data.
    pub async fn set_config(&self, key: &str, value: Value) -> Result<()> {
        let params = wire::ConfigSetParams { key: key.to_owned(), value };
        self.core.call::<wire::ConfigSet>(params).await.map(|_| ())
    }

    async fn start_run(&self, chat: &ChatId, text: &str) -> Result<RunId> {
        let params = wire::TextParams { session_id: chat.clone(), text: text.to_owned() };
        Ok(self.core.call::<wire::RunStart>(params).await?.run_id)
    }

    async fn queue<M>(&self, chat: &ChatId, text: &str) -> Result<Sent>
    where
        M: Method<Params = wire::TextParams, Result = wire::InputResult>,
    {
        let params = wire::TextParams { session_id: chat.clone(), text: text.to_owned() };
        let input_id = self.core.call::<M>(params).await?.input_id;
        Ok(Sent { run_id: None, input_id: Some(input_id), queued: true })
    }

    fn require(&self, capability: Capability) -> Result<()> {
        self.core.require(capability)
    }
}

fn matches(chat: &Chat, query: &str) -> bool {
    chat.title.to_lowercase().contains(&query.to_lowercase())
}

#[async_trait]
impl ChatReader for BubblePaw {
    fn capability_table(&self) -> CapabilityTable {
        self.core.capability_table()
    }

    fn constraints(&self) -> Constraints {
        self.core.constraints()
    }

    fn host_info(&self) -> Option<HostInfo> {
        Some(self.core.host_info())
    }

    fn counters(&self) -> Counters {
        self.core.counters()
    }

    async fn list_chats(&self, cursor: Option<&str>, query: Option<&str>) -> Result<ChatPage> {
        let paged = self.core.has_feature(feature::PAGINATION);
        if cursor.is_some() && !paged {
            let error = KitError::invalid("this host gives all chats at once, so there is no cursor to go on from");
            return Err(error.with_outcome(Outcome::NotSent));
        }
        let params = wire::SessionListParams { limit: paged.then_some(PAGE_CHATS), cursor: cursor.map(str::to_owned) };
        let page = self.core.call::<wire::SessionList>(params).await?;
        let mut chats: Vec<Chat> = page.sessions.into_iter().map(convert::chat).collect();
        if !paged {
            // Newest first; equal times stay as the host has them.
            chats.sort_by_key(|chat| std::cmp::Reverse(chat.updated_at));
        }
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            chats.retain(|chat| matches(chat, query));
        }
        Ok(ChatPage { chats, next_cursor: page.next_cursor.filter(|_| paged) })
    }

    async fn load_chat(&self, chat: &ChatId) -> Result<ChatSnapshot> {
        let view = self.core.load_view(chat).await?;
        self.core.remember(&view);
        Ok(view.snapshot)
    }

    fn events(&self, chat: &ChatId, after: Option<Seq>) -> EventStream {
        self.core.events(chat, after)
    }

    async fn load_history_range(&self, chat: &ChatId, first: Seq, last: Seq) -> Result<Vec<HistoryItem>> {
        self.require(Capability::History)?;
        if first > last {
            let error = KitError::invalid(format!("the range begins at {first} and ends before it, at {last}"));
            return Err(error.with_outcome(Outcome::NotSent));
        }
        Ok(history_items(self.core.load_entries(chat, first.0, last.0).await?))
    }

    async fn load_context(&self, chat: &ChatId) -> Result<Context> {
        self.require(Capability::Context)?;
        self.core.load_context(chat).await
    }

    async fn load_summary(&self, chat: &ChatId, kit_id: &str) -> Result<ContextSummary> {
        self.require(Capability::Summary)?;
        self.core.load_summary(chat, kit_id).await
    }

    async fn list_providers(&self) -> Result<Providers> {
        self.require(Capability::Providers)?;
        self.core.call::<wire::ProvidersList>(wire::Empty {}).await.map(convert::providers)
    }

    async fn list_models(&self, _chat: Option<&ChatId>) -> Result<Vec<Model>> {
        self.require(Capability::Models)?;
        let providers = self.core.call::<wire::ProvidersList>(wire::Empty {}).await.map(convert::providers)?;
        Ok(providers.providers.into_iter().flat_map(|provider| provider.models).collect())
    }

    fn created_chats(&self) -> ChatStream {
        self.core.created_chats()
    }

    fn watch_all(&self) -> EventStream {
        self.core.watch_all()
    }

    async fn pending_approvals(&self) -> Result<Vec<ChatApproval>> {
        self.require(Capability::Approve)?;
        let mut pending = Vec::new();
        let mut cursor: Option<String> = None;
        let mut asked = HashSet::new();
        loop {
            let page = self.list_chats(cursor.as_deref(), None).await?;
            for chat in page.chats {
                let approvals = match self.core.load_approvals(&chat.id).await {
                    Ok(approvals) => approvals,
                    // It was deleted since the list was read.
                    Err(KitError::NotFound(_)) => continue,
                    Err(error) => return Err(error),
                };
                let of_chat = approvals.into_iter().filter(|approval| approval.session_id == chat.id);
                pending.extend(
                    of_chat
                        .map(convert::approval)
                        .filter(|a| a.state == ApprovalState::Pending)
                        .map(|approval| ChatApproval { chat: chat.id.clone(), approval }),
                );
            }
            match page.next_cursor {
                // A host that gives a cursor again would be asked for ever.
                Some(next) if asked.insert(next.clone()) => cursor = Some(next),
                _ => return Ok(pending),
            }
        }
    }

    fn connection(&self) -> ConnectionStream {
        self.core.connection()
    }

    async fn close(&self) {
        self.core.close().await;
    }
}

#[async_trait]
impl AgentBackend for BubblePaw {
    async fn create_chat(&self, title: Option<&str>) -> Result<Chat> {
        self.require(Capability::CreateChat)?;
        let params = wire::SessionOpenParams { title: title.map(str::to_owned) };
        let chat = convert::chat(self.core.call::<wire::SessionOpen>(params).await?.session);
        self.core.created.tell(&chat);
        Ok(chat)
    }

    async fn send(&self, chat: &ChatId, text: &str, references: &[Reference]) -> Result<Sent> {
        self.require(Capability::Send)?;
        inputs::references(references)?;
        inputs::text(text)?;
        match self.start_run(chat, text).await {
            Ok(run_id) => Ok(Sent { run_id: Some(run_id), input_id: None, queued: false }),
            // The one refusal that says that nothing was begun and the text may wait.
            Err(KitError::Busy(_)) if self.core.has_feature(feature::FOLLOW_UP) => {
                self.queue::<wire::RunFollowUp>(chat, text).await
            }
            Err(error) => Err(error),
        }
    }

    async fn run(&self, chat: &ChatId, text: &str) -> Result<EventStream> {
        self.require(Capability::Send)?;
        inputs::text(text)?;
        // Attached before the run starts, so that its first event is in the stream.
        let awaited = Awaited::default();
        let events = self.core.events_awaiting(chat, None, Some(awaited.clone()));
        let run = self.start_run(chat, text).await?;
        let run = awaited.get_or_init(|| run).clone();
        self.core.awaited(chat);
        Ok(events.until_run_finished(run))
    }

    async fn steer(&self, chat: &ChatId, text: &str) -> Result<Sent> {
        self.require(Capability::Steer)?;
        inputs::text(text)?;
        self.queue::<wire::RunSteer>(chat, text).await
    }

    async fn follow_up(&self, chat: &ChatId, text: &str) -> Result<Sent> {
        self.require(Capability::FollowUp)?;
        inputs::text(text)?;
        self.queue::<wire::RunFollowUp>(chat, text).await
    }

    async fn cancel(&self, chat: &ChatId) -> Result<()> {
        self.require(Capability::Cancel)?;
        self.core.call::<wire::RunCancel>(wire::SessionParams { session_id: chat.clone() }).await.map(|_| ())
    }

    async fn resume(&self, chat: &ChatId) -> Result<Sent> {
        self.require(Capability::Resume)?;
        let run_id = self.core.call::<wire::RunResume>(wire::SessionParams { session_id: chat.clone() }).await?.run_id;
        Ok(Sent { run_id: Some(run_id), input_id: None, queued: false })
    }

    async fn decide_approval(
        &self,
        chat: &ChatId,
        approval: &ApprovalId,
        decision: Decision,
        reason: Option<&str>,
    ) -> Result<()> {
        self.require(Capability::Approve)?;
        let decision = inputs::decision(&decision)?;
        let approvals = self.core.load_approvals(chat).await.map_err(|error| error.with_outcome(Outcome::NotSent))?;
        let of_chat = approvals.iter().find(|a| a.approval_id == *approval && a.session_id == *chat);
        match of_chat {
            None => {
                let error = KitError::not_found("the chat has no such approval");
                return Err(error.with_outcome(Outcome::NotSent));
            }
            Some(known) if convert::approval_state(&known.state) != ApprovalState::Pending => {
                let error = KitError::conflict("the approval was decided already");
                return Err(error.with_outcome(Outcome::NotSent));
            }
            Some(_) => {}
        }
        let params = wire::ApprovalDecideParams {
            approval_id: approval.clone(),
            decision: decision.to_owned(),
            reason: reason.map(str::to_owned),
        };
        self.core.call::<wire::ApprovalDecide>(params).await.map(|_| ())
    }

    async fn answer_question(&self, chat: &ChatId, question: &QuestionId, answer: Answer) -> Result<()> {
        self.require(Capability::Questions)?;
        let text = inputs::answer(answer)?;
        let params = wire::QuestionAnswerParams { session_id: chat.clone(), question_id: question.clone(), text };
        self.core.call::<wire::QuestionAnswer>(params).await.map(|_| ())
    }

    async fn answer_child_question(
        &self,
        chat: &ChatId,
        child: &ChatId,
        question: &QuestionId,
        answer: Answer,
    ) -> Result<()> {
        self.require(Capability::AnswerChildQuestion)?;
        let text = inputs::answer(answer)?;
        let params = wire::QuestionAnswerChildParams {
            parent: chat.clone(),
            child: child.clone(),
            question_id: question.clone(),
            text,
        };
        self.core.call::<wire::QuestionAnswerChild>(params).await.map(|_| ())
    }

    async fn rename(&self, chat: &ChatId, title: &str) -> Result<()> {
        self.require(Capability::Rename)?;
        inputs::title(title)?;
        let params = wire::SessionRenameParams { session_id: chat.clone(), title: title.to_owned() };
        self.core.call::<wire::SessionRename>(params).await?;
        // The host tells it by no event.
        self.core.refresh(chat);
        Ok(())
    }

    async fn rewind(&self, chat: &ChatId, message: &ItemId) -> Result<Rewound> {
        self.require(Capability::Rewind)?;
        inputs::canonical(message)?;
        let params = wire::SessionRewindParams { session_id: chat.clone(), message_id: message.clone() };
        let new_chat = convert::chat(self.core.call::<wire::SessionRewind>(params).await?.session);
        self.core.created.tell(&new_chat);
        Ok(Rewound { chat: chat.clone(), new_chat: Some(new_chat), in_place: false })
    }

    async fn cancel_child(&self, chat: &ChatId, child: &ChatId) -> Result<()> {
        self.require(Capability::Children)?;
        let params = wire::ChildCancelParams { parent: chat.clone(), child: child.clone() };
        self.core.call::<wire::ChildCancel>(params).await?;
        self.core.refresh(chat);
        Ok(())
    }

    async fn set_default_model(&self, model: &str) -> Result<()> {
        self.require(Capability::DefaultModel)?;
        inputs::model(model)?;
        self.core.call::<wire::RolesSetMain>(wire::RolesSetMainParams { model: model.to_owned() }).await.map(|_| ())
    }

    async fn set_model(&self, _chat: &ChatId, model: &str) -> Result<()> {
        self.require(Capability::Models)?;
        inputs::model(model)?;
        // The host has one default for all chats.
        self.core.call::<wire::RolesSetMain>(wire::RolesSetMainParams { model: model.to_owned() }).await.map(|_| ())
    }

    async fn call_extension(&self, method: &str, params: Value) -> Result<Value> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct SetConfig {
            key: String,
            value: Value,
        }
        match method {
            "set_config" => {
                let SetConfig { key, value } = serde_json::from_value(params)
                    .map_err(|error| KitError::invalid(format!("set_config: {error}")))?;
                self.set_config(&key, value).await?;
                Ok(Value::Null)
            }
            _ => Err(KitError::invalid(format!("there is no method {method:?}"))),
        }
    }
}
