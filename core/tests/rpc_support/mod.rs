//! What the tests of the engine share: a place where everything that comes in is noted, and waits that never hang.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "it is for tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kitport::rpc::{ClientOptions, Ended, Inbound, Notifications};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Longer than anything here takes: reaching it is a hang.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// The notification of the tests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Event {
    pub(crate) n: u64,
    #[serde(default)]
    pub(crate) text: String,
}

pub(crate) struct Events;

impl Notifications for Events {
    type Item = Event;

    fn read<'de, D: Deserializer<'de>>(method: &str, params: D) -> Result<Option<Event>, D::Error> {
        match method {
            "event" => Event::deserialize(params).map(Some),
            _ => IgnoredAny::deserialize(params).map(|_| None),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Event(Event),
    Malformed(String, Option<String>),
    Oversize,
    Ended(Ended),
}

/// Notes what comes in.
#[derive(Clone)]
pub(crate) struct Inbox {
    seen: Arc<Mutex<Vec<Seen>>>,
    count: watch::Sender<usize>,
    pub(crate) slow: Option<Duration>,
    pub(crate) panics: bool,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Inbox { seen: Arc::default(), count: watch::Sender::new(0), slow: None, panics: false }
    }

    fn note(&self, seen: Seen) {
        let mut all = self.seen.lock().unwrap();
        all.push(seen);
        self.count.send_replace(all.len());
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let events = self.seen().into_iter().filter_map(|seen| match seen {
            Seen::Event(event) => Some(event),
            _ => None,
        });
        events.collect()
    }

    pub(crate) fn ends(&self) -> Vec<Ended> {
        let ends = self.seen().into_iter().filter_map(|seen| match seen {
            Seen::Ended(ended) => Some(ended),
            _ => None,
        });
        ends.collect()
    }

    /// Waits until something has come that `wanted` takes.
    pub(crate) async fn wait(&self, wanted: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let mut count = self.count.subscribe();
        let waiting = async {
            loop {
                count.borrow_and_update();
                let seen = self.seen();
                if wanted(&seen) {
                    return seen;
                }
                count.changed().await.expect("the inbox lives");
            }
        };
        soon(waiting).await
    }

    pub(crate) async fn wait_count(&self, count: usize) -> Vec<Seen> {
        self.wait(|seen| seen.len() >= count).await
    }

    pub(crate) async fn wait_end(&self) -> Ended {
        self.wait(|seen| matches!(seen.last(), Some(Seen::Ended(_)))).await;
        self.ends().remove(0)
    }
}

impl Inbound<Events> for Inbox {
    fn notifications(&mut self, batch: &mut Vec<Event>) {
        assert!(!batch.is_empty());
        assert!(!self.panics, "the handler panics, as this test wants it");
        if let Some(slow) = self.slow {
            std::thread::sleep(slow);
        }
        for event in batch.drain(..) {
            self.note(Seen::Event(event));
        }
    }

    fn malformed(&mut self, method: &str, params: Option<&RawValue>) {
        self.note(Seen::Malformed(method.to_owned(), params.map(|params| params.get().to_owned())));
    }

    fn oversize(&mut self) {
        self.note(Seen::Oversize);
    }

    fn ended(&mut self, ended: &Ended) {
        self.note(Seen::Ended(ended.clone()));
    }
}

pub(crate) fn options() -> ClientOptions {
    ClientOptions::new(Handle::current())
}

/// Waits, but never for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.expect("it hangs")
}

/// Asks again and again until it is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < HANG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process is there. One that is dead and waits for whoever adopted it is not.
pub(crate) fn lives(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap_or("").starts_with(['Z', 'X']),
        Err(_) => false,
    }
}
