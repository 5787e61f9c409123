//! Checkpoints of files that the agent changed.

use rusqlite::params;

use super::{Store, number};
use crate::failure::Outcome;

/// A change of a file.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    /// The place in the history: the store sequence that the next message had.
    pub(crate) seq: u64,
    /// Relative to the workspace.
    pub(crate) path: String,
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Option<Vec<u8>>,
}

impl Store {
    pub(crate) fn insert_checkpoint(&self, session: i64, point: &Checkpoint) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO checkpoints (session, seq, path, before, after) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![session, number(point.seq), point.path, point.before, point.after])?;
        Ok(())
    }

    /// Changes at or after a place in the history, oldest first.
    pub(crate) fn checkpoints_from(&self, session: i64, seq: u64) -> Outcome<Vec<Checkpoint>> {
        let mut statement = self.db.prepare_cached(
            "SELECT seq, path, before, after FROM checkpoints WHERE session = ? AND seq >= ? ORDER BY num",
        )?;
        let rows = statement.query_map(params![session, number(seq)], |row| {
            Ok(Checkpoint {
                seq: row.get::<_, i64>(0)?.unsigned_abs(),
                path: row.get(1)?,
                before: row.get(2)?,
                after: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
