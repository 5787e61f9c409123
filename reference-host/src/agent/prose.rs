//! Text without a model: the same seed gives the same words.

const WORDS: &[&str] = &[
    "the", "fox", "brings", "a", "warm", "letter", "over", "quiet", "hills", "and", "then", "every", "small", "paw",
    "finds", "its", "path", "through", "green", "reeds", "while", "rain", "taps", "on", "round", "stones", "near",
    "our", "lantern", "where", "two", "herons", "share", "bread", "with", "old", "friends", "under", "silver", "moss",
    "before", "dawn", "turns", "each", "bubble", "gold",
];

/// Words of a paragraph, about.
const PARAGRAPH_WORDS: u64 = 45;

/// Words of a sentence, about.
const SENTENCE_WORDS: u64 = 9;

/// So many words, in sentences and paragraphs with an empty line between.
pub(super) fn words(rng: &mut fastrand::Rng, count: u64) -> String {
    let mut text = String::new();
    let (mut paragraph, mut sentence) = (0, 0);
    for n in 0..count {
        let word = WORDS[rng.usize(..WORDS.len())];
        if sentence == 0 {
            if paragraph > PARAGRAPH_WORDS {
                text.push_str("\n\n");
                paragraph = 0;
            } else if n > 0 {
                text.push(' ');
            }
            let (head, tail) = word.split_at(1);
            text.push_str(&head.to_uppercase());
            text.push_str(tail);
        } else {
            text.push(' ');
            text.push_str(word);
        }
        paragraph += 1;
        sentence += 1;
        if n + 1 == count || (sentence >= SENTENCE_WORDS && rng.bool()) {
            text.push('.');
            sentence = 0;
        }
    }
    text
}

/// What `unicode` says: astral characters, combining marks, a family of joined ones, right-to-left text, line
/// separators that aren't ends of lines, and a character that JSON must escape.
pub(super) const UNICODE: &str = "🦊🐾 e\u{301}te\u{301} 👩‍👩‍👧‍👦 𝒳𝓎𝓏 שלום \u{2028}one\u{2029}two\r three \u{7f}\u{1}\n\nZ\u{335}a\u{300}\u{301}\u{302}lgo 日本語 \u{feff}end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_words_as_asked_for() {
        for count in [0, 1, 2, 50, 200] {
            let text = words(&mut fastrand::Rng::with_seed(5), count);
            assert_eq!(text.split_whitespace().count() as u64, count);
            assert_eq!(text, words(&mut fastrand::Rng::with_seed(5), count));
        }
        assert!(words(&mut fastrand::Rng::with_seed(5), 200).contains(".\n\n"));
    }
}
