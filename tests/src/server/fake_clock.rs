//! A wall clock of its own for one server, by libfaketime.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::external::LIBFAKETIME;

/// The file that libfaketime reads at every look at the clock: by how many seconds it is ahead.
#[derive(Clone, Debug)]
pub(super) struct FakeClock(PathBuf);

/// Where the packages of the distributions put it.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let places = [&format!("lib/{triplet}"), "lib64", "lib"].map(|lib| format!("/usr/{lib}/faketime/libfaketime.so.1"));
    LIBFAKETIME.file(&places.map(PathBuf::from))
});

impl FakeClock {
    /// In `file`, and right at first.
    pub(super) fn create(file: PathBuf) -> Self {
        let clock = Self(file);
        clock.set(0);
        clock
    }

    /// Sets it to `millis` milliseconds ahead of the real time; behind, if negative. On return every command sees it.
    pub(super) fn set(&self, millis: i64) {
        // Renamed into its place, as half of a number is a number, too.
        let new = self.0.with_extension("new");
        let (sign, millis) = (if millis < 0 { '-' } else { '+' }, millis.unsigned_abs());
        let text = format!("{sign}{}.{:03}\n", millis / 1000, millis % 1000);
        fs::write(&new, text).expect("the clock is written");
        fs::rename(&new, &self.0).expect("the clock is set");
    }

    /// Makes the program of `command` run by it. Timers, which count the time that passes, stay as they are.
    pub(super) fn install(&self, command: &mut Command) {
        // With the allocator of the C library before the one that the server brings: that one asks for the time when
        // libfaketime needs memory to begin, and neither gets on.
        command.env("LD_PRELOAD", format!("{} libc.so.6", LIBRARY.display()));
        command.env_remove("FAKETIME").env("FAKETIME_TIMESTAMP_FILE", &self.0);
        command.env("FAKETIME_NO_CACHE", "1");
        // The second is what older versions call it.
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
    }
}
