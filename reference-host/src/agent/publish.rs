//! Plans and publications.

use kitport::bubblepaw::wire::{EventData, HostState, Output, Todo};
use kitport::model::ItemId;

use super::script::Plan;
use super::{Runner, prose};
use crate::failure::Outcome;

impl Runner {
    pub(super) fn plan(&mut self, plan: &Plan) -> Outcome<()> {
        match plan {
            Plan::Make => {
                let mut steps: Vec<Todo> = ["Look around", "Write the letter", "Bring it over the hills"]
                    .iter()
                    .enumerate()
                    .map(|(n, text)| Todo {
                        id: Some(format!("todo-{}", n + 1)),
                        text: (*text).to_owned(),
                        status: if n == 0 { "in_progress" } else { "pending" }.to_owned(),
                    })
                    .collect();
                if self.host.options.faults.future {
                    steps.push(Todo { id: None, text: "Wait for spring".to_owned(), status: "blocked".to_owned() });
                }
                self.set_plan(steps)?;
                self.change_plan(|steps| next(steps))
            }
            Plan::Set(steps) => self.set_plan(steps.clone()),
            Plan::Next => self.change_plan(|steps| next(steps)),
            Plan::Done => self.change_plan(|steps| steps.iter_mut().for_each(|step| step.status = "done".to_owned())),
            Plan::Clear => self.change_plan(|steps| steps.clear()),
        }
    }

    fn set_plan(&self, steps: Vec<Todo>) -> Outcome<()> {
        self.change_plan(|old| *old = steps)
    }

    fn change_plan(&self, change: impl FnOnce(&mut Vec<Todo>)) -> Outcome<()> {
        self.host.write(|tx| {
            let todo = &mut tx.change(&self.session)?.details.todo;
            change(todo);
            let data = EventData::HostStateChanged(HostState::Todo(todo.clone()));
            tx.event(&self.session, Some(&self.run.run_id), data).map(drop)
        })
    }

    /// Publishes something.
    pub(super) fn output(&mut self, kind: &str, text: Option<&str>) -> Outcome<()> {
        let text = match (text, kind) {
            (Some(text), _) => Some(text.to_owned()),
            (None, "text") => Some(prose::words(&mut self.rng, 12)),
            (None, "file") => Some("notes/today.md".to_owned()),
            (None, "execution") => Some("$ make letters\n3 letters".to_owned()),
            (None, _) => None,
        };
        self.host.write(|tx| {
            let output = Output {
                output_id: ItemId::from(tx.change(&self.session)?.new_id("output")),
                kind: kind.to_owned(),
                text,
                run_id: self.run_id(),
                created_at: Some(tx.now),
            };
            tx.store.insert_output(self.num, &output)?;
            tx.event(&self.session, Some(&self.run.run_id), EventData::OutputRecord { output: Box::new(output) })
                .map(drop)
        })
    }
}

fn next(steps: &mut [Todo]) {
    if let Some(now) = steps.iter_mut().find(|step| step.status == "in_progress") {
        now.status = "done".to_owned();
    }
    if let Some(following) = steps.iter_mut().find(|step| step.status == "pending") {
        following.status = "in_progress".to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_moves_on_one_step_at_a_time() {
        let step = |status: &str| Todo { id: None, text: "x".into(), status: status.into() };
        let mut steps = vec![step("pending"), step("blocked"), step("pending")];
        let words = |steps: &[Todo]| steps.iter().map(|step| step.status.clone()).collect::<Vec<_>>();
        next(&mut steps);
        assert_eq!(words(&steps), ["in_progress", "blocked", "pending"]);
        next(&mut steps);
        assert_eq!(words(&steps), ["done", "blocked", "in_progress"]);
        next(&mut steps);
        next(&mut steps);
        assert_eq!(words(&steps), ["done", "blocked", "done"]);
    }
}
