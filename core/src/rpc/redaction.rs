//! Masks secrets in text that leaves the app: the stderr tail of errors, and recordings.
//!
//! What a secret looks like is data, in `PATTERNS`: one row each, with a test under the same name. Beside the shapes,
//! a [`Redactor`] knows the very values that were handed to the host under names that say key, token, secret or
//! password. Masking too much costs a word in a log; masking too little costs a key: in doubt it masks.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Stands in the place of a secret.
pub const MASK: &str = "***";

/// A value of the environment shorter than this is too likely a plain word to be masked wherever it stands.
const EXACT_VALUE_BYTES: usize = 6;

/// What decides whether a match is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// It always is.
    Always,
    /// It is if the group `secret` has a digit or mixed case, which words have not.
    Random,
    /// It is if the group `name` says so.
    Name,
    /// It is if the group `name` says so and the group `secret` is no word of a sentence.
    Flag,
}

/// A shape of secrets. The group `secret` is masked.
struct Pattern {
    #[cfg_attr(not(test), expect(dead_code, reason = "tests name their rows"))]
    name: &'static str,
    when: When,
    regex: &'static str,
}

const fn row(name: &'static str, when: When, regex: &'static str) -> Pattern {
    Pattern { name, when, regex }
}

/// The shapes, in the order in which they are looked for.
const PATTERNS: &[Pattern] = &[
    row(
        "private key block",
        When::Always,
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?<secret>.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    // Its beginning was cut off.
    row(
        "end of a private key block",
        When::Always,
        r"(?m)(?<secret>(?:^[A-Za-z0-9+/=]+\r?\n)+)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    ),
    row(
        "authorization header",
        When::Always,
        r#"(?i)\b(?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+)?(?<secret>[^\s"',;\\]+)"#,
    ),
    row("bearer or basic credentials", When::Random, r"(?i)\b(?:bearer|basic)\s+(?<secret>[A-Za-z0-9._~+/=-]{8,})"),
    row("user-info in an address", When::Always, r#"\b[A-Za-z][A-Za-z0-9+.-]*://(?<secret>[^\s/?#"'<>]+)@"#),
    row("sk- key", When::Random, r"\b(?<secret>(?:sk|pk|rk)-[A-Za-z0-9_-]{16,})"),
    row("sk_live_ key", When::Always, r"\b(?<secret>(?:sk|pk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{10,})"),
    row("GitHub token", When::Always, r"\b(?<secret>gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    row("GitLab token", When::Always, r"\b(?<secret>gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_.-]{16,})"),
    row("Slack token", When::Always, r"\b(?<secret>(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,})"),
    row("AWS key id", When::Always, r"\b(?<secret>(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})\b"),
    row("Google key", When::Always, r"\b(?<secret>AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,})"),
    row(
        "other vendors' tokens",
        When::Always,
        r"\b(?<secret>(?:npm|hf|gsk|dop_v1|shpat|glsa|lin_api|r8|pplx|tvly|fc|nvapi|xai|pypi)[_-][A-Za-z0-9_-]{24,})",
    ),
    row("JSON web token", When::Always, r"\b(?<secret>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"),
    row(
        "option with a value",
        When::Flag,
        r#"(?:^|[\s"'\[(,])--?(?<name>[A-Za-z][A-Za-z0-9_-]*)["']?\s*[,\s]\s*["']?(?<secret>[^\s"',;-][^\s"',;]*)"#,
    ),
    row(
        "quoted value of a named variable",
        When::Name,
        r#"(?<name>[A-Za-z_][\w.-]*)\\?["']?\s*(?:=>|[:=])\s*(?:\\?"(?<secret>(?:[^"\\]|\\[^"])+)|'(?<other>[^']+))"#,
    ),
    row(
        "value of a named variable",
        When::Name,
        r#"(?<name>[A-Za-z_][\w.-]*)["']?(?<sign>\s*=>?\s*|\s*:\s*)(?<secret>[^\s"',;&<>()\[\]{}:=\\][^\s"',;&<>()\[\]{}]*)"#,
    ),
    row(
        "long value after a telling word",
        When::Random,
        r"(?i)\b(?:api[ -]?key|key|token|secret|password|passphrase|credential)s?\b[^\n]{0,24}?(?<secret>\b[A-Za-z0-9+/_=-]{20,})",
    ),
    row(
        "home directory on Windows, as a prefix",
        When::Always,
        r#"(?i)\b[A-Z]:[\\/]+Users[\\/]+(?<secret>[^\\/:"'<>|\r\n]{1,64})[\\/]"#,
    ),
    row("home directory on Windows", When::Always, r#"(?i)\b[A-Z]:[\\/]+Users[\\/]+(?<secret>[^\\/:"'<>|\s]+)"#),
    row("home directory", When::Always, r#"(?:^|[^\w.~-])/(?:home|Users)/(?<secret>[^/\s:;,"'<>()\[\]{}\\]+)"#),
];

/// One look that spares most texts all the others. Each pattern above needs one of these.
const TRIGGER: &str = r"(?i)key|token|secret|passw|passphrase|pwd|credential|authorization|bearer|basic\s|://|-----END|(?:sk|pk|rk|fc|r8|gsk|hf|npm|xai|pypi|pplx|tvly|glsa|nvapi|shpat|whsec|dop_v1|lin_api|xapp)[-_]|gh[oprsu]_|github_pat|gl[a-z]{2,3}-|xox|AKIA|ASIA|ABIA|ACCA|AIza|ya29|eyJ|/home/|/Users/|[\\/]Users[\\/]|\x1b";

static TRIGGERS: LazyLock<Regex> = LazyLock::new(|| Regex::new(TRIGGER).expect("a test compiles it"));
static REGEXES: LazyLock<Vec<(&'static Pattern, Regex)>> = LazyLock::new(|| {
    PATTERNS.iter().map(|pattern| (pattern, Regex::new(pattern.regex).expect("a test compiles each"))).collect()
});

/// Masks secrets in texts.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Values that are secrets wherever they stand, the longest first.
    exact: Vec<String>,
    /// The home directory of whoever runs this.
    home: Option<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("exact_values", &self.exact.len()).finish_non_exhaustive()
    }
}

impl Redactor {
    /// Knows the shapes alone.
    pub fn plain() -> Self {
        Redactor::default()
    }

    /// Knows the shapes, this user's home directory, and the values of those `variables` whose name says that they are
    /// secret.
    pub fn for_variables<N: AsRef<str>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut exact = Vec::new();
        for (name, value) in variables {
            let value: String = value.into();
            if !name_says_secret(name.as_ref()) || value.len() < EXACT_VALUE_BYTES {
                continue;
            }
            let escaped = serde_json::to_string(&value).unwrap_or_default();
            let escaped = escaped.trim_matches('"').to_owned();
            if escaped != value {
                exact.push(escaped);
            }
            exact.push(value);
        }
        exact.sort_by_key(|value| std::cmp::Reverse(value.len()));
        exact.dedup();
        let home = std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
        // A home of `/`, as some containers have it, would mask every path.
        let home = home.map(|home| home.trim_end_matches(['/', '\\']).to_owned()).filter(|home| home.len() > 2);
        Redactor { exact, home }
    }

    /// Whether a text may have a secret; `false` is certain.
    pub(super) fn may_have_secret(&self, text: &str) -> bool {
        TRIGGERS.is_match(text)
            || self.exact.iter().any(|value| text.contains(value.as_str()))
            || self.home.as_ref().is_some_and(|home| text.contains(home.as_str()))
    }

    /// The text with its secrets masked.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.may_have_secret(text) {
            return Cow::Borrowed(text);
        }
        let mut text = Cow::Borrowed(text);
        for value in &self.exact {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), MASK));
            }
        }
        if let Some(home) = &self.home
            && text.contains(home.as_str())
        {
            text = Cow::Owned(mask_home(&text, home));
        }
        for (pattern, regex) in REGEXES.iter() {
            if let Cow::Owned(masked) = mask_pattern(pattern.when, regex, &text) {
                text = Cow::Owned(masked);
            }
        }
        text
    }

    /// The value of a JSON member with its secrets masked; `None` where it has none.
    pub(super) fn mask_member(&self, name: &str, value: &str) -> Option<String> {
        if value.is_empty() || value == MASK {
            return None;
        }
        // `key` alone is as often the name of a setting as it is a secret.
        let telling = name_says_secret(name) && (!name.eq_ignore_ascii_case("key") || looks_random(value));
        if telling {
            return Some(MASK.to_owned());
        }
        match self.mask(value) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => (masked != value).then_some(masked),
        }
    }
}

fn mask_pattern<'a>(when: When, regex: &Regex, text: &'a str) -> Cow<'a, str> {
    let mut masked = String::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(found) = regex.captures_at(text, from) {
        let whole = found.get_match();
        // At least one byte further; a match is never empty, and begins and ends at characters.
        from = whole.end().max(from + 1);
        let Some(secret) = found.name("secret").or_else(|| found.name("other")) else { continue };
        if secret.as_str() == MASK || !is_secret(when, &found, secret.as_str()) {
            // What was taken for a value may hold a name and a value of its own.
            from = found.name("name").map_or(from, |name| name.end());
            continue;
        }
        masked.push_str(&text[done..secret.start()]);
        masked.push_str(MASK);
        done = secret.end();
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(&text[done..]);
    Cow::Owned(masked)
}

fn is_secret(when: When, found: &Captures<'_>, secret: &str) -> bool {
    let name = found.name("name").map_or("", |name| name.as_str());
    match when {
        When::Always => true,
        When::Random => looks_random(secret),
        When::Flag => name_says_secret(name) && !SENTENCE_WORDS.contains(&secret.to_ascii_lowercase().as_str()),
        When::Name => {
            // `max_tokens=4096` is a count.
            let counted =
                name.to_ascii_lowercase().ends_with("tokens") && secret.bytes().all(|byte| byte.is_ascii_digit());
            // `unexpected token: identifier` is a sentence, `token: 4f0c…` is not.
            let sentence = found.name("sign").is_some_and(|sign| sign.as_str().contains(':'))
                && SENTENCE_NAMES.contains(&name.to_ascii_lowercase().as_str())
                && !looks_random(secret);
            // What follows is the scheme; the credentials are masked by a row of their own.
            let header = name.to_ascii_lowercase().ends_with("authorization");
            name_says_secret(name) && !counted && !sentence && !header
        }
    }
}

/// Words that follow the name of an option in a sentence about it.
const SENTENCE_WORDS: &[&str] = &[
    "is", "are", "was", "must", "or", "and", "not", "for", "in", "to", "option", "options", "flag", "argument",
    "requires", "required", "missing", "cannot", "can", "has", "needs", "with", "instead", "may", "should", "if", "of",
];

/// Names that, before a colon, are as often a word of a sentence.
const SENTENCE_NAMES: &[&str] = &["key", "keys", "token", "tokens"];

/// Words have no digits and no capitals in the middle; keys have.
fn looks_random(text: &str) -> bool {
    let digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let small = text.bytes().any(|byte| byte.is_ascii_lowercase());
    let capital = text.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
    digit || (small && capital && text.len() >= 12)
}

/// Whether a name says key, token, secret or password, as a word of its own: `apiKey`, `API_KEY`, `api-key`, `APIKEY`,
/// but not `monkey` or `keyboard`.
pub(super) fn name_says_secret(name: &str) -> bool {
    words_of(name).iter().any(|word| {
        let word = word.to_ascii_lowercase();
        SECRET_WORDS.contains(&word.as_str()) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending))
    })
}

const SECRET_WORDS: &[&str] = &[
    "key",
    "keys",
    "apikey",
    "apikeys",
    "secretkey",
    "accesskey",
    "privatekey",
    "authkey",
    "pass",
    "pwd",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
];

const SECRET_ENDINGS: &[&str] = &["token", "tokens", "secret", "secrets", "password", "passwords", "apikey"];

/// The words of a name, at everything that is no letter and where a capital follows a small one.
fn words_of(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut from = 0;
    let bytes = name.as_bytes();
    for at in 0..=bytes.len() {
        let end = at == bytes.len() || !bytes[at].is_ascii_alphabetic();
        let hump = !end && at > from && bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        // `APIKey`: the last of several capitals begins the next word.
        let after_capitals = !end
            && at > from
            && bytes[at].is_ascii_uppercase()
            && bytes[at - 1].is_ascii_uppercase()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if end || hump || after_capitals {
            if at > from {
                words.push(&name[from..at]);
            }
            from = if end { at + 1 } else { at };
        }
    }
    words
}

/// Puts `~` for the home directory, where it is not the beginning of a longer name.
fn mask_home(text: &str, home: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(home) {
        let after = &rest[at + home.len()..];
        let longer = after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
        let inside = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        masked.push_str(&rest[..at]);
        masked.push_str(if longer || inside { home } else { "~" });
        rest = after;
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each pattern: a text, and what the whole redactor makes of it. `§` keeps the fake secrets from being taken
    /// for real ones by whoever scans this file; it is taken out first.
    const EXAMPLES: &[(&str, &str, &str)] = &[
        (
            "private key block",
            "before\n-----BEGIN RSA PRIVATE§ KEY-----\nMIIEow\nAAB=\n-----END RSA PRIVATE§ KEY-----\nafter",
            "before\n-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nafter",
        ),
        ("private key block", "-----BEGIN PRIVATE§ KEY-----\\nMIIE\\n", "-----BEGIN PRIVATE KEY-----***"),
        (
            "end of a private key block",
            "was loaded\nMIIEow\nAAB=\n-----END PRIVATE§ KEY-----\nafter",
            "was loaded\n***-----END PRIVATE KEY-----\nafter",
        ),
        ("authorization header", "Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("authorization header", "authorization=xyz next", "authorization=*** next"),
        ("authorization header", r#"{"Authorization":"Basic dXNl"}"#, r#"{"Authorization":"Basic ***"}"#),
        ("authorization header", r#""{\"authorization\": \"token abc\"}""#, r#""{\"authorization\": \"token ***\"}""#),
        ("bearer or basic credentials", "sent bearer abcdef123456", "sent bearer ***"),
        ("bearer or basic credentials", "Basic dXNlcjpwYXNzd29yZA==", "Basic ***"),
        ("user-info in an address", "https://user:p@ss@example.com/a", "https://***@example.com/a"),
        ("user-info in an address", "postgres://me:pw@db:5432/x", "postgres://***@db:5432/x"),
        ("sk- key", "using sk-§abcdefghijklmnop1234 now", "using *** now"),
        ("sk- key", "sk-§ant-api03-AbCdEfGhIjKlMnOp_qr-st", "***"),
        ("sk_live_ key", "sk_live_§0123456789abcdef", "***"),
        ("GitHub token", "ghp_§0123456789abcdefghijABCDEFGHIJ012345!", "***!"),
        ("GitHub token", "github_pat_§0123456789abcdefghij_ABCDEFGHIJ", "***"),
        ("GitLab token", "glpat-§0123456789abcdefghij", "***"),
        ("Slack token", "xoxb-§123456789012-abcdefghij", "***"),
        ("AWS key id", "AKIA§IOSFODNN7EXAMPLE", "***"),
        ("Google key", "AIza§0123456789abcdefghijABCDEFGHIJ01234", "***"),
        ("other vendors' tokens", "npm_§0123456789abcdefghijABCDEFGHIJ", "***"),
        ("other vendors' tokens", "hf_§abcdefghijABCDEFGHIJabcdefghij", "***"),
        ("JSON web token", "got eyJ§hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "got ***"),
        ("option with a value", "host --token abc --verbose", "host --token *** --verbose"),
        ("option with a value", "host --api-key 'a b' -v", "host --api-key '*** b' -v"),
        ("option with a value", r#"["--password","x1"]"#, r#"["--password","***"]"#),
        ("quoted value of a named variable", r#"{"apiKey": "a b\"c", "n": 1}"#, r#"{"apiKey": "***\"c", "n": 1}"#),
        ("quoted value of a named variable", "DB_PASSWORD='a b c'", "DB_PASSWORD='***'"),
        ("quoted value of a named variable", r#""{\"clientSecret\":\"abc\"}""#, r#""{\"clientSecret\":\"***\"}""#),
        ("value of a named variable", "OPENAI_API_KEY=abc next", "OPENAI_API_KEY=*** next"),
        ("value of a named variable", "https://x.test/?access_token=abc&b=2", "https://x.test/?access_token=***&b=2"),
        ("value of a named variable", "password: hunter", "password: ***"),
        ("value of a named variable", "X-Api-Key: abc", "X-Api-Key: ***"),
        ("value of a named variable", "--token=abc", "--token=***"),
        ("value of a named variable", "token: 4f0c22", "token: ***"),
        ("value of a named variable", "PASSWORD=123456", "PASSWORD=***"),
        ("long value after a telling word", "the secret is 0123456789abcdef0123", "the secret is ***"),
        (
            "long value after a telling word",
            "invalid API key provided, A1B2C3D4E5F6G7H8I9J0K1",
            "invalid API key provided, ***",
        ),
        ("home directory on Windows, as a prefix", r"C:\Users\Ann Lee\x.txt", r"C:\Users\***\x.txt"),
        ("home directory on Windows, as a prefix", r"c:\\users\\ann\\x.txt", r"c:\\users\\***\\x.txt"),
        ("home directory on Windows", r"in C:\Users\ann now", r"in C:\Users\*** now"),
        (
            "home directory",
            "at /home/ann/x.rs:3 and file:///Users/ann/y",
            "at /home/***/x.rs:3 and file:///Users/***/y",
        ),
    ];

    /// Ordinary text that must stay as it is.
    const ORDINARY: &[&str] = &[
        "",
        "starting host 1.2.3 on port 8080",
        "thread 'main' panicked at src/main.rs:10:5: index out of bounds",
        "error: unexpected token: identifier",
        "Unexpected token < in JSON at position 0",
        "the option --token is missing",
        "use crate::token::Parser; let key = &map",
        "a basic understanding, and bearer certificates",
        "task-force-with-a-long-name disk-usage-of-everything-here",
        "max_tokens=4096 input_tokens: 12 total_tokens: 9000",
        "monkey=banana keyboard: qwertz turkey: 12 hockey=puck",
        "https://example.com/home/page?a=b#c and mail to a@example.com",
        "see https://example.com/users/ann and git@example.com:a/b.git",
        "press any key to continue",
        "wrote 10 files to build/output in 3.2 s; passed: 12, bypass=no",
        "commit 4f0c22aa9b1e4f0c22aa9b1e4f0c22aa9b1e4f0c",
        "00000000-0000-4000-8000-000000000000",
    ];

    #[test]
    fn every_pattern_compiles_and_has_an_example_that_only_it_masks_whole() {
        for (pattern, regex) in REGEXES.iter() {
            assert!(regex.capture_names().flatten().any(|name| name == "secret"), "{}", pattern.name);
            let mut examples = EXAMPLES.iter().filter(|(name, ..)| *name == pattern.name).peekable();
            assert!(examples.peek().is_some(), "{} has no example", pattern.name);
            for (_, text, _) in examples {
                let text = text.replace('§', "");
                assert!(TRIGGERS.is_match(&text), "{}: no trigger in {text}", pattern.name);
                assert_ne!(mask_pattern(pattern.when, regex, &text), text, "{}", pattern.name);
            }
        }
        assert!(EXAMPLES.iter().all(|(name, ..)| PATTERNS.iter().any(|pattern| pattern.name == *name)));
    }

    #[test]
    fn the_examples_are_masked() {
        for (name, text, wanted) in EXAMPLES {
            assert_eq!(Redactor::plain().mask(&text.replace('§', "")), *wanted, "{name}");
        }
    }

    #[test]
    fn masking_twice_changes_nothing() {
        for (name, text, _) in EXAMPLES {
            let once = Redactor::plain().mask(&text.replace('§', "")).into_owned();
            assert_eq!(Redactor::plain().mask(&once), once, "{name}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in ORDINARY {
            assert_eq!(Redactor::plain().mask(text), *text);
        }
    }

    #[test]
    fn the_values_of_telling_variables_are_masked_wherever_they_stand() {
        let redactor = Redactor::for_variables([
            ("MY_TOKEN", "plain words"),
            ("HOST_PASSWORD", "a\"b\\c-d"),
            ("LONG_KEY", "plain words and more"),
            ("SHORT_KEY", "abc"),
            ("MODE", "ordinary"),
        ]);
        assert_eq!(
            redactor.mask("<plain words and more> <plain words> <a\"b\\c-d> <a\\\"b\\\\c-d> abc ordinary"),
            "<***> <***> <***> <***> abc ordinary"
        );
        assert!(!format!("{redactor:?}").contains("plain"));
    }

    #[test]
    fn the_home_directory_is_masked_only_where_it_is_one() {
        assert_eq!(mask_home("/root/x /rooted /a/root /root", "/root"), "~/x /rooted /a/root ~");
        assert_eq!(mask_home("file:///srv/ann/x", "/srv/ann"), "file://~/x");
    }

    #[test]
    fn names_are_read_by_their_words() {
        for name in [
            "key",
            "API_KEY",
            "apiKey",
            "APIKey",
            "APIKEY",
            "x-api-key",
            "authToken",
            "AUTHTOKEN",
            "dbPassword",
            "client.secret",
            "KEY_2",
        ] {
            assert!(name_says_secret(name), "{name}");
        }
        for name in ["", "monkey", "keyboard", "Keyed", "tokenizer", "secretary", "compass", "PATH", "HOME"] {
            assert!(!name_says_secret(name), "{name}");
        }
    }

    #[test]
    fn members_are_masked_by_name_and_by_shape() {
        let redactor = Redactor::plain();
        assert_eq!(redactor.mask_member("apiKey", "x").as_deref(), Some(MASK));
        assert_eq!(redactor.mask_member("key", "theme"), None);
        assert_eq!(redactor.mask_member("key", "a1b2").as_deref(), Some(MASK));
        assert_eq!(redactor.mask_member("text", "hello"), None);
        assert_eq!(redactor.mask_member("text", "Bearer abcdef123456").as_deref(), Some("Bearer ***"));
    }
}
