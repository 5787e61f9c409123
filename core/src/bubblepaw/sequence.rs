//! Host sequences and kit sequences: a host event has 16 kit positions, so that one can give several kit events.
//!
//! Which position a kit event has is a static table by the host event's type. With it a cursor can be turned back.

use crate::model::Seq;

/// Kit positions of one host event.
const POSITIONS: u64 = 16;

/// The final position: a snapshot's, and a transient event's.
const FINAL: u64 = POSITIONS - 1;

/// The highest host sequence that has kit sequences.
pub(crate) const MAX_HOST_SEQUENCE: u64 = u64::MAX / POSITIONS;

/// A durable kit event of a host event type, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The host event's type; of `host_state_changed` with the key, and the question's with what it is.
    pub host: &'static str,
    /// The kit event's kind.
    pub kit: &'static str,
    /// The position.
    pub position: u64,
}

/// All durable kit events of all host event types.
pub const TABLE: &[Position] = &[
    Position { host: "run_started", kit: "run.started", position: 0 },
    Position { host: "run_waiting_for_quota", kit: "run.waiting", position: 0 },
    Position { host: "run_quota_resumed", kit: "run.started", position: 0 },
    Position { host: "run_finished", kit: "message.assistant", position: 0 },
    Position { host: "run_finished", kit: "run.finished", position: 1 },
    Position { host: "tool_started", kit: "tool.started", position: 0 },
    Position { host: "tool_finished", kit: "tool.finished", position: 0 },
    Position { host: "approval_requested", kit: "approval.requested", position: 0 },
    Position { host: "approval_resolved", kit: "approval.resolved", position: 0 },
    Position { host: "host_state_changed todo", kit: "plan.updated", position: 0 },
    Position { host: "host_state_changed question null", kit: "question.resolved", position: 0 },
    Position { host: "host_state_changed question", kit: "question.asked", position: 1 },
    Position { host: "output.record", kit: "message.system", position: 0 },
];

/// The last position that any host event uses: a cursor from there on has its host event whole.
const LAST_USED: u64 = 1;

/// The kit sequence of a position of a host event.
pub(crate) fn kit(host: u64, position: u64) -> Seq {
    Seq(host.min(MAX_HOST_SEQUENCE).saturating_mul(POSITIONS).saturating_add(position))
}

/// The kit sequence behind a whole host event.
pub(crate) fn kit_final(host: u64) -> Seq {
    kit(host, FINAL)
}

/// Where a stream is: the host event, and the position in it up to which all is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    pub(crate) host: u64,
    position: u64,
}

impl Cursor {
    pub(crate) const START: Cursor = Cursor { host: 0, position: FINAL };

    pub(crate) fn from_kit(seq: Seq) -> Self {
        // The beginning is before the first event, whatever position its number has.
        if seq.0 < POSITIONS { Cursor::START } else { Cursor { host: seq.0 / POSITIONS, position: seq.0 % POSITIONS } }
    }

    /// Behind a whole host event.
    pub(crate) fn whole(host: u64) -> Self {
        Cursor { host, position: FINAL }
    }

    /// After which host event to ask for more: a host event that may not be whole is asked for again.
    pub(crate) fn ask_after(self) -> u64 {
        if self.position >= LAST_USED { self.host } else { self.host - 1 }
    }

    /// Whether the event at `position` of host event `host` is delivered already.
    pub(crate) fn covers(self, host: u64, position: u64) -> bool {
        host < self.host || (host == self.host && position <= self.position)
    }

    /// Whether all of host event `host` is delivered already.
    pub(crate) fn covers_whole(self, host: u64) -> bool {
        host < self.host || (host == self.host && self.position >= LAST_USED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_position_used_is_that_of_the_table() {
        assert_eq!(TABLE.iter().map(|row| row.position).max(), Some(LAST_USED));
    }

    #[test]
    fn a_cursor_in_the_middle_of_a_host_event_asks_for_it_again() {
        let middle = Cursor::from_kit(kit(7, 0));
        assert_eq!(middle.ask_after(), 6);
        assert!(middle.covers(7, 0) && !middle.covers(7, 1) && !middle.covers_whole(7));
        for whole in [kit(7, 1), kit_final(7)] {
            let cursor = Cursor::from_kit(whole);
            assert_eq!(cursor.ask_after(), 7);
            assert!(cursor.covers_whole(7) && !cursor.covers(8, 0));
        }
    }

    #[test]
    fn the_beginning_asks_for_everything() {
        assert_eq!(Cursor::from_kit(Seq(0)).ask_after(), 0);
        assert_eq!(Cursor::from_kit(Seq(15)).ask_after(), 0);
        assert!(!Cursor::from_kit(Seq(0)).covers(1, 0));
    }

    #[test]
    fn sequences_beyond_the_range_do_not_wrap() {
        assert_eq!(kit_final(u64::MAX).0, u64::MAX);
    }
}
