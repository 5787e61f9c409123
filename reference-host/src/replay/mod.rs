//! Replay: a recording of a connection, played back as a host.
//!
//! Requests of the client are matched with recorded ones by method and parameters, in order. What the host had told by
//! itself comes in its recorded order and pace, up to the next command that the client hasn't given yet: a run goes on
//! where the recorded run.start has its match. Reads are answered whenever they are asked, with
//! what fits the events that were played.

mod known;
mod player;

use std::io;
use std::time::{Duration, Instant};

use kitport::rpc::{Recorded, Recording};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::protocol::{Incoming, Line, read_line, read_request};
use player::{Played, Player, Reply};

/// How fast a recording is played.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Pace {
    /// Everything as soon as it may come.
    AtOnce,
    /// As recorded, so many times as fast.
    Times(f64),
}

/// Lines of the client that wait for the player.
const LINES: usize = 64;

/// Bytes written at a time: what a pipe holds.
const BATCH_BYTES: usize = 64 * 1024;

/// The slowest pace; a recording that stands still is no replay.
const SLOWEST: f64 = 1e-3;

/// Plays a recording to one client until its side is closed.
pub async fn replay<R, W>(reader: R, mut writer: W, recording: Recording, pace: Pace) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let recorded = whole(recording)?;
    let (lines, mut incoming) = mpsc::channel::<Vec<u8>>(LINES);
    let reading = tokio::spawn(async move {
        let mut from = BufReader::new(reader);
        let mut buffer = Vec::new();
        loop {
            match read_line(&mut from, &mut buffer).await {
                Ok(Line::Whole) => {
                    if lines.send(std::mem::take(&mut buffer)).await.is_err() {
                        return Ok(());
                    }
                }
                Ok(Line::TooLong) => {}
                Ok(Line::End) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    });
    let mut player = Player::new(recorded);
    // The moment at which the recording stood at a time of its own.
    let mut anchor = (Instant::now(), 0);
    let due = |at_us: u64, (moment, at): (Instant, u64)| match pace {
        Pace::AtOnce => moment,
        Pace::Times(times) => moment + Duration::from_micros(at_us.saturating_sub(at)).div_f64(times.max(SLOWEST)),
    };
    let mut batch = Vec::new();
    loop {
        let next = player.next_time().map(|at_us| due(at_us, anchor));
        let wait = async {
            match next {
                Some(moment) => tokio::time::sleep_until(moment.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            line = incoming.recv() => {
                let Some(line) = line else { break };
                let reply = read_request(&line, |incoming| match incoming {
                    Ok(Incoming::Request(request)) => player.request(&request),
                    // The client's own answers and notifications have nothing to be matched with.
                    _ => Reply::None,
                });
                match reply {
                    Reply::Now(line) => batch.extend_from_slice(&line),
                    Reply::Opened { at_us } => anchor = (Instant::now(), at_us),
                    Reply::None => {}
                }
            }
            () = wait => {
                let now = Instant::now();
                while batch.len() < BATCH_BYTES && player.next_time().is_some_and(|at_us| due(at_us, anchor) <= now) {
                    match player.play() {
                        Some(Played::Out(line)) => {
                            batch.extend_from_slice(line.as_bytes());
                            batch.push(b'\n');
                        }
                        Some(Played::Err(line)) => eprintln!("{line}"),
                        None => {}
                    }
                }
            }
        }
        writer.write_all(&batch).await?;
        writer.flush().await?;
        batch.clear();
    }
    reading.await.unwrap_or(Ok(()))
}

/// All lines of a recording. One that ends in the middle of a line was cut off there, as its program may have been.
fn whole(recording: Recording) -> io::Result<Vec<Recorded>> {
    let mut lines = Vec::new();
    let mut broken = None;
    for line in recording {
        if let Some(error) = broken {
            return Err(error);
        }
        match line {
            Ok(line) => lines.push(line),
            Err(error) => broken = Some(error),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> io::Result<usize> {
        let recording = Recording::from_reader(io::Cursor::new(text.to_owned()))?;
        whole(recording).map(|lines| lines.len())
    }

    #[test]
    fn only_the_last_line_may_be_cut_off() {
        let head = "{\"kitportRecording\":1}\n";
        let line = "{\"at\":\"x\",\"t\":5,\"dir\":\"err\",\"line\":\"a\"}\n";
        assert_eq!(lines(&format!("{head}{line}{line}")).unwrap(), 2);
        assert_eq!(lines(&format!("{head}{line}{}", &line[..9])).unwrap(), 1);
        assert!(lines(&format!("{head}{}\n{line}", &line[..9])).is_err());
    }
}
