//! Process groups and signals.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

use super::{Exit, Pipes};
use crate::lock::lock;

/// SIGTERM is a request.
pub(super) const CAN_ASK: bool = true;

/// A process and those that it started.
pub(super) struct Group {
    id: u32,
    /// There until the process is about to be reaped: as long as it is there, its id can't be another's.
    child: Mutex<Option<Box<dyn ChildWrapper>>>,
}

pub(super) fn spawn(mut command: Command, runtime: &Handle) -> io::Result<(Group, Pipes)> {
    #[cfg(target_os = "linux")]
    die_with_parent(&mut command);
    let mut command = {
        // Rebound, so that it need not be mutable where no hook is set.
        let command = std::mem::replace(&mut command, Command::new(""));
        CommandWrap::from(command)
    };
    let mut child = command.wrap(ProcessGroup::leader()).spawn()?;
    let ends = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    // From here on, an early return kills the child.
    let group = Group { id: child.id(), child: Mutex::new(Some(child)) };
    let (Some(stdin), Some(stdout), Some(stderr)) = ends else {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    };
    let _runtime = runtime.enter();
    let pipes = Pipes {
        stdin: ChildStdin::from_std(stdin)?,
        stdout: ChildStdout::from_std(stdout)?,
        stderr: ChildStderr::from_std(stderr)?,
    };
    Ok((group, pipes))
}

/// Has the system kill the child when the thread that starts it is gone, and with it this process.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec the hook makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have gone before that: nobody would send the signal then.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        });
    }
}

impl Group {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn ChildWrapper>>> {
        lock(&self.child)
    }

    /// Blocks until the process is gone, then kills what it left behind.
    pub(super) fn wait(&self) -> Exit {
        // Seen but not yet reaped: until then the group's id is its own, and the kill can't hit another's.
        if let Some(pid) = i32::try_from(self.id).ok().and_then(Pid::from_raw) {
            while let Err(rustix::io::Errno::INTR) =
                waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            {}
        }
        let Some(mut child) = self.lock().take() else { return Exit::default() };
        let _ = child.start_kill();
        match child.wait() {
            Ok(status) => Exit { exit_code: status.code(), signal: status.signal() },
            // Somebody else in this process reaped it.
            Err(_) => Exit::default(),
        }
    }

    pub(super) fn ask_to_go(&self) {
        if let Some(child) = &*self.lock() {
            let _ = child.signal(Signal::TERM.as_raw());
        }
    }

    pub(super) fn kill(&self) {
        if let Some(child) = &*self.lock() {
            let _ = child.signal(Signal::KILL.as_raw());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(mut child) = self.lock().take() {
            let _ = child.start_kill();
            let _ = child.wait();
        }
    }
}
