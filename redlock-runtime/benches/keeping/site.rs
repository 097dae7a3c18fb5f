//! The servers of one trial, and the ways to them.

use futures_util::future::join_all;
use redlock_tests::{Nodes, Proxy, RedisServer};

pub(crate) struct Site {
    pub(crate) nodes: Nodes,
    pub(crate) proxies: Vec<Proxy>,
    /// One of each node, where they are to take over.
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

    /// Through the proxies, so that the network can fail.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.proxies.iter().map(Proxy::url).collect()
    }

    /// As many as may fail while the others are a majority.
    pub(crate) fn minority(&self) -> usize {
        (self.nodes.len() - 1) / 2
    }

    pub(crate) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    pub(crate) async fn cut_all(&self) {
        join_all(self.proxies.iter().map(Proxy::cut)).await;
    }

    /// Connections end and new ones are refused, or the nodes can be reached again.
    pub(crate) async fn make_reachable(&self, reachable: bool) {
        join_all(self.proxies.iter().map(|proxy| proxy.refuse(!reachable))).await;
        if !reachable {
            self.cut_all().await;
        }
    }
}
