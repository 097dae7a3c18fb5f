//! What this process uses, as Linux counts it.

use std::fs;
use std::time::Duration;

/// The time for which its threads have run so far.
pub(crate) fn cpu_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").expect("Linux");
    let nanos = threads.filter_map(|thread| {
        // A thread may end while one looks.
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// The memory that it occupies.
pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its resident memory");
    let kibibytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kibibytes.expect("a number") * 1024
}
