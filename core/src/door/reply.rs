//! The result of a method, not yet turned into JSON: as a value or as text, whichever the caller wants.

use serde::Serialize;
use serde_json::Value;

use crate::error::{KitError, Result};

pub(super) struct Reply(Box<dyn AnyReply>);

impl Reply {
    pub(super) fn new(result: impl Serialize + Send + 'static) -> Self {
        Reply(Box::new(result))
    }

    pub(super) fn value(&self) -> Result<Value> {
        self.0.value().map_err(no_json)
    }

    pub(super) fn json(&self) -> Result<String> {
        self.0.json().map_err(no_json)
    }
}

/// `serde::Serialize` is not object-safe; these two uses of it are.
trait AnyReply: Send {
    fn value(&self) -> serde_json::Result<Value>;
    fn json(&self) -> serde_json::Result<String>;
}

impl<T: Serialize + Send> AnyReply for T {
    fn value(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// The model always has a JSON form; this is for what an adapter's own extension may give.
pub(super) fn no_json(error: serde_json::Error) -> KitError {
    KitError::failed("the result has no JSON form").with_source(error)
}
