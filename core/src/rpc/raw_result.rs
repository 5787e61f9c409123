//! A result as the host wrote it.

use std::fmt;
use std::ops::Range;

/// The result of a call, unread.
///
/// It may be large, so it is not copied out of its line where the line can be kept instead.
#[derive(Clone)]
pub struct RawResult {
    line: String,
    at: Range<usize>,
}

impl RawResult {
    /// The result that stands at `at` in its line.
    pub(super) fn within(line: String, at: Range<usize>) -> Self {
        RawResult { line, at }
    }

    /// Its JSON.
    pub fn get(&self) -> &str {
        &self.line[self.at.clone()]
    }
}

impl From<&str> for RawResult {
    fn from(json: &str) -> Self {
        RawResult { line: json.to_owned(), at: 0..json.len() }
    }
}

impl fmt::Debug for RawResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it says is the host's and may be what a person typed.
        f.debug_struct("RawResult").field("bytes", &self.at.len()).finish_non_exhaustive()
    }
}
