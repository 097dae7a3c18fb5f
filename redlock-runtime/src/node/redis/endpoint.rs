//! Address of a node, and its login.

use super::cluster::address::{MemberAddress, fmt_host_and_port};
use super::node_config::{Access, NodeConfig};
use super::parameters;
#[cfg(feature = "tls")]
use super::tls_settings::TlsSettings;
use super::url::{Kind, Url};
use crate::error::{LockError, NodeError};
use crate::node::BoxFuture;
use redis::RedisConnectionInfo;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

/// Default limit for making a connection, from the credentials to the last step. Too small: a distant server is never reached. Too large: a
/// server behind a firewall that drops packets looks as if it were starting for longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Share of this time that a program has to provide its credentials. Too small: a slow token service times out. Too large: no time is left
/// for the server.
const LOGIN_PER_CONNECTION: f64 = 0.75;

/// Time after a login in which wrong credentials are treated as being changed, if they are requested or read for each connection. Too
/// small: waiting calls fail while a password is changed. Too large: a wrong password looks like an outage for longer.
const CHANGING: Duration = Duration::from_secs(30);

/// One server and its login. `Debug` shows only the address.
pub(crate) struct Endpoint {
    address: Address,
    login: RedisConnectionInfo,
    access: Access,
    /// The runtime that the manager was built on.
    host: Option<Handle>,
    /// The last successful login at the server, or at another one with the same login.
    logged_in: Arc<Mutex<Option<Instant>>>,
    label: String,
    /// `true` if the address differs from the configured one.
    is_elsewhere: bool,
    /// Source of the announced address. `None` for an address from the URL.
    announcer: Option<Announcer>,
    /// Finds the server, if its address is not fixed.
    locator: Option<Arc<dyn Locate>>,
}

/// Servers that announce the addresses of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcer {
    Cluster,
    Sentinel,
}

/// Current location of a server, and its age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) at: MemberAddress,
    /// Minimum time for which the server has accepted locks, if it is known.
    pub(super) since: Option<Duration>,
    /// The number of the configuration with this location: a larger one is newer.
    pub(super) epoch: u64,
}

impl Located {
    /// Returns `true` if a client of this location should move to `now`: reports with an older configuration are ignored.
    pub(super) fn is_replaced_by(&self, now: &Self) -> bool {
        now.at != self.at && now.epoch >= self.epoch
    }
}

/// A source for the current location of a server.
pub(super) trait Locate: Send + Sync {
    /// Returns the current location.
    fn locate(&self) -> BoxFuture<'_, Result<Located, NodeError>>;

    /// Records a new connection to the server.
    fn connected(&self);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    #[cfg(feature = "tls")]
    Tls {
        host: String,
        port: u16,
    },
    #[cfg(unix)]
    Unix(std::path::PathBuf),
}

impl Endpoint {
    /// Creates the endpoint of a node that is one server. No message repeats the URL, because it may contain a password.
    ///
    /// # Errors
    /// [`LockError::Configuration`] saying which node's URL is wrong, and what to write. `position` counts from 1.
    pub(crate) fn new(config: &NodeConfig, position: usize) -> Result<Self, LockError> {
        Self::from_parsed_url(config, &parse(config, position)?, position)
    }

    /// Like [`new`](Self::new), for a parsed URL.
    pub(super) fn from_parsed_url(config: &NodeConfig, url: &Url, position: usize) -> Result<Self, LockError> {
        let endpoint = Self::read(config, url, position)?;
        if endpoint.access.sentinel.is_some() {
            return Err(wrong(position, "has a login for Sentinels and names no Sentinel: write redis+sentinel://"));
        }
        Ok(endpoint)
    }

    /// Creates the endpoint at the first address of `url`, which is the URL of the `config`.
    pub(super) fn read(config: &NodeConfig, url: &Url, position: usize) -> Result<Self, LockError> {
        let wrong = |what: &str| wrong(position, what);
        if url.is_tls {
            speaks_tls().map_err(wrong)?;
        }
        let access = config.access.clone().or(parameters::read(&url.parameters).map_err(wrong)?);
        access.fault(url.is_tls).map_or(Ok(()), |fault| Err(wrong(fault)))?;
        if url.user.is_some() && url.password.is_none() && access.credentials.is_none() {
            return Err(wrong(USER_ALONE));
        }
        let login = RedisConnectionInfo::default().set_db(url.database);
        let login = url.user.iter().fold(login, RedisConnectionInfo::set_username);
        let login = url.password.iter().fold(login, RedisConnectionInfo::set_password);
        let address = address(url).ok_or_else(|| wrong(NO_SOCKETS))?;
        Ok(Self {
            label: address.to_string(),
            login,
            access,
            address,
            host: None,
            logged_in: Arc::default(),
            is_elsewhere: false,
            announcer: None,
            locator: None,
        })
    }

    /// Runs the program's credential source on the program's runtime.
    pub(crate) fn of_host(self, host: Handle) -> Self {
        Self { host: Some(host), ..self }
    }

    /// Creates the endpoint of the node at `url`, without settings outside of the URL.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn parse(url: &str, position: usize) -> Result<Self, LockError> {
        Self::new(&url.into(), position)
    }

    /// Returns an endpoint at another address that accepts the same login, with TLS if this one uses TLS.
    pub(super) fn elsewhere(&self, host: &str, port: u16) -> Self {
        let address = Address::of(host, port, self.is_tls());
        let label = address.to_string();
        Self { label, is_elsewhere: true, address, ..self.for_same_server() }
    }

    /// Returns an endpoint with the same login at the announced address `at`, or at its replacement in the address map. The label is the
    /// announced address.
    pub(super) fn announced(&self, by: Announcer, at: &MemberAddress) -> Self {
        let (host, port) = self.access.addresses.reachable(&at.host, at.port);
        Self { label: at.to_string(), announcer: Some(by), ..self.elsewhere(&host, port) }
    }

    /// Returns an endpoint for the same server and address, for a separate task.
    pub(super) fn for_same_server(&self) -> Self {
        Self {
            address: self.address.clone(),
            label: self.label.clone(),
            login: self.login.clone(),
            access: self.access.clone(),
            host: self.host.clone(),
            logged_in: Arc::clone(&self.logged_in),
            is_elsewhere: self.is_elsewhere,
            announcer: self.announcer,
            locator: None,
        }
    }

    /// Returns the endpoint of a Sentinel at the same address: without a database, and with the login for Sentinels.
    pub(super) fn as_sentinel(&self) -> Self {
        let (login, credentials) = self.access.sentinel.clone().unwrap_or_default().parts();
        let access = Access { credentials, ..self.access.clone() };
        Self { host: None, logged_in: Arc::default(), login, access, ..self.for_same_server() }
    }

    /// Sets the `locator` that finds the server, and its `label`.
    pub(super) fn with_locator(self, locator: Arc<dyn Locate>, label: String) -> Self {
        Self { locator: Some(locator), label, ..self }
    }

    /// Returns the current location of the server; `None` if its address is fixed.
    ///
    /// # Errors
    /// If the server cannot be located.
    pub(super) async fn locate(&self) -> Result<Option<Located>, NodeError> {
        match &self.locator {
            Some(locator) => locator.locate().await.map(Some),
            None => Ok(None),
        }
    }

    /// Records a connection to the server, which has accepted the login.
    pub(super) fn connected(&self) {
        self.logged_in();
        if let Some(locator) = &self.locator {
            locator.connected();
        }
    }

    /// Returns the port; `None` for a socket.
    pub(super) const fn port(&self) -> Option<u16> {
        match self.address {
            Address::Tcp { port, .. } => Some(port),
            #[cfg(feature = "tls")]
            Address::Tls { port, .. } => Some(port),
            #[cfg(unix)]
            Address::Unix(_) => None,
        }
    }

    /// Returns the host; `None` for a socket of this machine.
    pub(super) fn host(&self) -> Option<&str> {
        match &self.address {
            Address::Tcp { host, .. } => Some(host),
            #[cfg(feature = "tls")]
            Address::Tls { host, .. } => Some(host),
            #[cfg(unix)]
            Address::Unix(_) => None,
        }
    }

    /// Returns the source of the announced address; `None` for an address from the URL.
    pub(super) const fn announcer(&self) -> Option<Announcer> {
        self.announcer
    }

    /// Returns the announced address, if the address map replaces it.
    pub(super) fn announced_as(&self) -> Option<&str> {
        let is_mapped = self.announcer.is_some() && self.label != self.address.to_string();
        is_mapped.then_some(&*self.label)
    }

    /// Returns `true` if the node has a host name, which can lead to another server later. Sentinels report the address of their master.
    pub(super) fn is_name(&self) -> bool {
        let is_name = |host: &str| host.parse::<IpAddr>().is_err();
        !self.is_located() && !self.is_elsewhere && self.host().is_some_and(is_name)
    }

    /// Returns `error` with the address `at` that it concerns, unless this address is the label of the node.
    pub(super) fn told(&self, error: NodeError, at: &str) -> NodeError {
        match error {
            NodeError::Refused(reply) if self.is_elsewhere || self.is_located() => NodeError::Refused(reply.at(at)),
            NodeError::Tls(reason) if (self.is_elsewhere || self.is_located()) && !reason.contains(at) => {
                NodeError::Tls(format!("{at}: {reason}").into())
            }
            NodeError::Unsupported(reason) if (self.is_elsewhere || self.is_located()) && !reason.contains(at) => {
                NodeError::Unsupported(format!("{at}: {reason}").into())
            }
            error => error,
        }
    }

    /// Returns `true` if a locator finds the server.
    pub(super) const fn is_located(&self) -> bool {
        self.locator.is_some()
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self, reason = "no address is one of TLS then"))]
    pub(super) const fn is_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return matches!(self.address, Address::Tls { .. });
        #[cfg(not(feature = "tls"))]
        return false;
    }

    /// Returns the current login.
    ///
    /// # Errors
    /// If the login must be requested, and does not arrive in time.
    pub(super) async fn login(&self) -> Result<RedisConnectionInfo, NodeError> {
        let Some(source) = &self.access.credentials else { return Ok(self.login.clone()) };
        let limit = self.connect_timeout().mul_f64(LOGIN_PER_CONNECTION);
        let known = timeout(limit, source.fill_in(self.login.clone(), self.host.as_ref())).await;
        known.unwrap_or_else(|_| Err(NodeError::Unreachable(format!("no credentials within {limit:?}").into())))
    }

    /// Records that the server has accepted the login.
    pub(super) fn logged_in(&self) {
        *self.logged_in.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Converts the `error` of a failed connection to a transient one in two cases. First, credentials that are requested or read each time
    /// were correct a moment ago, and are being changed. Second, the Sentinels have not agreed yet which server accepts locks.
    pub(super) fn passing(&self, error: NodeError) -> NodeError {
        if error == NodeError::Replica && self.locator.is_some() {
            return NodeError::Unreachable("the Sentinels name a server that is a replica right now".into());
        }
        let logged_in = *self.logged_in.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = || logged_in.is_some_and(|at| at.elapsed() < CHANGING);
        let is_of_login = match &error {
            NodeError::Refused(answer) => answer.starts_with("WRONGPASS") || answer.starts_with("NOAUTH"),
            NodeError::Tls(_) | NodeError::Unsupported(_) => true,
            _ => false,
        };
        if is_of_login && self.access.changes() && is_recent() {
            return NodeError::Unreachable(error.to_string().into());
        }
        error
    }

    /// Returns the limit for making a connection.
    pub(super) fn connect_timeout(&self) -> Duration {
        self.access.connect_timeout.unwrap_or(CONNECT_TIMEOUT)
    }

    #[cfg(feature = "tls")]
    pub(super) const fn tls(&self) -> &TlsSettings {
        &self.access.tls
    }

    /// Returns the number of replicas that must confirm every lease, if there is one.
    pub(crate) fn confirm_replicas(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.access.confirm_replicas?)
    }

    /// Returns the server's database with the locks.
    pub(crate) fn database(&self) -> i64 {
        self.login.db()
    }

    /// Returns the address as text, without user and password. Two nodes with equal labels are one server.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

/// Parses the URL of node number `position`.
///
/// # Errors
/// [`LockError::Configuration`] with the fault of the URL.
pub(super) fn parse(config: &NodeConfig, position: usize) -> Result<Url, LockError> {
    Url::parse(&config.url).map_err(|what| wrong(position, what))
}

fn wrong(position: usize, what: &str) -> LockError {
    LockError::configuration(format!("the URL of node {position} {what}"))
}

const USER_ALONE: &str = "names a user and no password: write redis://user:password@host, or set the source of the \
                          password, for example with password_file=";
const NO_SOCKETS: &str = "names a socket, which this operating system does not have: write redis://host";

/// Checks that this program supports TLS. The error text continues "the URL of a node".
fn speaks_tls() -> Result<(), &'static str> {
    #[cfg(feature = "tls")]
    return super::tls_provider::find().map(drop).ok_or(
        "asks for TLS, and rustls has no cryptography provider in this program: enable the feature `tls-ring` or \
         `tls-aws-lc-rs` of redlock-runtime, or call `CryptoProvider::install_default()` of rustls before",
    );
    #[cfg(not(feature = "tls"))]
    Err("asks for TLS: enable a feature of redlock-runtime, `tls-ring` or `tls-aws-lc-rs`, or `tls` in a program that \
         has rustls with a provider already")
}

/// Returns `None` for a socket on a system without sockets.
#[cfg_attr(unix, expect(clippy::unnecessary_wraps, reason = "not every system has sockets with a path"))]
fn address(url: &Url) -> Option<Address> {
    if url.kind == Kind::Socket {
        #[cfg(unix)]
        return Some(Address::Unix((&*url.socket).into()));
        #[cfg(not(unix))]
        return None;
    }
    Some(Address::of(&url.host, url.port.unwrap_or(url.kind.default_port()), url.is_tls))
}

impl Address {
    /// Returns the address of a host, with or without TLS.
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "no address is one of TLS then"))]
    fn of(host: &str, port: u16, is_tls: bool) -> Self {
        let host = host.to_owned();
        #[cfg(feature = "tls")]
        if is_tls {
            return Self::Tls { host, port };
        }
        Self::Tcp { host, port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => fmt_host_and_port(host, *port, f),
            #[cfg(feature = "tls")]
            Self::Tls { host, port } => fmt_host_and_port(host, *port, f),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let table = [
            ("redis://localhost", "localhost:6379", 0),
            ("redis://user:pa%40ss@10.0.0.1:7000/3", "10.0.0.1:7000", 3),
            ("valkey://[::1]:7000", "[::1]:7000", 0),
            ("unix:///run/redis.sock?db=2", "/run/redis.sock", 2),
        ];
        for (url, label, database) in table {
            let endpoint = Endpoint::parse(url, 1).expect(url);
            assert_eq!((endpoint.label(), endpoint.login.db()), (label, database), "{url}");
        }
        let endpoint = Endpoint::parse("redis://user:pa%40ss@host", 1).unwrap();
        assert_eq!((endpoint.login.username(), endpoint.login.password()), (Some("user"), Some("pa@ss")));
    }

    #[test]
    fn builder_settings_win_over_url_parameters() {
        let url = "redis://user:pw@host/3?connect_timeout_ms=500";
        let endpoint = Endpoint::parse(url, 1).unwrap();
        assert_eq!((endpoint.connect_timeout(), endpoint.login.db()), (Duration::from_millis(500), 3));
        let config = NodeConfig::new(url).connect_timeout(Duration::from_secs(7));
        assert_eq!(Endpoint::new(&config, 1).unwrap().connect_timeout(), Duration::from_secs(7));
        assert_eq!(Endpoint::parse("unix:///run/redis.sock?connect_timeout_ms=1&db=2", 1).unwrap().login.db(), 2);
        assert_eq!(Endpoint::parse("redis://host", 1).unwrap().connect_timeout(), CONNECT_TIMEOUT);
        assert!(!format!("{config:?}").contains("user"));
    }

    #[cfg(any(feature = "tls-aws-lc-rs", feature = "tls-ring"))]
    #[test]
    fn tls_urls_are_parsed() {
        let endpoint = Endpoint::parse("rediss://:secret@host:6380/1", 1).unwrap();
        assert_eq!(endpoint.address, Address::Tls { host: "host".into(), port: 6380 });
        assert_eq!((endpoint.login.db(), endpoint.login.password()), (1, Some("secret")));
    }

    #[test]
    fn invalid_url_errors_do_not_contain_secrets() {
        let table = [
            ("", "is not a Redis URL"),
            ("localhost:6379", "is not a Redis URL"),
            ("http://:hunter2@host", "is not a Redis URL"),
            ("redis://:hunter2@host/sales", "is wrong"),
            #[cfg(any(feature = "tls", feature = "tls-aws-lc-rs", feature = "tls-ring"))]
            ("rediss://:hunter2@host/#insecure", "without verification"),
            #[cfg(not(any(feature = "tls", feature = "tls-aws-lc-rs", feature = "tls-ring")))]
            ("rediss://:hunter2@host/#insecure", "enable a feature"),
            ("redis://host/-1", "not negative"),
            ("unix:///run/redis.sock?db=-1", "not negative"),
            ("redis://host/?protocol=hunter2", "protocol"),
            ("redis://:hunter2@host,other:6379", "begins with redis://"),
            ("redis://hunter2@host", "no password"),
            ("redis://host/?hunter2=hunter2", "an unknown parameter"),
            ("redis://host/?connect_timeout_ms=hunter2", "a whole number"),
            ("redis://host/?connect_timeout_ms=0", "a timeout of zero"),
            ("redis://host?db=3", "belong before the `?`"),
            ("redis://host/3?pass=hunter2", "belong before the `?`"),
            #[cfg(feature = "tls")]
            ("redis://:hunter2@host/?ca_file=/hunter2", "does not use TLS"),
            #[cfg(not(feature = "tls"))]
            ("redis://:hunter2@host/?ca_file=/hunter2", "a feature for TLS"),
        ];
        for (url, expected) in table {
            let message = Endpoint::parse(url, 2).unwrap_err().to_string();
            assert!(message.starts_with("the URL of node 2 ") && message.contains(expected), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        let endpoint = Endpoint::parse("redis://user:hunter2@host", 1).unwrap();
        assert_eq!(format!("{endpoint:?}"), "Endpoint(host:6379)");
    }
}
