//! A pipe that gives its bytes in pieces of any size.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Reads what another reader has, in pieces whose sizes come from a seed; at times only after a pause.
#[derive(Debug)]
pub struct Pieces<R> {
    inner: R,
    random: u64,
    paused: bool,
}

impl<R> Pieces<R> {
    /// The pieces that `seed` makes of `inner`.
    pub fn new(inner: R, seed: u64) -> Self {
        Pieces { inner, random: seed | 1, paused: false }
    }

    fn roll(&mut self) -> u64 {
        // Xorshift: good enough to cut with.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Pieces<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let roll = self.roll();
        if roll.is_multiple_of(3) && !self.paused {
            self.paused = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.paused = false;
        let most = if roll.is_multiple_of(5) { 4096 } else { 16 };
        let size = ((roll >> 16) % most + 1).min(buf.remaining() as u64);
        let mut piece = vec![0; size as usize];
        let mut limited = ReadBuf::new(&mut piece);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut limited))?;
        buf.put_slice(limited.filled());
        Poll::Ready(Ok(()))
    }
}
