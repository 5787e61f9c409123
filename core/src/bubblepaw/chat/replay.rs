//! Pages of the history for streams that catch up.

use super::subscriber::Mode;
use super::{ChatTask, is_connection_error};
use crate::bubblepaw::session::Page;
use crate::error::Result;
use crate::model::GapReason;

impl ChatTask {
    pub(super) fn fetch(&mut self, index: usize) {
        let stream = &self.streams[index];
        let (core, chat, id) = (self.core.clone(), self.chat.clone(), stream.id);
        let (after, limit) = (stream.projector.cursor.ask_after(), stream.page_events());
        self.pages.push(Box::pin(async move { (id, core.load_page(&chat, after, limit).await) }));
    }

    pub(super) fn page(&mut self, id: u64, page: Result<Page>) {
        let Some(index) = self.streams.iter().position(|stream| stream.id == id) else { return };
        let stream = &mut self.streams[index];
        if !matches!(stream.mode, Mode::Fetching) {
            return;
        }
        match page {
            Ok(Page::Events { events, more }) => {
                let next = stream.page(events, more);
                self.go_on(index, next);
            }
            Ok(Page::Gone) => self.durable_lost(index, GapReason::Retention),
            Ok(Page::TooLarge) => match stream.smaller_page() {
                Some(next) => self.go_on(index, next),
                None => self.durable_lost(index, GapReason::Oversize),
            },
            Err(error) if is_connection_error(&error) => stream.mode = Mode::Disconnected,
            Err(error) => self.streams.swap_remove(index).end(Some(error)),
        }
        self.diff_if_delivered();
    }

    /// Durable events are gone: the stream goes on from a fresh snapshot.
    pub(super) fn durable_lost(&mut self, index: usize, reason: GapReason) {
        let reload = self.reloads.want();
        let stream = &mut self.streams[index];
        stream.projector.lost();
        stream.missed = true;
        stream.mode = Mode::Lost { reason, reload };
    }
}
