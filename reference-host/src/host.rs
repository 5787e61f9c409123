//! The host itself: the store, what goes on at the moment, and the transaction that ties both to the outbox.
//!
//! Everything durable is committed before it is told: a [`Tx`] collects rows and lines, and only when the rows are in
//! the store do the lines go to the outbox, under the same lock, so that lines of a session stand in the order of their
//! sequences.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kitport::bubblepaw::wire::{EventData, HarnessEvent, HostState, Message, Run, ToolCall, ToolResult, feature};
use kitport::model::{ChatId, ItemId, RunId, Time};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::agent::Runner;
use crate::failure::{Failure, Outcome};
use crate::options::{HostOptions, bits};
use crate::outbox::{Lines, Outbox, Tag};
use crate::store::{SessionRow, Store};

/// A host with its store.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) options: HostOptions,
    pub(crate) workspace: PathBuf,
    pub(crate) outbox: Outbox,
    /// Answers of the client to the host's own requests.
    pub(crate) client_answers: watch::Sender<u64>,
    /// Set when the host is to exit at once.
    pub(crate) exit: watch::Sender<Option<i32>>,
    negotiated: std::sync::atomic::AtomicU32,
    inner: Mutex<Inner>,
    runs: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    live: HashMap<ChatId, Live>,
}

/// A session in memory.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) row: SessionRow,
    pub(crate) tag: Arc<Tag>,
    /// Told whenever something is committed that an agent may wait for.
    pub(crate) changed: Arc<Notify>,
    pub(crate) running: Option<Running>,
}

/// A run that goes on.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) run: RunId,
    pub(crate) cancel: watch::Sender<bool>,
    /// Ends a wait for quota early.
    pub(crate) hurry: Arc<Notify>,
}

impl Host {
    /// Opens the store.
    pub(crate) fn open(options: HostOptions) -> Outcome<Arc<Host>> {
        let store = Store::open(options.db.as_deref())?;
        let workspace = std::path::absolute(&options.workspace).unwrap_or_else(|_| options.workspace.clone());
        Ok(Arc::new(Host {
            outbox: Outbox::new(&options.faults, options.seed),
            workspace,
            client_answers: watch::Sender::new(0),
            exit: watch::Sender::new(None),
            negotiated: std::sync::atomic::AtomicU32::new(0),
            inner: Mutex::new(Inner { store, live: HashMap::new() }),
            runs: Mutex::new(JoinSet::new()),
            options,
        }))
    }

    /// The bits of the features that client and host agreed on.
    pub(crate) fn negotiated(&self) -> u32 {
        self.negotiated.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn negotiate(&self, features: u32) {
        self.negotiated.store(features, std::sync::atomic::Ordering::Relaxed);
        self.outbox.negotiate(features);
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        self.negotiated() & bits::of(feature) != 0
    }

    /// One consistent read.
    pub(crate) fn read<R>(self: &Arc<Self>, f: impl FnOnce(&mut Tx<'_>) -> Outcome<R>) -> Outcome<R> {
        let mut inner = self.inner.lock().expect("a transaction that panics ends the host");
        f(&mut Tx::new(self, &mut inner))
    }

    /// One transaction: all of it is stored, then told; or nothing is.
    pub(crate) fn write<R>(self: &Arc<Self>, f: impl FnOnce(&mut Tx<'_>) -> Outcome<R>) -> Outcome<R> {
        let mut inner = self.inner.lock().expect("a transaction that panics ends the host");
        inner.store.begin()?;
        let mut tx = Tx::new(self, &mut inner);
        let result = f(&mut tx).and_then(|result| tx.save().map(|()| result));
        let Tx { touched, lines, answer, start, ended, .. } = tx;
        match result.and_then(|result| inner.store.commit().map(|()| result)) {
            Err(failure) => {
                inner.store.rollback();
                // What was changed in memory is read anew.
                for id in touched {
                    inner.reload(&id)?;
                }
                Err(failure)
            }
            Ok(result) => {
                self.outbox.committed(answer.as_deref(), &lines);
                for (session, run) in ended {
                    if let Some(live) = inner.live.get_mut(&session)
                        && live.running.as_ref().is_some_and(|running| running.run == run)
                    {
                        live.running = None;
                    }
                }
                for (session, running, runner) in start {
                    if let Some(live) = inner.live.get_mut(&session) {
                        live.running = Some(running);
                    }
                    self.spawn(runner.play());
                }
                for id in touched {
                    if let Some(live) = inner.live.get(&id) {
                        live.changed.notify_waiters();
                    }
                }
                Ok(result)
            }
        }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut runs = self.runs.lock().expect("nothing panics while it spawns");
        while runs.try_join_next().is_some() {}
        runs.spawn(task);
    }

    /// Ends the runs where they are: a host that is started again finds them interrupted.
    pub(crate) fn stop_runs(&self) {
        self.runs.lock().expect("nothing panics while it spawns").abort_all();
    }

    /// Ends the host at once, whatever it has to say.
    pub(crate) fn die(&self, code: i32) {
        self.exit.send_replace(Some(code));
    }
}

impl Inner {
    fn reload(&mut self, id: &ChatId) -> Outcome<()> {
        match self.store.session(id)? {
            Some(row) => {
                if let Some(live) = self.live.get_mut(id) {
                    live.row = row;
                }
            }
            None => {
                self.live.remove(id);
            }
        }
        Ok(())
    }
}

/// A read or a transaction that goes on.
pub(crate) struct Tx<'a> {
    pub(crate) host: &'a Arc<Host>,
    pub(crate) store: &'a Store,
    pub(crate) now: Time,
    live: &'a mut HashMap<ChatId, Live>,
    touched: Vec<ChatId>,
    lines: Lines,
    answer: Option<Vec<u8>>,
    start: Vec<(ChatId, Running, Runner)>,
    ended: Vec<(ChatId, RunId)>,
}

impl<'a> Tx<'a> {
    fn new(host: &'a Arc<Host>, inner: &'a mut Inner) -> Tx<'a> {
        Tx {
            host,
            store: &inner.store,
            live: &mut inner.live,
            now: Time::now(),
            touched: Vec::new(),
            lines: Lines::default(),
            answer: None,
            start: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn save(&mut self) -> Outcome<()> {
        for id in &self.touched {
            if let Some(live) = self.live.get_mut(id) {
                live.row.updated_at = self.now;
                if let Some(keep) = self.host.retention(self.store)?
                    && let Some(dropped) = self.store.drop_events(live.row.num, keep)?
                {
                    live.row.dropped = live.row.dropped.max(dropped);
                }
                self.store.save_session(&live.row)?;
            }
        }
        Ok(())
    }

    /// A session to read.
    pub(crate) fn live(&mut self, id: &str) -> Outcome<&mut Live> {
        if !self.live.contains_key(id) {
            let row = self.store.session(id)?.ok_or_else(|| Failure::unknown_session(id))?;
            self.adopt(row);
        }
        Ok(self.live.get_mut(id).expect("it was put there just now"))
    }

    pub(crate) fn row(&mut self, id: &str) -> Outcome<&SessionRow> {
        Ok(&self.live(id)?.row)
    }

    /// A session to change; it is saved at the end.
    pub(crate) fn change(&mut self, id: &str) -> Outcome<&mut SessionRow> {
        self.live(id)?;
        let live = self.live.get_mut(id).expect("it was loaded just now");
        if !self.touched.contains(&live.row.id) {
            self.touched.push(live.row.id.clone());
        }
        Ok(&mut live.row)
    }

    fn adopt(&mut self, row: SessionRow) {
        let tag = Arc::new(Tag::new(row.id.clone(), row.last_event));
        let changed = Arc::new(Notify::new());
        self.live.insert(row.id.clone(), Live { row, tag, changed, running: None });
    }

    /// Makes a session.
    pub(crate) fn new_session(&mut self, title: Option<&str>, parent: Option<&ChatId>) -> Outcome<ChatId> {
        let num = self.store.next_session_number()?;
        let mut rng = self.rng(num, 0);
        let id = ChatId::from(format!("ses_{num}_{:05x}", rng.u32(..1 << 20)));
        let row = SessionRow {
            num,
            id: id.clone(),
            parent: parent.cloned(),
            created_at: self.now,
            updated_at: self.now,
            last_event: 0,
            next_event: 1,
            dropped: 0,
            next_store: 1,
            next_id: 1,
            details: crate::store::Details {
                title: title.unwrap_or("New chat").to_owned(),
                untitled: title.is_none(),
                ..Default::default()
            },
        };
        self.store.insert_session(&row)?;
        self.adopt(row);
        self.change(&id)?;
        Ok(id)
    }

    /// Adds a durable event.
    pub(crate) fn event(&mut self, session: &ChatId, run: Option<&RunId>, data: EventData) -> Outcome<u64> {
        let event = HarnessEvent { sequence: 0, run_id: run.cloned(), at: Some(self.now), durable: true, data };
        let features = features_of(&event.data);
        self.event_with(session, features, |sequence| {
            serde_json::to_string(&HarnessEvent { sequence, ..event }).map_err(Failure::from)
        })
    }

    /// Adds a durable event that the wire types don't know.
    pub(crate) fn foreign_event(&mut self, session: &ChatId, event_type: &str, data: &str) -> Outcome<u64> {
        self.event_with(session, 0, |sequence| {
            Ok(format!(r#"{{"sequence":{sequence},"type":"{event_type}","data":{data},"x_origin":"future"}}"#))
        })
    }

    fn event_with(
        &mut self,
        session: &ChatId,
        features: u32,
        json: impl FnOnce(u64) -> Outcome<String>,
    ) -> Outcome<u64> {
        let seed = self.host.options.seed;
        let row = self.change(session)?;
        let (num, sequence) = (row.num, row.next_event);
        // Bookkeeping of the host takes a sequence now and then, so that nobody relies on dense ones.
        row.next_event += 1 + skip(seed, num, sequence);
        row.last_event = sequence;
        let json = json(sequence)?;
        self.store.insert_event(num, sequence, features, &json)?;
        let tag = self.live(session)?.tag.clone();
        self.lines.event(&tag, sequence, features, &json);
        Ok(sequence)
    }

    /// Adds a canonical message; gives its id.
    pub(crate) fn message(&mut self, session: &ChatId, new: NewMessage) -> Outcome<ItemId> {
        let seed = self.host.options.seed;
        let now = self.now;
        let row = self.change(session)?;
        let sequence = row.next_store;
        // Not dense either, and by another rule.
        row.next_store += 1 + skip(seed ^ 0xA5, row.num, sequence);
        let message = Message {
            message_id: message_id(row.num, sequence).into(),
            role: new.role.to_owned(),
            text: new.text,
            created_at: Some(now),
            run_id: new.run,
            tool_calls: new.calls,
            tool_result: new.result,
        };
        let num = row.num;
        self.store.insert_message(num, sequence, &message)?;
        Ok(message.message_id)
    }

    /// Answers a request before anything that this transaction tells.
    pub(crate) fn answer_first(&mut self, line: Vec<u8>) {
        self.answer = Some(line);
    }

    /// Starts a run when the transaction is committed.
    pub(crate) fn start(&mut self, session: &ChatId, running: Running, runner: Runner) {
        self.start.push((session.clone(), running, runner));
    }

    /// Takes a run out of those that go on, when the transaction is committed.
    pub(crate) fn ended(&mut self, session: &ChatId, run: &RunId) {
        self.ended.push((session.clone(), run.clone()));
    }

    /// Whether a run goes on, or is about to by this very transaction.
    pub(crate) fn is_running(&mut self, session: &ChatId) -> Outcome<bool> {
        if self.start.iter().any(|(id, ..)| id == session) {
            return Ok(true);
        }
        let ended: Vec<RunId> = self.ended.iter().filter(|(id, _)| id == session).map(|(_, run)| run.clone()).collect();
        Ok(self.live(session)?.running.as_ref().is_some_and(|running| !ended.contains(&running.run)))
    }

    /// Randomness that belongs to a thing: the same seed gives the same.
    pub(crate) fn rng(&self, session: i64, thing: u64) -> fastrand::Rng {
        rng(self.host.options.seed, session, thing)
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        self.host.has(feature)
    }

    /// Tells a run's status to the store.
    pub(crate) fn save_run(&mut self, run: &Run) -> Outcome<()> {
        self.store.save_run(run)
    }
}

/// A message to be added.
#[derive(Debug, Default)]
pub(crate) struct NewMessage {
    pub(crate) role: &'static str,
    pub(crate) text: String,
    pub(crate) run: Option<RunId>,
    pub(crate) calls: Option<Vec<ToolCall>>,
    pub(crate) result: Option<ToolResult>,
}

/// The id of a message tells its place, so that it is found without an index.
pub(crate) fn message_id(session: i64, sequence: u64) -> String {
    format!("msg_{session}_{sequence}")
}

/// The place that a message id tells.
pub(crate) fn message_place(id: &str) -> Option<(i64, u64)> {
    let (session, sequence) = id.strip_prefix("msg_")?.split_once('_')?;
    Some((session.parse().ok()?, sequence.parse().ok()?))
}

fn mix(seed: u64, session: i64, thing: u64) -> u64 {
    // A multiplication and a fold spread neighbouring numbers over the whole range.
    let mixed = (seed ^ session.unsigned_abs().rotate_left(32) ^ thing).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

fn rng(seed: u64, session: i64, thing: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(mix(seed, session, thing))
}

/// How many sequences are left out after this one: mostly none.
fn skip(seed: u64, session: i64, sequence: u64) -> u64 {
    match mix(seed, session, sequence) % 16 {
        0 => 3,
        1 | 2 => 1,
        _ => 0,
    }
}

/// The features without which a client doesn't get an event.
fn features_of(data: &EventData) -> u32 {
    match data {
        EventData::ApprovalRequested { .. } | EventData::ApprovalResolved { .. } => bits::of(feature::APPROVALS),
        EventData::ChildRunStateChanged { .. } => bits::of(feature::CHILD_EVENTS),
        EventData::ContextCompaction { .. } => bits::of(feature::CONTEXT),
        EventData::HostStateChanged(state) => match state {
            HostState::Todo(_) => bits::of(feature::PLAN),
            HostState::Question(_) => bits::of(feature::QUESTIONS),
            HostState::ChildQuestion(_) | HostState::ChildQuestionAnswer(_) => bits::of(feature::CHILD_EVENTS),
            HostState::Other { .. } => 0,
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_have_holes_but_not_everywhere() {
        let dense = (1..1000).filter(|sequence| skip(1, 1, *sequence) == 0).count();
        assert!((600..950).contains(&dense), "{dense}");
    }

    #[test]
    fn a_message_id_tells_its_place() {
        assert_eq!(message_place(&message_id(3, 17)), Some((3, 17)));
        for other in ["msg_3", "msg_a_b", "provisional:run", ""] {
            assert_eq!(message_place(other), None);
        }
    }

    #[test]
    fn what_failed_leaves_nothing() {
        let host = Host::open(HostOptions::default()).unwrap();
        let id = host.write(|tx| tx.new_session(Some("kept"), None)).unwrap();
        let failed = host.write(|tx| {
            tx.change(&id)?.details.title = "lost".into();
            tx.event(&id, None, EventData::SessionSettled {})?;
            tx.new_session(Some("lost too"), None)?;
            Err::<(), _>(Failure::busy())
        });
        assert_eq!(failed, Err(Failure::busy()));
        host.read(|tx| {
            assert_eq!(tx.row(&id)?.details.title, "kept");
            assert_eq!(tx.row(&id)?.last_event, 0);
            assert_eq!(tx.store.sessions(None, None)?.len(), 1);
            Ok(())
        })
        .unwrap();
    }
}
