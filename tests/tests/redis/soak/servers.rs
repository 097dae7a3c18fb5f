//! Servers of a deployment. Each deployment has its specific faults. This file contains the faults that any server may have.

use super::clustered::Clustered;
use super::dice::Dice;
use super::independent::Independent;
use super::network::Network;
use super::pause;
use super::watched::Sentinels;
use super::workers::Workers;
use redlock_runtime::LockManager;
use redlock_tests::RedisServer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// Parameter of the URL of a server with a replica. A lease counts only if the replica stores it. There is one replica, which is the
/// next master, so a failover keeps all leases.
pub(super) const CONFIRMED: &str = "confirm_replicas=1";

/// User for [`Spy`](super::spy::Spy): reads locks and publishes messages.
pub(super) const SPY: [&str; 8] = ["spy", "on", ">spy", "~*", "resetchannels", "&redlock:*", "+get", "+publish"];

/// Settings with which a server writes each command to disk before it answers.
pub(super) const DURABLE: [(&str, &str); 3] =
    [("appendonly", "yes"), ("appendfsync", "always"), ("auto-aof-rewrite-min-size", "4mb")];

/// Time for a deployment to recover after its last fault. Too short: a failover takes longer. Too long: a failed run takes longer.
const RECOVERY: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Servers of one kind, which processes reach by the same URLs.
pub(super) enum Servers {
    Independent(Independent),
    Cluster(Clustered),
    Sentinels(Sentinels),
}

impl Servers {
    /// Starts the deployment that `REDLOCK_SOAK_DEPLOYMENT` names.
    pub(super) async fn start(deployment: &str) -> Self {
        match deployment {
            "cluster" => Self::Cluster(Clustered::start().await),
            "sentinels" => Self::Sentinels(Sentinels::start().await),
            "1" | "3" | "5" => Self::Independent(Independent::start(deployment.parse().unwrap()).await),
            other => panic!("no deployment, which is 1, 3, 5, cluster or sentinels: {other}"),
        }
    }

    /// Returns the name of the deployment in the ledger, behind "soak".
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Independent(servers) => servers.name(),
            Self::Cluster(_) => "on a cluster",
            Self::Sentinels(_) => "behind Sentinels",
        }
    }

    pub(super) fn urls(&self) -> Vec<String> {
        match self {
            Self::Independent(servers) => servers.urls(),
            Self::Cluster(servers) => vec![servers.url()],
            Self::Sentinels(servers) => vec![servers.url()],
        }
    }

    /// Returns the network, if the deployment has faults of the network.
    pub(super) fn network(&self) -> Option<Arc<Network>> {
        match self {
            Self::Independent(_) => None,
            Self::Cluster(servers) => Some(Arc::clone(servers.network())),
            Self::Sentinels(servers) => Some(Arc::clone(servers.network())),
        }
    }

    /// Returns the ports of all servers, with the prefix of the channels at each.
    pub(super) async fn channels(&self) -> Vec<(u16, String)> {
        match self {
            Self::Independent(servers) => servers.channels(),
            Self::Cluster(servers) => servers.channels().await,
            Self::Sentinels(servers) => servers.channels(),
        }
    }

    /// Lets one fault happen and end. Returns its name.
    pub(super) async fn trouble(&mut self, workers: &Mutex<Workers>, dice: &mut Dice) -> &'static str {
        match self {
            Self::Independent(servers) => servers.trouble(workers, dice).await,
            Self::Cluster(servers) => servers.trouble(dice).await,
            Self::Sentinels(servers) => servers.trouble(dice).await,
        }
    }

    /// Waits until the last fault is over for every server. Returns the problem if it does not end.
    pub(super) async fn recover(&self) -> Option<String> {
        let deadline = Instant::now() + RECOVERY;
        loop {
            let report = self.observer().check().await;
            if report.nodes.iter().all(|node| node.error.is_none()) {
                return None;
            }
            if Instant::now() > deadline {
                return Some(format!("the servers do not recover: {report}"));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the process that takes only the locks of its checks.
    const fn observer(&self) -> &LockManager {
        match self {
            Self::Independent(servers) => servers.observer(),
            Self::Cluster(servers) => servers.observer(),
            Self::Sentinels(servers) => servers.observer(),
        }
    }

    /// Returns the keys of all running servers, with their contents.
    pub(super) async fn contents(&self) -> BTreeMap<String, String> {
        match self {
            Self::Independent(servers) => servers.contents().await,
            Self::Cluster(servers) => servers.contents().await,
            Self::Sentinels(servers) => servers.contents().await,
        }
    }
}

/// Closes the connections of all clients.
pub(super) async fn kill_clients(server: &RedisServer) -> &'static str {
    server.inspect().kill_clients().await;
    "connections closed"
}

/// Freezes the server for a while: it accepts connections, and answers no command.
pub(super) async fn freeze(server: &RedisServer, dice: &mut Dice) -> &'static str {
    server.freeze();
    sleep(pause(dice)).await;
    server.thaw();
    "frozen"
}

/// Makes the server refuse new clients, and closes its present connections.
pub(super) async fn refuse(server: &RedisServer, dice: &mut Dice) -> &'static str {
    let (setting, refusing, usual) = [("requirepass", "changed", ""), ("maxclients", "1", "1000")][dice.below(2)];
    let set = async |value| server.inspect().command::<()>(&["CONFIG", "SET", setting, value]).await;
    set(refusing).await;
    server.inspect().kill_clients().await;
    sleep(pause(dice)).await;
    set(usual).await;
    "refusing"
}

pub(super) fn durable(builder: redlock_tests::Builder) -> redlock_tests::Builder {
    DURABLE.iter().fold(builder.config("user", &SPY), |builder, (name, value)| builder.config(name, &[value]))
}
