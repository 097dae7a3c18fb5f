//! A cluster of three masters with a replica each, behind proxies.
//!
//! The only replica of a master confirms each lease ([`CONFIRMED`]), so a failover keeps all leases. A failover begins only
//! when the replica has all the data.

use super::dice::Dice;
use super::network::Network;
use super::pause;
use super::servers::{CONFIRMED, durable, freeze, kill_clients, refuse};
use super::worker::observer;
use redlock_runtime::LockManager;
use redlock_tests::{Cluster, RedisServer};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::sleep;

const MASTERS: usize = 3;

pub(super) struct Clustered {
    cluster: Cluster,
    network: Arc<Network>,
    /// Number of the present master of each share of the slots.
    masters: [usize; MASTERS],
    observer: LockManager,
}

impl Clustered {
    pub(super) async fn start() -> Self {
        let cluster = Cluster::start_with(MASTERS, 1, durable).await;
        let network = Arc::new(Network::in_front_of(cluster.running().map(|(_, member)| member)).await);
        let observer = observer(&[url(&network)]);
        Self { cluster, network, masters: [0, 1, 2], observer }
    }

    pub(super) fn url(&self) -> String {
        url(&self.network)
    }

    pub(super) const fn network(&self) -> &Arc<Network> {
        &self.network
    }

    pub(super) async fn channels(&self) -> Vec<(u16, String)> {
        let mut channels = Vec::new();
        for (_, member) in self.cluster.running() {
            let id: String = member.inspect().command(&["CLUSTER", "MYID"]).await;
            channels.push((member.port(), format!("redlock::{id}:")));
        }
        channels
    }

    pub(super) async fn contents(&self) -> BTreeMap<String, String> {
        self.cluster.contents().await
    }

    pub(super) const fn observer(&self) -> &LockManager {
        &self.observer
    }

    /// Lets one fault happen and end. Returns its name.
    pub(super) async fn trouble(&mut self, dice: &mut Dice) -> &'static str {
        let share = dice.below(MASTERS);
        let number = self.masters[share];
        let [master, replica] = [number, replica(number)].map(|number| self.cluster.member(number));
        match dice.below(16) {
            0..2 => freeze(master, dice).await,
            2 => freeze(replica, dice).await,
            3..5 => kill_clients(master).await,
            5..8 => refuse(master, dice).await,
            8 => self.restart(replica, dice).await,
            9..11 => self.restart(master, dice).await,
            11..14 => self.fail_over(share, true, dice).await,
            _ => self.fail_over(share, false, dice).await,
        }
    }

    /// Restarts the member with its data.
    async fn restart(&self, member: &RedisServer, dice: &mut Dice) -> &'static str {
        member.kill();
        sleep(pause(dice)).await;
        member.restart().await;
        self.cluster.recover().await;
        "restarted"
    }

    /// Makes the replica take over, while the master lives or after it was killed.
    async fn fail_over(&mut self, share: usize, is_killed: bool, dice: &mut Dice) -> &'static str {
        let master = self.masters[share];
        self.cluster.recover().await;
        if is_killed {
            self.cluster.member(master).kill();
            sleep(pause(dice)).await;
        }
        self.masters[share] = self.cluster.fail_over(master).await;
        sleep(pause(dice)).await;
        if is_killed {
            self.cluster.member(master).restart().await;
        }
        self.cluster.recover().await;
        if is_killed { "failed over" } else { "failed over by command" }
    }
}

/// Returns the other member with the slots of this one.
const fn replica(master: usize) -> usize {
    (master + MASTERS) % (2 * MASTERS)
}

/// Returns the URL with every member as a seed.
fn url(network: &Network) -> String {
    let seeds: Vec<_> = (1..2 * MASTERS).map(|index| format!("seed={}", network.address(index))).collect();
    format!("redis+cluster://{}?{}&{}&{CONFIRMED}", network.address(0), seeds.join("&"), network.maps())
}
