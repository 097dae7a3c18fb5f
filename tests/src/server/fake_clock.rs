//! Separate wall clock for one server, by libfaketime.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::external::LIBFAKETIME;

/// File that libfaketime reads at every look at the clock. It contains the number of seconds by which the clock is ahead.
#[derive(Clone, Debug)]
pub(super) struct FakeClock(PathBuf);

/// Path of the library as the Linux distributions install it.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let places = [&format!("lib/{triplet}"), "lib64", "lib"].map(|lib| format!("/usr/{lib}/faketime/libfaketime.so.1"));
    LIBFAKETIME.file(&places.map(PathBuf::from))
});

impl FakeClock {
    /// Creates the clock in `file`, at first without a difference.
    pub(super) fn create(file: PathBuf) -> Self {
        let clock = Self(file);
        clock.set(0);
        clock
    }

    /// Sets the clock to `millis` milliseconds ahead of the real time, or behind it if negative. After the return, every command sees the
    /// new time.
    pub(super) fn set(&self, millis: i64) {
        // Renames the file into its place: a reader could take half of a number for a complete one.
        let new = self.0.with_extension("new");
        let (sign, millis) = (if millis < 0 { '-' } else { '+' }, millis.unsigned_abs());
        let text = format!("{sign}{}.{:03}\n", millis / 1000, millis % 1000);
        fs::write(&new, text).expect("the clock is written");
        fs::rename(&new, &self.0).expect("the clock is set");
    }

    /// Makes the program of `command` use this clock. Timers, which measure durations, are not affected.
    pub(super) fn install(&self, command: &mut Command) {
        // Loads the allocator of the C library before the allocator of the server.
        // The server's allocator asks for the time while libfaketime needs memory to start, so the two would wait for each other.
        command.env("LD_PRELOAD", format!("{} libc.so.6", LIBRARY.display()));
        command.env_remove("FAKETIME").env("FAKETIME_TIMESTAMP_FILE", &self.0);
        command.env("FAKETIME_NO_CACHE", "1");
        // The second variable is the name in older versions.
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
    }
}
