//! Who waits for something, and how they are woken. One who gives up waiting leaves nothing behind: an app that waits
//! for a moment again and again, each time in another task, would fill the memory while nothing happens.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The wakers of those who wait.
#[derive(Default)]
pub(crate) struct Wakers {
    waiting: Vec<(u64, Waker)>,
    next_number: u64,
}

/// One who waits, by its number once it had to.
#[derive(Default)]
pub(crate) struct Waiter(Option<u64>);

impl Wakers {
    /// Keeps the newest waker of a waiter.
    pub(crate) fn wait(&mut self, waiter: &mut Waiter, waker: &Waker) {
        let number = *waiter.0.get_or_insert_with(|| {
            self.next_number += 1;
            self.next_number
        });
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.waiting.push((number, waker.clone())),
        }
    }

    /// Forgets a waiter.
    pub(crate) fn leave(&mut self, waiter: &mut Waiter) {
        if let Some(number) = waiter.0.take() {
            self.waiting.retain(|(waiting, _)| *waiting != number);
        }
    }

    /// Takes out all, to be woken.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, waker)| waker)
    }
}

/// Something that can be waited for.
pub(crate) trait Waited {
    /// Whether there is something to take; false at the end.
    fn poll_ready(&self, waiter: &mut Waiter, cx: &mut Context<'_>) -> Poll<bool>;

    /// Forgets a waiter.
    fn leave(&self, waiter: &mut Waiter);
}

/// Waits until there is something to take.
pub(crate) struct Ready<'a, W: Waited> {
    on: &'a W,
    waiter: Waiter,
}

impl<'a, W: Waited> Ready<'a, W> {
    pub(crate) fn new(on: &'a W) -> Self {
        Ready { on, waiter: Waiter::default() }
    }
}

impl<W: Waited> Future for Ready<'_, W> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let Ready { on, waiter } = &mut *self;
        on.poll_ready(waiter, cx)
    }
}

impl<W: Waited> Drop for Ready<'_, W> {
    fn drop(&mut self) {
        if self.waiter.0.is_some() {
            self.on.leave(&mut self.waiter);
        }
    }
}
