//! From the words of a Rust doc comment to words that fit every language.

/// Joins the lines of a paragraph, takes links apart and puts Rust's names in the languages' common words.
pub(super) fn plain(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(str::trim).collect();
    let paragraphs: Vec<String> = lines
        .split(|line| line.is_empty())
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| names(&unlink(&paragraph.join(" "))))
        .collect();
    paragraphs.join("\n\n")
}

/// A link around code, with or without its target, becomes the code.
fn unlink(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((code, after)) = link.split_once("`]") else {
            plain.push_str("[`");
            rest = link;
            continue;
        };
        plain.push('`');
        plain.push_str(code);
        plain.push('`');
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain.push_str(rest);
    plain
}

fn names(text: &str) -> String {
    text.replace("KitError::", "Kit")
        .replace("`Seq::START`", "0")
        .replace("`Decision::Option`", "the decision `option`")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn links_and_names_become_plain_words() {
        assert_eq!(plain(" after [`Seq::START`]: from\n the beginning"), "after 0: from the beginning");
        assert_eq!(plain("see [`Constraints`](super::Constraints)."), "see `Constraints`.");
        assert_eq!(plain("fails with `KitError::Busy`"), "fails with `KitBusy`");
        assert_eq!(plain("one\ntwo\n\nthree"), "one two\n\nthree");
        assert_eq!(plain("a list [`a` and more"), "a list [`a` and more");
    }
}
