//! The URL of a master that Sentinels name.

use super::sentinels::Sentinels;
use crate::error::LockError;
use crate::node::redis::NodeConfig;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::endpoint::{Endpoint, parse};
use crate::node::redis::url::{Kind, is_of_kind};
use std::sync::Arc;

/// Returns `true` if the URL of `node` names Sentinels, such as `redis+sentinel://host/name`.
pub(crate) fn is_watched(node: &NodeConfig) -> bool {
    is_of_kind(&node.url, Kind::Sentinel)
}

/// Returns the node in the URL, and the Sentinels that locate it. No message repeats the URL, because it may contain a password.
///
/// # Errors
/// [`LockError::Configuration`] saying which node's URL is wrong, and what to write. `position` counts from 1.
pub(crate) fn endpoint(node: &NodeConfig, position: usize) -> Result<(Endpoint, Sentinels), LockError> {
    let url = parse(node, position)?;
    let master = Endpoint::read(node, &url, position)?;
    let first = MemberAddress { host: (&*url.host).into(), port: url.port.unwrap_or(url.kind.default_port()) };
    let label = format!("{}@{first}", url.service);
    let named = [first].into_iter().chain(url.others).collect();
    let sentinels = Sentinels::new(&url.service, master.as_sentinel(), named);
    Ok((master.with_locator(Arc::new(sentinels.clone()), label), sentinels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(url: &str) -> Result<(Endpoint, Sentinels), String> {
        endpoint(&url.into(), 2).map_err(|error| error.to_string())
    }

    fn addresses(sentinels: &Sentinels) -> Vec<String> {
        sentinels.addresses().iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn sentinel_urls_are_parsed() {
        let table: [(&str, &str, &[&str], i64); 4] = [
            ("redis+sentinel://s1/orders", "orders@s1:26379", &["s1:26379"], 0),
            (
                "redis+sentinel://u:p%3Fw@s1:7000/my.orders-1/3?sentinel=s2&sentinel=[::1]:7002&connect_timeout_ms=500",
                "my.orders-1@s1:7000",
                &["[::1]:7002", "s1:7000", "s2:26379"],
                3,
            ),
            ("valkey+sentinel://u:p%3Fw@10.0.0.1/a/", "a@10.0.0.1:26379", &["10.0.0.1:26379"], 0),
            ("redis+sentinel://s1/a?sentinel=s1:26379", "a@s1:26379", &["s1:26379"], 0),
        ];
        for (url, label, expected, database) in table {
            assert!(is_watched(&url.into()), "{url}");
            let (endpoint, sentinels) = read(url).expect(url);
            assert_eq!((endpoint.label(), endpoint.database()), (label, database), "{url}");
            assert_eq!(addresses(&sentinels), expected, "{url}");
            let (login, first) = (endpoint.login().await.unwrap(), sentinels.first());
            assert_eq!(login.password(), url.contains("p%3Fw").then_some("p?w"), "{url}");
            let of_sentinel = first.login().await.unwrap();
            assert_eq!((of_sentinel.username(), of_sentinel.password(), of_sentinel.db()), (None, None, 0), "{url}");
            let is_short = url.contains("500");
            assert_eq!(first.connect_timeout() == Duration::from_millis(500), is_short, "{url}");
        }
        assert!(!is_watched(&"redis://s1".into()) && !is_watched(&"redis://:+sentinel@s1".into()));
    }

    #[tokio::test]
    async fn sentinels_use_separate_credentials() {
        let node = NodeConfig::new("redis+sentinel://u:pw@s1/orders")
            .sentinel_credentials(crate::Credentials::new("watcher", "secret"));
        let (endpoint, sentinels) = endpoint(&node, 1).unwrap();
        let login = sentinels.first().login().await.unwrap();
        assert_eq!((login.username(), login.password()), (Some("watcher"), Some("secret")));
        let master = endpoint.login().await.unwrap();
        assert_eq!((master.username(), master.password()), (Some("u"), Some("pw")));
    }

    #[cfg(any(feature = "tls-aws-lc-rs", feature = "tls-ring"))]
    #[test]
    fn tls_applies_to_sentinels_and_master() {
        let (endpoint, sentinels) = read("rediss+sentinel://s1/orders").unwrap();
        assert!(endpoint.is_tls() && sentinels.first().is_tls());
    }

    #[test]
    fn invalid_url_errors_do_not_contain_secrets() {
        let table = [
            ("redis+sentinel://:hunter2@s1", "redis+sentinel://host:26379/name"),
            ("redis+sentinel://:hunter2@s1/", "redis+sentinel://host:26379/name"),
            ("redis+sentinel://:hunter2@s1/a%20b", "redis+sentinel://host:26379/name"),
            ("redis+sentinel://:hunter2@s1/orders/x", "is wrong"),
            ("redis+sentinel://:hunter2@s1/orders?sentinel=", "sentinel=host:port"),
            ("redis+sentinel://:hunter2@s1/orders?sentinel=u:hunter2@s2", "write %3F, %40 and %2B"),
            ("redis+sentinel://:hunter2@s1/orders?hunter2=1", "an unknown parameter"),
            ("redis+sentinel://:hunter2@s1/orders?sentinel_user=hunter2", "no password"),
            ("http+sentinel://:hunter2@s1/orders", "is not a Redis URL"),
            ("unix+sentinel:///run/redis.sock", "redis+sentinel:// for Sentinels"),
        ];
        for (url, expected) in table {
            let message = read(url).map(drop).unwrap_err();
            assert!(message.starts_with("the URL of node 2 ") && message.contains(expected), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        let alone = Endpoint::parse("redis://s1?sentinel_password_file=/secret", 1).unwrap_err().to_string();
        assert!(alone.contains("write redis+sentinel://"), "{alone}");
    }
}
