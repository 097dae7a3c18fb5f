//! Settings of one server, and its configuration file.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use super::fake_clock::FakeClock;
use super::process::{PortTaken, Process};
use super::{Certificates, RedisServer};
use crate::inspector::Inspector;
use crate::private_dir::PrivateDir;
use crate::{PATIENCE, eventually_eq, port};

/// Number of ports that are tried. A try fails only if another process takes the port first.
const TRIES: usize = 10;

/// Settings of a [`RedisServer`] before its start.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    settings: Settings,
}

#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(super) struct Settings {
    pub(super) password: Option<String>,
    user: Option<(String, String)>,
    unix_socket: bool,
    tls: bool,
    pub(super) certificates: Option<Certificates>,
    asks_for_certificates: bool,
    is_replica: bool,
    pub(super) is_sentinel: bool,
    has_own_clock: bool,
    directives: Vec<String>,
}

impl Builder {
    /// Sets the password of the default user (`requirepass`). Default: none.
    pub fn password(mut self, password: &str) -> Self {
        self.settings.password = Some(password.to_owned());
        self.config("requirepass", &[password])
    }

    /// Adds an ACL user (Redis 6) with the given rules, such as `~* &* +@all`. The URLs then contain this user.
    ///
    /// The default user does not change. Set [`password`](Self::password) as well if clients without credentials must fail.
    pub fn user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.settings.user = Some((name.to_owned(), password.to_owned()));
        let secret = format!(">{password}");
        let values: Vec<&str> = [name, "on", &secret].into_iter().chain(rules.split_whitespace()).collect();
        self.config("user", &values)
    }

    /// Also listens on a unix socket in the private directory; see [`RedisServer::unix_url`]. Default: off.
    pub fn unix_socket(mut self) -> Self {
        self.settings.unix_socket = true;
        self
    }

    /// Also listens on a TLS port; see [`RedisServer::tls_url`]. `openssl` makes a certificate for `127.0.0.1` and `localhost` now.
    /// Default: off.
    pub fn tls(mut self) -> Self {
        self.settings.tls = true;
        self
    }

    /// Enables TLS as [`tls`](Self::tls) does, with certificates that other servers share.
    pub fn tls_with(mut self, certificates: &Certificates) -> Self {
        self.settings.certificates = Some(certificates.clone());
        self.tls()
    }

    /// Enables TLS as [`tls`](Self::tls) does, and refuses clients without a certificate; see [`RedisServer::client_files`]. Default:
    /// off.
    pub fn mutual_tls(mut self) -> Self {
        self.settings.asks_for_certificates = true;
        self.tls()
    }

    /// Starts as a read-only replica of `master`. [`start`](Self::start) returns after the first synchronisation.
    pub fn replica_of(mut self, master: &RedisServer) -> Self {
        self.settings.is_replica = true;
        if let Some(password) = master.password() {
            self = self.config("masterauth", &[password]);
        }
        self.config("replicaof", &["127.0.0.1", &master.port().to_string()])
    }

    /// Starts as a Sentinel, which watches `master` under the name `master` and serves no keys.
    pub fn sentinel_of(self, master: &RedisServer) -> Self {
        self.sentinel().config("sentinel", &["monitor", "master", "127.0.0.1", &master.port().to_string(), "1"])
    }

    /// Starts as a Sentinel, which watches the masters of the `sentinel monitor` directives and serves no keys.
    pub fn sentinel(mut self) -> Self {
        self.settings.is_sentinel = true;
        self
    }

    /// Gives the server a separate wall clock; see [`RedisServer::set_clock`]. Linux only, by libfaketime. Default: off.
    pub fn own_clock(mut self) -> Self {
        self.settings.has_own_clock = true;
        self
    }

    /// Makes the server answer `unknown command` to `command`, like an older version: `HELLO` for Redis 5.
    pub fn without_command(self, command: &str) -> Self {
        self.config("rename-command", &[command, ""])
    }

    /// Adds any other directive of the configuration file, with its values. The values are quoted here.
    pub fn config(mut self, directive: &str, values: &[&str]) -> Self {
        self.settings.directives.push(line(directive, values));
        self
    }

    /// Starts the process and returns after it accepts connections.
    ///
    /// # Panics
    /// If `redis-server` is missing, refuses a setting (the message contains its log) or is not ready within
    /// [`PATIENCE`]. The environment variable `REDIS_SERVER` names another binary.
    pub async fn start(mut self) -> RedisServer {
        let dir = PrivateDir::create();
        if self.settings.tls && self.settings.certificates.is_none() {
            self.settings.certificates = Some(Certificates::generate().await);
        }
        let clock = self.settings.has_own_clock.then(|| FakeClock::create(dir.join("clock")));
        let (process, port, tls_port) = self.settings.launch(&dir, clock.as_ref()).await;
        let inspector = Inspector::new(port, self.settings.password.as_deref(), 0);
        self.settings.wait_until_usable(&inspector).await;
        RedisServer { process: Mutex::new(process), inspector, settings: self.settings, port, tls_port, clock, dir }
    }
}

impl Settings {
    pub(super) fn file(dir: &PrivateDir) -> PathBuf {
        dir.join("redis.conf")
    }

    pub(super) fn socket_file(&self, dir: &PrivateDir) -> Option<PathBuf> {
        self.unix_socket.then(|| dir.join("redis.sock"))
    }

    /// Returns `user:password@` for a URL, or an empty string.
    pub(super) fn credentials(&self) -> String {
        match (&self.user, &self.password) {
            (Some((name, password)), _) => {
                format!("{}:{}@", percent_encoded(name), percent_encoded(password))
            }
            (None, Some(password)) => format!(":{}@", percent_encoded(password)),
            (None, None) => String::new(),
        }
    }

    /// Returns `?user=..&pass=..`, the form of `redis+unix` URLs, or an empty string.
    pub(super) fn credentials_query(&self) -> String {
        match (&self.user, &self.password) {
            (Some((name, password)), _) => {
                format!("?user={}&pass={}", percent_encoded(name), percent_encoded(password))
            }
            (None, Some(password)) => format!("?pass={}", percent_encoded(password)),
            (None, None) => String::new(),
        }
    }

    /// Waits until a started process is usable. A replica is usable after it has received its master's data.
    pub(super) async fn wait_until_usable(&self, inspector: &Inspector) {
        if self.is_replica {
            let up = Some("up".to_owned());
            eventually_eq(PATIENCE, "the replica is in sync", up, async || {
                inspector.info("replication", "master_link_status").await
            })
            .await;
        }
    }

    async fn launch(&self, dir: &PrivateDir, clock: Option<&FakeClock>) -> (Process, u16, Option<u16>) {
        let mut last = String::new();
        for _ in 0..TRIES {
            let port = port::free();
            let tls_port = self.tls.then(port::free);
            fs::write(Self::file(dir), self.text(dir, port, tls_port)).expect("redis.conf is written");
            match self.start(dir, clock).await {
                Ok(process) => return (process, port, tls_port),
                Err(PortTaken(log)) => last = log,
            }
        }
        panic!("{TRIES} free ports in a row were taken by others:\n{last}")
    }

    pub(super) async fn start(&self, dir: &PrivateDir, clock: Option<&FakeClock>) -> Result<Process, PortTaken> {
        let mode: &[&str] = if self.is_sentinel { &["--sentinel"] } else { &[] };
        Process::start(&Self::file(dir), mode, clock).await
    }

    fn text(&self, dir: &PrivateDir, port: u16, tls_port: Option<u16>) -> String {
        let mut text = String::new();
        let mut add = |directive: &str, value: &str| text.push_str(&line(directive, &[value]));
        add("bind", "127.0.0.1");
        add("port", &port.to_string());
        add("dir", &dir.path().to_string_lossy());
        add("daemonize", "no");
        // Logs to stdout, at a level that includes the line about readiness.
        add("logfile", "");
        add("loglevel", "notice");
        if self.is_sentinel {
            return text + &self.directives.concat();
        }
        add("save", "");
        add("appendonly", "no");
        // Our replicas must not wait five seconds for other replicas to join.
        add("repl-diskless-sync", "yes");
        add("repl-diskless-sync-delay", "0");
        if let Some(socket) = self.socket_file(dir) {
            add("unixsocket", &socket.to_string_lossy());
        }
        if let Some(tls_port) = tls_port {
            add("tls-port", &tls_port.to_string());
            let files = self.certificates.iter().flat_map(Certificates::directives);
            files.for_each(|(directive, file)| add(directive, &file.to_string_lossy()));
            add("tls-auth-clients", if self.asks_for_certificates { "yes" } else { "no" });
        }
        text + &self.directives.concat()
    }
}

/// Formats one line of the configuration file. In its quoted form, only quotes and backslashes are special.
fn line(directive: &str, values: &[&str]) -> String {
    let mut line = directive.to_owned();
    for value in values {
        let _ = write!(line, " \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    }
    line + "\n"
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = if byte.is_ascii_alphanumeric() {
            write!(encoded, "{}", char::from(byte))
        } else {
            write!(encoded, "%{byte:02X}")
        };
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_credentials_encoded() {
        assert_eq!(line("rename-command", &["HELLO", ""]), "rename-command \"HELLO\" \"\"\n");
        assert_eq!(line("requirepass", &["a \"b\\"]), "requirepass \"a \\\"b\\\\\"\n");
        assert_eq!(RedisServer::builder().password("p@s:s").settings.credentials(), ":p%40s%3As@");
        let builder = RedisServer::builder().password("x").user("me", "pw", "+@all");
        assert_eq!(builder.settings.credentials(), "me:pw@");
        assert_eq!(builder.settings.credentials_query(), "?user=me&pass=pw");
    }
}
