//! What a feed shows: the state of a chat at one moment.
//!
//! A state is read only and cheap to copy: copies share all they have in common. What changes it is
//! [`FeedReducer`](super::FeedReducer).

use std::sync::Arc;

use rpds::HashTrieMapSync;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::item::FeedItem;
use super::order::Items;
use super::text::LiveText;
use super::tree::Tree;
use crate::model::{
    Approval, Chat, ChatSnapshot, Child, Compaction, ContextView, ItemId, Job, PlanStep, Question, QueuedInput, Run,
    RunId, Seq, Settings, Usage, Workspace,
};

/// A chat as an app shows it. Its JSON form is that of a [`ChatSnapshot`], with what no snapshot tells beside it.
///
/// What no snapshot tells is known from events alone, since the feed was opened: whether the chat is put away, compactions
/// and view (`load_context` gives them whole), jobs, output of tools and reasoning.
#[derive(Clone)]
pub struct FeedState {
    pub(super) chat: Arc<Chat>,
    pub(super) seq: Seq,
    pub(super) items: Items,
    pub(super) runs: Runs,
    pub(super) queue: Arc<[QueuedInput]>,
    pub(super) plan: Arc<[PlanStep]>,
    pub(super) approvals: Arc<Vec<Approval>>,
    pub(super) question: Option<Arc<Question>>,
    pub(super) children: Arc<Vec<Child>>,
    pub(super) usage: Option<Usage>,
    pub(super) settings: Settings,
    pub(super) workspace: Option<Workspace>,
    pub(super) extra: Extra,
}

/// What no snapshot tells.
#[derive(Clone, Default)]
pub(super) struct Extra {
    pub(super) archived: Option<bool>,
    pub(super) compactions: Arc<Vec<Compaction>>,
    pub(super) view: Option<Arc<ContextView>>,
    pub(super) jobs: Arc<Vec<FeedJob>>,
    pub(super) thinking: Option<Thinking>,
    pub(super) outputs: HashTrieMapSync<ItemId, LiveText>,
}

/// The agent's reasoning, while its run goes on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// The run that reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Its reasoning so far.
    pub text: LiveText,
}

/// A background job with what it wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedJob {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// What it wrote so far.
    pub output: LiveText,
    /// Whether it has ended.
    pub finished: bool,
    /// Its exit code, where the host told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

/// Runs in the order they came, found by id. A run's place never changes.
#[derive(Clone)]
pub(super) struct Runs {
    list: Tree<Run>,
    places: HashTrieMapSync<RunId, usize>,
}

impl Runs {
    pub(super) fn get(&self, id: &str) -> Option<&Run> {
        self.list.get(*self.places.get(id)?)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Run> {
        self.list.get_mut(*self.places.get(id)?)
    }

    /// Whether a run came before another; not where one of them is not known.
    pub(super) fn is_before(&self, id: &str, other: &str) -> bool {
        self.places.get(id).is_some_and(|place| self.places.get(other).is_some_and(|other| place < other))
    }

    /// The runs that came after one.
    pub(super) fn after(&self, id: &str) -> impl Iterator<Item = &Run> {
        let first = self.places.get(id).map_or(self.list.len(), |place| place + 1);
        (first..self.list.len()).filter_map(|place| self.list.get(place))
    }

    pub(super) fn push(&mut self, run: Run) {
        self.places.insert_mut(run.id.clone(), self.list.len());
        self.list.push(run);
    }
}

impl FromIterator<Run> for Runs {
    fn from_iter<I: IntoIterator<Item = Run>>(list: I) -> Self {
        let mut runs = Runs { list: Tree::new(), places: HashTrieMapSync::new_sync() };
        for run in list {
            match runs.get_mut(&run.id) {
                Some(known) => *known = run,
                None => runs.push(run),
            }
        }
        runs
    }
}

impl FeedState {
    /// All of a snapshot but its items.
    pub(super) fn without_items(snapshot: ChatSnapshot) -> Self {
        FeedState {
            chat: Arc::new(snapshot.chat),
            seq: snapshot.seq,
            items: Items::new(),
            runs: snapshot.runs.into_iter().collect(),
            queue: snapshot.queue.into(),
            plan: snapshot.plan.into(),
            approvals: Arc::new(snapshot.approvals),
            question: snapshot.question.map(Arc::new),
            children: Arc::new(snapshot.children),
            usage: snapshot.usage,
            settings: snapshot.settings,
            workspace: snapshot.workspace,
            extra: Extra::default(),
        }
    }

    /// The chat, with its newest title.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }

    /// The sequence up to which everything durable is in here: a cursor for `events`.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The items in display order.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &FeedItem> {
        self.items.slots().map(|slot| &slot.item)
    }

    /// How many items there are.
    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    /// The item at a place.
    pub fn item_at(&self, index: usize) -> Option<&FeedItem> {
        self.items.slot(index).map(|slot| &slot.item)
    }

    /// An item by its id.
    pub fn item(&self, id: &ItemId) -> Option<&FeedItem> {
        self.items.get(id)
    }

    /// The place of an item.
    pub fn position(&self, id: &ItemId) -> Option<usize> {
        self.items.position(id)
    }

    /// The runs, in the order they came.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &Run> {
        self.runs.list.iter()
    }

    /// A run by its id.
    pub fn run(&self, id: &RunId) -> Option<&Run> {
        self.runs.get(id)
    }

    /// Inputs that wait for their turn.
    pub fn queue(&self) -> &[QueuedInput] {
        &self.queue
    }

    /// The plan, empty where there is none.
    pub fn plan(&self) -> &[PlanStep] {
        &self.plan
    }

    /// Pending approvals.
    pub fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    /// The question that waits for an answer.
    pub fn question(&self) -> Option<&Question> {
        self.question.as_deref()
    }

    /// Chats that this one started.
    pub fn children(&self) -> &[Child] {
        &self.children
    }

    /// The chat's own totals.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Model and profile.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where it works.
    pub fn workspace(&self) -> Option<&Workspace> {
        self.workspace.as_ref()
    }

    /// Whether the chat was put away, once an event told.
    pub fn archived(&self) -> Option<bool> {
        self.extra.archived
    }

    /// Compactions that events told of.
    pub fn compactions(&self) -> &[Compaction] {
        &self.extra.compactions
    }

    /// What the model sees, once an event told.
    pub fn view(&self) -> Option<&ContextView> {
        self.extra.view.as_deref()
    }

    /// Background jobs that events told of.
    pub fn jobs(&self) -> &[FeedJob] {
        &self.extra.jobs
    }

    /// The agent's reasoning, while its run goes on.
    pub fn thinking(&self) -> Option<&Thinking> {
        self.extra.thinking.as_ref()
    }

    /// What a tool wrote while it worked.
    pub fn output(&self, call: &ItemId) -> Option<&LiveText> {
        self.extra.outputs.get(call)
    }

    /// The state as a snapshot, copied whole. What no snapshot tells is left out.
    pub fn to_snapshot(&self) -> ChatSnapshot {
        ChatSnapshot {
            chat: self.chat().clone(),
            seq: self.seq,
            items: self.items().map(|item| item.to_item().into_owned()).collect(),
            runs: self.runs().cloned().collect(),
            queue: self.queue.to_vec(),
            plan: self.plan.to_vec(),
            approvals: self.approvals.to_vec(),
            question: self.question().cloned(),
            children: self.children.to_vec(),
            usage: self.usage.clone(),
            settings: self.settings.clone(),
            workspace: self.workspace.clone(),
        }
    }
}

impl std::fmt::Debug for FeedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedState")
            .field("chat", &self.chat.id)
            .field("seq", &self.seq)
            .field("items", &self.item_count())
            .finish_non_exhaustive()
    }
}

/// A list that is written while it is read.
struct List<F>(F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

impl Serialize for FeedState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// One after the other, an absent one left out.
        macro_rules! fields {
            ($form:ident: $($key:literal = $value:expr,)* ? $($may_key:literal = $may:expr,)*) => {
                $($form.serialize_field($key, &$value)?;)*
                $(if let Some(value) = $may { $form.serialize_field($may_key, value)?; } else { $form.skip_field($may_key)?; })*
            };
        }
        let outputs: std::collections::BTreeMap<_, _> = self.extra.outputs.iter().collect();
        let mut form = serializer.serialize_struct("FeedState", 18)?;
        fields! { form:
            "chat" = self.chat,
            "seq" = self.seq,
            "items" = List(|| self.items()),
            "runs" = List(|| self.runs()),
            "queue" = self.queue,
            "plan" = self.plan,
            "approvals" = self.approvals,
            "children" = self.children,
            "settings" = self.settings,
            "compactions" = self.extra.compactions,
            "jobs" = self.extra.jobs,
            "outputs" = outputs,
            ?
            "question" = &self.question,
            "usage" = &self.usage,
            "workspace" = &self.workspace,
            "archived" = &self.extra.archived,
            "view" = &self.extra.view,
            "thinking" = &self.extra.thinking,
        }
        form.end()
    }
}
