//! Locks that an operator breaks: the operators, the records of the observer, and circumstances in which breaks matter.

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

/// Number of times that an operator looks for a holder before it gives up.
const LOOKS: u32 = 40;

/// Operator that breaks a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operator {
    key: usize,
    at: Duration,
    /// Time between the look and the break.
    hesitation: Duration,
    /// Time after which the operator gives up.
    patience: Option<Duration>,
}

impl Operator {
    /// Draws an operator for one of `keys` keys.
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
    /// Looks for the holder of a lock, and breaks the lock.
    pub(super) fn operate(self, operator: Operator) -> impl Future<Output = ()> + Send {
        let (network, client) = (Arc::clone(&self.network), self.client);
        let all = async move {
            sleep(operator.at).await;
            let Some(token) = self.found(operator.key).await else { return };
            sleep(operator.hesitation).await;
            self.observer.breaks(self.client, operator.key, token);
            let broken = self.manager.break_lock(key(operator.key), token);
            // If the operator gives up, the unfinished break is dropped.
            let report = match operator.patience {
                None => Some(broken.await),
                Some(patience) => timeout(patience, broken).await.ok(),
            };
            self.observer.broke(self.client, report.as_ref());
        };
        Process::new(network, client, all)
    }

    /// Returns the holder as soon as a majority of the servers reports it.
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

/// State of the locks that operators break.
#[derive(Default)]
pub(super) struct Breaks {
    /// Broken keys of each holder, by the holder's token and the name of the key.
    holders: HashMap<OwnerToken, HashMap<Arc<str>, Broken>>,
    /// Placeholders of the breakers, by their tokens.
    stand_ins: HashMap<OwnerToken, Standing>,
}

/// Placeholder in the place of a holder.
#[derive(Clone)]
struct Standing {
    key: LockKey,
    holder: OwnerToken,
    /// `true` if the manager of the holder was notified.
    is_told: bool,
    /// `true` if its own manager was notified that the holder has stopped.
    has_stopped: bool,
}

/// Key of a holder whose lock an operator breaks.
#[derive(Default)]
struct Broken {
    /// Servers at which the key was taken away, with the time until which the holder may count on each.
    places: HashMap<usize, Instant>,
    /// Time at which another call could acquire the key, if the placeholders were gone.
    at: Option<Instant>,
    /// Time after `at` at which the holder was notified.
    told_at: Option<Instant>,
}

impl World {
    /// Returns the remaining lease of the lock that `command` breaks, if it is a break.
    pub(super) fn standing(&self, server: usize, command: &Command, now: Instant) -> Option<Duration> {
        let other = command.subject.other.as_deref().filter(|_| command.verb == Verb::Revoke)?;
        self.servers[server].lease_left(command.key(), *other, now)
    }

    /// Records that a break took the lock away at a server. `standing` is the lease that remained there.
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
            // The token had won back its earlier losses, so earlier notifications no longer matter.
            self.forget_robbery(key, **holder);
            for broken in self.broken.holders.get_mut(&**holder).into_iter().flat_map(HashMap::values_mut) {
                (broken.at, broken.told_at) = (None, None);
            }
        }
        let broken = self.broken.holders.entry(**holder).or_default().entry(key.name().into()).or_default();
        // Slightly earlier than the end: the clocks of servers differ, and holders allow for that.
        broken.places.insert(server, now.after(left.mul_f64(0.98).saturating_sub(Duration::from_millis(2))));
        broken.at = broken.at.or(is_lost.then_some(now));
    }

    /// Records the time at which a partly broken lock becomes free.
    ///
    /// Such a lock was broken at too few servers for another call. It can be acquired once its lease ends at another
    /// server, which was frozen.
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

    /// Records that other programs took `key` away at the servers in `hit`.
    ///
    /// A breaker loses its placeholders there as well, and the holder may no longer count on these servers.
    pub(super) fn note_theft(&mut self, key: &LockKey, hit: &[usize], now: Instant) {
        self.mark_broken_as_robbed(key, hit, now);
        for broken in self.broken.holders.values_mut().filter_map(|keys| keys.get_mut(key.name())) {
            broken.places.retain(|server, _| !hit.contains(server));
        }
    }

    /// Marks broken locks of `key` as robbed if they lose their places at the servers in `hit`, and keep too few others
    /// for as long.
    ///
    /// Until the holder notices the break, nothing keeps other calls out for it.
    pub(super) fn mark_broken_as_robbed(&mut self, key: &LockKey, hit: &[usize], now: Instant) {
        let enough = self.enough_to_exclude();
        let mut robbed = Vec::new();
        for (holder, broken) in
            self.broken.holders.iter().filter_map(|(holder, keys)| Some((holder, keys.get(key.name())?)))
        {
            let stands_until = |server: usize| {
                let place = broken.places.get(&server).copied().filter(|until| now < *until);
                let lease = self.servers[server].lease_left(key.name(), *holder, now);
                place.max(lease.map(|left| now.after(left)))
            };
            let counted_on = hit.iter().filter_map(|server| stands_until(*server)).max();
            let others = (0..self.servers.len()).filter(|server| !hit.contains(server));
            if counted_on.is_some() && others.filter(|other| stands_until(*other) >= counted_on).count() < enough {
                self.trace.line(|trace| format!("{}, which is broken, is robbed", trace.name(*holder)));
                robbed.push(*holder);
            }
        }
        for holder in robbed {
            self.rob(key, holder, Vec::new(), now);
        }
    }

    /// Returns the number of servers at which placeholders keep other calls from `key` for the broken lock of `token`.
    pub(super) fn placeholders(&self, key: &LockKey, token: OwnerToken, now: Instant) -> usize {
        let broken = self.broken.holders.get(&token).and_then(|keys| keys.get(key.name()));
        broken.map_or(0, |broken| broken.places.values().filter(|until| now < **until).count())
    }

    /// Records a step of a server's clock, by which the places there end earlier.
    pub(super) fn note_step(&mut self, server: usize, by: Duration) {
        for broken in self.broken.holders.values_mut().flat_map(HashMap::values_mut) {
            if let Some(until) = broken.places.get_mut(&server) {
                *until = until.before(by);
            }
        }
    }

    /// Records that a server has lost its data, and the places there.
    pub(super) fn note_wipe(&mut self, server: usize) {
        for broken in self.broken.holders.values_mut().flat_map(HashMap::values_mut) {
            broken.places.remove(&server);
        }
    }

    /// Records a notification to the manager of a token.
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
                    // Messages about other keys of the holder do not matter here.
                    standing.has_stopped |= standing.key == wakeup.subject.key;
                }
            }
            _ => {}
        }
    }

    /// Sends the owner of `key` at a server a forged message that its lock is broken.
    pub(super) fn lie(&mut self, key: &LockKey, server: usize, now: Instant) {
        let Some(token) = self.servers[server].owner(key.name(), now) else { return };
        let channel = crate::protocol::wakeup::channel(token.manager());
        let by = OwnerToken::new(ManagerId::numbered(u128::MAX), TokenTime::new(1, 0));
        if let Some(wire) = self.servers[server].subscriber(&channel) {
            let subject = Subject::new(key.clone(), token);
            self.push(wire, Wakeup { subject, notice: Notice::Revoked { by } }, now);
        }
    }

    /// Sends all managers but the holder's a forged message that the lock was granted to the holder.
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
    /// Returns the token that a majority of the servers reports as the owner.
    fn holder(&self, key: &LockKey) -> Option<OwnerToken> {
        let (world, now) = (self.world(), self.now());
        let owners: Vec<_> = world.servers.iter().filter_map(|server| server.owner(key.name(), now)).collect();
        let count = |token| owners.iter().filter(|other| **other == token).count();
        owners.iter().copied().find(|token| count(*token) >= world.quorum.needed)
    }

    /// Returns the time at which the lock of `token` was broken at enough servers for another call to acquire it. The
    /// second time is the notification of its manager.
    pub(super) fn broken_at(&self, token: OwnerToken) -> Option<(Instant, Option<Instant>)> {
        let (mut world, now) = (self.world(), self.now());
        world.note_rest_of_break(token, now);
        let broken = world.broken.holders.get(&token)?.values();
        broken.filter_map(|broken| Some((broken.at?, broken.told_at))).min()
    }

    /// Returns the placeholders without a message that their holder has stopped. They remain for as long as the leases
    /// of crashed holders would.
    pub(super) fn stand_ins(&self) -> Vec<OwnerToken> {
        let world = self.world();
        let stands = |(token, standing): (&OwnerToken, &Standing)| (!standing.has_stopped).then_some(*token);
        world.broken.stand_ins.iter().filter_map(stands).collect()
    }

    /// Returns `true` if `token` is or was a placeholder of a breaker.
    pub(super) fn was_placeholder(&self, token: OwnerToken) -> bool {
        self.world().broken.stand_ins.contains_key(&token)
    }

    /// Returns the holder behind the placeholder `token`, if all managers in between were notified. A placeholder may
    /// stand for another one.
    pub(super) fn notified_holder_behind(&self, token: OwnerToken) -> Option<OwnerToken> {
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

    /// Returns the tokens that may still count on `key` although their lock was broken.
    pub(super) fn tokens_counting_on(&self, key: &LockKey) -> Vec<OwnerToken> {
        let (world, now) = (self.world(), self.now());
        let needed = world.quorum.needed;
        let counts = |broken: &Broken| broken.places.values().filter(|until| now < **until).count() >= needed;
        let of_key = world.broken.holders.iter().filter(|(_, keys)| keys.get(key.name()).is_some_and(counts));
        of_key.map(|(token, _)| *token).collect()
    }
}

/// Operators break renewed locks. Some notifications are lost, threads are blocked, and servers are slow.
pub(super) fn breaks() -> Profile {
    let faults = Faults { freezes: 1, blocks: 3, lies: 2, until: 2500, longest: 1200, ..Faults::NONE };
    Profile { nodes: vec![1, 3, 3, 5], faults, is_prompt: false, ..prompt_breaks() }
}

/// Operators break one key of a pair, and managers shut down after their calls.
pub(super) fn broken_banks() -> Profile {
    Profile { keys: 2..=2, sets: 80, shutdowns: 100, bodies: 50..=500, calls: 1..=2, ..breaks() }
}

/// Like `breaks`, but only lost notifications delay the holder's notice of the break.
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

/// Like `prompt_breaks`, and all messages arrive. No placeholder remains longer than for its holder, however that ends.
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
