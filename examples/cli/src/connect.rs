//! The backend: a host that is started, or the reference host in this process on the user's own file.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::{BaseStrategy, choose_base_strategy};
use kitport::bubblepaw::Options;
use kitport::rpc::HostCommand;
use kitport::{BubblePaw, ChatReader, KitError};
use kitport_host::HostOptions;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::failure::Failure;
use crate::output::Progress;

/// How long a file that another kitport holds is waited for: one that is about to end takes a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// Between two looks at it.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// How long the host in this process may take to end once its client is closed.
const END_PATIENCE: Duration = Duration::from_secs(2);

type HostTask = JoinHandle<std::io::Result<kitport_host::Served>>;

/// A host in this process, and the lock on its file.
struct Embedded {
    task: HostTask,
    _lock: File,
}

impl App {
    /// Connects, does the work and closes the host, whatever came of the work. Ctrl-C ends the work.
    pub(crate) async fn with_backend<T>(
        &self,
        work: impl AsyncFnOnce(&BubblePaw) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with_backend_to_end(async |kit| {
            tokio::select! {
                done = work(kit) => done,
                () = self.interrupt.asked() => Err(Failure::interrupted()),
            }
        })
        .await
    }

    /// The same for work that looks after Ctrl-C itself.
    pub(crate) async fn with_backend_to_end<T>(
        &self,
        work: impl AsyncFnOnce(&BubblePaw) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (kit, embedded) = tokio::select! {
            connected = self.connect() => connected?,
            () = self.interrupt.asked() => return Err(Failure::interrupted()),
        };
        let done = work(&kit).await;
        kit.close().await;
        if let Some(embedded) = embedded {
            // It only writes its file to the end; where that takes longer the file is whole all the same.
            let _ = tokio::time::timeout(END_PATIENCE, embedded.task).await;
        }
        done
    }

    /// The options of every backend.
    pub(crate) fn options(&self) -> Options {
        Options {
            client_name: "kitport-cli".to_owned(),
            workspace: self.global.cwd.as_ref().map(|folder| folder.display().to_string()),
            recorder: self.recorder.clone(),
            ..Options::default()
        }
    }

    async fn connect(&self) -> Result<(BubblePaw, Option<Embedded>), Failure> {
        let mut progress = Progress::new(self.global.json);
        progress.show("starting the host");
        match &self.global.host {
            Some(words) => {
                let kit = BubblePaw::spawn(host_command(words, self.global.cwd.as_deref())?, self.options()).await?;
                Ok((kit, None))
            }
            None => self.embed().await.map(|(kit, embedded)| (kit, Some(embedded))),
        }
    }

    async fn embed(&self) -> Result<(BubblePaw, Embedded), Failure> {
        let file = match &self.global.db {
            Some(file) => file.clone(),
            None => default_file()?,
        };
        let folder = self.global.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        if !folder.is_dir() {
            let message = format!("the working folder {} does not exist or is no folder", folder.display());
            return Err(Failure::usage(message).hint("look at --cwd"));
        }
        let lock = lock(&file).await?;
        let mut options = HostOptions::default();
        options.db = Some(file.clone());
        options.workspace = folder;
        let host = kitport_host::embedded(options);
        match BubblePaw::connect(host.reader, host.writer, self.options()).await {
            Ok(kit) => Ok((kit, Embedded { task: host.task, _lock: lock })),
            Err(error) => Err(why_not_embedded(host.task, error, &file).await),
        }
    }
}

/// The command that a person wrote in one word for the shell.
fn host_command(words: &str, cwd: Option<&Path>) -> Result<HostCommand, Failure> {
    let words = shell_words::split(words).map_err(|_| Failure::usage("--host has a quote that does not end"))?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::usage("--host names no program"));
    };
    let command = HostCommand::new(program).args(arguments);
    Ok(match cwd {
        Some(folder) => command.cwd(folder),
        None => command,
    })
}

fn default_file() -> Result<PathBuf, Failure> {
    let dirs = choose_base_strategy()
        .map_err(|_| Failure::failed("there is no home directory to keep chats in").hint("name a file with --db"))?;
    Ok(dirs.data_dir().join("kitport").join("host.db"))
}

/// Makes sure that this process alone has the file: a second host on it would take the first one's runs for cut off.
async fn lock(file: &Path) -> Result<File, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("the file {} can't be used: {error}", file.display())).hint("look at --db")
    };
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    let lock = File::options().write(true).create(true).truncate(false).open(&name).map_err(failed)?;
    let began = tokio::time::Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_PATIENCE => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::WouldBlock) => {
                let message = format!("another kitport has the chats of {} open", file.display());
                return Err(
                    Failure::from(KitError::conflict(message)).hint("end it first, or name another file with --db")
                );
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// The host's own reason says more than that it is gone.
async fn why_not_embedded(task: HostTask, error: KitError, file: &Path) -> Failure {
    match tokio::time::timeout(END_PATIENCE, task).await {
        Ok(Ok(Err(reason))) => {
            Failure::failed(format!("the file {} can't be used: {reason}", file.display())).hint("look at --db")
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_a_shell_would() {
        let command = host_command("'my host' stdio --name \"a b\"", None).unwrap();
        assert_eq!(command.program(), Path::new("my host"));
        for bad in ["", "  ", "host 'x"] {
            assert_eq!(host_command(bad, None).unwrap_err().code(), "usage", "{bad:?}");
        }
    }
}
