//! The last of what a host wrote to stderr: always drained, never more than a window of it kept.

use std::sync::{Arc, Mutex, MutexGuard};

use super::redaction::Redactor;
use crate::lock::lock;

/// How much of the tail is shown, secrets masked.
pub const STDERR_TAIL_BYTES: usize = 4 * 1024;

/// How much is kept as it came. More than is shown, so that a secret is seen with what stands before it.
const WINDOW_BYTES: usize = 32 * 1024;

/// Stands where the beginning of a line was cut off.
const CUT_MARK: &str = "[…] ";

/// Keeps the end of a text. Cheap to clone: all clones are the same tail.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail {
    window: Arc<Mutex<Window>>,
}

#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    /// The window begins in the middle of a line.
    cut: bool,
}

impl StderrTail {
    fn lock(&self) -> MutexGuard<'_, Window> {
        lock(&self.window)
    }

    /// Takes what was read.
    pub(super) fn push(&self, mut chunk: &[u8]) {
        let mut window = self.lock();
        if chunk.len() > WINDOW_BYTES {
            let gone = chunk.len() - WINDOW_BYTES;
            window.bytes.clear();
            window.cut = chunk[gone - 1] != b'\n';
            chunk = &chunk[gone..];
        }
        // Twice the window before anything is moved: each byte is then moved once.
        if window.bytes.len() + chunk.len() > 2 * WINDOW_BYTES {
            let gone = window.bytes.len() + chunk.len() - WINDOW_BYTES;
            let gone = gone.min(window.bytes.len());
            if gone > 0 {
                window.cut = window.bytes[gone - 1] != b'\n';
                window.bytes.drain(..gone);
            }
        }
        window.bytes.extend_from_slice(chunk);
    }

    /// The tail: whole lines, valid UTF-8, secrets masked, at most [`STDERR_TAIL_BYTES`].
    pub(super) fn text(&self, redactor: &Redactor) -> String {
        let window = self.lock();
        let mut bytes = window.bytes.as_slice();
        let mut cut = window.cut;
        if cut {
            let line_end = bytes.iter().position(|&byte| byte == b'\n').filter(|&end| end + 1 < bytes.len());
            match line_end {
                Some(end) => {
                    bytes = &bytes[end + 1..];
                    cut = false;
                }
                // All is one line. The word that was cut through may be the rest of a secret.
                None => {
                    let word_end = bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(0);
                    bytes = &bytes[word_end..];
                }
            }
        }
        let text = without_escapes(&String::from_utf8_lossy(bytes));
        drop(window);
        let text = redactor.mask(text.trim_end());
        last_lines(text.trim(), cut)
    }
}

/// Takes out what colours a terminal: a secret behind it would not be seen as one.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        rest = rest[at + 2..].trim_start_matches(|c: char| (' '..='?').contains(&c));
        let mut after = rest.chars();
        if after.next().is_some_and(|c| ('@'..='~').contains(&c)) {
            rest = after.as_str();
        }
    }
    plain.push_str(rest);
    plain.replace('\r', "")
}

fn last_lines(text: &str, mut cut: bool) -> String {
    let mut tail = text;
    if tail.len() > STDERR_TAIL_BYTES {
        let from = text.len() - STDERR_TAIL_BYTES;
        let line_start = match text.as_bytes()[from - 1] {
            b'\n' => Some(from),
            _ => text.as_bytes()[from..].iter().position(|&byte| byte == b'\n').map(|end| from + end + 1),
        };
        match line_start {
            Some(start) => {
                tail = &text[start..];
                cut = false;
            }
            None => cut = true,
        }
    }
    if !cut {
        return tail.to_owned();
    }
    let room = STDERR_TAIL_BYTES - CUT_MARK.len();
    let mut from = tail.len().saturating_sub(room);
    while !tail.is_char_boundary(from) {
        from += 1;
    }
    format!("{CUT_MARK}{}", &tail[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(chunks: &[&[u8]]) -> String {
        let tail = StderrTail::default();
        for chunk in chunks {
            tail.push(chunk);
        }
        tail.text(&Redactor::plain())
    }

    #[test]
    fn short_text_is_shown_whole() {
        assert_eq!(tail(&[]), "");
        assert_eq!(tail(&[b"one\n", b"two", b"\nthree"]), "one\ntwo\nthree");
        assert_eq!(tail(&[b"one\r\ntwo\r\n"]), "one\ntwo");
    }

    #[test]
    fn long_text_is_cut_at_a_line() {
        let text: String = (0..100_000).map(|nth| format!("line {nth}\n")).collect();
        for size in [1, 7, 4096, 65_536, 10_000_000] {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let tail = tail(&chunks);
            assert!(tail.len() <= STDERR_TAIL_BYTES && tail.len() > STDERR_TAIL_BYTES - 20, "{}", tail.len());
            assert!(tail.starts_with("line ") && tail.ends_with("line 99999"));
            let first = tail.lines().next().unwrap();
            assert!(text.contains(&format!("\n{first}\n")));
        }
    }

    #[test]
    fn the_window_is_bounded() {
        let tail = StderrTail::default();
        for _ in 0..1000 {
            tail.push(&[b'x'; 10_000]);
        }
        assert!(tail.lock().bytes.capacity() <= 4 * WINDOW_BYTES);
    }

    #[test]
    fn a_line_longer_than_the_tail_is_cut_with_a_mark() {
        for length in [5_000, 100_000] {
            let text = format!("first\n{}€ end\n", "€ ".repeat(length / 4));
            let tail = tail(&[text.as_bytes()]);
            assert!(tail.starts_with(CUT_MARK), "{tail}");
            assert!(tail.ends_with("€ end"));
            assert!(tail.len() <= STDERR_TAIL_BYTES);
        }
    }

    #[test]
    fn the_rest_of_a_word_that_was_cut_through_is_not_shown() {
        let text = format!("token={} end", "s".repeat(2 * WINDOW_BYTES));
        assert_eq!(tail(&[text.as_bytes()]), format!("{CUT_MARK}end"));
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(tail(&[b"a\xff\xfeb\n\xe2\x82"]), "a\u{fffd}\u{fffd}b\n\u{fffd}");
    }

    #[test]
    fn colours_are_taken_out_before_secrets_are_looked_for() {
        let tail = StderrTail::default();
        tail.push(b"\x1b[1;31mred\x1b[0m \x1b[32msk-abcdefgh0123456789ijkl\x1b[0m\x1b[");
        let text = tail.text(&Redactor::plain());
        assert!(text.starts_with("red ") && !text.contains("abcdefgh") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn secrets_are_masked_before_the_text_is_cut() {
        let tail = StderrTail::default();
        let line = format!("PASSWORD={}{}\n", "hunter2".repeat(300), "x");
        tail.push(line.as_bytes());
        tail.push("y\n".repeat(1000).as_bytes());
        assert!(!tail.text(&Redactor::plain()).contains("hunter2"));
    }
}
