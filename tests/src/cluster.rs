//! A real Redis Cluster on loopback ports, whose slots move and whose masters fail on demand.
#![allow(clippy::indexing_slicing, reason = "a test that names a member which does not exist is to fail")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;

use crate::{Builder, Certificates, Inspector, PATIENCE, RedisServer, eventually};

/// Number of slots of a cluster.
const SLOTS: u16 = 16384;

/// Silence after which the other members regard a master as dead. It is never reached in a test, even on a loaded machine.
/// A failed master is replaced by command, see [`Cluster::fail_over`].
const NODE_TIMEOUT: &str = "60000";

/// Number of keys that one command moves from one member to another.
const KEYS_AT_ONCE: &str = "100";

/// Masters with the slots divided among them, and optional replicas.
///
/// A member is named by its index: first the masters in the order of their slots, then the first replica of each master, then the second
/// replica of each, and so on.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<RedisServer>,
    ids: Vec<String>,
    masters: usize,
}

impl Cluster {
    /// Starts the given number of masters, each with the given number of replicas.
    pub async fn start(masters: usize, replicas: usize) -> Self {
        Self::start_with(masters, replicas, |builder| builder).await
    }

    /// Starts the given number of masters and replicas, all with the settings that `configure` returns.
    pub async fn start_with(masters: usize, replicas: usize, configure: impl Fn(Builder) -> Builder) -> Self {
        let mut starting = JoinSet::new();
        for index in 0..masters * (1 + replicas) {
            let builder = RedisServer::builder()
                .config("cluster-enabled", &["yes"])
                .config("cluster-config-file", &["cluster.conf"])
                .config("cluster-node-timeout", &[NODE_TIMEOUT])
                // Otherwise, a master waits for more replicas before it sends its data to the first.
                .config("repl-diskless-sync-delay", &["0"])
                // Otherwise, the other members ignore a replica that has received nothing.
                .config("repl-ping-replica-period", &["1"]);
            let builder = configure(builder);
            starting.spawn(async move { (index, builder.start().await) });
        }
        let mut members = starting.join_all().await;
        members.sort_by_key(|(index, _)| *index);
        let members: Vec<_> = members.into_iter().map(|(_, member)| member).collect();
        let mut ids = Vec::new();
        for member in &members {
            ids.push(member.inspect().command(&["CLUSTER", "MYID"]).await);
        }
        let cluster = Self { members, ids, masters };
        cluster.introduce().await;
        cluster.divide_slots().await;
        cluster.attach_replicas().await;
        for index in 0..cluster.members.len() {
            cluster.announce(index).await;
        }
        cluster.wait_until_agreed(1 + replicas).await;
        cluster
    }

    /// Starts the given number of masters. They speak TLS with each other, and TLS and the plain protocol with clients.
    pub async fn start_tls(masters: usize, certificates: &Certificates) -> Self {
        Self::start_with(masters, 0, |builder| builder.tls_with(certificates).config("tls-cluster", &["yes"])).await
    }

    /// Makes every member known to every other member.
    async fn introduce(&self) {
        for (index, member) in self.members.iter().enumerate() {
            let epoch = (index + 1).to_string();
            member.inspect().command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
            for other in &self.members[..index] {
                let port = other.tls_port().unwrap_or(other.port()).to_string();
                member.inspect().command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port]).await;
            }
        }
        for member in &self.members {
            eventually(PATIENCE, "the members know each other", async || {
                let nodes: String = member.inspect().command(&["CLUSTER", "NODES"]).await;
                let is_known =
                    |id: &String| nodes.lines().any(|line| line.starts_with(id) && !line.contains("handshake"));
                if self.ids.iter().all(is_known) { Ok(()) } else { Err(nodes) }
            })
            .await;
        }
    }

    async fn divide_slots(&self) {
        let share = SLOTS.div_ceil(u16::try_from(self.masters).expect("few masters"));
        for (master, first) in self.masters().zip((0..SLOTS).step_by(share.into())) {
            let slots: Vec<_> = (first..SLOTS.min(first + share)).map(|slot| slot.to_string()).collect();
            let command: Vec<_> = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
            master.inspect().command::<()>(&command).await;
        }
    }

    async fn attach_replicas(&self) {
        for (index, replica) in self.members.iter().enumerate().skip(self.masters) {
            let master = &self.ids[index % self.masters];
            eventually(PATIENCE, "the replica has a master", async || {
                replica.inspect().try_command::<()>(&["CLUSTER", "REPLICATE", master]).await
            })
            .await;
        }
        for replica in &self.members[self.masters..] {
            eventually(PATIENCE, "the replica has received something", async || {
                match replica.inspect().info("replication", "slave_repl_offset").await {
                    Some(offset) if offset != "0" => Ok(()),
                    offset => Err(offset),
                }
            })
            .await;
        }
    }

    /// Makes member number `index` announce its role and its slots to all others at once.
    /// Without this, it would inform one random member per second, and each member within half of the long node timeout.
    async fn announce(&self, index: usize) {
        for (number, other) in self.running() {
            if number != index {
                let port = other.tls_port().unwrap_or(other.port()).to_string();
                self.members[index].inspect().command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port]).await;
            }
        }
    }

    /// Waits until all running members agree on all slots, serve their slots and are in sync, and until each slot has `members_of_each`
    /// members.
    async fn wait_until_agreed(&self, members_of_each: usize) {
        for (index, member) in self.running() {
            eventually(PATIENCE, "the members agree", async || {
                let state = member.inspect().command::<String>(&["CLUSTER", "INFO"]).await;
                let link = member.inspect().info("replication", "master_link_status").await;
                let is_well = state.contains("cluster_state:ok") && link.is_none_or(|link| link == "up");
                let map = map(member.inspect()).await;
                let is_whole = map.values().all(|members| members.len() == members_of_each);
                let is_same = is_whole && map == self.map().await;
                if is_well && is_same { Ok(()) } else { Err((index, state, map)) }
            })
            .await;
        }
    }

    /// URL of the cluster, with every member as a seed.
    #[must_use]
    pub fn url(&self) -> String {
        let (first, others) = self.members.split_first().expect("a cluster has members");
        let url = first.url().replacen("redis://", "redis+cluster://", 1);
        let seeds: Vec<_> = others.iter().map(|seed| format!("seed=127.0.0.1:{}", seed.port())).collect();
        format!("{url}?{}", seeds.join("&"))
    }

    /// URL for clients that speak TLS. They must trust the certificates.
    ///
    /// # Panics
    /// Unless the cluster was started with [`start_tls`](Self::start_tls).
    #[must_use]
    pub fn tls_url(&self) -> String {
        let (first, others) = self.members.split_first().expect("a cluster has members");
        let url = first.tls_url().replacen("rediss://", "rediss+cluster://", 1);
        let seeds =
            others.iter().map(|seed| format!("seed=127.0.0.1:{}", seed.tls_port().expect("Cluster::start_tls")));
        format!("{url}?{}", seeds.collect::<Vec<_>>().join("&"))
    }

    /// Returns member number `index`.
    #[must_use]
    pub fn member(&self, index: usize) -> &RedisServer {
        &self.members[index]
    }

    /// Returns all running members with their numbers.
    pub fn running(&self) -> impl Iterator<Item = (usize, &RedisServer)> {
        self.members.iter().enumerate().filter(|(_, member)| member.is_running())
    }

    /// Returns the members that were masters at the start.
    pub fn masters(&self) -> impl Iterator<Item = &RedisServer> {
        self.members[..self.masters].iter()
    }

    /// Returns the slot of `key`.
    pub async fn slot(&self, key: &str) -> u16 {
        self.anybody().command(&["CLUSTER", "KEYSLOT", key]).await
    }

    /// Returns the number of the master that serves the slot of `key`.
    pub async fn owner(&self, key: &str) -> usize {
        self.owner_of_slot(self.slot(key).await).await
    }

    async fn owner_of_slot(&self, slot: u16) -> usize {
        let map = self.map().await;
        let owner = map.iter().find(|(slots, _)| slots.0 <= slot && slot <= slots.1).expect("the slot has an owner");
        self.ids.iter().position(|id| id == &owner.1[0]).expect("the owner is a member")
    }

    /// Returns a key that begins with `prefix` and belongs to member number `index`.
    pub async fn key_on(&self, index: usize, prefix: &str) -> String {
        for i in 0.. {
            let key = format!("{prefix}:{i}");
            if self.owner(&key).await == index {
                return key;
            }
        }
        unreachable!("every member has a key")
    }

    /// Moves a slot with all its keys to member number `to`, as `redis-cli --cluster reshard` does. Does nothing if the slot is there
    /// already.
    pub async fn move_slot(&self, slot: u16, to: usize) {
        if self.owner_of_slot(slot).await == to {
            return;
        }
        let migration = self.begin_move(slot, to).await;
        migration.move_keys().await;
        migration.finish().await;
    }

    /// Moves slots one after the other.
    pub async fn move_slots(&self, slots: RangeInclusive<u16>, to: usize) {
        for slot in slots {
            self.move_slot(slot, to).await;
        }
    }

    /// Begins the migration of a slot to member number `to`.
    pub async fn begin_move(&self, slot: u16, to: usize) -> Migration<'_> {
        let migration = Migration { cluster: self, slot: slot.to_string(), from: self.owner_of_slot(slot).await, to };
        migration.set_slot(to, &["IMPORTING", &self.ids[migration.from]]).await;
        migration.set_slot(migration.from, &["MIGRATING", &self.ids[to]]).await;
        migration
    }

    /// Waits until all members agree again after a failure: each slot has all its members, and each replica is in sync.
    pub async fn recover(&self) {
        for (index, _) in self.running() {
            self.announce(index).await;
        }
        self.wait_until_agreed(self.members.len() / self.masters).await;
    }

    /// Promotes the first running replica of master number `index`, even if that master is alive. Waits until all running members know
    /// the new master, and returns its number.
    pub async fn fail_over(&self, index: usize) -> usize {
        let is_replica =
            |(number, _): &(usize, &RedisServer)| *number != index && number % self.masters == index % self.masters;
        let (number, replica) = self.running().find(is_replica).expect("the master has a replica that runs");
        replica.inspect().command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]).await;
        for (_, member) in self.running() {
            eventually(PATIENCE, "the replica has taken over", async || {
                let map = map(member.inspect()).await;
                let has_taken_over = map.values().any(|members| members[0] == self.ids[number]);
                if has_taken_over { Ok(()) } else { Err(map) }
            })
            .await;
        }
        number
    }

    /// Assigns a slot whose master is down to member number `to`, as `redis-cli --cluster fix` does. Its keys are lost.
    pub async fn give(&self, slot: u16, to: usize) {
        let text = slot.to_string();
        for (_, member) in self.running() {
            member.inspect().command::<()>(&["CLUSTER", "DELSLOTS", &text]).await;
        }
        self.members[to].inspect().command::<()>(&["CLUSTER", "ADDSLOTS", &text]).await;
        self.bump_epoch(to).await;
        self.announce(to).await;
        self.wait_until_owned(slot, to).await;
    }

    /// Makes each of two members report that the other one has the slot, as happens when a migration ends between the two.
    /// Neither member claims the slot, so they never agree by themselves; [`settle`](Self::settle) makes them agree. The slot must be
    /// empty.
    pub async fn make_slot_owners_disagree(&self, slot: u16, [one, other]: [usize; 2]) {
        let text = slot.to_string();
        for (says, owner) in [(one, other), (other, one)] {
            self.members[says].inspect().command::<()>(&["CLUSTER", "SETSLOT", &text, "NODE", &self.ids[owner]]).await;
        }
    }

    /// Makes all members agree that member number `owner` has a slot that no member claims.
    pub async fn settle(&self, slot: u16, owner: usize) {
        let text = slot.to_string();
        self.members[owner].inspect().command::<()>(&["CLUSTER", "SETSLOT", &text, "NODE", &self.ids[owner]]).await;
        self.bump_epoch(owner).await;
        self.announce(owner).await;
        self.wait_until_owned(slot, owner).await;
    }

    /// Starts a new configuration epoch at member number `index`, newer than all epochs that it knows.
    async fn bump_epoch(&self, index: usize) {
        let _: String = self.members[index].inspect().command(&["CLUSTER", "BUMPEPOCH"]).await;
    }

    /// Waits until all running members report that member number `owner` has the slot.
    async fn wait_until_owned(&self, slot: u16, owner: usize) {
        for (_, member) in self.running() {
            eventually(PATIENCE, "the owner of the slot is known", async || {
                let map = map(member.inspect()).await;
                let known = map.iter().find(|(slots, _)| slots.0 <= slot && slot <= slots.1);
                if known.is_some_and(|(_, members)| members[0] == self.ids[owner]) { Ok(()) } else { Err(map) }
            })
            .await;
        }
    }

    /// Returns every key with its content, from all running members that accept commands.
    pub async fn contents(&self) -> BTreeMap<String, String> {
        let mut contents = BTreeMap::new();
        for (_, member) in self.running() {
            if member.inspect().info("replication", "role").await.as_deref() == Some("master") {
                contents.extend(member.inspect().contents().await);
            }
        }
        contents
    }

    /// Waits until the only keys left are those that begin with one of `but`.
    pub async fn assert_empty(&self, deadline: Duration, but: &[&str]) {
        eventually(deadline, "no key is left in the cluster", async || {
            let mut contents = self.contents().await;
            contents.retain(|key, _| !but.iter().any(|prefix| key.starts_with(prefix)));
            if contents.is_empty() { Ok(()) } else { Err(contents) }
        })
        .await;
    }

    /// Describes how each running member sees the others, for the message of a failed test.
    pub async fn views(&self) -> String {
        let mut views = String::new();
        for (index, member) in self.running() {
            let nodes: String = member.inspect().command(&["CLUSTER", "NODES"]).await;
            let _ = write!(views, "member {index}:\n{nodes}");
        }
        views
    }

    /// Returns the slot map of a running member.
    async fn map(&self) -> Map {
        map(self.anybody()).await
    }

    fn anybody(&self) -> &Inspector {
        self.running().next().expect("a member runs").1.inspect()
    }
}

/// Slot that is being migrated.
#[derive(Debug)]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: usize,
    to: usize,
}

impl Migration<'_> {
    /// Moves all keys that are in the slot now.
    pub async fn move_keys(&self) {
        while self.move_some().await > 0 {}
    }

    /// Moves one key.
    pub async fn move_key(&self, key: &str) {
        self.migrate(&[key]).await;
    }

    async fn move_some(&self) -> usize {
        let question = ["CLUSTER", "GETKEYSINSLOT", &self.slot, KEYS_AT_ONCE];
        let keys: Vec<String> = self.member(self.from).command(&question).await;
        if !keys.is_empty() {
            self.migrate(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
        keys.len()
    }

    async fn migrate(&self, keys: &[&str]) {
        let server = &self.cluster.members[self.to];
        let port = server.tls_port().unwrap_or(server.port()).to_string();
        let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000"];
        command.extend(server.password().map(|password| ["AUTH", password]).into_iter().flatten());
        command.push("KEYS");
        command.extend(keys);
        self.member(self.from).command::<()>(&command).await;
    }

    /// Ends the migration: tells all masters who serves the slot now.
    ///
    /// The new master begins an epoch first. A member whose own epoch for the slot is not older would take the slot back with the next
    /// packet.
    /// From then on, each of the two would redirect every command to the other.
    pub async fn finish(self) {
        let id = self.cluster.ids[self.to].clone();
        self.cluster.bump_epoch(self.to).await;
        for number in [self.to, self.from] {
            self.set_slot(number, &["NODE", &id]).await;
        }
        for (number, member) in self.cluster.running() {
            let is_master = member.inspect().info("replication", "role").await.as_deref() == Some("master");
            if is_master && ![self.to, self.from].contains(&number) {
                self.set_slot(number, &["NODE", &id]).await;
            }
        }
        self.cluster.announce(self.to).await;
        self.wait_until_known().await;
        self.cluster.wait_until_owned(self.slot.parse().expect("a slot"), self.to).await;
    }

    /// Waits until every member knows the epoch with which the new master has the slot.
    /// Without this wait, a slot that moves again at once could be claimed by two members with one epoch. They would then redirect every
    /// command to each other.
    async fn wait_until_known(&self) {
        let id = &self.cluster.ids[self.to];
        let epoch = |nodes: &str| -> Option<String> {
            let line = nodes.lines().find(|line| line.starts_with(id))?;
            line.split(' ').nth(6).map(str::to_owned)
        };
        let own = epoch(&self.member(self.to).command::<String>(&["CLUSTER", "NODES"]).await);
        for (_, member) in self.cluster.running() {
            eventually(PATIENCE, "the epoch is known", async || {
                let known = epoch(&member.inspect().command::<String>(&["CLUSTER", "NODES"]).await);
                if known == own { Ok(()) } else { Err((known, &own)) }
            })
            .await;
        }
    }

    /// Leaves the slot at its old member. No key may have moved.
    pub async fn abandon(self) {
        for number in [self.from, self.to] {
            self.set_slot(number, &["STABLE"]).await;
        }
    }

    async fn set_slot(&self, number: usize, to: &[&str]) {
        let command: Vec<_> = ["CLUSTER", "SETSLOT", &self.slot].iter().chain(to).copied().collect();
        self.member(number).command::<()>(&command).await;
    }

    fn member(&self, number: usize) -> &Inspector {
        self.cluster.members[number].inspect()
    }
}

/// Ids of the members that serve each range of slots: first the master, then the replicas in the order of their ids.
type Map = BTreeMap<(u16, u16), Vec<String>>;

async fn map(member: &Inspector) -> Map {
    let entries: Vec<Vec<Value>> = member.command(&["CLUSTER", "SLOTS"]).await;
    let read = |entry: Vec<Value>| {
        let [Value::Int(first), Value::Int(last), members @ ..] = &entry[..] else { panic!("{entry:?}") };
        let slot = |slot: &i64| u16::try_from(*slot).expect("a slot");
        let mut ids: Vec<_> = members.iter().map(id).collect();
        ids[1..].sort();
        ((slot(first), slot(last)), ids)
    };
    entries.into_iter().map(read).collect()
}

fn id(member: &Value) -> String {
    match member {
        Value::Array(parts) => redis::from_redis_value(parts[2].clone()).expect("an id"),
        other => panic!("{other:?}"),
    }
}
