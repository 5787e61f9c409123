//! The inbox of a chat's task: live events and what else concerns it, in order. Pushing never waits.
//!
//! It is bounded: where live events come faster than the task takes them, they are dropped and `Lost` says so, which
//! is made good by replay like a gap of the host's own.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::chat::Subscriber;
use super::wire::{EventData, HarnessEvent};
use crate::error::KitError;
use crate::lock::lock;

/// Live events that wait at most. The task takes all at once, so this is what comes during one turn of it.
const MAX_EVENTS: usize = 65_536;

/// Bytes that wait at most, as estimated from the texts in the events.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What concerns a chat's task.
pub(crate) enum Mail {
    /// Live events, in order.
    Live(Vec<HarnessEvent>),
    /// Live events were lost.
    Lost,
    /// A new stream.
    Attach(Box<Subscriber>),
    /// The state may have changed without an event.
    Refresh,
    /// It is now known which run a stream waits for.
    Awaited,
    /// The host is gone and is being started anew.
    Down,
    /// The host is back.
    Up,
    /// It is over, with an error where something ended it.
    Over(Option<KitError>),
}

#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Default)]
struct State {
    mail: VecDeque<Mail>,
    events: usize,
    bytes: usize,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn push(&self, mail: Mail) {
        self.lock().mail.push_back(mail);
        self.notify.notify_one();
    }

    /// Adds live events. False: there were too many, and all that waited are dropped.
    pub(crate) fn push_live(&self, events: impl Iterator<Item = HarnessEvent>) -> bool {
        let mut state = self.lock();
        let State { mail, events: count, bytes } = &mut *state;
        if !matches!(mail.back(), Some(Mail::Live(_))) {
            mail.push_back(Mail::Live(Vec::new()));
        }
        if let Some(Mail::Live(live)) = mail.back_mut() {
            live.reserve(events.size_hint().1.unwrap_or_default());
            live.extend(events.inspect(|event| {
                *count += 1;
                *bytes += event_bytes(event);
            }));
        }
        let kept = state.events <= MAX_EVENTS && state.bytes <= MAX_BYTES;
        if !kept {
            state.mail.retain(|mail| !matches!(mail, Mail::Live(_)));
            state.mail.push_back(Mail::Lost);
            (state.events, state.bytes) = (0, 0);
        }
        drop(state);
        self.notify.notify_one();
        kept
    }

    /// All mail that is there, in order.
    pub(crate) fn take(&self) -> VecDeque<Mail> {
        std::mem::take(&mut *self.lock()).mail
    }

    /// Waits until there is mail.
    pub(crate) async fn filled(&self) {
        while self.is_empty() {
            self.notify.notified().await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().mail.is_empty()
    }
}

/// About how many bytes an event holds.
pub(crate) fn event_bytes(event: &HarnessEvent) -> usize {
    let payload = match &event.data {
        EventData::TextDelta { text } | EventData::Paragraph { text } => text.len(),
        EventData::RunFinished { text, .. } => text.as_ref().map_or(0, String::len),
        EventData::ToolStarted { call } => crate::stream::value_bytes(&call.arguments),
        EventData::ToolFinished { result, .. } => crate::stream::value_bytes(result),
        EventData::OutputRecord { output } => output.text.as_ref().map_or(0, String::len),
        EventData::ApprovalRequested { approval } => approval.arguments.as_ref().map_or(0, crate::stream::value_bytes),
        _ => 0,
    };
    size_of::<HarnessEvent>() + payload
}
