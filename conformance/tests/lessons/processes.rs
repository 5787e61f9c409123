//! Processes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use kitport::bubblepaw::{Options, Restart};
use kitport::model::{ConnectionStatus, Seq};
use kitport::rpc::HostCommand;
use kitport::{AgentBackend, BubblePaw, ChatReader, KitError, Outcome, StreamLimits};
use kitport_conformance::byte_host::{ByteHost, History, SESSION, event};
use kitport_conformance::procs::{MARK, marked};
use kitport_conformance::{NEVER, assert_rising, durable, eventually, rest, shell_host};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{app, host};

/// A name that no other test has.
fn mark() -> String {
    format!("{}-{}", std::process::id(), fastrand::u64(..))
}

fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    // One that is gone already is as dead as it shall be.
    let _ = kill_process(pid, signal);
}

/// The one process of a test.
async fn only(mark: &str) -> u32 {
    eventually("the host runs", || marked(mark).len() == 1).await;
    marked(mark)[0]
}

async fn nobody_left(mark: &str) {
    eventually("nobody is left", || marked(mark).is_empty()).await;
}

const HOST: &str = env!("CARGO_BIN_EXE_conformance-host");

#[tokio::test]
async fn every_pending_call_and_every_stream_ends_with_the_exit() {
    let mark = mark();
    // No time-out ends them: only the end of the host does.
    let options = Options { call_timeout: None, ..Options::default() };
    let command = host(&["--fault", "hang=2"]).env(MARK, &mark);
    let backend = BubblePaw::spawn(command, options).await.unwrap();
    let chat = backend.create_chat(None).await.unwrap();
    let streams: Vec<_> = (0..5).map(|_| backend.events(&chat.id, None)).collect();
    let watching = backend.watch_all();
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let (backend, chat) = (backend.clone(), chat.id.clone());
            tokio::spawn(async move {
                match n % 2 {
                    0 => backend.rename(&chat, "never").await.unwrap_err(),
                    _ => backend.load_chat(&chat).await.unwrap_err(),
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(calls.iter().filter(|call| !call.is_finished()).count() >= 15, "the host hangs");
    kill(only(&mark).await, Signal::KILL);
    for call in calls {
        let error = tokio::time::timeout(NEVER, call).await.expect("it ends").unwrap();
        assert!(matches!(error, KitError::HostExited { signal: Some(9), .. }), "{error:?}");
        assert_eq!(error.outcome(), Some(Outcome::Unknown));
    }
    for stream in streams.iter().chain([&watching]) {
        let (_, error) = rest(stream).await;
        assert!(matches!(error, Some(KitError::HostExited { signal: Some(9), .. })), "{error:?}");
        assert!(stream.next().await.is_none(), "the error comes once");
    }
    // And so does every later one.
    let later = backend.rename(&chat.id, "later").await.unwrap_err();
    assert_eq!((later.code(), later.outcome()), ("host_exited", Some(Outcome::NotSent)));
    assert_eq!(rest(&backend.events(&chat.id, None)).await.1.unwrap().code(), "host_exited");
    backend.close().await;
}

#[tokio::test]
async fn the_end_of_a_pipe_ends_calls_and_streams_too() {
    let options = Options { call_timeout: None, ..Options::default() };
    let (backend, mut host) = ByteHost::connect(options, &[]).await;
    let stream = backend.events(&"s".into(), None);
    let calling = tokio::spawn({
        let backend = backend.clone();
        async move { backend.list_chats(None, None).await }
    });
    host.request().await.unwrap();
    drop(host);
    assert_eq!(calling.await.unwrap().unwrap_err().code(), "host_exited");
    assert_eq!(rest(&stream).await.1.unwrap().code(), "host_exited");
    backend.close().await;
}

#[tokio::test]
async fn what_was_read_before_the_exit_is_delivered_before_its_error() {
    // A stream that is live, one that reads a page as it has room, and one that still waits for its place.
    for way in ["live", "replaying", "starting"] {
        let options = Options {
            stream_limits: StreamLimits { events: if way == "replaying" { 4 } else { 4096 }, bytes: 1 << 20 },
            ..Options::default()
        };
        let (backend, mut host) = ByteHost::connect(options, &[]).await;
        let after = if way == "starting" { None } else { Some(Seq::START) };
        let events = backend.events(&SESSION.into(), after);
        let mut history = History::default();
        if way == "replaying" {
            (1..=20).for_each(|n| history.push(&event(n, "run_started", json!({}))));
        }
        // The requests of the stream, answered but for the snapshot of the one that needs it.
        let mut place = 20 * u64::from(way == "replaying");
        loop {
            let request = host.request().await.unwrap();
            if way == "starting" {
                break;
            }
            let answer = history.answer(&request.method, &request.params).unwrap();
            host.answer(&request.id, serde_json::from_str(&answer).unwrap()).await;
            if request.method == if way == "live" { "session.state" } else { "events.after" } {
                break;
            }
        }
        for _ in 0..50 {
            place += 1;
            host.event(&event(place, "run_started", json!({}))).await;
        }
        drop(host);
        let (seen, error) = rest(&events).await;
        assert_eq!(error.unwrap().code(), "host_exited", "{way}");
        assert_rising(&seen);
        // A reader with room for four leaves live: what it can't take it would have read from the host.
        let wanted = if way == "replaying" { 20 } else { place };
        assert!(durable(&seen).len() as u64 >= wanted, "{way}: {} of {wanted}", durable(&seen).len());
        backend.close().await;
    }
}

#[tokio::test]
async fn a_wrapper_that_dies_leaves_no_grandchild() {
    let mark = mark();
    // Not by exec: the shell stays the host's parent, as npx and uvx do.
    let command =
        HostCommand::new("sh").args(["-c", "\"$0\" stdio --fault ignore-term; exit 7", HOST]).env(MARK, &mark);
    let backend = BubblePaw::spawn(command, Options::default()).await.unwrap();
    eventually("wrapper and host run", || marked(&mark).len() == 2).await;
    let wrapper = kitport_conformance::procs::children().into_iter().find(|pid| marked(&mark).contains(pid)).unwrap();
    kill(wrapper, Signal::KILL);
    nobody_left(&mark).await;
    let error = backend.list_chats(None, None).await.unwrap_err();
    assert!(matches!(error, KitError::HostExited { signal: Some(9), .. }), "{error:?}");
    backend.close().await;
}

#[tokio::test]
async fn closing_a_wrapper_leaves_no_grandchild() {
    let mark = mark();
    for args in ["", "--fault ignore-term", "--fault grandchild", "--fault grandchild --fault ignore-term"] {
        let script = format!("\"$0\" stdio {args}; exit 7");
        let command = HostCommand::new("sh").args(["-c", &script, HOST]).env(MARK, &mark);
        let options = Options { close_grace: Duration::from_millis(100), ..Options::default() };
        let backend = BubblePaw::spawn(command, options).await.unwrap();
        eventually("wrapper and host run", || marked(&mark).len() >= 2).await;
        tokio::time::timeout(NEVER, backend.close()).await.expect("close doesn't hang");
        assert_eq!(marked(&mark), [0u32; 0], "{args:?}: after close nobody is left");
    }
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_does_not_hold_the_end() {
    let mark = mark();
    let command = host(&["--fault", "grandchild"]).env(MARK, &mark);
    let backend = BubblePaw::spawn(command, Options::default()).await.unwrap();
    let chat = backend.create_chat(None).await.unwrap();
    let events = backend.events(&chat.id, None);
    let _ = backend.send(&chat.id, "crash 5", &[]).await;
    assert!(matches!(rest(&events).await.1, Some(KitError::HostExited { exit_code: Some(5), .. })));
    nobody_left(&mark).await;
    backend.close().await;
}

#[tokio::test]
async fn a_killed_parent_leaves_no_host() {
    for wrapped in [false, true] {
        let mark = mark();
        let args: &[&str] = match wrapped {
            false => &["hold", HOST, "stdio", "--fault", "ignore-term"],
            true => &["hold", "sh", "-c", "\"$0\" stdio; exit 7", HOST],
        };
        let mut app = app().args(args).env(MARK, &mark).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(app.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "started");
        assert_eq!(marked(&mark).len(), if wrapped { 3 } else { 2 });
        app.kill().unwrap();
        app.wait().unwrap();
        nobody_left(&mark).await;
    }
}

#[tokio::test]
async fn close_is_safe_twice_and_from_another_task_and_ends_pending_calls() {
    for args in [&[][..], &["--fault", "ignore-term"], &["--fault", "hang=1"]] {
        let mark = mark();
        let options = Options { call_timeout: None, close_grace: Duration::from_millis(100), ..Options::default() };
        let backend = BubblePaw::spawn(host(args).env(MARK, &mark), options).await.unwrap();
        let events = backend.events(&"s".into(), None);
        let connection = backend.connection();
        let calling = tokio::spawn({
            let backend = backend.clone();
            async move { backend.list_providers().await }
        });
        let closing: Vec<_> = (0..4)
            .map(|_| {
                let backend = backend.clone();
                tokio::spawn(async move { backend.close().await })
            })
            .collect();
        backend.close().await;
        for close in closing {
            tokio::time::timeout(NEVER, close).await.expect("close doesn't hang").unwrap();
        }
        assert_eq!(marked(&mark), [0u32; 0], "{args:?}: after close nobody is left");
        if let Err(error) = calling.await.unwrap() {
            assert_eq!(error.code(), "closed");
        }
        // A stream that was closed has no error, but for a chat that isn't there.
        let (_, error) = rest(&events).await;
        assert!(error.as_ref().is_none_or(|error| error.code() == "not_found"), "{error:?}");
        let mut last = None;
        while let Some(state) = connection.next().await {
            last = Some(state.unwrap());
        }
        assert_eq!(last.unwrap().status, ConnectionStatus::Closed);
        assert_eq!(backend.list_chats(None, None).await.unwrap_err().code(), "closed");
        backend.close().await;
    }
}

#[tokio::test]
async fn close_gives_the_host_time_to_save_before_it_signals() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    // Killed by SIGTERM it would not save: that comes only after the grace.
    let script = format!("cat >/dev/null; sleep 0.4; echo all > {}", saved.display());
    let backend = BubblePaw::spawn(shell_host(&script), Options::default()).await.unwrap();
    backend.close().await;
    assert_eq!(std::fs::read_to_string(&saved).unwrap().trim(), "all");
}

#[tokio::test]
async fn what_was_sent_before_close_is_written_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("host.db");
    let args = ["--db", db.to_str().unwrap()];
    let backend = BubblePaw::spawn(host(&args), Options::default()).await.unwrap();
    let chat = backend.create_chat(Some("before")).await.unwrap();
    backend.rename(&chat.id, "last words").await.unwrap();
    backend.close().await;
    let backend = BubblePaw::spawn(host(&args), Options::default()).await.unwrap();
    assert_eq!(backend.load_chat(&chat.id).await.unwrap().chat.title, "last words");
    backend.close().await;
}

#[tokio::test]
async fn the_end_of_the_runtime_leaves_nothing_and_hangs_nobody() {
    for fault in ["noise", "ignore-term", "hang=1"] {
        let mark = mark();
        let args = ["end-runtime", HOST, "stdio", "--fault", fault];
        let output = app().args(args).env(MARK, &mark).output().unwrap();
        let (told, trouble) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{fault}: {told}{trouble}");
        assert_eq!(told.lines().collect::<Vec<_>>(), ["closed", "ended"], "{fault}: {trouble}");
        assert!(!trouble.contains("panicked"), "{trouble}");
        nobody_left(&mark).await;
    }
}

#[tokio::test]
async fn a_backend_dropped_where_no_runtime_runs_leaves_no_host() {
    let mark = mark();
    let args = ["drop-without-runtime", HOST, "stdio"];
    let output = app().args(args).env(MARK, &mark).output().unwrap();
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !trouble.contains("panicked"), "{trouble}");
    nobody_left(&mark).await;
}

#[tokio::test]
async fn a_dropped_backend_and_a_dropped_start_leave_no_host() {
    let mark = mark();
    let backend = BubblePaw::spawn(host(&[]).env(MARK, &mark), Options::default()).await.unwrap();
    let events = backend.events(&"s".into(), None);
    only(&mark).await;
    drop(backend);
    nobody_left(&mark).await;
    assert!(rest(&events).await.1.is_none_or(|error| error.code() == "not_found"));
    // In the middle of the handshake.
    let starting = BubblePaw::spawn(host(&["--fault", "hang=0"]).env(MARK, &mark), Options::default());
    assert!(tokio::time::timeout(Duration::from_millis(300), starting).await.is_err());
    nobody_left(&mark).await;
}

fn quick_restarts() -> Restart {
    let mut restart = Restart::always();
    let Restart::Always { first_pause, longest_pause } = &mut restart else { unreachable!("it is Always") };
    (*first_pause, *longest_pause) = (Duration::from_millis(1), Duration::from_millis(5));
    restart
}

#[tokio::test]
async fn a_host_that_fails_before_it_is_ready_is_not_respawned_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let count = || std::fs::read_to_string(&starts).unwrap_or_default().lines().count();
    // The first start is well and ends when told to, every later one fails at once.
    let script = format!(
        "echo start >> {0}; if [ $(wc -l < {0}) -gt 1 ]; then echo broken >&2; exit 6; fi; {1}",
        starts.display(),
        r#"read hello; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol_version":"0.1","host":{"name":"sh","version":"1"},"features":[],"workspace":{"path":"/"}}}'; read more; exit 1"#
    );
    let options = Options { restart: quick_restarts(), ..Options::default() };
    let backend = BubblePaw::spawn(HostCommand::new("sh").args(["-c", &script]), options).await.unwrap();
    let events = backend.events(&"s".into(), None);
    let connection = backend.connection();
    // The stream's own request ended the first one.
    let (_, error) = rest(&events).await;
    let Some(KitError::HostExited { exit_code: Some(6), stderr_tail, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(stderr_tail.trim(), "broken");
    assert_eq!(count(), 1 + 3);
    let mut states = Vec::new();
    while let Some(state) = connection.next().await {
        states.push(state.unwrap());
    }
    assert_eq!(states.last().unwrap().status, ConnectionStatus::Closed);
    assert_eq!(states.last().unwrap().reason.as_ref().unwrap().code(), "host_exited");
    assert_eq!(backend.list_chats(None, None).await.unwrap_err().code(), "host_exited");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(count(), 1 + 3, "it is final");
    backend.close().await;
    // The very first start is the caller's to repeat.
    let _ = std::fs::remove_file(&starts);
    let script = format!("echo start >> {}; exit 6", starts.display());
    let options = Options { restart: quick_restarts(), ..Options::default() };
    let error = BubblePaw::spawn(HostCommand::new("sh").args(["-c", &script]), options).await.unwrap_err();
    assert_eq!((error.code(), count()), ("host_exited", 1));
}

/// While a host is started anew commands fail and nothing of them is kept for it; it may come back with less.
#[tokio::test]
async fn a_host_that_comes_back_gets_nothing_again_and_may_offer_less() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let hello = |features: &str| {
        format!(
            r#"read hello; echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocol_version":"0.1","host":{{"name":"sh","version":"1"}},"features":[{features}],"workspace":{{"path":"/"}}}}}}'"#
        )
    };
    // The first one ends with the first command unanswered; the second waits until it is let, then notes what it is told.
    let script = format!(
        "if [ ! -e {0} ]; then touch {0}; {1}; read command; exit 1; fi; while [ ! -e {2} ]; do sleep 0.02; done; {3}; cat > {4}",
        path("first"),
        hello(r#""steer""#),
        path("let"),
        hello(""),
        path("told"),
    );
    let options = Options { restart: quick_restarts(), ..Options::default() };
    let backend = BubblePaw::spawn(HostCommand::new("sh").args(["-c", &script]), options).await.unwrap();
    let states = backend.connection();
    assert!(backend.capabilities().steer);
    let chat = "s".into();
    let error = backend.steer(&chat, "Once").await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("host_exited", Some(Outcome::Unknown)));
    while states.next().await.unwrap().unwrap().status != ConnectionStatus::Restarting {}
    let error = backend.send(&chat, "Meanwhile", &[]).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("host_exited", Some(Outcome::NotSent)));
    std::fs::write(path("let"), "").unwrap();
    while states.next().await.unwrap().unwrap().status != ConnectionStatus::Connected {}
    assert!(!backend.capabilities().steer);
    let error = backend.steer(&chat, "Again").await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), ("unsupported", Some(Outcome::NotSent)));
    backend.close().await;
    assert_eq!(std::fs::read_to_string(path("told")).unwrap(), "", "nothing is sent again by itself");
}

#[tokio::test]
async fn close_during_restarts_ends_them() {
    let mark = mark();
    // The second start hangs before the handshake.
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let script = format!(
        "if [ -e {0} ]; then exec sleep 600; fi; touch {0}; {1}",
        flag.display(),
        r#"read hello; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol_version":"0.1","host":{"name":"sh","version":"1"},"features":[],"workspace":{"path":"/"}}}'; exit 1"#
    );
    let options = Options { restart: quick_restarts(), ..Options::default() };
    let command = HostCommand::new("sh").args(["-c", &script]).env(MARK, &mark);
    let backend = BubblePaw::spawn(command, options).await.unwrap();
    let events = backend.events(&"s".into(), None);
    let connection = backend.connection();
    while connection.next().await.unwrap().unwrap().status != ConnectionStatus::Restarting {}
    eventually("the next host is started", || !marked(&mark).is_empty()).await;
    backend.close().await;
    nobody_left(&mark).await;
    let (_, error) = rest(&events).await;
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn env_adds_to_the_environment_unless_told_to_replace_it() {
    let check = "[ \"$KITPORT_ADDED\" = yes ] || exit 3; [ -n \"$HOME\" ] || exit 4; exit 5";
    let exit = async |command: HostCommand| match BubblePaw::spawn(command, Options::default()).await.unwrap_err() {
        KitError::HostExited { exit_code, .. } => exit_code.unwrap(),
        other => panic!("{other:?}"),
    };
    let command = HostCommand::new("/bin/sh").args(["-c", check]);
    assert_eq!(exit(command.clone()).await, 3);
    assert_eq!(exit(command.clone().env("KITPORT_ADDED", "yes")).await, 5);
    assert_eq!(exit(command.clone().env("KITPORT_ADDED", "yes").env_clear(true)).await, 4);
    assert_eq!(exit(command.env_clear(true)).await, 3);
}

#[tokio::test]
async fn a_missing_folder_a_missing_program_and_one_that_cannot_run_are_three_messages() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "just text").unwrap();
    let error = async |code: &str, command: HostCommand| {
        let error = BubblePaw::spawn(command, Options::default()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (code, Some(Outcome::NotSent)));
        error.message().to_owned()
    };
    let no_folder = error("not_found", host(&[]).cwd("/no/such/folder")).await;
    let no_program = error("not_found", HostCommand::new("/no/such/program")).await;
    let no_run_bit = error("denied", HostCommand::new(&plain)).await;
    assert!(no_folder.contains("/no/such/folder") && no_folder.contains("folder"), "{no_folder}");
    assert!(no_program.contains("/no/such/program"), "{no_program}");
    assert!(no_run_bit.contains(plain.to_str().unwrap()), "{no_run_bit}");
    let shapes: std::collections::HashSet<String> = [
        no_folder.replace("/no/such/folder", ""),
        no_program.replace("/no/such/program", ""),
        no_run_bit.replace(plain.to_str().unwrap(), ""),
    ]
    .into();
    assert_eq!(shapes.len(), 3, "{shapes:?}");
    // Both are missing: the folder is looked at first, and never is the program blamed for it.
    let both = error("not_found", HostCommand::new("no-such").cwd("/no/such/folder")).await;
    assert!(both.contains("/no/such/folder"), "{both}");
}

#[test]
fn electron_run_as_node_does_not_leak_to_the_child() {
    let run = |args: &[&str]| {
        let mut app = app();
        app.env("ELECTRON_RUN_AS_NODE", "1").env("KITPORT_OTHER", "1").arg("start").args(args);
        String::from_utf8(app.output().unwrap().stdout).unwrap()
    };
    let told =
        run(&["sh", "-c", "[ -z \"$ELECTRON_RUN_AS_NODE\" ] || exit 3; [ -n \"$KITPORT_OTHER\" ] || exit 4; exit 5"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((told["code"].as_str(), told["exitCode"].as_i64()), (Some("host_exited"), Some(5)), "{told}");
}

#[tokio::test]
async fn the_error_for_a_missing_program_names_the_path_that_was_searched() {
    let command = HostCommand::new("no-such-host").env("PATH", "/usr/bin:/opt/short");
    let error = BubblePaw::spawn(command, Options::default()).await.unwrap_err();
    assert!(error.message().contains("no-such-host") && error.message().contains("/usr/bin:/opt/short"), "{error}");
    // The inherited one, where the command sets none.
    let error = BubblePaw::spawn(HostCommand::new("no-such-host"), Options::default()).await.unwrap_err();
    assert!(error.message().contains(&std::env::var("PATH").unwrap()), "{error}");
}
