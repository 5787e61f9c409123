//! What to start: program, arguments, environment, working folder.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::redaction::Redactor;
use super::super::spawn_error::SpawnError;

/// An Electron app's own variable: it would make every Electron program that the host starts behave as Node.
const NOT_INHERITED: &str = "ELECTRON_RUN_AS_NODE";

/// The command that starts a host.
///
/// A program that is a bare name is searched in the host's `PATH`. One with a folder in it is a path, and a relative path
/// starts at the folder of this app's process, not at the host's working folder.
#[derive(Clone, PartialEq, Eq)]
pub struct HostCommand {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    env_clear: bool,
    cwd: Option<PathBuf>,
}

impl HostCommand {
    /// A command without arguments, with this app's environment and working folder.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        HostCommand {
            program: PathBuf::from(program.as_ref()),
            args: Vec::new(),
            env: Vec::new(),
            env_clear: false,
            cwd: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable, beside those that are inherited.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets variables, beside those that are inherited.
    #[must_use]
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        self.env
            .extend(variables.into_iter().map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned())));
        self
    }

    /// Whether the host's environment is only what was set here, without this app's.
    #[must_use]
    pub fn env_clear(mut self, clear: bool) -> Self {
        self.env_clear = clear;
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl AsRef<Path>) -> Self {
        self.cwd = Some(folder.as_ref().to_owned());
        self
    }

    /// The program, as it was given.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The working folder, where one was set.
    pub fn folder(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// What masks the secrets that this command hands to the host.
    pub(in super::super) fn redactor(&self) -> Redactor {
        let own = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let inherited = std::env::vars_os().filter(|_| !self.env_clear);
        let variables = inherited.chain(own);
        Redactor::for_variables(
            variables.map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())),
        )
    }

    /// Finds what the system would report under another name.
    pub(super) fn check(&self) -> Result<(), SpawnError> {
        match &self.cwd {
            Some(folder) if !folder.is_dir() => Err(SpawnError::MissingFolder { folder: folder.clone() }),
            _ => Ok(()),
        }
    }

    pub(super) fn to_std(&self) -> Command {
        let mut command = match self.is_path() {
            true => Command::new(std::path::absolute(&self.program).unwrap_or_else(|_| self.program.clone())),
            false => Command::new(&self.program),
        };
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.env_clear {
            command.env_clear();
        } else {
            command.env_remove(NOT_INHERITED);
        }
        for (name, value) in &self.env {
            command.env(name, value);
        }
        if let Some(folder) = &self.cwd {
            command.current_dir(folder);
        }
        command
    }

    /// Says what is missing, out of what the system said.
    pub(super) fn explain(&self, error: &io::Error) -> SpawnError {
        let program = self.program.clone();
        match error.kind() {
            // It may have gone between the check and the start.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if self.check().is_err() => {
                self.check().expect_err("it was one just now, and a folder that comes back is none either")
            }
            io::ErrorKind::NotFound if self.is_found() => SpawnError::MissingInterpreter { program },
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                SpawnError::MissingProgram { program, searched: (!self.is_path()).then(|| self.path_variable()) }
            }
            io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program },
            _ if error.raw_os_error() == Some(EXEC_FORMAT) => SpawnError::NotExecutable { program },
            kind => SpawnError::Other { program, kind },
        }
    }

    fn is_path(&self) -> bool {
        self.program.components().count() > 1 || self.program.is_absolute()
    }

    fn is_found(&self) -> bool {
        if self.is_path() {
            return self.program.is_file();
        }
        std::env::split_paths(&self.path_variable()).any(|folder| folder.join(&self.program).is_file())
    }

    /// The `PATH` that the host's program is searched in.
    fn path_variable(&self) -> String {
        let is_path = |name: &OsStr| match cfg!(windows) {
            true => name.eq_ignore_ascii_case("PATH"),
            false => name == "PATH",
        };
        let own = self.env.iter().rev().find(|(name, _)| is_path(name)).map(|(_, value)| value.clone());
        let inherited = || (!self.env_clear).then(|| std::env::var_os("PATH")).flatten();
        own.or_else(inherited).unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// `ENOEXEC`, or `ERROR_BAD_EXE_FORMAT`.
const EXEC_FORMAT: i32 = if cfg!(windows) { 193 } else { 8 };

impl fmt::Debug for HostCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secret, and so may be arguments.
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("HostCommand")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &names)
            .field("env_clear", &self.env_clear)
            .field("cwd", &self.cwd)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value() {
        let command = HostCommand::new("host").arg("--token=hush").env("A_NAME", "hush").cwd("/x");
        let shown = format!("{command:?}");
        assert!(!shown.contains("hush") && shown.contains("A_NAME") && shown.contains("/x"), "{shown}");
    }

    #[test]
    fn a_missing_working_folder_is_found_before_the_start() {
        let command = HostCommand::new("sh").cwd("/no/such/folder");
        assert_eq!(command.check(), Err(SpawnError::MissingFolder { folder: "/no/such/folder".into() }));
    }

    #[test]
    fn a_relative_path_starts_at_this_process_s_folder() {
        let here = std::env::current_dir().unwrap();
        let command = HostCommand::new("./bin/host").cwd("/").to_std();
        assert_eq!(Path::new(command.get_program()), here.join("bin/host"));
        assert_eq!(HostCommand::new("host").to_std().get_program(), "host");
    }
}
