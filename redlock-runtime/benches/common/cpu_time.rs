//! CPU time of this process on Linux.

use std::fs;
use std::time::Duration;

/// Returns the CPU time of all threads of this process so far. Servers are separate processes and not included.
pub(crate) fn cpu_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").expect("Linux");
    let nanos = threads.filter_map(|thread| {
        // A thread may exit before its file is read.
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}
