//! How to reach one server, where a plain URL does not say enough.

use super::address_map::AddressMap;
use super::credentials::{Credentials, CredentialsSource, SentinelLogin};
#[cfg(feature = "tls")]
use super::tls_settings::{Pem, TlsSettings};
use std::borrow::Cow;
use std::fmt;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::time::Duration;

/// One node, and how to reach it: a URL, and what a URL cannot say.
///
/// [`LockManagerBuilder::node`](crate::LockManagerBuilder::node) takes one, and a URL alone as well.
///
/// What operators set can stand in the URL, as parameters, so that it works in `REDLOCK_NODES`, too:
///
/// | parameter | the same as |
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
/// What is set here wins over the URL. `Debug` shows neither.
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

/// What can be said beside the address.
#[derive(Clone, Default)]
pub(super) struct Access {
    pub(super) credentials: Option<CredentialsSource>,
    pub(super) connect_timeout: Option<Duration>,
    /// How many replicas have to confirm every lease.
    pub(super) confirm_replicas: Option<u32>,
    /// The login at the Sentinels that name the server.
    pub(super) sentinel: Option<SentinelLogin>,
    /// Where members of a cluster, masters and Sentinels are reached that announce other addresses.
    pub(super) addresses: AddressMap,
    #[cfg(feature = "tls")]
    pub(super) tls: TlsSettings,
}

impl Access {
    /// What is said here, and what only `other` says.
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
    /// What is wrong with it for a URL that asks for TLS or does not, after "the URL of a node".
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

    /// Whether what is needed to log in is asked for or read each time, and may be right later.
    pub(super) fn changes(&self) -> bool {
        #[cfg(feature = "tls")]
        let has_files = self.tls.has_files();
        #[cfg(not(feature = "tls"))]
        let has_files = false;
        has_files || self.credentials.is_some()
    }
}

impl NodeConfig {
    /// The node at `url`; see [`LockManagerBuilder::node`](crate::LockManagerBuilder::node) for what that may be.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), access: Access::default() }
    }

    /// Asks for user and password each time that a connection is made, such as for a token that is valid for a few minutes.
    /// Default: those in the URL.
    ///
    /// Connections that are made at the same time, as to the members of a cluster, share an answer.
    ///
    /// `ask` runs on the runtime that the manager was built on, and has three quarters of the
    /// [`connect_timeout`](Self::connect_timeout): no connection is made while that runtime is blocked or when it has ended. An
    /// error, with its causes, is part of that of the calls while there is no connection, and `ask` is asked again with the next
    /// try, after 40 ms to 1 s; so an error must not repeat a secret, and tokens that cost something should be cached.
    ///
    /// Connections stay open when the credentials expire, unless the server closes them: then there is a new one within
    /// about 40 ms, and locks that are held stay held. Credentials that are refused within half a minute after others were taken
    /// count as an outage that passes, as while a password is being changed.
    ///
    /// This and [`password_file`](Self::password_file) take the place of each other, and of a password in the URL.
    pub fn credentials<F, R>(mut self, ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Credentials, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        self.access.credentials = Some(CredentialsSource::asking(ask));
        self
    }

    /// Reads the password from a file each time that a connection is made, as where secrets are mounted and rotated. The user
    /// is that of the URL. A line break at the end is no part of the password. Default: the password in the URL.
    pub fn password_file(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.access.credentials = Some(CredentialsSource::PasswordFile(path.into()));
        self
    }

    /// The login at the Sentinels of a `redis+sentinel://` URL, which need not be that of the server. Default: none.
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

    /// Counts on a lock, and on each renewal, only when so many replicas of the node have it as well. Default: 0.
    ///
    /// A server passes on to its replicas what it has answered already. So the locks of the last moments are gone when it
    /// dies and a replica takes over, and their keys can be taken once more while the bodies of the first owners still run,
    /// until these are told. With this, the server is asked (`WAIT`) whether the replicas have what was written, and a lock that
    /// too few have within 16 ms, or a third of the
    /// [`node_timeout`](crate::LockManagerBuilder::node_timeout) where one is set, is given back: [`NodeError::NotReplicated`](crate::NodeError::NotReplicated).
    ///
    /// That makes such a loss rarer and rules nothing out: a replica that has confirmed nothing may be the one that takes
    /// over. A majority of independent servers, or fencing, does. It costs the round trip to the replicas with every lock, and
    /// all locks when the replicas are gone; the user needs `+wait`.
    pub fn confirm_replicas(mut self, replicas: u32) -> Self {
        self.access.confirm_replicas = Some(replicas);
        self
    }

    /// How long making a connection may take, from the credentials and the name look-up to the last step. Default: 2 s.
    ///
    /// Smaller, a server far away is never reached. Larger, one that swallows all packets is waited for.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.access.connect_timeout = Some(timeout);
        self
    }

    /// Trusts the authorities in a PEM file, and no others. It is read each time that a connection is made.
    /// Default: those that the operating system trusts, or those in the file that the environment variable `SSL_CERT_FILE`
    /// names.
    #[cfg(feature = "tls")]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.tls.authorities = Some(Pem::File(path.into()));
        self
    }

    /// Trusts the authorities in a PEM text, and no others.
    #[cfg(feature = "tls")]
    pub fn ca_pem(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.access.tls.authorities = Some(Pem::Text(text.into().into()));
        self
    }

    /// Shows the server a certificate: two PEM files, with its chain and with its private key. They are read each time that a
    /// connection is made. Default: none.
    #[cfg(feature = "tls")]
    pub fn client_certificate_files(mut self, certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.access.tls.certificates = Some(Pem::File(certificates.into()));
        self.access.tls.key = Some(Pem::File(key.into()));
        self
    }

    /// Shows the server a certificate: two PEM texts, with its chain and with its private key. Default: none.
    #[cfg(feature = "tls")]
    pub fn client_certificate_pem(mut self, certificates: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.access.tls.certificates = Some(Pem::Text(certificates.into().into()));
        self.access.tls.key = Some(Pem::Text(key.into().into()));
        self
    }

    /// The name for which the certificate of the server must be, and that the server is told. Default: the host in the URL.
    ///
    /// For servers behind a tunnel or an address that is in no certificate.
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
