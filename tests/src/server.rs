//! One `redis-server` process: its addresses and its life.

mod builder;
mod certificates;
mod fake_clock;
mod process;
mod spawner;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::inspector::Inspector;
use crate::private_dir::PrivateDir;

pub use builder::Builder;
use builder::Settings;
pub use certificates::Certificates;
use fake_clock::FakeClock;
use process::{PortTaken, Process};

/// A real `redis-server` on a loopback port, without persistence, in a private temporary directory.
///
/// Dropping it kills the process it started and removes the directory. Should the test process die without dropping,
/// the servers follow it on Linux (`setpriv` of util-linux); elsewhere they stay until killed by hand.
#[derive(Debug)]
pub struct RedisServer {
    // Before `dir`: the process must be gone when its directory is removed.
    process: Mutex<Process>,
    inspector: Inspector,
    settings: Settings,
    port: u16,
    tls_port: Option<u16>,
    clock: Option<FakeClock>,
    dir: PrivateDir,
}

impl RedisServer {
    /// Starts a plain server: no password, no TLS, no unix socket.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Starts with the settings of a plain server, to be changed before [`Builder::start`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `redis://127.0.0.1:port/`, with the user and password a client needs.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}/", self.settings.credentials(), self.port)
    }

    /// `rediss://127.0.0.1:port/`, with credentials; the client must trust [`ca_file`](Self::ca_file).
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::tls`].
    #[must_use]
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.expect("RedisServer::builder().tls()");
        format!("rediss://{}127.0.0.1:{port}/", self.settings.credentials())
    }

    /// `redis+unix:///path`, with credentials as query parameters.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::unix_socket`].
    #[must_use]
    pub fn unix_url(&self) -> String {
        let path = self.settings.socket_file(&self.dir).expect("RedisServer::builder().unix_socket()");
        format!("redis+unix://{}{}", path.display(), self.settings.credentials_query())
    }

    /// PEM file of the authority that signed the TLS certificate.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::tls`].
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.certificates().ca_file()
    }

    /// PEM files with the certificate of a client, signed by that authority, and its key.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::tls`].
    #[must_use]
    pub fn client_files(&self) -> [PathBuf; 2] {
        self.certificates().client_files()
    }

    fn certificates(&self) -> &Certificates {
        self.settings.certificates.as_ref().expect("RedisServer::builder().tls()")
    }

    /// The plain TCP port; the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The TLS port, if there is one; the same over restarts.
    #[must_use]
    pub fn tls_port(&self) -> Option<u16> {
        self.tls_port
    }

    /// The process id of the current process: another one after a restart.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// The password of the default user, if the server was built with one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.settings.password.as_deref()
    }

    /// The private directory of this server.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Looks into database 0, past everything under test: as the default user, straight to the port.
    #[must_use]
    pub fn inspect(&self) -> &Inspector {
        &self.inspector
    }

    /// Looks into database `number`.
    #[must_use]
    pub fn inspect_database(&self, number: i64) -> Inspector {
        Inspector::new(self.port, self.password(), number)
    }

    /// What the server has logged since it was last started.
    #[must_use]
    pub fn log(&self) -> String {
        self.process().log()
    }

    /// Whether the process exists; a frozen one does.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process().is_running()
    }

    /// Stops the process in its tracks (SIGSTOP). Connections stay open, the kernel goes on accepting new ones, and
    /// nobody is answered. On return not one more command will run.
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Lets a frozen server go on (SIGCONT): it then executes what has piled up in its sockets.
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Sets the wall clock of the server to `seconds` ahead of the real time; behind, if negative. Blocks until the server's
    /// commands see it.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::own_clock`], or when it runs and does not answer.
    pub fn set_clock(&self, seconds: i64) {
        self.set_clock_millis(seconds * 1000);
    }

    /// As [`set_clock`](Self::set_clock), in milliseconds.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::own_clock`], or when it runs and does not answer.
    pub fn set_clock_millis(&self, millis: i64) {
        self.clock.as_ref().expect("RedisServer::builder().own_clock()").set(millis);
        // Valkey keeps the time that it has read for a while, so that the next command might still see the old one.
        while self.is_running() && !self.inspector.clock_is_ahead_by(millis) {}
    }

    /// Ends the process at once (SIGKILL), as a crash would, also while frozen. Clients see their connections reset.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Ends the process in good order (SIGTERM), thawing it first.
    pub async fn stop(&self) {
        let ended = {
            let process = self.process();
            process.terminate();
            process.ended()
        };
        ended.await;
        self.process().kill();
    }

    /// Starts again as [`restart`](Self::restart) does, without the data.
    pub async fn restart_empty(&self) {
        self.kill();
        // Where a server that appends to files would find it.
        let _ = std::fs::remove_dir_all(self.dir.join("appendonlydir"));
        self.restart().await;
    }

    /// Starts again as [`restart`](Self::restart) does, with the append-only files that [`back_up`](Self::back_up) has copied.
    pub async fn restart_from_backup(&self) {
        self.kill();
        std::fs::remove_dir_all(self.dir.join("appendonlydir")).expect("there are append-only files");
        std::fs::rename(self.dir.join("backup"), self.dir.join("appendonlydir")).expect("there is a backup");
        self.restart().await;
    }

    /// Copies the append-only files as they are now.
    pub fn back_up(&self) {
        let [files, copies] = ["appendonlydir", "backup"].map(|name| self.dir.join(name));
        std::fs::create_dir(&copies).expect("this is the first backup");
        for file in std::fs::read_dir(files).expect("there are append-only files") {
            let file = file.expect("the folder can be read");
            std::fs::copy(file.path(), copies.join(file.file_name())).expect("the file can be copied");
        }
    }

    /// Starts again on the same ports with the same settings and what data it has on disk, killing the process if it
    /// still runs.
    pub async fn restart(&self) {
        self.kill();
        let started = self.settings.start(&self.dir, self.clock.as_ref()).await;
        let process = started.unwrap_or_else(|PortTaken(log)| panic!("port {} was taken meanwhile:\n{log}", self.port));
        *self.process() = process;
        self.settings.wait_until_usable(&self.inspector).await;
    }

    pub(crate) fn credentials(&self) -> String {
        self.settings.credentials()
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
