//! What the tests share: a host to test with, as a child process or in this one, and streams gathered into lists.

pub mod byte_host;
pub mod fuzz_bodies;
pub mod oracle;
pub mod pieces;
#[cfg(target_os = "linux")]
pub mod procs;
pub mod raw_host;
pub mod scenario;

use std::path::Path;
use std::time::Duration;

use kitport::bubblepaw::Options;
use kitport::model::Event;
use kitport::rpc::HostCommand;
use kitport::{BubblePaw, EventStream, KitError, Result};
use kitport_host::HostOptions;

/// Longer than anything here takes: what is still waited for then never comes.
pub const NEVER: Duration = Duration::from_secs(60);

/// The reference host's command, with its arguments behind `stdio`.
pub fn host_command(program: &Path, args: &[&str]) -> HostCommand {
    HostCommand::new(program).arg("stdio").args(args)
}

/// A backend on a reference host in this process.
pub async fn embedded(host: HostOptions, options: Options) -> Result<BubblePaw> {
    let host = kitport_host::embedded(host);
    BubblePaw::connect(host.reader, host.writer, options).await
}

/// The next event; panics where none comes.
pub async fn next(events: &EventStream) -> Event {
    let next = tokio::time::timeout(NEVER, events.next()).await.expect("an event comes in time");
    next.expect("the stream goes on").expect("the stream has no error")
}

/// Events up to and with the first one for which `last` is true.
pub async fn until(events: &EventStream, mut last: impl FnMut(&Event) -> bool) -> Vec<Event> {
    let mut gathered = Vec::new();
    loop {
        let event = next(events).await;
        let done = last(&event);
        gathered.push(event);
        if done {
            return gathered;
        }
    }
}

/// The rest of a stream, and the error that ended it.
pub async fn rest(events: &EventStream) -> (Vec<Event>, Option<KitError>) {
    let mut gathered = Vec::new();
    loop {
        match tokio::time::timeout(NEVER, events.next()).await.expect("the stream ends in time") {
            Some(Ok(event)) => gathered.push(event),
            Some(Err(error)) => return (gathered, Some(error)),
            None => return (gathered, None),
        }
    }
}

/// A command for a shell that shakes hands and then runs `script`: the smallest host there is.
pub fn shell_host(script: &str) -> HostCommand {
    HostCommand::new("sh").args(["-c", &format!("{SHELL_HANDSHAKE}{script}")])
}

/// Answers the first request, which is the handshake with the id 1.
const SHELL_HANDSHAKE: &str = r#"read hello; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol_version":"0.1","host":{"name":"sh","version":"1"},"features":[],"workspace":{"path":"/"}}}'; "#;

/// The durable ones.
pub fn durable(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.durable).cloned().collect()
}

/// Panics where durable sequences don't rise.
pub fn assert_rising(events: &[Event]) {
    let mut last = None;
    for event in events.iter().filter(|event| event.durable) {
        assert!(last < Some(event.seq), "{:?} after {last:?}", event.seq);
        last = Some(event.seq);
    }
}

/// Waits until it is so; panics with `what` where that never comes.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < NEVER, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The seed of a test that plays with chance: its own, or the one in `KITPORT_SEED` to play a failure again.
pub fn seed() -> u64 {
    let chosen = std::env::var("KITPORT_SEED").ok().map(|seed| seed.parse().expect("KITPORT_SEED is a number"));
    chosen.unwrap_or_else(|| u64::from(std::process::id()))
}

/// Whether the tests may take long, by `KITPORT_LONG`.
pub fn long() -> bool {
    std::env::var_os("KITPORT_LONG").is_some()
}
