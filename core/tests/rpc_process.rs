//! The engine over a child process: start, pipes, and that nothing is ever left behind.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod rpc_support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kitport::rpc::{
    Client, ClientOptions, Direction, Ended, ExitReport, HostCommand, Patience, Recorded, Recorder, Recording,
    RpcError, STDERR_TAIL_BYTES, SpawnError, Timeout,
};
use rpc_support::{Events, HANG, Inbox, Seen, eventually, lives, options, soon};
use serde_json::{Value, json};

/// A host in shell: answers each request with what the words in `$answer` print.
const SERVE: &str = r#"
serve() {
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%,*}
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(eval "$answer")"
    done
}
"#;

fn sh(script: &str) -> HostCommand {
    HostCommand::new("sh").arg("-c").arg(format!("{SERVE}\n{script}"))
}

async fn spawn_with(command: &HostCommand, inbox: Inbox, options: ClientOptions) -> Client {
    soon(Client::spawn::<Events>(command, inbox, options)).await.unwrap()
}

async fn spawn(command: &HostCommand) -> (Client, Inbox) {
    let inbox = Inbox::new();
    (spawn_with(command, inbox.clone(), options()).await, inbox)
}

async fn start_error(command: &HostCommand) -> SpawnError {
    soon(Client::spawn::<Events>(command, Inbox::new(), options())).await.expect_err("it can't start")
}

async fn ask(client: &Client) -> Value {
    soon(client.call_as("ask", &json!({}), Timeout::Never)).await.unwrap()
}

/// The pid that a script printed as an event.
async fn printed_pid(inbox: &Inbox) -> u32 {
    let seen = inbox.wait_count(1).await;
    match &seen[0] {
        Seen::Event(event) => u32::try_from(event.n).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Words of shell that print `pid` as an event.
fn print_pid(pid: &str) -> String {
    format!(r#"printf '{{"method":"event","params":{{"n":%s}}}}\n' {pid}"#)
}

fn short() -> ClientOptions {
    let mut options = options();
    options.patience = Patience::new(Duration::from_millis(100), Duration::from_millis(100));
    options
}

fn exited(ended: &Ended) -> &ExitReport {
    match ended {
        Ended::Exited(report) => report,
        other => panic!("{other:?}"),
    }
}

async fn is_gone(pid: u32) {
    eventually("the process is gone", || !lives(pid)).await;
}

fn program(folder: &Path, text: &str, mode: u32) -> std::path::PathBuf {
    let path = folder.join("host-program");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[tokio::test]
async fn a_host_answers_and_ends_with_its_input() {
    let (client, inbox) = spawn(&sh("answer='echo 42'; serve")).await;
    assert_eq!(ask(&client).await, json!(42));
    assert_eq!(ask(&client).await, json!(42));
    let pid = client.pid().unwrap();
    assert!(lives(pid));
    soon(client.close()).await;
    assert!(!lives(pid));
    assert_eq!(inbox.seen(), [Seen::Ended(Ended::Closed)]);
}

#[tokio::test]
async fn a_host_that_exits_at_once_is_a_typed_error_with_its_code_and_last_words() {
    for round in 0..20 {
        let (client, inbox) = spawn(&sh("echo 'no licence' >&2; exit 3")).await;
        // Written before or after the exit: both must tell the same.
        if round % 2 == 0 {
            inbox.wait_end().await;
        }
        let error = soon(client.call("m", &json!({}), Timeout::Never)).await.unwrap_err();
        match &error {
            RpcError::Ended { end, .. } => {
                assert_eq!((end.exit_code, end.signal), (Some(3), None));
                assert_eq!(end.stderr_tail, "no licence");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(error.to_string(), "the host ended with exit code 3");
        inbox.wait_end().await;
        assert_eq!(inbox.ends().len(), 1);
    }
}

#[tokio::test]
async fn a_host_that_is_killed_fails_every_call_with_the_signal_after_what_was_read() {
    let (client, inbox) = spawn(&sh(&format!("{}; cat > /dev/null", print_pid("$$")))).await;
    let calls: Vec<_> = (0..5).map(|_| tokio::spawn(client.call("m", &json!({}), Timeout::Never))).collect();
    let pid = printed_pid(&inbox).await;
    eventually("they wait", || client.calls_waiting() == 5).await;
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    for call in calls {
        let error = soon(call).await.unwrap().unwrap_err();
        assert!(matches!(&error, RpcError::Ended { end, sent: true } if end.signal == Some(9)), "{error:?}");
    }
    let seen = inbox.wait(|seen| seen.len() == 2).await;
    assert!(matches!(seen[0], Seen::Event(_)) && matches!(seen[1], Seen::Ended(_)));
}

#[tokio::test]
async fn what_a_host_wrote_before_it_exited_is_handed_out_before_the_end() {
    let mut inbox = Inbox::new();
    inbox.slow = Some(Duration::from_millis(20));
    let script = r#"i=0; while [ $i -lt 3000 ]; do printf '{"method":"event","params":{"n":%s,"text":"some words to fill the pipe"}}\n' $i; i=$((i+1)); done; exit 4"#;
    let _client = spawn_with(&sh(script), inbox.clone(), options()).await;
    let ended = inbox.wait_end().await;
    assert_eq!(exited(&ended).exit_code, Some(4));
    assert!(inbox.events().iter().map(|event| event.n).eq(0..3000));
}

#[tokio::test]
async fn a_missing_program_names_it_and_the_path_that_was_searched() {
    let error = start_error(&HostCommand::new("no-such-host").env("PATH", "/short/path")).await;
    let searched = Some("/short/path".to_owned());
    assert_eq!(error, SpawnError::MissingProgram { program: "no-such-host".into(), searched });
    let message = error.to_string();
    assert!(message.contains("no-such-host") && message.contains("/short/path"), "{message}");
    let own = std::env::var("PATH").unwrap();
    assert!(start_error(&HostCommand::new("no-such-host")).await.to_string().contains(&own));
    let error = start_error(&HostCommand::new("/no/such/host")).await;
    assert_eq!(error, SpawnError::MissingProgram { program: "/no/such/host".into(), searched: None });
}

#[tokio::test]
async fn a_missing_folder_is_not_a_missing_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(folder.path(), "", 0o644);
    for missing in [folder.path().join("nowhere"), file] {
        let error = start_error(&HostCommand::new("sh").cwd(&missing)).await;
        assert_eq!(error, SpawnError::MissingFolder { folder: missing.clone() });
        assert!(error.to_string().contains(missing.to_str().unwrap()));
    }
}

#[tokio::test]
async fn a_program_that_can_not_run_is_neither() {
    let folder = tempfile::tempdir().unwrap();
    let path = program(folder.path(), "#!/bin/sh\n", 0o644);
    assert_eq!(start_error(&HostCommand::new(&path)).await, SpawnError::NotExecutable { program: path.clone() });
    let bare = HostCommand::new("host-program").env("PATH", folder.path());
    assert_eq!(start_error(&bare).await, SpawnError::NotExecutable { program: "host-program".into() });
    let path = program(folder.path(), "#!/no/such/interpreter\n", 0o755);
    let mut error = start_error(&HostCommand::new(&path)).await;
    while matches!(error, SpawnError::Other { kind: std::io::ErrorKind::ExecutableFileBusy, .. }) {
        // A child that another test just forked still had the file open for writing.
        error = start_error(&HostCommand::new(&path)).await;
    }
    assert_eq!(error, SpawnError::MissingInterpreter { program: path.clone() });
    let messages = [
        SpawnError::NotExecutable { program: path.clone() }.to_string(),
        SpawnError::MissingInterpreter { program: path.clone() }.to_string(),
        SpawnError::MissingProgram { program: path.clone(), searched: None }.to_string(),
        SpawnError::MissingFolder { folder: path }.to_string(),
    ];
    assert!(messages.iter().collect::<std::collections::HashSet<_>>().len() == messages.len());
}

#[tokio::test]
async fn the_environment_is_added_to_unless_it_is_cleared() {
    let show = r#"answer='printf "\"%s %s\"" "${KIT_TEST-none}" "${HOME-none}"'; serve"#;
    let home = std::env::var("HOME").unwrap();
    let (client, _) = spawn(&sh(show).env("KIT_TEST", "added")).await;
    assert_eq!(ask(&client).await, json!(format!("added {home}")));
    let path = std::env::var("PATH").unwrap();
    let (client, _) = spawn(&sh(show).env("KIT_TEST", "only").env("PATH", path).env_clear(true)).await;
    assert_eq!(ask(&client).await, json!("only none"));
}

#[tokio::test]
async fn the_working_folder_is_the_host_s() {
    let folder = tempfile::tempdir().unwrap();
    let (client, _) = spawn(&sh(r#"answer='printf "\"%s\"" "$(pwd -P)"'; serve"#).cwd(folder.path())).await;
    assert_eq!(ask(&client).await, json!(folder.path().canonicalize().unwrap()));
}

/// Runs one test of this program in a process of its own, with `variable` set: the test then plays another part.
fn play(test: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, value);
    command
}

#[tokio::test]
async fn electron_run_as_node_does_not_leak_to_the_host() {
    let show = sh(r#"answer='printf "\"%s\"" "${ELECTRON_RUN_AS_NODE-unset}"'; serve"#);
    if std::env::var_os("ELECTRON_RUN_AS_NODE").is_some() {
        assert_eq!(ask(&spawn(&show).await.0).await, json!("unset"));
        let explicit = show.env("ELECTRON_RUN_AS_NODE", "1");
        assert_eq!(ask(&spawn(&explicit).await.0).await, json!("1"));
        println!("played");
        return;
    }
    let played = play("electron_run_as_node_does_not_leak_to_the_host", "ELECTRON_RUN_AS_NODE", "1").output().unwrap();
    assert!(played.status.success() && String::from_utf8_lossy(&played.stdout).contains("played"), "{played:?}");
}

#[tokio::test]
async fn a_killed_parent_leaves_no_host() {
    const PART: &str = "KITPORT_TEST_KILLED_PARENT";
    if let Some(file) = std::env::var_os(PART) {
        // The host reads nothing, so the end of its input alone would not end it.
        let (client, _) = spawn(&HostCommand::new("sleep").arg("1000")).await;
        std::fs::write(file, client.pid().unwrap().to_string()).unwrap();
        std::future::pending::<()>().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut parent =
        play("a_killed_parent_leaves_no_host", PART, file.to_str().unwrap()).stdout(Stdio::null()).spawn().unwrap();
    let mut pid = None;
    eventually("the host has started", || {
        pid = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok());
        pid.is_some()
    })
    .await;
    let pid = pid.unwrap();
    assert!(lives(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    is_gone(pid).await;
}

#[tokio::test]
async fn a_host_outlives_the_task_and_the_thread_that_asked_for_it() {
    // The signal of a dying parent is bound to a thread; it must not be one that comes and goes.
    let handle = tokio::runtime::Handle::current();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let command = sh("answer='echo 1'; serve");
        drop(sender.send(handle.block_on(async { spawn(&command).await.0 })));
    })
    .join()
    .unwrap();
    let client = receiver.await.unwrap();
    assert_eq!(ask(&client).await, json!(1));
}

#[tokio::test]
async fn a_wrapper_that_dies_leaves_no_grandchild() {
    for end in ["exit 5", "kill -9 $$"] {
        let (_client, inbox) = spawn(&sh(&format!("sleep 1000 & {}; {end}", print_pid("$!")))).await;
        let grandchild = printed_pid(&inbox).await;
        let ended = inbox.wait_end().await;
        let report = exited(&ended);
        assert!(report.exit_code == Some(5) || report.signal == Some(9), "{report:?}");
        is_gone(grandchild).await;
    }
}

#[tokio::test]
async fn a_stranger_that_holds_the_pipes_does_not_hold_the_end() {
    // It left the group, so it is not ours to kill; it must not keep the connection either.
    let (client, inbox) = spawn(&sh(&format!("setsid sleep 1000 & {}; exit 6", print_pid("$!")))).await;
    let stranger = printed_pid(&inbox).await;
    let ended = inbox.wait_end().await;
    assert_eq!(exited(&ended).exit_code, Some(6));
    soon(client.close()).await;
    let _ = Command::new("kill").args(["-9", &stranger.to_string()]).status();
}

#[tokio::test]
async fn close_gives_the_host_time_to_save() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    let script = "trap 'exit 9' TERM; answer='echo 1'; serve; sleep 0.3; echo saved > \"$SAVED\"";
    let (client, _) = spawn(&sh(script).env("SAVED", &saved)).await;
    ask(&client).await;
    soon(client.close()).await;
    assert_eq!(std::fs::read_to_string(saved).unwrap(), "saved\n");
}

#[tokio::test]
async fn close_asks_a_host_that_ignores_the_end_of_its_input_and_kills_one_that_ignores_that_too() {
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let asks = "trap 'echo asked > \"$ASKED\"; exit 0' TERM; ";
    let script = format!("{asks}{}; while :; do sleep 0.01; done", print_pid("$$"));
    let inbox = Inbox::new();
    let client = spawn_with(&sh(&script).env("ASKED", &asked), inbox.clone(), short()).await;
    let pid = printed_pid(&inbox).await;
    soon(client.close()).await;
    assert!(!lives(pid));
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");

    let inbox = Inbox::new();
    let script = format!("trap '' TERM; {}; while :; do sleep 1000; done", print_pid("$$"));
    let client = spawn_with(&sh(&script), inbox.clone(), short()).await;
    let pid = printed_pid(&inbox).await;
    let closing: Vec<_> = (0..3)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.close().await })
        })
        .collect();
    for closing in closing {
        soon(closing).await.unwrap();
    }
    soon(client.close()).await;
    assert!(!lives(pid));
    assert_eq!(inbox.ends(), [Ended::Closed]);
}

#[tokio::test]
async fn dropping_the_client_ends_the_host_in_the_background() {
    let inbox = Inbox::new();
    let script = format!("trap '' TERM; {}; while :; do sleep 1000; done", print_pid("$$"));
    let client = spawn_with(&sh(&script), inbox.clone(), short()).await;
    let pid = printed_pid(&inbox).await;
    drop(client);
    is_gone(pid).await;
    assert_eq!(inbox.wait_end().await, Ended::Closed);
}

#[test]
fn a_runtime_that_ends_ends_the_host() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
    let inbox = Inbox::new();
    let script = format!("trap '' TERM; {}; while :; do sleep 1000; done", print_pid("$$"));
    let (client, pid) = runtime.block_on(async {
        let client = spawn_with(&sh(&script), inbox.clone(), short()).await;
        (client, printed_pid(&inbox).await)
    });
    runtime.shutdown_timeout(HANG);
    assert_eq!(inbox.ends(), [Ended::Closed]);
    let other = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    other.block_on(is_gone(pid));
    other.block_on(soon(client.close()));
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_any_more_leaves_no_host() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let command = sh("echo $$ > \"$FILE\"; exec sleep 1000").env("FILE", &file);
    {
        let starting = Client::spawn::<Events>(&command, Inbox::new(), short());
        let mut starting = std::pin::pin!(starting);
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(starting.as_mut().poll(cx).is_pending())).await;
        assert!(polled);
    }
    let mut pid = None;
    eventually("the host has started", || {
        pid = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    })
    .await;
    is_gone(pid.unwrap()).await;
}

#[tokio::test]
async fn a_host_that_closes_its_output_and_stays_is_ended() {
    let inbox = Inbox::new();
    let script = format!("{}; exec >&-; exec sleep 1000", print_pid("$$"));
    let client = spawn_with(&sh(&script), inbox.clone(), short()).await;
    let pid = printed_pid(&inbox).await;
    let ended = inbox.wait_end().await;
    assert_eq!((exited(&ended).exit_code, exited(&ended).signal), (None, None));
    is_gone(pid).await;
    soon(client.close()).await;
}

#[tokio::test]
async fn a_host_that_closes_its_input_and_stays_is_ended() {
    let inbox = Inbox::new();
    let script = format!("exec <&-; {}; exec sleep 1000", print_pid("$$"));
    let client = spawn_with(&sh(&script), inbox.clone(), short()).await;
    let pid = printed_pid(&inbox).await;
    let error = soon(client.call("m", &json!({}), Timeout::Never)).await.unwrap_err();
    assert!(matches!(error, RpcError::Ended { sent: false, .. }), "{error:?}");
    is_gone(pid).await;
}

#[tokio::test]
async fn stderr_is_drained_whatever_comes() {
    let script =
        "yes 'a line of the log, and it says nothing' | head -c 100000000 >&2; echo done >&2; answer='echo 1'; serve";
    let (client, inbox) = spawn(&sh(script)).await;
    assert_eq!(ask(&client).await, json!(1));
    assert!(Command::new("kill").args(["-9", &client.pid().unwrap().to_string()]).status().unwrap().success());
    let ended = inbox.wait_end().await;
    let tail = &exited(&ended).stderr_tail;
    assert!(tail.len() <= STDERR_TAIL_BYTES && tail.starts_with("a line") && tail.ends_with("done"), "{tail}");
}

#[tokio::test]
async fn the_stderr_tail_shows_no_secret() {
    let script = r#"printf 'key sk-%s\nown %s\nAuthorization: Bearer abc\nat /home/somebody/x\n' "$PART" "$MY_TOKEN" >&2; exit 1"#;
    let command = sh(script).env("PART", "0123456789abcdefghij").env("MY_TOKEN", "just some words");
    let (_client, inbox) = spawn(&command).await;
    let ended = inbox.wait_end().await;
    assert_eq!(exited(&ended).stderr_tail, "key ***\nown ***\nAuthorization: Bearer ***\nat /home/***/x");
}

/// Whole lines, at most 4 KiB, each kind of secret masked, this user's own home directory among them.
#[tokio::test]
async fn the_stderr_tail_is_bounded_whole_lines_with_every_kind_of_secret_masked() {
    let script = r#"i=0; while [ $i -lt 2000 ]; do echo "line $i of many"; i=$((i+1)); done >&2
        printf '%s\n' "X_SECRET=hush" 'basic aHVzaDpodXNo99' 'https://hush:hush@example.com/' "-----BEGIN PRIVATE$NOTHING KEY-----" \
            hush "-----END PRIVATE$NOTHING KEY-----" "$HOME/x" /Users/hush/y 'C:\Users\hush\z' >&2; printf 'cut \342\202' >&2; exit 1"#;
    let (_client, inbox) = spawn(&sh(script)).await;
    let ended = inbox.wait_end().await;
    let tail = exited(&ended).stderr_tail.clone();
    assert!(tail.len() <= kitport::rpc::STDERR_TAIL_BYTES, "{}", tail.len());
    assert!(!tail.contains("hush") && !tail.contains(&std::env::var("HOME").unwrap()), "{tail}");
    let masked = "X_SECRET=***\nbasic ***\nhttps://***@example.com/\n\
        -----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----\n~/x\n/Users/***/y\nC:\\Users\\***\\z\ncut \u{fffd}";
    let (before, last) = tail.split_at(tail.find("X_SECRET").unwrap());
    assert_eq!(last, masked);
    assert!(before.lines().all(|line| line.starts_with("line ") && line.ends_with(" of many")), "{before}");
    assert!(before.ends_with("line 1999 of many\n"));
}

#[tokio::test]
async fn large_lines_pass_through_real_pipes_in_both_directions() {
    let (client, inbox) = spawn(&HostCommand::new("cat")).await;
    // What it echoes is a request of the host to us, and our refusal is an answer to nobody.
    let text = "a€".repeat(2 * 1024 * 1024);
    let calling = tokio::spawn(client.call("m", &json!({"text": text}), Timeout::Never));
    eventually("it came back", || client.counters().unknown_ids >= 1 || client.calls_waiting() == 0).await;
    // The refusal carries the call's own id, so the call is answered by it.
    let error = soon(calling).await.unwrap().unwrap_err();
    assert_eq!(error.rpc_code(), Some(-32601));
    assert_eq!(client.counters().host_requests, 1);
    soon(client.close()).await;
    assert_eq!(inbox.ends(), [Ended::Closed]);
}

#[tokio::test]
async fn both_directions_and_stderr_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let mut options = options();
    options.recorder = Some(Recorder::to_file(&path).unwrap());
    options.line_limit_bytes = 1000;
    let script = r#"echo 'API_KEY=hush' >&2; echo noise; head -c 2000 /dev/zero | tr '\0' x; echo; answer='echo "\"$MY_TOKEN\""'; serve"#;
    let client = spawn_with(&sh(script).env("MY_TOKEN", "hush hush"), Inbox::new(), options).await;
    assert_eq!(ask(&client).await, json!("hush hush"));
    soon(client.close()).await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hush"), "{text}");
    let recording = Recording::read(&path).unwrap();
    assert_eq!(recording.header().program.as_deref(), Some("sh"));
    let lines: Vec<Recorded> = recording.map(Result::unwrap).collect();
    let of = |dir| lines.iter().filter(move |line| line.dir == dir).collect::<Vec<_>>();
    assert!(matches!(&of(Direction::Err)[..], [line] if line.line == "API_KEY=***"));
    assert!(matches!(&of(Direction::Out)[..], [line] if line.line.contains("\"method\":\"ask\"")));
    match &of(Direction::In)[..] {
        [noise, oversize, answer] => {
            assert_eq!(noise.line, "noise");
            assert!(oversize.oversize && oversize.line.starts_with("xxx"));
            assert!(answer.line.contains("\"result\":\"***\""), "{}", answer.line);
        }
        other => panic!("{other:?}"),
    }
}
