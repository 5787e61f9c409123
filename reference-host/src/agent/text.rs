//! Text: deltas that are provisional, paragraphs that confirm them, and what becomes of both when a step goes wrong.

use super::{Runner, SLOW, compact, prose};
use crate::failure::Outcome;
use crate::outbox::Piece;

/// What separates paragraphs; a paragraph that another one follows is confirmed with it.
const SEPARATOR: &str = "\n\n";

/// Deltas pushed at a time: a few kilobytes, so that nobody waits long for the outbox.
const BATCH: usize = 256;

/// The longest piece of text in a delta, in characters.
const PIECE_CHARS: usize = 12;

/// Deltas of a flood between two confirmations.
const FLOOD_PARAGRAPH: u64 = 200;

/// The text of the step that goes on.
#[derive(Debug, Default)]
pub(crate) struct StepText {
    confirmed: String,
    /// Shown, not confirmed.
    open: String,
}

impl StepText {
    pub(super) fn is_empty(&self) -> bool {
        self.confirmed.is_empty() && self.open.is_empty()
    }

    /// All of it; the next step begins with none.
    pub(super) fn whole(&mut self) -> String {
        let mut text = std::mem::take(&mut self.confirmed);
        text.push_str(&std::mem::take(&mut self.open));
        text
    }
}

/// Cuts a text into pieces of random length, between characters but anywhere else.
fn pieces<'t>(rng: &mut fastrand::Rng, mut text: &'t str) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let chars = rng.usize(1..=PIECE_CHARS);
        let end = text.char_indices().nth(chars).map_or(text.len(), |(end, _)| end);
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

impl Runner {
    /// Begins a model request, where none goes on.
    pub(super) async fn begin(&mut self) -> Outcome<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.host.write(|tx| compact::compact_when_full(tx, &self.session, &self.run.run_id))?;
        self.transient("model_request", Piece::Empty).await;
        Ok(())
    }

    /// Tells one transient event.
    pub(super) async fn transient(&self, event_type: &'static str, data: Piece<'_>) {
        let mut once = Some((event_type, data));
        self.host.outbox.transients(&self.tag, &self.run.run_id, || once.take());
        self.host.outbox.room().await;
    }

    /// Says a text, paragraph by paragraph.
    pub(super) async fn say(&mut self, text: &str, slow: bool) -> Outcome<()> {
        self.begin().await?;
        for paragraph in text.split(SEPARATOR).filter(|paragraph| !paragraph.is_empty()) {
            self.separate().await;
            let pieces = pieces(&mut self.rng, paragraph);
            let pause = match (self.speed.is_zero(), slow) {
                (true, false) => None,
                (true, true) => Some(SLOW),
                (false, false) => Some(self.speed),
                (false, true) => Some(self.speed * 5),
            };
            for batch in pieces.chunks(if pause.is_some() { 1 } else { BATCH }) {
                self.deltas(batch);
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => {
                        self.host.outbox.room().await;
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        Ok(())
    }

    fn deltas(&mut self, batch: &[&str]) {
        let mut pieces = batch.iter();
        self.host
            .outbox
            .transients(&self.tag, &self.run.run_id, || pieces.next().map(|piece| ("text_delta", Piece::Text(piece))));
        batch.iter().for_each(|piece| self.text.open.push_str(piece));
    }

    /// Ends the paragraph that goes on because another one follows.
    async fn separate(&mut self) {
        if !self.text.open.is_empty() {
            self.deltas(&[SEPARATOR]);
            self.confirm().await;
        }
    }

    /// Confirms the paragraph that goes on.
    pub(super) async fn close_paragraph(&mut self) -> Outcome<()> {
        if !self.text.open.is_empty() {
            self.confirm().await;
        }
        Ok(())
    }

    async fn confirm(&mut self) {
        let paragraph = std::mem::take(&mut self.text.open);
        self.text.confirmed.push_str(&paragraph);
        self.transient("paragraph", Piece::Text(&paragraph)).await;
    }

    /// Answers a text that is no script.
    pub(super) async fn reply(&mut self, text: &str) -> Outcome<()> {
        let words = prose::words(&mut self.rng, 30);
        let said = if text.is_empty() { "You said nothing.".to_owned() } else { format!("You said: {text}") };
        self.say(&format!("{said}\n\n{words}"), false).await
    }

    /// The model is asked again: what it said in this step is gone.
    pub(super) async fn retry(&mut self) -> Outcome<()> {
        if self.text.is_empty() {
            let text = prose::words(&mut self.rng, 12);
            self.say(&text, false).await?;
        }
        self.text = StepText::default();
        self.transient("model_request", Piece::Empty).await;
        Ok(())
    }

    /// Shows one text and confirms another.
    pub(super) async fn mismatch(&mut self) -> Outcome<()> {
        self.say("The sky over the hills is green today.", false).await?;
        self.text.open = self.text.open.replace("green today", "blue, as ever");
        self.confirm().await;
        Ok(())
    }

    /// So many small deltas, as fast as they are taken.
    pub(super) async fn flood(&mut self, count: u64) -> Outcome<()> {
        const WORDS: [&str; 4] = ["drip ", "drop ", "splash ", "hush "];
        self.begin().await?;
        self.separate().await;
        let mut batch = Vec::with_capacity(BATCH);
        let mut done = 0;
        while done < count {
            let end = count.min((done / FLOOD_PARAGRAPH + 1) * FLOOD_PARAGRAPH);
            batch.clear();
            batch.extend((done..end).map(|n| WORDS[(n % 4) as usize]));
            self.deltas(&batch);
            done = end;
            if done.is_multiple_of(FLOOD_PARAGRAPH) {
                self.confirm().await;
            }
            self.host.outbox.room().await;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let mut rng = fastrand::Rng::with_seed(2);
        for text in ["", "a", prose::UNICODE, &"x".repeat(1000)] {
            let pieces = pieces(&mut rng, text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.chars().count() <= PIECE_CHARS));
        }
    }
}
