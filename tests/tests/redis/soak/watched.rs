//! A master with a replica, watched by three Sentinels. Servers and Sentinels are behind proxies.
//!
//! The only replica confirms each lease ([`CONFIRMED`]), so a failover keeps all leases.

use super::dice::Dice;
use super::network::Network;
use super::pause;
use super::servers::{CONFIRMED, durable, freeze, kill_clients, refuse};
use super::worker::observer;
use redlock_runtime::LockManager;
use redlock_tests::{MASTER, Watched};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Time for a failover. The Sentinels give up a failover if they know no replica in sync. Too short: fewer failovers. Too long: an
/// abandoned
/// failover takes the time of other faults.
const FAILOVER: Duration = Duration::from_secs(30);
const SENTINELS: [usize; 3] = [0, 1, 2];

pub(super) struct Sentinels {
    watched: Watched,
    network: Arc<Network>,
    observer: LockManager,
}

impl Sentinels {
    pub(super) async fn start() -> Self {
        let watched = Watched::start_with(1, durable, |sentinel| sentinel).await;
        let (servers, sentinels) =
            ([0, 1].map(|server| watched.server(server)), SENTINELS.map(|index| watched.sentinel(index)));
        let network = Arc::new(Network::in_front_of(servers.into_iter().chain(sentinels)).await);
        let observer = observer(&[url(&network)]);
        Self { watched, network, observer }
    }

    pub(super) fn url(&self) -> String {
        url(&self.network)
    }

    pub(super) const fn network(&self) -> &Arc<Network> {
        &self.network
    }

    pub(super) fn channels(&self) -> Vec<(u16, String)> {
        [0, 1].map(|server| (self.watched.server(server).port(), "redlock::".to_owned())).into()
    }

    pub(super) async fn contents(&self) -> BTreeMap<String, String> {
        self.watched.server(self.watched.settled().await).inspect().contents().await
    }

    pub(super) const fn observer(&self) -> &LockManager {
        &self.observer
    }

    /// Lets one fault happen and end. Returns its name.
    pub(super) async fn trouble(&self, dice: &mut Dice) -> &'static str {
        let number = self.watched.settled().await;
        let (master, replica) = (self.watched.server(number), self.watched.server(1 - number));
        match dice.below(14) {
            0..3 => freeze(master, dice).await,
            3 => freeze(replica, dice).await,
            4..6 => kill_clients(master).await,
            6..9 => refuse(master, dice).await,
            9 => {
                let sentinel = self.watched.sentinel(dice.below(3));
                sentinel.kill();
                sleep(pause(dice)).await;
                sentinel.restart().await;
                "Sentinel restarted"
            }
            10..13 => {
                master.kill();
                let replaced = timeout(FAILOVER, self.watched.replaced(number)).await;
                sleep(pause(dice)).await;
                master.restart().await;
                if replaced.is_ok() { "failed over" } else { "given up" }
            }
            _ => match timeout(FAILOVER, self.watched.fail_over(number)).await {
                Ok(_) => "failed over by command",
                Err(_) => "given up",
            },
        }
    }
}

fn url(network: &Network) -> String {
    // The servers are numbers 0 and 1 of the network.
    let [first, second, third] = SENTINELS.map(|index| network.address(2 + index));
    format!("redis+sentinel://{first}/{MASTER}?sentinel={second}&sentinel={third}&{}&{CONFIRMED}", network.maps())
}
