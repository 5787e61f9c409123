//! The supervisor: the one task that owns the connection. It starts the host, waits for its end, and starts it anew where
//! the options say so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use super::errors;
use super::handshake::{Agreed, shake_hands};
use super::options::{Options, Restart};
use super::router::{EndedConnection, Handler, OversizePause, Router};
use super::session::Core;
use crate::error::{KitError, Outcome, Result};
use crate::rpc::{Client, ClientOptions, Ended, HostCommand, Patience, SpawnError};

/// Starts in a row without a handshake after which the error is final.
const STARTS_WITHOUT_HANDSHAKE: u32 = 3;

/// A host that lived this long was well: the next pause is the first one again.
const GOOD_LIFE: Duration = Duration::from_secs(10);

pub(super) fn client_options(options: &Options, runtime: &Handle) -> ClientOptions {
    let mut client = ClientOptions::new(runtime.clone());
    client.line_limit_bytes = options.line_limit;
    client.call_timeout = options.call_timeout;
    client.patience = Patience::new(options.close_grace, TERMINATE_GRACE);
    client.recorder = options.recorder.clone();
    client
}

/// How long a host that was asked to end by a signal may take.
const TERMINATE_GRACE: Duration = Duration::from_secs(1);

pub(super) fn handler(router: &Arc<Router>, generation: u64) -> Handler {
    Handler { router: router.clone(), generation, oversize: Arc::new(OversizePause::default()) }
}

/// Starts the host and shakes hands; where that fails nothing is left of it.
pub(super) async fn start(
    command: &HostCommand,
    router: &Arc<Router>,
    generation: u64,
    options: &Options,
    runtime: &Handle,
    closed: Option<watch::Receiver<bool>>,
) -> Result<(Client, Agreed)> {
    let started = Client::spawn(command, handler(router, generation), client_options(options, runtime)).await;
    let client = started.map_err(|error| {
        let message = error.to_string();
        let kit = match &error {
            SpawnError::MissingProgram { .. }
            | SpawnError::MissingFolder { .. }
            | SpawnError::MissingInterpreter { .. } => KitError::not_found(message),
            SpawnError::NotExecutable { .. } => KitError::denied(message),
            _ => KitError::failed(message),
        };
        kit.with_outcome(Outcome::NotSent).with_source(error)
    })?;
    let agreed = shake_or_close(&client, options, closed).await?;
    Ok((client, agreed))
}

/// The handshake; where it fails, or the backend is closed meanwhile, nothing is left of the connection.
pub(super) async fn shake_or_close(
    client: &Client,
    options: &Options,
    closed: Option<watch::Receiver<bool>>,
) -> Result<Agreed> {
    let closed = async {
        match closed {
            Some(mut closed) => drop(closed.wait_for(|closed| *closed).await),
            None => std::future::pending().await,
        }
    };
    // Whoever drops this future while it waits drops the client, which ends the host.
    let agreed = tokio::select! {
        agreed = shake_hands(client, options, options.handshake_timeout) => agreed,
        () = closed => Err(KitError::closed()),
    };
    match agreed {
        Ok(agreed) => Ok(agreed),
        Err(error) => {
            client.close().await;
            Err(error)
        }
    }
}

/// The supervisor: waits for the end of each connection, and starts the host anew where the options say so.
pub(super) async fn supervise(core: &Core, mut ends: mpsc::UnboundedReceiver<EndedConnection>) {
    let mut closing = core.closing.subscribe();
    let mut generation = 1;
    let mut pauses = Pauses::new(core.options.restart);
    loop {
        let since = Instant::now();
        let ended = loop {
            tokio::select! {
                Some(end) = ends.recv() => if end.generation == generation { break end.ended },
                _ = closing.wait_for(|closing| *closing) => return,
            }
        };
        let error = end_error(&ended);
        let (Some(command), Restart::Always { .. }, Ended::Exited(_)) = (&core.command, core.options.restart, &ended)
        else {
            core.over(Some(error).filter(|_| ended != Ended::Closed));
            return;
        };
        core.down(error);
        // One whose output ended may live on for a while, and two hosts on one store are one too many.
        core.left().await;
        core.forget_left();
        if since.elapsed() >= GOOD_LIFE {
            pauses = Pauses::new(core.options.restart);
        }
        match start_anew(core, command, &mut generation, &mut pauses).await {
            Ok((client, agreed)) => {
                if let Err(client) = core.up(client, agreed) {
                    client.close().await;
                    return;
                }
            }
            Err(error) => {
                core.over(Some(error));
                return;
            }
        }
    }
}

async fn start_anew(
    core: &Core,
    command: &HostCommand,
    generation: &mut u64,
    pauses: &mut Pauses,
) -> Result<(Client, Agreed)> {
    let mut failures = 0;
    let mut closing = core.closing.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(pauses.next()) => {}
            _ = closing.wait_for(|closing| *closing) => return Err(KitError::closed()),
        }
        *generation += 1;
        let closed = core.closing.subscribe();
        match start(command, &core.router, *generation, &core.options, core.runtime(), Some(closed)).await {
            Ok(started) => return Ok(started),
            Err(error) => {
                failures += 1;
                // Another version will not go away by itself, nor will a close.
                let last = matches!(error, KitError::ProtocolMismatch { .. } | KitError::Closed(_));
                if failures == STARTS_WITHOUT_HANDSHAKE || last {
                    return Err(error);
                }
            }
        }
    }
}

/// Growing pauses.
struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    fn new(restart: Restart) -> Self {
        match restart {
            Restart::Always { first_pause, longest_pause } => Pauses { next: first_pause, longest: longest_pause },
            Restart::Never => Pauses { next: Duration::ZERO, longest: Duration::ZERO },
        }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}

/// What the end of a connection is for the kit.
fn end_error(ended: &Ended) -> KitError {
    match ended {
        Ended::Exited(report) => errors::host_exited(report),
        _ => KitError::closed(),
    }
}
