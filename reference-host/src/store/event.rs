//! Durable events, by session and sequence.

use rusqlite::params;

use super::{Store, key, number, sequence_of};
use crate::failure::Outcome;

/// Some events, each as the JSON that was written.
#[derive(Debug, Default)]
pub(crate) struct EventPage {
    /// The events, with commas between.
    pub(crate) json: String,
    pub(crate) has_more: bool,
}

impl Store {
    pub(crate) fn insert_event(&self, session: i64, sequence: u64, features: u32, json: &str) -> Outcome<()> {
        self.db.prepare_cached("INSERT INTO events (key, features, json) VALUES (?, ?, ?)")?.execute(params![
            key(session, sequence),
            features,
            json
        ])?;
        Ok(())
    }

    /// Events after a sequence, of those whose features were all negotiated.
    pub(crate) fn events_after(&self, session: i64, after: u64, limit: u64, negotiated: u32) -> Outcome<EventPage> {
        let mut statement = self.db.prepare_cached(
            "SELECT json FROM events WHERE key > ? AND key < ? AND (features & ~?) = 0 ORDER BY key LIMIT ?",
        )?;
        let after = key(session, after.min((1 << super::SEQUENCE_BITS) - 1));
        let mut rows = statement.query(params![after, key(session + 1, 0), negotiated, number(limit + 1)])?;
        let mut page = EventPage::default();
        let mut count = 0;
        while let Some(row) = rows.next()? {
            if count == limit {
                page.has_more = true;
                break;
            }
            if count > 0 {
                page.json.push(',');
            }
            page.json.push_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
            count += 1;
        }
        Ok(page)
    }

    /// Keeps the newest events only; gives the sequence of the newest one that went.
    pub(crate) fn drop_events(&self, session: i64, keep: u64) -> Outcome<Option<u64>> {
        let mut statement = self
            .db
            .prepare_cached("SELECT key FROM events WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT 1 OFFSET ?")?;
        let mut rows = statement.query(params![key(session, 0), key(session + 1, 0), number(keep)])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let newest_gone: i64 = row.get(0)?;
        self.db
            .prepare_cached("DELETE FROM events WHERE key >= ? AND key <= ?")?
            .execute(params![key(session, 0), newest_gone])?;
        Ok(Some(sequence_of(newest_gone)))
    }
}
