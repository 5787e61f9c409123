//! Children: sessions that a run starts and waits for.

use kitport::model::ChatId;
use serde_json::{Value, json};

use super::{Begin, Runner, lifecycle, script};
use crate::failure::Outcome;

impl Runner {
    /// Starts children and waits until they have ended.
    pub(super) async fn children(&mut self, count: u64, child_script: &str, key: u64) -> Outcome<()> {
        let call_id = self.lasting_call(key);
        let known = self.host.read(|tx| tx.store.children_of_step(&self.origin, key))?;
        let children = if known.is_empty() {
            self.start_call(&call_id, "delegate", json!({ "children": count, "task": child_script })).await?;
            let host = self.host.clone();
            host.write(|tx| {
                let mut children = Vec::new();
                for n in 1..=count {
                    let title = format!("Child {n} of {count}: {}", first_word(child_script));
                    let child = tx.new_session(Some(&title), Some(&self.session))?;
                    tx.store.insert_child(&child, &self.origin, key)?;
                    lifecycle::begin(tx, Begin { session: &child, text: child_script })?;
                    children.push(child);
                }
                Ok(children)
            })?
        } else {
            self.open_call = Some(call_id.clone());
            self.wake(&known)?;
            known
        };
        let ended = self
            .wait_for(|tx| {
                let mut ended = Vec::new();
                for child in &children {
                    let Some(told) = tx.row(child)?.as_child() else { return Ok(None) };
                    if matches!(told.state.as_str(), "running" | "waiting") {
                        return Ok(None);
                    }
                    ended.push(told);
                }
                Ok(Some(ended))
            })
            .await?;
        let failed = ended.iter().any(|child| child.state != "completed");
        let results: Vec<Value> = ended
            .into_iter()
            .map(|child| json!({ "child": child.session_id, "state": child.state, "result": child.result }))
            .collect();
        self.finish_call(&call_id, Value::Array(results), failed)
    }

    /// Children that were interrupted with this run go on with it.
    fn wake(&self, children: &[ChatId]) -> Outcome<()> {
        self.host.write(|tx| {
            for child in children {
                let interrupted = tx.row(child)?.details.child.as_ref().is_some_and(|told| told.state == "interrupted");
                if interrupted && !tx.is_running(child)? {
                    lifecycle::restart(tx, child)?;
                }
            }
            Ok(())
        })
    }
}

fn first_word(script: &str) -> &str {
    match script.split([';', '\n']).next() {
        Some(item) if script::plain_step(item.trim()).is_some() => item.trim(),
        _ => "task",
    }
}
