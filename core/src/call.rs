//! Time-outs of calls, the same for every method of every backend.
//!
//! The ports' methods take no option for it: a call is given its time where it is made, with
//! `backend.send(&chat, text).within(Duration::from_secs(5))`, and an adapter asks [`deadline`] for it. So a time-out
//! knows what the call was doing, which a timer around it would not: the error says whether the command had left.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static LIMIT: Limit;
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Each request of it as long as the backend's options say.
    Default,
    /// The whole call until then.
    Until(Instant),
    /// As long as it takes.
    None,
}

/// The limit of the call that is running.
pub fn limit() -> Limit {
    LIMIT.try_with(|limit| *limit).unwrap_or(Limit::Default)
}

/// Gives a call its own time-out.
pub trait CallExt: Future + Sized {
    /// The whole call may take `time`; then it fails with `KitError::Timeout`, which says what became of the command.
    fn within(self, time: Duration) -> impl Future<Output = Self::Output> + Send
    where
        Self: Send,
    {
        // A time beyond the clock's end is no limit.
        let limit = Instant::now().checked_add(time).map_or(Limit::None, Limit::Until);
        LIMIT.scope(limit, self)
    }

    /// The call may take as long as it takes.
    fn without_timeout(self) -> impl Future<Output = Self::Output> + Send
    where
        Self: Send,
    {
        LIMIT.scope(Limit::None, self)
    }
}

impl<F: Future> CallExt for F {}
