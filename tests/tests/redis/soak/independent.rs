//! One, three or five independent servers, behind names that can lead elsewhere.
//!
//! All of them are durable by their settings. The rules of the page "Several servers" of the guide apply:
//!
//! 1. A restart with the data needs no wait, unless a server has come back without its data.
//! 2. A *change* is a server that comes back without its data, a name that leads to another server, or a deploy with another list. A
//!    change begins only if all servers count for a process that has known them before, and are older than one `max_ttl`.
//! 3. At most a minority loses its data at once. If no majority would remain, the server starts only after one `max_ttl`, when the
//!    leases have ended.

use super::dice::Dice;
use super::pause;
use super::servers::{durable, freeze, kill_clients, refuse};
use super::worker::{MAX_TTL, observer};
use super::workers::Workers;
use redlock_runtime::LockManager;
use redlock_tests::{Nodes, Proxy, RedisServer};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// Wait of an operator for one `max_ttl`, with the precision of the uptime of servers. Too short: a new server is taken for an older
/// one, and two holders are possible. Too long: fewer faults.
const WAIT: Duration = MAX_TTL.saturating_add(Duration::from_secs(3));

/// Name of a change that may not begin yet.
const WAITING: &str = "waiting";

/// Address that processes use for a server.
struct Name {
    proxy: Proxy,
    server: usize,
}

pub(super) struct Independent {
    servers: Nodes,
    names: Vec<Name>,
    /// Names that processes use. The other names are spare.
    list: Vec<usize>,
    /// Lengths that the list may have. A deploy adds or removes one name.
    lengths: RangeInclusive<usize>,
    grows: bool,
    /// Start of each server.
    started: Vec<Instant>,
    /// Time of the last change, until all servers count.
    changed_at: Option<Instant>,
    /// Process that takes only the locks of its checks.
    observer: LockManager,
    name: &'static str,
}

impl Independent {
    pub(super) async fn start(length: usize) -> Self {
        let (lengths, name) = match length {
            1 => (1..=3, "on 1 node"),
            3 => (3..=5, "on 3 nodes"),
            _ => (4..=6, "on 5 nodes"),
        };
        let servers = Nodes::start_with(lengths.end() + 1, |_, builder| durable(builder)).await;
        let proxies = servers.proxied().await.into_iter().enumerate();
        let names: Vec<_> = proxies.map(|(server, proxy)| Name { proxy, server }).collect();
        let list: Vec<_> = (0..length).collect();
        let observer = observer(&urls(&names, &list));
        let started = vec![Instant::now(); names.len()];
        Self { servers, names, list, lengths, grows: true, started, changed_at: None, observer, name }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn urls(&self) -> Vec<String> {
        urls(&self.names, &self.list)
    }

    pub(super) fn channels(&self) -> Vec<(u16, String)> {
        self.servers.iter().map(|server| (server.port(), "redlock::".to_owned())).collect()
    }

    pub(super) async fn contents(&self) -> BTreeMap<String, String> {
        self.servers.contents().await.into_values().flatten().collect()
    }

    pub(super) const fn observer(&self) -> &LockManager {
        &self.observer
    }

    /// Returns `true` if the observer counts every server of the list.
    async fn all_count(&self) -> bool {
        self.observer.check().await.nodes.iter().all(|node| node.error.is_none())
    }

    fn server(&self, name: usize) -> &RedisServer {
        &self.servers[self.names[name].server]
    }

    /// Lets one fault happen and end. Returns its name.
    pub(super) async fn trouble(&mut self, workers: &Mutex<Workers>, dice: &mut Dice) -> &'static str {
        let name = self.list[dice.below(self.list.len())];
        let (server, proxy) = (self.server(name), &self.names[name].proxy);
        match dice.below(24) {
            0..3 => freeze(server, dice).await,
            3..5 => kill_clients(server).await,
            5..7 => cut(proxy).await,
            7..10 => silence(proxy, dice).await,
            10..12 => refuse(server, dice).await,
            12..15 => self.restart(name, dice).await,
            15..18 => self.lose_data(dice).await,
            18..21 => self.move_name(name, dice).await,
            _ => self.deploy(workers, dice).await,
        }
    }

    async fn restart(&mut self, name: usize, dice: &mut Dice) -> &'static str {
        if !self.check_recovered().await {
            return WAITING;
        }
        self.server(name).kill();
        sleep(pause(dice)).await;
        self.server(name).restart().await;
        self.record_start(name);
        "restarted"
    }

    fn record_start(&mut self, name: usize) {
        self.started[self.names[name].server] = Instant::now();
    }

    /// Returns `true` if the last change is over.
    async fn check_recovered(&mut self) -> bool {
        let is_early = self.changed_at.is_some_and(|changed_at| changed_at.elapsed() < WAIT);
        let has_recovered = !is_early && (self.changed_at.is_none() || self.all_count().await);
        if has_recovered {
            self.changed_at = None;
        }
        has_recovered
    }

    /// Returns `true` if the next change may begin.
    async fn may_change(&mut self) -> bool {
        let is_old = |name: &usize| self.started[self.names[*name].server].elapsed() > WAIT;
        self.list.iter().all(is_old) && self.check_recovered().await
    }

    /// Restarts servers without their data.
    async fn lose_data(&mut self, dice: &mut Dice) -> &'static str {
        if !self.may_change().await {
            return WAITING;
        }
        let (length, minority) = (self.list.len(), (self.list.len() - 1) / 2);
        let (first, lost) = (dice.below(length), 1 + dice.below(minority.max(1)));
        let lost: Vec<_> = (first..first + lost).map(|index| self.list[index % length]).collect();
        for name in &lost {
            self.server(*name).kill();
        }
        sleep(if minority == 0 { WAIT } else { pause(dice) }).await;
        for name in lost {
            self.start_empty(name).await;
        }
        "restarted empty"
    }

    async fn start_empty(&mut self, name: usize) {
        self.server(name).restart_empty().await;
        self.record_start(name);
        self.changed_at = Some(Instant::now());
    }

    /// Returns a random name that no process uses.
    fn spare(&self, dice: &mut Dice) -> usize {
        let spare: Vec<_> = (0..self.names.len()).filter(|name| !self.list.contains(name)).collect();
        spare[dice.below(spare.len())]
    }

    /// Moves a name to another server: stops the first one for good, waits for one `max_ttl`, and lets the name lead to a new server.
    async fn move_name(&mut self, name: usize, dice: &mut Dice) -> &'static str {
        if !self.may_change().await {
            return WAITING;
        }
        self.server(name).kill();
        sleep(WAIT).await;
        let (spare, before) = (self.spare(dice), self.names[name].server);
        self.names[name].server = self.names[spare].server;
        self.names[spare].server = before;
        self.start_empty(name).await;
        self.names[name].proxy.redirect_all_connections(self.server(name)).await;
        self.names[spare].proxy.redirect_all_connections(self.server(spare)).await;
        "name moved"
    }

    /// Adds an empty server to the list of the processes, or removes one. Meanwhile, processes with both lists run side by side.
    async fn deploy(&mut self, workers: &Mutex<Workers>, dice: &mut Dice) -> &'static str {
        if !self.may_change().await {
            return WAITING;
        }
        if self.list.len() == *self.lengths.end() {
            self.grows = false;
        } else if self.list.len() == *self.lengths.start() {
            self.grows = true;
        }
        if self.grows {
            let added = self.spare(dice);
            self.start_empty(added).await;
            self.list.push(added);
        } else {
            self.list.remove(dice.below(self.list.len()));
        }
        workers.lock().await.set_list(self.urls());
        while workers.lock().await.replace_outdated().await {
            sleep(pause(dice)).await;
        }
        self.observer = observer(&self.urls());
        // The leases of killed processes end.
        self.changed_at = Some(Instant::now());
        "deploy"
    }
}

fn urls(names: &[Name], list: &[usize]) -> Vec<String> {
    list.iter().map(|name| names[*name].proxy.url()).collect()
}

/// Holds all bytes for a while. Then delivers them late, or ends the connections.
async fn silence(proxy: &Proxy, dice: &mut Dice) -> &'static str {
    let is_lost = dice.below(2) == 0;
    if is_lost {
        proxy.drop_replies();
    } else {
        proxy.hold();
    }
    sleep(pause(dice)).await;
    if is_lost {
        proxy.cut().await;
    }
    proxy.pass();
    "silent"
}

async fn cut(proxy: &Proxy) -> &'static str {
    proxy.cut().await;
    "cut"
}
