//! `host`: the reference host, so that one program is all a demo or a test needs.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Names a file that the host adds its process id to: the demo kills it by that.
pub(crate) const PID_FILE: &str = "KITPORT_HOST_PID_FILE";

/// Becomes the reference host.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    if let Some(file) = std::env::var_os(PID_FILE)
        && let Err(error) = add_pid(&file)
    {
        eprintln!("kitport host: the file for the process id can't be written: {error}");
        return ExitCode::FAILURE;
    }
    kitport_host::main_entry(std::iter::once(OsString::from("kitport host")).chain(arguments))
}

fn add_pid(file: &std::ffi::OsStr) -> std::io::Result<()> {
    let mut file = std::fs::File::options().append(true).create(true).open(file)?;
    // In one write, so that a reader finds whole lines.
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}
