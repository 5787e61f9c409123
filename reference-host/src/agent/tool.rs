//! Tool calls: alone, nested, by the thousand, with approval, and one that writes files.

use std::path::{Component, Path};

use kitport::bubblepaw::wire::{Approval, EventData, ToolCall, ToolResult, feature};
use kitport::model::{ApprovalId, ItemId};
use serde_json::{Value, json};

use super::Runner;
use crate::failure::Outcome;
use crate::host::{NewMessage, Tx};
use crate::outbox::Piece;
use crate::store::{ApprovalRow, Checkpoint};

/// Tool results longer than this are cut in the canonical messages, as hosts do: the model needn't read a disk image.
const RESULT_BYTES: usize = 256 * 1024;

/// Tool calls stored and told at a time.
const BATCH: u64 = 64;

/// Files larger than this aren't kept for a rewind.
const CHECKPOINT_BYTES: u64 = 1024 * 1024;

impl Runner {
    /// Begins a call: the step's text and the call become a canonical message.
    pub(super) async fn start_call(&mut self, call_id: &str, name: &str, arguments: Value) -> Outcome<()> {
        self.begin().await?;
        self.close_paragraph().await?;
        let call = ToolCall { call_id: call_id.into(), name: name.to_owned(), arguments };
        let text = self.text.whole();
        let host = self.host.clone();
        host.write(|tx| {
            self.calls_message(tx, text, vec![call.clone()])?;
            tx.event(&self.session, Some(&self.run.run_id), EventData::ToolStarted { call })
        })?;
        self.open_call = Some(call_id.to_owned());
        Ok(())
    }

    fn calls_message(&mut self, tx: &mut Tx<'_>, text: String, calls: Vec<ToolCall>) -> Outcome<()> {
        self.end_request(tx, text.len())?;
        let message =
            NewMessage { role: "assistant", text, run: self.run_id(), calls: Some(calls), ..Default::default() };
        tx.message(&self.session, message).map(drop)
    }

    /// Ends the call that goes on.
    pub(super) fn finish_call(&mut self, call_id: &str, result: Value, is_error: bool) -> Outcome<()> {
        let host = self.host.clone();
        host.write(|tx| self.end_call(tx, call_id, result, is_error))?;
        self.open_call = None;
        Ok(())
    }

    pub(super) fn end_call(&mut self, tx: &mut Tx<'_>, call_id: &str, result: Value, is_error: bool) -> Outcome<()> {
        let call_id = ItemId::from(call_id);
        let is_error = is_error.then_some(true);
        let kept = match &result {
            Value::String(text) if text.len() > RESULT_BYTES => {
                let end = (0..=RESULT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                Value::String(format!("{}… ({} bytes)", &text[..end], text.len()))
            }
            other => other.clone(),
        };
        let message = NewMessage {
            role: "tool",
            text: kept.as_str().map_or_else(|| kept.to_string(), str::to_owned),
            run: self.run_id(),
            result: Some(ToolResult { call_id: call_id.clone(), result: kept, is_error }),
            ..Default::default()
        };
        tx.message(&self.session, message)?;
        tx.event(&self.session, Some(&self.run.run_id), EventData::ToolFinished { call_id, result, is_error })?;
        Ok(())
    }

    fn new_call(&self) -> Outcome<String> {
        self.host.write(|tx| Ok(tx.change(&self.session)?.new_id("call")))
    }

    /// The id of a call that a resumed run finds again.
    pub(super) fn lasting_call(&self, key: u64) -> String {
        format!("call_{}_{key}", self.origin)
    }

    pub(super) async fn tool(&mut self, name: &str, arguments: Value, result: Value, is_error: bool) -> Outcome<()> {
        let call = self.new_call()?;
        self.start_call(&call, name, arguments).await?;
        self.pause(10).await;
        self.finish_call(&call, result, is_error)
    }

    /// A tool that calls two tools of its own: those are shown, never stored.
    pub(super) async fn nested(&mut self) -> Outcome<()> {
        let call = self.new_call()?;
        self.start_call(&call, "script", json!({ "code": "read('a'); read('b')" })).await?;
        for name in ["a", "b"] {
            let id = format!("{call}.{name}");
            let nested = json!({ "call": { "call_id": id, "name": "read_file", "arguments": { "path": name } } });
            self.transient("tool_started", Piece::Json(&nested.to_string())).await;
            self.pause(5).await;
            let ended = json!({ "call_id": id, "result": { "text": name } });
            self.transient("tool_finished", Piece::Json(&ended.to_string())).await;
        }
        self.finish_call(&call, json!({ "read": 2 }), false)
    }

    /// So many calls, in requests of many calls each.
    pub(super) async fn tools(&mut self, count: u64) -> Outcome<()> {
        let mut done = 0;
        while done < count {
            let batch = BATCH.min(count - done);
            self.begin().await?;
            self.close_paragraph().await?;
            let text = self.text.whole();
            let host = self.host.clone();
            host.write(|tx| {
                let row = tx.change(&self.session)?;
                let calls: Vec<ToolCall> = (0..batch)
                    .map(|n| ToolCall {
                        call_id: row.new_id("call").into(),
                        name: "probe".to_owned(),
                        arguments: json!({ "n": done + n }),
                    })
                    .collect();
                self.calls_message(tx, text, calls.clone())?;
                for (n, call) in calls.into_iter().enumerate() {
                    let call_id = call.call_id.clone();
                    tx.event(&self.session, Some(&self.run.run_id), EventData::ToolStarted { call })?;
                    self.end_call(tx, &call_id, json!({ "ok": true, "n": done + n as u64 }), false)?;
                }
                Ok(())
            })?;
            done += batch;
            self.pause(1).await;
        }
        Ok(())
    }

    /// A result of so many bytes.
    pub(super) async fn big(&mut self, bytes: u64) -> Outcome<()> {
        let result = "b".repeat(usize::try_from(bytes).unwrap_or(usize::MAX));
        self.tool("read_file", json!({ "path": "big.bin" }), Value::String(result), false).await
    }

    /// A tool that needs approval.
    pub(super) async fn approve(&mut self, tool: &str, key: u64) -> Outcome<()> {
        let call_id = self.lasting_call(key);
        let arguments = json!({ "command": "make letters" });
        let asked = self.host.read(|tx| tx.store.approval_of_step(&self.origin, key))?;
        if asked.is_none() {
            self.start_call(&call_id, tool, arguments.clone()).await?;
            let host = self.host.clone();
            let free = host.write(|tx| {
                let num = self.num;
                let allowed = tx.row(&self.session)?.details.approved_tools.iter().any(|allowed| allowed == tool);
                if allowed || !tx.has(feature::APPROVALS) || tx.host.allows_all(tx.store)? {
                    return Ok(true);
                }
                let approval = Approval {
                    approval_id: ApprovalId::from(tx.change(&self.session)?.new_id("approval")),
                    session_id: self.session.clone(),
                    run_id: self.run_id(),
                    call_id: Some(call_id.as_str().into()),
                    tool: Some(tool.to_owned()),
                    title: Some(format!("Run {tool}")),
                    arguments: Some(arguments),
                    state: "pending".to_owned(),
                    reason: None,
                    created_at: Some(tx.now),
                };
                tx.store.insert_approval(&ApprovalRow {
                    session: num,
                    approval: approval.clone(),
                    origin: self.origin.clone(),
                    step: key,
                })?;
                tx.event(
                    &self.session,
                    Some(&self.run.run_id),
                    EventData::ApprovalRequested { approval: Box::new(approval) },
                )?;
                Ok(false)
            })?;
            if free {
                self.pause(10).await;
                return self.finish_call(&call_id, json!({ "ran": tool }), false);
            }
        } else {
            // A run before this one began the call; it is ended here.
            self.open_call = Some(call_id.clone());
        }
        let decided = self
            .wait_for(|tx| {
                let row = tx.store.approval_of_step(&self.origin, key)?;
                Ok(row.map(|row| row.approval).filter(|approval| approval.state != "pending"))
            })
            .await?;
        match decided.state.as_str() {
            "approved" | "approved_session" => self.finish_call(&call_id, json!({ "ran": tool }), false),
            state => {
                let why = decided.reason.map_or_else(|| state.to_owned(), |reason| format!("{state}: {reason}"));
                self.finish_call(&call_id, Value::String(why), true)
            }
        }
    }

    /// Writes a file of the workspace and keeps what was there.
    pub(super) async fn write_file(&mut self, path: &str, text: &str) -> Outcome<()> {
        let call = self.new_call()?;
        self.start_call(&call, "write", json!({ "path": path, "text": text })).await?;
        self.pause(10).await;
        match self.write_checked(path, text) {
            Ok(()) => self.finish_call(&call, json!({ "written": text.len() }), false),
            Err(why) => self.finish_call(&call, Value::String(why), true),
        }
    }

    fn write_checked(&mut self, path: &str, text: &str) -> Result<(), String> {
        let relative = Path::new(path);
        if path.is_empty() || !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err("the path must be inside the workspace".to_owned());
        }
        let full = self.host.workspace.join(relative);
        if !stays_inside(&self.host.workspace, &full) {
            return Err("the path must be inside the workspace".to_owned());
        }
        let told = |error: std::io::Error| error.to_string();
        let before = match std::fs::metadata(&full) {
            Ok(meta) if meta.len() <= CHECKPOINT_BYTES => Some(std::fs::read(&full).map_err(told)?),
            // Too large to keep: the write is still done, a rewind leaves it alone.
            Ok(_) => None,
            Err(_) => None,
        };
        let eligible = before.is_some() || !full.exists();
        if eligible {
            let host = self.host.clone();
            host.write(|tx| {
                let seq = tx.row(&self.session)?.next_store;
                let after = Some(text.as_bytes().to_vec());
                tx.store.insert_checkpoint(self.num, &Checkpoint { seq, path: path.to_owned(), before, after })
            })
            .map_err(|failure| failure.message)?;
        }
        if let Some(folder) = full.parent() {
            std::fs::create_dir_all(folder).map_err(told)?;
        }
        std::fs::write(&full, text).map_err(told)
    }
}

/// Whether a path is inside the workspace also when links are followed.
fn stays_inside(workspace: &Path, full: &Path) -> bool {
    let Ok(workspace) = workspace.canonicalize() else { return false };
    full.ancestors()
        .find_map(|part| part.canonicalize().ok())
        .is_some_and(|existing| existing.starts_with(&workspace) && !full.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn links_do_not_lead_out() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), inside.path().join("out")).unwrap();
        std::os::unix::fs::symlink("/nowhere", inside.path().join("link")).unwrap();
        assert!(stays_inside(inside.path(), &inside.path().join("new/folder/file")));
        assert!(!stays_inside(inside.path(), &inside.path().join("out/file")));
        assert!(!stays_inside(inside.path(), &inside.path().join("link")));
    }
}
