//! Lines out of bytes: pure, no I/O, nothing of JSON.
//!
//! A line ends at the byte LF and nowhere else, so neither U+2028 nor a CR inside a string splits one, and a character
//! that two reads cut in half is whole again in its line. A line over the limit is skipped while it arrives: only its
//! head is kept, so that the id of the answer it would have been can still be read.

use memchr::memchr;

/// How much of a line over the limit is kept.
pub const OVERSIZE_HEAD_BYTES: usize = 4 * 1024;

/// A buffer larger than this is not kept for the next line: it is given away with its line.
pub const KEPT_CAPACITY_BYTES: usize = 256 * 1024;

/// What a [`Framer`] finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line, without its LF.
    Line(&'a [u8]),
    /// A line of more than [`KEPT_CAPACITY_BYTES`], without its LF: whoever needs it longer need not copy it.
    Large(Vec<u8>),
    /// A line over the limit, skipped.
    Oversize {
        /// Its beginning, at most [`OVERSIZE_HEAD_BYTES`].
        head: &'a [u8],
    },
}

/// Cuts a stream of bytes into lines.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    /// The beginning of a line whose end has not come; while skipping, its head.
    partial: Vec<u8>,
    skipping: bool,
}

impl Framer {
    /// A framer for lines of at most `limit_bytes`, without their LF.
    pub fn new(limit_bytes: usize) -> Self {
        Framer { limit: limit_bytes, partial: Vec::new(), skipping: false }
    }

    /// Takes the next bytes of the stream. What it gives must be read to its end: the rest of the chunk is taken there.
    pub fn feed<'a>(&'a mut self, chunk: &'a [u8]) -> Frames<'a> {
        Frames { framer: self, rest: chunk, clear: false }
    }

    /// Ends the stream: gives the last line where it had no LF.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        match (self.skipping, self.partial.is_empty()) {
            (true, _) => Some(Frame::Oversize { head: &self.partial }),
            (false, false) => Some(Frame::Line(&self.partial)),
            (false, true) => None,
        }
    }

    /// The memory that is held for an unfinished line.
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// Keeps `bytes` of a line whose end has not come.
    fn keep(&mut self, bytes: &[u8]) {
        if self.skipping || self.partial.len() + bytes.len() > self.limit {
            let head = OVERSIZE_HEAD_BYTES.saturating_sub(self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..head]);
            if !self.skipping {
                self.partial.truncate(OVERSIZE_HEAD_BYTES);
                self.partial.shrink_to(KEPT_CAPACITY_BYTES);
                self.skipping = true;
            }
            return;
        }
        let needed = self.partial.len() + bytes.len();
        if needed > self.partial.capacity() {
            // Doubling, but never past the limit: a line just under it must not hold twice its size.
            let doubled = (self.partial.capacity() * 2).min(self.limit).max(needed);
            self.partial.reserve_exact(doubled - self.partial.len());
        }
        self.partial.extend_from_slice(bytes);
    }

    fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(KEPT_CAPACITY_BYTES);
        self.skipping = false;
    }
}

/// The lines that end in one chunk. Not an `Iterator`, because each lends its bytes from the framer.
#[derive(Debug)]
pub struct Frames<'a> {
    framer: &'a mut Framer,
    rest: &'a [u8],
    /// The line given last lay in the framer: it is cleared at the next call.
    clear: bool,
}

impl Frames<'_> {
    /// The next line.
    #[expect(clippy::should_implement_trait, reason = "it lends, which Iterator can't")]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        if std::mem::take(&mut self.clear) {
            self.framer.clear();
        }
        let Some(end) = memchr(b'\n', self.rest) else {
            let rest = std::mem::take(&mut self.rest);
            self.framer.keep(rest);
            return None;
        };
        let (line, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        self.rest = rest;
        if !self.framer.skipping && self.framer.partial.is_empty() {
            if line.len() <= self.framer.limit {
                return Some(Frame::Line(line));
            }
            return Some(Frame::Oversize { head: &line[..line.len().min(OVERSIZE_HEAD_BYTES)] });
        }
        self.framer.keep(line);
        if !self.framer.skipping && self.framer.partial.len() > KEPT_CAPACITY_BYTES {
            return Some(Frame::Large(std::mem::take(&mut self.framer.partial)));
        }
        self.clear = true;
        if self.framer.skipping {
            return Some(Frame::Oversize { head: &self.framer.partial });
        }
        Some(Frame::Line(&self.framer.partial))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Owned {
        Line(Vec<u8>),
        Oversize(Vec<u8>),
    }

    fn own(frame: Frame<'_>) -> Owned {
        match frame {
            Frame::Line(line) => Owned::Line(line.to_vec()),
            Frame::Large(line) => Owned::Line(line),
            Frame::Oversize { head } => Owned::Oversize(head.to_vec()),
        }
    }

    fn frames(limit: usize, chunks: &[&[u8]]) -> Vec<Owned> {
        let mut framer = Framer::new(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            let mut frames = framer.feed(chunk);
            while let Some(frame) = frames.next() {
                found.push(own(frame));
            }
        }
        found.extend(framer.finish().map(own));
        found
    }

    /// What the framer must find, said the plain way.
    fn oracle(limit: usize, bytes: &[u8]) -> Vec<Owned> {
        let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        lines
            .into_iter()
            .map(|line| match line.len() <= limit {
                true => Owned::Line(line.to_vec()),
                false => Owned::Oversize(line[..line.len().min(OVERSIZE_HEAD_BYTES)].to_vec()),
            })
            .collect()
    }

    fn line(text: &str) -> Owned {
        Owned::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn a_line_is_whole_however_it_was_cut() {
        assert_eq!(frames(100, &[b"one\ntw", b"", b"o\n\nthree"]), [line("one"), line("two"), line(""), line("three")]);
    }

    #[test]
    fn only_lf_ends_a_line() {
        let text = "{\"a\":\"\u{2028}\u{2029}\u{85}\r\u{b}\u{c}\"}\r";
        assert_eq!(frames(100, &[text.as_bytes(), b"\n"]), [line(text)]);
    }

    #[test]
    fn a_character_cut_in_two_is_whole() {
        let text = "a€😀b".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(frames(100, &[&text[..cut], &text[cut..], b"\n"]), [Owned::Line(text.to_vec())]);
        }
    }

    #[test]
    fn a_line_in_one_chunk_is_not_copied() {
        let chunk = b"abc\ndef\n".as_slice();
        let mut framer = Framer::new(100);
        let mut frames = framer.feed(chunk);
        while let Some(frame) = frames.next() {
            let Frame::Line(line) = frame else { panic!("no line is too long here") };
            assert!(chunk.as_ptr_range().contains(&line.as_ptr()));
        }
        assert_eq!(framer.held_bytes(), 0);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_with_bounded_memory() {
        let limit = 1024 * 1024;
        let mut framer = Framer::new(limit);
        let chunk = vec![b'x'; 64 * 1024];
        let mut most = 0;
        for _ in 0..(64 * 1024 * 1024 / chunk.len()) {
            assert_eq!(framer.feed(&chunk).next(), None);
            most = most.max(framer.held_bytes());
        }
        assert!(most <= limit, "{most} bytes were held");
        assert!(framer.held_bytes() <= KEPT_CAPACITY_BYTES);
        let mut frames = framer.feed(b"\nnext\n");
        assert_eq!(frames.next(), Some(Frame::Oversize { head: &chunk[..OVERSIZE_HEAD_BYTES] }));
        assert_eq!(frames.next(), Some(Frame::Line(b"next")));
        assert_eq!(frames.next(), None);
    }

    #[test]
    fn the_limit_itself_is_still_a_line() {
        assert_eq!(frames(3, &[b"abc\nabcd\nabc\n"]), [line("abc"), Owned::Oversize(b"abcd".to_vec()), line("abc")]);
        assert_eq!(frames(3, &[b"ab", b"c\nab", b"cd\n"]), [line("abc"), Owned::Oversize(b"abcd".to_vec())]);
    }

    #[test]
    fn a_large_line_gives_its_memory_back() {
        let mut framer = Framer::new(64 * 1024 * 1024);
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..40 {
            assert_eq!(framer.feed(&chunk).next(), None);
        }
        let mut frames = framer.feed(b"\n");
        assert!(matches!(frames.next(), Some(Frame::Large(line)) if line.len() == 40 * 1024 * 1024));
        assert_eq!(frames.next(), None);
        assert!(framer.held_bytes() <= KEPT_CAPACITY_BYTES);
        let mut frames = framer.feed(b"next\nnext");
        assert_eq!(frames.next(), Some(Frame::Line(b"next")));
        assert_eq!(frames.next(), None);
        assert_eq!(framer.finish(), Some(Frame::Line(b"next")));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..400),
            cuts in prop::collection::vec(0usize..400, 0..20),
            limit in 0usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(frames(limit, &chunks), oracle(limit, &bytes));
        }

        #[test]
        fn any_split_gives_the_same_head(
            lengths in prop::collection::vec(0usize..12_000, 1..4),
            cuts in prop::collection::vec(0usize..40_000, 0..12),
        ) {
            let mut bytes = Vec::new();
            for (nth, length) in lengths.iter().enumerate() {
                bytes.extend((0..*length).map(|at| b'a' + ((at + nth) % 23) as u8));
                bytes.push(b'\n');
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(frames(6_000, &chunks), oracle(6_000, &bytes));
        }
    }
}
