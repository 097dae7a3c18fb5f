//! Follows the name of a server: ends the connection when the name leads to another server.
//!
//! A name is looked up when a connection is made, and a connection can last for months. In the meantime, the name may be given to another
//! server. Processes that connect later use the new server, and this one still uses the old server: the lock can have two holders. For each
//! stand-alone node with a host name, a task therefore looks the name up periodically:
//!
//! 1. A failed or empty answer changes nothing, and neither does an answer with the address of the present connection.
//! 2. Otherwise the servers at the new addresses are queried for their run ids, on a second connection. If one of them is the connected
//!    server, nothing changes: it has several addresses.
//! 3. If another run id answers, the name is looked up once more after a moment. A second answer with this run id ends the connection.
//! 4. The supervisor then discards all votes of the server that was left ([`ServerFacts::on_server_left`]), and connects by the name. The
//!    next handshake decides if the server there has a vote. It abstains like a promoted replica.
//!
//! This bounds the time for which two servers are used under one name. It does not prevent it.
//!
//! [`ServerFacts::on_server_left`]: crate::node::server_facts::ServerFacts::on_server_left

use super::connect::connect_plainly_at;
use super::connections::Connections;
use super::dial::addresses;
use super::endpoint::Endpoint;
use super::info::Info;
use super::live_connection::LiveConnection;
use super::prepare::ask;
use super::progress::Progress;
use crate::error::NodeError;
use crate::observe::events;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Pauses of the task that follows a name.
#[derive(Clone, Copy, Debug)]
struct Pauses {
    /// Maximum time between two look-ups of a name. Too small: more load on the name servers. Too large: a server whose name leads
    /// elsewhere is used for longer.
    regular: Duration,
    /// Maximum time until the second look-up, after the first has found another server. Too small: both happen during one fault of a name
    /// server. Too large: the server is left later.
    suspicious: Duration,
}

/// The pauses in programs.
const DEFAULT_PAUSES: Pauses = Pauses { regular: Duration::from_secs(30), suspicious: Duration::from_secs(1) };

/// The pauses in the unit tests of this crate, which wait for look-ups.
const TEST_PAUSES: Pauses = Pauses { regular: Duration::from_millis(200), suspicious: Duration::from_millis(50) };

const PAUSES: Pauses = if cfg!(test) { TEST_PAUSES } else { DEFAULT_PAUSES };

impl Pauses {
    /// Returns the pause before the next look-up: between three quarters of the maximum and all of it, as `random` between 0 and 1 says.
    /// Processes that were started together therefore do not look up the name together.
    fn next(self, is_suspicious: bool, random: f64) -> Duration {
        let longest = if is_suspicious { self.suspicious } else { self.regular };
        longest.mul_f64(0.75 + 0.25 * random)
    }
}

/// Maximum number of addresses of one name that are tried. Too small: the connected server is not found among many addresses, and the
/// connection is kept. Too large: a name with many addresses costs many connections.
const MOST_ADDRESSES: usize = 8;

/// A server behind the name of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedServer {
    at: SocketAddr,
    run_id: Box<str>,
}

/// Another server than the connected one, seen once.
struct Suspicion {
    live: Arc<LiveConnection>,
    other: NamedServer,
}

/// Looks up the name of `endpoint` periodically. Runs until it is aborted, on the library's thread.
pub(super) async fn watch(endpoint: Arc<Endpoint>, connections: Arc<Connections>) {
    let mut suspicion: Option<Suspicion> = None;
    loop {
        sleep(PAUSES.next(suspicion.is_some(), fastrand::f64())).await;
        let Some(found) = find_other(&endpoint, &connections).await else {
            suspicion = None;
            continue;
        };
        let is_seen_twice = suspicion
            .take()
            .is_some_and(|before| before.other.run_id == found.other.run_id && Arc::ptr_eq(&before.live, &found.live));
        if is_seen_twice {
            let (name, at) = (endpoint.label(), found.other.at);
            events::name_moved(name, at);
            found.live.leave(NodeError::Unreachable(format!("the name leads to another server, at {at}").into()));
        } else {
            suspicion = Some(found);
        }
    }
}

/// Returns the server to which the name leads instead of the connected one. Returns `None` if the name still leads to the connected one, or
/// if this is unknown.
async fn find_other(endpoint: &Endpoint, connections: &Connections) -> Option<Suspicion> {
    let live = connections.live().ok()?;
    let (peer, run_id) = (live.peer()?, connections.server.run_id()?);
    let patience = endpoint.connect_timeout();
    let addresses = resolve_addresses(endpoint, patience).await?;
    if addresses.iter().any(|address| canonical(address) == canonical(&peer)) {
        return None;
    }
    let servers = servers_at(endpoint, addresses, patience).await;
    let is_there = servers.iter().any(|server| server.run_id == run_id);
    let other = servers.into_iter().next().filter(|_| !is_there)?;
    Some(Suspicion { live, other })
}

/// Returns the address in a comparable form: sockets may show IPv4 as a part of IPv6.
fn canonical(address: &SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// Returns one address of each server behind the name of `endpoint` that answers, if there are several servers.
pub(super) async fn servers(endpoint: &Endpoint, patience: Duration) -> Vec<Box<str>> {
    if !endpoint.is_name() {
        return Vec::new();
    }
    let addresses =
        resolve_addresses(endpoint, patience).await.filter(|addresses| addresses.len() > 1).unwrap_or_default();
    let mut servers = servers_at(endpoint, addresses, patience).await;
    servers.sort_by(|one, other| (&one.run_id, one.at).cmp(&(&other.run_id, other.at)));
    servers.dedup_by(|one, other| one.run_id == other.run_id);
    servers.sort_unstable_by_key(|server| server.at);
    let addresses = servers.iter().map(|server| server.at.to_string().into()).collect();
    if servers.len() > 1 { addresses } else { Vec::new() }
}

/// Returns the addresses of the name; `None` if it has none right now, or there is no answer.
async fn resolve_addresses(endpoint: &Endpoint, patience: Duration) -> Option<Vec<SocketAddr>> {
    let looking = addresses(endpoint.host()?, endpoint.port()?);
    let found = timeout(patience, looking).await.ok()?.ok()?;
    (!found.is_empty()).then_some(found)
}

/// Queries the servers at all `addresses` for their run ids, at the same time. The result contains the servers that answered, sorted by
/// address.
async fn servers_at(endpoint: &Endpoint, addresses: Vec<SocketAddr>, patience: Duration) -> Vec<NamedServer> {
    let mut asking = JoinSet::new();
    for at in addresses.into_iter().take(MOST_ADDRESSES) {
        let endpoint = endpoint.for_same_server();
        asking.spawn(async move {
            let run_id = timeout(patience, run_id(&endpoint, at)).await.ok()?;
            run_id.map(|run_id| NamedServer { at, run_id })
        });
    }
    let mut servers: Vec<_> = asking.join_all().await.into_iter().flatten().collect();
    servers.sort_unstable_by_key(|server| server.at);
    servers
}

/// Queries the server at the address `at` for its run id, on a separate connection without scripts.
async fn run_id(endpoint: &Endpoint, at: SocketAddr) -> Option<Box<str>> {
    let mut connection = connect_plainly_at(endpoint, at, &Progress::default()).await.ok()?;
    let answers = ask(&mut connection, redis::pipe().cmd("INFO").arg("server")).await.ok()?;
    let text: String = redis::from_redis_value(answers.into_iter().next()?.extract_error().ok()?).ok()?;
    Info::parse(&text).field("run_id").map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide promises 30 seconds. The other tests wait for much shorter pauses.
    #[test]
    fn programs_look_a_name_up_again_within_30_seconds() {
        let millis = |is_suspicious, random| DEFAULT_PAUSES.next(is_suspicious, random).as_millis();
        let table =
            [(false, 0.0, 22_500), (false, 0.5, 26_250), (false, 1.0, 30_000), (true, 0.0, 750), (true, 1.0, 1000)];
        for (is_suspicious, random, expected) in table {
            assert_eq!(millis(is_suspicious, random), expected, "{is_suspicious} {random}");
        }
    }
}
