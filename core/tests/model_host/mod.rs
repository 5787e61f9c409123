//! A model of a host and its adapter, in memory: what the chat holds at each moment, and the events that a stream yields,
//! as the kit's rules say. It knows nothing of the feed.

use std::collections::VecDeque;

use kitport::model::*;
use proptest::prelude::*;

/// Something that happens in the chat. What makes no sense at the moment is left out.
#[derive(Debug, Clone)]
pub enum Step {
    Prompt,
    Text(String),
    /// The shown text begins anew.
    Retry,
    Tool,
    ToolEnd(Option<bool>),
    Nested,
    NestedEnd,
    Steer,
    Output,
    Plan(u8),
    AskApproval,
    DecideApproval,
    Ask,
    Answer,
    Queue(u8),
    Usage(u64),
    Rename(u8),
    Settings(u8),
    Child,
    ChildAsks,
    ChildAnswered,
    ChildEnds,
    Wait,
    Resume,
    /// A run ends: how, and whether the event tells the text.
    Finish(u8),
    Compaction,
    Job,
    Thinking(String),
    /// The adapter's reload finds the messages that no event told.
    Find,
}

pub fn step() -> impl Strategy<Value = Step> {
    let text = "[a-c𝄞é \n]{0,12}";
    prop_oneof![
        4 => Just(Step::Prompt),
        12 => text.prop_map(Step::Text),
        1 => Just(Step::Retry),
        4 => Just(Step::Tool),
        4 => prop::option::of(any::<bool>()).prop_map(Step::ToolEnd),
        2 => Just(Step::Nested),
        2 => Just(Step::NestedEnd),
        2 => Just(Step::Steer),
        2 => Just(Step::Output),
        1 => any::<u8>().prop_map(Step::Plan),
        2 => Just(Step::AskApproval),
        2 => Just(Step::DecideApproval),
        1 => Just(Step::Ask),
        1 => Just(Step::Answer),
        1 => (0u8..3).prop_map(Step::Queue),
        1 => (0u64..9).prop_map(Step::Usage),
        1 => (0u8..3).prop_map(Step::Rename),
        1 => (0u8..3).prop_map(Step::Settings),
        1 => Just(Step::Child),
        1 => Just(Step::ChildAsks),
        1 => Just(Step::ChildAnswered),
        1 => Just(Step::ChildEnds),
        1 => Just(Step::Wait),
        1 => Just(Step::Resume),
        4 => (0u8..4).prop_map(Step::Finish),
        1 => Just(Step::Compaction),
        1 => Just(Step::Job),
        1 => text.prop_map(Step::Thinking),
        6 => Just(Step::Find),
    ]
}

/// What hosts and adapters may do one way or the other.
#[derive(Debug, Clone, Copy)]
pub struct Ways {
    /// Messages tell the run they belong to.
    pub tells_runs: bool,
    /// A reload tells all messages of a run whose end told no text, and not the last one alone.
    pub tells_all_replies: bool,
}

pub fn ways() -> impl Strategy<Value = Ways> {
    any::<(bool, bool)>().prop_map(|(tells_runs, tells_all_replies)| Ways { tells_runs, tells_all_replies })
}

/// The host, and what its adapter told so far.
pub struct Host {
    pub now: ChatSnapshot,
    /// What a stream yields that was attached before anything happened.
    pub events: Vec<Event>,
    ways: Ways,
    run: Option<Live>,
    count: u64,
    /// Ids of messages that no event told yet.
    unfound: VecDeque<ItemId>,
    /// Runs that ended without their text being told: a reload tells their messages.
    silent: Vec<RunId>,
}

struct Live {
    id: RunId,
    step: u32,
    text: String,
    calls: Vec<ItemId>,
    nested: Vec<ItemId>,
    thinking: String,
}

impl Host {
    pub fn new(ways: Ways) -> Self {
        let at = Time::from_second(1_700_000_000).expect("in range");
        let chat = Chat {
            id: "chat".into(),
            title: "Chat".into(),
            created_at: at,
            updated_at: at,
            parent_id: None,
            model: None,
            run_status: None,
        };
        let now = ChatSnapshot {
            chat,
            seq: Seq(15),
            items: Vec::new(),
            runs: Vec::new(),
            queue: Vec::new(),
            plan: Vec::new(),
            approvals: Vec::new(),
            question: None,
            children: Vec::new(),
            usage: None,
            settings: Settings::default(),
            workspace: None,
        };
        let (unfound, silent) = (VecDeque::new(), Vec::new());
        Host { now, events: Vec::new(), ways, run: None, count: 0, unfound, silent }
    }

    /// Whether an adapter's reload would find nothing that was not told.
    pub fn all_found(&self) -> bool {
        self.unfound.is_empty() && self.silent.is_empty()
    }

    /// The provisional id of the step that goes on.
    pub fn live_id(&self) -> Option<ItemId> {
        self.run.as_ref().map(|run| format!("provisional:{}:{}", run.id, run.step).into())
    }

    /// The text of the step that goes on.
    pub fn live_text(&self) -> Option<&str> {
        self.run.as_ref().map(|run| run.text.as_str()).filter(|text| !text.is_empty())
    }

    /// Ends what goes on, and tells everything.
    pub fn settle(&mut self) {
        self.step(&Step::Resume);
        self.step(&Step::Finish(0));
        self.step(&Step::Find);
    }

    fn id(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}{}", self.count)
    }

    fn transient(&mut self, kind: impl Into<EventKind>) {
        let run = self.run.as_ref().map(|run| run.id.clone());
        let event = Event { chat: "chat".into(), seq: self.now.seq, durable: false, run, at: None, kind: kind.into() };
        self.events.push(event);
    }

    /// One host event, and the kit events at its positions.
    fn durable(&mut self, kinds: impl IntoIterator<Item = EventKind>) {
        let host = self.now.seq.0 / 16 + 1;
        let run = self.run.as_ref().map(|run| run.id.clone());
        for (position, kind) in kinds.into_iter().enumerate() {
            let seq = Seq(host * 16 + position as u64);
            let at = Some(self.now.chat.created_at);
            self.events.push(Event { chat: "chat".into(), seq, durable: true, run: run.clone(), at, kind });
        }
        self.now.seq = Seq(host * 16 + 15);
    }

    fn message(&mut self, prefix: &str, text: String) -> Message {
        let run = self.run.as_ref().map(|run| run.id.clone()).filter(|_| self.ways.tells_runs);
        Message { id: self.id(prefix).into(), text, run, created_at: None, provisional: false }
    }

    /// Stores the text of a step that has ended.
    fn store_text(&mut self) {
        let Some(run) = &mut self.run else { return };
        let text = std::mem::take(&mut run.text);
        if !text.is_empty() {
            let message = self.message("assistant", text);
            self.now.items.push(Item::AssistantMessage(message));
        }
    }

    fn run_mut(&mut self) -> Option<&mut Run> {
        let id = self.run.as_ref()?.id.clone();
        self.now.runs.iter_mut().find(|run| run.id == id)
    }

    fn waits(&mut self) -> bool {
        self.run_mut().is_some_and(|run| run.status == RunStatus::WaitingForQuota)
    }

    pub fn step(&mut self, step: &Step) {
        let going = self.run.is_some() && !self.waits();
        match step {
            Step::Prompt if self.run.is_none() => {
                let id: RunId = self.id("run").into();
                let model = self.count.is_multiple_of(3).then(|| "p/other".to_owned());
                self.run = Some(Live {
                    id: id.clone(),
                    step: 1,
                    text: String::new(),
                    calls: Vec::new(),
                    nested: Vec::new(),
                    thinking: String::new(),
                });
                let message = self.message("user", "do".into());
                self.unfound.push_back(message.id.clone());
                self.now.items.push(Item::UserMessage(message));
                let started_at = Some(self.now.chat.created_at);
                self.now.runs.push(Run {
                    id,
                    status: RunStatus::Running,
                    model: model.clone(),
                    started_at,
                    finished_at: None,
                    error: None,
                    wait: None,
                });
                if model.is_some() {
                    self.now.settings.model.clone_from(&model);
                }
                self.durable([RunStarted { model, resumed: false }.into()]);
            }
            Step::Text(text) if going => {
                let Some(run) = &mut self.run else { return };
                let offset = run.text.encode_utf16().count() as u64;
                run.text.push_str(text);
                let message_id = ItemId::from(format!("provisional:{}:{}", run.id, run.step));
                self.transient(MessageDelta { message_id, offset, text: text.clone() });
            }
            Step::Retry if going => {
                let Some(run) = &mut self.run else { return };
                run.text.clear();
                let message_id = ItemId::from(format!("provisional:{}:{}", run.id, run.step));
                self.transient(MessageDelta { message_id, offset: 0, text: String::new() });
            }
            Step::Tool if going => {
                self.store_text();
                let id: ItemId = self.id("tool").into();
                let Some(run) = &mut self.run else { return };
                run.step += 1;
                run.calls.push(id.clone());
                let call = call(id, &run.id, true);
                self.now.items.push(call.clone());
                self.durable([ToolStarted { call }.into()]);
            }
            Step::ToolEnd(is_error) if going => {
                let Some(call_id) = self.run.as_mut().and_then(|run| run.calls.pop()) else { return };
                let result = Some(serde_json::json!({"id": &*call_id}));
                for item in &mut self.now.items {
                    if let Item::ToolCall(call) = item
                        && call.id == call_id
                    {
                        call.status = if *is_error == Some(true) { ToolStatus::Failed } else { ToolStatus::Done };
                        call.result.clone_from(&result);
                        call.is_error = *is_error;
                    }
                }
                self.durable([ToolFinished { call_id, result, is_error: *is_error }.into()]);
            }
            Step::Nested if going => {
                let id: ItemId = self.id("nested").into();
                let Some(run) = &mut self.run else { return };
                run.nested.push(id.clone());
                let call = call(id, &run.id, false);
                self.transient(ToolStarted { call });
            }
            Step::NestedEnd if going => {
                let Some(call_id) = self.run.as_mut().and_then(|run| run.nested.pop()) else { return };
                self.transient(ToolFinished { call_id, result: None, is_error: None });
            }
            // The host takes a new direction in between two steps, when a tool was called.
            Step::Steer if going && self.live_text().is_none() && self.run.as_ref().is_some_and(|r| r.step > 1) => {
                let message = self.message("user", "rather".into());
                self.unfound.push_back(message.id.clone());
                self.now.items.push(Item::UserMessage(message));
            }
            Step::Output if going => {
                let message = self.message("output", "line".into());
                self.now.items.push(Item::SystemMessage(message.clone()));
                self.durable([MessageSystem { message: Item::SystemMessage(message), after_id: None }.into()]);
            }
            Step::Plan(n) if going => {
                let step = |n| PlanStep { id: None, text: format!("step {n}"), status: PlanStatus::Todo };
                self.now.plan = (0..n % 4).map(step).collect();
                self.durable([PlanUpdated { steps: self.now.plan.clone() }.into()]);
            }
            Step::AskApproval if going => {
                let approval = Approval {
                    id: self.id("approval").into(),
                    run: self.run.as_ref().map(|run| run.id.clone()),
                    call_id: None,
                    tool: None,
                    title: None,
                    arguments: None,
                    state: ApprovalState::Pending,
                    reason: None,
                    options: None,
                    created_at: None,
                };
                self.now.approvals.push(approval.clone());
                self.durable([ApprovalRequested { approval }.into()]);
            }
            Step::DecideApproval if !self.now.approvals.is_empty() => {
                let approval_id = self.now.approvals.remove(0).id;
                self.durable([ApprovalResolved { approval_id, state: ApprovalState::Approved, reason: None }.into()]);
            }
            Step::Ask if going => {
                let question =
                    Question { id: self.id("question").into(), text: "which?".into(), suggestions: Vec::new() };
                self.now.question = Some(question.clone());
                self.durable([QuestionAsked { question }.into()]);
            }
            Step::Answer if self.now.question.take().is_some() => {
                self.durable([QuestionResolved { question_id: None }.into()]);
            }
            Step::Queue(n) => {
                let input = |n| QueuedInput {
                    id: format!("input{n}").into(),
                    kind: InputKind::FollowUp,
                    text: "then".into(),
                    created_at: None,
                };
                self.now.queue = (0..*n).map(input).collect();
                self.transient(QueueUpdated { inputs: self.now.queue.clone() });
            }
            Step::Usage(n) => {
                let usage = Usage {
                    input_tokens: *n,
                    output_tokens: *n,
                    cached_input_tokens: None,
                    total_tokens: None,
                    cost_usd: None,
                    context: None,
                };
                self.now.usage = Some(usage.clone());
                self.transient(UsageUpdated { usage });
            }
            Step::Rename(n) => {
                self.now.chat.title = format!("Title {n}");
                self.transient(ChatRenamed { title: self.now.chat.title.clone() });
            }
            Step::Settings(n) => {
                self.now.settings.model = Some(format!("p/{n}"));
                self.transient(ChatSettings { model: self.now.settings.model.clone(), profile: None });
            }
            Step::Child => {
                let child = Child {
                    id: self.id("child").into(),
                    parent_id: "chat".into(),
                    title: "Child".into(),
                    state: ChildState::Running,
                    question: None,
                    result: None,
                };
                self.now.children.push(child.clone());
                self.transient(ChildSpawned { child });
            }
            Step::ChildAsks => {
                let question = Question { id: self.id("q").into(), text: "?".into(), suggestions: Vec::new() };
                let Some(child) = self.now.children.iter_mut().find(|child| !child.state.is_finished()) else { return };
                child.question = Some(question.clone());
                let child_id = child.id.clone();
                self.transient(ChildQuestionAsked { child_id, question });
            }
            Step::ChildAnswered => {
                let Some(child) = self.now.children.iter_mut().find(|child| child.question.is_some()) else { return };
                let (child_id, question_id) = (child.id.clone(), child.question.take().expect("it was found by it").id);
                self.transient(ChildQuestionResolved { child_id, question_id });
            }
            Step::ChildEnds => {
                let Some(child) = self.now.children.iter_mut().find(|child| !child.state.is_finished()) else { return };
                child.state = ChildState::Completed;
                child.result = Some("done".into());
                child.question = None;
                let (child_id, state, result) = (child.id.clone(), child.state.clone(), child.result.clone());
                self.transient(ChildFinished { child_id, state, result });
            }
            Step::Wait if going => {
                let wait = RunWait { resume_at: None, reason: Some("quota".into()) };
                let Some(run) = self.run_mut() else { return };
                run.status = RunStatus::WaitingForQuota;
                run.wait = Some(wait.clone());
                self.durable([RunWaiting { resume_at: None, reason: wait.reason }.into()]);
            }
            Step::Resume if self.waits() => {
                let Some(run) = self.run_mut() else { return };
                run.status = RunStatus::Running;
                run.wait = None;
                self.durable([RunStarted { model: None, resumed: true }.into()]);
            }
            Step::Finish(how) if going => self.finish(*how),
            Step::Compaction => {
                let compaction = Compaction {
                    id: self.id("compaction"),
                    kind: "fold".into(),
                    trigger: "auto".into(),
                    seq: None,
                    at: None,
                    applied: true,
                    tokens_before: None,
                    tokens_after: None,
                };
                self.transient(CompactionUpdated { compaction });
                self.transient(ContextChanged {
                    view: ContextView { threshold: 9, window: None, response_reserve: None, items: Vec::new() },
                });
            }
            Step::Job => {
                let id: JobId = self.id("job").into();
                self.transient(JobStarted { job: Job { id: id.clone(), title: None, status: "running".into() } });
                self.transient(JobOutput { job_id: id, offset: 0, text: "up".into() });
            }
            Step::Thinking(text) if going => {
                let Some(run) = &mut self.run else { return };
                let offset = run.thinking.encode_utf16().count() as u64;
                run.thinking.push_str(text);
                self.transient(ThinkingDelta { offset, text: text.clone() });
            }
            Step::Find => self.find(),
            _ => {}
        }
    }

    fn finish(&mut self, how: u8) {
        let Some(live) = &self.run else { return };
        let id = live.id.clone();
        let text = live.text.clone();
        let (status, error) = match how {
            2 => (RunStatus::Failed, Some("broke".to_owned())),
            3 => (RunStatus::Cancelled, None),
            _ => (RunStatus::Completed, None),
        };
        let mut kinds: Vec<EventKind> = Vec::new();
        if status == RunStatus::Completed {
            self.store_text();
            if how == 0 && !text.is_empty() {
                let message_id = ItemId::from(format!("provisional:{id}"));
                kinds.push(MessageAssistant { message_id, text, provisional: true }.into());
            } else {
                self.silent.push(id);
            }
        }
        let at = self.now.chat.created_at;
        let Some(run) = self.run_mut() else { return };
        run.status = status.clone();
        run.error.clone_from(&error);
        run.finished_at = Some(at);
        kinds.push(RunFinished { status, error }.into());
        let first = kinds.len() as u64 - 1;
        // run.finished is at position 1, whether there was a text or not.
        self.durable(kinds);
        if let Some(event) = self.events.last_mut() {
            event.seq = Seq(event.seq.0 - first + 1);
        }
        self.run = None;
    }

    /// What an adapter's reload tells, in the order of the chat.
    fn find(&mut self) {
        let silent = std::mem::take(&mut self.silent);
        let unfound = std::mem::take(&mut self.unfound);
        // A host that tells no runs: its adapter knows them from the messages before.
        let mut run = None;
        let mut starts = self.now.runs.iter().map(|run| run.id.clone());
        let mut before: Option<ItemId> = None;
        let mut found: Vec<(Option<RunId>, EventKind)> = Vec::new();
        for item in &self.now.items {
            if let Item::UserMessage(message) = item
                && message.text == "do"
            {
                run = starts.next();
            }
            let kind: Option<EventKind> = match item {
                Item::UserMessage(message) if unfound.contains(&message.id) => {
                    Some(MessageUser { message: item.clone(), after_id: before.clone() }.into())
                }
                Item::AssistantMessage(message) if run.as_ref().is_some_and(|run| silent.contains(run)) => {
                    let (message_id, text) = (message.id.clone(), message.text.clone());
                    Some(MessageAssistant { message_id, text, provisional: false }.into())
                }
                _ => None,
            };
            if let Some(kind) = kind {
                let is_reply = matches!(kind, EventKind::MessageAssistant(_));
                if is_reply && !self.ways.tells_all_replies {
                    found.retain(|(of, kind)| *of != run || !matches!(kind, EventKind::MessageAssistant(_)));
                }
                found.push((run.clone(), kind));
            }
            before = Some(item.id().clone());
        }
        for (run, kind) in found {
            let chat = "chat".into();
            self.events.push(Event { chat, seq: self.now.seq, durable: false, run, at: None, kind });
        }
    }
}

fn call(id: ItemId, run: &RunId, durable: bool) -> Item {
    Item::ToolCall(ToolCall {
        id,
        name: "look".into(),
        arguments: None,
        status: ToolStatus::Running,
        result: None,
        is_error: None,
        run: Some(run.clone()),
        durable,
    })
}
