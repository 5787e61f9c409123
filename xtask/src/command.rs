//! Running other programs: in the workspace's root, shown before they run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    // Set by `cargo run`; the built-in one serves a binary that is started by hand.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A program that runs in the workspace's root.
pub(crate) fn program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs this.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(arguments);
    command
}

/// Shows a command, runs it, and fails where it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let name = command.get_program().to_owned();
    let status = command.status().with_context(|| format!("{} could not be started", name.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", short(&name));
    }
    Ok(())
}

/// What a command writes to stdout, where it can be started and succeeds.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy().into_owned();
        Some(format!("{}={}", name.display(), quoted(&value)))
    });
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    environment.chain([short(command.get_program())]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(char::is_whitespace) { format!("'{word}'") } else { word.to_owned() }
}

fn short(program: &OsStr) -> String {
    Path::new(program).file_stem().unwrap_or(program).to_string_lossy().into_owned()
}
