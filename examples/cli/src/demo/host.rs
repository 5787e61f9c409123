//! The demo's host: this program again, as a child process, on a file that is gone afterwards.

use std::fs;
use std::path::PathBuf;

use kitport::rpc::HostCommand;
use tempfile::TempDir;

use crate::commands::host::PID_FILE;
use crate::failure::Failure;

/// Milliseconds between two pieces of text: slow enough to be seen as a stream, fast enough not to be waited for.
const SPEED_MS: &str = "6";

/// How to start the host, and how to find it.
#[derive(Debug)]
pub(super) struct DemoHost {
    folder: TempDir,
    more: Vec<String>,
}

impl DemoHost {
    pub(super) fn new(more: Vec<String>) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("kitport-demo-")
            .tempdir()
            .map_err(|error| Failure::failed(format!("there is no room for temporary files: {error}")))?;
        Ok(DemoHost { folder, more })
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pids")
    }

    /// The command that starts it.
    pub(super) fn command(&self) -> Result<HostCommand, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("the program can't find itself: {error}")))?;
        Ok(HostCommand::new(program)
            .args(["host", "stdio", "--speed", SPEED_MS, "--db"])
            .arg(self.folder.path().join("host.db"))
            .args(&self.more)
            .env(PID_FILE, self.pid_file())
            .cwd(self.folder.path()))
    }

    /// The processes that were started, the newest last.
    pub(super) fn pids(&self) -> Vec<u32> {
        let lines = fs::read_to_string(self.pid_file()).unwrap_or_default();
        lines.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Kills the newest one, as `kill -9` does. Gives its id.
    pub(super) fn kill(&self) -> Result<u32, Failure> {
        let pid = self.pids().pop().ok_or_else(|| Failure::failed("the host's process is not known"))?;
        match kill(pid) {
            true => Ok(pid),
            false => Err(Failure::failed(format!("the host's process {pid} could not be killed"))),
        }
    }

    /// Those of its processes that are still there.
    pub(super) fn alive(&self) -> Vec<u32> {
        self.pids().into_iter().filter(|pid| is_alive(*pid)).collect()
    }
}

#[cfg(unix)]
fn pid_of(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(unix)]
fn kill(pid: u32) -> bool {
    pid_of(pid).is_some_and(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok())
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    pid_of(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

#[cfg(windows)]
fn kill(pid: u32) -> bool {
    let killed = std::process::Command::new("taskkill").args(["/F", "/PID", &pid.to_string()]).output();
    killed.is_ok_and(|done| done.status.success())
}

#[cfg(windows)]
fn is_alive(pid: u32) -> bool {
    let listed = std::process::Command::new("tasklist").args(["/NH", "/FI", &format!("PID eq {pid}")]).output();
    listed.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains(&pid.to_string()))
}
