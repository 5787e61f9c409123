//! What a look at the context tells the live streams.

use std::sync::Arc;

use super::ChatTask;
use crate::bubblepaw::context::Look;
use crate::error::Result;
use crate::model::{CompactionUpdated, ContextChanged};

impl ChatTask {
    /// What the model sees was looked at.
    pub(super) fn looked(&mut self, window: Option<u64>, look: Result<Look>) {
        self.looking = None;
        // What came before the answer is known before the answer is looked at.
        self.read_mail();
        let Ok(Look { state, view }) = look else {
            // The next reload looks again; a chat's other events don't depend on it.
            return;
        };
        let state = Arc::new(state);
        for stream in self.streams.iter_mut().filter(|stream| stream.is_live()) {
            let (applied, view_is_news) = stream.context.news(&state);
            if view_is_news && view.is_none() {
                // It was announced, or the stream came, while the look was under way.
                self.look_with.get_or_insert(window);
                continue;
            }
            for compaction in applied {
                stream.tell(stream.projector.transient(CompactionUpdated { compaction }, None));
            }
            if let Some(view) = view.as_ref().filter(|_| view_is_news) {
                stream.tell(stream.projector.transient(ContextChanged { view: view.clone() }, None));
            }
            stream.context.learn(&state);
        }
    }
}
