//! Servers of one trial, and the proxies in front of them.

use futures_util::future::join_all;
use redlock_tests::{Nodes, Proxy, RedisServer};

pub(crate) struct Site {
    pub(crate) nodes: Nodes,
    pub(crate) proxies: Vec<Proxy>,
    /// One replica of each node, for trials with a failover.
    pub(crate) replicas: Vec<RedisServer>,
}

impl Site {
    pub(crate) async fn start(nodes: usize) -> Self {
        let nodes = Nodes::start(nodes).await;
        let proxies = nodes.proxied().await;
        Self { nodes, proxies, replicas: Vec::new() }
    }

    pub(crate) async fn add_replicas(&mut self) {
        let starting = self.nodes.iter().map(|node| RedisServer::builder().replica_of(node).start());
        self.replicas = join_all(starting).await;
    }

    /// URLs of the proxies, through which network faults can be injected.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.proxies.iter().map(Proxy::url).collect()
    }

    /// Returns the largest number of nodes that may fail while the others are a majority.
    pub(crate) fn minority(&self) -> usize {
        (self.nodes.len() - 1) / 2
    }

    pub(crate) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    pub(crate) async fn cut_all(&self) {
        join_all(self.proxies.iter().map(Proxy::cut)).await;
    }

    /// Makes the nodes reachable or unreachable. If unreachable, existing connections are closed and new ones are
    /// refused.
    pub(crate) async fn make_reachable(&self, reachable: bool) {
        join_all(self.proxies.iter().map(|proxy| proxy.refuse(!reachable))).await;
        if !reachable {
            self.cut_all().await;
        }
    }
}
