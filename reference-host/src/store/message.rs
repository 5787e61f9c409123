//! Canonical messages, by session and store sequence.

use kitport::bubblepaw::wire::Message;
use rusqlite::{OptionalExtension, params};

use super::{Store, key, number, sequence_of};
use crate::failure::Outcome;

/// Some messages of a range.
#[derive(Debug, Default)]
pub(crate) struct MessagePage {
    /// Store sequence and message.
    pub(crate) entries: Vec<(u64, Box<str>)>,
    /// Where the next page begins.
    pub(crate) next: Option<u64>,
}

impl Store {
    pub(crate) fn insert_message(&self, session: i64, sequence: u64, message: &Message) -> Outcome<()> {
        let json = serde_json::to_string(message)?;
        self.insert_message_json(session, sequence, &json)
    }

    pub(crate) fn insert_message_json(&self, session: i64, sequence: u64, json: &str) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT INTO messages (key, json) VALUES (?, ?)")?
            .execute(params![key(session, sequence), json])?;
        Ok(())
    }

    /// Appends all messages of a session, with commas between.
    pub(crate) fn append_messages(&self, session: i64, to: &mut String) -> Outcome<()> {
        let mut statement =
            self.db.prepare_cached("SELECT json FROM messages WHERE key >= ? AND key < ? ORDER BY key")?;
        let mut rows = statement.query([key(session, 0), key(session + 1, 0)])?;
        let mut first = true;
        while let Some(row) = rows.next()? {
            if !std::mem::take(&mut first) {
                to.push(',');
            }
            to.push_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
        }
        Ok(())
    }

    pub(crate) fn message_range(&self, session: i64, first: u64, last: u64, limit: u64) -> Outcome<MessagePage> {
        let top = (1 << super::SEQUENCE_BITS) - 1;
        let mut statement = self
            .db
            .prepare_cached("SELECT key, json FROM messages WHERE key >= ? AND key <= ? ORDER BY key LIMIT ?")?;
        let mut rows =
            statement.query(params![key(session, first.min(top)), key(session, last.min(top)), number(limit + 1)])?;
        let mut page = MessagePage::default();
        while let Some(row) = rows.next()? {
            let sequence = sequence_of(row.get(0)?);
            if page.entries.len() as u64 == limit {
                page.next = Some(sequence);
                break;
            }
            page.entries.push((sequence, row.get::<_, Box<str>>(1)?));
        }
        Ok(page)
    }

    pub(crate) fn message(&self, session: i64, sequence: u64) -> Outcome<Option<Message>> {
        let json: Option<String> = self
            .db
            .prepare_cached("SELECT json FROM messages WHERE key = ?")?
            .query_row([key(session, sequence)], |row| row.get(0))
            .optional()?;
        Ok(json.map(|json| serde_json::from_str(&json)).transpose()?)
    }
}
