//! The steps of a scenario, as its file has them.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One step. Its first word tells what it is.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Calls a method of the door. Its result, or its error, is part of what is expected.
    Call(Call),
    /// Opens a stream of the door.
    Open(Open),
    /// Waits until a stream gives items that have these fields.
    Await(Await),
    /// Reads a stream to its end. Its error is part of what is expected, what comes before it is not.
    Ended(Ended),
    /// Closes the backend and starts the same host anew. Streams that were open are over.
    Restart(Restart),
}

/// Calls a method.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The method, by its name at the door.
    pub call: String,
    /// Its parameters. A string that begins with `$` is a variable's value, `$chat.id` a field of it.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The variable that keeps the result.
    #[serde(default, rename = "as")]
    pub keep: Option<String>,
    /// The result's fields that are expected; all where none are named.
    #[serde(default)]
    pub only: Vec<String>,
    /// How often it is called; the last result counts.
    #[serde(default = "once")]
    pub times: u32,
}

/// Opens a stream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The stream, by its name at the door.
    pub open: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The name it has from now on.
    #[serde(rename = "as")]
    pub name: String,
}

/// Waits for an item of a stream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    /// The stream.
    #[serde(rename = "await")]
    pub stream: String,
    /// Fields that the item has, objects in it by their own fields. A list: an item for each, in any order.
    #[serde(rename = "where")]
    pub fields: Value,
    /// The variable that keeps the item, or the last of the list's.
    #[serde(default, rename = "as")]
    pub keep: Option<String>,
}

/// Reads a stream to its end.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The stream.
    pub ended: String,
}

/// Starts the host anew.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// True.
    pub restart: bool,
}

fn once() -> u32 {
    1
}
