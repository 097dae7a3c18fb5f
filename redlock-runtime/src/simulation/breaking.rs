//! Locks that somebody breaks: who does it, what the observer knows of it, and circumstances in which it matters how.

use super::actor::{Actor, Process, key};
use super::circumstances::crowd;
use super::faults::Faults;
use super::network::{Network, World};
use super::profile::Profile;
use crate::lock::owner_token::ManagerId;
use crate::lock::{LockKey, OwnerToken};
use crate::protocol::command::{Command, Notice, Reply, Subject, Verb, Wakeup};
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use fastrand::Rng;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often somebody looks who has a lock before he gives up.
const LOOKS: u32 = 40;

/// Somebody who breaks a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operator {
    key: usize,
    at: Duration,
    /// What passes between the look and the break.
    hesitation: Duration,
    /// He gives up after this time.
    patience: Option<Duration>,
}

impl Operator {
    pub(super) fn draw(random: &mut Rng, keys: usize) -> Self {
        let millis = |random: &mut Rng, most| Duration::from_millis(random.u64(0..=most));
        let hesitates_for = if random.u8(0..3) == 0 { 1500 } else { 50 };
        Self {
            key: random.usize(0..keys),
            at: millis(random, 2000),
            hesitation: millis(random, hesitates_for),
            patience: (random.u8(0..4) == 0).then(|| millis(random, 100)),
        }
    }
}

impl Actor {
    /// Looks who has a lock, and breaks it.
    pub(super) fn operate(self, operator: Operator) -> impl Future<Output = ()> + Send {
        let (network, client) = (Arc::clone(&self.network), self.client);
        let all = async move {
            sleep(operator.at).await;
            let Some(token) = self.found(operator.key).await else { return };
            sleep(operator.hesitation).await;
            self.observer.breaks(self.client, operator.key, token);
            let broken = self.manager.break_lock(key(operator.key), token);
            // What is under way when he gives up is dropped.
            let report = match operator.patience {
                None => Some(broken.await),
                Some(patience) => timeout(patience, broken).await.ok(),
            };
            self.observer.broke(self.client, report.as_ref());
        };
        Process::new(network, client, all)
    }

    /// Who has the lock, as soon as a majority of the servers says that somebody has.
    async fn found(&self, index: usize) -> Option<OwnerToken> {
        for _ in 0..LOOKS {
            if let Some(token) = self.network.holder(&key(index)) {
                return Some(token);
            }
            sleep(Duration::from_millis(20)).await;
        }
        None
    }
}

/// What becomes of locks that somebody breaks.
#[derive(Default)]
pub(super) struct Breaks {
    /// By the tokens of their holders, and the names of the keys, each of which may be broken.
    holders: HashMap<OwnerToken, HashMap<Arc<str>, Broken>>,
    /// What stands in their places.
    stand_ins: HashMap<OwnerToken, Standing>,
}

/// What stands in the place of a holder.
#[derive(Clone)]
struct Standing {
    key: LockKey,
    holder: OwnerToken,
    /// Whether the manager of the holder has been told of it.
    is_told: bool,
    /// Whether its own manager has been told that the holder has stopped.
    has_stopped: bool,
}

/// A key of a holder that somebody breaks.
#[derive(Default)]
struct Broken {
    /// Where it was taken away, and until when its holder may count on that server.
    places: HashMap<usize, Instant>,
    /// When it could be another one's if its places were free.
    at: Option<Instant>,
    /// When its holder was told, after that.
    told_at: Option<Instant>,
}

impl World {
    /// For how much longer the token has the lock that is broken by `command`, if it is one that breaks locks.
    pub(super) fn standing(&self, server: usize, command: &Command, now: Instant) -> Option<Duration> {
        let other = command.subject.other.as_deref().filter(|_| command.verb == Verb::Revoke)?;
        self.servers[server].lease_left(command.key(), *other, now)
    }

    /// A lock was taken away at a server, where it was `standing` for so long.
    pub(super) fn note_break(
        &mut self,
        server: usize,
        command: &Command,
        reply: &Reply,
        standing: Option<Duration>,
        now: Instant,
    ) {
        let Subject { key, token, other: Some(holder), .. } = &*command.subject else { return };
        let (Some(left), Reply::Revoked { .. }) = (standing, reply) else { return };
        let standing = Standing { key: key.clone(), holder: **holder, is_told: false, has_stopped: false };
        self.broken.stand_ins.entry(*token).or_insert(standing);
        let is_lost = !self.excludes(key, **holder, now);
        if self.was_whole(key, **holder, (server, now.after(left)), now) {
            // What it had lost before, it had won back, and what it was told of that is over.
            self.forget_robbery(key, **holder);
            for broken in self.broken.holders.get_mut(&**holder).into_iter().flat_map(HashMap::values_mut) {
                (broken.at, broken.told_at) = (None, None);
            }
        }
        let broken = self.broken.holders.entry(**holder).or_default().entry(key.name().into()).or_default();
        // Not to the last moment: the clocks of servers run differently, and holders allow for that.
        broken.places.insert(server, now.after(left.mul_f64(0.98).saturating_sub(Duration::from_millis(2))));
        broken.at = broken.at.or(is_lost.then_some(now));
    }

    /// A lock that was broken at too few servers for somebody else to have it may be one that somebody can have later, when it ends by
    /// itself at another one, which is frozen.
    fn note_rest_of_break(&mut self, token: OwnerToken, now: Instant) {
        let is_lost = |(name, broken): &(&Arc<str>, &Broken)| {
            let (key, places) = (LockKey::from(&***name), broken.places.values().filter(|until| now < **until).count());
            broken.at.is_none() && !self.excludes(&key, token, now) && self.excludes_with(&key, token, places, now)
        };
        let keys = self.broken.holders.get(&token).into_iter().flatten();
        let lost: Vec<_> = keys.filter(is_lost).map(|(name, _)| Arc::clone(name)).collect();
        let Some(keys) = self.broken.holders.get_mut(&token) else { return };
        for name in lost {
            keys.entry(name).or_default().at = Some(now);
        }
    }

    /// What stands under `key` at the servers that are `hit` is taken away by others than locks: whoever has broken a lock
    /// cannot keep its place there either, and its holder may not count on it.
    pub(super) fn note_theft(&mut self, key: &LockKey, hit: &[usize], now: Instant) {
        self.rob_the_broken(key, hit, now);
        for broken in self.broken.holders.values_mut().filter_map(|keys| keys.get_mut(key.name())) {
            broken.places.retain(|server, _| !hit.contains(server));
        }
    }

    /// Marks the locks of `key` that are broken, and whose places are taken away at the servers that are `hit`, as robbed, unless they
    /// are kept at enough others: until they know that they are broken, nobody keeps others out for them.
    pub(super) fn rob_the_broken(&mut self, key: &LockKey, hit: &[usize], now: Instant) {
        let enough = self.enough_to_exclude();
        let mut robbed = Vec::new();
        for (holder, broken) in
            self.broken.holders.iter().filter_map(|(holder, keys)| Some((holder, keys.get(key.name())?)))
        {
            let stands = |server: &usize| {
                broken.places.get(server).is_some_and(|until| now < *until)
                    || self.servers[*server].lease_left(key.name(), *holder, now).is_some()
            };
            let (taken, left): (Vec<_>, Vec<_>) =
                (0..self.servers.len()).filter(stands).partition(|server| hit.contains(server));
            if !taken.is_empty() && left.len() < enough {
                self.trace.line(|trace| format!("{}, which is broken, is robbed", trace.name(*holder)));
                robbed.push(*holder);
            }
        }
        for holder in robbed {
            self.rob(key, holder, Vec::new(), now);
        }
    }

    /// The clock of a server goes ahead: the places there last for less time.
    pub(super) fn note_step(&mut self, server: usize, by: Duration) {
        for broken in self.broken.holders.values_mut().flat_map(HashMap::values_mut) {
            if let Some(until) = broken.places.get_mut(&server) {
                *until = until.before(by);
            }
        }
    }

    /// A server has lost its data, and the places there with them.
    pub(super) fn note_wipe(&mut self, server: usize) {
        for broken in self.broken.holders.values_mut().flat_map(HashMap::values_mut) {
            broken.places.remove(&server);
        }
    }

    /// The manager of a token is told something.
    pub(super) fn note_told(&mut self, wakeup: &Wakeup, now: Instant) {
        let token = wakeup.subject.token;
        match wakeup.notice {
            Notice::Revoked { by } => {
                let keys = self.broken.holders.get_mut(&token).into_iter().flat_map(HashMap::values_mut);
                keys.filter(|broken| broken.at.is_some()).for_each(|broken| _ = broken.told_at.get_or_insert(now));
                if let Some(standing) = self.broken.stand_ins.get_mut(&by) {
                    standing.is_told |= standing.holder == token;
                }
            }
            Notice::Stopped => {
                if let Some(standing) = self.broken.stand_ins.get_mut(&token) {
                    // What is said of the other keys of the holder is nothing to it.
                    standing.has_stopped |= standing.key == wakeup.subject.key;
                }
            }
            _ => {}
        }
    }

    /// Somebody says to whoever has `key` at a server that its lock is broken.
    pub(super) fn lie(&mut self, key: &LockKey, server: usize, now: Instant) {
        let Some(token) = self.servers[server].owner(key.name(), now) else { return };
        let channel = crate::protocol::wakeup::channel(token.manager());
        let by = OwnerToken::new(ManagerId::numbered(u128::MAX), TokenTime::new(1, 0));
        if let Some(wire) = self.servers[server].subscriber(&channel) {
            let subject = Subject::new(key.clone(), token);
            self.push(wire, Wakeup { subject, notice: Notice::Revoked { by } }, now);
        }
    }

    /// A user who may publish sends all managers but the holder's a message that the lock was granted to the holder.
    pub(super) fn forge(&mut self, key: &LockKey, server: usize, now: Instant) {
        let Some(token) = self.servers[server].owner(key.name(), now) else { return };
        let channel = crate::protocol::wakeup::channel(token.manager());
        for wire in self.servers[server].subscribers_but(&channel) {
            let subject = Subject::new(key.clone(), token);
            self.push(wire, Wakeup { subject, notice: Notice::Granted }, now);
        }
    }
}

impl Network {
    /// The token that a majority of the servers names as that of the holder.
    fn holder(&self, key: &LockKey) -> Option<OwnerToken> {
        let (world, now) = (self.world(), self.now());
        let owners: Vec<_> = world.servers.iter().filter_map(|server| server.owner(key.name(), now)).collect();
        let count = |token| owners.iter().filter(|other| **other == token).count();
        owners.iter().copied().find(|token| count(*token) >= world.quorum.needed)
    }

    /// When the lock of `token` was broken at so many servers that somebody else could have it, and when its manager was told.
    pub(super) fn broken_at(&self, token: OwnerToken) -> Option<(Instant, Option<Instant>)> {
        let (mut world, now) = (self.world(), self.now());
        world.note_rest_of_break(token, now);
        let broken = world.broken.holders.get(&token)?.values();
        broken.filter_map(|broken| Some((broken.at?, broken.told_at))).min()
    }

    /// What stands in for holders of whom nobody has said to it that they have stopped: as long as those would have stood there
    /// had they crashed.
    pub(super) fn stand_ins(&self) -> Vec<OwnerToken> {
        let world = self.world();
        let stands = |(token, standing): (&OwnerToken, &Standing)| (!standing.has_stopped).then_some(*token);
        world.broken.stand_ins.iter().filter_map(stands).collect()
    }

    /// Whether `token` has, or had, the place of a holder whose lock somebody breaks.
    pub(super) fn has_stood_in(&self, token: OwnerToken) -> bool {
        self.world().broken.stand_ins.contains_key(&token)
    }

    /// The holder for whom `token` stands in, behind all that stand in for each other, if each of their managers was told.
    pub(super) fn told_holder_behind(&self, token: OwnerToken) -> Option<OwnerToken> {
        let world = self.world();
        let mut standing = world.broken.stand_ins.get(&token)?;
        while standing.is_told {
            match world.broken.stand_ins.get(&standing.holder) {
                Some(behind) => standing = behind,
                None => return Some(standing.holder),
            }
        }
        None
    }

    /// The tokens that may count on `key` still, although somebody has broken their lock.
    pub(super) fn may_count_on(&self, key: &LockKey) -> Vec<OwnerToken> {
        let (world, now) = (self.world(), self.now());
        let needed = world.quorum.needed;
        let counts = |broken: &Broken| broken.places.values().filter(|until| now < **until).count() >= needed;
        let of_key = world.broken.holders.iter().filter(|(_, keys)| keys.get(key.name()).is_some_and(counts));
        of_key.map(|(token, _)| *token).collect()
    }
}

/// Locks are broken whose holders renew them. What they are told is lost now and then, their threads are blocked, servers are slow.
pub(super) fn breaks() -> Profile {
    let faults = Faults { freezes: 1, blocks: 3, lies: 2, until: 2500, longest: 1200, ..Faults::NONE };
    Profile { nodes: vec![1, 3, 3, 5], faults, is_prompt: false, ..prompt_breaks() }
}

/// Of locks of both keys one is broken, and managers are shut down when their calls are over.
pub(super) fn broken_banks() -> Profile {
    Profile { keys: 2..=2, sets: 80, shutdowns: 100, bodies: 50..=500, calls: 1..=2, ..breaks() }
}

/// The same, and nothing keeps a holder from knowing it soon but that some of what it is told is lost.
pub(super) fn prompt_breaks() -> Profile {
    let faults = Faults { blocks: 3, lies: 3, until: 2500, longest: 1200, ..Faults::NONE };
    Profile {
        nodes: vec![3],
        clients: 2..=4,
        tasks: 1..=2,
        keys: 1..=1,
        calls: 2..=4,
        ttls: vec![1500, 3000],
        renewals: 70,
        bodies: 50..=2000,
        operators: 3,
        losses: 40,
        faults,
        is_prompt: true,
        bound: 8000,
        ..crowd()
    }
}

/// The same, and all that is said arrives: nothing stands for longer than for the holder in whose place it is, however that ends.
pub(super) fn heard_breaks() -> Profile {
    Profile {
        ttls: vec![20_000],
        bodies: 50..=500,
        min_holds: 20,
        detaches: 10,
        lingers: vec![0, 100, 2000],
        losses: 0,
        is_heard: true,
        ..prompt_breaks()
    }
}
