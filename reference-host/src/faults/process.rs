//! Faults of the process: what surrounds the connection. A host in the client's own process has none of them.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Faults;

/// A line of the flood on stderr.
const STDERR_LINE: &[u8] =
    b"[debug] the fox looks at the hills and writes down what it sees, which nobody will read again\n";

/// How long the grandchild lives: longer than anyone waits for it.
const GRANDCHILD_SECONDS: &str = "1000";

/// Does at the start what the faults want.
pub(crate) fn start(faults: &Faults) {
    if faults.ignore_term {
        ignore_term();
    }
    if faults.grandchild {
        grandchild();
    }
    if let Some(mib) = faults.stderr_mib {
        // Not from a thread of its own: a host that logs stands still while nobody reads its log.
        let mut stderr = std::io::stderr().lock();
        let mut left = mib.saturating_mul(1024 * 1024);
        let chunk = STDERR_LINE.repeat(500);
        while left > 0 {
            let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            if stderr.write_all(&chunk[..bytes]).is_err() {
                return;
            }
            left -= bytes as u64;
        }
        let _ = stderr.write_all(b"\n");
    }
}

/// Starts a process that holds stdout and stderr of this one and doesn't end with it. Its number is told on stderr.
fn grandchild() {
    let mut command = if cfg!(windows) {
        let mut ping = Command::new("ping");
        ping.args(["-n", GRANDCHILD_SECONDS, "127.0.0.1"]);
        ping
    } else {
        let mut sleep = Command::new("sleep");
        sleep.arg(GRANDCHILD_SECONDS);
        sleep
    };
    match command.stdin(Stdio::null()).spawn() {
        Ok(child) => eprintln!("kitport-host: grandchild {}", child.id()),
        Err(error) => eprintln!("kitport-host: no grandchild: {error}"),
    }
}

#[cfg(unix)]
fn ignore_term() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terms) => {
            tokio::spawn(async move { while terms.recv().await.is_some() {} });
        }
        Err(error) => eprintln!("kitport-host: SIGTERM can't be ignored: {error}"),
    }
}

#[cfg(not(unix))]
fn ignore_term() {}
