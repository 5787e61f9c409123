//! The file that a [`Recorder`](super::Recorder) writes, and reading it again.
//!
//! One JSON object a line. A header stands before the lines of each connection; the lines carry what went over it in
//! either direction, with the time since the connection's start.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The version of the format.
pub(super) const RECORDING_VERSION: u32 = 1;

/// Which way a line went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the host.
    In,
    /// To the host.
    Out,
    /// From the host's stderr.
    Err,
}

/// What stands before the lines of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RecordingHeader {
    /// The version of the format.
    #[serde(rename = "kitportRecording")]
    pub version: u32,
    /// When the connection began, as RFC 3339.
    #[serde(default)]
    pub at: String,
    /// The host's program, where it was spawned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// A recorded line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recorded {
    /// When, as RFC 3339.
    pub at: String,
    /// Microseconds since the connection's start.
    #[serde(rename = "t")]
    pub micros: u64,
    /// Which way it went.
    pub dir: Direction,
    /// The line, secrets masked.
    pub line: String,
    /// It was no valid UTF-8: what was not stands as U+FFFD.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lossy: bool,
    /// It was over the line limit: this is its beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oversize: bool,
    /// Which connection of the file it belongs to, from 0.
    #[serde(skip)]
    pub connection: usize,
}

/// Stands where lines are missing, because the disk was full or too slow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Missing {
    pub(super) dropped: u64,
}

/// Reads a recording, line by line.
pub struct Recording {
    lines: io::Split<Box<dyn BufRead + Send>>,
    header: RecordingHeader,
    connection: usize,
    dropped: u64,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Recording {
    /// Opens a recording. Fails where the file is none, or of a version that is not known here.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Self> {
        Recording::from_reader(File::open(path)?)
    }

    /// Reads a recording from anything.
    pub fn from_reader(reader: impl Read + Send + 'static) -> io::Result<Self> {
        let reader: Box<dyn BufRead + Send> = Box::new(BufReader::new(reader));
        let mut lines = reader.split(b'\n');
        let first = lines.next().transpose()?.unwrap_or_default();
        let header: RecordingHeader = serde_json::from_slice(&first)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a recording"))?;
        if header.version != RECORDING_VERSION {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a recording of another version"));
        }
        Ok(Recording { lines, header, connection: 0, dropped: 0 })
    }

    /// The header of the first connection.
    pub fn header(&self) -> &RecordingHeader {
        &self.header
    }

    /// How many lines are known to be missing, of what was read so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Iterator for Recording {
    type Item = io::Result<Recorded>;

    fn next(&mut self) -> Option<Self::Item> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Entry {
            Line(Recorded),
            Header(#[expect(dead_code, reason = "only its being there counts")] RecordingHeader),
            Missing(Missing),
        }
        loop {
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(Entry::Line(mut recorded)) => {
                    recorded.connection = self.connection;
                    return Some(Ok(recorded));
                }
                Ok(Entry::Header(_)) => self.connection += 1,
                Ok(Entry::Missing(missing)) => self.dropped += missing.dropped,
                Err(_) => return Some(Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is no recording"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Recording> {
        Recording::from_reader(io::Cursor::new(text.to_owned()))
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused() {
        for text in ["", "hello\n", "{}\n", "{\"kitportRecording\":2}\n"] {
            assert_eq!(read(text).unwrap_err().kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn lines_connections_and_gaps_are_read() {
        let text = concat!(
            "{\"kitportRecording\":1,\"at\":\"x\",\"program\":\"host\",\"later\":1}\n",
            "{\"at\":\"x\",\"t\":5,\"dir\":\"out\",\"line\":\"a\",\"later\":1}\n",
            "\n{\"dropped\":3}\n{\"kitportRecording\":1,\"at\":\"y\"}\n",
            "{\"at\":\"y\",\"t\":6,\"dir\":\"err\",\"line\":\"b\",\"lossy\":true}\nnoise\n",
        );
        let mut recording = read(text).unwrap();
        assert_eq!(recording.header().program.as_deref(), Some("host"));
        let first = recording.next().unwrap().unwrap();
        assert_eq!((first.micros, first.dir, first.line.as_str(), first.connection), (5, Direction::Out, "a", 0));
        let second = recording.next().unwrap().unwrap();
        assert_eq!((second.dir, second.lossy, second.connection), (Direction::Err, true, 1));
        assert_eq!(recording.dropped(), 3);
        assert!(recording.next().unwrap().is_err());
        assert!(recording.next().is_none());
    }
}
