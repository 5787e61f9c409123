//! Reloads of a chat's state: one in flight, at most one waiting, spaced by the last one's duration.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::bubblepaw::snapshot::View;
use crate::error::Result;

type Loading = Pin<Box<dyn Future<Output = Result<View>> + Send>>;

/// When a chat's state is read.
#[derive(Default)]
pub(crate) struct Reloads {
    /// How many have begun.
    begun: u64,
    wanted: bool,
    running: Option<(Instant, Loading)>,
    not_before: Option<Instant>,
}

impl Reloads {
    /// Asks for a reload that begins after now, and gives its number.
    pub(crate) fn want(&mut self) -> u64 {
        self.wanted = true;
        self.begun + 1
    }

    /// Begins the one that is wanted, where it is time.
    pub(crate) fn begin_if_due(&mut self, load: impl FnOnce() -> Loading) {
        let due = self.not_before.is_none_or(|time| time <= Instant::now());
        if self.wanted && self.running.is_none() && due {
            self.wanted = false;
            self.begun += 1;
            self.running = Some((Instant::now(), load()));
        }
    }

    /// When to look again.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.wanted && self.running.is_none())
    }

    /// The connection is gone, and the answer with it: the one that ran is wanted again.
    pub(crate) fn interrupt(&mut self) {
        if self.running.take().is_some() {
            self.wanted = true;
        }
    }

    /// Waits for the one that runs; for ever, where none does. Gives its number with its result.
    pub(crate) fn finished(&mut self) -> Finished<'_> {
        Finished(self)
    }
}

pub(crate) struct Finished<'a>(&'a mut Reloads);

impl Future for Finished<'_> {
    type Output = (u64, Result<View>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reloads = &mut *self.0;
        let Some((since, loading)) = &mut reloads.running else { return Poll::Pending };
        match loading.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                let duration: Duration = since.elapsed();
                reloads.running = None;
                reloads.not_before = Some(Instant::now() + duration);
                Poll::Ready((reloads.begun, result))
            }
        }
    }
}
