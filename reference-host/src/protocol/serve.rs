//! One connection from its first line to its last.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader};

use super::line::{self, Line};
use super::request::{self, Incoming, Request};
use super::{Answer, dispatch};
use crate::failure::{Failure, PARSE_ERROR};
use crate::faults::WriteFault;
use crate::host::Host;
use crate::options::HostOptions;
use crate::outbox::{Kind, Written};

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// How long the answer to a run.start is kept back, at most, where what it causes shall come first.
const LATE_MS: u64 = 30;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Served {
    /// The client closed its side; everything was written and saved.
    InputEnded,
    /// The script or a fault wants the process to exit at once with this code.
    Exit(i32),
}

/// Serves one client until its side is closed. Several connections at a time need a host each; on one database file,
/// only one of them may have runs.
pub async fn serve<R, W>(reader: R, writer: W, options: HostOptions) -> io::Result<Served>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    if let Some(ms) = options.faults.slow_start_ms {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let host = Host::open(options).map_err(|failure| io::Error::other(failure.message))?;
    let stop = StopRuns(host.clone());
    let mut exit = host.exit.subscribe();
    let write_fault = WriteFault::new(&host.options.faults, host.options.seed);
    let write = host.outbox.write_all(writer, write_fault);
    tokio::pin!(write);
    let read = read(&host, BufReader::with_capacity(READ_BYTES, reader));
    tokio::pin!(read);
    let ended = tokio::select! {
        biased;
        code = async { exit.wait_for(Option::is_some).await.ok().and_then(|code| *code) } => {
            return Ok(Served::Exit(code.unwrap_or(0)));
        }
        written = &mut write => Some(written?),
        end = &mut read => { end?; None }
    };
    let written = match ended {
        Some(written) => written,
        None => {
            host.stop_runs();
            host.outbox.finish();
            write.await?
        }
    };
    drop(stop);
    Ok(match written {
        Written::All => Served::InputEnded,
        Written::Exit(code) => Served::Exit(code),
    })
}

/// Runs end with their connection, also when that is dropped.
struct StopRuns(Arc<Host>);

impl Drop for StopRuns {
    fn drop(&mut self) {
        self.0.stop_runs();
    }
}

async fn read<R: AsyncBufRead + Unpin>(host: &Arc<Host>, mut from: R) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut initialized = false;
    let mut requests = 0;
    let hang_after = host.options.faults.hang_after;
    loop {
        if hang_after.is_some_and(|most| requests >= most) {
            return std::future::pending().await;
        }
        // A client that doesn't read isn't read either.
        host.outbox.room().await;
        match line::read(&mut from, &mut buffer).await? {
            Line::End if host.options.faults.ignore_term => return std::future::pending().await,
            Line::End => return Ok(()),
            Line::TooLong => {
                let failure = Failure::new(PARSE_ERROR, "parse error: the line is too long");
                push(host, Kind::Answer, &request::error_line("null", &failure));
            }
            Line::Whole => {
                request::read(&buffer, |incoming| match incoming {
                    Ok(Incoming::Request(request)) => {
                        requests += 1;
                        answer(host, &request, &mut initialized);
                    }
                    Ok(Incoming::Notification) => {}
                    Ok(Incoming::Answer) => host.client_answers.send_modify(|count| *count += 1),
                    Err(failure) => push(host, Kind::Answer, &request::error_line("null", &failure)),
                });
                if buffer.capacity() > 1024 * 1024 {
                    buffer = Vec::new();
                }
            }
        }
    }
}

fn push(host: &Host, kind: Kind<'_>, line: &[u8]) {
    host.outbox.line(kind, |buffer| buffer.extend_from_slice(line));
}

fn answer(host: &Arc<Host>, request: &Request<'_>, initialized: &mut bool) {
    let kind = if *initialized { Kind::Answer } else { Kind::Handshake };
    match dispatch(host, request, initialized) {
        Ok(Answer::Result(result)) => push(host, kind, &request.answer(&result)),
        Ok(Answer::Given) => {}
        Ok(Answer::Late(result)) => {
            let line = request.answer(&result);
            let pause = Duration::from_millis(fastrand::Rng::with_seed(line.len() as u64).u64(..LATE_MS));
            let late = host.clone();
            host.spawn(async move {
                tokio::time::sleep(pause).await;
                push(&late, Kind::Answer, &line);
            });
        }
        Err(failure) => push(host, kind, &request::error_line(request.id, &failure)),
    }
}
