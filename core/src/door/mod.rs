//! The door: every method and every stream of a backend by its name, with JSON in and out.
//!
//! It is what the language bindings wrap, so that their native part stays a handful of functions: a new method is one
//! row in the door's table, from which come the call, the check of its parameters and its entry in the schema. It knows
//! the ports and the model, and no adapter.

mod params;
mod reply;
#[cfg(feature = "schema")]
mod schema;
mod stream;
mod table;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::call::CallExt;
use crate::error::{KitError, Outcome, Result};
use crate::port::AgentBackend;

pub use params::finite;
#[cfg(feature = "schema")]
pub use schema::schema;
pub use stream::DoorStream;

use params::CallLimit;
use reply::Reply;
use table::{METHODS, Port, Row, STREAMS};

/// A backend whose methods and streams are called by name. Cheap to clone.
///
/// A backend that only reads fits too: its `impl AgentBackend` is empty.
#[derive(Clone)]
pub struct Door {
    backend: Arc<dyn AgentBackend>,
    runtime: Option<Handle>,
}

impl Door {
    /// A door to `backend`. Where it is made inside a tokio runtime, streams opened from outside are opened there.
    pub fn new(backend: Arc<dyn AgentBackend>) -> Self {
        Door { backend, runtime: Handle::try_current().ok() }
    }

    /// A door to `backend` whose streams are opened in `runtime`, whatever thread opens them.
    pub fn with_runtime(backend: Arc<dyn AgentBackend>, runtime: Handle) -> Self {
        Door { backend, runtime: Some(runtime) }
    }

    /// The backend behind it.
    pub fn backend(&self) -> &Arc<dyn AgentBackend> {
        &self.backend
    }

    /// Calls a method. `params` is an object of its parameters, or null for none; `timeoutMs` beside them limits the
    /// whole call, null takes every limit away.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value> {
        self.reply(method, params).await?.value()
    }

    /// The same from JSON text to JSON text: nothing is built in between, which counts for large results.
    pub async fn call_json(&self, method: &str, params: &str) -> Result<String> {
        let params = params::parse(method, params)?;
        self.reply(method, params).await?.json()
    }

    /// Opens a stream that opens at once: all but those that a command opens, which [`open_async`](Self::open_async)
    /// waits for.
    pub fn open(&self, stream: &str, params: Value) -> Result<DoorStream> {
        let row = find_stream(stream)?;
        if row.port == Port::AgentBackend {
            return Err(KitError::invalid(format!("{stream} sends a command first: open it with open_async")));
        }
        let _entered = self.runtime.as_ref().map(Handle::enter);
        let opened = std::panic::catch_unwind(AssertUnwindSafe(|| {
            (row.call)(self.backend.clone(), params).now_or_never().expect("a read's stream opens without waiting")
        }));
        opened.unwrap_or_else(|_| Err(panicked(stream, row.port)))
    }

    /// Opens any stream. One that a command opens takes `timeoutMs`, as every method does.
    pub async fn open_async(&self, stream: &str, params: Value) -> Result<DoorStream> {
        let row = find_stream(stream)?;
        if row.port == Port::ChatReader {
            return self.open(stream, params);
        }
        self.run(row, params).await
    }

    async fn reply(&self, method: &str, params: Value) -> Result<Reply> {
        if let Some(row) = METHODS.iter().find(|row| row.name == method) {
            return self.run(row, params).await;
        }
        if STREAMS.iter().any(|row| row.name == method) {
            return Err(KitError::invalid(format!("{method} is a stream: open it")));
        }
        let (limit, params) = params::split_limit(method, params)?;
        let call = async { self.backend.call_extension(method, params).await.map(Reply::new) };
        guarded(method, Port::AgentBackend, limit, call).await
    }

    async fn run<T>(&self, row: &Row<T>, params: Value) -> Result<T> {
        let (limit, params) = params::split_limit(row.name, params).map_err(|error| row.not_sent(error))?;
        // Inside the future, so that a panic before its first wait is caught too.
        let call = async { (row.call)(self.backend.clone(), params).await };
        guarded(row.name, row.port, limit, call).await
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

fn find_stream(stream: &str) -> Result<&'static Row<DoorStream>> {
    let row = STREAMS.iter().find(|row| row.name == stream);
    row.ok_or_else(|| KitError::invalid(format!("there is no stream {stream:?}")))
}

/// Gives the call its limit, and turns a panic into an error: the language on the other side must live on.
async fn guarded<T>(
    name: &str,
    port: Port,
    limit: CallLimit,
    call: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let call = AssertUnwindSafe(call).catch_unwind();
    let done = match limit {
        CallLimit::Default => call.await,
        CallLimit::Within(time) => call.within(time).await,
        CallLimit::None => call.without_timeout().await,
    };
    done.unwrap_or_else(|_| Err(panicked(name, port)))
}

/// The panic's own text may hold anything, so it stays where the panic hook put it.
fn panicked(name: &str, port: Port) -> KitError {
    let error = KitError::failed(format!("{name} failed: the backend panicked"));
    match port {
        Port::ChatReader => error,
        Port::AgentBackend => error.with_outcome(Outcome::Unknown),
    }
}

#[cfg(test)]
mod tests;
