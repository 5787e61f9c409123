//! What a stream's app is known to know: hashes and a few ids, not a second copy. Pure.
//!
//! It begins as of a snapshot, or unknown, and durable events change it as they are delivered. A diff holds it against
//! a newer snapshot.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::project::kinds;
use super::snapshot::View;
use super::wire::HarnessEvent;
use crate::model::{
    ApprovalId, ApprovalState, ChatId, ChildState, EventKind, Item, ItemId, QuestionId, RunId, RunStatus,
};

/// What a durable event changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Run(RunId),
    Approval(ApprovalId),
    Item(ItemId),
    Told(RunId),
    Plan,
    Question,
    Model,
}

/// The changes of durable events that a snapshot may not have yet, the newest of each key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent(HashMap<Key, (u64, HarnessEvent)>);

impl Recent {
    /// Keeps what `event` changed.
    pub(crate) fn add(&mut self, event: &HarnessEvent) {
        for key in keys(event) {
            self.0.insert(key, (event.sequence, event.clone()));
        }
    }

    /// Forgets what a snapshot as of `host_sequence` has.
    pub(crate) fn forget_up_to(&mut self, host_sequence: u64) {
        self.0.retain(|_, (sequence, _)| *sequence > host_sequence);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether a durable event after `host_sequence` changed it.
    pub(crate) fn changed_after(&self, key: &Key, host_sequence: u64) -> bool {
        self.0.get(key).is_some_and(|(sequence, _)| *sequence > host_sequence)
    }

    /// The events, oldest first, without repeats.
    fn events(&self) -> Vec<&HarnessEvent> {
        let mut events: Vec<_> = self.0.values().collect();
        events.sort_by_key(|(sequence, _)| *sequence);
        events.dedup_by_key(|(sequence, _)| *sequence);
        events.into_iter().map(|(_, event)| event).collect()
    }
}

/// What `event` changes.
fn keys(event: &HarnessEvent) -> Vec<Key> {
    let mut keys = Vec::new();
    let run = event.run_id.clone();
    // Large payloads are of no account here: only which things changed.
    match &event.data {
        super::wire::EventData::RunStarted { model } => {
            keys.extend(run.map(Key::Run));
            if model.is_some() {
                keys.push(Key::Model);
            }
        }
        super::wire::EventData::RunWaitingForQuota { .. } | super::wire::EventData::RunQuotaResumed {} => {
            keys.extend(run.map(Key::Run));
        }
        super::wire::EventData::RunFinished { text, .. } => {
            if text.is_some() {
                keys.extend(run.clone().map(Key::Told));
            }
            keys.extend(run.map(Key::Run));
        }
        super::wire::EventData::ApprovalRequested { approval } => {
            keys.push(Key::Approval(approval.approval_id.clone()));
        }
        super::wire::EventData::ApprovalResolved { approval_id, .. } => keys.push(Key::Approval(approval_id.clone())),
        super::wire::EventData::OutputRecord { output } => keys.push(Key::Item(output.output_id.clone())),
        super::wire::EventData::HostStateChanged(super::wire::HostState::Todo(_)) => keys.push(Key::Plan),
        super::wire::EventData::HostStateChanged(super::wire::HostState::Question(_)) => keys.push(Key::Question),
        _ => {}
    }
    keys
}

/// Which items of a snapshot are known.
#[derive(Debug, Clone)]
pub(crate) enum KnownItems {
    /// Those with these hashes. Shared: a chat may have many streams. Hashes alone, because an id kept here would keep a
    /// small piece of a large snapshot's memory from being used again as a whole.
    Exactly(Arc<HashSet<u64, RandomState>>),
    /// All before the first one of this run; all, where it is none.
    BeforeRun(Option<RunId>),
    /// None.
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownChild {
    pub(crate) state: ChildState,
    pub(crate) question: Option<QuestionId>,
}

/// What is known. `None` in a field: not known, so that whatever the snapshot has is news.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) items: KnownItems,
    /// Items told by durable events.
    pub(crate) told_items: HashSet<ItemId>,
    /// Runs whose reply a durable event told.
    pub(crate) told_runs: HashSet<RunId>,
    /// Runs that go on.
    pub(crate) runs: HashMap<RunId, RunStatus>,
    /// Pending approvals.
    pub(crate) approvals: HashSet<ApprovalId>,
    pub(crate) title: Option<String>,
    /// The newest run's model, as its start told.
    pub(crate) run_model: Option<String>,
    pub(crate) model: Option<Option<String>>,
    pub(crate) queue: Option<u64>,
    pub(crate) usage: Option<u64>,
    pub(crate) plan: Option<u64>,
    pub(crate) question: Option<Option<QuestionId>>,
    pub(crate) children: Option<HashMap<ChatId, KnownChild>>,
}

impl Known {
    /// Nothing is known but that items before the cursor are.
    pub(crate) fn unknown(items: KnownItems) -> Self {
        Known {
            items,
            told_items: HashSet::new(),
            told_runs: HashSet::new(),
            runs: HashMap::new(),
            approvals: HashSet::new(),
            title: None,
            run_model: None,
            model: None,
            queue: None,
            usage: None,
            plan: None,
            question: None,
            children: None,
        }
    }

    /// As of a snapshot, with what durable events changed since.
    pub(crate) fn of(view: &View, run_model: Option<String>, recent: &Recent) -> Self {
        let snapshot = &view.snapshot;
        let items = snapshot.items.iter().map(item_hash).collect();
        let active = snapshot.runs.iter().filter(|run| run.status.is_active());
        let children = snapshot.children.iter().map(|child| {
            let question = child.question.as_ref().map(|question| question.id.clone());
            (child.id.clone(), KnownChild { state: child.state.clone(), question })
        });
        let mut known = Known {
            items: KnownItems::Exactly(Arc::new(items)),
            told_items: HashSet::new(),
            told_runs: HashSet::new(),
            runs: active.map(|run| (run.id.clone(), run.status.clone())).collect(),
            approvals: snapshot.approvals.iter().map(|approval| approval.id.clone()).collect(),
            title: Some(snapshot.chat.title.clone()),
            model: Some(run_model.clone().or_else(|| snapshot.settings.model.clone())),
            run_model,
            queue: Some(hash_json(&snapshot.queue)),
            usage: snapshot.usage.as_ref().map(hash_json),
            plan: Some(hash_json(&snapshot.plan)),
            question: Some(snapshot.question.as_ref().map(|question| question.id.clone())),
            children: Some(children.collect()),
        };
        for event in recent.events() {
            if event.sequence > view.host_sequence {
                known.apply(event);
            }
        }
        known
    }

    /// Learns what a durable event told.
    pub(crate) fn apply(&mut self, event: &HarnessEvent) {
        if keys(event).is_empty() {
            return;
        }
        let run = event.run_id.clone();
        for (_, kind) in kinds(event.clone()).into_iter().flatten() {
            self.apply_kind(kind, run.clone());
        }
    }

    fn apply_kind(&mut self, kind: EventKind, run: Option<RunId>) {
        match kind {
            EventKind::RunStarted(started) => {
                // Whether the app was told of it as a setting is known to whoever tells it.
                if let Some(model) = started.model {
                    self.run_model = Some(model);
                }
                if let Some(run) = run {
                    self.runs.insert(run, RunStatus::Running);
                }
            }
            EventKind::RunWaiting(_) => {
                if let Some(run) = run {
                    self.runs.insert(run, RunStatus::WaitingForQuota);
                }
            }
            EventKind::RunFinished(_) => {
                if let Some(run) = run {
                    self.runs.remove(&run);
                }
            }
            EventKind::MessageAssistant(_) => self.told_runs.extend(run),
            EventKind::MessageSystem(line) => {
                self.told_items.insert(line.message.id().clone());
            }
            EventKind::PlanUpdated(plan) => self.plan = Some(hash_json(&plan.steps)),
            EventKind::ApprovalRequested(request) if request.approval.state == ApprovalState::Pending => {
                self.approvals.insert(request.approval.id);
            }
            EventKind::ApprovalResolved(resolved) if resolved.state != ApprovalState::Pending => {
                self.approvals.remove(&resolved.approval_id);
            }
            EventKind::QuestionAsked(asked) => self.question = Some(Some(asked.question.id)),
            EventKind::QuestionResolved(_) => self.question = Some(None),
            _ => {}
        }
    }

    /// The run that a replay met first: items from it on are news.
    pub(crate) fn begin_news_at(&mut self, run: &RunId) {
        if let KnownItems::BeforeRun(news @ None) = &mut self.items {
            *news = Some(run.clone());
        }
    }
}

/// A hash of an item's id and of what it shows.
pub(crate) fn item_hash(item: &Item) -> u64 {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    item.id().hash(&mut hasher);
    match item {
        Item::UserMessage(m) | Item::AssistantMessage(m) | Item::SystemMessage(m) => m.text.hash(&mut hasher),
        Item::OtherMessage(m) => (&m.role, &m.text).hash(&mut hasher),
        // Told by their own events; a reload adds nothing to them.
        Item::ToolCall(_) | Item::Edit(_) => {}
    }
    hasher.finish()
}

/// A hash of a small value, by its JSON form.
pub(crate) fn hash_json<T: serde::Serialize>(value: &T) -> u64 {
    let json = serde_json::to_vec(value).expect("model types always have a JSON form");
    foldhash::fast::FixedState::default().hash_one(json)
}
