//! The reference host as a program that the tests of this crate spawn.

use std::process::ExitCode;

fn main() -> ExitCode {
    kitport_host::main_entry(std::env::args_os())
}
