//! Random kills of the host at random points: no durable event is lost or repeated, and nothing is left behind.
//!
//! Scripted runs go on in several chats, streams read from several cursors, the host does wrong what it can, and is
//! killed, stopped and started anew. At the end each stream has what a fresh replay has, and what the host's own log
//! says. `KITPORT_SEED` plays a failure's choices again; `KITPORT_KILLS` sets how many kills there are.

#![allow(missing_docs, clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kitport::bubblepaw::{Options, Restart};
use kitport::model::{ChatId, ConnectionStatus, Decision, Event, EventKind, Seq};
use kitport::{AgentBackend, BubblePaw, ChatReader, EventStream, KitError, StreamLimits};
use kitport_conformance::{NEVER, assert_rising, durable, eventually, host_command, oracle, procs, seed, until};
use rustix::process::{Pid, Signal, kill_process};

const KILLS: usize = 1000;

/// The kills are spread over hosts with different faults: each part has a database, a backend and streams of its own.
const FAULTS: &[&[&str]] = &[
    &[],
    &["duplicates", "noise"],
    &["drop", "duplicates"],
    &["split", "drop", "events-first"],
    &["noise", "future", "reorder", "transient-duplicates"],
];

const CHATS: usize = 3;

const SCRIPTS: &[&str] = &[
    "tool; stream 10; output text",
    "stream 5; tools 5; plan; stream 5",
    "nested; retry; tool; plan next",
    "tools 30",
    "quota 0.01; stream 3; notext; tool",
    "child 2 tool; stream 4",
    "approve; tool",
    "mismatch; unicode; compact; tool",
];

#[test]
fn random_kills_lose_nothing_repeat_nothing_and_leave_nothing() {
    let kills = std::env::var("KITPORT_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let seed = seed();
    println!("KITPORT_SEED={seed}");
    // The runtime's own pair of descriptors for signals is made once and stays.
    drop(runtime());
    let before = Left::now();
    for (part, faults) in FAULTS.iter().enumerate() {
        // One runtime for each part: with it every thread and descriptor of ours must go.
        let runtime = runtime();
        let chaos = Chaos::new(faults, seed.wrapping_add(part as u64), kills / FAULTS.len());
        runtime.block_on(chaos.play());
        drop(runtime);
        let mut left = Left::now();
        // The system takes a moment for a thread that has ended.
        for _ in 0..1000 {
            if left == before {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
            left = Left::now();
        }
        assert_eq!(left, before, "with {faults:?}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// What a process holds.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    children: Vec<u32>,
    threads: usize,
    descriptors: usize,
}

impl Left {
    fn now() -> Left {
        Left { children: procs::children(), threads: procs::threads(), descriptors: procs::descriptors() }
    }
}

struct Chaos {
    faults: &'static [&'static str],
    rng: fastrand::Rng,
    kills: usize,
    folder: tempfile::TempDir,
}

/// A reader: its stream, where it began, and what it has seen.
type Reader = tokio::task::JoinHandle<(usize, Seq, EventStream, Vec<Event>)>;

impl Chaos {
    fn new(faults: &'static [&'static str], seed: u64, kills: usize) -> Chaos {
        Chaos { faults, rng: fastrand::Rng::with_seed(seed), kills, folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, faults: &[&str]) -> kitport::rpc::HostCommand {
        let db = self.folder.path().join("host.db");
        let mut args = vec!["--db".to_owned(), db.display().to_string()];
        args.extend(["--workspace".to_owned(), self.folder.path().display().to_string()]);
        faults.iter().for_each(|fault| args.extend(["--fault".to_owned(), (*fault).to_owned()]));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        host_command(Path::new(env!("CARGO_BIN_EXE_conformance-host")), &args)
    }

    async fn play(mut self) {
        let mut restart = Restart::always();
        if let Restart::Always { first_pause, longest_pause } = &mut restart {
            (*first_pause, *longest_pause) = (Duration::from_millis(1), Duration::from_millis(3));
        }
        let options = Options {
            restart,
            stream_limits: StreamLimits { events: 256, bytes: 1 << 20 },
            call_timeout: Some(Duration::from_secs(10)),
            ..Options::default()
        };
        let backend = BubblePaw::spawn(self.command(self.faults), options).await.unwrap();
        let mut chats = Vec::new();
        for n in 0..CHATS {
            chats.push(backend.create_chat(Some(&format!("chat {n}"))).await.unwrap().id);
        }
        let over = Arc::new(AtomicBool::new(false));
        let mut readers: Vec<Reader> = Vec::new();
        let mut drivers = Vec::new();
        for (n, chat) in chats.iter().enumerate() {
            readers.push(reader(n, Seq::START, backend.events(chat, Some(Seq::START)), self.rng.u64(..), over.clone()));
            let script_rng = fastrand::Rng::with_seed(self.rng.u64(..));
            drivers.push(tokio::spawn(drive(backend.clone(), chat.clone(), script_rng, over.clone())));
        }
        for kill in 0..self.kills {
            self.kill(&backend).await;
            // From time to time somebody comes in the middle, at the beginning, or now.
            if kill % 25 == 7 {
                let n = self.rng.usize(..CHATS);
                if let Ok(snapshot) = backend.load_chat(&chats[n]).await {
                    let after = match self.rng.u8(..3) {
                        0 => Seq::START,
                        1 => Seq(self.rng.u64(..=snapshot.seq.0)),
                        _ => snapshot.seq,
                    };
                    readers.push(reader(
                        n,
                        after,
                        backend.events(&chats[n], Some(after)),
                        self.rng.u64(..),
                        over.clone(),
                    ));
                }
            }
        }
        connected(&backend).await;
        over.store(true, Ordering::Release);
        for driver in drivers {
            tokio::time::timeout(NEVER, driver).await.expect("the drivers end").unwrap();
        }
        // A last run in each chat, so that there is an end to wait for.
        let mut ends = Vec::new();
        for chat in &chats {
            let fresh = backend.events(chat, Some(Seq::START));
            eventually_sent(&backend, chat).await;
            let all = until(
                &fresh,
                |event| matches!(&event.kind, EventKind::MessageAssistant(message) if message.text.contains("the very end")),
            );
            let mut all = tokio::time::timeout(NEVER, all).await.expect("a fresh replay comes to the end").to_vec();
            // Its run's own end stands behind it.
            all.extend(until(&fresh, |event| matches!(event.kind, EventKind::RunFinished(_))).await);
            ends.push(durable(&all));
        }
        for reader in readers {
            let (n, after, stream, mut seen) = tokio::time::timeout(NEVER, reader).await.expect("it reads").unwrap();
            let end = ends[n].last().unwrap().seq;
            let reached = |seen: &[Event]| seen.iter().rev().find(|event| event.durable).is_some_and(|e| e.seq >= end);
            if !reached(&seen) {
                let rest = until(&stream, |event| event.durable && event.seq >= end);
                seen.extend(tokio::time::timeout(NEVER, rest).await.expect("a stream comes to the end"));
            }
            assert_rising(&seen);
            let gap = seen.iter().find(|event| matches!(&event.kind, EventKind::Gap(gap) if gap.lost));
            assert!(gap.is_none(), "nothing was lost: {gap:?}");
            let wanted: Vec<_> = ends[n].iter().filter(|event| event.seq > after).cloned().collect();
            assert_same(&durable(&seen), &wanted, &format!("chat {n} after {after:?} with {:?}", self.faults));
        }
        assert!(backend.counters().restarts as usize >= self.kills / 2, "{:?}", backend.counters());
        backend.close().await;
        // And the host's own log, read by plain requests.
        let sessions: Vec<&str> = chats.iter().map(ChatId::as_str).collect();
        let logs = oracle::logs(&self.command(&[]), &sessions).await;
        for (n, log) in logs.iter().enumerate() {
            let end = ends[n].last().unwrap().seq;
            let wanted: Vec<Seq> = oracle::sequences(log).into_iter().filter(|seq| *seq <= end).collect();
            assert_eq!(oracle::durable_sequences(&ends[n]), wanted, "chat {n} with {:?}", self.faults);
            assert!(wanted.len() > 20, "something went on");
        }
    }

    /// One kill at a random moment; sometimes the next host is killed before it is ready, too.
    async fn kill(&mut self, backend: &BubblePaw) {
        connected(backend).await;
        tokio::time::sleep(Duration::from_micros(self.rng.u64(..40_000))).await;
        let before = backend.counters().restarts;
        match self.rng.u8(..8) {
            // Held for a moment, and killed while it is held or let go again before.
            0 => {
                signal_all(Signal::STOP);
                tokio::time::sleep(Duration::from_millis(self.rng.u64(..10))).await;
            }
            1 => {
                signal_all(Signal::STOP);
                tokio::time::sleep(Duration::from_millis(self.rng.u64(..10))).await;
                signal_all(Signal::CONT);
                tokio::time::sleep(Duration::from_micros(self.rng.u64(..3_000))).await;
            }
            2 => signal_all(Signal::TERM),
            _ => {}
        }
        signal_all(Signal::KILL);
        if self.rng.u8(..10) == 0 {
            // At most once in a row: three starts without a handshake would be final, as they must be.
            let pid = loop {
                tokio::time::sleep(Duration::from_micros(200)).await;
                if backend.counters().restarts > before {
                    return;
                }
                if let Some(pid) = procs::children().first() {
                    break *pid;
                }
            };
            tokio::time::sleep(Duration::from_micros(self.rng.u64(..5_000))).await;
            signal(pid, Signal::KILL);
        }
        eventually("the host is back", || backend.counters().restarts > before).await;
    }
}

fn signal(pid: u32, signal: Signal) {
    // One that is gone already needs none.
    let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal);
}

fn signal_all(which: Signal) {
    procs::children().into_iter().for_each(|pid| signal(pid, which));
}

/// Waits until the backend is connected.
async fn connected(backend: &BubblePaw) {
    let states = backend.connection();
    loop {
        let state = tokio::time::timeout(NEVER, states.next()).await.expect("it comes back").unwrap().unwrap();
        match state.status {
            ConnectionStatus::Connected => return,
            ConnectionStatus::Closed => panic!("given up: {:?}", state.reason),
            _ => {}
        }
    }
}

/// Reads a stream, at times slowly, and with calls that are dropped in the middle.
fn reader(n: usize, after: Seq, stream: EventStream, seed: u64, over: Arc<AtomicBool>) -> Reader {
    let mut rng = fastrand::Rng::with_seed(seed);
    tokio::spawn(async move {
        let mut seen = Vec::new();
        while !over.load(Ordering::Acquire) {
            let patience = Duration::from_millis(rng.u64(1..20));
            match tokio::time::timeout(patience, stream.next_batch(rng.usize(1..400))).await {
                Ok(batch) => seen.extend(batch.expect("the stream goes on over restarts")),
                Err(_) => continue,
            }
            if rng.u8(..20) == 0 {
                tokio::time::sleep(Duration::from_millis(rng.u64(..50))).await;
            }
        }
        (n, after, stream, seen)
    })
}

/// Keeps a chat busy until it is over. What fails because the host died fails with a word about it.
async fn drive(backend: BubblePaw, chat: ChatId, mut rng: fastrand::Rng, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Acquire) {
        let script = SCRIPTS[rng.usize(..SCRIPTS.len())];
        let done = match backend.send(&chat, script, &[]).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        let done = match (done, rng.u8(..10)) {
            (Ok(()), 0) => backend.cancel(&chat).await,
            (Ok(()), 1) => backend.steer(&chat, "a steer").await.map(drop),
            (Ok(()), 2) => backend.rename(&chat, "renamed").await,
            (done, _) => done,
        };
        if let Ok(pending) = backend.pending_approvals().await {
            for asked in pending.into_iter().filter(|asked| asked.chat == chat) {
                let _ = backend.decide_approval(&chat, &asked.approval.id, Decision::Approve, None).await;
            }
        }
        match done {
            Ok(()) => {}
            Err(KitError::HostExited { .. } | KitError::Closed(_)) => {}
            // There was nothing to cancel or steer any more.
            Err(error) if error.outcome() == Some(kitport::Outcome::Refused) => {}
            Err(error) => panic!("{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(1..15))).await;
    }
}

/// Sends the last text when nothing else goes on: until then approvals are decided and what waits is cancelled.
async fn eventually_sent(backend: &BubblePaw, chat: &ChatId) {
    let sent = async {
        loop {
            let snapshot = match backend.load_chat(chat).await {
                Ok(snapshot) => snapshot,
                // The last kill may hit a host that has just come back: another one follows it.
                Err(KitError::HostExited { .. }) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            };
            for approval in &snapshot.approvals {
                let _ = backend.decide_approval(chat, &approval.id, Decision::Deny, None).await;
            }
            match backend.run(chat, "say This is the very end.").await {
                Ok(_) => return,
                Err(error) if error.is_conflict() || error.code() == "host_exited" => {
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    tokio::time::timeout(NEVER, sent).await.expect("a chat comes to rest");
}

/// Compares without printing thousands of events.
fn assert_same(seen: &[Event], wanted: &[Event], what: &str) {
    for (seen, wanted) in seen.iter().zip(wanted) {
        assert_eq!(seen, wanted, "{what}");
    }
    let behind = seen.get(wanted.len()).map(|event| event.seq);
    assert!(seen.len() <= wanted.len(), "{what}: repeated or invented at {behind:?}");
    let missing = wanted.get(seen.len()).map(|event| event.seq);
    assert!(seen.len() == wanted.len(), "{what}: {} of {} events, {missing:?} is missing", seen.len(), wanted.len());
}
