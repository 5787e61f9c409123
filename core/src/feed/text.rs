//! Text that is still being written.
//!
//! Pieces come with an offset in UTF-16 units, the unit that every language of the bindings can count. A piece costs
//! what it is long, not what was there before, also while copies of the text are alive.

use ropey::Rope;
use serde::{Serialize, Serializer};

/// Stands for the half of a character that a cut left over. One unit, as the half was: offsets stay right.
const HALF: &str = "\u{FFFD}";

/// A text that grows, cheap to copy.
///
/// It is one connected part of what the agent wrote. Where the beginning was not seen it starts later, and a piece that
/// would leave a hole is left out; then [`is_whole`](Self::is_whole) is false. The whole text comes with the reply.
#[derive(Clone, Default)]
pub struct LiveText {
    rope: Rope,
    start_utf16: u64,
    holed: bool,
}

impl LiveText {
    /// Its length in UTF-16 units.
    pub fn len_utf16(&self) -> u64 {
        self.rope.len_utf16_cu() as u64
    }

    /// Its length in bytes.
    pub(super) fn len_bytes(&self) -> usize {
        self.rope.len_bytes()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len_bytes() == 0
    }

    /// Whether nothing is missing, as far as is known.
    pub fn is_whole(&self) -> bool {
        self.start_utf16 == 0 && !self.holed
    }

    /// The text in pieces, without copying it.
    pub fn chunks(&self) -> impl Iterator<Item = &str> {
        self.rope.chunks()
    }

    /// The text from `from` on, in UTF-16 units: what an app adds to what it shows, see
    /// [`TextChange`](super::TextChange). Nothing where the text ends before.
    pub fn since(&self, from: u64) -> String {
        match self.rope.get_slice(self.char_at(from)..) {
            Some(rest) => rest.to_string(),
            None => String::new(),
        }
    }

    /// Whether it is the beginning of `text`.
    pub fn begins(&self, text: &str) -> bool {
        let mut rest = text.as_bytes();
        self.chunks().all(|chunk| match rest.strip_prefix(chunk.as_bytes()) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        })
    }

    /// Puts a piece at `offset`, cutting what was there from it on. Gives the place from which on the text is another
    /// now; nothing where it is as it was.
    pub(super) fn put(&mut self, offset: u64, piece: &str) -> Option<u64> {
        if self.is_empty() && !piece.is_empty() || offset < self.start_utf16 {
            self.rope = Rope::from_str(piece);
            self.start_utf16 = offset;
            self.holed = false;
            return Some(0);
        }
        let cut = offset - self.start_utf16;
        let len = self.len_utf16();
        if cut > len {
            let news = !self.holed && !piece.is_empty();
            self.holed |= news;
            return news.then_some(len);
        }
        if self.ends_with(cut, piece) {
            // Told once more, which is news only where something was missing behind it.
            return std::mem::take(&mut self.holed).then_some(len);
        }
        if cut < len {
            self.cut(cut);
        }
        self.rope.insert(self.rope.len_chars(), piece);
        self.holed = false;
        Some(cut)
    }

    /// Whether what is there from `cut` on is `piece`. Costs the piece.
    fn ends_with(&self, cut: u64, piece: &str) -> bool {
        let char = self.char_at(cut);
        let (from, bytes) = (self.rope.char_to_byte(char), self.rope.len_bytes());
        bytes - from == piece.len()
            && self.rope.char_to_utf16_cu(char) as u64 == cut
            && self.rope.get_byte_slice(from..).is_some_and(|end| end == piece)
    }

    fn cut(&mut self, cut: u64) {
        let char = self.char_at(cut);
        let is_half = self.rope.char_to_utf16_cu(char) as u64 != cut;
        self.rope.remove(char..);
        if is_half {
            self.rope.insert(self.rope.len_chars(), HALF);
        }
    }

    fn char_at(&self, utf16: u64) -> usize {
        let utf16 = usize::try_from(utf16).unwrap_or(usize::MAX).min(self.rope.len_utf16_cu());
        self.rope.utf16_cu_to_char(utf16)
    }
}

impl From<&str> for LiveText {
    fn from(text: &str) -> Self {
        LiveText { rope: Rope::from_str(text), ..Self::default() }
    }
}

impl PartialEq for LiveText {
    fn eq(&self, other: &Self) -> bool {
        self.start_utf16 == other.start_utf16 && (self.rope.is_instance(&other.rope) || self.rope == other.rope)
    }
}

impl std::fmt::Display for LiveText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.chunks().try_for_each(|chunk| f.write_str(chunk))
    }
}

impl std::fmt::Debug for LiveText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for LiveText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_in_half_a_character_leaves_a_mark_and_right_offsets() {
        let mut text = LiveText::from("a𝄞b");
        assert_eq!(text.put(2, "c"), Some(2));
        assert_eq!(text.to_string(), "a\u{FFFD}c");
        assert_eq!(text.put(3, "d"), Some(3));
        assert_eq!(text.to_string(), "a\u{FFFD}cd");
    }

    #[test]
    fn a_piece_past_the_end_is_left_out_until_the_text_is_restated() {
        let mut text = LiveText::from("abc");
        assert_eq!(text.put(5, "f"), Some(3), "that it is not whole any more is news, once");
        assert_eq!(text.put(6, "g"), None);
        assert_eq!((text.to_string().as_str(), text.is_whole()), ("abc", false));
        assert_eq!(text.put(1, "bc"), Some(3), "restated, and what follows will fit");
        assert!(text.is_whole());
        assert_eq!(text.put(5, "f"), Some(3));
        assert_eq!(text.put(2, "cdefg"), Some(2));
        assert_eq!((text.to_string().as_str(), text.is_whole()), ("abcdefg", true));
        assert_eq!(text.put(u64::MAX, "z"), Some(7));
    }

    #[test]
    fn a_text_joined_in_the_middle_begins_there() {
        let mut text = LiveText::default();
        assert_eq!(text.put(37, "wor"), Some(0));
        assert_eq!(text.put(40, "ld"), Some(3));
        assert_eq!((text.to_string().as_str(), text.is_whole()), ("world", false));
        assert_eq!(text.put(31, "hello world"), Some(0), "what begins earlier takes its place");
        assert_eq!(text.put(0, ""), Some(0));
        assert!(text.is_empty() && text.is_whole());
        assert_eq!(text.put(0, ""), None);
    }

    #[test]
    fn what_was_added_is_given_without_the_rest() {
        let mut text = LiveText::from("a𝄞");
        let from = text.put(3, "bc").unwrap();
        assert_eq!(text.since(from), "bc");
        assert_eq!(text.since(99), "");
    }

    /// What a piece does, said in UTF-16.
    fn put_slowly(text: &mut Vec<u16>, offset: usize, piece: &str) {
        if offset > text.len() {
            return;
        }
        text.truncate(offset);
        if char::decode_utf16(text.iter().copied()).last().is_some_and(|last| last.is_err()) {
            text.pop();
            text.extend(HALF.encode_utf16());
        }
        text.extend(piece.encode_utf16());
    }

    proptest! {
        #[test]
        fn pieces_do_what_utf16_says(pieces in prop::collection::vec((0usize..40, "[a𝄞é\u{301}\r\n]{0,9}"), 1..60)) {
            let (mut text, mut slow) = (LiveText::default(), Vec::new());
            text.put(0, "x");
            put_slowly(&mut slow, 0, "x");
            for (offset, piece) in pieces {
                let before = text.clone();
                let offset = offset.max(1);
                let shown = before.to_string();
                let from = text.put(offset as u64, &piece);
                put_slowly(&mut slow, offset, &piece);
                prop_assert_eq!(text.to_string(), String::from_utf16(&slow).unwrap());
                prop_assert_eq!(text.len_utf16(), slow.len() as u64);
                prop_assert_eq!(before.to_string(), shown, "a copy changed with its original");
                match from {
                    // An app that cuts and adds shows the same.
                    Some(from) => {
                        let mut app: Vec<u16> = before.to_string().encode_utf16().collect();
                        put_slowly(&mut app, from as usize, &text.since(from));
                        let shown = String::from_utf16(&app).unwrap();
                        let half = shown.contains(HALF) || text.to_string().contains(HALF);
                        prop_assert!(half || shown == text.to_string());
                    }
                    None => prop_assert_eq!(before.to_string(), text.to_string()),
                }
            }
        }
    }
}
