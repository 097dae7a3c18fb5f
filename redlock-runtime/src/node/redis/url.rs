//! Parser for the URL of a node.
//!
//! Each part of a URL is understood or refused, because a password can be at any place: unescaped characters move it into the host, the
//! path, a parameter or the fragment. Other clients document other places for it. Two rules follow:
//!
//! 1. Errors are fixed texts, so that they cannot repeat a part of the URL.
//! 2. The parts that are shown later, such as the address, consist of characters that a host name or a path needs. All others must be
//!    percent-encoded.

use super::cluster::address::{LONGEST_HOST, MemberAddress};
use std::net::Ipv6Addr;

/// Kind of node, by the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server,
    Cluster,
    Sentinel,
    Socket,
}

/// Scheme, kind of node, and `true` if the connection uses TLS.
const SCHEMES: [(&str, Kind, bool); 19] = [
    ("redis", Kind::Server, false),
    ("valkey", Kind::Server, false),
    ("rediss", Kind::Server, true),
    ("valkeys", Kind::Server, true),
    ("redis+cluster", Kind::Cluster, false),
    ("valkey+cluster", Kind::Cluster, false),
    ("rediss+cluster", Kind::Cluster, true),
    ("valkeys+cluster", Kind::Cluster, true),
    ("redis+sentinel", Kind::Sentinel, false),
    ("valkey+sentinel", Kind::Sentinel, false),
    ("rediss+sentinel", Kind::Sentinel, true),
    ("valkeys+sentinel", Kind::Sentinel, true),
    // Names that other clients use for these.
    ("redis-cluster", Kind::Cluster, false),
    ("rediss-cluster", Kind::Cluster, true),
    ("redis-sentinel", Kind::Sentinel, false),
    ("rediss-sentinel", Kind::Sentinel, true),
    ("unix", Kind::Socket, false),
    ("redis+unix", Kind::Socket, false),
    ("valkey+unix", Kind::Socket, false),
];

/// The parts of a URL, decoded.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) kind: Kind,
    pub(super) is_tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Host name or IP address, without brackets; empty for a socket.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// Path of a socket; empty for all others.
    pub(super) socket: String,
    /// Name of the master at its Sentinels; empty for all others.
    pub(super) service: String,
    pub(super) database: i64,
    /// Further members of a cluster, or further Sentinels.
    pub(super) others: Vec<MemberAddress>,
    /// All other parameters, with values that are not empty. Each name except `map` occurs once.
    pub(super) parameters: Vec<(String, String)>,
}

impl Url {
    /// Parses `text`.
    ///
    /// # Errors
    /// The fault and its remedy, as a continuation of "the URL of node 1".
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err(if text.trim().is_empty() { NO_URL } else { SPACE });
        }
        let (scheme, rest) = text.split_once("://").ok_or(NO_URL)?;
        let (kind, is_tls) = kind_of(scheme).ok_or(NO_URL)?;
        let (rest, service) = match rest.split_once('#') {
            // Some clients write the name of the master like this.
            Some((rest, service)) if kind == Kind::Sentinel && is_service(service) => (rest, Some(service)),
            Some((_, fragment)) => return Err(if fragment == "insecure" { INSECURE } else { FRAGMENT }),
            None => (rest, None),
        };
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let mut url = Self {
            kind,
            is_tls,
            user: None,
            password: None,
            host: String::new(),
            port: None,
            socket: String::new(),
            service: String::new(),
            database: 0,
            others: Vec::new(),
            parameters: Vec::new(),
        };
        match kind {
            Kind::Socket if !authority.is_empty() => return Err(SOCKET),
            Kind::Socket => url.socket = socket(path)?,
            _ => url.read_authority(authority)?,
        }
        match kind {
            Kind::Socket => {}
            Kind::Sentinel => url.read_service(path, service)?,
            Kind::Server | Kind::Cluster => url.database = path_database(path)?,
        }
        if kind == Kind::Cluster && url.database != 0 {
            return Err(CLUSTER_DATABASE);
        }
        // Programs that join parameters may leave an empty query after the `?`.
        query.filter(|query| !query.is_empty()).map_or(Ok(()), |query| url.read_query(query))?;
        Ok(url)
    }

    /// Reads `[user][:password]@host[:port]`.
    fn read_authority(&mut self, authority: &str) -> Result<(), &'static str> {
        let (login, place) = match authority.split_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        if place.contains('@') {
            return Err(SEVERAL_AT);
        }
        if let Some(login) = login {
            let (user, password) = login.split_once(':').map_or((login, None), |(user, pw)| (user, Some(pw)));
            if password == Some("") || user.is_empty() && password.is_none() {
                return Err(EMPTY_LOGIN);
            }
            self.user = Some(decode(user).ok_or(ENCODING)?).filter(|user| !user.is_empty());
            self.password = password.map(|password| decode(password).ok_or(ENCODING)).transpose()?;
        }
        let mut places = place.split(',');
        if self.kind == Kind::Server {
            (self.host, self.port) = host_and_port(place)?;
            return Ok(());
        }
        (self.host, self.port) = host_and_port(places.next().unwrap_or_default())?;
        for place in places {
            let (host, port) = host_and_port(place)?;
            self.others.push(self.address(host, port));
        }
        Ok(())
    }

    /// Reads `/name[/database]`, or `[/database]` if the name of the `service` is at the end of the URL.
    fn read_service(&mut self, path: &str, service: Option<&str>) -> Result<(), &'static str> {
        if let Some(service) = service {
            service.clone_into(&mut self.service);
            self.database = path_database(path)?;
            return Ok(());
        }
        let path = path.strip_prefix('/').unwrap_or_default();
        let (service, database) = path.find('/').map_or((path, ""), |slash| path.split_at(slash));
        if !is_service(service) {
            return Err(NO_SERVICE);
        }
        service.clone_into(&mut self.service);
        self.database = path_database(database)?;
        Ok(())
    }

    fn read_query(&mut self, query: &str) -> Result<(), &'static str> {
        if query.contains(['?', '@', '+']) {
            return Err(QUERY);
        }
        let mut names = Vec::new();
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').ok_or(EMPTY_PARAMETER)?;
            let (name, value) = (decode(name).ok_or(ENCODING)?, decode(value).ok_or(ENCODING)?);
            let is_address = matches!((&*name, self.kind), ("seed", Kind::Cluster) | ("sentinel", Kind::Sentinel));
            if is_address {
                self.others.push(self.other(&value)?);
                continue;
            }
            if name.is_empty() || value.is_empty() {
                return Err(EMPTY_PARAMETER);
            }
            if names.contains(&name) && name != "map" {
                return Err(TWICE);
            }
            names.push(name.clone());
            match (&*name, self.kind) {
                ("map", Kind::Server | Kind::Socket) => return Err(NOTHING_ANNOUNCED),
                ("db", Kind::Socket) => self.database = database(&value)?,
                ("user", Kind::Socket) => self.user = Some(value),
                ("pass", Kind::Socket) => self.password = Some(value),
                ("protocol", _) => return Err(PROTOCOL),
                (name, _) if LOGIN.contains(&name) => {
                    return Err(if self.kind == Kind::Socket { SOCKET_LOGIN } else { BEFORE });
                }
                _ if value.contains(char::is_control) => return Err(SPACE),
                _ => self.parameters.push((name, value)),
            }
        }
        Ok(())
    }

    /// Reads the address in the value of `seed` or `sentinel`.
    fn other(&self, value: &str) -> Result<MemberAddress, &'static str> {
        let wrong = if self.kind == Kind::Cluster { SEED } else { SENTINEL };
        let (host, port) = host_and_port(value).map_err(|_| wrong)?;
        Ok(self.address(host, port))
    }

    fn address(&self, host: String, port: Option<u16>) -> MemberAddress {
        MemberAddress { host: host.into(), port: port.unwrap_or_else(|| self.kind.default_port()) }
    }
}

/// Returns the kind of node of a scheme, and `true` if the connection uses TLS.
fn kind_of(scheme: &str) -> Option<(Kind, bool)> {
    SCHEMES.into_iter().find(|(name, ..)| *name == scheme).map(|(_, kind, is_tls)| (kind, is_tls))
}

/// Returns `true` if the scheme of `url` is one of this `kind`.
pub(super) fn is_of_kind(url: &str, kind: Kind) -> bool {
    url.split_once("://").and_then(|(scheme, _)| kind_of(scheme)).is_some_and(|(found, _)| found == kind)
}

/// Returns `true` if `text` can be the name of a master at its Sentinels. Other parsers treat a path of dots differently.
fn is_service(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_of_name) && !matches!(text, "." | "..")
}

impl Kind {
    /// Returns the port of an address without one.
    pub(super) const fn default_port(self) -> u16 {
        if matches!(self, Self::Sentinel) { 26379 } else { 6379 }
    }
}

/// Reads `host`, `host:port` or `[::1]:port`.
pub(super) fn host_and_port(place: &str) -> Result<(String, Option<u16>), &'static str> {
    if place.contains(',') {
        return Err(SEVERAL_HOSTS);
    }
    let (host, port) = match place.strip_prefix('[').map(|place| place.split_once(']')) {
        Some(Some((address, port))) => (address.parse::<Ipv6Addr>().map_err(|_| IPV6)?.to_string(), port),
        Some(None) => return Err(IPV6),
        None => {
            let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
            if port.matches(':').count() > 1 {
                return Err(HOST);
            }
            if host.is_empty() || host.len() > LONGEST_HOST || !host.bytes().all(is_of_name) {
                return Err(HOST);
            }
            (host.to_owned(), port)
        }
    };
    if matches!(&*host, "0.0.0.0" | "::") {
        return Err(WILDCARD);
    }
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, None)),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0).map(|port| (host, Some(port))).ok_or(PORT)
        }
        _ => Err(PORT),
    }
}

/// Reads the database in the path of a URL: nothing, `/`, `/3` or `/3/`.
fn path_database(path: &str) -> Result<i64, &'static str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.strip_suffix('/').unwrap_or(path) {
        "" if path.is_empty() => Ok(0),
        number => database(number),
    }
}

fn database(number: &str) -> Result<i64, &'static str> {
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number).ok_or(DATABASE)
}

/// Reads the path of a socket, which begins with `/`.
fn socket(path: &str) -> Result<String, &'static str> {
    let is_plain = |character: char| character.is_alphanumeric() || "-._~/%".contains(character);
    if !path.chars().all(is_plain) {
        return Err(SOCKET);
    }
    let path = decode(path).ok_or(ENCODING)?;
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
    let parts = path.strip_prefix('/').ok_or(SOCKET)?;
    if parts.split('/').all(is_name) { Ok(path) } else { Err(SOCKET) }
}

/// Returns `true` for characters of host names, and of the names that Sentinels accept for a master.
const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// Decodes the percent-encoding. Returns `None` if a `%` is not followed by two hexadecimal digits, or the result is not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Parameters by which other clients name the login or the database.
const LOGIN: [&str; 9] = ["db", "database", "user", "username", "pass", "passwd", "password", "pw", "auth"];

const NO_URL: &str = "is not a Redis URL: write redis://[user:password@]host[:port][/database], rediss:// for TLS, \
                      redis+cluster:// for a cluster, redis+sentinel:// for Sentinels or unix:///path for a socket, \
                      and special characters of a password as codes, such as %2F for a slash";
const SPACE: &str = "has a space or another invisible character: remove it, or write it as a code, such as %20 for a \
                     space in a password";
const FRAGMENT: &str = "has a `#` with something behind it, which means nothing here: leave it out; a `#` in a password is \
                        written %23";
const INSECURE: &str = "asks for TLS without verification: trust the server's CA instead, as with ca_file=";
const SEVERAL_AT: &str = "has more than one `@`: write redis://user:password@host, one URL for each server, and an `@` in a user \
                          or password as %40";
const EMPTY_LOGIN: &str =
    "has no password in front of the `@`: write redis://user:password@host, or redis://host without a login";
const ENCODING: &str = "has a `%` that does not begin the code of a UTF-8 character: write %25 for a percent sign";
const SEVERAL_HOSTS: &str = "names no host, or several: each URL begins with redis://";
const HOST: &str = "names no host, or one with characters that host names do not have: write redis://user:password@host:6379, an \
                    IPv6 address as [::1], and special characters of a password as codes, such as %2F for a slash";
const IPV6: &str = "has a `[` that does not begin an IPv6 address: write redis://[::1]:6379, and a `[` in a password \
                    as %5B";
const WILDCARD: &str =
    "names the address 0.0.0.0 or [::], which is for servers: write 127.0.0.1 or [::1] for this machine";
const PORT: &str = "names a port that is not a number from 1 to 65535: write redis://user:password@host:6379, and \
                    special characters of a password as codes, such as %2F for a slash";
const DATABASE: &str =
    "is wrong: a database is a number and not negative, as in redis://host:6379/3 or unix:///path?db=3";
const CLUSTER_DATABASE: &str = "names a database, and a cluster has only number 0: leave it out";
const NO_SERVICE: &str = "does not name the master that the Sentinels watch: write redis+sentinel://host:26379/name, \
                          or redis+sentinel://host:26379/name/3 for database 3";
const SOCKET: &str = "names no path of a socket: write unix:///run/redis.sock?db=3&user=name&pass=password, and \
                      special characters of the path as codes, such as %40 for an `@`";
const SOCKET_LOGIN: &str = "has an unknown parameter: a socket has db, user and pass, as in \
                            unix:///run/redis.sock?db=3&user=name&pass=password";
const BEFORE: &str = "is wrong: user, password and database belong before the `?`, as in redis://user:password@host/3";
const QUERY: &str = "has a `?`, an `@` or a `+` behind the first `?`: write %3F, %40 and %2B, also in a password";
const EMPTY_PARAMETER: &str = "has a parameter without a name or a value: write name=value, with & between two of them";
const TWICE: &str = "has a parameter twice: only seed, sentinel and map may be repeated";
const NOTHING_ANNOUNCED: &str = "has a map of addresses, and a single server announces none: write the address of the server itself, or \
                                 redis+cluster:// or redis+sentinel://";
const PROTOCOL: &str = "is wrong: leave out `?protocol=`, which is detected automatically";
const SEED: &str = "has a seed that is not an address: write redis+cluster://host:port?seed=host:port&seed=host:port";
const SENTINEL: &str = "has a sentinel that is not an address: write \
                        redis+sentinel://host:port/name?sentinel=host:port";

/// Returns the URL with only the first of several hosts, because the client crate does not know the others.
#[cfg(any(test, fuzzing))]
fn without_other_hosts(text: &str) -> String {
    let begin = text.find("://").map_or(0, |at| at + 3);
    let end = text.get(begin..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(text.len(), |at| begin + at);
    let authority = text.get(begin..end).unwrap_or_default();
    let hosts = authority.rfind('@').map_or(0, |at| at + 1);
    let comma = authority.get(hosts..).and_then(|hosts| hosts.find(','));
    let Some(comma) = comma.map(|at| begin + hosts + at) else { return text.to_owned() };
    [text.get(..comma), text.get(end..)].into_iter().flatten().collect()
}

/// Compares the parser with the one of the client crate, which accepts more forms. Both must read an accepted URL alike.
#[cfg(any(test, fuzzing))]
pub(crate) fn compare_with_reference(text: &str) {
    let Ok(url) = Url::parse(text) else { return };
    // The client crate does not know the endings of these schemes.
    let (scheme, rest) = text.split_once("://").unwrap_or((text, ""));
    let endings = ["+cluster", "-cluster", "+sentinel", "-sentinel"];
    let scheme = endings.iter().find_map(|ending| scheme.strip_suffix(ending)).unwrap_or(scheme);
    let plain = without_other_hosts(&[scheme, "://", rest].concat());
    let reference = redis::parse_redis_url(&plain);
    assert!(reference.is_some(), "no URL: {text:?}");
    let Some(reference) = reference else { return };
    let named_at_the_end = reference.fragment().is_some();
    assert!(!named_at_the_end || reference.fragment() == Some(&url.service), "fragment: {text:?}");
    let host = reference.host_str().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_same_address = host.parse::<Ipv6Addr>().is_ok_and(|address| Ok(address) == url.host.parse());
    assert!(is_same_address || host == url.host, "host: {text:?}");
    assert_eq!(reference.port(), url.port, "port: {text:?}");
    let path = decode(reference.path());
    let mut names = Vec::new();
    if url.kind == Kind::Socket {
        assert_eq!((reference.username(), reference.password()), ("", None), "login: {text:?}");
        assert_eq!(path.as_deref(), Some(&*url.socket), "path: {text:?}");
    } else {
        let user = decode(reference.username()).filter(|user| !user.is_empty());
        assert_eq!(user, url.user, "user: {text:?}");
        assert_eq!(reference.password().and_then(decode), url.password, "password: {text:?}");
        let has_service = url.kind == Kind::Sentinel && !named_at_the_end;
        let service = if has_service { format!("/{}", url.service) } else { String::new() };
        let rest = path.as_deref().and_then(|path| path.strip_prefix(&*service)).map(|path| path.trim_matches('/'));
        let number = rest.map(|rest| if rest.is_empty() { Ok(0) } else { rest.parse() });
        assert_eq!(number, Some(Ok(url.database)), "database: {text:?}");
    }
    for (name, value) in reference.query_pairs() {
        match (&*name, url.kind) {
            ("db", Kind::Socket) => assert_eq!(value.parse(), Ok(url.database), "{text:?}"),
            ("user", Kind::Socket) => assert_eq!(Some(&*value), url.user.as_deref(), "{text:?}"),
            ("pass", Kind::Socket) => assert_eq!(Some(&*value), url.password.as_deref(), "{text:?}"),
            ("seed", Kind::Cluster) | ("sentinel", Kind::Sentinel) => {}
            _ => names.push((name.into_owned(), value.into_owned())),
        }
    }
    assert_eq!(names, url.parameters, "parameters: {text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::label_of;
    use crate::node::redis::NodeConfig;

    /// A password with characters that no address has, so that it cannot be taken for one.
    const SECRET: &str = "hunter!2";

    /// Returns all texts that are shown of a node with this URL: its label, or the error.
    fn shown(url: &str) -> String {
        let config = NodeConfig::new(url);
        let label = label_of(&config).unwrap_or_else(|error| format!("{error} {error:?}"));
        format!("{label} {config:?}")
    }

    #[test]
    fn every_url_component_is_parsed() {
        let plain = || Url::parse("redis://h").unwrap();
        let text = |text: &str| Some(text.to_owned());
        let at = |host: &str, port| MemberAddress { host: host.into(), port };
        let table = [
            ("redis://h/", plain()),
            ("redis://h?", plain()),
            ("redis://h:7/3", Url { port: Some(7), database: 3, ..plain() }),
            ("redis://:p%40%C3%A4%2F@h", Url { password: text("p@\u{e4}/"), ..plain() }),
            ("redis://:p:w@h", Url { password: text("p:w"), ..plain() }),
            ("redis://:p\u{e4},w@h", Url { password: text("p\u{e4},w"), ..plain() }),
            ("redis://u%20:p+w@h", Url { user: text("u "), password: text("p+w"), ..plain() }),
            ("redis://[0::1]:7", Url { host: "::1".into(), port: Some(7), ..plain() }),
            ("rediss://H.a_b-c", Url { is_tls: true, host: "H.a_b-c".into(), ..plain() }),
            (
                "redis://h?ca_file=%2Fa%20b%2B.pem&server_name=x",
                Url {
                    parameters: vec![("ca_file".into(), "/a b+.pem".into()), ("server_name".into(), "x".into())],
                    ..plain()
                },
            ),
            (
                "redis+cluster://h?map=a:1/b:2&map=c/d",
                Url {
                    kind: Kind::Cluster,
                    parameters: vec![("map".into(), "a:1/b:2".into()), ("map".into(), "c/d".into())],
                    ..plain()
                },
            ),
            (
                "redis+cluster://h?seed=a&seed=[::2]:7",
                Url { kind: Kind::Cluster, others: vec![at("a", 6379), at("::2", 7)], ..plain() },
            ),
            (
                "valkeys+sentinel://h/orders/3?sentinel=a",
                Url {
                    kind: Kind::Sentinel,
                    is_tls: true,
                    service: "orders".into(),
                    database: 3,
                    others: vec![at("a", 26379)],
                    ..plain()
                },
            ),
            (
                "redis-cluster://:p,w@h:7,[::2]:8,c",
                Url {
                    kind: Kind::Cluster,
                    password: text("p,w"),
                    port: Some(7),
                    others: vec![at("::2", 8), at("c", 6379)],
                    ..plain()
                },
            ),
            (
                "rediss-sentinel://h:7,b:8,c/3?sentinel=d#orders",
                Url {
                    kind: Kind::Sentinel,
                    is_tls: true,
                    port: Some(7),
                    service: "orders".into(),
                    database: 3,
                    others: vec![at("b", 8), at("c", 26379), at("d", 26379)],
                    ..plain()
                },
            ),
            (
                "redis+sentinel://h,b/orders/3",
                Url {
                    kind: Kind::Sentinel,
                    service: "orders".into(),
                    database: 3,
                    others: vec![at("b", 26379)],
                    ..plain()
                },
            ),
            (
                "redis+unix:///run/a%40b.sock?db=2&user=u&pass=p%26w",
                Url {
                    kind: Kind::Socket,
                    host: String::new(),
                    socket: "/run/a@b.sock".into(),
                    database: 2,
                    user: text("u"),
                    password: text("p&w"),
                    ..plain()
                },
            ),
        ];
        for (url, expected) in table {
            assert!(Url::parse(url) == Ok(expected), "{url}");
            compare_with_reference(url);
        }
    }

    #[test]
    fn invalid_url_component_is_rejected_with_its_error() {
        let table = [
            ("", NO_URL),
            ("h:6379", NO_URL),
            ("redis:/h", NO_URL),
            ("REDIS://h", NO_URL),
            ("redis+unix+cluster:///a", NO_URL),
            ("redis://h ", SPACE),
            ("redis://:p w@h", SPACE),
            ("redis://h\n", SPACE),
            ("redis://h?ca_file=a%0Ab", SPACE),
            ("redis://h#", FRAGMENT),
            ("redis://h#orders", FRAGMENT),
            ("redis-cluster://h#orders", FRAGMENT),
            ("redis-sentinel://h#", FRAGMENT),
            ("redis-sentinel://h#a b", SPACE),
            ("redis-sentinel://:p#w@h", FRAGMENT),
            ("redis-sentinel://h/orders#orders", DATABASE),
            ("redis-sentinel://pw@h#orders/", FRAGMENT),
            ("redis-cluster://h,", HOST),
            ("redis-sentinel://,h/orders", HOST),
            ("redis://:p#w@h", FRAGMENT),
            ("unix:///run/a.sock#pw", FRAGMENT),
            ("rediss://h#insecure", INSECURE),
            ("redis://:p@w@h", SEVERAL_AT),
            ("redis://:p@h1,:p@h2", SEVERAL_AT),
            ("redis://@h", EMPTY_LOGIN),
            ("redis://:@h", EMPTY_LOGIN),
            ("redis://u:@h", EMPTY_LOGIN),
            ("redis://:p%w@h", ENCODING),
            ("redis://:p%+1@h", ENCODING),
            ("redis://:p%FF@h", ENCODING),
            ("redis://h1,h2", SEVERAL_HOSTS),
            ("redis://", HOST),
            ("redis://:6379", HOST),
            ("redis://u:p@", HOST),
            ("redis://h!", HOST),
            ("redis://h%41", HOST),
            ("redis://::1:6379", HOST),
            ("redis://[::1", IPV6),
            ("redis://[::g]", IPV6),
            ("redis://[fe80::1%25eth0]", IPV6),
            ("redis://0.0.0.0", WILDCARD),
            ("redis://[::]", WILDCARD),
            ("redis://h:", PORT),
            ("redis://h:0", PORT),
            ("redis://h:+7", PORT),
            ("redis://h:65536", PORT),
            ("redis://[::1]7", PORT),
            ("redis://u:p/w@h", PORT),
            ("redis://u:p?w@h", PORT),
            ("redis://h/x", DATABASE),
            ("redis://h/-1", DATABASE),
            ("redis://h/+1", DATABASE),
            ("redis://h//3", DATABASE),
            ("redis://h/3/4", DATABASE),
            ("redis://u:6379/pw@h", DATABASE),
            ("redis://h/99999999999999999999", DATABASE),
            ("redis+cluster://h/3", CLUSTER_DATABASE),
            ("redis+sentinel://h", NO_SERVICE),
            ("redis+sentinel://h/a%20b", NO_SERVICE),
            ("redis+sentinel://h/../3", NO_SERVICE),
            ("unix://run/a.sock", SOCKET),
            ("unix://:pw@/run/a.sock", SOCKET),
            ("unix:///:pw@/run/a.sock", SOCKET),
            ("unix:///pw@/run/a.sock", SOCKET),
            ("unix:///run/a.sock[?db=1&pass=pw]", SOCKET),
            ("unix:///", SOCKET),
            ("unix:///run/../a.sock", SOCKET),
            ("unix:///run/%2e/a.sock", SOCKET),
            ("unix:///run/a%0A.sock", SOCKET),
            ("unix:///a.sock?password=pw", SOCKET_LOGIN),
            ("redis://h?password=pw", BEFORE),
            ("redis://h?user=u&pass=pw", BEFORE),
            ("redis://h?auth=pw", BEFORE),
            ("redis://h?ca_file=a@b", QUERY),
            ("redis://h?ca_file=a+b", QUERY),
            ("redis://h?pw", EMPTY_PARAMETER),
            ("redis://h?=a", EMPTY_PARAMETER),
            ("redis://h?ca_file=", EMPTY_PARAMETER),
            ("redis://h?ca_file=a&", EMPTY_PARAMETER),
            ("redis://h?ca_file=a&ca_file=b", TWICE),
            ("unix:///a.sock?db=1&db=2", TWICE),
            ("redis://h?map=a/b", NOTHING_ANNOUNCED),
            ("redis+cluster://h?map=a/b&x=1&x=2", TWICE),
            ("redis://h?protocol=3", PROTOCOL),
            ("redis+cluster://h?seed=", SEED),
            ("redis+cluster://h?seed=h2:", SEED),
            ("redis+sentinel://h/a?sentinel=h2%2F", SENTINEL),
        ];
        for (url, expected) in table {
            assert_eq!(Url::parse(url).err(), Some(expected), "{url:?}");
        }
    }

    /// Forms in which this client, redis-rs, redis-py, ioredis, lettuce, Jedis, go-redis and Predis document a password.
    #[test]
    fn password_is_redacted_in_every_url_form_that_clients_document() {
        let table = [
            "redis://:{pw}@h",
            "redis://user:{pw}@h:6379/3",
            "redis://{pw}@h",
            "redis://{pw}@h:6379/0?timeout=10s",
            "redis://h?password={pw}",
            "redis://h?pass={pw}",
            "redis://h?auth={pw}",
            "redis://h/0?username=u&password={pw}",
            "redis://h#{pw}",
            "redis://h/{pw}",
            "redis://h:{pw}",
            "redis://{pw}",
            "redis:{pw}@h",
            "redis://u:{pw}@h?allowUsernameInURI=true",
            "redis://u:{pw}@h/0?ssl_cert_reqs=none",
            "redis://:{pw}@h1:26379,h2:26379/0#mymaster",
            "redis-sentinel://{pw}@h1:26379,h2:26379/0#mymaster",
            "redis-sentinel://h1/0?sentinelPassword={pw}#mymaster",
            "redis+sentinel://h1/mymaster?sentinel_password={pw}",
            "redis+sentinel://h1/mymaster?sentinel=:{pw}@h2",
            "redis+sentinel://:{pw}@h1,h2/mymaster",
            "redis+sentinel://h1/{pw}",
            "redis+cluster://:{pw}@h1?seed=:{pw}@h2",
            "redis+cluster://:{pw}@h1,:{pw}@h2",
            "redis-socket://{pw}@/run/redis.sock",
            "rediss://:{pw}@h#insecure",
            "unix:///run/redis.sock?db=1&user=u&pass={pw}",
            "redis+unix:///run/redis.sock?db=1&user=u&pass={pw}",
            "redis+unix:///run/redis.sock[?db=1[&pass={pw}]]",
            "redis+unix:///:{pw}@run/redis.sock",
            "unix://:{pw}@/run/redis.sock",
            "unix://u:{pw}@/run/redis.sock?db=1",
            "unix:///run/redis.sock?password={pw}",
            "unix:///run/redis.sock;pass={pw}",
            "unix:/run/redis.sock?pass={pw}",
            "tcp://h?password={pw}",
            "http://:{pw}@h",
            "{pw}@h:6379",
            "h:6379,password={pw},ssl=True",
        ];
        for form in table {
            // Unchanged, with characters that have a meaning in URLs, and with an error in its code.
            for (before, after) in
                [("", ""), ("/", ""), ("?", "="), ("#", ""), ("@", "@"), ("%zz", ""), (" ", "\n"), ("[", "]")]
            {
                let url = form.replace("{pw}", &format!("{before}{SECRET}{after}"));
                let shown = shown(&url);
                assert!(!shown.contains(SECRET), "{url}: {shown}");
            }
        }
    }

    #[test]
    fn random_urls_are_parsed_like_the_reference() {
        // The first of each kind is accepted, and half of all URLs begin with it.
        const SCHEMES: [&str; 11] = [
            "redis://",
            "rediss://",
            "valkey://",
            "redis+cluster://",
            "redis+sentinel://",
            "redis+sentinel://h/orders/",
            "redis-sentinel://",
            "redis-cluster://",
            "unix:///run/",
            "redis+unix:///",
            "http://",
        ];
        const LOGINS: [&str; 8] = ["", "", ":hunter!2@", "u:hunter!2@", "u@", "a%40b:p%3Aw@", "@", ":p@hunter!2@"];
        const HOSTS: [&str; 9] = ["h", "10.0.0.1", "[::1]", "[2001:DB8::0:1]", "::1", "h1,h2", "a-b.c_d", "", "H%41"];
        const PORTS: [&str; 6] = ["", "", ":6379", ":", ":0", ":70000"];
        const PATHS: [&str; 9] = ["", "/", "/3", "/orders", "/orders/3/", "/run/a.sock", "/../a", "/%2e/a%40", "//"];
        const QUERIES: [&str; 10] = [
            "",
            "",
            "?db=1&pass=hunter!2",
            "?seed=h2&seed=[::2]:7",
            "?sentinel=h2:7",
            "?ca_file=%2Fa%20b&x=y",
            "?a=redis-cluster://h",
            "?connect_timeout_ms=5&connect_timeout_ms=6",
            "?password=hunter!2",
            "?",
        ];
        const ENDS: [&str; 5] = ["", "", "", "#hunter!2", "#orders"];
        const NASTY: [&str; 20] = [
            "/", "?", "#", "@", ":", "%", "%00", "%2F", "[", "]", "&", "=", "+", " ", "\n", "\\", "..", "\u{e4}",
            "\u{202e}", ",",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        let mut accepted = 0;
        for _ in 0..50_000 {
            let parts: [&[&str]; 7] = [&SCHEMES, &LOGINS, &HOSTS, &PORTS, &PATHS, &QUERIES, &ENDS];
            let mut url = String::new();
            for part in parts {
                let chosen = if random.bool() { part.first() } else { random.choice(part) };
                url.extend(chosen.copied());
            }
            // Most are changed at some places: a character is removed, or a special one is inserted.
            for _ in 0..random.usize(0..3) {
                let places: Vec<_> = url.char_indices().map(|(place, _)| place).collect();
                let Some(place) = random.choice(&places).copied() else { continue };
                let nasty = random.choice(NASTY).unwrap_or_default();
                // The secret stays whole, or it could not be found again.
                if !url.match_indices(SECRET).any(|(start, _)| (start..start + SECRET.len()).contains(&place)) {
                    if random.bool() {
                        url.remove(place);
                    } else {
                        url.insert_str(place, nasty);
                    }
                }
            }
            compare_with_reference(&url);
            accepted += usize::from(Url::parse(&url).is_ok());
            let shown = shown(&url);
            assert!(!shown.contains(SECRET), "{url:?}: {shown}");
        }
        assert!(accepted > 2000, "{accepted} of them say something");
    }
}
