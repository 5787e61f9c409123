//! Approvals, in all states.

use kitport::bubblepaw::wire::Approval;
use kitport::model::RunId;
use rusqlite::{OptionalExtension, Row, params};

use super::{Store, number};
use crate::failure::Outcome;

/// An approval as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalRow {
    pub(crate) session: i64,
    pub(crate) approval: Approval,
    /// The first of the runs that continue each other, and its step that asks: a run that is resumed asks nothing twice.
    pub(crate) origin: RunId,
    pub(crate) step: u64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    let json: String = row.get(3)?;
    Ok(ApprovalRow {
        session: row.get(0)?,
        origin: row.get::<_, String>(1)?.into(),
        step: row.get::<_, i64>(2)?.unsigned_abs(),
        approval: serde_json::from_str(&json).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
        })?,
    })
}

const COLUMNS: &str = "session, origin, step, json";

impl Store {
    pub(crate) fn insert_approval(&self, row: &ApprovalRow) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO approvals (session, id, origin, step, state, json) VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![
                row.session,
                row.approval.approval_id.as_str(),
                row.origin.as_str(),
                number(row.step),
                row.approval.state,
                serde_json::to_string(&row.approval)?,
            ])?;
        Ok(())
    }

    pub(crate) fn save_approval(&self, approval: &Approval) -> Outcome<()> {
        self.db.prepare_cached("UPDATE approvals SET state = ?, json = ? WHERE id = ?")?.execute(params![
            approval.state,
            serde_json::to_string(approval)?,
            approval.approval_id.as_str()
        ])?;
        Ok(())
    }

    pub(crate) fn approval(&self, id: &str) -> Outcome<Option<ApprovalRow>> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = ?");
        Ok(self.db.prepare_cached(&sql)?.query_row([id], read).optional()?)
    }

    /// The approval that a step asked for.
    pub(crate) fn approval_of_step(&self, origin: &RunId, step: u64) -> Outcome<Option<ApprovalRow>> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE origin = ? AND step = ? ORDER BY num DESC LIMIT 1");
        Ok(self.db.prepare_cached(&sql)?.query_row(params![origin.as_str(), number(step)], read).optional()?)
    }

    pub(crate) fn approvals(&self, session: i64) -> Outcome<Vec<ApprovalRow>> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE session = ? ORDER BY num");
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows = statement.query_map([session], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
