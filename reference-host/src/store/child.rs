//! Which step of which run started a child.

use kitport::model::{ChatId, RunId};
use rusqlite::params;

use super::{Store, number};
use crate::failure::Outcome;

impl Store {
    pub(crate) fn insert_child(&self, child: &ChatId, origin: &RunId, step: u64) -> Outcome<()> {
        self.db.prepare_cached("INSERT INTO children (child, origin, step) VALUES (?, ?, ?)")?.execute(params![
            child.as_str(),
            origin.as_str(),
            number(step)
        ])?;
        Ok(())
    }

    pub(crate) fn children_of_step(&self, origin: &RunId, step: u64) -> Outcome<Vec<ChatId>> {
        let mut statement =
            self.db.prepare_cached("SELECT child FROM children WHERE origin = ? AND step = ? ORDER BY num")?;
        let rows = statement.query_map(params![origin.as_str(), number(step)], |row| row.get::<_, String>(0))?;
        Ok(rows.map(|row| row.map(ChatId::from)).collect::<rusqlite::Result<_>>()?)
    }
}
