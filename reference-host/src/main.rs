//! The program of the reference host; all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kitport_host::main_entry(std::env::args_os())
}
