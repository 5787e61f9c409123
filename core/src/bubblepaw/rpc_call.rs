//! One request of the contract, by its type.

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::errors;
use super::wire::Method;
use crate::call::{Limit, limit};
use crate::error::{KitError, Outcome, Result};
use crate::rpc::{Client, RawResult, Timeout};

/// The time that the running call still has.
pub(crate) fn time_left(method: &str) -> Result<Timeout> {
    match limit() {
        Limit::Default => Ok(Timeout::Default),
        Limit::None => Ok(Timeout::Never),
        Limit::Until(end) => match end.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Timeout::After(left)),
            _ => Err(KitError::timeout(method).with_outcome(Outcome::NotSent)),
        },
    }
}

/// Sends `M` and gives its answer, unread.
pub(crate) async fn raw<M: Method>(client: &Client, params: &M::Params, timeout: Timeout) -> Result<RawResult> {
    client.call(M::NAME, params, timeout).await.map_err(|error| errors::kit_error(M::NAME, error))
}

/// Reads the answer of `M`, as the wire's type or as one that takes the same JSON.
pub(crate) fn read<M: Method, R: DeserializeOwned>(answer: &RawResult) -> Result<R> {
    serde_json::from_str(answer.get()).map_err(|_| errors::unreadable(M::NAME))
}
