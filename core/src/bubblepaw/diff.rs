//! What a reload tells: a snapshot against what a stream's app knows. Pure.
//!
//! The events are transient: they restate the newest value, or upsert by id. What durable events changed after the
//! snapshot was taken is left alone.

use std::collections::HashMap;

use super::known::{Key, Known, KnownItems, Recent, hash_json, item_hash};
use super::snapshot::View;
use crate::model::{
    ApprovalRequested, ApprovalResolved, ApprovalState, ChatRenamed, ChatSettings, Child, ChildFinished,
    ChildQuestionAsked, ChildQuestionResolved, ChildSpawned, EventKind, Gap, GapReason, Item, ItemId, MessageAssistant,
    MessageSystem, MessageUser, PlanUpdated, QuestionAsked, QuestionResolved, QueueUpdated, RunFinished, RunId,
    RunStarted, RunStatus, RunWaiting, UsageUpdated,
};

/// A change that no durable event told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub(crate) run: Option<RunId>,
    pub(crate) kind: EventKind,
}

/// The changes from what is known to the snapshot.
pub(crate) fn diff(known: &Known, view: &View, recent: &Recent, child_events: bool) -> Vec<Change> {
    let mut diff = Diff { known, view, recent, changes: Vec::new() };
    diff.chat();
    diff.runs();
    diff.items();
    diff.approvals();
    diff.plan_and_question();
    diff.queue_and_usage();
    if child_events {
        diff.children();
    }
    diff.changes
}

struct Diff<'a> {
    known: &'a Known,
    view: &'a View,
    recent: &'a Recent,
    changes: Vec<Change>,
}

impl Diff<'_> {
    fn tell(&mut self, run: Option<RunId>, kind: impl Into<EventKind>) {
        self.changes.push(Change { run, kind: kind.into() });
    }

    /// Whether a durable event told it after the snapshot was taken.
    fn later(&self, key: Key) -> bool {
        self.recent.changed_after(&key, self.view.host_sequence)
    }

    fn chat(&mut self) {
        let title = &self.view.snapshot.chat.title;
        if self.known.title.as_ref() != Some(title) {
            self.tell(None, ChatRenamed { title: title.clone() });
        }
        let model = self.known.run_model.clone().or_else(|| self.view.snapshot.settings.model.clone());
        if self.known.model.as_ref() != Some(&model) && !self.later(Key::Model) {
            self.tell(None, ChatSettings { model, profile: None });
        }
    }

    fn runs(&mut self) {
        for run in &self.view.snapshot.runs {
            if self.later(Key::Run(run.id.clone())) {
                continue;
            }
            let before = self.known.runs.get(&run.id);
            let id = Some(run.id.clone());
            match (&run.status, before) {
                (status, Some(before)) if status == before => {}
                (RunStatus::Running, None) => {
                    self.tell(id, RunStarted { model: run.model.clone(), resumed: false });
                }
                (RunStatus::Running, Some(_)) => self.tell(id, RunStarted { model: None, resumed: true }),
                (RunStatus::WaitingForQuota, _) => {
                    let wait = run.wait.clone().unwrap_or_default();
                    self.tell(id, RunWaiting { resume_at: wait.resume_at, reason: wait.reason });
                }
                // A run that ended unseen is history; one that was seen going on has ended.
                (_, None) => {}
                (status, Some(_)) => {
                    self.tell(id, RunFinished { status: status.clone(), error: run.error.clone() });
                }
            }
        }
    }

    fn items(&mut self) {
        let view = self.view;
        let items = &view.snapshot.items;
        let last_replies = last_replies(items);
        let mut news = matches!(self.known.items, KnownItems::Nothing);
        let mut previous: Option<&ItemId> = None;
        for (index, item) in items.iter().enumerate() {
            if let KnownItems::BeforeRun(Some(first)) = &self.known.items {
                news = news || item.run() == Some(first);
            }
            let is_news = match &self.known.items {
                KnownItems::Exactly(hashes) => !hashes.contains(&item_hash(item)),
                KnownItems::BeforeRun(_) | KnownItems::Nothing => news,
            };
            if is_news && !self.known.told_items.contains(item.id()) {
                self.item(item, previous, last_replies.get(&index).copied());
            }
            previous = Some(item.id());
        }
    }

    /// `last_reply_of`: the run whose last reply the item is, and whether a tool call of the run stands behind it.
    fn item(&mut self, item: &Item, previous: Option<&ItemId>, last_reply_of: Option<(&RunId, bool)>) {
        let run = item.run().cloned();
        match item {
            Item::UserMessage(_) => {
                self.tell(run, MessageUser { message: item.clone(), after_id: previous.cloned() });
            }
            Item::SystemMessage(_) | Item::OtherMessage(_) => {
                self.tell(run, MessageSystem { message: item.clone(), after_id: previous.cloned() });
            }
            Item::AssistantMessage(message) => {
                if let Some((run, tool_behind)) = last_reply_of {
                    let told = self.known.told_runs.contains(run);
                    // The reply of a run that goes on may yet be told by the run's end.
                    let open = self.known.runs.contains_key(run) && !tool_behind && !self.ended(run);
                    if told || open {
                        return;
                    }
                }
                let (message_id, text) = (message.id.clone(), message.text.clone());
                self.tell(run, MessageAssistant { message_id, text, provisional: false });
            }
            // Their own events tell them.
            Item::ToolCall(_) | Item::Edit(_) => {}
        }
    }

    fn ended(&self, run: &RunId) -> bool {
        self.view.snapshot.runs.iter().any(|r| r.id == *run && !r.status.is_active())
    }

    fn approvals(&mut self) {
        for approval in &self.view.approvals {
            if self.later(Key::Approval(approval.id.clone())) {
                continue;
            }
            let pending = approval.state == ApprovalState::Pending;
            match (pending, self.known.approvals.contains(&approval.id)) {
                (true, false) => self.tell(approval.run.clone(), ApprovalRequested { approval: approval.clone() }),
                (false, true) => {
                    let (approval_id, state) = (approval.id.clone(), approval.state.clone());
                    let reason = approval.reason.clone();
                    self.tell(approval.run.clone(), ApprovalResolved { approval_id, state, reason });
                }
                _ => {}
            }
        }
        // One that the host no longer tells of can't be decided any more.
        let mut gone: Vec<_> = self
            .known
            .approvals
            .iter()
            .filter(|id| !self.view.approvals.iter().any(|a| a.id == **id) && !self.later(Key::Approval((*id).clone())))
            .cloned()
            .collect();
        gone.sort();
        for approval_id in gone {
            self.tell(None, ApprovalResolved { approval_id, state: ApprovalState::Expired, reason: None });
        }
    }

    fn plan_and_question(&mut self) {
        let plan = &self.view.snapshot.plan;
        let empty_and_unknown = self.known.plan.is_none() && plan.is_empty();
        if self.known.plan != Some(hash_json(plan)) && !empty_and_unknown && !self.later(Key::Plan) {
            self.tell(None, PlanUpdated { steps: plan.clone() });
        }
        if self.later(Key::Question) {
            return;
        }
        let question = &self.view.snapshot.question;
        match (question, &self.known.question) {
            (Some(now), Some(Some(before))) if now.id == *before => {}
            (Some(now), _) => self.tell(None, QuestionAsked { question: now.clone() }),
            (None, Some(Some(before))) => self.tell(None, QuestionResolved { question_id: Some(before.clone()) }),
            (None, _) => {}
        }
    }

    fn queue_and_usage(&mut self) {
        let queue = &self.view.snapshot.queue;
        let empty_and_unknown = self.known.queue.is_none() && queue.is_empty();
        if self.known.queue != Some(hash_json(queue)) && !empty_and_unknown {
            self.tell(None, QueueUpdated { inputs: queue.clone() });
        }
        if let Some(usage) = &self.view.snapshot.usage
            && self.known.usage != Some(hash_json(usage))
        {
            self.tell(None, UsageUpdated { usage: usage.clone() });
        }
    }

    fn children(&mut self) {
        for child in &self.view.snapshot.children {
            let before = self.known.children.as_ref().and_then(|known| known.get(&child.id));
            let Some(before) = before else {
                self.tell(None, ChildSpawned { child: child.clone() });
                if child.question.is_some() {
                    self.child_question(child, None);
                }
                if child.state.is_finished() {
                    self.child_finished(child);
                }
                continue;
            };
            let (question, state) = (before.question.clone(), before.state.clone());
            if child.question.as_ref().map(|question| &question.id) != question.as_ref() {
                self.child_question(child, question);
            }
            match (state.is_finished(), child.state.is_finished()) {
                (false, true) => self.child_finished(child),
                (true, false) => {
                    self.tell(None, Gap { reason: GapReason::ChildRerun, lost: false, snapshot_seq: None });
                }
                _ => {}
            }
        }
    }

    fn child_question(&mut self, child: &Child, before: Option<crate::model::QuestionId>) {
        let child_id = child.id.clone();
        if let Some(question_id) = before {
            self.tell(None, ChildQuestionResolved { child_id: child_id.clone(), question_id });
        }
        if let Some(question) = &child.question {
            self.tell(None, ChildQuestionAsked { child_id, question: question.clone() });
        }
    }

    fn child_finished(&mut self, child: &Child) {
        let (child_id, state, result) = (child.id.clone(), child.state.clone(), child.result.clone());
        self.tell(None, ChildFinished { child_id, state, result });
    }
}

/// Each run's last assistant message, by its index, and whether a tool call of the run stands behind it.
fn last_replies(items: &[Item]) -> HashMap<usize, (&RunId, bool)> {
    let mut last: HashMap<&RunId, (usize, bool)> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let Some(run) = item.run() else { continue };
        match item {
            Item::AssistantMessage(_) => {
                last.insert(run, (index, false));
            }
            Item::ToolCall(_) => {
                if let Some((_, tool_behind)) = last.get_mut(run) {
                    *tool_behind = true;
                }
            }
            _ => {}
        }
    }
    last.into_iter().map(|(run, (index, tool_behind))| (index, (run, tool_behind))).collect()
}
