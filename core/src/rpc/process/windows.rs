//! Job objects. A job ends with its last handle, so a killed parent leaves no host behind.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

use super::{Exit, Pipes};
use crate::lock::lock;

/// There is no request to go that a program without a window would get.
pub(super) const CAN_ASK: bool = false;

/// A process and those that it started.
pub(super) struct Group {
    id: u32,
    /// There until somebody waits for it.
    child: Mutex<Option<Box<dyn ChildWrapper>>>,
    kill: Notify,
    /// Waits for the child; the connection's own runtime may be gone by then.
    waiting: Runtime,
}

pub(super) fn spawn(command: Command, runtime: &Handle) -> io::Result<(Group, Pipes)> {
    let waiting = Builder::new_current_thread().build()?;
    // The pipes belong to the connection's runtime.
    let _runtime = runtime.enter();
    let mut command = CommandWrap::from(tokio::process::Command::from(command));
    command.wrap(CreationFlags(CREATE_NO_WINDOW)).wrap(KillOnDrop).wrap(JobObject);
    let mut child = command.spawn()?;
    let ends = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let (Some(stdin), Some(stdout), Some(stderr)) = ends else {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    };
    let id = child.id().unwrap_or_default();
    let group = Group { id, child: Mutex::new(Some(child)), kill: Notify::new(), waiting };
    Ok((group, Pipes { stdin, stdout, stderr }))
}

impl Group {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Blocks until the process is gone, then kills what it left behind.
    pub(super) fn wait(&self) -> Exit {
        let child = lock(&self.child).take();
        let Some(mut child) = child else { return Exit::default() };
        let status = self.waiting.block_on(async {
            loop {
                // The inner one: the job's own wait would wait for those that the process left behind.
                tokio::select! {
                    status = child.inner_mut().wait() => return status,
                    () = self.kill.notified() => {}
                }
                let _ = child.start_kill();
            }
        });
        let _ = child.start_kill();
        Exit { exit_code: status.ok().as_ref().and_then(ExitStatus::code), signal: None }
    }

    /// Nobody can be asked, see [`CAN_ASK`].
    pub(super) fn ask_to_go(&self) {}

    pub(super) fn kill(&self) {
        self.kill.notify_one();
    }
}
