//! The writing side: whole frames, in order, from any task, without a copy and mostly without a switch of tasks.
//!
//! Whoever has a frame tries to write it at once, because a pipe mostly has room: that saves waking another task for
//! every small request. What doesn't fit is left to the writer task. A frame that was begun is always finished, whatever
//! becomes of its call; one that was not begun can be withdrawn, and then the host never sees it.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::recorder::Recorder;
use super::recording::Direction;
use crate::lock::lock;

/// How many answers to requests of the host may wait. A host that asks and never reads must not fill the memory.
const WAITING_REPLIES: usize = 1024;

/// The writing side of a connection.
pub(super) struct Outbox {
    inner: Mutex<Inner>,
    runtime: Handle,
    failed: watch::Sender<bool>,
}

struct Inner {
    /// Gone once it was closed.
    writer: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    current: Option<Begun>,
    queue: VecDeque<Frame>,
    /// Gone with the writer: it must not keep its thread longer than the connection.
    recorder: Option<Recorder>,
    replies: usize,
    unflushed: bool,
    state: State,
    /// The writer task, where it waits for work.
    task: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The frame that was begun is finished, then the writer is closed.
    Finishing,
    /// Writing failed: nothing more can leave. The end of the connection tells why.
    Failed,
    Closed,
}

struct Frame {
    /// The call's id; none for an answer to a request of the host.
    call: Option<u64>,
    bytes: Vec<u8>,
}

struct Begun {
    frame: Frame,
    written: usize,
}

/// The calls that were not written when the outbox closed.
#[derive(Default)]
pub(super) struct Unsent(HashSet<u64>);

impl Unsent {
    pub(super) fn has(&self, call: u64) -> bool {
        self.0.contains(&call)
    }
}

impl Outbox {
    pub(super) fn new(
        writer: impl AsyncWrite + Send + 'static,
        runtime: Handle,
        recorder: Option<Recorder>,
        failed: watch::Sender<bool>,
    ) -> Self {
        let inner = Inner {
            writer: Some(Box::pin(writer)),
            current: None,
            queue: VecDeque::new(),
            recorder,
            replies: 0,
            unflushed: false,
            state: State::Open,
            task: None,
        };
        Outbox { inner: Mutex::new(inner), runtime, failed }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Takes the frame of a call. `false`: the outbox is closed, and the frame never leaves.
    pub(super) fn push_call(&self, call: u64, bytes: Vec<u8>) -> bool {
        self.push(Frame { call: Some(call), bytes })
    }

    /// Takes an answer to a request of the host. It is dropped where too many wait already.
    pub(super) fn push_reply(&self, bytes: Vec<u8>) -> bool {
        self.push(Frame { call: None, bytes })
    }

    fn push(&self, frame: Frame) -> bool {
        let mut inner = self.lock();
        match inner.state {
            State::Open | State::Failed => {}
            State::Finishing | State::Closed => return false,
        }
        if frame.call.is_none() {
            if inner.replies >= WAITING_REPLIES {
                return false;
            }
            inner.replies += 1;
        }
        let idle = inner.current.is_none() && inner.queue.is_empty() && !inner.unflushed;
        inner.queue.push_back(frame);
        if inner.state != State::Open || !idle {
            // The writer task is at it, or nothing can be written any more.
            return true;
        }
        // A writer may need the runtime that it belongs to.
        let _runtime = self.runtime.enter();
        match write(&mut inner, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => self.fail(&mut inner, &error),
            Poll::Pending => {
                // Nobody is woken when there is room again, until the writer task asked for it.
                let task = inner.task.take();
                drop(inner);
                if let Some(task) = task {
                    task.wake();
                }
            }
        }
        true
    }

    fn fail(&self, inner: &mut Inner, error: &io::Error) {
        tracing::debug!(target: "kitport::rpc", outcome = ?error.kind(), "writing to the host failed");
        inner.state = State::Failed;
        self.failed.send_replace(true);
    }

    /// Takes a call's frame back. `true`: no byte of it was written, and none will be.
    pub(super) fn withdraw(&self, call: u64) -> bool {
        let mut inner = self.lock();
        match inner.queue.iter().position(|frame| frame.call == Some(call)) {
            Some(at) => inner.queue.remove(at).is_some(),
            None => false,
        }
    }

    /// Lets the frame that was begun be finished, then closes the writer. Gives the calls that never leave.
    pub(super) fn finish(&self) -> Unsent {
        let mut inner = self.lock();
        if inner.state == State::Open {
            inner.state = State::Finishing;
        }
        self.empty(inner)
    }

    /// Closes the writer at once. Gives the calls that never leave.
    pub(super) fn abort(&self) -> Unsent {
        let mut inner = self.lock();
        inner.state = State::Closed;
        let writer = inner.writer.take();
        inner.recorder = None;
        let unsent = self.empty(inner);
        let _runtime = self.runtime.enter();
        drop(writer);
        unsent
    }

    fn empty(&self, mut inner: MutexGuard<'_, Inner>) -> Unsent {
        let queue = std::mem::take(&mut inner.queue);
        let task = inner.task.take();
        drop(inner);
        if let Some(task) = task {
            task.wake();
        }
        Unsent(queue.iter().filter_map(|frame| frame.call).collect())
    }

    /// The writer task: writes what others could not write at once, and closes the writer when told.
    pub(super) async fn run(&self) {
        std::future::poll_fn(|cx| {
            let mut inner = self.lock();
            let wrote = match inner.state {
                State::Open | State::Finishing => write(&mut inner, cx),
                State::Failed => Poll::Ready(Ok(())),
                State::Closed => return Poll::Ready(()),
            };
            match wrote {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(&mut inner, &error),
                Poll::Pending => {
                    inner.task = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
            if inner.state == State::Finishing {
                if let Some(writer) = &mut inner.writer
                    && writer.as_mut().poll_shutdown(cx).is_pending()
                {
                    inner.task = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                inner.state = State::Closed;
                inner.writer = None;
                inner.recorder = None;
                return Poll::Ready(());
            }
            inner.task = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Writes what there is, as far as it goes.
fn write(inner: &mut Inner, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    let Some(writer) = &mut inner.writer else { return Poll::Ready(Ok(())) };
    loop {
        if inner.current.is_none() {
            let Some(frame) = inner.queue.pop_front() else { break };
            inner.current = Some(Begun { frame, written: 0 });
        }
        let begun = inner.current.as_mut().expect("it was just put there");
        let written = match writer.as_mut().poll_write(cx, &begun.frame.bytes[begun.written..]) {
            Poll::Ready(Ok(0)) => Err(io::Error::from(io::ErrorKind::WriteZero)),
            Poll::Ready(Ok(written)) => Ok(written),
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending if begun.written == 0 => {
                // Not begun after all: it can still be withdrawn.
                let begun = inner.current.take().expect("it is there");
                inner.queue.push_front(begun.frame);
                return Poll::Pending;
            }
            Poll::Pending => return Poll::Pending,
        };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                if begun.written == 0 {
                    let begun = inner.current.take().expect("it is there");
                    inner.queue.push_front(begun.frame);
                }
                return Poll::Ready(Err(error));
            }
        };
        if begun.written == 0
            && let Some(recorder) = &inner.recorder
        {
            recorder.line(Direction::Out, begun.frame.bytes.trim_ascii_end());
        }
        begun.written += written;
        inner.unflushed = true;
        if begun.written == begun.frame.bytes.len() {
            if begun.frame.call.is_none() {
                inner.replies -= 1;
            }
            inner.current = None;
        }
    }
    if inner.unflushed {
        ready!(writer.as_mut().poll_flush(cx))?;
        inner.unflushed = false;
    }
    Poll::Ready(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;

    fn outbox(room: usize) -> (Arc<Outbox>, DuplexStream, watch::Receiver<bool>) {
        let (ours, theirs) = duplex(room);
        let (failed, failing) = watch::channel(false);
        (Arc::new(Outbox::new(ours, Handle::current(), None, failed)), theirs, failing)
    }

    fn run(outbox: &Arc<Outbox>) -> tokio::task::JoinHandle<()> {
        let outbox = Arc::clone(outbox);
        tokio::spawn(async move { outbox.run().await })
    }

    #[tokio::test]
    async fn a_frame_with_room_is_written_by_its_caller() {
        let (outbox, mut theirs, _failing) = outbox(64);
        assert!(outbox.push_call(1, b"hello\n".to_vec()));
        let mut read = [0; 6];
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello\n");
        assert!(!outbox.withdraw(1));
    }

    #[tokio::test]
    async fn a_frame_that_was_begun_is_finished_and_a_waiting_one_can_be_withdrawn() {
        let (outbox, mut theirs, _failing) = outbox(4);
        let task = run(&outbox);
        outbox.push_call(1, b"hello\n".to_vec());
        outbox.push_call(2, b"second\n".to_vec());
        outbox.push_call(3, b"third\n".to_vec());
        assert!(!outbox.withdraw(1));
        assert!(outbox.withdraw(2));
        assert!(!outbox.withdraw(2));
        let mut read = [0; 12];
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello\nthird\n");
        assert!(!outbox.finish().has(3));
        task.await.unwrap();
        assert_eq!(theirs.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn finish_ends_the_frame_that_was_begun_and_tells_the_rest() {
        let (outbox, mut theirs, _failing) = outbox(4);
        let task = run(&outbox);
        outbox.push_call(1, b"hello\n".to_vec());
        outbox.push_call(2, b"second\n".to_vec());
        let unsent = outbox.finish();
        assert!(!unsent.has(1) && unsent.has(2));
        assert!(!outbox.push_call(3, b"third\n".to_vec()));
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"hello\n");
        task.await.unwrap();
    }

    #[tokio::test]
    async fn abort_closes_at_once_even_when_nobody_reads() {
        let (outbox, mut theirs, _failing) = outbox(4);
        let task = run(&outbox);
        outbox.push_call(1, b"hello\n".to_vec());
        tokio::task::yield_now().await;
        let _ = outbox.finish();
        let _ = outbox.abort();
        task.await.unwrap();
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"hell");
    }

    #[tokio::test]
    async fn a_failed_write_is_told_and_its_frame_counts_as_unsent() {
        let (outbox, theirs, mut failing) = outbox(4);
        drop(theirs);
        assert!(outbox.push_call(1, b"hello\n".to_vec()));
        failing.wait_for(|failed| *failed).await.unwrap();
        assert!(outbox.push_call(2, b"later\n".to_vec()));
        let unsent = outbox.abort();
        assert!(unsent.has(1) && unsent.has(2));
    }

    #[tokio::test]
    async fn answers_to_the_host_do_not_pile_up() {
        let (outbox, _theirs, _failing) = outbox(4);
        let taken = (0..3 * WAITING_REPLIES).filter(|_| outbox.push_reply(b"{\"id\":1}\n".to_vec())).count();
        assert_eq!(taken, WAITING_REPLIES);
        assert!(outbox.push_call(1, b"x\n".to_vec()));
    }

    #[tokio::test]
    async fn many_frames_arrive_whole_and_in_order_through_a_narrow_pipe() {
        let (outbox, mut theirs, _failing) = outbox(7);
        let task = run(&outbox);
        let mut wanted = String::new();
        for nth in 0..500_u64 {
            let line = format!("line {nth} {}\n", "x".repeat(nth as usize % 40));
            wanted.push_str(&line);
            outbox.push_call(nth, line.into_bytes());
        }
        let mut read = vec![0; wanted.len()];
        tokio::time::timeout(Duration::from_secs(30), theirs.read_exact(&mut read)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), wanted);
        let _ = outbox.finish();
        task.await.unwrap();
    }
}
