//! The host's process: how it is started, and that it ends.
//!
//! A thread of its own starts each host and waits for it, for two reasons: Linux binds the signal that a dying parent
//! sends to the *thread* that started the child, and the end must be carried through when no runtime is left to do it.
//! The process leads a group (a job on Windows). When it exits, what it left in the group is killed at once; when it is
//! to end, it gets time to do so, then a request, then no choice.

mod command;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

pub use self::command::HostCommand;
#[cfg(unix)]
use self::unix as platform;
#[cfg(windows)]
use self::windows as platform;
use super::spawn_error::SpawnError;
use crate::lock::lock;

/// How long an end may take after the last resort. A process that even this doesn't end is left to the system.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// How long a host gets to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patience {
    /// From the end of its stdin until it is asked to go (SIGTERM, where there is one).
    pub after_eof: Duration,
    /// From then until it is killed.
    pub after_request: Duration,
}

impl Patience {
    /// Other times than the default: 2 s, then 1 s.
    pub fn new(after_eof: Duration, after_request: Duration) -> Self {
        Patience { after_eof, after_request }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience { after_eof: Duration::from_secs(2), after_request: Duration::from_secs(1) }
    }
}

/// How a process went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Exit {
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// The three ends of a host's pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A host's process. Dropping it ends the process in the background.
pub(super) struct Process {
    shared: Arc<Shared>,
}

struct Shared {
    group: platform::Group,
    exit: watch::Sender<Option<Exit>>,
    state: Mutex<State>,
    exited: Condvar,
}

struct State {
    exited: bool,
    ending: bool,
    /// Held while the process lives, so that whoever closes can wait for it.
    alive: Option<watch::Receiver<()>>,
}

impl Process {
    /// Starts a host. Its pipes belong to `runtime`. `alive` is held until the process is gone.
    pub(super) async fn spawn(
        command: &HostCommand,
        runtime: &Handle,
        alive: watch::Receiver<()>,
    ) -> Result<(Process, Pipes), SpawnError> {
        let command = command.clone();
        command.check()?;
        let other = |program: &HostCommand, kind| SpawnError::Other { program: program.program().to_owned(), kind };
        let (sender, receiver) = oneshot::channel();
        let thread_runtime = runtime.clone();
        let thread_command = command.clone();
        thread::Builder::new()
            .name("kitport-host".into())
            .spawn(move || keep(&thread_command, &thread_runtime, alive, sender))
            .map_err(|error| other(&command, error.kind()))?;
        // No answer: the thread panicked, for instance because the runtime can't do I/O.
        receiver.await.unwrap_or_else(|_| Err(other(&command, std::io::ErrorKind::Other)))
    }

    pub(super) fn id(&self) -> u32 {
        self.shared.group.id()
    }

    /// Waits until it is gone.
    pub(super) fn exited(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.shared.exit.subscribe();
        async move {
            match exit.wait_for(Option::is_some).await {
                Ok(exit) => exit.unwrap_or_default(),
                Err(_) => Exit::default(),
            }
        }
    }

    /// Ends it in the background. Its stdin must have been closed. Only the first call counts.
    pub(super) fn end(&self, patience: Patience) {
        {
            let mut state = self.shared.lock();
            if state.exited || state.ending {
                return;
            }
            state.ending = true;
        }
        let shared = Arc::clone(&self.shared);
        let ending = thread::Builder::new().name("kitport-ending".into()).spawn(move || shared.end(patience));
        if ending.is_err() {
            // No thread can be had: there is nobody to be patient.
            self.shared.group.kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(Patience::default());
    }
}

/// What the host's own thread does: starts it, tells, waits.
fn keep(
    command: &HostCommand,
    runtime: &Handle,
    alive: watch::Receiver<()>,
    started: oneshot::Sender<Result<(Process, Pipes), SpawnError>>,
) {
    let (group, pipes) = match platform::spawn(command.to_std(), runtime) {
        Ok(spawned) => spawned,
        Err(error) => {
            let _ = started.send(Err(command.explain(&error)));
            return;
        }
    };
    let shared = Arc::new(Shared {
        group,
        exit: watch::Sender::new(None),
        state: Mutex::new(State { exited: false, ending: false, alive: Some(alive) }),
        exited: Condvar::new(),
    });
    // Where nobody waits for it any more, dropping the process ends it.
    drop(started.send(Ok((Process { shared: Arc::clone(&shared) }, pipes))));
    let exit = shared.group.wait();
    let mut state = shared.lock();
    state.exited = true;
    shared.exited.notify_all();
    shared.exit.send_replace(Some(exit));
    state.alive = None;
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn end(&self, patience: Patience) {
        if self.exits_within(patience.after_eof) {
            return;
        }
        self.group.ask_to_go();
        if platform::CAN_ASK && self.exits_within(patience.after_request) {
            return;
        }
        self.group.kill();
        if !self.exits_within(KILL_WAIT) {
            tracing::warn!(target: "kitport::rpc", id = self.group.id(), "the host can't be ended");
            self.lock().alive = None;
        }
    }

    fn exits_within(&self, time: Duration) -> bool {
        let state = self.lock();
        let (state, _) =
            self.exited.wait_timeout_while(state, time, |state| !state.exited).unwrap_or_else(PoisonError::into_inner);
        state.exited
    }
}
