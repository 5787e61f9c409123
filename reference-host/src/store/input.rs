//! Queued inputs and publications.

use kitport::bubblepaw::wire::{Input, Output};
use rusqlite::params;

use super::Store;
use crate::failure::Outcome;

impl Store {
    pub(crate) fn insert_input(&self, session: i64, input: &Input) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO inputs (session, id, kind, json) VALUES (?, ?, ?, ?)")?
            .execute(params![session, input.input_id.as_str(), input.kind, serde_json::to_string(input)?])?;
        Ok(())
    }

    pub(crate) fn delete_input(&self, id: &str) -> Outcome<()> {
        self.db.prepare_cached("DELETE FROM inputs WHERE id = ?")?.execute([id])?;
        Ok(())
    }

    /// The queue of a session, oldest first; of one kind where it is named.
    pub(crate) fn inputs(&self, session: i64, kind: Option<&str>) -> Outcome<Vec<Input>> {
        let mut statement = self
            .db
            .prepare_cached("SELECT json FROM inputs WHERE session = ?1 AND (?2 IS NULL OR kind = ?2) ORDER BY num")?;
        let mut rows = statement.query(params![session, kind])?;
        let mut inputs = Vec::new();
        while let Some(row) = rows.next()? {
            inputs.push(serde_json::from_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
        }
        Ok(inputs)
    }

    pub(crate) fn insert_output(&self, session: i64, output: &Output) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO outputs (session, json) VALUES (?, ?)")?
            .execute(params![session, serde_json::to_string(output)?])?;
        Ok(())
    }

    /// Appends all publications of a session, with commas between.
    pub(crate) fn append_outputs(&self, session: i64, to: &mut String) -> Outcome<()> {
        let mut statement = self.db.prepare_cached("SELECT json FROM outputs WHERE session = ? ORDER BY num")?;
        let mut rows = statement.query([session])?;
        let mut first = true;
        while let Some(row) = rows.next()? {
            if !std::mem::take(&mut first) {
                to.push(',');
            }
            to.push_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
        }
        Ok(())
    }
}
