//! Where a cluster is found, and how to log in: the URL of a cluster taken apart.

use super::address::MemberAddress;
use crate::error::LockError;
use crate::node::redis::endpoint::Endpoint;
use std::fmt;

/// What the scheme of a URL has behind the name of the server when it names a cluster.
const CLUSTER: &str = "+cluster";

/// The port of a seed that names none.
const PORT: u16 = 6379;

/// Members of a cluster that tell which others there are. `Debug` shows the addresses alone.
pub(crate) struct Seeds {
    first: Endpoint,
    others: Box<[Endpoint]>,
}

impl Seeds {
    /// Whether `url` is that of a cluster, as `redis+cluster://host` is.
    pub(crate) fn are_in(url: &str) -> bool {
        url.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with(CLUSTER))
    }

    /// Takes a URL apart. No message repeats it, because it may hold a password.
    ///
    /// # Errors
    /// [`LockError::Configuration`] saying which node's URL is wrong, and what to write. `position` counts from 1.
    pub(crate) fn parse(url: &str, position: usize) -> Result<Self, LockError> {
        let wrong = |what: &str| LockError::configuration(format!("the URL of node {position} {what}"));
        let (server, names) = split(url);
        let first = Endpoint::parse(&server, position)?;
        if first.login().db() != 0 {
            return Err(wrong("names a database, and a cluster has only number 0: leave it out"));
        }
        if first.host().is_none() {
            return Err(wrong(
                "names a socket, and the members of a cluster have addresses: write redis+cluster://host",
            ));
        }
        let seed = |name: &String| seed(name).map(|at| first.elsewhere(&at.host, at.port));
        let others: Option<Vec<_>> = names.iter().map(seed).collect();
        let others = others.ok_or_else(|| {
            wrong("has a seed that is no address: write redis+cluster://host:port?seed=host:port&seed=host:port")
        })?;
        Ok(Self { others: others.into(), first })
    }

    /// The address that the URL names first.
    pub(crate) fn label(&self) -> &str {
        self.first.label()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        [&self.first].into_iter().chain(&self.others)
    }

    /// Where a member of the cluster is.
    pub(super) fn member(&self, at: &MemberAddress) -> Endpoint {
        self.first.elsewhere(&at.host, at.port)
    }
}

/// The URL of the first member as that of a server, and the names of the other seeds.
fn split(url: &str) -> (String, Vec<String>) {
    let url = url.replacen(&format!("{CLUSTER}://"), "://", 1);
    let Some((server, query)) = url.split_once('?') else { return (url, Vec::new()) };
    let (seeds, rest): (Vec<_>, Vec<_>) = query.split('&').partition(|part| part.starts_with("seed="));
    let seeds = seeds.iter().filter_map(|seed| seed.strip_prefix("seed=")).map(str::to_owned).collect();
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    (format!("{server}{query}"), seeds)
}

/// The address that is called `name`: `host`, `host:port` or `[::1]:port`.
fn seed(name: &str) -> Option<MemberAddress> {
    let url = redis::parse_redis_url(&format!("redis://{name}"))?;
    let is_more = !url.username().is_empty() || url.password().is_some() || !matches!(url.path(), "" | "/");
    let host = url.host_str().filter(|host| !host.is_empty() && !is_more)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(MemberAddress { host: host.into(), port: url.port().unwrap_or(PORT) })
}

impl fmt::Debug for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Endpoint::label)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_clusters() {
        let table: [(&str, &[&str]); 5] = [
            ("redis+cluster://h1", &["h1:6379"]),
            ("valkey+cluster://h1:7000/?seed=h2", &["h1:7000", "h2:6379"]),
            ("redis+cluster://u:pw@h1:7000/0?seed=h2:7001&seed=[::1]:7002", &["h1:7000", "h2:7001", "::1:7002"]),
            ("redis+cluster://u:p%3Fw@h1?seed=10.0.0.2:7001", &["h1:6379", "10.0.0.2:7001"]),
            #[cfg(any(feature = "tls-aws-lc-rs", feature = "tls-ring"))]
            ("rediss+cluster://h1?seed=h2", &["h1:6379", "h2:6379"]),
            #[cfg(not(any(feature = "tls-aws-lc-rs", feature = "tls-ring")))]
            ("redis+cluster://h1?seed=h2", &["h1:6379", "h2:6379"]),
        ];
        for (url, expected) in table {
            assert!(Seeds::are_in(url), "{url}");
            let seeds = Seeds::parse(url, 1).expect(url);
            assert_eq!(seeds.iter().map(Endpoint::label).collect::<Vec<_>>(), expected, "{url}");
            let (user, is_tls) = (seeds.first.login().username(), url.starts_with("rediss"));
            assert!(seeds.iter().all(|seed| (seed.login().username(), seed.is_tls()) == (user, is_tls)), "{url}");
        }
        assert!(!Seeds::are_in("redis://h1") && !Seeds::are_in("redis://:+cluster@h1"));
    }

    #[test]
    fn wrong_urls_are_explained_without_their_secrets() {
        let table = [
            ("redis+cluster://:hunter2@h1/3", "a cluster has only number 0: leave it out"),
            ("redis+cluster://:hunter2@h1?seed=", "seed=host:port"),
            ("redis+cluster://:hunter2@h1?seed=redis://h2", "seed=host:port"),
            ("redis+cluster://:hunter2@h1?seed=u:hunter2@h2", "seed=host:port"),
            ("redis+cluster://:hunter2@h1?seed=h2:x", "seed=host:port"),
            ("unix+cluster:///run/redis.sock", "write redis+cluster://host"),
            ("redis+cluster://", "Missing hostname"),
            ("http+cluster://:hunter2@h1", "redis+cluster://"),
        ];
        for (url, expected) in table {
            let message = Seeds::parse(url, 2).unwrap_err().to_string();
            assert!(message.starts_with("the URL of node 2 ") && message.contains(expected), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
