//! What the system tells of a process and of the machine: cores, CPU time, memory. Linux tells all of it; elsewhere
//! processes are not bound to cores and memory is not known.

use std::time::Duration;

/// The core that reads and the one that feeds: the first and the last of those that this process may use.
pub(crate) fn cores() -> Option<(usize, usize)> {
    platform::cores()
}

/// Binds this process to a core.
pub(crate) fn bind(core: usize) {
    platform::bind(core);
}

/// User and system time of this process, all its threads.
pub(crate) fn cpu_time() -> Duration {
    platform::cpu_time()
}

/// The memory that this process has now.
pub(crate) fn resident_bytes() -> Option<u64> {
    platform::status_bytes("VmRSS:")
}

/// The most memory that this process had since [`forget_peak`].
pub(crate) fn peak_bytes() -> Option<u64> {
    platform::status_bytes("VmHWM:")
}

/// Begins to look for the most memory anew.
pub(crate) fn forget_peak() {
    platform::forget_peak();
}

/// The machine in a few words.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plural = if cores == 1 { "" } else { "s" };
    format!("{cores} core{plural}, {}", platform::system())
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs;
    use std::time::Duration;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn cores() -> Option<(usize, usize)> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let first = cores.next()?;
        Some((first, cores.next_back().unwrap_or(first)))
    }

    pub(super) fn bind(core: usize) {
        let mut one = CpuSet::new();
        one.set(core);
        // Called before there is a second thread: those that come later inherit it. Not allowed: the figures are then
        // of more than one core.
        let _ = sched_setaffinity(None, &one);
    }

    pub(super) fn cpu_time() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
    }

    pub(super) fn status_bytes(field: &str) -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    }

    pub(super) fn forget_peak() {
        let _ = fs::write("/proc/self/clear_refs", "5");
    }

    pub(super) fn system() -> String {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        // The numbers alone: what a distribution hangs on says nothing about the figures.
        let numbers: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        format!("Linux {}", numbers.trim_end_matches('.'))
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::time::Duration;

    pub(super) fn cores() -> Option<(usize, usize)> {
        None
    }

    pub(super) fn bind(_: usize) {}

    pub(super) fn cpu_time() -> Duration {
        #[cfg(unix)]
        {
            use rustix::time::{ClockId, clock_gettime};
            let time = clock_gettime(ClockId::ProcessCPUTime);
            Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
        }
        #[cfg(not(unix))]
        Duration::ZERO
    }

    pub(super) fn status_bytes(_: &str) -> Option<u64> {
        None
    }

    pub(super) fn forget_peak() {}

    pub(super) fn system() -> String {
        std::env::consts::OS.to_owned()
    }
}
