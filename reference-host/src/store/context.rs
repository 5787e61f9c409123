//! Compactions, and the episodes and chapters they made.

use kitport::bubblepaw::wire::ContextEvent;
use rusqlite::{Row, params};

use super::{Store, number};
use crate::failure::Outcome;

/// An episode or a chapter: a span of store sequences with its summary.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    /// The chapter that an episode belongs to.
    pub(crate) chapter: Option<String>,
    /// The compaction that made it.
    pub(crate) compaction: String,
    pub(crate) text: String,
}

fn read(row: &Row<'_>) -> rusqlite::Result<Span> {
    Ok(Span {
        kind: row.get(0)?,
        id: row.get(1)?,
        title: row.get(2)?,
        first_seq: row.get::<_, i64>(3)?.unsigned_abs(),
        last_seq: row.get::<_, i64>(4)?.unsigned_abs(),
        chapter: row.get(5)?,
        compaction: row.get(6)?,
        text: row.get(7)?,
    })
}

impl Store {
    pub(crate) fn insert_span(&self, session: i64, span: &Span) -> Outcome<()> {
        self.db
            .prepare_cached(
                "INSERT INTO spans (session, kind, id, title, first_seq, last_seq, chapter, compaction, text) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                session,
                span.kind,
                span.id,
                span.title,
                number(span.first_seq),
                number(span.last_seq),
                span.chapter,
                span.compaction,
                span.text
            ])?;
        Ok(())
    }

    pub(crate) fn set_chapter(&self, episode: &str, chapter: &str) -> Outcome<()> {
        self.db.prepare_cached("UPDATE spans SET chapter = ? WHERE id = ?")?.execute([chapter, episode])?;
        Ok(())
    }

    /// All spans of a session, by place.
    pub(crate) fn spans(&self, session: i64) -> Outcome<Vec<Span>> {
        let mut statement = self.db.prepare_cached(
            "SELECT kind, id, title, first_seq, last_seq, chapter, compaction, text FROM spans WHERE session = ? \
             ORDER BY first_seq, num",
        )?;
        let rows = statement.query_map([session], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn insert_compaction(&self, session: i64, event: &ContextEvent) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO compactions (session, id, applied, json) VALUES (?, ?, ?, ?)")?
            .execute(params![session, event.event_id, event.applied, serde_json::to_string(event)?])?;
        Ok(())
    }

    /// Applies what was recorded but not applied yet; gives how many there were.
    pub(crate) fn apply_compactions(&self, session: i64) -> Outcome<usize> {
        Ok(self
            .db
            .prepare_cached(
                "UPDATE compactions SET applied = 1, json = json_set(json, '$.applied', json('true')) \
                 WHERE session = ? AND applied = 0",
            )?
            .execute([session])?)
    }

    pub(crate) fn compactions(&self, session: i64) -> Outcome<Vec<ContextEvent>> {
        let mut statement = self.db.prepare_cached("SELECT json FROM compactions WHERE session = ? ORDER BY num")?;
        let mut rows = statement.query([session])?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            events.push(serde_json::from_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
        }
        Ok(events)
    }
}
