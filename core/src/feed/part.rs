//! What events do to everything but the items.

use std::sync::Arc;

use super::changed::TextOf;
use super::reducer::FeedReducer;
use super::state::{FeedJob, Thinking};
use super::text::LiveText;
use crate::model::{
    ApprovalState, ChatId, Child, Compaction, ContextView, Event, EventKind, Job, JobFinished, JobId, JobOutput, Run,
    RunId, RunStarted, RunStatus, RunWait, Settings, ThinkingDelta, Workspace,
};

/// Sets a part, and notes it where it is another now.
macro_rules! set {
    ($self:ident.$part:ident, $place:expr, $value:expr) => {
        let value = $value;
        if $place != value {
            $place = value;
            $self.touched.parts.$part = true;
        }
    };
}

impl FeedReducer {
    /// Applies an event that changes a part that a snapshot tells, too.
    pub(super) fn apply_part(&mut self, event: &Event) {
        let state = &mut self.state;
        match &event.kind {
            EventKind::ChatRenamed(e) => {
                if state.chat.title != e.title {
                    Arc::make_mut(&mut state.chat).title.clone_from(&e.title);
                    self.touched.parts.chat = true;
                }
            }
            EventKind::ChatSettings(e) => {
                let settings = Settings { model: e.model.clone(), profile: e.profile.clone() };
                set!(self.settings, self.state.settings, settings);
            }
            EventKind::ChatWorkspace(e) => {
                let told = Workspace { path: e.path.clone(), name: e.name.clone(), branch: e.branch.clone() };
                let workspace = Some(told).filter(|workspace| *workspace != Workspace::default());
                set!(self.workspace, self.state.workspace, workspace);
            }
            EventKind::RunStarted(e) => self.run_started(event, e),
            EventKind::RunWaiting(e) => self.change_run(event, |run| {
                run.status = RunStatus::WaitingForQuota;
                run.wait = Some(RunWait { resume_at: e.resume_at, reason: e.reason.clone() });
            }),
            EventKind::RunFinished(e) => self.change_run(event, |run| {
                run.status = e.status.clone();
                run.error = e.error.clone();
                run.finished_at = event.at.or(run.finished_at);
                run.wait = None;
            }),
            EventKind::PlanUpdated(e) => {
                set!(self.plan, self.state.plan, e.steps.clone().into());
            }
            EventKind::QueueUpdated(e) => {
                set!(self.queue, self.state.queue, e.inputs.clone().into());
            }
            EventKind::UsageUpdated(e) => {
                set!(self.usage, self.state.usage, Some(e.usage.clone()));
            }
            EventKind::ApprovalRequested(e) => {
                let mut approvals = state.approvals.to_vec();
                let known = approvals.iter().position(|approval| approval.id == e.approval.id);
                match (known, e.approval.state == ApprovalState::Pending) {
                    (Some(at), true) => approvals[at] = e.approval.clone(),
                    (Some(at), false) => drop(approvals.remove(at)),
                    (None, true) => approvals.push(e.approval.clone()),
                    (None, false) => {}
                }
                set!(self.approvals, self.state.approvals, Arc::new(approvals));
            }
            EventKind::ApprovalResolved(e) => {
                if state.approvals.iter().any(|approval| approval.id == e.approval_id) {
                    Arc::make_mut(&mut state.approvals).retain(|approval| approval.id != e.approval_id);
                    self.touched.parts.approvals = true;
                }
            }
            EventKind::QuestionAsked(e) => {
                set!(self.question, self.state.question, Some(Arc::new(e.question.clone())));
            }
            EventKind::QuestionResolved(e) => {
                // Without an id it is whichever waits.
                let waits = state.question.as_ref();
                if waits.is_some_and(|waits| e.question_id.as_ref().is_none_or(|id| *id == waits.id)) {
                    state.question = None;
                    self.touched.parts.question = true;
                }
            }
            EventKind::ChildSpawned(e) => {
                let children = &mut state.children;
                let known = children.iter().position(|child| child.id == e.child.id);
                if known.is_none_or(|at| children[at] != e.child) {
                    let children = Arc::make_mut(children);
                    match known {
                        Some(at) => children[at] = e.child.clone(),
                        None => children.push(e.child.clone()),
                    }
                    self.touched.parts.children = true;
                }
            }
            EventKind::ChildQuestionAsked(e) => {
                self.change_child(&e.child_id, |child| child.question = Some(e.question.clone()));
            }
            EventKind::ChildQuestionResolved(e) => self.change_child(&e.child_id, |child| {
                if child.question.as_ref().is_some_and(|question| question.id == e.question_id) {
                    child.question = None;
                }
            }),
            EventKind::ChildFinished(e) => self.change_child(&e.child_id, |child| {
                child.state = e.state.clone();
                child.result = e.result.clone().or(child.result.take());
                child.question = None;
            }),
            EventKind::ChatArchived(_)
            | EventKind::MessageUser(_)
            | EventKind::MessageDelta(_)
            | EventKind::MessageAssistant(_)
            | EventKind::MessageSystem(_)
            | EventKind::ThinkingDelta(_)
            | EventKind::ToolStarted(_)
            | EventKind::ToolOutput(_)
            | EventKind::ToolFinished(_)
            | EventKind::EditApplied(_)
            | EventKind::EditUndone(_)
            | EventKind::CompactionUpdated(_)
            | EventKind::ContextChanged(_)
            | EventKind::JobStarted(_)
            | EventKind::JobOutput(_)
            | EventKind::JobFinished(_)
            | EventKind::Gap(_) => {}
        }
    }

    fn run_started(&mut self, event: &Event, started: &RunStarted) {
        self.change_run(event, |run| {
            run.status = RunStatus::Running;
            run.wait = None;
            run.finished_at = None;
            run.error = None;
            run.model = started.model.clone().or(run.model.take());
            if !started.resumed {
                run.started_at = run.started_at.or(event.at);
            }
        });
        // The chat's model is that of its newest run.
        if started.model.is_some() {
            set!(self.settings, self.state.settings.model, started.model.clone());
        }
    }

    /// Changes a run, and adds it where it is new.
    fn change_run(&mut self, event: &Event, change: impl FnOnce(&mut Run)) {
        let Some(id) = &event.run else { return };
        let known = self.state.runs.get(id);
        let mut run = known.cloned().unwrap_or_else(|| Run {
            id: id.clone(),
            status: RunStatus::Running,
            model: None,
            started_at: None,
            finished_at: None,
            error: None,
            wait: None,
        });
        change(&mut run);
        if known == Some(&run) {
            return;
        }
        self.touched.parts.runs = true;
        // Kept only where the host tells it of chats.
        if self.state.chat.run_status.as_ref().is_some_and(|status| *status != run.status) {
            Arc::make_mut(&mut self.state.chat).run_status = Some(run.status.clone());
            self.touched.parts.chat = true;
        }
        match self.state.runs.get_mut(id) {
            Some(known) => *known = run,
            None => self.state.runs.push(run),
        }
    }

    /// A child that is not known is nobody's: nothing is made up of it.
    fn change_child(&mut self, id: &ChatId, change: impl FnOnce(&mut Child)) {
        let children = &mut self.state.children;
        let Some(at) = children.iter().position(|child| child.id == *id) else { return };
        let mut child = children[at].clone();
        change(&mut child);
        if child != children[at] {
            Arc::make_mut(children)[at] = child;
            self.touched.parts.children = true;
        }
    }

    /// What is kept of a run while it goes on.
    pub(super) fn end_run(&mut self, run: Option<&RunId>) {
        if !self.has_ended(run) {
            return;
        }
        if self.state.extra.thinking.as_ref().is_some_and(|thinking| thinking.run.as_ref() == run) {
            self.state.extra.thinking = None;
            self.touched.parts.thinking = true;
        }
        self.lanes.of(run).retired.clear();
        self.early_ends.clear();
    }

    pub(super) fn archived(&mut self, archived: bool) {
        set!(self.chat, self.state.extra.archived, Some(archived));
    }

    pub(super) fn thinking(&mut self, run: Option<&RunId>, delta: &ThinkingDelta) {
        if self.has_ended(run) {
            return;
        }
        let thinking = &mut self.state.extra.thinking;
        if thinking.as_ref().is_none_or(|thinking| thinking.run.as_ref() != run) {
            if delta.text.is_empty() {
                return;
            }
            *thinking = Some(Thinking { run: run.cloned(), text: LiveText::default() });
        }
        if let Some(thinking) = thinking
            && let Some(from) = thinking.text.put(delta.offset, &delta.text)
        {
            self.touched.text(TextOf::Thinking, from);
        }
    }

    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        let compactions = &mut self.state.extra.compactions;
        let known = compactions.iter().position(|known| known.id == compaction.id);
        if known.is_some_and(|at| compactions[at] == *compaction) {
            return;
        }
        let compactions = Arc::make_mut(compactions);
        match known {
            Some(at) => compactions[at] = compaction.clone(),
            None => compactions.push(compaction.clone()),
        }
        self.touched.parts.compactions = true;
    }

    pub(super) fn view(&mut self, view: &ContextView) {
        set!(self.view, self.state.extra.view, Some(Arc::new(view.clone())));
    }

    pub(super) fn job_started(&mut self, job: &Job) {
        if !self.state.extra.jobs.iter().any(|known| known.job.id == job.id) {
            let new = FeedJob { job: job.clone(), output: LiveText::default(), finished: false, exit_code: None };
            Arc::make_mut(&mut self.state.extra.jobs).push(new);
            self.touched.parts.jobs = true;
            return;
        }
        // One that has ended has ended, whoever restates its beginning.
        self.change_job(&job.id, |known| {
            if !known.finished {
                known.job = job.clone();
            }
        });
    }

    pub(super) fn job_output(&mut self, output: &JobOutput) {
        let jobs = &mut self.state.extra.jobs;
        let Some(at) = jobs.iter().position(|job| job.job.id == output.job_id) else { return };
        if let Some(from) = Arc::make_mut(jobs)[at].output.put(output.offset, &output.text) {
            self.touched.text(TextOf::Job(output.job_id.clone()), from);
        }
    }

    pub(super) fn job_finished(&mut self, end: &JobFinished) {
        self.change_job(&end.job_id, |job| {
            job.job.status.clone_from(&end.status);
            job.exit_code = end.exit_code;
            job.finished = true;
        });
    }

    fn change_job(&mut self, id: &JobId, change: impl FnOnce(&mut FeedJob)) {
        let jobs = &mut self.state.extra.jobs;
        let Some(at) = jobs.iter().position(|job| job.job.id == *id) else { return };
        let mut job = jobs[at].clone();
        change(&mut job);
        if job != jobs[at] {
            Arc::make_mut(jobs)[at] = job;
            self.touched.parts.jobs = true;
        }
    }
}
