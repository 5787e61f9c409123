//! An app in a process of its own, for tests that kill it, end it in the middle, or measure its memory.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use cap::Cap;
use kitport::bubblepaw::Options;
use kitport::model::{EventKind, Seq};
use kitport::rpc::HostCommand;
use kitport::{BubblePaw, ChatReader};
use kitport_conformance::byte_host::{ByteHost, History, SESSION, event, event_line, transient};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["start", program, args @ ..] => start(program, args),
        ["hold", program, args @ ..] => hold(program, args),
        ["end-runtime", program, args @ ..] => end_runtime(program, args),
        ["drop-without-runtime", program, args @ ..] => drop_without_runtime(program, args),
        ["measure", work, count] => measure(work, count.parse().expect("a count is a number")),
        _ => {
            eprintln!("start|hold|end-runtime|drop-without-runtime PROGRAM ARGS… | measure WORK COUNT");
            ExitCode::from(2)
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts")
}

fn command(program: &str, args: &[&str]) -> HostCommand {
    HostCommand::new(program).args(args)
}

/// Starts a host, tells how that went, and closes it.
fn start(program: &str, args: &[&str]) -> ExitCode {
    runtime().block_on(async {
        match BubblePaw::spawn(command(program, args), Options::default()).await {
            Ok(backend) => {
                println!("started");
                backend.close().await;
            }
            Err(error) => println!("{}", serde_json::to_string(&error).expect("an error has a JSON form")),
        }
    });
    ExitCode::SUCCESS
}

/// Starts a host, says so, and waits to be killed.
fn hold(program: &str, args: &[&str]) -> ExitCode {
    runtime().block_on(async {
        let backend = BubblePaw::spawn(command(program, args), Options::default()).await.expect("the host starts");
        println!("started");
        let () = std::future::pending().await;
        drop(backend);
    });
    ExitCode::SUCCESS
}

/// Ends the runtime under a backend that is in use, with streams that were just begun.
fn end_runtime(program: &str, args: &[&str]) -> ExitCode {
    let runtime = runtime();
    let (backend, events) = runtime.block_on(async {
        let backend = BubblePaw::spawn(command(program, args), Options::default()).await.expect("the host starts");
        let events = backend.events(&SESSION.into(), None);
        let connection = backend.connection();
        let calling = backend.clone();
        tokio::spawn(async move { calling.list_chats(None, None).await });
        (backend, (events, connection))
    });
    drop(runtime);
    // What is left is used from a runtime of its own: it must fail or end, not hang and not panic.
    let other = self::runtime();
    other.block_on(async {
        let error = backend.list_chats(None, None).await.expect_err("nothing is left to answer");
        println!("{}", error.code());
        let (events, connection) = events;
        for events in [events, backend.events(&SESSION.into(), None), backend.watch_all()] {
            while events.next().await.is_some_and(|event| event.is_ok()) {}
        }
        while connection.next().await.is_some() {}
        while backend.created_chats().next().await.is_some() {}
        backend.close().await;
    });
    println!("ended");
    ExitCode::SUCCESS
}

/// Drops a backend where no runtime runs.
fn drop_without_runtime(program: &str, args: &[&str]) -> ExitCode {
    let runtime = runtime();
    let started = BubblePaw::spawn(command(program, args), Options::default());
    let backend = runtime.block_on(started).expect("the host starts");
    let events = backend.events(&SESSION.into(), None);
    drop(backend);
    drop(events);
    println!("dropped");
    // The runtime lives on: the host is ended in the background.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    ExitCode::SUCCESS
}

/// Tells how many bytes a piece of work took.
fn measure(work: &str, count: u64) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let options = Options { line_limit: LINE_LIMIT_BYTES, call_timeout: None, ..Options::default() };
        match work {
            "oversize-line" => oversize_line(count).await,
            "snapshot" => snapshot(count, options).await,
            "replay" => replay(count, options).await,
            "deltas" => deltas(count, options).await,
            "streams" => streams(count, options).await,
            other => panic!("there is no work {other}"),
        }
    });
    ExitCode::SUCCESS
}

/// A snapshot of 100,000 messages is one line.
const LINE_LIMIT_BYTES: usize = 256 * 1024 * 1024;

/// What is allocated now.
struct Since {
    allocated: usize,
    total: usize,
}

impl Since {
    fn now() -> Since {
        Since { allocated: ALLOCATOR.allocated(), total: ALLOCATOR.total_allocated() }
    }

    fn tell(&self) {
        let allocated = ALLOCATOR.total_allocated() - self.total;
        let peak = ALLOCATOR.max_allocated().saturating_sub(self.allocated);
        let left = ALLOCATOR.allocated().saturating_sub(self.allocated);
        println!("{}", json!({"allocated": allocated, "peak": peak, "left": left}));
    }
}

/// One line of that many MiB, above the limit of one.
async fn oversize_line(mib: u64) {
    let options = Options { line_limit: 1024 * 1024, ..Options::default() };
    let (backend, mut host) = ByteHost::connect(options, &[]).await;
    let piece = vec![b'x'; 64 * 1024];
    let since = Since::now();
    host.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":\"").await;
    for _ in 0..mib * 16 {
        host.write(&piece).await;
    }
    host.write(b"\"}\n").await;
    let asked = backend.list_chats(None, None);
    let answered = async {
        let request = host.request().await.expect("the connection lives on");
        host.answer(&request.id, json!({"sessions": []})).await;
    };
    let (asked, ()) = tokio::join!(asked, answered);
    asked.expect("the connection lives on");
    assert_eq!(backend.counters().oversize, 1);
    since.tell();
}

/// A snapshot of that many messages.
async fn snapshot(messages: u64, options: Options) {
    let (backend, host) = ByteHost::connect(options, &[]).await;
    let mut list = String::from("[");
    for n in 0..messages {
        let comma = if n == 0 { "" } else { "," };
        list.push_str(&format!(
            "{comma}{{\"message_id\":\"m{n}\",\"role\":\"assistant\",\"text\":\"The reply with number {n}.\"}}"
        ));
    }
    list.push(']');
    let history = History { messages: Some(list), ..History::default() };
    let _host = host.serve(Arc::new(Mutex::new(history)));
    let since = Since::now();
    let snapshot = backend.load_chat(&SESSION.into()).await.expect("the snapshot loads");
    assert_eq!(snapshot.items.len() as u64, messages);
    since.tell();
}

/// A replay of that many events.
async fn replay(count: u64, options: Options) {
    let (backend, host) = ByteHost::connect(options, &[]).await;
    let mut history = History::default();
    history.events.reserve(count as usize);
    for n in 1..=count {
        let data = if n % 2 == 1 {
            json!({"call": {"call_id": format!("c{n}"), "name": "read_file", "arguments": {"path": "notes.md"}}})
        } else {
            json!({"call_id": format!("c{}", n - 1), "result": {"lines": 3}})
        };
        history.push(&event(n, if n % 2 == 1 { "tool_started" } else { "tool_finished" }, data));
    }
    let _host = host.serve(Arc::new(Mutex::new(history)));
    let since = Since::now();
    let events = backend.events(&SESSION.into(), Some(Seq::START));
    let (mut seen, mut last) = (0, Seq::START);
    while seen < count {
        for event in events.next_batch(1000).await.expect("the replay goes on") {
            if event.durable {
                assert!(event.seq > last, "{:?} after {last:?}", event.seq);
                last = event.seq;
                seen += 1;
            }
        }
    }
    since.tell();
}

/// A text of that many deltas.
async fn deltas(count: u64, options: Options) {
    let (backend, host) = ByteHost::connect(options, &[]).await;
    let history = Arc::new(Mutex::new(History::default()));
    let host_side = host.serve(history.clone());
    let events = backend.events(&SESSION.into(), Some(Seq::START));
    let start = event(1, "run_started", json!({}));
    history.lock().expect("nothing panics here").push(&start);
    host_side.event(&start);
    host_side.event(&transient(1, "model_request", json!({})));
    let piece = event_line(&transient(1, "text_delta", json!({"text": "word "})));
    let since = Since::now();
    let (mut sent, mut units) = (0, 0);
    while units < count * 5 {
        for _ in 0..(count - sent).min(500) {
            host_side.write(piece.clone());
            sent += 1;
        }
        for event in events.next_batch(4096).await.expect("the stream goes on") {
            if let EventKind::MessageDelta(delta) = &event.kind {
                assert_eq!(delta.offset, units, "no piece is missing");
                units += delta.text.len() as u64;
            }
        }
    }
    since.tell();
}

/// That many streams, opened and closed at any stage of theirs.
async fn streams(count: u64, options: Options) {
    let (backend, host) = ByteHost::connect(options, &[]).await;
    let mut history = History::default();
    (1..=200).for_each(|n| history.push(&event(n, "tool_finished", json!({"call_id": "c", "result": n}))));
    let _host = host.serve(Arc::new(Mutex::new(history)));
    // A reader that stays, and the first of each kind: what is made once is made before.
    let stays = backend.events(&SESSION.into(), Some(Seq::START));
    open_and_close(&backend, 50).await;
    #[cfg(target_os = "linux")]
    let before = (kitport_conformance::procs::threads(), kitport_conformance::procs::descriptors());
    let since = Since::now();
    open_and_close(&backend, count).await;
    #[cfg(target_os = "linux")]
    assert_eq!((kitport_conformance::procs::threads(), kitport_conformance::procs::descriptors()), before);
    let mut seen = 0;
    while seen < 200 {
        let batch = stays.next_batch(999).await.expect("it goes on");
        seen += batch.iter().filter(|event| event.durable).count();
    }
    since.tell();
}

async fn open_and_close(backend: &BubblePaw, count: u64) {
    for n in 0..count {
        let after = [None, Some(Seq::START), Some(Seq(100 * 16)), Some(Seq(u64::MAX))][(n % 4) as usize];
        let events = backend.events(&SESSION.into(), after);
        match n % 5 {
            // At once, in the middle of its replay, and behind it.
            0 => events.close(),
            1 => drop(tokio::time::timeout(std::time::Duration::from_millis(2), events.next()).await),
            2 => drop(tokio::time::timeout(std::time::Duration::from_micros(100), events.next_batch(500)).await),
            3 => {
                tokio::task::yield_now().await;
                drop(events.take(3));
            }
            _ => drop(events),
        }
    }
    // The task of the chat drops what was closed when it runs the next time.
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
