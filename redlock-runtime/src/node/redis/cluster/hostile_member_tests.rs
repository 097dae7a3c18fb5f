//! Tests with a hostile member of a cluster. It names ever new servers, and the process connects to a limited number of them.

use super::ClusterNode;
use super::address::MemberAddress;
use super::seeds::Seeds;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::redis::made_up::{Answer, lead};
use crate::node::{BackgroundThread, Environment, Node, Status};
use crate::protocol::command::{Answer as Reply, Command, Subject, Verb};
use crate::protocol::timing::CLAIM;
use crate::time::clock::Clock;
use crate::time::wait_until::wait_until;
use redlock_tests::{FakeServer, PATIENCE, eventually};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Id of the member that answers. It must be the same in its map, because a member with another id was reset.
const ID: &str = "1111111111111111111111111111111111111111";

/// Returns the name of a server that no other test uses. Its look-ups never end, so the process keeps trying to connect.
fn new_name() -> String {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("n{}.hostile.test", NAMES.fetch_add(1, Ordering::Relaxed));
    lead(&name, Vec::<Answer>::new());
    name
}

/// Returns the entry of `CLUSTER SLOTS` for a master with the slots from `first` to `last`.
fn shard(first: usize, last: usize, (host, port): (&str, u16), id: &str) -> String {
    format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n{}:{port}\r\n{}", bulk(host), bulk(id))
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Answers as a master does, except for `CLUSTER SLOTS` and commands about locks.
fn answer_of_master(command: &str) -> String {
    match command.split_once(' ').unwrap_or((command, "")) {
        ("HELLO", _) => "-ERR unknown command 'HELLO'\r\n".to_owned(),
        ("SCRIPT", code) => bulk(redis::Script::new(code.strip_prefix("LOAD ").unwrap_or_default()).get_hash()),
        ("INFO", _) => bulk("redis_version:7.0.0\r\nrun_id:1\r\nuptime_in_seconds:99999\r\nrole:master\r\n"),
        ("CLUSTER", "INFO") => bulk("cluster_state:ok\r\ncluster_current_epoch:1\r\n"),
        ("CLUSTER", "MYID") => bulk(ID),
        ("CONFIG" | "TIME", _) => "-NOPERM no\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}

/// A manager's view of the cluster.
struct Peer {
    node: Arc<ClusterNode>,
    environment: Environment,
}

impl Peer {
    fn start(port: u16) -> Self {
        let environment = Environment::for_single_node(ManagerId::random(), Clock::Boot);
        let url = format!("redis+cluster://:secret@127.0.0.1:{port}?connect_timeout_ms=20000");
        let (seeds, thread) = (Seeds::new(&url.as_str().into(), 1).unwrap(), BackgroundThread::shared().unwrap());
        let node = ClusterNode::start(seeds, environment.clone(), &thread, Some(Handle::current()));
        Self { node, environment }
    }

    /// Tries to lock `key`.
    async fn try_lock(&self, key: &str) -> Reply {
        let token = OwnerToken::new(self.environment.manager, self.environment.token_clock.next());
        let (verb, subject) = (Verb::SetNx { ttl: CLAIM }, Arc::new(Subject::new(key.into(), token)));
        timeout(PATIENCE, self.node.send(Command { verb, fence: None, subject })).await.unwrap()
    }

    /// Returns the addresses of all servers that the process connects to.
    fn addresses(&self) -> Vec<MemberAddress> {
        self.node.members.addresses()
    }
}

#[tokio::test]
async fn redirections_lead_to_at_most_64_servers_outside_of_the_map() {
    for kind in ["MOVED", "ASK"] {
        let (own_port, first) = (Arc::<OnceLock<u16>>::default(), new_name());
        let server = FakeServer::start({
            let (own_port, first) = (Arc::clone(&own_port), first.clone());
            move |command| match command {
                "CLUSTER SLOTS" => {
                    let at = ("127.0.0.1", *own_port.get().unwrap());
                    format!("*1\r\n{}", shard(0, 16_383, at, ID))
                }
                again if again.starts_with("SET first ") => format!("-{kind} 1 {first}:6379\r\n"),
                other if other.starts_with("SET ") => format!("-{kind} 1 {}:6379\r\n", new_name()),
                other => answer_of_master(other),
            }
        })
        .await;
        own_port.set(server.port()).unwrap();
        let peer = Peer::start(server.port());
        let is_up = wait_until(&peer.environment.changed, || peer.node.status() == Status::Up);
        timeout(PATIENCE, is_up).await.unwrap();

        let refusal = "more than 64 servers that are not in CLUSTER SLOTS";
        for call in 0..100 {
            let key = if call == 0 { "first".to_owned() } else { format!("order:{call}") };
            let error = peer.try_lock(&key).await.unwrap_err();
            assert_eq!(error.to_string().contains(refusal), call >= 64, "{kind}, call {call}: {error}");
            assert!(error.is_transient(), "{error}");
            assert_eq!(peer.addresses().len(), 1 + 64.min(call + 1), "{kind}, call {call}");
        }
        // A server that is among the 64 still receives commands.
        let error = peer.try_lock("first").await.unwrap_err();
        assert!(!error.to_string().contains(refusal), "{error}");
    }
}

#[tokio::test]
async fn members_of_successive_slot_maps_do_not_add_up() {
    const MASTERS: usize = 700;
    /// Maximum number of members: those of two maps with 1000 masters, and 64 others.
    const MOST: usize = 2 * 1000 + 64;
    let (maps, latest) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<BTreeSet<String>>>::default());
    let server = FakeServer::start({
        let (maps, latest) = (Arc::clone(&maps), Arc::clone(&latest));
        move |command| match command {
            "CLUSTER SLOTS" => {
                let names: Vec<_> = (0..MASTERS).map(|_| new_name()).collect();
                let shards = names.iter().enumerate().map(|(slot, name)| {
                    let last = if slot + 1 == MASTERS { 16_383 } else { slot };
                    shard(slot, last, (name, 6379), &format!("{slot:040}"))
                });
                let map = format!("*{MASTERS}\r\n{}", shards.collect::<String>());
                *latest.lock().unwrap() = names.into_iter().collect();
                maps.fetch_add(1, Ordering::SeqCst);
                map
            }
            other => answer_of_master(other),
        }
    })
    .await;
    let peer = Peer::start(server.port());
    eventually(PATIENCE, "many maps are read", async || {
        let addresses = peer.addresses();
        assert!(addresses.len() <= MOST, "{} members", addresses.len());
        let maps = maps.load(Ordering::SeqCst);
        if maps > 6 { Ok(()) } else { Err(maps) }
    })
    .await;
    eventually(PATIENCE, "the members are those of the latest map, and of some earlier ones", async || {
        let (latest, addresses) = (latest.lock().unwrap().clone(), peer.addresses());
        assert!(addresses.len() <= MOST, "{} members", addresses.len());
        let known: BTreeSet<_> = addresses.iter().map(|at| at.host.to_string()).collect();
        if latest.is_subset(&known) { Ok(()) } else { Err(known.len()) }
    })
    .await;
}
