//! Why a host could not be started: each kind names what is missing.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a host could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    MissingProgram {
        /// The program, as it was asked for.
        program: PathBuf,
        /// The `PATH` that was searched; none where the program was a path.
        searched: Option<String>,
    },
    /// There is no such working folder.
    MissingFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The program is there, but it is not allowed to run, or is of no kind that could.
    NotExecutable {
        /// The program, as it was asked for.
        program: PathBuf,
    },
    /// The program is a script whose interpreter is not there.
    MissingInterpreter {
        /// The script, as it was asked for.
        program: PathBuf,
    },
    /// The system refused, for a reason of its own.
    Other {
        /// The program, as it was asked for.
        program: PathBuf,
        /// The system's reason.
        kind: io::ErrorKind,
    },
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::MissingProgram { program, searched: Some(searched) } => {
                write!(f, "the program {} was not found; PATH is {searched:?}", program.display())
            }
            SpawnError::MissingProgram { program, searched: None } => {
                write!(f, "the program {} does not exist", program.display())
            }
            SpawnError::MissingFolder { folder } => {
                write!(f, "the working folder {} does not exist or is no folder", folder.display())
            }
            SpawnError::NotExecutable { program } => write!(f, "the program {} can't be run", program.display()),
            SpawnError::MissingInterpreter { program } => {
                write!(f, "the program {} is a script whose interpreter was not found", program.display())
            }
            SpawnError::Other { program, kind } => {
                write!(f, "the program {} could not be started: {kind}", program.display())
            }
        }
    }
}

impl Error for SpawnError {}
