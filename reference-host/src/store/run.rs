//! Runs, with the script they play and how far they came.

use kitport::bubblepaw::wire::Run;
use kitport::model::{RunId, Time};
use rusqlite::{OptionalExtension, Row, params};

use super::{Store, number};
use crate::failure::Outcome;

/// A run as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct RunRow {
    pub(crate) session: i64,
    pub(crate) run: Run,
    /// The first of the runs that continue each other.
    pub(crate) origin: RunId,
    /// The text that the script was read from.
    pub(crate) script: String,
    /// The step that comes next.
    pub(crate) step: u64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let json: String = row.get(4)?;
    Ok(RunRow {
        session: row.get(0)?,
        origin: row.get::<_, String>(1)?.into(),
        script: row.get(2)?,
        step: row.get::<_, i64>(3)?.unsigned_abs(),
        run: serde_json::from_str(&json).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(4, rusqlite::types::Type::Text, Box::new(error))
        })?,
    })
}

const COLUMNS: &str = "session, origin, script, step, json";

impl Store {
    pub(crate) fn insert_run(&self, row: &RunRow) -> Outcome<()> {
        self.db
            .prepare_cached(
                "INSERT INTO runs (session, id, origin, status, script, step, json) VALUES (?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                row.session,
                row.run.run_id.as_str(),
                row.origin.as_str(),
                row.run.status,
                row.script,
                number(row.step),
                serde_json::to_string(&row.run)?,
            ])?;
        Ok(())
    }

    pub(crate) fn save_run(&self, run: &Run) -> Outcome<()> {
        self.db.prepare_cached("UPDATE runs SET status = ?, json = ? WHERE id = ?")?.execute(params![
            run.status,
            serde_json::to_string(run)?,
            run.run_id.as_str()
        ])?;
        Ok(())
    }

    pub(crate) fn save_run_step(&self, run: &RunId, step: u64) -> Outcome<()> {
        self.db
            .prepare_cached("UPDATE runs SET step = ? WHERE id = ?")?
            .execute(params![number(step), run.as_str()])?;
        Ok(())
    }

    pub(crate) fn runs(&self, session: i64) -> Outcome<Vec<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE session = ? ORDER BY num");
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows = statement.query_map([session], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn last_run(&self, session: i64) -> Outcome<Option<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE session = ? ORDER BY num DESC LIMIT 1");
        Ok(self.db.prepare_cached(&sql)?.query_row([session], read).optional()?)
    }

    /// Runs that went on when the host was killed are interrupted. No event tells it: state does.
    pub(super) fn interrupt_runs(&self) -> Outcome<()> {
        self.db.execute(
            "UPDATE runs SET status = 'interrupted', \
             json = json_remove(json_set(json, '$.status', 'interrupted', '$.finished_at', ?), '$.wait') \
             WHERE status IN ('running', 'waiting_for_quota')",
            [Time::now().to_string()],
        )?;
        Ok(())
    }
}
