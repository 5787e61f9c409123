//! Provisional text: what a run's deltas and paragraphs show until the host confirms it. Pure.
//!
//! Deltas are shown at once; a paragraph confirms them, and is compared from the end of the last confirmed one. Only the
//! text since then is kept, so that a delta costs its own length, however long the reply is. A stream that joins in
//! the middle of a run does not know what was shown before: fragments are skipped until the next model request.

use crate::model::{ItemId, RunId};
use crate::stream::utf16_len;

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A piece at an offset, which cuts what was shown from there on.
    Delta { message_id: ItemId, offset: u64, text: String },
    /// What was shown contradicts what the host confirmed; the confirmed text follows.
    Mismatch,
}

/// The text of the run that goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    run: Option<RunId>,
    step: u64,
    message_id: Option<ItemId>,
    /// Whether what was shown is known: not so after joining in the middle.
    joined: bool,
    requested: bool,
    tool_since_request: bool,
    confirmed_end: u64,
    shown_end: u64,
    /// What was shown since `confirmed_end`.
    unconfirmed: String,
}

impl Text {
    /// A run started, and all of it will be seen.
    pub(crate) fn run_started(&mut self, run: Option<&RunId>) {
        *self = Text { run: run.cloned(), step: 1, joined: true, ..Text::default() };
    }

    /// A run ended: there is nothing provisional any more.
    pub(crate) fn run_finished(&mut self) {
        *self = Text::default();
    }

    /// A durable tool event: the next model request begins a new step.
    pub(crate) fn tool(&mut self) {
        self.tool_since_request = true;
    }

    /// Fragments were lost, or the stream joins in the middle.
    pub(crate) fn lost(&mut self) {
        self.joined = false;
        self.unconfirmed = String::new();
    }

    /// A model request begins. True: it retries, and what was shown is to be read anew.
    pub(crate) fn model_request(&mut self, run: Option<&RunId>, show: &mut impl FnMut(Shown)) -> bool {
        self.enter(run);
        self.joined = true;
        let first = !std::mem::replace(&mut self.requested, true);
        let new_step = std::mem::take(&mut self.tool_since_request);
        if first {
            // What a stream that joined in the middle saw before is not this step's.
            self.restart_step();
            return false;
        }
        if new_step {
            self.step += 1;
            self.message_id = None;
            self.restart_step();
            return false;
        }
        self.restart_step();
        show(Shown::Delta { message_id: self.message_id(), offset: 0, text: String::new() });
        true
    }

    /// A piece of text.
    pub(crate) fn delta(&mut self, run: Option<&RunId>, text: String, show: &mut impl FnMut(Shown)) {
        self.enter(run);
        if !self.joined || text.is_empty() {
            return;
        }
        self.unconfirmed.push_str(&text);
        self.append(text, show);
    }

    /// A whole paragraph. True: it contradicts what was shown.
    pub(crate) fn paragraph(&mut self, run: Option<&RunId>, text: &str, show: &mut impl FnMut(Shown)) -> bool {
        self.enter(run);
        if !self.joined {
            return false;
        }
        if let Some(missing) = text.strip_prefix(self.unconfirmed.as_str()) {
            if !missing.is_empty() {
                self.append(missing.to_owned(), show);
            }
            self.unconfirmed.clear();
            self.confirmed_end = self.shown_end;
            return false;
        }
        if self.unconfirmed.starts_with(text) {
            // The next paragraph's first deltas came before this one's confirmation.
            self.unconfirmed.drain(..text.len());
            self.confirmed_end += utf16_len(text);
            return false;
        }
        show(Shown::Mismatch);
        self.unconfirmed.clear();
        self.shown_end = self.confirmed_end;
        self.append(text.to_owned(), show);
        self.confirmed_end = self.shown_end;
        true
    }

    fn append(&mut self, text: String, show: &mut impl FnMut(Shown)) {
        let offset = self.shown_end;
        self.shown_end += utf16_len(&text);
        show(Shown::Delta { message_id: self.message_id(), offset, text });
    }

    fn restart_step(&mut self) {
        self.unconfirmed.clear();
        self.confirmed_end = 0;
        self.shown_end = 0;
    }

    /// A fragment of another run than the one known: its start was not seen.
    fn enter(&mut self, run: Option<&RunId>) {
        if self.step == 0 || (run.is_some() && self.run.as_ref() != run) {
            *self = Text { run: run.cloned(), step: 1, ..Text::default() };
        }
    }

    fn message_id(&mut self) -> ItemId {
        let (run, step) = (self.run.as_deref().unwrap_or_default(), self.step);
        self.message_id.get_or_insert_with(|| format!("provisional:{run}:{step}").into()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that does what deltas say.
    #[derive(Default)]
    struct Screen {
        texts: Vec<(String, Vec<u16>)>,
        mismatches: usize,
        deltas: usize,
    }

    impl Screen {
        fn show(&mut self, shown: Shown) {
            match shown {
                Shown::Mismatch => self.mismatches += 1,
                Shown::Delta { message_id, offset, text } => {
                    self.deltas += 1;
                    let at = match self.texts.iter().position(|(id, _)| *id == *message_id) {
                        Some(at) => at,
                        None => {
                            self.texts.push((message_id.to_string(), Vec::new()));
                            self.texts.len() - 1
                        }
                    };
                    let units = &mut self.texts[at].1;
                    assert!(offset as usize <= units.len(), "a delta must not begin behind the text");
                    units.truncate(offset as usize);
                    units.extend(text.encode_utf16());
                }
            }
        }

        fn text(&self, id: &str) -> String {
            let (_, units) = self.texts.iter().find(|(known, _)| known == id).expect("shown");
            String::from_utf16(units).unwrap()
        }
    }

    fn started() -> (Text, Screen, RunId) {
        let run = RunId::from("r");
        let mut text = Text::default();
        text.run_started(Some(&run));
        (text, Screen::default(), run)
    }

    #[test]
    fn a_matching_paragraph_emits_only_the_missing_suffix() {
        let (mut text, mut screen, run) = started();
        assert!(!text.model_request(Some(&run), &mut |s| screen.show(s)));
        text.delta(Some(&run), "One 𝄞".into(), &mut |s| screen.show(s));
        assert!(!text.paragraph(Some(&run), "One 𝄞 two.\n\n", &mut |s| screen.show(s)));
        text.delta(Some(&run), "Next".into(), &mut |s| screen.show(s));
        assert!(!text.paragraph(Some(&run), "Next", &mut |s| screen.show(s)));
        assert_eq!(screen.text("provisional:r:1"), "One 𝄞 two.\n\nNext");
        assert_eq!((screen.deltas, screen.mismatches), (3, 0));
    }

    #[test]
    fn deltas_may_run_ahead_of_the_confirmation() {
        let (mut text, mut screen, run) = started();
        text.delta(Some(&run), "a\n\nb".into(), &mut |s| screen.show(s));
        assert!(!text.paragraph(Some(&run), "a\n\n", &mut |s| screen.show(s)));
        assert!(!text.paragraph(Some(&run), "bc", &mut |s| screen.show(s)));
        assert_eq!(screen.text("provisional:r:1"), "a\n\nbc");
    }

    #[test]
    fn a_contradiction_gives_a_mismatch_and_the_confirmed_text() {
        let (mut text, mut screen, run) = started();
        text.paragraph(Some(&run), "Kept. ", &mut |s| screen.show(s));
        text.delta(Some(&run), "wrong".into(), &mut |s| screen.show(s));
        assert!(text.paragraph(Some(&run), "right", &mut |s| screen.show(s)));
        assert_eq!(screen.text("provisional:r:1"), "Kept. right");
        assert_eq!(screen.mismatches, 1);
    }

    #[test]
    fn a_request_after_a_tool_is_a_new_step_and_the_shown_text_stays() {
        let (mut text, mut screen, run) = started();
        text.model_request(Some(&run), &mut |s| screen.show(s));
        text.delta(Some(&run), "first".into(), &mut |s| screen.show(s));
        text.tool();
        assert!(!text.model_request(Some(&run), &mut |s| screen.show(s)));
        text.delta(Some(&run), "second".into(), &mut |s| screen.show(s));
        assert_eq!(screen.text("provisional:r:1"), "first");
        assert_eq!(screen.text("provisional:r:2"), "second");
    }

    #[test]
    fn a_request_without_a_tool_is_a_retry_and_cuts_the_text() {
        let (mut text, mut screen, run) = started();
        text.model_request(Some(&run), &mut |s| screen.show(s));
        text.delta(Some(&run), "thrown away".into(), &mut |s| screen.show(s));
        assert!(text.model_request(Some(&run), &mut |s| screen.show(s)));
        assert_eq!(screen.text("provisional:r:1"), "");
        text.delta(Some(&run), "again".into(), &mut |s| screen.show(s));
        assert_eq!(screen.text("provisional:r:1"), "again");
    }

    #[test]
    fn joining_in_the_middle_skips_fragments_until_the_next_request() {
        let (mut text, mut screen, run) = (Text::default(), Screen::default(), RunId::from("r"));
        text.delta(Some(&run), "gment".into(), &mut |s| screen.show(s));
        text.paragraph(Some(&run), "fragment", &mut |s| screen.show(s));
        assert_eq!(screen.deltas, 0);
        text.model_request(Some(&run), &mut |s| screen.show(s));
        text.delta(Some(&run), "whole".into(), &mut |s| screen.show(s));
        assert_eq!(screen.text("provisional:r:1"), "whole");
    }

    #[test]
    fn after_a_loss_fragments_are_skipped_until_the_next_request() {
        let (mut text, mut screen, run) = started();
        text.model_request(Some(&run), &mut |s| screen.show(s));
        text.delta(Some(&run), "shown".into(), &mut |s| screen.show(s));
        text.lost();
        text.delta(Some(&run), "skipped".into(), &mut |s| screen.show(s));
        text.paragraph(Some(&run), "skipped", &mut |s| screen.show(s));
        assert_eq!(screen.text("provisional:r:1"), "shown");
        text.tool();
        text.model_request(Some(&run), &mut |s| screen.show(s));
        text.delta(Some(&run), "new".into(), &mut |s| screen.show(s));
        assert_eq!(screen.text("provisional:r:2"), "new");
    }
}
