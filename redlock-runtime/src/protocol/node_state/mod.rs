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
pub(crate) use self::limits::{FINDING_COST, GONE_BUDGET, Limits, MOST_STEPS};
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
        let reply = execution.run(command.verb, other);
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
        // The commands for a single exclusive lock that never examine its queue.
        let is_single = self.line() == Line::ALONE;
        match verb {
            Verb::SetNx { ttl } if is_single => self.set_nx(ttl),
            Verb::SetNx { ttl } => self.try_at_once(ttl),
            Verb::Acquire { ttl, claim, holds } => self.acquire(ttl, claim, holds),
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } if is_single => self.extend(ttl),
            // An exclusive adoption does not apply to a lock that was left as a share.
            Verb::Adopt { .. } if is_single && self.readers().is_some() => Reply::NotOwner,
            Verb::Adopt { ttl } if is_single => self.extend(ttl),
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } => self.extend_shares(ttl, None),
            Verb::Adopt { ttl } => self.extend_shares(ttl, other),
            Verb::Enter { ttl, turn } => other.map_or(Reply::NotOwner, |by| self.enter(ttl, turn, by)),
            Verb::Yield { claim } => self.yield_(claim, other),
            Verb::Release { .. } if is_single && self.is_alone() => self.release_alone(),
            Verb::Release { claim } => self.release(claim),
            Verb::Revoke => other.map_or(Reply::NotOwner, |from| self.revoke(from)),
            // Executed separately, because it concerns no lock.
            Verb::Raise { .. } => Reply::Raised,
        }
    }

    fn set_nx(&mut self, ttl: Duration) -> Reply {
        if self.owner().is_some() || self.readers().is_some() {
            return Reply::Taken;
        }
        self.own(self.token, ttl, false);
        Reply::Granted { smaller: false, number: None }
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
        if self.readers().is_some() {
            return self.extend_downgraded(ttl);
        }
        let may_create = !self.applies(Rule::ExtensionNeverCreates) && self.owner().is_none();
        if !self.is_owner() && !may_create {
            return Reply::NotOwner;
        }
        self.own(self.token, ttl, self.is_marked());
        let queue = self.queue().filter(|_| self.is_marked());
        Reply::Extended { waiters: queue.map_or(0, Queue::len), number: None }
    }

    /// Releases a lock without the mark. Its queue is not examined.
    fn release_alone(&mut self) -> Reply {
        self.state.locks.remove(self.key.name());
        Reply::Released
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
        if self.readers().is_some() {
            return self.revoke_share(from);
        }
        let is_named = |owner| owner == from || !self.applies(Rule::BreakersNameTheHolder);
        match self.owner() {
            Some(owner) if owner == self.token => {}
            Some(owner) if is_named(owner) => self.replace_token_of_holder(),
            _ => return Reply::NotOwner,
        }
        let left = self.left().unwrap_or_default();
        let is_told = self.notify(from, Notice::Revoked { by: self.token }) > 0;
        if !self.applies(Rule::BreakersTakeThePlace) {
            self.drop_hold_of(self.token);
            self.promote(CLAIM, None, None);
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

    fn applies(&self, rule: Rule) -> bool {
        self.state.rules.apply(rule)
    }

    fn leave_queue(&mut self) {
        let token = self.token;
        if let Some(queue) = self.queue_mut() {
            queue.remove(token);
        }
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
