//! Configuration values, as JSON by key.

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::Store;
use crate::failure::Outcome;

impl Store {
    pub(crate) fn config(&self, key: &str) -> Outcome<Option<Value>> {
        let json: Option<String> = self
            .db
            .prepare_cached("SELECT value FROM meta WHERE key = ?")?
            .query_row([format!("config:{key}")], |row| row.get(0))
            .optional()?;
        Ok(json.map(|json| serde_json::from_str(&json)).transpose()?)
    }

    pub(crate) fn set_config(&self, key: &str, value: &Value) -> Outcome<()> {
        self.db
            .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")?
            .execute(params![format!("config:{key}"), value.to_string()])?;
        Ok(())
    }
}
