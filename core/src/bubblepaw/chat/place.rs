//! What a reload means for streams that waited for it: their place, or their end.

use tokio::time::Instant;

use super::settle::{Held, SETTLE_TIME};
use super::subscriber::{Mode, Next, Subscriber};
use super::{ChatTask, is_connection_error};
use crate::bubblepaw::context::window;
use crate::bubblepaw::known::{Known, KnownItems, Recent};
use crate::bubblepaw::sequence;
use crate::bubblepaw::snapshot::View;
use crate::error::{KitError, Result};
use crate::model::{Gap, GapReason, Seq};

impl ChatTask {
    pub(super) fn reloaded(&mut self, number: u64, view: Result<View>) {
        match view {
            Ok(view) => {
                // What came before the answer is delivered before the answer is looked at.
                self.read_mail();
                if self.core.has_context() {
                    // What the model sees changes with the state: a late compaction is applied without an event of its own.
                    self.look_with = Some(window(&view.snapshot.usage));
                }
                self.place(number, &view);
                self.held = Some(Held { number, view, until: Instant::now() + SETTLE_TIME });
                self.diff_if_delivered();
            }
            Err(error) if is_connection_error(&error) => {
                self.reloads.want();
                // The end of the connection is on its way; until then nothing is asked of it.
                self.connected = false;
            }
            Err(error) => self.reload_failed(number, error),
        }
    }

    /// Streams that waited for this reload take their place.
    pub(super) fn place(&mut self, number: u64, view: &View) {
        let snapshot_seq = sequence::kit_final(view.host_sequence);
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            let next = match &stream.mode {
                Mode::Starting { reload } if *reload <= number => {
                    let base = match stream.start_at(view.host_sequence) {
                        // It starts below the snapshot: what changed in between is news to its app.
                        Some(run) => {
                            let mut known = Known::unknown(KnownItems::BeforeRun(run));
                            // A title hardly changes in that moment, and would look like a rename each time.
                            known.title = Some(view.snapshot.chat.title.clone());
                            known
                        }
                        None => Known::of(view, None, &Recent::default()),
                    };
                    stream.base = Some(base);
                    Some(stream.join_live())
                }
                Mode::Checking { reload } if *reload <= number => {
                    if stream.projector.cursor.host > view.host_sequence {
                        // What the chat's other streams know is of this life of the host: it was forgotten with the last one.
                        Some(go_on_after(stream, GapReason::Ahead, view, snapshot_seq))
                    } else {
                        Some(stream.join_live())
                    }
                }
                Mode::Lost { reason, reload } if *reload <= number => {
                    let reason = reason.clone();
                    Some(go_on_after(stream, reason, view, snapshot_seq))
                }
                _ => None,
            };
            match next {
                // This reload is the one it was placed by; another tells something new only where an event that came
                // meanwhile, behind the snapshot, asks for it.
                Some(Next::Reload) => {
                    let stream = &mut self.streams[index];
                    stream.diffs_from = number;
                    if stream.wants_reload_at.take().is_some_and(|at| at > view.host_sequence) {
                        self.reloads.want();
                    }
                }
                Some(next) => self.go_on(index, next),
                None => {}
            }
        }
    }

    pub(super) fn reload_failed(&mut self, number: u64, error: KitError) {
        let gone = matches!(error, KitError::NotFound(_));
        let mut index = 0;
        while index < self.streams.len() {
            let stream = &mut self.streams[index];
            let waits = match stream.mode {
                Mode::Starting { reload } | Mode::Checking { reload } | Mode::Lost { reload, .. } => reload <= number,
                _ => false,
            };
            if waits || gone {
                // It has no place without a snapshot.
                self.streams.swap_remove(index).end(Some(error.clone()));
                continue;
            }
            if stream.is_live() {
                // What the state would have told is missing: the app had better look itself.
                let doubt = stream.projector.doubt(GapReason::Mismatch);
                stream.tell(doubt);
            }
            index += 1;
        }
    }
}

/// Tells that durable events are gone, and goes on after the fresh snapshot.
fn go_on_after(stream: &mut Subscriber, reason: GapReason, view: &View, snapshot_seq: Seq) -> Next {
    stream.projector.cursor = sequence::Cursor::whole(view.host_sequence);
    stream.projector.lost();
    stream.base = Some(Known::of(view, None, &Recent::default()));
    let gap = stream.projector.transient(Gap { reason, lost: true, snapshot_seq: Some(snapshot_seq) }, None);
    stream.tell(gap);
    stream.join_live()
}
