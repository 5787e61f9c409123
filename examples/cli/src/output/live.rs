//! A run as it goes, on an output that can't take anything back: the agent's text as it comes, a line for all else.

use std::io;

use console::style;
use kitport::model::{Event, EventKind, Item, ItemId};

use super::{Output, Progress, clean, describe, item, plan, value};

/// Where the lines beside the agent's text go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notes {
    /// To stdout, between the text.
    Stdout,
    /// To stderr, so that stdout has the text alone.
    Stderr,
}

/// Prints events as they come.
#[derive(Debug)]
pub(crate) struct Live {
    out: Output,
    notes: Notes,
    progress: Progress,
    /// A person types: nothing may move.
    still: bool,
    writing: Option<Writing>,
    /// Lines that wait for the end of the text: they tell of a state, not of a place in it.
    later: Vec<(&'static str, String)>,
    /// Texts of this run that were printed whole: a reload tells them again.
    told: Vec<String>,
}

/// The text that was written last.
#[derive(Debug)]
struct Writing {
    id: ItemId,
    /// What was printed of it.
    shown: String,
    /// Where it goes on, in UTF-16 units; counted as it grows.
    units: u64,
    /// The line it is on has not ended.
    open: bool,
}

impl Live {
    pub(crate) fn new(out: Output, notes: Notes) -> Self {
        let progress = Progress::new(out.json);
        Live { out, notes, progress, still: false, writing: None, later: Vec::new(), told: Vec::new() }
    }

    /// Prints an event.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        if self.out.json {
            return self.out.json(event);
        }
        self.progress.hide();
        match &event.kind {
            EventKind::RunStarted(_) => self.note("▶", "run", &describe(&event.kind))?,
            EventKind::RunFinished(finished) => {
                let mark = if finished.status.as_str() == "completed" { "■" } else { "✗" };
                self.note(mark, "run", &describe(&event.kind))?;
                self.writing = None;
                self.told.clear();
                return Ok(());
            }
            EventKind::MessageDelta(delta) => return self.delta(&delta.message_id, delta.offset, &delta.text),
            EventKind::MessageAssistant(message) => self.whole(event.durable, &message.text)?,
            EventKind::ToolStarted(tool) => {
                let nested = matches!(&tool.call, Item::ToolCall(call) if !call.durable);
                self.note(if nested { "  ⚙" } else { "⚙" }, "tool", &item(&tool.call))?;
            }
            EventKind::ToolFinished(tool) => {
                let result = tool.result.as_ref().map(value).unwrap_or_default();
                let (mark, word) = if tool.is_error == Some(true) { ("✗", "failed") } else { ("✓", "gave") };
                let nested = format!("  {mark}");
                self.note(if event.durable { mark } else { &nested }, word, &result)?;
            }
            EventKind::PlanUpdated(event) => self.note("☰", "plan", &plan(&event.steps))?,
            EventKind::Gap(_) => self.note("!", "gap", &describe(&event.kind))?,
            // What the person typed stands there already, and totals are for those who ask.
            EventKind::MessageUser(_)
            | EventKind::ChatSettings(_)
            | EventKind::ChatWorkspace(_)
            | EventKind::UsageUpdated(_) => {}
            // A title told again is no news for one who sent a text.
            EventKind::ChatRenamed(_) if self.notes == Notes::Stderr => {}
            kind if !event.durable && self.is_open() => self.later.push((kind.name(), describe(kind))),
            kind => self.note("·", kind.name(), &describe(kind))?,
        }
        if !self.is_open() {
            self.wait();
        }
        Ok(())
    }

    /// A line beside the text.
    pub(crate) fn note(&mut self, mark: &str, word: &str, text: &str) -> io::Result<()> {
        self.end_text()?;
        self.print_note(mark, word, text)
    }

    /// Shows that more may come.
    pub(crate) fn wait(&mut self) {
        if !self.still {
            self.progress.show("the agent works");
        }
    }

    /// Whether a person is typing, so that no sign of life may be drawn.
    pub(crate) fn hold_still(&mut self, still: bool) {
        self.still = still;
        if still {
            self.progress.hide();
        } else if !self.is_open() {
            self.wait();
        }
    }

    /// Ends the line that the agent writes, for something else to be printed.
    pub(crate) fn end_text(&mut self) -> io::Result<()> {
        self.progress.hide();
        if let Some(writing) = self.writing.as_mut().filter(|writing| writing.open) {
            writing.open = false;
            if !writing.shown.ends_with('\n') {
                self.out.piece("\n")?;
            }
        }
        for (word, text) in std::mem::take(&mut self.later) {
            self.print_note("·", word, &text)?;
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.open)
    }

    fn print_note(&self, mark: &str, word: &str, text: &str) -> io::Result<()> {
        match self.notes {
            Notes::Stdout => {
                let line = format!("{} {} {text}", style(mark).cyan(), style(word).dim());
                self.out.line(line.trim_end())
            }
            Notes::Stderr => {
                self.out.note(format!("{mark} {word} {text}").trim_end());
                Ok(())
            }
        }
    }

    fn delta(&mut self, id: &ItemId, offset: u64, piece: &str) -> io::Result<()> {
        let mut writing = match self.writing.take() {
            Some(writing) if writing.id == *id && offset >= writing.units => writing,
            Some(writing) if writing.id == *id => {
                // What is printed can't be taken back.
                let shown = utf16_prefix(&writing.shown, offset);
                self.writing = Some(writing);
                self.note("↺", "the agent says it anew", "")?;
                self.out.piece(&clean(&shown))?;
                Writing { id: id.clone(), units: utf16_len(&shown), open: !shown.is_empty(), shown }
            }
            other => {
                self.writing = other;
                self.finish_text()?;
                // The beginning of one that is joined in the middle was not seen.
                Writing { id: id.clone(), shown: String::new(), units: offset, open: false }
            }
        };
        writing.shown.push_str(piece);
        writing.units += utf16_len(piece);
        let mut printed = piece;
        if !writing.open {
            // A paragraph that begins here needs no space above it.
            printed = piece.trim_start_matches('\n');
            if offset > 0 && printed.len() == piece.len() && !piece.is_empty() {
                self.out.piece("… ")?;
            }
            writing.open = !printed.is_empty();
        }
        self.writing = Some(writing);
        self.out.piece(&clean(printed))
    }

    /// The whole of a text, most often printed already.
    fn whole(&mut self, durable: bool, text: &str) -> io::Result<()> {
        if self.told.iter().any(|told| told == text) {
            return Ok(());
        }
        match &mut self.writing {
            Some(writing) if text.starts_with(&writing.shown) => {
                let rest = &text[writing.shown.len()..];
                if !rest.is_empty() {
                    let going_on = if writing.open || writing.shown.is_empty() { "" } else { "… " };
                    self.out.piece(&format!("{going_on}{}", clean(rest)))?;
                    writing.open = true;
                }
                text.clone_into(&mut writing.shown);
                self.finish_text()
            }
            Some(writing) if text.ends_with(&writing.shown) => {
                text.clone_into(&mut writing.shown);
                self.finish_text()
            }
            // A reload tells of texts that came before all that was seen here.
            _ if !durable => Ok(()),
            before => {
                if before.is_some() {
                    self.note("↺", "the reply is", "")?;
                }
                self.told.push(text.to_owned());
                self.out.line(clean(text))
            }
        }
    }

    /// The text is all there.
    fn finish_text(&mut self) -> io::Result<()> {
        self.end_text()?;
        self.told.extend(self.writing.take().map(|writing| writing.shown));
        Ok(())
    }
}

fn utf16_len(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// The first so many units of a text; half a character is left out.
fn utf16_prefix(text: &str, units: u64) -> String {
    let mut left = units;
    text.chars()
        .take_while(|c| {
            let len = c.len_utf16() as u64;
            let fits = len <= left;
            left = left.saturating_sub(len);
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_utf16_units() {
        assert_eq!(utf16_len("a𝄞"), 3);
        assert_eq!(utf16_prefix("a𝄞b", 3), "a𝄞");
        assert_eq!(utf16_prefix("a𝄞b", 2), "a");
        assert_eq!(utf16_prefix("ab", 9), "ab");
    }
}
