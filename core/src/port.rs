//! The ports: what every backend offers, and nothing that only one host has.
//!
//! [`ChatReader`] reads, [`AgentBackend`] also takes commands. Both are object-safe. What a host may lack has a default
//! that fails with [`KitError::Unsupported`] before anything is sent, so that an adapter writes only what its host can
//! do, and says so in its [`CapabilityTable`].
//!
//! Every call can be given a time-out of its own: see [`CallExt`](crate::CallExt).

use async_trait::async_trait;

use crate::error::{KitError, Result};
use crate::model::{
    Answer, ApprovalId, Capabilities, Capability, CapabilityDetail, CapabilityTable, Chat, ChatApproval, ChatId,
    ChatPage, ChatSnapshot, Constraints, Context, ContextSummary, Counters, Decision, HistoryItem, HostInfo, InputId,
    ItemId, JobId, Model, Profile, Providers, QuestionId, Reference, Rewound, Sent, Seq,
};
use crate::stream::{ChatStream, ConnectionStream, EventStream};

/// A backend that can be read.
#[async_trait]
pub trait ChatReader: Send + Sync {
    /// What it can do, with the reasons for what it can't. It may change when a host is started anew.
    fn capability_table(&self) -> CapabilityTable;

    /// What it can do, a boolean each.
    fn capabilities(&self) -> Capabilities {
        self.capability_table().capabilities()
    }

    /// One capability with its reason.
    fn detail(&self, capability: Capability) -> CapabilityDetail {
        self.capability_table().detail(capability)
    }

    /// Finer limits on inputs.
    fn constraints(&self) -> Constraints {
        Constraints::default()
    }

    /// Who the host is, where there is one.
    fn host_info(&self) -> Option<HostInfo> {
        None
    }

    /// What the connection met and went on from.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// A page of chats. `query` filters the titles of this page only, whatever their case.
    async fn list_chats(&self, cursor: Option<&str>, query: Option<&str>) -> Result<ChatPage>;

    /// A chat as of one sequence.
    async fn load_chat(&self, chat: &ChatId) -> Result<ChatSnapshot>;

    /// The chat's events after `after`, without end. It attaches now, not when first read. `after` absent: from now on;
    /// [`Seq::START`]: from the chat's beginning. What fails, fails through the stream.
    fn events(&self, chat: &ChatId, after: Option<Seq>) -> EventStream;

    /// Items whose store sequence is between `first` and `last`, both included.
    async fn load_history_range(&self, _chat: &ChatId, _first: Seq, _last: Seq) -> Result<Vec<HistoryItem>> {
        Err(KitError::unsupported(Capability::History))
    }

    /// Structure, compactions and view.
    async fn load_context(&self, _chat: &ChatId) -> Result<Context> {
        Err(KitError::unsupported(Capability::Context))
    }

    /// A summary, by `episode:<id>` or `chapter:<id>`.
    async fn load_summary(&self, _chat: &ChatId, _kit_id: &str) -> Result<ContextSummary> {
        Err(KitError::unsupported(Capability::Summary))
    }

    /// Providers, their models, and the default.
    async fn list_providers(&self) -> Result<Providers> {
        Err(KitError::unsupported(Capability::Providers))
    }

    /// The models that a chat can use.
    async fn list_models(&self, _chat: Option<&ChatId>) -> Result<Vec<Model>> {
        Err(KitError::unsupported(Capability::Models))
    }

    /// The profiles that a chat can use.
    async fn list_profiles(&self, _chat: Option<&ChatId>) -> Result<Vec<Profile>> {
        Err(KitError::unsupported(Capability::Profiles))
    }

    /// Chats that come to be by a command here (create, rewind, fork), from now on.
    fn created_chats(&self) -> ChatStream;

    /// Live events of every chat, without replay: for lists, and for an inbox of approvals. Where live events were
    /// lost it yields a gap with the reason `live_lost`.
    fn watch_all(&self) -> EventStream;

    /// The pending approvals of all chats.
    async fn pending_approvals(&self) -> Result<Vec<ChatApproval>> {
        Err(KitError::unsupported(Capability::Approve))
    }

    /// How the connection is: its state now, then each change.
    fn connection(&self) -> ConnectionStream;

    /// Ends the backend: streams end without an error, pending calls with `KitError::Closed`. Returns when nothing of it
    /// is left. Safe to call twice.
    async fn close(&self);
}

/// A backend that takes commands, too.
#[async_trait]
pub trait AgentBackend: ChatReader {
    /// Makes a new chat.
    async fn create_chat(&self, _title: Option<&str>) -> Result<Chat> {
        Err(KitError::unsupported(Capability::CreateChat))
    }

    /// Sends a text: it starts a run or, where one goes on and the backend can, waits for its turn.
    async fn send(&self, _chat: &ChatId, _text: &str, _references: &[Reference]) -> Result<Sent> {
        Err(KitError::unsupported(Capability::Send))
    }

    /// Sends a text and yields the chat's events until its run has finished. It never waits for a turn: where a run goes
    /// on it fails with `KitError::Busy`.
    async fn run(&self, _chat: &ChatId, _text: &str) -> Result<EventStream> {
        Err(KitError::unsupported(Capability::Send))
    }

    /// Gives the run that goes on a new direction.
    async fn steer(&self, _chat: &ChatId, _text: &str) -> Result<Sent> {
        Err(KitError::unsupported(Capability::Steer))
    }

    /// Queues a text for the next run.
    async fn follow_up(&self, _chat: &ChatId, _text: &str) -> Result<Sent> {
        Err(KitError::unsupported(Capability::FollowUp))
    }

    /// Sends a queued input at once.
    async fn send_queued_now(&self, _chat: &ChatId, _input: &InputId) -> Result<()> {
        Err(KitError::unsupported(Capability::Queue))
    }

    /// Changes the text of a queued input.
    async fn edit_queued(&self, _chat: &ChatId, _input: &InputId, _text: &str) -> Result<()> {
        Err(KitError::unsupported(Capability::Queue))
    }

    /// Takes a queued input back.
    async fn remove_queued(&self, _chat: &ChatId, _input: &InputId) -> Result<()> {
        Err(KitError::unsupported(Capability::Queue))
    }

    /// Cancels the run that goes on.
    async fn cancel(&self, _chat: &ChatId) -> Result<()> {
        Err(KitError::unsupported(Capability::Cancel))
    }

    /// Goes on after an interrupted run.
    async fn resume(&self, _chat: &ChatId) -> Result<Sent> {
        Err(KitError::unsupported(Capability::Resume))
    }

    /// Decides an approval of that chat. An unknown one is not found, a decided one a conflict.
    async fn decide_approval(
        &self,
        _chat: &ChatId,
        _approval: &ApprovalId,
        _decision: Decision,
        _reason: Option<&str>,
    ) -> Result<()> {
        Err(KitError::unsupported(Capability::Approve))
    }

    /// Answers the chat's question.
    async fn answer_question(&self, _chat: &ChatId, _question: &QuestionId, _answer: Answer) -> Result<()> {
        Err(KitError::unsupported(Capability::Questions))
    }

    /// Answers a child's question.
    async fn answer_child_question(
        &self,
        _chat: &ChatId,
        _child: &ChatId,
        _question: &QuestionId,
        _answer: Answer,
    ) -> Result<()> {
        Err(KitError::unsupported(Capability::AnswerChildQuestion))
    }

    /// Gives the chat a new title.
    async fn rename(&self, _chat: &ChatId, _title: &str) -> Result<()> {
        Err(KitError::unsupported(Capability::Rename))
    }

    /// Puts the chat away, or brings it back.
    async fn archive(&self, _chat: &ChatId, _archived: bool) -> Result<()> {
        Err(KitError::unsupported(Capability::Archive))
    }

    /// Makes a new chat that begins like this one, up to and with `message` where one is given.
    async fn fork(&self, _chat: &ChatId, _message: Option<&ItemId>) -> Result<Chat> {
        Err(KitError::unsupported(Capability::Fork))
    }

    /// Goes back to a message. Files on disk that the host keeps checkpoints of are restored: **files change**.
    async fn rewind(&self, _chat: &ChatId, _message: &ItemId) -> Result<Rewound> {
        Err(KitError::unsupported(Capability::Rewind))
    }

    /// Cancels a child and what it started. `chat` must be its direct parent.
    async fn cancel_child(&self, _chat: &ChatId, _child: &ChatId) -> Result<()> {
        Err(KitError::unsupported(Capability::Children))
    }

    /// Cancels a background job.
    async fn cancel_job(&self, _chat: &ChatId, _job: &JobId) -> Result<()> {
        Err(KitError::unsupported(Capability::Jobs))
    }

    /// Takes a change of a file back.
    async fn undo_edit(&self, _chat: &ChatId, _edit: &ItemId) -> Result<()> {
        Err(KitError::unsupported(Capability::Edits))
    }

    /// Saves the default model, as `provider/model`.
    async fn set_default_model(&self, _model: &str) -> Result<()> {
        Err(KitError::unsupported(Capability::DefaultModel))
    }

    /// Sets the chat's model, as `provider/model`. Where the host has one default for all chats, it sets that; a run that
    /// goes on keeps its own.
    async fn set_model(&self, _chat: &ChatId, _model: &str) -> Result<()> {
        Err(KitError::unsupported(Capability::Models))
    }

    /// Sets the chat's profile.
    async fn set_profile(&self, _chat: &ChatId, _profile: &str) -> Result<()> {
        Err(KitError::unsupported(Capability::Profiles))
    }

    /// A method of this backend's own, outside the port, by its name: what the bindings' door uses.
    async fn call_extension(&self, method: &str, _params: serde_json::Value) -> Result<serde_json::Value> {
        Err(KitError::invalid(format!("there is no method {method:?}")))
    }
}
