//! The connection to a host, over its restarts: who may ask, what is asked, and how its end is told.
//!
//! One task, the `supervisor`, owns the connection: it alone replaces it, and it tells every chat's task. Everybody else
//! takes the current one for one request at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use super::broadcast::{Broadcast, Latest};
use super::chat::{Awaited, ChatTask, Subscriber};
use super::handshake::Agreed;
use super::history::StoreSequences;
use super::inbox::Mail;
use super::known::{Known, KnownItems, Recent};
use super::options::Options;
use super::router::{EndedConnection, Router};
use super::sequence::Cursor;
use super::snapshot::{Items, View, view};
use super::supervisor::{client_options, handler, shake_or_close, start, supervise};
use super::wire::{self, EventsAfter, HarnessEvent, Method, RawPage, feature, lenient_event};
use super::{errors, rpc_call};
use crate::error::{KitError, Outcome, Result};
use crate::lock::lock;
use crate::model::{
    Capability, CapabilityTable, Chat, ChatId, ConnectionState, ConnectionStatus, Constraints, Counters, HostInfo, Seq,
    Workspace,
};
use crate::rpc::{Client, HostCommand, RawResult, RpcError};
use crate::stream::{EventStream, KitStream};

/// Snapshots that are remembered for the streams that begin at them.
const REMEMBERED_SNAPSHOTS: usize = 8;

/// A page of a chat's history of events.
pub(crate) enum Page {
    Events {
        events: Vec<HarnessEvent>,
        more: bool,
    },
    /// Events after the cursor are no longer kept.
    Gone,
    /// The answer was over the line limit.
    TooLarge,
}

enum Connection {
    Connected {
        client: Client,
        agreed: Arc<Agreed>,
    },
    /// Being started anew; what ended it.
    Down {
        error: KitError,
    },
    /// Over for good; what ended it, unless it was closed here.
    Over {
        error: Option<KitError>,
    },
}

/// What all of a backend share.
pub(crate) struct Core {
    pub(super) options: Options,
    runtime: Handle,
    pub(super) command: Option<HostCommand>,
    workspace: Option<Workspace>,
    connection: Mutex<Connection>,
    /// Connections that are over, until nothing of them is left.
    leaving: Mutex<Vec<Client>>,
    /// What the newest handshake settled: it stays readable when the host is gone.
    agreed: Mutex<Arc<Agreed>>,
    pub(super) router: Arc<Router>,
    remembered: Mutex<Vec<(ChatId, Seq, Known)>>,
    pub(crate) store_sequences: StoreSequences,
    pub(crate) created: Broadcast<Chat>,
    status: Latest,
    /// What connections that are over had counted.
    past_counters: Mutex<Counters>,
    restarts: AtomicU64,
    pub(super) closing: watch::Sender<bool>,
    /// Whether the supervisor has ended, and with it all that it had started.
    unsupervised: watch::Sender<bool>,
}

impl Core {
    /// Starts a host.
    pub(crate) async fn spawn(command: HostCommand, options: Options) -> Result<Arc<Core>> {
        let runtime = runtime(&options)?;
        let folder = command.folder().map(|folder| folder.to_string_lossy().into_owned());
        let workspace = folder.or_else(|| options.workspace.clone());
        let (router, ends) = Router::new(runtime.clone());
        let started = start(&command, &router, 1, &options, &runtime, None).await?;
        Ok(Core::new(started, Some(command), workspace, router, ends, options, runtime))
    }

    /// Speaks over a pair of streams.
    pub(crate) async fn connect(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
        options: Options,
    ) -> Result<Arc<Core>> {
        let runtime = runtime(&options)?;
        let (router, ends) = Router::new(runtime.clone());
        let handler = handler(&router, 1);
        let client = Client::start(reader, writer, handler, client_options(&options, &runtime));
        let agreed = shake_or_close(&client, &options, None).await?;
        let workspace = options.workspace.clone();
        Ok(Core::new((client, agreed), None, workspace, router, ends, options, runtime))
    }

    fn new(
        (client, agreed): (Client, Agreed),
        command: Option<HostCommand>,
        workspace: Option<String>,
        router: Arc<Router>,
        ends: mpsc::UnboundedReceiver<EndedConnection>,
        options: Options,
        runtime: Handle,
    ) -> Arc<Core> {
        let agreed = Arc::new(agreed);
        let reported = agreed.host.workspace.clone();
        // The app chose the folder; the host's name for it is shown beside it.
        let workspace = match (workspace, reported) {
            (Some(path), reported) => {
                Some(Workspace { path: Some(path), name: reported.and_then(|w| w.name), branch: None })
            }
            (None, reported) => reported,
        };
        let core = Arc::new(Core {
            options,
            runtime: runtime.clone(),
            command,
            workspace,
            connection: Mutex::new(Connection::Connected { client, agreed: agreed.clone() }),
            leaving: Mutex::default(),
            agreed: Mutex::new(agreed),
            router,
            remembered: Mutex::default(),
            store_sequences: StoreSequences::default(),
            created: Broadcast::default(),
            status: Latest::new(ConnectionState { status: ConnectionStatus::Connected, reason: None }),
            past_counters: Mutex::default(),
            restarts: AtomicU64::new(0),
            closing: watch::Sender::new(false),
            unsupervised: watch::Sender::new(false),
        });
        let supervised = Supervised(core.clone());
        runtime.spawn(async move { supervise(&supervised.0, ends).await });
        core
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn router(&self) -> &Router {
        &self.router
    }

    pub(crate) fn host_info(&self) -> HostInfo {
        lock(&self.agreed).host.clone()
    }

    pub(crate) fn capability_table(&self) -> CapabilityTable {
        lock(&self.agreed).table()
    }

    pub(crate) fn constraints(&self) -> Constraints {
        lock(&self.agreed).constraints()
    }

    pub(crate) fn has_feature(&self, feature: &str) -> bool {
        lock(&self.agreed).has(feature)
    }

    pub(crate) fn has_context(&self) -> bool {
        self.has_feature(feature::CONTEXT)
    }

    pub(crate) fn has_child_events(&self) -> bool {
        self.has_feature(feature::CHILD_EVENTS)
    }

    /// Fails where `capability` is off.
    pub(crate) fn require(&self, capability: Capability) -> Result<()> {
        if self.capability_table().detail(capability).on { Ok(()) } else { Err(KitError::unsupported(capability)) }
    }

    pub(crate) fn counters(&self) -> Counters {
        // Under the connection's lock: one that ends now is counted once, here or among the past ones.
        let connection = lock(&self.connection);
        let mut counters = lock(&self.past_counters).clone();
        if let Connection::Connected { client, .. } = &*connection {
            add_counters(&mut counters, client);
        }
        drop(connection);
        counters.malformed = self.router.malformed.load(Ordering::Relaxed);
        counters.gaps = self.router.gaps.load(Ordering::Relaxed);
        counters.restarts = self.restarts.load(Ordering::Relaxed);
        counters
    }

    pub(crate) fn connection(&self) -> crate::stream::ConnectionStream {
        self.status.subscribe(self.options.stream_limits)
    }

    pub(crate) fn watch_all(&self) -> EventStream {
        // Under the lock, as for a chat's events.
        let connection = lock(&self.connection);
        if let Connection::Over { error } = &*connection {
            return ended_stream(error.clone());
        }
        self.router.watchers.watch(self.options.stream_limits)
    }

    pub(crate) fn created_chats(&self) -> crate::stream::ChatStream {
        let stream = self.created.subscribe(self.options.stream_limits);
        if let Connection::Over { error } = &*lock(&self.connection) {
            self.created.end(error.clone());
        }
        stream
    }

    /// The current connection.
    fn client(&self) -> Result<(Client, Arc<Agreed>)> {
        match &*lock(&self.connection) {
            Connection::Connected { client, agreed } => Ok((client.clone(), agreed.clone())),
            Connection::Down { error } => Err(error.clone().with_outcome(Outcome::NotSent)),
            Connection::Over { error } => {
                Err(error.clone().unwrap_or_else(KitError::closed).with_outcome(Outcome::NotSent))
            }
        }
    }

    /// One request of the contract.
    pub(crate) async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result> {
        let answer = self.request::<M>(params).await?;
        rpc_call::read::<M, _>(&answer)
    }

    async fn request<M: Method>(&self, params: M::Params) -> Result<RawResult> {
        let (client, agreed) = self.client()?;
        if let Some(feature) = M::FEATURE
            && !agreed.has(feature)
        {
            // The capability said so before; the host may have come back with less.
            let error = KitError::failed(format!("the host no longer offers {feature}"));
            return Err(error.with_outcome(Outcome::NotSent));
        }
        rpc_call::raw::<M>(&client, &params, rpc_call::time_left(M::NAME)?).await
    }

    /// The state of a session, then its approvals: these may be newer, never older.
    pub(crate) async fn load_view(&self, chat: &ChatId) -> Result<View> {
        let answer = self.request::<wire::SessionState>(wire::SessionParams { session_id: chat.clone() }).await?;
        let state: wire::SessionStateResult<Items> = rpc_call::read::<wire::SessionState, _>(&answer)?;
        // It may be large, and the approvals take a while.
        drop(answer);
        let approvals =
            if self.has_feature(feature::APPROVALS) { self.load_approvals(chat).await? } else { Vec::new() };
        Ok(view(state, approvals, self.workspace.clone()))
    }

    pub(crate) async fn load_approvals(&self, chat: &ChatId) -> Result<Vec<wire::Approval>> {
        let params = wire::SessionParams { session_id: chat.clone() };
        Ok(self.call::<wire::ApprovalList>(params).await?.approvals)
    }

    /// Durable events after a host sequence.
    pub(crate) async fn load_page(&self, chat: &ChatId, after: u64, limit: u64) -> Result<Page> {
        let (client, _) = self.client()?;
        let params = wire::EventsAfterParams { session_id: chat.clone(), after, limit };
        let timeout = rpc_call::time_left(EventsAfter::NAME)?;
        let answer = match client.call(EventsAfter::NAME, &params, timeout).await {
            Ok(answer) => answer,
            Err(RpcError::Oversize { .. }) => return Ok(Page::TooLarge),
            Err(error) => return Err(errors::kit_error(EventsAfter::NAME, error)),
        };
        let page = read_page(&answer)?;
        if page.resync == Some(true) {
            return Ok(Page::Gone);
        }
        // A host that says there is more and gives nothing would be asked for ever.
        let more = page.has_more && !page.events.is_empty();
        Ok(Page::Events { events: page.events, more })
    }

    /// Keeps what a snapshot tells, for a stream that begins at it.
    pub(crate) fn remember(&self, view: &View) {
        let known = Known::of(view, None, &Recent::default());
        let chat = view.snapshot.chat.id.clone();
        let mut remembered = lock(&self.remembered);
        remembered.retain(|(known, _, _)| *known != chat);
        if remembered.len() == REMEMBERED_SNAPSHOTS {
            remembered.remove(0);
        }
        remembered.push((chat, view.snapshot.seq, known));
    }

    /// What an app knows that begins at `after`.
    fn base(&self, chat: &ChatId, after: Seq) -> Known {
        let remembered = lock(&self.remembered);
        let exact = remembered.iter().find(|(known, seq, _)| known == chat && *seq == after);
        match exact {
            Some((_, _, known)) => known.clone(),
            None if Cursor::from_kit(after) == Cursor::START => Known::unknown(KnownItems::Nothing),
            None => Known::unknown(KnownItems::BeforeRun(None)),
        }
    }

    pub(crate) fn events(self: &Arc<Self>, chat: &ChatId, after: Option<Seq>) -> EventStream {
        self.events_awaiting(chat, after, None)
    }

    /// The same, where the end of a run is told even if its own event is lost. Which run may be set later.
    pub(crate) fn events_awaiting(
        self: &Arc<Self>,
        chat: &ChatId,
        after: Option<Seq>,
        awaited: Option<Awaited>,
    ) -> EventStream {
        let limits = self.options.stream_limits;
        let (sink, stream) = KitStream::channel(limits);
        let base = after.map(|after| self.base(chat, after));
        let mut subscriber = Subscriber::new(chat.clone(), sink, limits, after.map(Cursor::from_kit), base);
        subscriber.awaited = awaited;
        // Under the lock, so that the end of the connection comes either before or behind it, never between.
        let connection = lock(&self.connection);
        if let Connection::Over { error } = &*connection {
            return ended_stream(error.clone());
        }
        let down = matches!(&*connection, Connection::Down { .. });
        self.router.deliver_or_start(chat, Mail::Attach(Box::new(subscriber)), |inbox| {
            if down {
                inbox.push(Mail::Down);
            }
            ChatTask::start(self.clone(), chat.clone(), inbox);
        });
        stream
    }

    /// A command here may have changed a chat's state without an event.
    pub(crate) fn refresh(&self, chat: &ChatId) {
        self.router.deliver(chat, Mail::Refresh);
    }

    /// It is now known which run a stream of the chat waits for.
    pub(crate) fn awaited(&self, chat: &ChatId) {
        self.router.deliver(chat, Mail::Awaited);
    }

    /// Ends the backend and waits until nothing of it is left.
    pub(crate) async fn close(&self) {
        self.shutdown();
        self.left().await;
        // A host that is being started anew is the supervisor's; an error here says that the core itself is gone.
        let _ = self.unsupervised.subscribe().wait_for(|ended| *ended).await;
    }

    /// Ends the backend without waiting.
    pub(crate) fn shutdown(&self) {
        self.closing.send_replace(true);
        self.over(None);
    }

    /// Waits until nothing is left of the connections that are over. Whoever else waits for it waits as long.
    pub(super) async fn left(&self) {
        let clients = lock(&self.leaving).clone();
        for client in clients {
            client.close().await;
        }
    }

    /// Forgets the connections of which nothing is left.
    pub(super) fn forget_left(&self) {
        lock(&self.leaving).clear();
    }

    /// Ends a connection that another state takes the place of.
    fn leave(&self, connection: Connection) {
        if let Connection::Connected { client, .. } = connection {
            add_counters(&mut lock(&self.past_counters), &client);
            client.shutdown();
            lock(&self.leaving).push(client);
        }
    }

    /// Over for good. The first reason counts.
    pub(super) fn over(&self, error: Option<KitError>) {
        {
            let mut connection = lock(&self.connection);
            if matches!(&*connection, Connection::Over { .. }) {
                return;
            }
            self.leave(std::mem::replace(&mut *connection, Connection::Over { error: error.clone() }));
            self.router.deliver_to_all(|| Mail::Over(error.clone()));
        }
        self.router.watchers.end(error.as_ref());
        self.created.end(error.clone());
        self.status.end(ConnectionState { status: ConnectionStatus::Closed, reason: error });
    }

    pub(super) fn down(&self, error: KitError) {
        let mut connection = lock(&self.connection);
        if matches!(&*connection, Connection::Over { .. }) {
            return;
        }
        self.leave(std::mem::replace(&mut *connection, Connection::Down { error: error.clone() }));
        self.router.watchers.down();
        self.router.deliver_to_all(|| Mail::Down);
        drop(connection);
        self.status.set(ConnectionState { status: ConnectionStatus::Restarting, reason: Some(error) });
    }

    /// The host is back. Where the backend was closed meanwhile the client is given back, to be closed.
    pub(super) fn up(&self, client: Client, agreed: Agreed) -> Result<(), Client> {
        let agreed = Arc::new(agreed);
        {
            let mut connection = lock(&self.connection);
            if matches!(&*connection, Connection::Over { .. }) {
                return Err(client);
            }
            *lock(&self.agreed) = agreed.clone();
            *connection = Connection::Connected { client, agreed };
            self.restarts.fetch_add(1, Ordering::Relaxed);
            self.router.deliver_to_all(|| Mail::Up);
        }
        self.status.set(ConnectionState { status: ConnectionStatus::Connected, reason: None });
        Ok(())
    }
}

fn runtime(options: &Options) -> Result<Handle> {
    match &options.runtime {
        Some(runtime) => Ok(runtime.clone()),
        None => Handle::try_current()
            .map_err(|_| KitError::invalid("no async runtime is running here, and the options name none")),
    }
}

fn ended_stream(error: Option<KitError>) -> EventStream {
    match error {
        Some(error) => KitStream::failed(error),
        None => KitStream::channel(Default::default()).1,
    }
}

fn add_counters(counters: &mut Counters, client: &Client) {
    let of = client.counters();
    counters.skipped_lines += of.skipped_lines;
    counters.unknown_ids += of.unknown_ids;
    counters.oversize += of.oversize;
    counters.host_requests += of.host_requests;
}

/// Reads a page; where an event in it doesn't fit, that event alone is in doubt.
fn read_page(answer: &RawResult) -> Result<wire::EventsAfterResult> {
    if let Ok(page) = serde_json::from_str(answer.get()) {
        return Ok(page);
    }
    let unreadable = |_| errors::unreadable(EventsAfter::NAME);
    let raw: RawPage<'_> = serde_json::from_str(answer.get()).map_err(unreadable)?;
    let events = raw.events.into_iter().map(lenient_event).collect::<Result<_, _>>().map_err(unreadable)?;
    Ok(wire::EventsAfterResult { events, has_more: raw.has_more, resync: raw.resync })
}

/// Ends the backend when its supervisor is gone, also where the runtime ended in the middle or before it ever ran: nothing
/// stays open that nobody serves. After another end it changes nothing.
struct Supervised(Arc<Core>);

impl Drop for Supervised {
    fn drop(&mut self) {
        self.0.over(None);
        self.0.unsupervised.send_replace(true);
    }
}
