//! The parsed URL of a cluster: addresses and login.

use super::address::MemberAddress;
use crate::error::LockError;
use crate::node::redis::NodeConfig;
use crate::node::redis::endpoint::{Announcer, Endpoint, parse};
use crate::node::redis::url::{Kind, is_of_kind};
use std::fmt;
use std::num::NonZeroU32;
use tokio::runtime::Handle;

/// The members of a cluster that are queried for the other members. `Debug` shows only the addresses.
pub(crate) struct Seeds {
    first: Endpoint,
    others: Box<[Endpoint]>,
}

impl Seeds {
    /// Returns `true` if `node` has the URL of a cluster, such as `redis+cluster://host`.
    pub(crate) fn has_cluster_url(node: &NodeConfig) -> bool {
        is_of_kind(&node.url, Kind::Cluster)
    }

    /// Parses the URL of a cluster. No message repeats the URL, because it may contain a password.
    ///
    /// # Errors
    /// [`LockError::Configuration`] saying which node's URL is wrong, and what to write. `position` counts from 1.
    pub(crate) fn new(node: &NodeConfig, position: usize) -> Result<Self, LockError> {
        let url = parse(node, position)?;
        let first = Endpoint::from_parsed_url(node, &url, position)?;
        let others = url.others.iter().map(|at| first.elsewhere(&at.host, at.port)).collect();
        Ok(Self { first, others })
    }

    /// Runs the program's credential source on the program's runtime.
    pub(crate) fn of_host(self, host: &Handle) -> Self {
        let of_host = |endpoint: Endpoint| endpoint.of_host(host.clone());
        Self { first: of_host(self.first), others: self.others.into_iter().map(of_host).collect() }
    }

    /// Identifies the cluster: all addresses in the URL, in any order.
    pub(crate) fn name(&self) -> String {
        let mut addresses: Vec<_> = self.iter().map(Endpoint::label).collect();
        addresses.sort_unstable();
        addresses.join("+")
    }

    /// Returns the number of replicas of a member that must confirm every lease, if there is one.
    pub(crate) fn confirm_replicas(&self) -> Option<NonZeroU32> {
        self.first.confirm_replicas()
    }

    /// Returns the first address in the URL.
    pub(crate) fn label(&self) -> &str {
        self.first.label()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        [&self.first].into_iter().chain(&self.others)
    }

    /// Returns the endpoint of a member of the cluster.
    pub(super) fn member(&self, at: &MemberAddress) -> Endpoint {
        self.first.announced(Announcer::Cluster, at)
    }
}

impl fmt::Debug for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Endpoint::label)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::BoxFuture;
    use crate::node::redis::Credentials;
    use crate::node::redis::cluster::together::all;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn cluster_urls_are_parsed() {
        let table: [(&str, &[&str]); 6] = [
            ("redis+cluster://h1?connect_timeout_ms=500&seed=h2%3A7001&password_file=/p%3Fw", &["h1:6379", "h2:7001"]),
            ("redis+cluster://h1", &["h1:6379"]),
            ("valkey+cluster://h1:7000/?seed=h2", &["h1:7000", "h2:6379"]),
            ("redis+cluster://u:pw@h1:7000/0?seed=h2:7001&seed=[::1]:7002", &["h1:7000", "h2:7001", "[::1]:7002"]),
            ("redis+cluster://u:p%3Fw@h1?seed=10.0.0.2:7001", &["h1:6379", "10.0.0.2:7001"]),
            #[cfg(any(feature = "tls-aws-lc-rs", feature = "tls-ring"))]
            ("rediss+cluster://h1?seed=h2", &["h1:6379", "h2:6379"]),
            #[cfg(not(any(feature = "tls-aws-lc-rs", feature = "tls-ring")))]
            ("redis+cluster://h1?seed=h2", &["h1:6379", "h2:6379"]),
        ];
        for (url, expected) in table {
            assert!(Seeds::has_cluster_url(&url.into()), "{url}");
            let seeds = Seeds::new(&url.into(), 1).expect(url);
            assert_eq!(seeds.iter().map(Endpoint::label).collect::<Vec<_>>(), expected, "{url}");
            let (timeout, is_tls) = (seeds.first.connect_timeout(), url.starts_with("rediss"));
            assert!(seeds.iter().all(|seed| (seed.connect_timeout(), seed.is_tls()) == (timeout, is_tls)), "{url}");
        }
        assert!(
            !Seeds::has_cluster_url(&"redis://h1".into()) && !Seeds::has_cluster_url(&"redis://:+cluster@h1".into())
        );
        let named = |url: &str| Seeds::new(&url.into(), 1).unwrap().name();
        assert_eq!(named("redis+cluster://h1?seed=h2"), named("redis+cluster://h2?seed=h1"));
    }

    #[tokio::test]
    async fn all_cluster_members_log_in_with_the_url_credentials() {
        for url in ["redis+cluster://u:p%3Fw@h1?seed=h2", "redis+cluster://u:p%3Fw@h1:7000/0?seed=h2&seed=h3:1"] {
            let seeds = Seeds::new(&url.into(), 1).unwrap().of_host(&Handle::current());
            let member = seeds.member(&MemberAddress::new("h4", 7000, ""));
            for endpoint in seeds.iter().chain([&member]) {
                let login = endpoint.login().await.unwrap();
                assert_eq!((login.username(), login.password()), (Some("u"), Some("p?w")), "{endpoint:?}");
            }
        }
    }

    /// All connections of a cluster are made at the same time.
    #[tokio::test]
    async fn concurrent_logins_of_cluster_members_share_one_credentials_call() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let node = NodeConfig::new("redis+cluster://u@h1?seed=h2").credentials(move || {
            let turn = count.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::task::yield_now().await;
                Ok(Credentials::password(turn.to_string()))
            }
        });
        let seeds = Seeds::new(&node, 1).unwrap().of_host(&Handle::current());
        let member = seeds.member(&MemberAddress::new("h3", 7000, ""));
        for turn in ["0", "1"] {
            let password = async |endpoint: &Endpoint| endpoint.login().await.unwrap().password().map(str::to_owned);
            let passwords =
                seeds.iter().chain([&member]).map(|endpoint| Box::pin(password(endpoint)) as BoxFuture<'_, _>);
            assert_eq!(all(passwords.collect()).await, vec![Some(turn.to_owned()); 3]);
        }
    }

    #[test]
    fn invalid_url_errors_do_not_contain_secrets() {
        let table = [
            ("redis+cluster://:hunter2@h1/3", "a cluster has only number 0: leave it out"),
            ("redis+cluster://:hunter2@h1?seed=", "seed=host:port"),
            ("redis+cluster://:hunter2@h1?seed=redis://h2", "seed=host:port"),
            ("redis+cluster://:hunter2@h1?seed=u:hunter2@h2", "write %3F, %40 and %2B"),
            ("redis+cluster://:hunter2@h1?seed=h2:x", "seed=host:port"),
            ("redis+cluster://:hunter2@h1?seed=h2&hunter2=hunter2", "an unknown parameter"),
            ("unix+cluster:///run/redis.sock", "redis+cluster:// for a cluster"),
            ("redis+cluster://", "names no host"),
            ("http+cluster://:hunter2@h1", "redis+cluster://"),
        ];
        for (url, expected) in table {
            let message = Seeds::new(&url.into(), 2).unwrap_err().to_string();
            assert!(message.starts_with("the URL of node 2 ") && message.contains(expected), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
