//! One `redis-server` process: its addresses and its life cycle.

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

/// Folder of the append-only files, below the working directory of the server.
const APPEND_ONLY_FOLDER: &str = "appendonlydir";
/// The append-only file of a server before Redis 7.
const APPEND_ONLY_FILE: &str = "appendonly.aof";

/// Real `redis-server` on a loopback port, without persistence, in a private temporary directory.
///
/// Dropping it kills the process and removes the directory. If the test process dies without dropping it,
/// the server ends as well on Linux (`setpriv` of util-linux). On other systems it stays until it is killed manually.
#[derive(Debug)]
pub struct RedisServer {
    // Dropped before `dir`: the process must be gone when its directory is removed.
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

    /// Returns the settings of a plain server, to be changed before [`Builder::start`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns `redis://127.0.0.1:port/`, with the user and password that a client needs.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}/", self.settings.credentials(), self.port)
    }

    /// Returns `rediss://127.0.0.1:port/`, with credentials. The client must trust [`ca_file`](Self::ca_file).
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::tls`].
    #[must_use]
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.expect("RedisServer::builder().tls()");
        format!("rediss://{}127.0.0.1:{port}/", self.settings.credentials())
    }

    /// Returns `redis+unix:///path`, with credentials as query parameters.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::unix_socket`].
    #[must_use]
    pub fn unix_url(&self) -> String {
        let path = self.settings.socket_file(&self.dir).expect("RedisServer::builder().unix_socket()");
        format!("redis+unix://{}{}", path.display(), self.settings.credentials_query())
    }

    /// Returns the PEM file of the authority that signed the TLS certificate.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::tls`].
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.certificates().ca_file()
    }

    /// Returns the PEM files of a client certificate, signed by that authority, and of its key.
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

    /// Returns the plain TCP port. It does not change over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the TLS port, if there is one. It does not change over restarts.
    #[must_use]
    pub fn tls_port(&self) -> Option<u16> {
        self.tls_port
    }

    /// Returns the id of the current process. A restart changes it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// Returns the password of the default user, if the server was built with one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.settings.password.as_deref()
    }

    /// Returns the private directory of this server.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a view of database 0 that bypasses everything under test: as the default user, directly to the port.
    #[must_use]
    pub fn inspect(&self) -> &Inspector {
        &self.inspector
    }

    /// Returns a view of database `number`.
    #[must_use]
    pub fn inspect_database(&self, number: i64) -> Inspector {
        Inspector::new(self.port, self.password(), number)
    }

    /// Returns the log of the server since its last start.
    #[must_use]
    pub fn log(&self) -> String {
        self.process().log()
    }

    /// Returns `true` if the process exists, even if it is frozen.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process().is_running()
    }

    /// Freezes the process (SIGSTOP). Connections stay open and the kernel still accepts new ones, but no command is answered.
    /// After the return, the server executes no further command.
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Continues a frozen server (SIGCONT). It then executes the commands that have piled up in its sockets.
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Sets the wall clock of the server to `seconds` ahead of the real time, or behind it if negative. Blocks until the server's
    /// commands see it.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::own_clock`], or if it is running and does not answer.
    pub fn set_clock(&self, seconds: i64) {
        self.set_clock_millis(seconds * 1000);
    }

    /// Sets the wall clock as [`set_clock`](Self::set_clock) does, in milliseconds.
    ///
    /// # Panics
    /// Unless the server was built with [`Builder::own_clock`], or if it is running and does not answer.
    pub fn set_clock_millis(&self, millis: i64) {
        self.clock.as_ref().expect("RedisServer::builder().own_clock()").set(millis);
        // Valkey caches the time, so the next command might still see the old one.
        while self.is_running() && !self.inspector.clock_is_ahead_by(millis) {}
    }

    /// Kills the process at once (SIGKILL), as a crash would, even if it is frozen. Clients see a connection reset.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Ends the process gracefully (SIGTERM). Thaws it first.
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
        // A server with an append-only file would find its data here.
        let _ = self.remove_append_only_files();
        self.restart().await;
    }

    /// Starts again as [`restart`](Self::restart) does, with the append-only files that [`back_up`](Self::back_up) has copied.
    pub async fn restart_from_backup(&self) {
        self.kill();
        self.remove_append_only_files().expect("there are append-only files");
        let backup = self.dir.join("backup");
        let file = backup.join(APPEND_ONLY_FILE);
        let (from, to) = if file.exists() { (file, APPEND_ONLY_FILE) } else { (backup, APPEND_ONLY_FOLDER) };
        std::fs::rename(from, self.dir.join(to)).expect("there is a backup");
        self.restart().await;
    }

    fn remove_append_only_files(&self) -> std::io::Result<()> {
        std::fs::remove_file(self.dir.join(APPEND_ONLY_FILE))
            .or_else(|_| std::fs::remove_dir_all(self.dir.join(APPEND_ONLY_FOLDER)))
    }

    /// Copies the append-only files in their present state.
    pub fn back_up(&self) {
        let [file, folder, copies] = [APPEND_ONLY_FILE, APPEND_ONLY_FOLDER, "backup"].map(|name| self.dir.join(name));
        std::fs::create_dir(&copies).expect("this is the first backup");
        if file.exists() {
            std::fs::copy(file, copies.join(APPEND_ONLY_FILE)).expect("the file can be copied");
            return;
        }
        for file in std::fs::read_dir(folder).expect("there are append-only files") {
            let file = file.expect("the folder can be read");
            std::fs::copy(file.path(), copies.join(file.file_name())).expect("the file can be copied");
        }
    }

    /// Starts again on the same ports, with the same settings and the data on disk. Kills the process first if it still runs.
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
