//! Sessions: lists, state, titles, rewinding, events.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitport::bubblepaw::wire::{
    Child, EventsAfter, Run, SessionList, SessionListResult, SessionOpen, SessionRename, SessionResult, SessionRewind,
    SessionState, feature,
};
use serde::Serialize;

use super::request::Request;
use super::{nothing, result};
use crate::failure::{Failure, Outcome};
use crate::host::{Host, Tx, message_id, message_place};
use crate::store::Checkpoint;

/// Sessions of a page, and events of a page, at most.
const PAGE: u64 = 1000;

/// What a cursor of the list begins with.
const CURSOR: &str = "before:";

pub(super) fn list(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<SessionList>()?;
    if !host.has(feature::PAGINATION) {
        let sessions = host.read(|tx| tx.store.sessions(None, None))?;
        let sessions = sessions.iter().map(|row| row.meta()).collect();
        return result::<SessionList>(&SessionListResult { sessions, next_cursor: None });
    }
    let before = match &asked.cursor {
        None => None,
        Some(cursor) => {
            let num = cursor.strip_prefix(CURSOR).and_then(|num| num.parse::<i64>().ok());
            Some(num.ok_or_else(|| Failure::refused("invalid cursor"))?)
        }
    };
    let limit = asked.limit.unwrap_or(100).clamp(1, PAGE);
    let mut rows = host.read(|tx| tx.store.sessions(before, Some(limit + 1)))?;
    let more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = more.then(|| rows.last().map(|row| format!("{CURSOR}{}", row.num))).flatten();
    let sessions = rows.iter().map(|row| row.meta()).collect();
    result::<SessionList>(&SessionListResult { sessions, next_cursor })
}

pub(super) fn open(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<SessionOpen>()?;
    let title = asked.title.as_deref().map(checked_title).transpose()?;
    let session = host.write(|tx| {
        let id = tx.new_session(title, None)?;
        Ok(tx.row(&id)?.meta())
    })?;
    result::<SessionOpen>(&SessionResult { session })
}

pub(super) fn rename(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<SessionRename>()?;
    let title = checked_title(&asked.title)?;
    host.write(|tx| {
        let details = &mut tx.change(&asked.session_id)?.details;
        details.title = title.to_owned();
        details.untitled = false;
        Ok(())
    })?;
    nothing()
}

fn checked_title(title: &str) -> Outcome<&str> {
    match title.trim() {
        "" => Err(Failure::refused("title must not be blank")),
        title => Ok(title),
    }
}

pub(super) fn state(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<SessionState>()?;
    host.read(|tx| {
        let row = tx.row(&asked.session_id)?.clone();
        // Messages and outputs are put in as they are stored: a long session isn't read and written again for nothing.
        let mut json = String::from("{");
        let mut field = |name: &str, value: &dyn erased::Json| -> Outcome<()> {
            json.push('"');
            json.push_str(name);
            json.push_str("\":");
            value.write(&mut json)?;
            json.push(',');
            Ok(())
        };
        field("session", &row.meta())?;
        field("sequence", &row.last_event)?;
        let runs: Vec<Run> = tx.store.runs(row.num)?.into_iter().map(|row| row.run).collect();
        field("runs", &runs)?;
        field("inputs", &tx.store.inputs(row.num, None)?)?;
        let todo = if tx.has(feature::PLAN) { &row.details.todo[..] } else { &[] };
        field("todo", &todo)?;
        if tx.has(feature::QUESTIONS)
            && let Some(question) = &row.details.question
        {
            field("question", question)?;
        }
        if let Some(usage) = &row.details.usage {
            field("usage", usage)?;
        }
        if tx.has(feature::CHILD_EVENTS) {
            let children: Vec<Child> =
                tx.store.children_of(&row.id)?.iter().filter_map(|child| child.as_child()).collect();
            field("children", &children)?;
        }
        json.push_str("\"outputs\":[");
        tx.store.append_outputs(row.num, &mut json)?;
        json.push_str("],\"messages\":[");
        tx.store.append_messages(row.num, &mut json)?;
        json.push_str("]}");
        Ok(json)
    })
}

/// Any value that can be written as JSON, behind a pointer.
mod erased {
    use super::{Outcome, Serialize};

    pub(super) trait Json {
        fn write(&self, to: &mut String) -> Outcome<()>;
    }

    impl<T: Serialize> Json for T {
        fn write(&self, to: &mut String) -> Outcome<()> {
            to.push_str(&serde_json::to_string(self)?);
            Ok(())
        }
    }
}

pub(super) fn events_after(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<EventsAfter>()?;
    if asked.limit == 0 {
        return Err(Failure::params("limit must be at least 1"));
    }
    host.read(|tx| {
        let row = tx.row(&asked.session_id)?;
        let (num, dropped) = (row.num, row.dropped);
        if asked.after < dropped {
            return Ok(r#"{"events":[],"has_more":false,"resync":true}"#.to_owned());
        }
        let page = tx.store.events_after(num, asked.after, asked.limit.min(PAGE), host.negotiated())?;
        Ok(format!(r#"{{"events":[{}],"has_more":{}}}"#, page.json, page.has_more))
    })
}

pub(super) fn rewind(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<SessionRewind>()?;
    let (session, points) = host.write(|tx| {
        let source = tx.row(&asked.session_id)?.clone();
        let unknown = || Failure::refused(format!("unknown message: {}", asked.message_id));
        let (num, last) = message_place(&asked.message_id).ok_or_else(unknown)?;
        if num != source.num || tx.store.message(num, last)?.is_none() {
            return Err(unknown());
        }
        let id = tx.new_session(Some(&format!("{} (rewound)", source.details.title)), None)?;
        copy_history(tx, source.num, last, &id)?;
        let points = tx.store.checkpoints_from(source.num, last + 1)?;
        Ok((tx.row(&id)?.meta(), points))
    })?;
    for (path, before) in to_restore(host, points) {
        let full = host.workspace.join(&path);
        let restored = match before {
            Some(bytes) => std::fs::write(&full, bytes),
            None => std::fs::remove_file(&full),
        };
        if let Err(error) = restored {
            eprintln!("kitport-host: a file could not be restored: {error}");
        }
    }
    result::<SessionRewind>(&SessionResult { session })
}

/// Copies messages up to and with a place, and the runs they belong to.
fn copy_history(tx: &mut Tx<'_>, source: i64, last: u64, to: &kitport::model::ChatId) -> Outcome<()> {
    let mut runs = BTreeMap::new();
    for mut row in tx.store.runs(source)? {
        let old = row.run.run_id.clone();
        let target = tx.change(to)?;
        row.session = target.num;
        row.run.run_id = target.new_id("run").into();
        row.origin = row.run.run_id.clone();
        if matches!(row.run.status.as_str(), "running" | "waiting_for_quota") {
            // The copy has an end where the original goes on.
            row.run.status = "cancelled".to_owned();
            row.run.wait = None;
        }
        runs.insert(old, (row, false));
    }
    for (_, json) in tx.store.message_range(source, 1, last, u64::MAX >> 24)?.entries {
        let mut message: kitport::bubblepaw::wire::Message = serde_json::from_str(&json)?;
        if let Some(run) = &message.run_id
            && let Some((row, used)) = runs.get_mut(run)
        {
            *used = true;
            message.run_id = Some(row.run.run_id.clone());
        }
        let target = tx.change(to)?;
        let (num, sequence) = (target.num, target.next_store);
        target.next_store += 1;
        message.message_id = message_id(num, sequence).into();
        tx.store.insert_message(num, sequence, &message)?;
    }
    for (row, used) in runs.into_values() {
        if used {
            tx.store.insert_run(&row)?;
        }
    }
    Ok(())
}

/// A file to be put back.
struct Restore {
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

/// What each file held before the oldest of the changes, for files that are still as the agent left them.
fn to_restore(host: &Host, points: Vec<Checkpoint>) -> Vec<(String, Option<Vec<u8>>)> {
    let mut files: BTreeMap<String, Restore> = BTreeMap::new();
    for Checkpoint { path, before, after, .. } in points {
        match files.get_mut(&path) {
            Some(file) => file.after = after,
            None => drop(files.insert(path, Restore { before, after })),
        }
    }
    files.retain(|path, file| std::fs::read(host.workspace.join(path)).ok() == file.after);
    files.into_iter().map(|(path, file)| (path, file.before)).collect()
}
