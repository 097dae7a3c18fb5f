//! Address of a member of a cluster, as the cluster reports it.

use std::fmt;

/// Length of the longest host name. Source: RFC 1035, section 2.3.4.
pub(in crate::node::redis) const LONGEST_HOST: usize = 255;

/// Host and port of a member. `Display` is the label of its node, with an IPv6 address in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MemberAddress {
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
}

impl MemberAddress {
    /// Creates an address. A member that does not know its address, or hides it, reports an empty host or a question mark. Its host is then
    /// the `answered` one.
    pub(crate) fn new(host: &str, port: u16, answered: &str) -> Self {
        let host = if matches!(host, "" | "?") { answered } else { host };
        Self { host: host.into(), port }
    }

    /// Like [`new`](Self::new), with the host as a server has sent it. Returns `None` if it is too long for a host name.
    pub(crate) fn read(host: &str, port: u16, answered: &str) -> Option<Self> {
        (host.len() <= LONGEST_HOST).then(|| Self::new(host, port, answered))
    }

    /// Reads `host:port`, as in `MOVED 4438 10.0.0.1:6379`. The host may contain colons.
    pub(crate) fn parse(text: &str, answered: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Self::read(host, port.parse().ok()?, answered)
    }
}

impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_host_and_port(&self.host, self.port, f)
    }
}

/// Writes `host:port`, or `[::1]:port` if the host is an IPv6 address.
pub(in crate::node::redis) fn fmt_host_and_port(host: &str, port: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_addresses_are_parsed_in_server_notation() {
        let table = [
            ("10.0.0.1:6379", Some("10.0.0.1:6379")),
            ("redis-1.example:7000", Some("redis-1.example:7000")),
            ("::1:7000", Some("[::1]:7000")),
            ("fe80::1%eth0:7000", Some("[fe80::1%eth0]:7000")),
            (":7000", Some("answered:7000")),
            ("?:7000", Some("answered:7000")),
            ("7000", None),
            ("host:", None),
            ("host:70000", None),
        ];
        for (text, expected) in table {
            let parsed = MemberAddress::parse(text, "answered").map(|address| address.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
        assert_eq!(MemberAddress::parse(&format!("{}:1", "h".repeat(256)), ""), None, "too long");
    }
}
