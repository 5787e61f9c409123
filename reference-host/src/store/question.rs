//! Questions: who asked, and what became of them. Their text lives with the session that shows them.

use kitport::model::{QuestionId, RunId};
use rusqlite::{OptionalExtension, Row, params};

use super::{Store, number};
use crate::failure::Outcome;

/// A question as it is kept. `state`: pending, answered, expired.
#[derive(Debug, Clone)]
pub(crate) struct QuestionRow {
    /// The session that asks.
    pub(crate) session: i64,
    pub(crate) id: QuestionId,
    pub(crate) origin: RunId,
    pub(crate) step: u64,
    pub(crate) state: String,
    pub(crate) answer: Option<String>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<QuestionRow> {
    Ok(QuestionRow {
        session: row.get(0)?,
        id: row.get::<_, String>(1)?.into(),
        origin: row.get::<_, String>(2)?.into(),
        step: row.get::<_, i64>(3)?.unsigned_abs(),
        state: row.get(4)?,
        answer: row.get(5)?,
    })
}

const COLUMNS: &str = "session, id, origin, step, state, answer";

impl Store {
    pub(crate) fn insert_question(&self, row: &QuestionRow) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO questions (session, id, origin, step, state) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![row.session, row.id.as_str(), row.origin.as_str(), number(row.step), row.state])?;
        Ok(())
    }

    pub(crate) fn save_question(&self, id: &QuestionId, state: &str, answer: Option<&str>) -> Outcome<()> {
        self.db.prepare_cached("UPDATE questions SET state = ?, answer = ? WHERE id = ?")?.execute(params![
            state,
            answer,
            id.as_str()
        ])?;
        Ok(())
    }

    pub(crate) fn question(&self, session: i64, id: &str) -> Outcome<Option<QuestionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM questions WHERE session = ? AND id = ?");
        Ok(self.db.prepare_cached(&sql)?.query_row(params![session, id], read).optional()?)
    }

    /// The question that a step asked.
    pub(crate) fn question_of_step(&self, origin: &RunId, step: u64) -> Outcome<Option<QuestionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM questions WHERE origin = ? AND step = ? ORDER BY num DESC LIMIT 1");
        Ok(self.db.prepare_cached(&sql)?.query_row(params![origin.as_str(), number(step)], read).optional()?)
    }

    pub(crate) fn pending_questions(&self, session: i64) -> Outcome<Vec<QuestionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM questions WHERE session = ? AND state = 'pending' ORDER BY num");
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows = statement.query_map([session], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
