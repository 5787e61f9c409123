//! Texts of hosts and models, made safe for a terminal: they may show words, not give commands.

use std::borrow::Cow;

/// The text with control characters replaced, but for line ends and tabs.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(is_bad) {
        // A line end of Windows is no command.
        Cow::Owned(text.replace("\r\n", "\n").replace(is_bad, "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text on one line of at most so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = clean(&words.join(" ")).into_owned();
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_for_the_terminal_is_left() {
        assert_eq!(clean("a\u{1b}[31mb\u{9b}c\td\r\ne"), "a\u{FFFD}[31mb\u{FFFD}c\td\ne");
        assert!(matches!(clean("plain\n"), Cow::Borrowed("plain\n")));
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!(one_line(" a\n b ", 10), "a b");
        assert_eq!(one_line("ÄÖÜäöü", 4), "ÄÖÜ…");
        assert_eq!(one_line("four", 4), "four");
    }
}
