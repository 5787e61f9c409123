//! What the queue promises, on made-up events.

use std::task::Waker;
use std::time::Duration;

use super::*;
use crate::model::{ChatId, MessageDelta, RunStarted, Seq, UsageUpdated};

fn event(seq: u64, durable: bool, kind: impl Into<EventKind>) -> Event {
    Event { chat: ChatId::from("c"), seq: Seq(seq), durable, run: Some("r".into()), at: None, kind: kind.into() }
}

fn durable(seq: u64) -> Event {
    event(seq, true, RunStarted { model: None, resumed: false })
}

fn delta(offset: u64, text: &str) -> Event {
    event(0, false, MessageDelta { message_id: "m".into(), offset, text: text.into() })
}

fn usage(input_tokens: u64) -> Event {
    let usage = crate::model::Usage {
        input_tokens,
        output_tokens: 0,
        cached_input_tokens: None,
        total_tokens: None,
        cost_usd: None,
        context: None,
    };
    event(0, false, UsageUpdated { usage })
}

fn small() -> StreamLimits {
    StreamLimits { events: 8, bytes: 1 << 20 }
}

#[tokio::test]
async fn ready_takes_nothing_and_take_never_waits() {
    let (sink, stream) = EventStream::channel(small());
    assert!(stream.take(9).unwrap().is_empty());
    assert_eq!(sink.push(durable(1)), Pushed::Taken);
    assert!(stream.ready().await);
    assert!(stream.ready().await);
    assert_eq!(stream.take(9).unwrap(), [durable(1)]);
}

#[tokio::test]
async fn a_dropped_next_loses_nothing() {
    let (sink, mut stream) = EventStream::channel(StreamLimits::default());
    for seq in 1..=200 {
        // Dropped while pending, every time.
        assert!(tokio::time::timeout(Duration::from_micros(10), stream.next_batch(4)).await.is_err());
        assert!(futures::FutureExt::now_or_never(KitStream::next(&stream)).is_none());
        sink.push(durable(seq));
        let got =
            if seq % 2 == 0 { futures::StreamExt::next(&mut stream).await } else { KitStream::next(&stream).await };
        assert_eq!(got.unwrap().unwrap().seq, Seq(seq));
    }
}

#[tokio::test]
async fn close_wakes_a_pending_ready_and_is_idempotent() {
    let (sink, stream) = EventStream::channel(small());
    let stream = Arc::new(stream);
    let waiting = tokio::spawn({
        let stream = stream.clone();
        async move { stream.ready().await }
    });
    tokio::task::yield_now().await;
    stream.close();
    stream.close();
    assert!(!waiting.await.unwrap());
    assert_eq!(sink.push(durable(1)), Pushed::Ended);
    assert!(stream.take(1).unwrap().is_empty());
}

#[tokio::test]
async fn the_error_comes_once_after_what_was_read() {
    let (sink, stream) = EventStream::channel(small());
    sink.push(durable(1));
    sink.end(Some(KitError::closed()));
    assert_eq!(stream.next_batch(9).await.unwrap().len(), 1);
    assert!(stream.ready().await);
    assert_eq!(stream.next_batch(9).await.unwrap_err().code(), "closed");
    assert!(!stream.ready().await);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_full_stream_says_so_and_tells_when_it_has_room() {
    let (sink, stream) = EventStream::channel(small());
    let drained = Arc::new(tokio::sync::Notify::new());
    sink.notify_when_drained(drained.clone());
    for seq in 1..=8 {
        assert_eq!(sink.push(durable(seq)), Pushed::Taken);
    }
    assert_eq!(sink.push(durable(9)), Pushed::Full);
    assert!(!sink.has_room());
    assert_eq!(stream.take(4).unwrap().len(), 4);
    drained.notified().await;
    assert!(sink.has_room());
}

#[tokio::test]
async fn one_event_larger_than_the_bound_passes_alone() {
    let (sink, stream) = EventStream::channel(StreamLimits { events: 8, bytes: 10 });
    assert_eq!(sink.push(durable(1)), Pushed::Taken);
    assert_eq!(sink.push(durable(2)), Pushed::Full);
    assert_eq!(stream.take(8).unwrap().len(), 1);
}

#[tokio::test]
async fn a_reader_that_keeps_up_sees_each_event_as_it_came() {
    let (sink, stream) = EventStream::channel(StreamLimits::default());
    for n in 0..100 {
        sink.push(usage(n));
        sink.push(delta(n, "x"));
    }
    assert_eq!(stream.take(999).unwrap().len(), 200);
}

#[tokio::test]
async fn behind_the_newest_state_is_kept_and_adjacent_text_is_merged() {
    let (sink, stream) = EventStream::channel(small());
    sink.push(durable(1));
    sink.push(durable(2));
    for n in 0..50 {
        assert_eq!(sink.push(usage(n)), Pushed::Taken);
    }
    for n in 0..50 {
        assert_eq!(sink.push(delta(n, "é")), Pushed::Taken);
    }
    let got = stream.take(999).unwrap();
    let newest: Vec<_> = got.iter().filter(|e| matches!(e.kind, EventKind::UsageUpdated(_))).collect();
    assert_eq!(newest.len(), 1);
    assert_eq!(*newest[0], usage(49));
    assert!(got.len() <= 8 + 1, "{}", got.len());
}

#[test]
fn adjacent_pieces_become_one_and_others_do_not() {
    let mut first = delta(0, "a𝄞");
    assert_eq!(first.absorb(delta(3, "b")), None);
    assert_eq!(first, delta(0, "a𝄞b"));
    assert!(first.absorb(delta(3, "c")).is_some(), "an offset inside cuts the text there: not adjacent");
}

#[test]
fn utf16_lengths_are_those_of_the_language() {
    for text in ["", "abc", "é", "𝄞𝄞", "a\u{2028}b", "\u{301}e", "🏳️‍🌈"] {
        assert_eq!(merge::utf16_len(text), text.encode_utf16().count() as u64, "{text:?}");
    }
}

#[tokio::test]
async fn until_run_finished_ends_behind_that_run() {
    let (sink, stream) = EventStream::channel(small());
    let stream = stream.until_run_finished("r".into());
    let finished = crate::model::RunFinished { status: crate::model::RunStatus::Completed, error: None };
    let mut other = event(1, true, finished.clone());
    other.run = Some("another".into());
    sink.push(other);
    sink.push(event(2, true, finished));
    sink.push(durable(3));
    assert_eq!(stream.next_batch(99).await.unwrap().len(), 2);
    assert!(!stream.ready().await);
    assert!(sink.is_ended());
}

/// Counts how many hold it.
struct Counted;

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_wait_that_was_given_up_leaves_nothing_behind() {
    let (_sink, mut stream) = EventStream::channel(small());
    let counted = Arc::new(Counted);
    for _ in 0..100 {
        // Wakers of different tasks: a fresh one each time.
        let waker = Waker::from(Arc::new(Forward(counted.clone())));
        let mut ready = std::pin::pin!(stream.ready());
        assert!(ready.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&counted), 1);
    for _ in 0..100 {
        let waker = Waker::from(Arc::new(Forward(counted.clone())));
        let mut next = Pin::new(&mut stream);
        assert!(futures::Stream::poll_next(next.as_mut(), &mut Context::from_waker(&waker)).is_pending());
    }
    assert!(Arc::strong_count(&counted) <= 2);
}

struct Forward(#[allow(dead_code)] Arc<Counted>);

impl std::task::Wake for Forward {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test]
async fn state_that_is_told_again_and_again_takes_no_more_room() {
    let (sink, stream) = EventStream::channel(small());
    for seq in 1..=6 {
        sink.push(durable(seq));
    }
    for tokens in 0..100_000 {
        sink.push(usage(tokens));
    }
    assert!(stream.places() < 100, "{}", stream.places());
    let got = stream.take(100).unwrap();
    assert_eq!(got.last(), Some(&usage(99_999)));
    assert_eq!(got.iter().filter(|event| event.durable).count(), 6);
    // What is told later still replaces what was told before.
    for tokens in 0..100 {
        sink.push(durable(tokens));
        sink.push(usage(tokens));
    }
    let got = stream.take(1000).unwrap();
    assert!(got.contains(&usage(99)));
}

#[tokio::test]
async fn nested_tools_without_end_find_no_room_without_end() {
    let (sink, stream) = EventStream::channel(small());
    let finished = |n: u64| {
        let finished = crate::model::ToolFinished { call_id: n.to_string().into(), result: None, is_error: None };
        event(0, false, finished)
    };
    let taken = (0..1000).filter(|n| sink.push(finished(*n)) == Pushed::Taken).count();
    assert_eq!(taken, small().events);
    assert_eq!(stream.take(1000).unwrap().len(), taken);
}
