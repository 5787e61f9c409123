//! A backend that notes each call with its arguments, and gives a small result.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::call::{Limit, limit};
use crate::error::{KitError, Result};
use crate::model::*;
use crate::port::{AgentBackend, ChatReader};
use crate::stream::{ChatStream, ConnectionStream, EventStream, KitStream, Merge, StreamLimits, StreamSink};

/// The call and the limit it was made with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Note(pub(super) String, pub(super) Limit);

#[derive(Default)]
pub(super) struct Notes {
    notes: Mutex<Vec<Note>>,
    /// The sending sides of the streams of events that were opened.
    pub(super) sinks: Mutex<Vec<Arc<StreamSink<Event>>>>,
    /// The stream or method that panics.
    pub(super) panics: Mutex<Option<&'static str>>,
}

impl Notes {
    pub(super) fn taken(&self) -> Vec<Note> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    fn note(&self, method: &str, arguments: &[&dyn Debug]) {
        if *self.panics.lock().unwrap() == Some(method) {
            panic!("with a secret in it");
        }
        let note = Note(format!("{method} {arguments:?}"), limit());
        self.notes.lock().unwrap().push(note);
    }

    fn stream(&self) -> EventStream {
        let (sink, stream) = KitStream::channel(StreamLimits::default());
        self.sinks.lock().unwrap().push(Arc::new(sink));
        stream
    }
}

/// A stream of these alone.
fn all<T: Merge>(items: impl IntoIterator<Item = T>) -> KitStream<T> {
    let (sink, stream) = KitStream::channel(StreamLimits::default());
    items.into_iter().for_each(|item| assert_eq!(sink.push(item), crate::stream::Pushed::Taken));
    stream
}

/// A model value from its JSON form.
pub(super) fn model<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

pub(super) fn chat() -> Value {
    json!({"id": "c", "title": "t", "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z"})
}

fn sent() -> Sent {
    Sent { run_id: Some("r".into()), input_id: None, queued: false }
}

#[async_trait]
impl ChatReader for Notes {
    fn capability_table(&self) -> CapabilityTable {
        self.note("capability_table", &[]);
        let mut table = CapabilityTable::new();
        table.on(Capability::Send, ProvidedBy::Host);
        table
    }
    fn capabilities(&self) -> Capabilities {
        self.note("capabilities", &[]);
        Capabilities::default()
    }
    fn detail(&self, capability: Capability) -> CapabilityDetail {
        self.note("detail", &[&capability]);
        CapabilityDetail { on: true, by: ProvidedBy::Kit, why_off: None }
    }
    fn constraints(&self) -> Constraints {
        self.note("constraints", &[]);
        Constraints::default()
    }
    fn host_info(&self) -> Option<HostInfo> {
        self.note("host_info", &[]);
        None
    }
    fn counters(&self) -> Counters {
        self.note("counters", &[]);
        Counters { gaps: 7, ..Counters::default() }
    }
    async fn list_chats(&self, cursor: Option<&str>, query: Option<&str>) -> Result<ChatPage> {
        self.note("list_chats", &[&cursor, &query]);
        Ok(ChatPage { chats: vec![model(chat())], next_cursor: None })
    }
    async fn load_chat(&self, chat: &ChatId) -> Result<ChatSnapshot> {
        self.note("load_chat", &[chat]);
        Err(KitError::not_found("there is no such chat"))
    }
    fn events(&self, chat: &ChatId, after: Option<Seq>) -> EventStream {
        self.note("events", &[chat, &after]);
        self.stream()
    }
    async fn load_history_range(&self, chat: &ChatId, first: Seq, last: Seq) -> Result<Vec<HistoryItem>> {
        self.note("load_history_range", &[chat, &first, &last]);
        Ok(Vec::new())
    }
    async fn load_context(&self, chat: &ChatId) -> Result<Context> {
        self.note("load_context", &[chat]);
        Ok(model(json!({
            "structure": {"chapters": [], "episodes": []}, "compactions": [], "view": {"threshold": 9, "items": []},
        })))
    }
    async fn load_summary(&self, chat: &ChatId, kit_id: &str) -> Result<ContextSummary> {
        self.note("load_summary", &[chat, &kit_id]);
        Ok(model(json!({"id": kit_id, "kind": "episode", "text": "t"})))
    }
    async fn list_providers(&self) -> Result<Providers> {
        self.note("list_providers", &[]);
        Ok(Providers { providers: Vec::new(), main: None, active_main: None })
    }
    async fn list_models(&self, chat: Option<&ChatId>) -> Result<Vec<Model>> {
        self.note("list_models", &[&chat]);
        Ok(vec![Model { id: "p/m".into(), name: None, context_window: Some(5) }])
    }
    async fn list_profiles(&self, chat: Option<&ChatId>) -> Result<Vec<Profile>> {
        self.note("list_profiles", &[&chat]);
        Ok(Vec::new())
    }
    fn created_chats(&self) -> ChatStream {
        self.note("created_chats", &[]);
        all([model(chat())])
    }
    fn watch_all(&self) -> EventStream {
        self.note("watch_all", &[]);
        self.stream()
    }
    async fn pending_approvals(&self) -> Result<Vec<ChatApproval>> {
        self.note("pending_approvals", &[]);
        Ok(Vec::new())
    }
    fn connection(&self) -> ConnectionStream {
        self.note("connection", &[]);
        all([ConnectionState { status: ConnectionStatus::Closed, reason: Some(KitError::closed()) }])
    }
    async fn close(&self) {
        self.note("close", &[]);
    }
}

#[async_trait]
impl AgentBackend for Notes {
    async fn create_chat(&self, title: Option<&str>) -> Result<Chat> {
        self.note("create_chat", &[&title]);
        Ok(model(chat()))
    }
    async fn send(&self, chat: &ChatId, text: &str, references: &[Reference]) -> Result<Sent> {
        self.note("send", &[chat, &text, &references.iter().map(|r| r.uri.as_str()).collect::<Vec<_>>()]);
        Ok(sent())
    }
    async fn run(&self, chat: &ChatId, text: &str) -> Result<EventStream> {
        self.note("run", &[chat, &text]);
        // A command waits for its answer.
        tokio::task::yield_now().await;
        Ok(self.stream())
    }
    async fn steer(&self, chat: &ChatId, text: &str) -> Result<Sent> {
        self.note("steer", &[chat, &text]);
        Ok(sent())
    }
    async fn follow_up(&self, chat: &ChatId, text: &str) -> Result<Sent> {
        self.note("follow_up", &[chat, &text]);
        Ok(sent())
    }
    async fn send_queued_now(&self, chat: &ChatId, input: &InputId) -> Result<()> {
        self.note("send_queued_now", &[chat, input]);
        Ok(())
    }
    async fn edit_queued(&self, chat: &ChatId, input: &InputId, text: &str) -> Result<()> {
        self.note("edit_queued", &[chat, input, &text]);
        Ok(())
    }
    async fn remove_queued(&self, chat: &ChatId, input: &InputId) -> Result<()> {
        self.note("remove_queued", &[chat, input]);
        Ok(())
    }
    async fn cancel(&self, chat: &ChatId) -> Result<()> {
        self.note("cancel", &[chat]);
        Ok(())
    }
    async fn resume(&self, chat: &ChatId) -> Result<Sent> {
        self.note("resume", &[chat]);
        Ok(sent())
    }
    async fn decide_approval(
        &self,
        chat: &ChatId,
        approval: &ApprovalId,
        decision: Decision,
        reason: Option<&str>,
    ) -> Result<()> {
        self.note("decide_approval", &[chat, approval, &decision, &reason]);
        Ok(())
    }
    async fn answer_question(&self, chat: &ChatId, question: &QuestionId, answer: Answer) -> Result<()> {
        self.note("answer_question", &[chat, question, &answer]);
        Ok(())
    }
    async fn answer_child_question(
        &self,
        chat: &ChatId,
        child: &ChatId,
        question: &QuestionId,
        answer: Answer,
    ) -> Result<()> {
        self.note("answer_child_question", &[chat, child, question, &answer]);
        Ok(())
    }
    async fn rename(&self, chat: &ChatId, title: &str) -> Result<()> {
        self.note("rename", &[chat, &title]);
        Ok(())
    }
    async fn archive(&self, chat: &ChatId, archived: bool) -> Result<()> {
        self.note("archive", &[chat, &archived]);
        Ok(())
    }
    async fn fork(&self, chat: &ChatId, message: Option<&ItemId>) -> Result<Chat> {
        self.note("fork", &[chat, &message]);
        Ok(model(super::notes::chat()))
    }
    async fn rewind(&self, chat: &ChatId, message: &ItemId) -> Result<Rewound> {
        self.note("rewind", &[chat, message]);
        Ok(Rewound { chat: chat.clone(), new_chat: None, in_place: true })
    }
    async fn cancel_child(&self, chat: &ChatId, child: &ChatId) -> Result<()> {
        self.note("cancel_child", &[chat, child]);
        Ok(())
    }
    async fn cancel_job(&self, chat: &ChatId, job: &JobId) -> Result<()> {
        self.note("cancel_job", &[chat, job]);
        Ok(())
    }
    async fn undo_edit(&self, chat: &ChatId, edit: &ItemId) -> Result<()> {
        self.note("undo_edit", &[chat, edit]);
        Ok(())
    }
    async fn set_default_model(&self, model: &str) -> Result<()> {
        self.note("set_default_model", &[&model]);
        Ok(())
    }
    async fn set_model(&self, chat: &ChatId, model: &str) -> Result<()> {
        self.note("set_model", &[chat, &model]);
        Ok(())
    }
    async fn set_profile(&self, chat: &ChatId, profile: &str) -> Result<()> {
        self.note("set_profile", &[chat, &profile]);
        Ok(())
    }
    async fn call_extension(&self, method: &str, params: Value) -> Result<Value> {
        if method != "set_config" {
            return Err(KitError::invalid(format!("there is no method {method:?}")));
        }
        self.note(method, &[&params.to_string()]);
        Ok(json!({"saved": true}))
    }
}
