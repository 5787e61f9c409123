//! Locks that a panic elsewhere does not poison: what they guard here is sound after any step, and one failed task must not
//! fail the rest of the app.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
