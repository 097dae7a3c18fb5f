//! Name lookups in child processes that are slow or fail on demand.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::external::CC;
use crate::private_dir::PrivateDir;

const SOURCE: &str = include_str!("slow_names.c");

/// Replacement for `getaddrinfo` of the C library in child processes, which delays lookups or makes them fail on demand.
///
/// It needs Linux with glibc and a C compiler. The child process must be dynamically linked.
///
/// # Examples
/// ```no_run
/// use std::process::Command;
/// use std::time::Duration;
///
/// let names = redlock_tests::NameService::start();
/// let child = Command::new("getent").args(["ahosts", "localhost"]).envs(names.variables()).spawn();
/// names.delay(Duration::from_secs(3)); // from the next lookup on
/// names.recover();
/// println!("{} lookups were slow", names.disturbed());
/// # drop(child);
/// ```
#[derive(Debug)]
pub struct NameService(PrivateDir);

impl NameService {
    /// Compiles the replacement. It changes no lookup before [`delay`](Self::delay) or [`fail`](Self::fail).
    ///
    /// # Panics
    /// If there is no C compiler.
    #[must_use]
    pub fn start() -> Self {
        let service = Self(PrivateDir::create());
        let source = service.0.join("names.c");
        fs::write(&source, SOURCE).expect("the source is written");
        let mut compiler = Command::new(CC.path());
        compiler.args(["-shared", "-fPIC", "-o"]).arg(service.library()).arg(source).arg("-ldl").stdin(Stdio::null());
        let output = compiler.output().unwrap_or_else(|error| CC.cannot_run(&error));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        service.recover();
        service
    }

    /// Environment variables for a child process, which load the replacement.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", self.library().into()), ("REDLOCK_NAMES", self.settings().into())]
    }

    /// Delays every lookup that begins from now on.
    pub fn delay(&self, delay: Duration) {
        self.set(delay, false);
    }

    /// Makes every lookup that begins from now on fail after `delay`.
    pub fn fail(&self, delay: Duration) {
        self.set(delay, true);
    }

    /// Stops the delays and failures. Lookups that are already delayed still end late.
    pub fn recover(&self) {
        self.set(Duration::ZERO, false);
    }

    /// Returns the number of lookups that were delayed or have failed.
    #[must_use]
    pub fn disturbed(&self) -> u64 {
        fs::metadata(self.settings().with_extension("log")).map_or(0, |log| log.len())
    }

    fn set(&self, delay: Duration, fails: bool) {
        // Renamed into its place, so that no process reads half of it.
        let new = self.0.join("new");
        fs::write(&new, format!("{} {}\n", delay.as_millis(), u8::from(fails))).expect("the settings are written");
        fs::rename(new, self.settings()).expect("the settings are replaced");
    }

    fn library(&self) -> PathBuf {
        self.0.join("names.so")
    }

    fn settings(&self) -> PathBuf {
        self.0.join("names")
    }
}
