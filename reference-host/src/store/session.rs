//! Sessions: counters in columns, the rest as JSON.

use kitport::bubblepaw::wire::{Child, Question, SessionMeta, Todo, Usage};
use kitport::model::{ChatId, Time};
use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{Store, number};
use crate::failure::Outcome;

/// A session as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) num: i64,
    pub(crate) id: ChatId,
    pub(crate) parent: Option<ChatId>,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    /// The sequence of the newest event; 0 before the first.
    pub(crate) last_event: u64,
    /// The sequence that the next event takes.
    pub(crate) next_event: u64,
    /// The sequence of the newest event that retention dropped.
    pub(crate) dropped: u64,
    /// The sequence that the next message takes.
    pub(crate) next_store: u64,
    /// The number that the next id takes.
    pub(crate) next_id: u64,
    pub(crate) details: Details,
}

/// What is read and written as one JSON value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Details {
    pub(crate) title: String,
    /// Whether the title still waits for the first message.
    pub(crate) untitled: bool,
    pub(crate) model: Option<String>,
    pub(crate) todo: Vec<Todo>,
    pub(crate) question: Option<Question>,
    pub(crate) usage: Option<Usage>,
    /// Tools that were approved for the whole session.
    pub(crate) approved_tools: Vec<String>,
    pub(crate) child: Option<ChildDetails>,
}

/// What a session is to its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildDetails {
    pub(crate) state: String,
    pub(crate) question: Option<Question>,
    pub(crate) result: Option<String>,
}

impl SessionRow {
    pub(crate) fn meta(&self) -> SessionMeta {
        SessionMeta {
            session_id: self.id.clone(),
            title: self.details.title.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            parent_id: self.parent.clone(),
            model: self.details.model.clone(),
        }
    }

    /// The session as its parent sees it.
    pub(crate) fn as_child(&self) -> Option<Child> {
        let details = self.details.child.as_ref()?;
        Some(Child {
            session_id: self.id.clone(),
            parent_id: self.parent.clone()?,
            title: self.details.title.clone(),
            state: details.state.clone(),
            question: details.question.clone(),
            result: details.result.clone(),
        })
    }

    /// An id of its own kind, unique in the store: the session's number and a count in it.
    pub(crate) fn new_id(&mut self, kind: &str) -> String {
        let id = format!("{kind}_{}_{}", self.num, self.next_id);
        self.next_id += 1;
        id
    }
}

const COLUMNS: &str =
    "num, id, parent, created_at, updated_at, last_event, next_event, dropped, next_store, next_id, details";

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::<jiff_error::Error>::new(error),
        )
    })
}

/// The error type of the model's time, named here alone.
mod jiff_error {
    pub(super) type Error = <kitport::model::Time as std::str::FromStr>::Err;
}

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let details: String = row.get(10)?;
    Ok(SessionRow {
        num: row.get(0)?,
        id: row.get::<_, String>(1)?.into(),
        parent: row.get::<_, Option<String>>(2)?.map(ChatId::from),
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
        last_event: row.get::<_, i64>(5)?.unsigned_abs(),
        next_event: row.get::<_, i64>(6)?.unsigned_abs(),
        dropped: row.get::<_, i64>(7)?.unsigned_abs(),
        next_store: row.get::<_, i64>(8)?.unsigned_abs(),
        next_id: row.get::<_, i64>(9)?.unsigned_abs(),
        details: serde_json::from_str(&details).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(10, rusqlite::types::Type::Text, Box::new(error))
        })?,
    })
}

impl Store {
    /// The number that the next session takes.
    pub(crate) fn next_session_number(&self) -> Outcome<i64> {
        Ok(self.db.query_row("SELECT coalesce(max(num), 0) + 1 FROM sessions", [], |row| row.get(0))?)
    }

    pub(crate) fn insert_session(&self, row: &SessionRow) -> Outcome<()> {
        self.db
            .prepare_cached(
                "INSERT INTO sessions (num, id, parent, created_at, updated_at, last_event, next_event, dropped, \
                 next_store, next_id, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                row.num,
                row.id.as_str(),
                row.parent.as_deref(),
                row.created_at.to_string(),
                row.updated_at.to_string(),
                number(row.last_event),
                number(row.next_event),
                number(row.dropped),
                number(row.next_store),
                number(row.next_id),
                serde_json::to_string(&row.details)?,
            ])?;
        Ok(())
    }

    pub(crate) fn save_session(&self, row: &SessionRow) -> Outcome<()> {
        self.db
            .prepare_cached(
                "UPDATE sessions SET updated_at = ?, last_event = ?, next_event = ?, dropped = ?, next_store = ?, \
                 next_id = ?, details = ? WHERE num = ?",
            )?
            .execute(params![
                row.updated_at.to_string(),
                number(row.last_event),
                number(row.next_event),
                number(row.dropped),
                number(row.next_store),
                number(row.next_id),
                serde_json::to_string(&row.details)?,
                row.num,
            ])?;
        Ok(())
    }

    pub(crate) fn session(&self, id: &str) -> Outcome<Option<SessionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?");
        Ok(self.db.prepare_cached(&sql)?.query_row([id], read).optional()?)
    }

    /// Sessions created before the one numbered `before`, newest first; all of them without a limit.
    pub(crate) fn sessions(&self, before: Option<i64>, limit: Option<u64>) -> Outcome<Vec<SessionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE num < ? ORDER BY num DESC LIMIT ?");
        let mut statement = self.db.prepare_cached(&sql)?;
        let limit = limit.map_or(-1, number);
        let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn children_of(&self, parent: &str) -> Outcome<Vec<SessionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE parent = ? ORDER BY num");
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows = statement.query_map([parent], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Children that went on when the host was killed are interrupted.
    pub(super) fn interrupt_children(&self) -> Outcome<()> {
        self.db.execute(
            "UPDATE sessions SET details = json_set(details, '$.child.state', 'interrupted') \
             WHERE json_extract(details, '$.child.state') IN ('running', 'waiting')",
            [],
        )?;
        Ok(())
    }
}
