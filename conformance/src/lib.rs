//! What the tests share: a host to test with, as a child process or in this one, and streams gathered into lists.

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
