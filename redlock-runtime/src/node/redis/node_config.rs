//! Settings of one node that go beyond a URL.

use super::address_map::AddressMap;
use super::credentials::{Credentials, CredentialsSource, SentinelLogin};
#[cfg(feature = "tls")]
use super::tls_settings::{Pem, TlsSettings};
use std::borrow::Cow;
use std::fmt;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::time::Duration;

/// One node: its URL, and further settings of the connection.
///
/// [`LockManagerBuilder::node`](crate::LockManagerBuilder::node) takes a `NodeConfig` or a plain URL.
///
/// Operators can set these parameters in the URL, for example in `REDLOCK_NODES`:
///
/// | parameter | method |
/// |---|---|
/// | `connect_timeout_ms=5000` | [`connect_timeout`](Self::connect_timeout) |
/// | `password_file=/run/secrets/redis` | [`password_file`](Self::password_file) |
/// | `ca_file=/etc/redis/ca.pem` | [`ca_file`](Self::ca_file) |
/// | `cert_file=..&key_file=..` | [`client_certificate_files`](Self::client_certificate_files) |
/// | `server_name=redis.internal` | [`server_name`](Self::server_name) |
/// | `confirm_replicas=1` | [`confirm_replicas`](Self::confirm_replicas) |
/// | `map=10.0.0.5:6379/127.0.0.1:7001` | [`map_address`](Self::map_address) |
/// | `sentinel_user=..&sentinel_password_file=..` | [`sentinel_credentials`](Self::sentinel_credentials) |
///
/// A method overrides the parameter of the URL. `Debug` shows neither.
///
/// # Examples
/// ```
/// # use redlock_runtime::{Credentials, LockError, LockManager, NodeConfig};
/// # use std::time::Duration;
/// # async fn token() -> Result<String, std::io::Error> { Ok(String::new()) }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let node = NodeConfig::new("redis://orders@10.0.0.1")
///     .credentials(|| async { Ok(Credentials::password(token().await?)) })
///     .connect_timeout(Duration::from_secs(5));
/// let manager = LockManager::builder().node(node).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a configuration does nothing until a manager is built with it"]
pub struct NodeConfig {
    pub(super) url: String,
    pub(super) access: Access,
}

/// Settings beside the address.
#[derive(Clone, Default)]
pub(super) struct Access {
    pub(super) credentials: Option<CredentialsSource>,
    pub(super) connect_timeout: Option<Duration>,
    /// Number of replicas that must confirm each lease.
    pub(super) confirm_replicas: Option<u32>,
    /// The login at the Sentinels that name the server.
    pub(super) sentinel: Option<SentinelLogin>,
    /// Reachable addresses of cluster members, masters and Sentinels that announce other ones.
    pub(super) addresses: AddressMap,
    #[cfg(feature = "tls")]
    pub(super) tls: TlsSettings,
}

impl Access {
    /// Returns these settings, completed by those of `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            credentials: self.credentials.or(other.credentials),
            connect_timeout: self.connect_timeout.or(other.connect_timeout),
            confirm_replicas: self.confirm_replicas.or(other.confirm_replicas),
            sentinel: self.sentinel.or(other.sentinel),
            addresses: self.addresses.or(other.addresses),
            #[cfg(feature = "tls")]
            tls: self.tls.or(other.tls),
        }
    }
}

impl Access {
    /// Returns the fault, if any, as the rest of a sentence that begins with "the URL of a node". `asks_for_tls`: the URL has TLS.
    pub(super) fn fault(&self, asks_for_tls: bool) -> Option<&'static str> {
        if self.connect_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Some("has a timeout of zero: every connection takes some time");
        }
        if self.sentinel.as_ref().is_some_and(SentinelLogin::lacks_password) {
            return Some("has a user for Sentinels and no password: set both");
        }
        #[cfg(feature = "tls")]
        let of_tls = self.tls.fault(asks_for_tls);
        #[cfg(not(feature = "tls"))]
        let of_tls = None.filter(|_| asks_for_tls);
        of_tls
    }

    /// Returns `true` if the login is read again for each connection, so that it can be right later.
    pub(super) fn changes(&self) -> bool {
        #[cfg(feature = "tls")]
        let has_files = self.tls.has_files();
        #[cfg(not(feature = "tls"))]
        let has_files = false;
        has_files || self.credentials.is_some()
    }
}

impl NodeConfig {
    /// Creates the configuration of the node at `url`. [`LockManagerBuilder::node`](crate::LockManagerBuilder::node) lists the forms of
    /// a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), access: Access::default() }
    }

    /// Sets a call-back that returns user and password for each new connection, for example a token that is valid for a few minutes.
    /// Default: the credentials in the URL.
    ///
    /// - `ask` runs on the runtime that the manager was built on. No connection is made while that runtime is blocked, or after it
    ///   has ended.
    /// - `ask` must return within three quarters of the [`connect_timeout`](Self::connect_timeout). Connections that are made at the
    ///   same time, such as those to the members of a cluster, share one result.
    /// - An error of `ask`, with its causes, becomes part of the errors of calls, so it must not contain a secret. `ask` is called again
    ///   after 40 ms to 1 s, so cache tokens that are expensive.
    /// - Connections stay open when the credentials expire. If the server closes the connection, a new one is made within about 40 ms,
    ///   and held locks stay held.
    /// - If credentials are refused within 30 seconds after others were accepted, this counts as a temporary outage: a password may be
    ///   changing.
    ///
    /// This setting and [`password_file`](Self::password_file) replace each other, and a password in the URL.
    pub fn credentials<F, R>(mut self, ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Credentials, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        self.access.credentials = Some(CredentialsSource::asking(ask));
        self
    }

    /// Reads the password from a file for each new connection, for secrets that are mounted and rotated. The user is taken from the URL.
    /// A line break at the end of the file is ignored. Default: the password in the URL.
    pub fn password_file(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.access.credentials = Some(CredentialsSource::PasswordFile(path.into()));
        self
    }

    /// Sets the login at the Sentinels of a `redis+sentinel://` URL. It can differ from the login at the server. Default: none.
    pub fn sentinel_credentials(mut self, credentials: Credentials) -> Self {
        self.access.sentinel = Some(SentinelLogin::of(credentials));
        self
    }

    /// Maps the addresses that a cluster or Sentinels announce to those at which this process reaches the servers, as behind NAT or for
    /// containers on another network. Default: the announced addresses.
    ///
    /// `map` gets the announced host and port, and returns where to connect to. It must return both unchanged for a server that is reached
    /// where it announces to be. It is called before each connection, must not block, and an address is unchanged if it panics. The
    /// addresses in the URL are not mapped. Errors name both addresses.
    ///
    /// In a URL, the parameter `map=announced:port/reachable:port` does the same for one address, and can be repeated. Without ports, it is
    /// about all ports of the host.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::NodeConfig;
    /// // Three containers that publish their port 6379 as 7001, 7002 and 7003 of this machine.
    /// let node = NodeConfig::new("redis+cluster://127.0.0.1:7001").map_address(|host, port| match host {
    ///     "172.18.0.2" => ("127.0.0.1".to_owned(), 7001),
    ///     "172.18.0.3" => ("127.0.0.1".to_owned(), 7002),
    ///     "172.18.0.4" => ("127.0.0.1".to_owned(), 7003),
    ///     other => (other.to_owned(), port),
    /// });
    /// ```
    pub fn map_address(mut self, map: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static) -> Self {
        self.access.addresses = AddressMap::by(map);
        self
    }

    /// Requires this number of replicas to confirm each lock and each renewal. Default: 0.
    ///
    /// A Redis server answers before it replicates. If the master dies and a replica takes over, the latest locks are lost: a second
    /// caller can acquire them while the first holder still runs. With this setting, the server waits for its replicas (`WAIT`). If too
    /// few replicas confirm a lock within 16 ms (or a third of the
    /// [`node_timeout`](crate::LockManagerBuilder::node_timeout), if one is set), the lock is released, with the error
    /// [`NodeError::NotReplicated`](crate::NodeError::NotReplicated).
    ///
    /// This makes such a loss less likely, but does not exclude it: a replica that has not confirmed the lock can take over. Independent
    /// servers or fencing do exclude it.
    ///
    /// Cost: one round trip to the replicas for each lock. If the replicas are gone, no lock can be acquired. The user needs `+wait`.
    pub fn confirm_replicas(mut self, replicas: u32) -> Self {
        self.access.confirm_replicas = Some(replicas);
        self
    }

    /// Sets the time limit of a connection, from the credentials and the name look-up to the last step. Default: 2 s.
    ///
    /// Too small: a distant server is never reached. Too large: calls wait longer for a server that drops all packets.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.access.connect_timeout = Some(timeout);
        self
    }

    /// Trusts only the authorities in a PEM file. The file is read for each new connection. Default: the authorities that the operating
    /// system trusts, or those in the file that the environment variable `SSL_CERT_FILE` names.
    #[cfg(feature = "tls")]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.tls.authorities = Some(Pem::File(path.into()));
        self
    }

    /// Trusts only the authorities in a PEM text.
    #[cfg(feature = "tls")]
    pub fn ca_pem(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.access.tls.authorities = Some(Pem::Text(text.into().into()));
        self
    }

    /// Sets the client certificate: one PEM file with the certificate chain, and one with the private key. Both are read for each new
    /// connection. Default: none.
    #[cfg(feature = "tls")]
    pub fn client_certificate_files(mut self, certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.access.tls.certificates = Some(Pem::File(certificates.into()));
        self.access.tls.key = Some(Pem::File(key.into()));
        self
    }

    /// Sets the client certificate: one PEM text with the certificate chain, and one with the private key. Default: none.
    #[cfg(feature = "tls")]
    pub fn client_certificate_pem(mut self, certificates: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.access.tls.certificates = Some(Pem::Text(certificates.into().into()));
        self.access.tls.key = Some(Pem::Text(key.into().into()));
        self
    }

    /// Sets the name that the certificate of the server must have, and that is sent to the server (SNI). Default: the host in the URL.
    ///
    /// Use it if the server is reached through a tunnel, or by an address that its certificate does not contain.
    #[cfg(feature = "tls")]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.access.tls.server_name = Some(name.into());
        self
    }
}

impl From<String> for NodeConfig {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

impl From<&String> for NodeConfig {
    fn from(url: &String) -> Self {
        Self::new(url)
    }
}

impl From<&str> for NodeConfig {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<Cow<'_, str>> for NodeConfig {
    fn from(url: Cow<'_, str>) -> Self {
        Self::new(url)
    }
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("NodeConfig").finish_non_exhaustive()
    }
}
