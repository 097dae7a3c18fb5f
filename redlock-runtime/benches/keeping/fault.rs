//! Faults that are injected while locks are held.

use crate::plan::{LOCKS, RECOVERY, TTL};
use crate::site::Site;
use redlock_tests::{PATIENCE, RedisServer, eventually_eq};
use std::time::{Duration, Instant};
use tokio::time::sleep;

const BETWEEN_CUTS: Duration = Duration::from_millis(150);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Emptied,
    OneAfterTheOther,
    DownAtFirst,
    Frozen,
    Cut,
    Unreachable,
    MajorityKilled,
    FailedOver,
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Emptied,
        Self::OneAfterTheOther,
        Self::DownAtFirst,
        Self::Frozen,
        Self::Cut,
        Self::Unreachable,
        Self::MajorityKilled,
        Self::FailedOver,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Emptied => "one node killed, and back empty at once",
            Self::OneAfterTheOther => "every node killed and back empty, one after the other",
            Self::DownAtFirst => "a minority down at the acquisition and back later, then another minority killed",
            Self::Frozen => "one node frozen for 2.5 ttl",
            Self::Cut => "every connection cut every 150 ms for 3 ttl",
            Self::Unreachable => "all nodes unreachable for 0.4 ttl and reachable for 0.3 ttl in turn, for 4 ttl",
            Self::MajorityKilled => "a majority killed, and back empty after 1.5 ttl",
            Self::FailedOver => "every node fails over to a replica that has its data",
        }
    }

    /// Returns `false` for faults that need a minority of nodes, or several nodes, if there is only one node.
    pub(crate) const fn is_possible_with(self, nodes: usize) -> bool {
        nodes > 1 || !matches!(self, Self::OneAfterTheOther | Self::DownAtFirst)
    }

    /// Returns `true` if locks must survive the fault. A majority of the nodes keeps its data, and no lock is
    /// unreachable on a majority for a whole ttl.
    pub(crate) const fn is_to_be_survived(self, nodes: usize) -> bool {
        match self {
            Self::MajorityKilled => false,
            Self::Cut | Self::Unreachable | Self::FailedOver => true,
            Self::Emptied | Self::OneAfterTheOther | Self::DownAtFirst | Self::Frozen => nodes > 1,
        }
    }

    /// Sets up the servers before the locks are acquired. The managers are connected already.
    pub(crate) async fn prepare(self, site: &mut Site) {
        match self {
            Self::DownAtFirst => site.nodes[..site.minority()].iter().for_each(RedisServer::kill),
            Self::FailedOver => site.add_replicas().await,
            _ => {}
        }
    }

    /// Injects the fault. Returns the start time of each of its steps.
    pub(crate) async fn strike(self, site: &Site) -> Vec<Instant> {
        let begun = Instant::now();
        match self {
            Self::Emptied => site.nodes[0].restart_empty().await,
            Self::OneAfterTheOther => return one_after_the_other(site).await,
            Self::DownAtFirst => return down_at_first(site).await,
            Self::Frozen => freeze(&site.nodes[0]).await,
            Self::Cut => cut(site, begun).await,
            Self::Unreachable => return in_turn(site, begun).await,
            Self::MajorityKilled => kill_for_long(&site.nodes[..site.majority()]).await,
            Self::FailedOver => return fail_over(site).await,
        }
        vec![begun]
    }
}

async fn one_after_the_other(site: &Site) -> Vec<Instant> {
    let mut strikes = Vec::new();
    for (index, node) in site.nodes.iter().enumerate() {
        if index > 0 {
            sleep(RECOVERY).await;
        }
        strikes.push(Instant::now());
        node.restart_empty().await;
    }
    strikes
}

async fn down_at_first(site: &Site) -> Vec<Instant> {
    let (first, others) = site.nodes.split_at(site.minority());
    let back = Instant::now();
    for node in first {
        node.restart_empty().await;
    }
    sleep(RECOVERY).await;
    let killed = Instant::now();
    others[..site.minority()].iter().for_each(RedisServer::kill);
    vec![back, killed]
}

async fn freeze(node: &RedisServer) {
    node.freeze();
    sleep(TTL.mul_f64(2.5)).await;
    node.thaw();
}

async fn cut(site: &Site, begun: Instant) {
    while begun.elapsed() < 3 * TTL {
        site.cut_all().await;
        sleep(BETWEEN_CUTS).await;
    }
}

async fn in_turn(site: &Site, begun: Instant) -> Vec<Instant> {
    let mut strikes = Vec::new();
    while begun.elapsed() < 4 * TTL {
        strikes.push(Instant::now());
        site.make_reachable(false).await;
        sleep(TTL.mul_f64(0.4)).await;
        site.make_reachable(true).await;
        sleep(TTL.mul_f64(0.3)).await;
    }
    strikes
}

async fn kill_for_long(nodes: &[RedisServer]) {
    nodes.iter().for_each(RedisServer::kill);
    sleep(TTL.mul_f64(1.5)).await;
    for node in nodes {
        node.restart_empty().await;
    }
}

async fn fail_over(site: &Site) -> Vec<Instant> {
    // Wait for the first report of the replica. Before it, the master sends no data to a new replica.
    for replica in &site.replicas {
        let locks = async || replica.inspect().keys().await.iter().filter(|key| key.starts_with("order:")).count();
        eventually_eq(PATIENCE, "the replica has the locks", LOCKS, locks).await;
    }
    let begun = Instant::now();
    for ((node, replica), proxy) in site.nodes.iter().zip(&site.replicas).zip(&site.proxies) {
        node.kill();
        replica.inspect().command::<()>(&["REPLICAOF", "NO", "ONE"]).await;
        proxy.redirect_all_connections(replica).await;
    }
    vec![begun]
}
