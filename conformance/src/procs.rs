//! What a process holds, as Linux tells it: children, threads, descriptors; and who else carries a mark.

use std::fs;
use std::path::Path;

/// The variable by which a test's own processes are found, whoever started them.
pub const MARK: &str = "KITPORT_TEST_MARK";

/// Processes, zombies left out, whose environment has the mark with this value.
pub fn marked(value: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={value}");
    all()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()))
        })
        .collect()
}

/// The children of this process, zombies included.
pub fn children() -> Vec<u32> {
    let own = std::process::id();
    all().filter(|pid| parent_of(*pid) == Some(own)).collect()
}

/// Descriptors that are open in this process.
pub fn descriptors() -> usize {
    count("/proc/self/fd")
}

/// Threads of this process.
pub fn threads() -> usize {
    count("/proc/self/task")
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn count(folder: impl AsRef<Path>) -> usize {
    fs::read_dir(folder).expect("a process sees itself").count()
}
