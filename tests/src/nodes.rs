//! Several independent masters: the nodes of one quorum.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::{Builder, Proxy, RedisServer, eventually};

/// Independent `redis-server` processes: a slice of [`RedisServer`], with helpers that address all of them.
#[derive(Debug)]
pub struct Nodes {
    servers: Vec<RedisServer>,
}

impl Nodes {
    /// Starts `count` plain masters at once.
    pub async fn start(count: usize) -> Self {
        Self::start_with(count, |_, builder| builder).await
    }

    /// Starts `count` masters at once, each with the settings that `configure` returns for its index.
    pub async fn start_with(count: usize, configure: impl Fn(usize, Builder) -> Builder) -> Self {
        let mut starting = JoinSet::new();
        for index in 0..count {
            let builder = configure(index, RedisServer::builder());
            starting.spawn(async move { (index, builder.start().await) });
        }
        let mut servers = starting.join_all().await;
        servers.sort_by_key(|(index, _)| *index);
        Self { servers: servers.into_iter().map(|(_, server)| server).collect() }
    }

    /// Returns the URLs of all nodes, in order.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(RedisServer::url).collect()
    }

    /// Returns the URLs joined by commas, as the value of `REDLOCK_NODES`.
    #[must_use]
    pub fn environment_value(&self) -> String {
        self.urls().join(",")
    }

    /// Starts a proxy in front of each node, in order.
    pub async fn proxied(&self) -> Vec<Proxy> {
        let mut proxies = Vec::with_capacity(self.servers.len());
        for server in &self.servers {
            proxies.push(Proxy::to(server).await);
        }
        proxies
    }

    /// Returns the contents of each running node by its index. Empty nodes are skipped.
    pub async fn contents(&self) -> BTreeMap<usize, BTreeMap<String, String>> {
        self.matching("").await
    }

    /// Returns the keys on each running node whose name or content contains `needle`. Nodes without such a key are skipped.
    pub async fn mentions(&self, needle: &str) -> BTreeMap<usize, BTreeMap<String, String>> {
        self.matching(needle).await
    }

    /// Waits until all running nodes are empty. Intended for the end of a test; thaw frozen nodes first.
    ///
    /// # Panics
    /// After `deadline`, with the keys that are still there.
    pub async fn assert_empty(&self, deadline: Duration) {
        self.assert_no_mention(deadline, "").await;
    }

    /// Waits until no key on a running node contains `needle`, for example an owner token.
    ///
    /// # Panics
    /// After `deadline`, with the keys that still contain it.
    pub async fn assert_no_mention(&self, deadline: Duration, needle: &str) {
        let what = format!("no node holds a key with {needle:?}");
        eventually(deadline, &what, async || {
            let found = self.matching(needle).await;
            if found.is_empty() { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Removes the loaded scripts of every running node.
    pub async fn flush_scripts(&self) {
        for (_, server) in self.running() {
            server.inspect().flush_scripts().await;
        }
    }

    /// Returns the sum of [`commands_processed`](crate::Inspector::commands_processed) over the running nodes.
    pub async fn commands_processed(&self) -> u64 {
        let mut sum = 0;
        for (_, server) in self.running() {
            sum += server.inspect().commands_processed().await;
        }
        sum
    }

    async fn matching(&self, needle: &str) -> BTreeMap<usize, BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        for (index, server) in self.running() {
            let keys = server.inspect().mentions(needle).await;
            if !keys.is_empty() {
                found.insert(index, keys);
            }
        }
        found
    }

    fn running(&self) -> impl Iterator<Item = (usize, &RedisServer)> {
        self.servers.iter().enumerate().filter(|(_, server)| server.is_running())
    }
}

impl Deref for Nodes {
    type Target = [RedisServer];

    fn deref(&self) -> &[RedisServer] {
        &self.servers
    }
}
