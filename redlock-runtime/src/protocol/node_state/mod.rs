//! State machine of one node: a second implementation of the scripts of `node/redis`.

#[cfg(feature = "testing")]
mod erasing;
mod gone;
mod limits;
mod look;
mod permits;
mod promotion;
mod queue;
mod readers;
mod registers;
mod sharing;
mod standing;

use self::gone::Gone;
pub(crate) use self::limits::{Limits, MOST_GONE, MOST_STEPS};
pub(crate) use self::look::Seen;
use self::queue::{Line, Queue};
use self::readers::Readers;
use self::registers::Registers;
pub(crate) use self::standing::MOST_TOLD;
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::{Claim, Command, Notice, Number, Occupant, Reply, Subject, Verb, Wakeup};
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::CLAIM;
use crate::protocol::wakeup::channel;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Number of entries below which expired entries are not searched for.
const SWEEP_FROM: usize = 1024;

/// Function that publishes a wake-up on a channel, and returns the number of receivers.
type Publish<'a> = &'a mut dyn FnMut(&str, Wakeup) -> usize;

#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// Locks that one token owns exclusively.
    locks: HashMap<Arc<str>, Holder>,
    /// Names that tokens share. No key is in both maps.
    readers: HashMap<Arc<str>, Readers>,
    queues: HashMap<Arc<str>, Queue>,
    registers: Registers,
    /// Number of entries at which expired entries are removed: twice the number that was left the last time.
    sweep_at: usize,
    limits: Limits,
    rules: Rules,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    token: OwnerToken,
    expires: Instant,
    /// Set if other tokens have come to wait since the holder got the lock: the mark behind the token in Redis.
    is_marked: bool,
}

/// Command in execution.
struct Execution<'a> {
    state: &'a mut NodeState,
    now: Instant,
    subject: &'a Subject,
    /// Present part of the request.
    key: &'a LockKey,
    class: Class,
    has_several: bool,
    token: OwnerToken,
    gone: Gone,
    publish: Publish<'a>,
}

impl NodeState {
    /// Executes a command. Returns the reply, and the time of the largest token at the node if it is larger than that
    /// of the command.
    pub(crate) fn execute(
        &mut self,
        now: Instant,
        command: &Command,
        publish: Publish<'_>,
    ) -> (Reply, Option<TokenTime>) {
        self.sweep(now);
        let subject = &*command.subject;
        if let Verb::Raise { number } = command.verb {
            subject.numbered_slots().iter().for_each(|slot| self.registers.raise(*slot, number));
            return (Reply::Raised, None);
        }
        // Expired entries are removed first.
        for (key, _) in subject.wanted() {
            self.expire(key.name(), now);
        }
        let Subject { key, token, mode, other, .. } = subject;
        let (class, has_several) = (Class::of(*mode), subject.has_several());
        let mut execution = Execution {
            state: self,
            now,
            subject,
            key,
            class,
            has_several,
            token: *token,
            gone: Gone::default(),
            publish,
        };
        // An adoption replaces the token before the latest token is read.
        execution.adopt(command.verb, other.as_deref());
        let seen = execution.seen(command.verb);
        let other = other.as_deref().copied();
        // The general case runs first, and leaves simple commands to the exclusive case.
        let shared = if execution.concerns_readers() { execution.share(command.verb, other) } else { None };
        let reply = shared.unwrap_or_else(|| execution.run(command.verb, other));
        let reply = execution.fenced(command.verb, reply, command.fence);
        // An `ENTER` without the admission lock is refused before anything else is examined.
        let is_turned_away = matches!(command.verb, Verb::Enter { .. }) && reply == Reply::NotOwner;
        let seen = seen.filter(|_| !is_turned_away);
        (reply, seen)
    }

    /// Returns the content of the key called `key`, as `PTTL` shows it.
    pub(crate) fn occupant(&self, key: &str, now: Instant) -> Occupant {
        let alone = self.locks.get(key).map(|holder| holder.expires);
        let end = alone.or_else(|| self.readers.get(key).map(Readers::expires)).filter(|end| now < *end);
        end.map_or(Occupant::Nobody, |end| Occupant::Lock(end.since(now)))
    }

    /// Removes the expired entries of `key`.
    fn expire(&mut self, key: &str, now: Instant) {
        if self.locks.get(key).is_some_and(|holder| holder.expires <= now) {
            self.locks.remove(key);
        }
        if self.readers.get(key).is_some_and(|readers| readers.is_gone(now)) {
            self.readers.remove(key);
        }
        let expire = self.rules.apply(Rule::QueuesExpire);
        if self.queues.get(key).is_some_and(|queue| expire && queue.is_gone(now)) {
            self.queues.remove(key);
        }
    }

    fn sweep(&mut self, now: Instant) {
        let entries = |state: &Self| state.locks.len() + state.readers.len() + state.queues.len();
        if entries(self) >= self.sweep_at.max(SWEEP_FROM) {
            self.locks.retain(|_, holder| now < holder.expires);
            self.readers.retain(|_, readers| !readers.is_gone(now));
            self.queues.retain(|_, queue| !queue.is_gone(now));
            self.sweep_at = entries(self) * 2;
        }
    }
}

impl Execution<'_> {
    fn run(&mut self, verb: Verb, other: Option<OwnerToken>) -> Reply {
        match verb {
            Verb::SetNx { ttl } => self.set_nx(ttl),
            Verb::Acquire { ttl, claim, holds } => self.acquire(ttl, claim, holds),
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } | Verb::Adopt { ttl, .. } => {
                self.extend(ttl)
            }
            Verb::Enter { ttl, turn } => other.map_or(Reply::NotOwner, |by| self.enter(ttl, turn, by)),
            Verb::Yield { claim } => self.yield_(claim, other),
            Verb::Release { claim } => self.release(claim),
            Verb::Revoke => other.map_or(Reply::NotOwner, |from| self.revoke(from)),
            // Executed separately, because it concerns no lock.
            Verb::Raise { .. } => Reply::Raised,
        }
    }

    fn set_nx(&mut self, ttl: Duration) -> Reply {
        if self.owner().is_some() {
            return Reply::Taken;
        }
        self.own(self.token, ttl, false);
        Reply::Granted { smaller: false, number: None }
    }

    fn acquire(&mut self, ttl: Duration, claim: Duration, holds: bool) -> Reply {
        let first = self.queue().and_then(Queue::first);
        match self.owner() {
            // The token owns the lock already: its lease restarts.
            Some(owner) if owner == self.token => {
                self.own(self.token, ttl, self.is_marked());
                self.leave_queue();
                Reply::Granted { smaller: first.is_some_and(|first| first < self.token), number: None }
            }
            // Another token owns the lock: this one waits, marks the value, and notifies the owner.
            Some(owner) => {
                let is_new = self.join_queue();
                if self.applies(Rule::WaitersMarkTheHolder) {
                    self.mark();
                }
                let by = self.token;
                if is_new || self.applies(Rule::HolderHearsOfEveryCall) {
                    self.notify(owner, if holds { Notice::Wanted { by } } else { Notice::Contended { by } });
                }
                self.queued()
            }
            // The lock is free, and no earlier token waits.
            None if holds || first.is_none_or(|first| self.token <= first) => {
                self.leave_queue();
                self.own(self.token, ttl, self.is_waited_for());
                Reply::Granted { smaller: false, number: None }
            }
            // The lock is free, but belongs to the earliest present waiter.
            None => {
                self.join_queue();
                match self.hand_over(claim, Some(ttl)) {
                    Some(next) if next == self.token => Reply::Granted { smaller: false, number: None },
                    _ => self.queued(),
                }
            }
        }
    }

    /// Executes the first part of an adoption, before its extension.
    fn adopt(&mut self, verb: Verb, from: Option<&OwnerToken>) {
        if let (Verb::Adopt { ttl }, Some(from), Line::ALONE) = (verb, from, self.line())
            && self.owner() == Some(*from)
        {
            if self.applies(Rule::AdopterReplaces) {
                self.own(self.token, ttl, self.is_marked() && self.applies(Rule::AdoptionKeepsTheMark));
            } else {
                self.token = *from;
            }
        }
    }

    fn extend(&mut self, ttl: Duration) -> Reply {
        let may_create = !self.applies(Rule::ExtensionNeverCreates) && self.owner().is_none();
        if !self.is_owner() && !may_create {
            return Reply::NotOwner;
        }
        self.own(self.token, ttl, self.is_marked());
        let queue = self.queue().filter(|_| self.is_marked());
        Reply::Extended { waiters: queue.map_or(0, Queue::len), number: None }
    }

    fn yield_(&mut self, claim: Duration, to: Option<OwnerToken>) -> Reply {
        if !self.is_owner() {
            return Reply::NotOwner;
        }
        if let Some(to) = to.filter(|to| self.queue_mut().is_some_and(|queue| queue.remove(*to))) {
            return self.yield_to(to, claim);
        }
        if self.queue().and_then(Queue::first).is_none_or(|first| self.token < first) {
            return Reply::Kept;
        }
        let left = self.left();
        self.join_queue();
        match self.hand_over(claim, left) {
            Some(next) if next == self.token => Reply::Kept,
            _ => Reply::Yielded { left: self.left() },
        }
    }

    /// Passes the lock to a waiting token; if its process is gone, to the first waiter.
    fn yield_to(&mut self, to: OwnerToken, claim: Duration) -> Reply {
        let left = self.left();
        self.join_queue();
        self.own(to, claim, true);
        if self.announce(to, claim) == 0 && self.hand_over(claim, left) == Some(self.token) {
            return Reply::Kept;
        }
        Reply::Yielded { left: self.left() }
    }

    fn release(&mut self, claim: Duration) -> Reply {
        if self.is_alone() {
            self.state.locks.remove(self.key.name());
            return Reply::Released;
        }
        self.leave_queue();
        let was_owner = self.is_owner() || !self.applies(Rule::ReleaseChecksTheOwner);
        // A repeated release finds the lock free: the first one has not reached the end of the queue.
        let is_free = self.owner().is_none() && self.applies(Rule::RepeatedReleasesGoOn);
        if was_owner || is_free {
            self.hand_over(claim, None);
        }
        self.released(was_owner)
    }

    /// Returns the reply to a release.
    fn released(&self, was_owner: bool) -> Reply {
        match was_owner {
            _ if self.is_unfinished() && self.applies(Rule::UnfinishedReleasesAreRepeated) => {
                Reply::Unfinished { was_owner }
            }
            true => Reply::Released,
            false => Reply::NotOwner,
        }
    }

    /// Takes the place of `from`, whose lock is being broken, and notifies it.
    fn revoke(&mut self, from: OwnerToken) -> Reply {
        let is_named = |owner| owner == from || !self.applies(Rule::BreakersNameTheHolder);
        match self.owner() {
            Some(owner) if owner == self.token => {}
            Some(owner) if is_named(owner) => self.replace_token_of_holder(),
            _ => return Reply::NotOwner,
        }
        let left = self.left().unwrap_or_default();
        let is_told = self.notify(from, Notice::Revoked { by: self.token }) > 0;
        if !self.applies(Rule::BreakersTakeThePlace) {
            self.hand_over(CLAIM, None);
        }
        Reply::Revoked { left, is_told }
    }

    /// Replaces the token of the present holder, with the same end of the lease.
    fn replace_token_of_holder(&mut self) {
        let (token, brief) = (self.token, self.now.after(CLAIM));
        let keeps_end = self.applies(Rule::BrokenLeasesKeepTheirEnd);
        if let Some(holder) = self.state.locks.get_mut(self.key.name()) {
            holder.token = token;
            holder.expires = if keeps_end { holder.expires } else { holder.expires.min(brief) };
        }
    }

    /// Adds the reply to a ballot to `reply`.
    fn fenced(&mut self, verb: Verb, reply: Reply, fence: Option<Ballot>) -> Reply {
        let is_owned = matches!(reply, Reply::Granted { .. } | Reply::Extended { .. });
        // A plain `SET` is followed by the ballot, whatever its reply is.
        let is_plain_set = matches!(verb, Verb::SetNx { .. }) && self.subject.is_plain();
        let Some(ballot) = fence.filter(|_| is_owned || is_plain_set) else { return reply };
        let number = self.propose(ballot);
        match reply {
            Reply::Granted { smaller, .. } => Reply::Granted { smaller, number },
            Reply::Extended { waiters, .. } => Reply::Extended { waiters, number },
            other => other,
        }
    }

    fn propose(&mut self, ballot: Ballot) -> Option<Number> {
        let NodeState { registers, rules, .. } = &mut *self.state;
        let slots = self.subject.numbered_slots();
        if let [slot] = *slots {
            return registers.propose(slot, ballot.number, *rules);
        }
        let said: Vec<_> = slots.iter().map(|slot| registers.propose(*slot, ballot.number, *rules)).collect();
        let accepted = said.iter().flatten().find(|number| matches!(number, Number::Accepted(_)));
        let is_enough = accepted.is_some() && !rules.apply(Rule::EveryRegisterAccepts);
        if is_enough { accepted.copied() } else { Number::of_all(said) }
    }

    /// Passes the lock to the smallest queued token whose process listens, or frees it.
    ///
    /// `own_ttl` is the lease for the token of the command, if that token is the next: a lease instead of a claim,
    /// without a wake-up.
    fn hand_over(&mut self, claim: Duration, own_ttl: Option<Duration>) -> Option<OwnerToken> {
        while !self.is_unfinished()
            && let Some(next) = self.queue_mut().and_then(Queue::pop_first)
        {
            let is_marked = self.is_waited_for() && self.applies(Rule::HandOverKeepsTheMark);
            if let Some(ttl) = own_ttl.filter(|_| next == self.token) {
                self.own(next, if self.applies(Rule::OwnTurnIsALease) { ttl } else { claim }, is_marked);
                return Some(next);
            }
            if !self.is_gone(next) {
                self.own(next, claim, is_marked);
                if self.announce(next, claim) > 0 {
                    return Some(next);
                }
            }
            self.strike_gone(next, Line::ALONE);
        }
        self.state.locks.remove(self.key.name());
        None
    }

    /// Notifies the process of `token` that it has the lock as a claim, with the times of the claim if it can read
    /// them.
    fn announce(&mut self, token: OwnerToken, length: Duration) -> usize {
        let claim = Claim { length, begun: self.now.since_origin() };
        self.notify(token, if token.reads_claims() { Notice::Claimed(claim) } else { Notice::Granted })
    }

    fn notify(&mut self, token: OwnerToken, notice: Notice) -> usize {
        let subject = Subject::new(self.key.name().into(), token);
        (self.publish)(&channel(token.manager()), Wakeup { subject, notice })
    }

    fn owner(&self) -> Option<OwnerToken> {
        self.state.locks.get(self.key.name()).map(|holder| holder.token)
    }

    fn is_owner(&self) -> bool {
        self.owner() == Some(self.token)
    }

    /// Returns `true` if the token owns a lock without the mark. Its queue is not examined.
    fn is_alone(&self) -> bool {
        self.is_owner() && !self.is_marked()
    }

    /// Returns `true` if a token is in the queue.
    fn is_waited_for(&self) -> bool {
        self.queue().is_some_and(|queue| queue.len() > 0)
    }

    /// Returns `true` if other tokens have come to wait for the holder.
    fn is_marked(&self) -> bool {
        self.state.locks.get(self.key.name()).is_some_and(|holder| holder.is_marked)
    }

    fn mark(&mut self) {
        if let Some(holder) = self.state.locks.get_mut(self.key.name()) {
            holder.is_marked = true;
        }
    }

    fn own(&mut self, token: OwnerToken, ttl: Duration, is_marked: bool) {
        let holder = Holder { token, expires: self.now.after(ttl), is_marked };
        self.state.locks.insert(self.key.name().into(), holder);
    }

    /// Returns the rest of the holder's lease. It is zero after an unfinished command: the lock is free, and the caller
    /// asks again.
    fn left(&self) -> Option<Duration> {
        if self.is_unfinished() {
            return Some(Duration::ZERO);
        }
        self.state.locks.get(self.key.name()).map(|holder| holder.expires.since(self.now))
    }

    fn queue(&self) -> Option<&Queue> {
        self.state.queues.get(self.key.name())
    }

    fn queue_mut(&mut self) -> Option<&mut Queue> {
        self.state.queues.get_mut(self.key.name())
    }

    /// Puts the token into the queue. Returns `true` if it was not in the queue before.
    fn join_queue(&mut self) -> bool {
        let (token, now) = (self.token, self.now);
        self.state.queues.entry(self.key.name().into()).or_insert_with(|| Queue::new(now)).add(token, now)
    }

    fn applies(&self, rule: Rule) -> bool {
        self.state.rules.apply(rule)
    }

    fn leave_queue(&mut self) {
        let token = self.token;
        if let Some(queue) = self.queue_mut() {
            queue.remove(token);
        }
    }

    fn queued(&self) -> Reply {
        let rank = self.queue().map_or(0, |queue| queue.rank(self.token));
        Reply::Queued { left: self.left(), rank: if self.is_unfinished() { 0 } else { rank } }
    }

    fn seen(&self, verb: Verb) -> Option<TokenTime> {
        let is_general = self.line() != Line::ALONE;
        if verb == Verb::Revoke || matches!(verb, Verb::SetNx { .. }) && !is_general {
            // A plain `SET` shows no tokens, and the token that breaks a lock is the latest anyway.
            return None;
        }
        let looks = is_general || matches!(verb, Verb::Acquire { .. } | Verb::Yield { .. }) || !self.is_alone();
        let of_part = |(key, _): (&LockKey, _)| {
            let queue = self.state.queues.get(key.name()).filter(|_| looks);
            self.state.locks.get(key.name()).map(|holder| holder.token).max(queue.and_then(Queue::last))
        };
        let largest = self.subject.wanted().filter_map(of_part).max();
        largest.filter(|largest| *largest > self.token).map(|largest| largest.time())
    }
}

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_of_permits;
#[cfg(test)]
mod conformance_of_sets;
#[cfg(any(test, fuzzing))]
mod observed;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_permits;
#[cfg(test)]
mod tests_of_sets;
