//! When a reload is diffed: once every durable event up to it is delivered to the live streams.

use std::time::Duration;

use tokio::time::Instant;

use super::ChatTask;
use super::subscriber::{PAGE_EVENTS, Subscriber};
use crate::bubblepaw::diff::{Change, diff};
use crate::bubblepaw::known::Known;
use crate::bubblepaw::sequence;
use crate::bubblepaw::session::Page;
use crate::bubblepaw::snapshot::View;
use crate::error::Result;
use crate::stream::Pushed;

/// How long an event that a snapshot has already may still be on its way, until the history is asked for it.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(100);

/// A reload whose diff waits until everything up to it is delivered.
pub(super) struct Held {
    pub(super) number: u64,
    pub(super) view: View,
    pub(super) until: Instant,
}

impl ChatTask {
    /// A diff is made once every durable event up to the snapshot is delivered.
    pub(super) fn diff_if_delivered(&mut self) {
        let Some(held) = &self.held else { return };
        let (number, sequence) = (held.number, held.view.host_sequence);
        let concerned = self.streams.iter().filter(|stream| stream.is_live() && stream.diffs_from <= number);
        let lowest = concerned.map(|stream| stream.projector.cursor).min();
        if let Some(lowest) = lowest.filter(|lowest| lowest.host < sequence) {
            // A host may count what it tells nobody: the history says whether there is anything between.
            if self.probing.is_none() && self.connected {
                let (core, chat) = (self.core.clone(), self.chat.clone());
                self.probing =
                    Some(Box::pin(
                        async move { (number, core.load_page(&chat, lowest.ask_after(), PAGE_EVENTS).await) },
                    ));
            }
            return;
        }
        let Some(Held { number, view, .. }) = self.held.take() else { return };
        let child_events = self.core.has_child_events();
        let mut shared: Option<Vec<Change>> = None;
        for stream in self.streams.iter_mut().filter(|stream| stream.is_live() && stream.diffs_from <= number) {
            let changes = match (stream.base.take(), &self.known) {
                (Some(base), _) => diff(&base, &view, &self.recent, child_events),
                (None, Some(known)) => {
                    shared.get_or_insert_with(|| diff(known, &view, &self.recent, child_events)).clone()
                }
                (None, None) => Vec::new(),
            };
            let mut batch = stream.sink.batch();
            for Change { run, kind } in changes {
                if batch.push(stream.projector.transient(kind, run)) == Pushed::Ended {
                    break;
                }
            }
            drop(batch);
            stream.tell_end_of_awaited(&view.snapshot.runs);
        }
        self.recent.forget_up_to(sequence);
        let run_model = self.known.take().and_then(|known| known.run_model);
        self.known = Some(Known::of(&view, run_model, &self.recent));
    }

    /// What the history has between the live streams and the reload that is held.
    pub(super) fn probed(&mut self, number: u64, page: Result<Page>) {
        self.probing = None;
        self.read_mail();
        let Some(held) = self.held.as_ref().filter(|held| held.number == number) else { return };
        let sequence = held.view.host_sequence;
        // Where it can't be told, the time to settle runs out, and each stream reads the history for itself.
        let Ok(Page::Events { events, more: false }) = page else { return };
        let last = events.iter().map(|event| event.sequence).filter(|host| *host <= sequence).max();
        let delivered = |stream: &Subscriber| last.is_none_or(|last| stream.projector.cursor.covers_whole(last));
        if self.streams.iter().filter(|stream| stream.is_live()).all(delivered) {
            for stream in self.streams.iter_mut().filter(|stream| stream.is_live()) {
                stream.projector.cursor = stream.projector.cursor.max(sequence::Cursor::whole(sequence));
            }
            self.diff_if_delivered();
        }
    }

    /// What a snapshot has should have come by now.
    pub(super) fn settle_time_over(&mut self) {
        let now = Instant::now();
        let Some(held) = self.held.take_if(|held| held.until <= now) else { return };
        let known = self.known.take();
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            let behind = stream.projector.cursor.host < held.view.host_sequence;
            if stream.is_live() && behind {
                let next = stream.confirm(held.view.host_sequence, known.as_ref());
                self.go_on(index, next);
            }
        }
        self.known = known;
        self.reloads.want();
    }
}
