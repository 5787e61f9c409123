//! Lines that come in: bytes up to LF, bounded.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest request that is read; no method of the contract needs more.
const LINE_BYTES: usize = 64 * 1024 * 1024;

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is in the buffer, without its end.
    Whole,
    /// It was longer than anything that is read, and was skipped.
    TooLong,
    /// The input has ended. A last line without LF is no line: its writer died in the middle of it.
    End,
}

/// Reads the next line into the buffer.
pub(crate) async fn read<R: AsyncBufRead + Unpin>(from: &mut R, buffer: &mut Vec<u8>) -> io::Result<Line> {
    read_bounded(from, buffer, LINE_BYTES).await
}

async fn read_bounded<R: AsyncBufRead + Unpin>(from: &mut R, buffer: &mut Vec<u8>, most: usize) -> io::Result<Line> {
    buffer.clear();
    let mut too_long = false;
    loop {
        let bytes = from.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(Line::End);
        }
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        too_long |= buffer.len() + taken > most;
        if too_long {
            buffer.clear();
        } else {
            buffer.extend_from_slice(&bytes[..end.unwrap_or(taken)]);
        }
        from.consume(taken);
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn lines_are_whole_whatever_the_reads() {
        for capacity in [1, 2, 3, 100] {
            let mut from = BufReader::with_capacity(capacity, "ab\u{2028}c\n\n123456789\nx\nhalf".as_bytes());
            let mut buffer = Vec::new();
            let mut seen = Vec::new();
            loop {
                match read_bounded(&mut from, &mut buffer, 8).await.unwrap() {
                    Line::Whole => seen.push(String::from_utf8(buffer.clone()).unwrap()),
                    Line::TooLong => seen.push("too long".into()),
                    Line::End => break,
                }
            }
            assert_eq!(seen, ["ab\u{2028}c", "", "too long", "x"], "{capacity}");
        }
    }
}
