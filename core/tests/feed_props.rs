//! The feed's promise, over random histories: a feed built live, once settled and reloaded, equals a feed opened anew.
//! Before that the two differ in provisional text and nested tool calls only; a reload keeps the provisional text of a
//! run that goes on. Repeated durable events, any batches, and lost transient events with their gap change nothing in it.

#[allow(unreachable_pub, reason = "modules of a test are nobody else's")]
mod model_host;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use kitport::feed::{Changed, FeedReducer, FeedState, Reload, TextOf, check};
use kitport::model::*;
use kitport::{
    ChatFeed, ChatReader, ChatStream, ConnectionStream, EventStream, KitError, Result, StreamLimits, StreamSink,
};
use model_host::{Host, Step, Ways, step, ways};
use proptest::prelude::*;

/// An app that shows the chat by what the updates say changed, and never looks at the rest.
#[derive(Default)]
struct App {
    list: Vec<Item>,
}

impl App {
    fn show(&mut self, changed: &Changed, state: &FeedState) {
        let text_from: HashMap<_, _> = changed
            .texts
            .iter()
            .filter_map(|change| match &change.text {
                TextOf::Item(id) => Some((id, change.from)),
                _ => None,
            })
            .collect();
        for removed in &changed.removed {
            assert_eq!(*self.list.remove(removed.index).id(), removed.id);
        }
        let item = |index: usize| state.item_at(index).expect("it is in the state").to_item().into_owned();
        for inserted in &changed.inserted {
            self.list.insert(inserted.index, item(inserted.index));
        }
        for updated in &changed.updated {
            let shown = &mut self.list[updated.index];
            assert_eq!(*shown.id(), updated.id);
            match (text_from.get(&updated.id), &mut *shown) {
                (Some(&from), Item::AssistantMessage(message)) => {
                    let live = state.item_at(updated.index).and_then(|item| item.live_text()).expect("it is live");
                    let kept: Vec<u16> = message.text.encode_utf16().take(from as usize).collect();
                    message.text = String::from_utf16_lossy(&kept) + &live.since(from);
                }
                _ => *shown = item(updated.index),
            }
        }
    }

    fn check(&self, state: &FeedState) {
        let items: Vec<_> = state.items().map(|item| item.to_item().into_owned()).collect();
        assert_eq!(self.list, items, "the app shows what is in the state");
        for (index, item) in items.iter().enumerate() {
            assert_eq!(state.position(item.id()), Some(index));
        }
    }
}

fn anew(host: &Host) -> FeedReducer {
    FeedReducer::new(host.now.clone())
}

/// The replies in a chat and the text of the step that goes on, without empty ones.
fn told(host: &Host) -> Vec<String> {
    let stored = check::replies(anew(host).state());
    stored.into_iter().chain(host.live_text().map(str::to_owned)).filter(|text| !text.is_empty()).collect()
}

fn shown(state: &FeedState) -> Vec<String> {
    check::replies(state).into_iter().filter(|text| !text.is_empty()).collect()
}

/// Whether a run may have left text that the host didn't store.
fn leaves_text(step: &Step) -> bool {
    matches!(step, Step::Finish(2 | 3))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_live_feed_differs_from_a_new_one_in_passing_things_only(
        steps in prop::collection::vec(step(), 1..120),
        ways in ways(),
        start in 0usize..40,
        takes in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let mut host = Host::new(ways);
        let (before, after) = steps.split_at(start.min(steps.len()));
        before.iter().for_each(|step| host.step(step));
        let mut feed = anew(&host);
        // Joined in the middle: the text of the step that goes on is left out until the next one.
        let unseen = host.live_id();
        let mut read = host.events.len();
        let mut app = App::default();
        let mut sees_all = before.is_empty();
        for (n, step) in after.iter().enumerate() {
            host.step(step);
            sees_all &= !leaves_text(step);
            for event in &host.events[read..] {
                if !matches!(&event.kind, EventKind::MessageDelta(delta) if Some(&delta.message_id) == unseen.as_ref()) {
                    feed.apply(event);
                }
            }
            read = host.events.len();
            if takes[n % takes.len()] {
                app.show(&feed.take(), feed.state());
                app.check(feed.state());
            }
            if host.all_found() {
                prop_assert_eq!(check::unsettled(feed.state(), anew(&host).state()), None);
            }
            if sees_all {
                prop_assert_eq!(shown(feed.state()), told(&host), "what a person reads");
            }
        }
        host.settle();
        host.events[read..].iter().for_each(|event| feed.apply(event));
        prop_assert_eq!(check::unsettled(feed.state(), anew(&host).state()), None);
        let reload = feed.begin_reload();
        prop_assert!(feed.reload(reload, host.now.clone()));
        prop_assert_eq!(check::settled(feed.state(), anew(&host).state()), None);
        app.show(&feed.take(), feed.state());
        app.check(feed.state());
    }

    #[test]
    fn a_reload_keeps_the_text_of_a_run_that_goes_on(
        steps in prop::collection::vec(step(), 1..120),
        ways in ways(),
        reloads in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let mut host = Host::new(ways);
        let mut feed = anew(&host);
        let mut read = 0;
        for (n, step) in steps.iter().enumerate() {
            host.step(step);
            host.events[read..].iter().for_each(|event| feed.apply(event));
            read = host.events.len();
            if reloads[n % reloads.len()] {
                let reload = feed.begin_reload();
                prop_assert!(feed.reload(reload, host.now.clone()));
                prop_assert_eq!(check::unsettled(feed.state(), anew(&host).state()), None);
                prop_assert_eq!(shown(feed.state()), told(&host), "what a person reads");
            }
        }
    }
}

/// Something that befalls a stream, or a reload of the feed.
#[derive(Debug, Clone)]
enum Fate {
    Deliver(usize),
    /// Durable events come once more.
    Repeat(usize),
    /// Transient events are lost; then a gap.
    Lose(usize),
    Begin,
    /// The snapshot comes: that of now, or of some steps after.
    Answer(usize),
    Take,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => (1usize..12).prop_map(Fate::Deliver),
        2 => (1usize..12).prop_map(Fate::Repeat),
        1 => (1usize..12).prop_map(Fate::Lose),
        2 => Just(Fate::Begin),
        2 => (0usize..6).prop_map(Fate::Answer),
        2 => Just(Fate::Take),
    ]
}

/// A feed whose stream lags behind the host.
struct Lagging {
    feed: FeedReducer,
    app: App,
    read: usize,
    reload: Option<(Reload, usize)>,
}

impl Lagging {
    fn deliver(&mut self, events: &[Event], keep: impl Fn(&Event) -> bool) {
        events.iter().filter(|event| keep(event)).for_each(|event| self.feed.apply(event));
        self.read += events.len();
    }

    fn take(&mut self) {
        self.app.show(&self.feed.take(), self.feed.state());
        self.app.check(self.feed.state());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_befalls_the_stream_the_settled_feed_equals_a_new_one(
        steps in prop::collection::vec(step(), 1..120),
        ways in ways(),
        fates in prop::collection::vec(fate(), 1..60),
    ) {
        let mut host = Host::new(ways);
        let mut lagging = Lagging { feed: anew(&host), app: App::default(), read: 0, reload: None };
        // Snapshots by the number of events that came before.
        let mut snapshots = vec![(0, host.now.clone())];
        for step in &steps {
            host.step(step);
            snapshots.push((host.events.len(), host.now.clone()));
        }
        let mut answered = 0;
        for fate in &fates {
            let rest = &host.events[lagging.read..];
            match fate {
                Fate::Deliver(n) => lagging.deliver(&rest[..rest.len().min(*n)], |_| true),
                Fate::Repeat(n) => {
                    let known = &host.events[lagging.read.saturating_sub(*n)..lagging.read];
                    let seq = lagging.feed.state().seq();
                    let before = lagging.feed.state().to_snapshot();
                    known.iter().filter(|event| event.durable).for_each(|event| lagging.feed.apply(event));
                    prop_assert_eq!(lagging.feed.state().seq(), seq);
                    prop_assert_eq!(lagging.feed.state().to_snapshot(), before);
                }
                Fate::Lose(n) => {
                    lagging.deliver(&rest[..rest.len().min(*n)], |event| event.durable);
                    lagging.feed.apply(&gap(lagging.feed.state().seq()));
                    prop_assert!(lagging.feed.wants_reload());
                }
                Fate::Begin => lagging.reload = Some((lagging.feed.begin_reload(), lagging.read)),
                Fate::Answer(later) => {
                    if let Some((reload, read)) = lagging.reload.take() {
                        // A host answers with what is so when it is asked, or later, and never goes back.
                        let first = snapshots.partition_point(|(events, _)| *events < read).max(answered);
                        answered = (first + later).min(snapshots.len() - 1);
                        let (_, snapshot) = &snapshots[answered];
                        prop_assert!(lagging.feed.reload(reload, snapshot.clone()));
                    }
                }
                Fate::Take => lagging.take(),
            }
        }
        host.settle();
        lagging.deliver(&host.events[lagging.read..], |_| true);
        let reload = lagging.feed.begin_reload();
        prop_assert!(lagging.feed.reload(reload, host.now.clone()));
        prop_assert_eq!(check::settled(lagging.feed.state(), anew(&host).state()), None);
        lagging.take();
    }

    #[test]
    fn durable_events_are_not_lost_by_a_reload(
        steps in prop::collection::vec(step(), 1..80),
        ways in ways(),
        begin in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        // A snapshot of when the reload began comes late: nothing of what came meanwhile is lost.
        let mut host = Host::new(ways);
        let mut feed = anew(&host);
        let (begin, end) = (begin.index(steps.len()), end.index(steps.len()));
        let (mut read, mut reload) = (0, None);
        for (n, step) in steps.iter().enumerate() {
            if n == begin {
                reload = Some((feed.begin_reload(), host.now.clone()));
            }
            host.step(step);
            host.events[read..].iter().for_each(|event| feed.apply(event));
            read = host.events.len();
            if n >= end && let Some((reload, snapshot)) = reload.take() {
                prop_assert!(feed.reload(reload, snapshot));
                if host.all_found() {
                    prop_assert_eq!(check::unsettled(feed.state(), anew(&host).state()), None);
                }
                if !steps[..=n].iter().any(leaves_text) {
                    prop_assert_eq!(shown(feed.state()), told(&host), "what a person reads");
                }
            }
        }
    }
}

fn gap(seq: Seq) -> Event {
    let kind = Gap { reason: GapReason::Mismatch, lost: false, snapshot_seq: None }.into();
    Event { chat: "chat".into(), seq, durable: false, run: None, at: None, kind }
}

/// A reader of the model host.
struct Reader {
    host: Mutex<Host>,
    sinks: Mutex<Vec<StreamSink<Event>>>,
}

impl Reader {
    fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().expect("no test panics while it holds it")
    }

    fn sinks(&self) -> MutexGuard<'_, Vec<StreamSink<Event>>> {
        self.sinks.lock().expect("no test panics while it holds it")
    }

    /// Does a step; the open streams yield its events, but for the transient ones where they get lost.
    fn step(&self, step: &Step, lose: bool) {
        let mut host = self.host();
        let read = host.events.len();
        host.step(step);
        for sink in &*self.sinks() {
            for event in host.events[read..].iter().filter(|event| event.durable || !lose) {
                sink.push(event.clone());
            }
            if lose {
                sink.push(gap(host.now.seq));
            }
        }
    }
}

#[async_trait]
impl ChatReader for Reader {
    fn capability_table(&self) -> CapabilityTable {
        CapabilityTable::new()
    }
    async fn list_chats(&self, _: Option<&str>, _: Option<&str>) -> Result<ChatPage> {
        Ok(ChatPage { chats: vec![self.host().now.chat.clone()], next_cursor: None })
    }
    async fn load_chat(&self, _: &ChatId) -> Result<ChatSnapshot> {
        let snapshot = self.host().now.clone();
        // The answer takes its way.
        for _ in 0..snapshot.seq.0 % 7 {
            tokio::task::yield_now().await;
        }
        Ok(snapshot)
    }
    fn events(&self, _: &ChatId, after: Option<Seq>) -> EventStream {
        let (sink, stream) = EventStream::channel(StreamLimits::default());
        let after = after.unwrap_or(Seq::START);
        for event in self.host().events.iter().filter(|event| event.durable && event.seq > after) {
            sink.push(event.clone());
        }
        self.sinks().push(sink);
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

async fn live(steps: Vec<Step>, ways: Ways, pauses: Vec<u8>) {
    let reader = Arc::new(Reader { host: Mutex::new(Host::new(ways)), sinks: Mutex::default() });
    let chat = ChatId::from("chat");
    let feed = ChatFeed::open(reader.clone(), &chat).await.expect("it opens");
    let mut app = App::default();
    for (n, step) in steps.iter().enumerate() {
        let pause = pauses[n % pauses.len()];
        reader.step(step, pause == 9);
        for _ in 0..pause % 4 {
            tokio::task::yield_now().await;
        }
        if pause.is_multiple_of(5)
            && let Some(update) = feed.take().expect("it goes on")
        {
            app.show(&update.changed, &update.state);
        }
    }
    for step in [Step::Resume, Step::Finish(0), Step::Find] {
        reader.step(&step, false);
    }
    let seq = reader.host().now.seq;
    feed.reload().await.expect("it reloads");
    // What the stream tells late is known.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(feed.state().seq(), seq);
    let anew = ChatFeed::open(reader.clone(), &chat).await.expect("it opens");
    assert_eq!(check::settled(&feed.state(), &anew.state()), None);
    let update = feed.next().await.expect("it goes on").expect("without an error");
    app.show(&update.changed, &update.state);
    app.check(&feed.state());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_feed_that_reads_for_itself_equals_one_opened_anew(
        steps in prop::collection::vec(step(), 1..100),
        ways in ways(),
        pauses in prop::collection::vec(0u8..10, 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("it needs no more than memory");
        runtime.block_on(live(steps, ways, pauses));
    }
}
