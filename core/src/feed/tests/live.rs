//! The feed that reads its events itself, on a reader that does as it is told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::*;
use crate::error::{KitError, Result};
use crate::port::ChatReader;
use crate::stream::{ChatStream, ConnectionStream, EventStream, Pushed, StreamLimits, StreamSink};

/// Answers with the snapshots that it was given, the last one again and again.
struct Reader {
    snapshots: Mutex<VecDeque<Result<ChatSnapshot>>>,
    loads: AtomicUsize,
    /// Loads wait for one of these each.
    gate: Semaphore,
    sinks: Mutex<Vec<StreamSink<Event>>>,
    attached: Mutex<Vec<Option<Seq>>>,
}

impl Reader {
    fn new(snapshots: impl IntoIterator<Item = Result<ChatSnapshot>>) -> Arc<Self> {
        Arc::new(Reader {
            snapshots: Mutex::new(snapshots.into_iter().collect()),
            loads: AtomicUsize::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            sinks: Mutex::new(Vec::new()),
            attached: Mutex::new(Vec::new()),
        })
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }

    fn push(&self, event: &Event) -> Pushed {
        self.sinks.lock().unwrap()[0].push(event.clone())
    }

    fn end(&self, error: Option<KitError>) {
        self.sinks.lock().unwrap()[0].end(error);
    }
}

#[async_trait]
impl ChatReader for Reader {
    fn capability_table(&self) -> CapabilityTable {
        CapabilityTable::new()
    }
    async fn list_chats(&self, _: Option<&str>, _: Option<&str>) -> Result<ChatPage> {
        Err(KitError::unsupported(Capability::History))
    }
    async fn load_chat(&self, chat: &ChatId) -> Result<ChatSnapshot> {
        assert_eq!(*chat, "c");
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        let mut snapshots = self.snapshots.lock().unwrap();
        if snapshots.len() > 1 { snapshots.pop_front().unwrap() } else { snapshots[0].clone() }
    }
    fn events(&self, _: &ChatId, after: Option<Seq>) -> EventStream {
        let (sink, stream) = EventStream::channel(StreamLimits::default());
        self.sinks.lock().unwrap().push(sink);
        self.attached.lock().unwrap().push(after);
        stream
    }
    fn created_chats(&self) -> ChatStream {
        ChatStream::failed(KitError::closed())
    }
    fn watch_all(&self) -> EventStream {
        EventStream::failed(KitError::closed())
    }
    fn connection(&self) -> ConnectionStream {
        ConnectionStream::failed(KitError::closed())
    }
    async fn close(&self) {}
}

fn titled(seq: u64, title: &str) -> ChatSnapshot {
    let mut snapshot = snapshot();
    snapshot.seq = Seq(seq);
    snapshot.chat.title = title.to_owned();
    snapshot
}

fn gap() -> Event {
    now("gap", json!({"reason": "mismatch", "lost": false}))
}

async fn open(reader: &Arc<Reader>) -> ChatFeed {
    let feed = ChatFeed::open(reader.clone(), &"c".into()).await.unwrap();
    let first = feed.next().await.unwrap().unwrap();
    assert_eq!(first.changed.inserted.len(), first.state.item_count(), "the first update is the whole chat");
    assert!(first.changed.parts.chat && first.trouble.is_none());
    feed
}

async fn until(feed: &ChatFeed, what: impl Fn(&FeedUpdate) -> bool) -> FeedUpdate {
    loop {
        let update = feed.next().await.expect("the feed goes on").unwrap();
        if what(&update) {
            return update;
        }
    }
}

#[tokio::test]
async fn it_loads_attaches_behind_the_snapshot_and_follows() {
    let reader = Reader::new([Ok(snapshot())]);
    let feed = open(&reader).await;
    assert_eq!(*reader.attached.lock().unwrap(), [Some(Seq(100))]);
    reader.push(&delta(1, 0, "Hel"));
    reader.push(&durable(100, "r2", "tool.started", tool("known", true)));
    reader.push(&durable(101, "r2", "tool.started", tool("t9", true)));
    let update = until(&feed, |update| update.state.item(&"t9".into()).is_some()).await;
    assert_eq!(ids(&update.state).last(), Some(&"t9"));
    assert!(update.state.item(&"known".into()).is_none());
    assert_eq!(feed.state().seq(), Seq(101));
    assert!(feed.take().unwrap().is_none());
    let form = serde_json::to_value(&update).unwrap();
    assert_eq!(form["state"]["chat"]["id"], "c");
    assert_eq!(form["changed"]["inserted"].as_array().unwrap().last().unwrap()["id"], "t9");
    assert!(form.get("trouble").is_none());
}

#[tokio::test]
async fn a_slow_app_gets_one_update_with_all_that_changed() {
    let reader = Reader::new([Ok(snapshot())]);
    let feed = open(&reader).await;
    for n in 0..1000u64 {
        reader.push(&delta(1, n, "x"));
        reader.push(&durable(101 + n, "r2", "tool.started", tool(&format!("t{}", n % 7 + 2), true)));
    }
    while feed.state().seq() < Seq(1100) {
        tokio::task::yield_now().await;
    }
    let update = feed.take().unwrap().unwrap();
    assert_eq!((update.changed.inserted.len(), update.state.seq()), (8, Seq(1100)));
    assert!(feed.take().unwrap().is_none());
}

#[tokio::test]
async fn a_dropped_next_loses_nothing() {
    let reader = Reader::new([Ok(snapshot())]);
    let mut feed = open(&reader).await;
    let mut list: Vec<ItemId> = feed.state().items().map(|item| item.id().clone()).collect();
    for n in 0..200u64 {
        assert!(futures::FutureExt::now_or_never(feed.next()).is_none());
        reader.push(&durable(101 + n, "r2", "tool.started", tool(&format!("x{n}"), true)));
        let update = if n % 2 == 0 { feed.next().await } else { futures::StreamExt::next(&mut feed).await };
        let update = update.unwrap().unwrap();
        for inserted in update.changed.inserted {
            list.insert(inserted.index, inserted.id);
        }
    }
    assert!(feed.state().items().map(FeedItem::id).eq(&list));
    assert_eq!(list.len(), 205);
}

#[tokio::test(start_paused = true)]
async fn a_gap_reloads_and_events_go_on_meanwhile() {
    let reader = Reader::new([Ok(snapshot()), Ok(titled(101, "reloaded"))]);
    let feed = open(&reader).await;
    reader.gate.forget_permits(Semaphore::MAX_PERMITS);
    reader.push(&gap());
    while reader.loads() < 2 {
        tokio::task::yield_now().await;
    }
    reader.push(&durable(102, "r2", "tool.started", tool("t9", true)));
    until(&feed, |update| update.state.item(&"t9".into()).is_some()).await;
    reader.gate.add_permits(1);
    let update = until(&feed, |update| update.state.chat().title == "reloaded").await;
    assert!(update.state.item(&"t9".into()).is_some(), "it is newer than the snapshot");
    assert_eq!(update.state.seq(), Seq(102));
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_gaps_asks_for_one_snapshot_at_a_time() {
    let reader = Reader::new([Ok(snapshot())]);
    let feed = open(&reader).await;
    let began = tokio::time::Instant::now();
    for _ in 0..2000 {
        reader.push(&gap());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let spacings = began.elapsed().as_millis() / 100;
    let loads = reader.loads() as u128;
    assert!(loads >= 3 && loads <= spacings + 3, "{loads} loads in {spacings} spacings");
    drop(feed);
}

#[tokio::test(start_paused = true)]
async fn a_reload_that_fails_is_told_and_tried_again() {
    let down = || Err(KitError::failed("down"));
    let reader = Reader::new([Ok(snapshot()), down(), down(), down(), Ok(titled(115, "back"))]);
    let feed = open(&reader).await;
    reader.push(&gap());
    let began = tokio::time::Instant::now();
    let update = until(&feed, |update| update.changed.parts.trouble).await;
    assert_eq!(update.trouble.unwrap().code(), "failed");
    // The state goes on meanwhile.
    reader.push(&durable(101, "r2", "tool.started", tool("t9", true)));
    let update = until(&feed, |update| update.state.item(&"t9".into()).is_some()).await;
    assert!(update.trouble.is_some());
    let update = until(&feed, |update| update.trouble.is_none()).await;
    assert!(update.changed.parts.trouble);
    assert_eq!(update.state.chat().title, "back");
    assert_eq!(reader.loads(), 5);
    let waits: u64 = 250 + 500 + 1000;
    assert!(began.elapsed() >= Duration::from_millis(waits), "each try waits longer");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_too_old_is_asked_for_again() {
    let reader = Reader::new([Ok(snapshot()), Ok(titled(100, "stale")), Ok(titled(101, "fresh"))]);
    let feed = open(&reader).await;
    reader.push(&durable(101, "r2", "tool.started", tool("t9", true)));
    reader.push(&gap());
    let update = until(&feed, |update| update.changed.parts.chat).await;
    assert_eq!(update.state.chat().title, "fresh");
}

#[tokio::test(start_paused = true)]
async fn the_app_can_ask_for_a_reload_and_wait_for_it() {
    let reader = Reader::new([Ok(snapshot()), Ok(titled(101, "own ids")), Err(KitError::failed("down"))]);
    let feed = open(&reader).await;
    feed.reload().await.unwrap();
    assert_eq!(feed.state().chat().title, "own ids");
    assert_eq!(feed.reload().await.unwrap_err().code(), "failed");
    // A call that was dropped leaves nothing behind.
    reader.gate.forget_permits(Semaphore::MAX_PERMITS);
    assert!(tokio::time::timeout(Duration::from_secs(60), feed.reload()).await.is_err());
    let (closed, ()) = futures::future::join(feed.reload(), async { feed.close() }).await;
    assert_eq!(closed.unwrap_err().code(), "closed");
    assert_eq!(feed.reload().await.unwrap_err().code(), "closed");
}

#[tokio::test]
async fn the_error_comes_once_after_what_came_before_and_the_state_stays() {
    let reader = Reader::new([Ok(snapshot())]);
    let feed = open(&reader).await;
    reader.push(&durable(101, "r2", "tool.started", tool("t9", true)));
    reader.end(Some(KitError::host_exited(Some(1), None, "")));
    until(&feed, |update| update.state.item(&"t9".into()).is_some()).await;
    assert_eq!(feed.next().await.unwrap().unwrap_err().code(), "host_exited");
    assert!(feed.next().await.is_none());
    assert!(!feed.ready().await);
    assert!(feed.take().unwrap().is_none());
    assert_eq!(feed.state().seq(), Seq(101));
    // Events that end without an error end the feed without one.
    let reader = Reader::new([Ok(snapshot())]);
    let feed = open(&reader).await;
    reader.end(None);
    assert!(feed.next().await.is_none());
}

#[tokio::test]
async fn closing_ends_a_pending_ready_the_task_and_the_stream() {
    let reader = Reader::new([Ok(snapshot())]);
    let feed = Arc::new(open(&reader).await);
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.ready().await }
    });
    tokio::task::yield_now().await;
    feed.close();
    feed.close();
    assert!(!waiting.await.unwrap());
    assert!(feed.next().await.is_none());
    assert_eq!(feed.state().item_count(), 5);
    while !reader.sinks.lock().unwrap()[0].is_ended() {
        tokio::task::yield_now().await;
    }
    // Nothing holds the reader any more but the test.
    while Arc::strong_count(&reader) > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn dropping_ends_the_task_in_the_middle_of_a_reload() {
    let reader = Reader::new([Ok(snapshot())]);
    let feed = open(&reader).await;
    reader.gate.forget_permits(Semaphore::MAX_PERMITS);
    reader.push(&gap());
    while reader.loads() < 2 {
        tokio::task::yield_now().await;
    }
    drop(feed);
    while Arc::strong_count(&reader) > 1 || !reader.sinks.lock().unwrap()[0].is_ended() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn opening_fails_with_the_readers_error() {
    let reader = Reader::new([Err(KitError::not_found("no such chat"))]);
    let error = ChatFeed::open(reader.clone(), &"c".into()).await.unwrap_err();
    assert_eq!(error.code(), "not_found");
    assert!(reader.attached.lock().unwrap().is_empty());
}

#[test]
fn a_runtime_that_ends_ends_the_feed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reader = Reader::new([Ok(snapshot())]);
    let feed = runtime.block_on(open(&reader));
    drop(runtime);
    let ready = futures::FutureExt::now_or_never(feed.ready());
    assert_eq!(ready, Some(false), "nobody waits for it for ever");
}
