//! The store: everything that must outlive the process, in SQLite. It knows rows and JSON, nothing of connections and
//! of what is told to whom.
//!
//! Rows keep the wire's own JSON where a thing is written once and handed out often (events, messages, outputs), so
//! that answers are put together without reading it again.

mod approval;
mod child;
mod config;
mod context;
mod event;
mod file;
mod input;
mod message;
mod question;
mod run;
mod session;

use std::path::Path;

use rusqlite::Connection;

pub(crate) use approval::ApprovalRow;
pub(crate) use context::Span;
pub(crate) use file::Checkpoint;
pub(crate) use question::QuestionRow;
pub(crate) use run::RunRow;
pub(crate) use session::{ChildDetails, Details, SessionRow};

use crate::failure::Outcome;

/// Bits of a key that a sequence takes: a session may have 2^40 events, and there may be 2^23 sessions.
const SEQUENCE_BITS: u32 = 40;

/// How long a database that another process still writes is waited for: a host that was told to end takes a moment.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// The database of a host.
#[derive(Debug)]
pub(crate) struct Store {
    db: Connection,
}

fn key(session: i64, sequence: u64) -> i64 {
    (session << SEQUENCE_BITS) | i64::try_from(sequence).expect("a sequence fits 40 bits")
}

fn sequence_of(key: i64) -> u64 {
    (key & ((1 << SEQUENCE_BITS) - 1)).unsigned_abs()
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Store {
    /// Opens a file, or a database in memory, and marks what a host that was killed left going on.
    pub(crate) fn open(path: Option<&Path>) -> Outcome<Store> {
        let db = match path {
            Some(path) => Connection::open(path)?,
            None => Connection::open_in_memory()?,
        };
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(64);
        // A killed process loses nothing in WAL mode without a sync at each commit; only a power cut would.
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.execute_batch(include_str!("schema.sql"))?;
        let store = Store { db };
        store.begin()?;
        store.interrupt_runs()?;
        store.interrupt_children()?;
        store.commit()?;
        Ok(store)
    }

    pub(crate) fn begin(&self) -> Outcome<()> {
        Ok(self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)?)
    }

    pub(crate) fn commit(&self) -> Outcome<()> {
        Ok(self.db.prepare_cached("COMMIT")?.execute([]).map(drop)?)
    }

    pub(crate) fn rollback(&self) {
        // A transaction that SQLite already rolled back by itself can't be rolled back again: nothing to do then.
        let _ = self.db.execute("ROLLBACK", []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_sessions_apart_and_sequences_in_order() {
        assert!(key(1, 5) < key(1, 6));
        assert!(key(1, (1 << SEQUENCE_BITS) - 1) < key(2, 0));
        assert_eq!(sequence_of(key(77, 123_456)), 123_456);
    }
}
