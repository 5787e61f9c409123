//! Secrets: values of the environment, keys and tokens never show.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use kitport::bubblepaw::Options;
use kitport::rpc::{HostCommand, Recorder};
use kitport::{AgentBackend, BubblePaw, ChatReader, KitError};
use kitport_conformance::byte_host::{ByteHost, SESSION};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::host;

/// Everything that any part of this program logged, at the finest level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

/// The log of this process: tasks run on any thread, so there is one for all.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("nobody else logs here");
        log
    })
}

fn logged() -> String {
    String::from_utf8_lossy(&log().0.lock().unwrap()).into_owned()
}

/// Every way in which an error shows itself.
fn faces(error: &KitError) -> String {
    let mut faces = format!("{error}\n{error:?}\n{error:#?}\n{}", serde_json::to_string(error).unwrap());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        faces.push_str(&format!("\n{cause}\n{cause:?}"));
        source = cause.source();
    }
    faces
}

const VALUE: &str = "hush-3f9a1c77d2";
const PLAIN: &str = "visible-value-8841";

#[tokio::test]
async fn values_of_the_environment_show_in_no_error_log_or_debug() {
    log();
    let script = "echo \"key is $MY_API_KEY, word is $DB_PASSWORD\" >&2; \
        echo \"Authorization: Bearer $MY_API_KEY\" >&2; \
        echo \"postgres://app:$DB_PASSWORD@db/x\" >&2; \
        echo \"$GREETING\" >&2; \
        echo 'reason: the disk is full' >&2; exit 3";
    let command = HostCommand::new("sh")
        .args(["-c", script])
        .env("MY_API_KEY", VALUE)
        .env("DB_PASSWORD", "hush-word-55")
        // A key is known by its shape, too, whatever the name of its variable.
        .env("GREETING", format!("hello {}_{}", "ghp", "0123456789abcdefHUSH0123456789abcdef"))
        .env("KITPORT_PLAIN", PLAIN);
    let debug = format!("{command:?} {command:#?}");
    assert!(!debug.contains("hush") && !debug.contains(PLAIN), "{debug}");
    let error = BubblePaw::spawn(command, Options::default()).await.unwrap_err();
    let KitError::HostExited { stderr_tail, .. } = &error else { panic!("{error:?}") };
    assert!(stderr_tail.contains("the disk is full"), "the tail is of use: {stderr_tail}");
    for shown in [faces(&error), logged()] {
        for secret in ["hush", "HUSH", PLAIN] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
    // A start that fails before there is a process.
    let command = HostCommand::new("no-such-host").arg(format!("--token={VALUE}")).env("MY_API_KEY", VALUE);
    let error = BubblePaw::spawn(command, Options::default()).await.unwrap_err();
    assert!(!faces(&error).contains("hush"), "{}", faces(&error));
    assert!(!logged().contains("hush"));
}

#[tokio::test]
async fn what_people_and_hosts_write_shows_in_no_log_and_no_fixed_message() {
    log();
    let (backend, mut host) = ByteHost::connect(Options::default(), &[]).await;
    // The host's words for a code that shows none, and its data.
    let answers = [
        json!({"code": -32000, "message": "hush-host-words not found"}),
        json!({"code": -32603, "message": "hush-host-words", "data": {"prompt": "hush-host-data"}}),
        json!({"code": 7, "message": "hush-host-words", "data": ["hush-host-data"]}),
    ];
    for answer in answers {
        let sending = tokio::spawn({
            let backend = backend.clone();
            async move { backend.send(&SESSION.into(), "hush-user-text", &[]).await }
        });
        let request = host.request().await.unwrap();
        host.line(&json!({"jsonrpc": "2.0", "id": request.id, "error": answer})).await;
        let error = sending.await.unwrap().unwrap_err();
        assert!(!faces(&error).contains("hush"), "{}", faces(&error));
    }
    // Answers and events that don't fit are not quoted either.
    let loading = tokio::spawn({
        let backend = backend.clone();
        async move { backend.load_chat(&SESSION.into()).await }
    });
    let request = host.request().await.unwrap();
    host.write(b"hush-noise {\n").await;
    host.write(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"session_id\":\"hush-session\",\"event\":7}}\n",
    )
    .await;
    host.answer(&request.id, json!({"session": "hush-payload"})).await;
    let error = loading.await.unwrap().unwrap_err();
    assert!(!faces(&error).contains("hush") && error.message().contains("session.state"), "{}", faces(&error));
    let feed_debug = format!("{backend:?} {:?}", backend.events(&SESSION.into(), None));
    assert!(!feed_debug.contains("hush"));
    drop(host);
    backend.close().await;
    assert!(!logged().contains("hush"), "{}", logged());
    assert!(logged().contains("session.state"), "calls are logged by their method");
}

#[tokio::test]
async fn a_key_that_is_set_shows_neither_in_a_log_nor_in_a_recording() {
    log();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.jsonl");
    let recorder = Recorder::to_file(&file).unwrap();
    let options = Options { recorder: Some(recorder), ..Options::default() };
    let command = host(&[]).env("PROVIDER_API_KEY", VALUE);
    let backend = BubblePaw::spawn(command, options).await.unwrap();
    let _ = backend.set_config("provider.key", json!(VALUE)).await;
    let _ = backend.set_config("no.such.key", json!(VALUE)).await;
    let chat = backend.create_chat(None).await.unwrap();
    // In a text that the host sends back whole.
    backend.rename(&chat.id, &format!("the key is {VALUE}")).await.unwrap();
    assert!(backend.load_chat(&chat.id).await.unwrap().chat.title.contains(VALUE), "what an app reads is not masked");
    let providers = backend.list_providers().await.unwrap();
    assert!(!format!("{providers:?}").contains("hush"));
    backend.close().await;
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert!(recorded.lines().count() > 5, "{recorded}");
    assert!(!recorded.contains("hush"), "{recorded}");
    assert!(!logged().contains("hush"), "{}", logged());
}

/// The fields of the kit's own log events. They are named where the events are made, so that those are read: some come
/// in failures only that no test can make at will.
#[test]
fn what_is_logged_is_method_id_duration_and_outcome() {
    let mut fields = BTreeSet::new();
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                fields.extend(logged_fields(&std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert_eq!(fields.iter().map(String::as_str).collect::<Vec<_>>(), ["id", "method", "micros", "outcome"]);
}

/// The names of the fields in a source's log events: what stands between the target and the message.
fn logged_fields(source: &str) -> Vec<String> {
    let calls = source.split("tracing::").skip(1).filter_map(|call| {
        let (level, rest) = call.split_once("!(")?;
        ["trace", "debug", "info", "warn", "error", "event"].contains(&level).then_some(rest)
    });
    let fields = calls.flat_map(|call| {
        let (target, rest) = call.trim_start().split_once(',').expect("a target comes first");
        assert!(target.starts_with("target: \"kitport::"), "{target}");
        let (fields, _) = rest.split_once('"').expect("a message comes last");
        fields.split(',').map(|field| field.split('=').next().unwrap_or_default().trim().to_owned())
    });
    fields.filter(|field| !field.is_empty()).collect()
}

#[test]
fn fields_of_log_events_are_found() {
    let source = r#"tracing::warn!(target: "kitport::a", one, two = ?x.y(), "words, more"); tracing::Level::WARN"#;
    assert_eq!(logged_fields(source), ["one", "two"]);
}
