//! The file of a recording: a header, then one JSON object a line, each a line that went over the connection.

use serde::Deserialize;
use serde_json::Value;

/// The version of the format that is read.
const VERSION: u64 = 1;

/// A recording, read.
#[derive(Debug, Clone)]
pub struct Recording {
    pub(super) lines: Vec<Recorded>,
}

/// A line that went over the connection.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Recorded {
    /// Microseconds since the beginning.
    pub(super) t: u64,
    pub(super) dir: Direction,
    pub(super) line: String,
}

/// Seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    /// From the host.
    In,
    /// To the host.
    Out,
    /// The host's stderr.
    Err,
}

impl Recording {
    /// Reads the text of a file. A last line that was cut off is left out; anything else that doesn't fit is an error
    /// that names the line.
    pub fn read(text: &str) -> Result<Recording, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Value>(line).ok());
        match header.as_ref().and_then(|header| header.get("kitportRecording")).and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => return Err(format!("this recording has version {other}; version {VERSION} can be read")),
            None => return Err("this is no recording: its first line isn't the header of one".to_owned()),
        }
        let mut recorded = Vec::new();
        let mut lines = lines.peekable();
        while let Some((number, line)) = lines.next() {
            match serde_json::from_str(line) {
                Ok(line) => recorded.push(line),
                Err(_) if lines.peek().is_none() && !text.ends_with('\n') => break,
                Err(error) => return Err(format!("line {}: {error}", number + 1)),
            }
        }
        Ok(Recording { lines: recorded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_told() {
        for (text, words) in [
            ("", "no recording"),
            ("{}\n", "no recording"),
            ("{\"kitportRecording\":2}\n", "version 2"),
            ("{\"kitportRecording\":1}\n{\"t\":1}\n", "line 2"),
            ("{\"kitportRecording\":1}\n{\"t\":1\n{\"t\":1,\"dir\":\"in\",\"line\":\"\"}\n", "line 2"),
        ] {
            let error = Recording::read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let text = "{\"kitportRecording\":1,\"more\":true}\n\n{\"at\":\"x\",\"t\":5,\"dir\":\"err\",\"line\":\"a\"}\n{\"t\":6,\"di";
        let recording = Recording::read(text).unwrap();
        assert_eq!(recording.lines.len(), 1);
        assert_eq!(recording.lines[0].dir, Direction::Err);
    }
}
