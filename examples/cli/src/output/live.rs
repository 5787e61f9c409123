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

/// The text that is being written.
#[derive(Debug)]
struct Writing {
    id: ItemId,
    /// What was printed of it.
    shown: String,
    /// Its length, counted as it grows.
    units: u64,
}

/// Prints events as they come.
#[derive(Debug)]
pub(crate) struct Live {
    out: Output,
    notes: Notes,
    progress: Progress,
    text: Option<Writing>,
    /// Texts that were printed whole: a reload tells them again.
    told: Vec<String>,
}

impl Live {
    pub(crate) fn new(out: Output, notes: Notes) -> Self {
        Live { out, notes, progress: Progress::new(out.json), text: None, told: Vec::new() }
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
                self.end_text()?;
                self.told.clear();
                let mark = if finished.status.as_str() == "completed" { "■" } else { "✗" };
                self.note(mark, "run", &describe(&event.kind))?;
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
                self.note(if event.durable { mark } else { "  ✓" }, word, &result)?;
            }
            EventKind::PlanUpdated(event) => self.note("☰", "plan", &plan(&event.steps))?,
            EventKind::Gap(_) => self.note("!", "gap", &describe(&event.kind))?,
            // What the person typed stands there already; the queue shows what waits, and that is news.
            EventKind::MessageUser(_) | EventKind::ChatSettings(_) | EventKind::ChatWorkspace(_) => {}
            kind => self.note("·", kind.name(), &describe(kind))?,
        }
        self.wait();
        Ok(())
    }

    /// A line beside the text.
    pub(crate) fn note(&mut self, mark: &str, word: &str, text: &str) -> io::Result<()> {
        self.end_text()?;
        let line = format!("{} {} {text}", style(mark).cyan(), style(word).dim());
        match self.notes {
            Notes::Stdout => self.out.line(line.trim_end()),
            Notes::Stderr => {
                self.out.note(format!("{mark} {word} {text}").trim_end());
                Ok(())
            }
        }
    }

    /// Shows that more may come.
    pub(crate) fn wait(&mut self) {
        if self.text.is_none() {
            self.progress.show("the agent works");
        }
    }

    /// Ends the line that the agent writes, for something else to be printed.
    pub(crate) fn end_text(&mut self) -> io::Result<()> {
        self.progress.hide();
        if let Some(Writing { shown, .. }) = self.text.take() {
            if !shown.ends_with('\n') && !shown.is_empty() {
                self.out.piece("\n")?;
            }
            self.told.push(shown);
        }
        Ok(())
    }

    fn delta(&mut self, id: &ItemId, offset: u64, piece: &str) -> io::Result<()> {
        let mut writing = match self.text.take() {
            Some(writing) if writing.id == *id && offset >= writing.units => writing,
            Some(writing) if writing.id == *id => {
                // What is printed can't be taken back.
                self.out.piece("\n")?;
                self.note("↺", "the agent begins anew from here", "")?;
                let shown = utf16_prefix(&writing.shown, offset);
                self.out.piece(&clean(&shown))?;
                Writing { units: utf16_len(&shown), shown, ..writing }
            }
            other => {
                self.text = other;
                self.end_text()?;
                if offset > 0 {
                    self.out.piece("… ")?;
                }
                Writing { id: id.clone(), shown: String::new(), units: offset }
            }
        };
        writing.shown.push_str(piece);
        writing.units += utf16_len(piece);
        self.text = Some(writing);
        self.out.piece(&clean(piece))
    }

    /// The whole of a text, most often printed already.
    fn whole(&mut self, durable: bool, text: &str) -> io::Result<()> {
        if let Some(Writing { shown, .. }) = &mut self.text {
            if let Some(rest) = text.strip_prefix(shown.as_str()) {
                self.out.piece(&clean(rest))?;
                text.clone_into(shown);
                return self.end_text();
            }
            let joined_late = text.ends_with(shown.as_str());
            self.end_text()?;
            if joined_late {
                self.told.push(text.to_owned());
                return Ok(());
            }
            self.note("↺", "the reply is", "")?;
        } else if self.told.iter().any(|told| told == text) || (!durable && self.told.is_empty()) {
            return Ok(());
        }
        self.told.push(text.to_owned());
        self.out.line(clean(text))
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
