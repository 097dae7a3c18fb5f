//! Where a node is and how to log in.

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

/// The longest that making a connection may take, from the credentials to the last step, unless somebody says otherwise.
/// With less, a server far away would never be reached; with more, one that swallows all packets would look as if it were
/// starting for longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The part of that time which a program has to say its credentials. Smaller, a service of tokens that is slow is not waited
/// for; larger, nothing is left for the server.
const LOGIN_PER_CONNECTION: f64 = 0.75;

/// For how long after a login what is asked for or read anew may be wrong, and count as being changed. Smaller, waiting calls
/// fail while a password is changed; larger, a mistake in it looks like an outage for longer.
const CHANGING: Duration = Duration::from_secs(30);

/// One server and the login for it. `Debug` shows the address alone.
pub(crate) struct Endpoint {
    address: Address,
    login: RedisConnectionInfo,
    access: Access,
    /// The runtime that the manager was built on.
    host: Option<Handle>,
    /// When the server last took the login, or another one that takes the same.
    logged_in: Arc<Mutex<Option<Instant>>>,
    label: String,
    /// The address is another one than that by which the node is called.
    is_elsewhere: bool,
    /// Source of the announced address. `None` for an address from the URL.
    announcer: Option<Announcer>,
    /// Who says where the server is, if the address is not its own.
    locator: Option<Arc<dyn Locate>>,
}

/// Servers that announce the addresses of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcer {
    Cluster,
    Sentinel,
}

/// Where a server is right now, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) at: MemberAddress,
    /// For how long it has been the one that takes locks, at least, if that is known.
    pub(super) since: Option<Duration>,
    /// The number of the configuration that says so: a larger one is newer.
    pub(super) epoch: u64,
}

impl Located {
    /// Whether whoever is here should go there, by what is known `now`: not on the word of those who know less.
    pub(super) fn is_replaced_by(&self, now: &Self) -> bool {
        now.at != self.at && now.epoch >= self.epoch
    }
}

/// Whoever knows where a server is.
pub(super) trait Locate: Send + Sync {
    /// Where it is right now.
    fn locate(&self) -> BoxFuture<'_, Result<Located, NodeError>>;

    /// There is a new connection to it.
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
    /// Endpoint of a node that is one server. No message repeats the URL, because it may hold a password.
    ///
    /// # Errors
    /// [`LockError::Configuration`] saying which node's URL is wrong, and what to write. `position` counts from 1.
    pub(crate) fn new(config: &NodeConfig, position: usize) -> Result<Self, LockError> {
        Self::of_url(config, &parse(config, position)?, position)
    }

    /// The same for a URL that is parsed already.
    pub(super) fn of_url(config: &NodeConfig, url: &Url, position: usize) -> Result<Self, LockError> {
        let endpoint = Self::read(config, url, position)?;
        if endpoint.access.sentinel.is_some() {
            return Err(wrong(position, "has a login for Sentinels and names no Sentinel: write redis+sentinel://"));
        }
        Ok(endpoint)
    }

    /// Endpoint at the first address of `url`, which is that of the `config`.
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

    /// The program is asked on its own runtime.
    pub(crate) fn of_host(self, host: Handle) -> Self {
        Self { host: Some(host), ..self }
    }

    /// The node at `url`, without anything that a URL cannot say.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn parse(url: &str, position: usize) -> Result<Self, LockError> {
        Self::new(&url.into(), position)
    }

    /// The same way to log in at another place that takes the same login, with TLS if this has it.
    pub(super) fn elsewhere(&self, host: &str, port: u16) -> Self {
        let address = Address::of(host, port, self.is_tls());
        let label = address.to_string();
        Self { label, is_elsewhere: true, address, ..self.at_itself() }
    }

    /// The same way to log in at the address `at` that was announced, or at the one that the address map has for it. It is called by the
    /// announced one.
    pub(super) fn announced(&self, by: Announcer, at: &MemberAddress) -> Self {
        let (host, port) = self.access.addresses.reachable(&at.host, at.port);
        Self { label: at.to_string(), announcer: Some(by), ..self.elsewhere(&host, port) }
    }

    /// The same server at the same address, for a task of its own.
    pub(super) fn at_itself(&self) -> Self {
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

    /// A Sentinel at the same address: without a database, and with the login that Sentinels take.
    pub(super) fn as_sentinel(&self) -> Self {
        let (login, credentials) = self.access.sentinel.clone().unwrap_or_default().parts();
        let access = Access { credentials, ..self.access.clone() };
        Self { host: None, logged_in: Arc::default(), login, access, ..self.at_itself() }
    }

    /// The server is where the `locator` says, and is called `label`.
    pub(super) fn located_by(self, locator: Arc<dyn Locate>, label: String) -> Self {
        Self { locator: Some(locator), label, ..self }
    }

    /// Where the server is right now; `None` if it is at its address.
    ///
    /// # Errors
    /// When it is to be found out, and is not.
    pub(super) async fn locate(&self) -> Result<Option<Located>, NodeError> {
        match &self.locator {
            Some(locator) => locator.locate().await.map(Some),
            None => Ok(None),
        }
    }

    /// There is a connection to the server, which has taken the login.
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

    /// The host, unless it is a socket of this machine.
    pub(super) fn host(&self) -> Option<&str> {
        match &self.address {
            Address::Tcp { host, .. } => Some(host),
            #[cfg(feature = "tls")]
            Address::Tls { host, .. } => Some(host),
            #[cfg(unix)]
            Address::Unix(_) => None,
        }
    }

    /// Source of the announced address. `None` for an address from the URL.
    pub(super) const fn announcer(&self) -> Option<Announcer> {
        self.announcer
    }

    /// The announced address, if the address map has another one for it.
    pub(super) fn announced_as(&self) -> Option<&str> {
        let is_mapped = self.announcer.is_some() && self.label != self.address.to_string();
        is_mapped.then_some(&*self.label)
    }

    /// Returns `true` if the node is called by a name, which can lead elsewhere later. Sentinels say by themselves where their master is.
    pub(super) fn is_name(&self) -> bool {
        let is_name = |host: &str| host.parse::<IpAddr>().is_err();
        !self.is_located() && !self.is_elsewhere && self.host().is_some_and(is_name)
    }

    /// Returns `error` with the address `at` that it is about, unless the node is called by that.
    pub(super) fn told(&self, error: NodeError, at: &str) -> NodeError {
        match error {
            NodeError::Refused(reply) if self.is_elsewhere || self.is_located() => NodeError::Refused(reply.at(at)),
            NodeError::Tls(reason) if (self.is_elsewhere || self.is_located()) && !reason.contains(at) => {
                NodeError::Tls(format!("{at}: {reason}").into())
            }
            error => error,
        }
    }

    /// Returns `true` if something else than the address says where the server is.
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

    /// The login that is right now.
    ///
    /// # Errors
    /// When it has to be asked for, and is not known in time.
    pub(super) async fn login(&self) -> Result<RedisConnectionInfo, NodeError> {
        let Some(source) = &self.access.credentials else { return Ok(self.login.clone()) };
        let limit = self.connect_timeout().mul_f64(LOGIN_PER_CONNECTION);
        let known = timeout(limit, source.fill_in(self.login.clone(), self.host.as_ref())).await;
        known.unwrap_or_else(|_| Err(NodeError::Unreachable(format!("no credentials within {limit:?}").into())))
    }

    /// The server has taken the login.
    pub(super) fn logged_in(&self) {
        *self.logged_in.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// The `error` of a connection that was not made: one that passes, where what is asked for or read each time was right a
    /// moment ago, and is being changed; and where the Sentinels have not agreed yet which server takes locks.
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

    /// How long making a connection may take.
    pub(super) fn connect_timeout(&self) -> Duration {
        self.access.connect_timeout.unwrap_or(CONNECT_TIMEOUT)
    }

    #[cfg(feature = "tls")]
    pub(super) const fn tls(&self) -> &TlsSettings {
        &self.access.tls
    }

    /// How many replicas have to confirm every lease, if any have to.
    pub(crate) fn confirm_replicas(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.access.confirm_replicas?)
    }

    /// Which of the server's databases has the locks.
    pub(crate) fn database(&self) -> i64 {
        self.login.db()
    }

    /// The address as text, without user and password. Two nodes with equal labels are one server.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

/// Parses the URL of node number `position`.
///
/// # Errors
/// [`LockError::Configuration`] with what is wrong with it.
pub(super) fn parse(config: &NodeConfig, position: usize) -> Result<Url, LockError> {
    Url::parse(&config.url).map_err(|what| wrong(position, what))
}

fn wrong(position: usize, what: &str) -> LockError {
    LockError::configuration(format!("the URL of node {position} {what}"))
}

const USER_ALONE: &str = "names a user and no password: write redis://user:password@host, or set the source of the \
                          password, for example with password_file=";
const NO_SOCKETS: &str = "names a socket, which this operating system does not have: write redis://host";

/// Whether this program can speak TLS; otherwise what it lacks, after "the URL of a node".
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

/// `None` for a socket where there are none.
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
    /// A host, with TLS or without.
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
    fn what_is_said_beside_the_url_wins_over_its_parameters() {
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
    fn tls_urls() {
        let endpoint = Endpoint::parse("rediss://:secret@host:6380/1", 1).unwrap();
        assert_eq!(endpoint.address, Address::Tls { host: "host".into(), port: 6380 });
        assert_eq!((endpoint.login.db(), endpoint.login.password()), (1, Some("secret")));
    }

    #[test]
    fn wrong_urls_are_explained_without_their_secrets() {
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
