//! Commands to a node, their replies, and the messages that a node sends unasked.

use crate::error::NodeError;
use crate::lock::LockKey;
use crate::lock::Mode;
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::lock::parts::Parts;
use crate::lock::slot::slot_of;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::Instant;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// One atomic command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    /// Ballot that is proposed as the fencing number if the token owns the lock after an `Acquire`, `Extend` or
    /// `Adopt`. A `SetNx` always proposes it, because `SetNx` is not a script.
    pub(crate) fence: Option<Ballot>,
    /// Key and token of the command. All commands of one acquisition share it, for all nodes.
    pub(crate) subject: Arc<Subject>,
}

impl Command {
    /// Returns the ballot that the command proposes, with the lock that it proposes it for.
    pub(crate) fn proposal(&self) -> Option<Proposal> {
        self.fence.map(|ballot| Proposal { subject: Arc::clone(&self.subject), ballot })
    }
}

/// Ballot that was sent with a command. It is kept until the reply arrives.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) subject: Arc<Subject>,
    pub(crate) ballot: Ballot,
}

/// Subject of a command: a key, and the token that wants it or holds it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Name of the key. A request for several names has a name of its own here.
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
    /// Mode in which the token wants the lock. A release gives back all that the token holds, so it may carry any mode.
    pub(crate) mode: Mode,
    /// Second token. An `Adopt` takes its place, because the lock was left with it. A `Revoke` takes its place, because
    /// its lock is being broken. A `Yield` hands the lock to it. Boxed: it is rare, and there are many subjects.
    pub(crate) other: Option<Box<OwnerToken>>,
    /// Names of a request for several names, each with its class; `mode` is the strongest class. Boxed, because most
    /// locks have one name.
    pub(crate) parts: Option<Arc<Parts>>,
}

impl Subject {
    pub(crate) const fn new(key: LockKey, token: OwnerToken) -> Self {
        Self { key, token, mode: Mode::Exclusive, other: None, parts: None }
    }

    /// Creates the subject of a request, which may have several names.
    pub(crate) fn of(parts: &Parts, token: OwnerToken) -> Self {
        let several = (!parts.is_single()).then(|| Arc::new(parts.clone()));
        Self { parts: several, ..Self::new(parts.key(), token) }.of_mode(parts.mode())
    }

    /// Returns each name with the class in which it is wanted.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (&LockKey, Class)> {
        let several = self.parts.as_deref().into_iter().flat_map(Parts::iter);
        let single = self.parts.is_none().then(|| (&self.key, Class::of(self.mode)));
        single.into_iter().chain(several.map(|part| (&part.key, part.class)))
    }

    /// Returns `true` if the subject has several names.
    pub(crate) const fn has_several(&self) -> bool {
        self.parts.is_some()
    }

    /// Returns `true` if the subject is one name that is wanted exclusively.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.mode.is_shared() && !self.has_several()
    }

    /// Returns `true` if one of the names is called `name` in Redis.
    pub(crate) fn concerns(&self, name: &str) -> bool {
        self.wanted().any(|(key, _)| key.name() == name)
    }

    /// Returns the slots of the names that are wanted exclusively, or with an exclusive intent, each slot once. The
    /// registers of all of them number the lock. A downgraded lock keeps its number.
    pub(crate) fn numbered_slots(&self) -> Slots {
        let Some(parts) = &self.parts else { return Slots::One([slot_of(self.key.name())]) };
        let numbered = parts.iter().filter(|part| part.is_numbered());
        let mut slots: Vec<_> = numbered.map(|part| slot_of(part.name())).collect();
        slots.sort_unstable();
        slots.dedup();
        Slots::Several(slots)
    }

    /// Returns one name that represents all of them in decisions about the server that stores them.
    pub(crate) fn route(&self) -> &LockKey {
        self.parts.as_deref().map_or(&self.key, |parts| &parts.first().key)
    }

    /// Returns the same names for another token.
    pub(crate) fn under(&self, token: OwnerToken) -> Self {
        let Self { key, mode, parts, .. } = self;
        Self { key: key.clone(), token, mode: *mode, other: None, parts: parts.clone() }
    }

    /// Returns the subject with the given mode.
    pub(crate) fn of_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Returns the same subject with a second token.
    pub(crate) fn naming(&self, other: OwnerToken) -> Arc<Self> {
        let Self { key, token, mode, parts, .. } = self;
        let other = Some(Box::new(other));
        Arc::new(Self { key: key.clone(), token: *token, mode: *mode, other, parts: parts.clone() })
    }

    /// Returns the subject of the downgraded lock: the same token as one of several readers.
    pub(crate) fn lowered(&self) -> Arc<Self> {
        let Self { key, token, other, parts, .. } = self;
        let parts = parts.as_ref().map(|parts| Arc::new(parts.lowered()));
        Arc::new(Self { key: key.clone(), token: *token, mode: Mode::Shared, other: other.clone(), parts })
    }

    /// Returns `true` if the lock is wanted in shared mode.
    pub(crate) const fn is_shared(&self) -> bool {
        self.mode.is_shared()
    }
}

/// Slots that are numbered together. Nearly always there is one.
#[derive(Debug)]
pub(crate) enum Slots {
    One([u16; 1]),
    Several(Vec<u16>),
}

impl Deref for Slots {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        match self {
            Self::One(slot) => slot,
            Self::Several(slots) => slots,
        }
    }
}

impl Command {
    /// Returns the name of the key in Redis, or of one key that represents several.
    pub(crate) fn key(&self) -> &str {
        self.subject.route().name()
    }

    pub(crate) fn token(&self) -> &str {
        self.subject.token.as_str()
    }

    /// Returns the second token; an empty text, which is never a token, if there is none.
    pub(crate) fn other(&self) -> &str {
        self.subject.other.as_ref().map_or("", |other| other.as_str())
    }
}

/// Kind of a command. `claim` is the lifetime of a node that is handed to the next waiter: a vote, which the waiter
/// must turn into a lease within that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `SET L token NX PX ttl`: takes a free lock. It is the plain command, so that every Redlock client is excluded. A
    /// script takes a shared lock, and only if no earlier writer waits.
    SetNx { ttl: Duration },
    /// Takes the lock if it is free and no earlier token waits; otherwise waits for it in the queue.
    ///
    /// `holds`: the token holds the lock on enough other nodes and wants the vote of this node as well. It comes before
    /// all waiters, because none of them can have the lock before the token ends. The present owner of the node is
    /// notified of it.
    ///
    /// A release of the token must first have discarded the reply to this command. A server that has lost its scripts
    /// executes the repeated command behind the release, and the command is repeated only for a caller that waits for
    /// the reply.
    Acquire { ttl: Duration, claim: Duration, holds: bool },
    /// Restarts the lease if the token owns the lock; never creates the lock.
    Extend { ttl: Duration },
    /// Extends a lock that no other token is known to want, and whose call waits for nothing. It may be sent together
    /// with other renewals.
    Renew { ttl: Duration },
    /// Sets the end of the key to this time from now if the token owns the lock. It is the last command about a token
    /// whose key has to stay taken, and the only command that may shorten a lease.
    Keep { ttl: Duration },
    /// Takes the place of the token that the lock was left with, and restarts the lease; never creates the lock. If the
    /// token owns the lock already, this is an `Extend`: it may be repeated, and may replace one.
    ///
    /// A release of the token must first have discarded the reply to this command, just like that of `Acquire`.
    Adopt { ttl: Duration },
    /// Takes a permit if the second token of the subject owns the admission lock of the lock, and restarts the admission lock's
    /// lease for `turn`. The reply lists the other permit holders. If the token has its permit already, its lease
    /// restarts as well.
    Enter { ttl: Duration, turn: Duration },
    /// Passes the lock to a smaller waiting token, if there is one, and joins the queue. With a second token in the
    /// subject, passes the lock to that token if it waits, whichever of the two is smaller.
    Yield { claim: Duration },
    /// Leaves the queue, and passes the lock on if the token owns it.
    Release { claim: Duration },
    /// Takes the place of the token whose lock is being broken, for the rest of its lease, and notifies its manager. If
    /// the token is already in that place, the manager is notified again.
    ///
    /// A release of the token must first have discarded the reply to this command, just like that of `Acquire`.
    Revoke,
    /// Raises the register of the key's slot to `number` if it is lower. A quorum of other nodes agreed on the number.
    /// The reply proves nothing about the number: a node accepts a number only together with its vote. The key and the
    /// token are not used otherwise.
    Raise { number: u64 },
}

impl Verb {
    /// Returns the duration for which the command takes the lock or extends its lease.
    pub(crate) const fn ttl(self) -> Option<Duration> {
        match self {
            Self::SetNx { ttl }
            | Self::Acquire { ttl, .. }
            | Self::Extend { ttl }
            | Self::Renew { ttl }
            | Self::Keep { ttl }
            | Self::Adopt { ttl }
            | Self::Enter { ttl, .. } => Some(ttl),
            Self::Yield { .. } | Self::Release { .. } | Self::Revoke | Self::Raise { .. } => None,
        }
    }

    /// Returns `true` if the command takes a lock that the token does not hold yet.
    pub(crate) const fn takes_the_lock(self) -> bool {
        matches!(self, Self::SetNx { .. } | Self::Acquire { .. })
    }

    /// Returns `true` if the reply may contain the time of the server.
    pub(crate) const fn tells_time(self) -> bool {
        matches!(self, Self::Acquire { .. }) || self.is_extension()
    }

    /// Returns `true` if a node may execute the command behind one that was sent after it. Nothing is sent behind the
    /// last command about a token.
    pub(crate) const fn may_be_late(self) -> bool {
        !matches!(self, Self::Keep { .. } | Self::Release { .. })
    }

    /// Returns `true` if the command restarts the lease of an owner.
    pub(crate) const fn is_extension(self) -> bool {
        matches!(self, Self::Extend { .. } | Self::Renew { .. } | Self::Keep { .. } | Self::Adopt { .. })
    }
}

/// Reply of a node to a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Ballot with this number was accepted; it was larger than all accepted before.
    Accepted(u64),
    /// Ballot was refused, because `largest` was accepted before and is not smaller.
    Refused { largest: u64 },
}

impl Number {
    /// Combines the replies of several registers of one node. The ballot is accepted only if every register has
    /// accepted it. If one register gave no reply, the result is `None`.
    pub(crate) fn of_all(said: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        said.into_iter().reduce(|one, other| Some(one?.and(other?))).flatten()
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Accepted(ballot), Self::Accepted(_)) => Self::Accepted(ballot),
            _ => Self::Refused { largest: self.largest().max(other.largest()) },
        }
    }

    const fn largest(self) -> u64 {
        match self {
            Self::Accepted(ballot) => ballot,
            Self::Refused { largest } => largest,
        }
    }
}

/// Reply of a node. `left` is the rest of the present holder's lease; `None` if the key has no expiry, which every lock
/// of ours has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `SetNx`, `Acquire`: the token owns the lock. `smaller`: the token owned it before, and a smaller token waits for
    /// it. `number`: reply to the ballot, if one was sent and its register could be used.
    Granted { smaller: bool, number: Option<Number> },
    /// `SetNx`: another token owns the lock. `Enter`: a writer owns the lock or waits for it.
    Taken,
    /// `Enter`: the token has a permit, and so have `others`; the first of those permits ends after `left`. `strangers`
    /// have shares under names that are not tokens: they belong to other programs, and cannot be identified across
    /// nodes.
    Entered { others: Arc<[OwnerToken]>, strangers: u32, left: Option<Duration> },
    /// `Acquire`: another token owns the lock, and `rank` other waiters are ahead in the queue.
    Queued { left: Option<Duration>, rank: u32 },
    /// `Extend`, `Adopt`: the lease restarts, and `waiters` tokens wait for its end. `number`: see `Granted`.
    Extended { waiters: u32, number: Option<Number> },
    /// Variant of `Extended` from a node that abstains for `left`. The node has found the token, which proves a lease
    /// only if the node had proven one before that has not ended yet. No other token can have had the lock there since.
    Found { waiters: u32, left: Duration },
    /// `Yield`: no waiter comes first, and the token keeps the lock; its expiry is unchanged.
    Kept,
    /// `Yield`: another token now owns the lock, and this token is in the queue.
    Yielded { left: Option<Duration> },
    /// `Release`: the lock was released.
    Released,
    /// `Release`: executed, but too many waiters are absent for one command. A further release hands the lock to the
    /// next present waiter. `was_owner`: the token owned the lock.
    Unfinished { was_owner: bool },
    /// `Revoke`: the token has the place of the other token for `left`. `is_told`: a subscriber has received the
    /// notification.
    Revoked { left: Duration, is_told: bool },
    /// `Raise`: the register is at least the number.
    Raised,
    /// `Enter`: another token owns the admission lock. `Extend`, `Adopt`, `Yield`, `Release`: the token does not own the
    /// lock. `Revoke`: neither token owns it.
    NotOwner,
}

impl Reply {
    /// Returns the reply to a ballot, if there is one.
    pub(crate) const fn number(&self) -> Option<Number> {
        match self {
            Self::Granted { number, .. } | Self::Extended { number, .. } => *number,
            _ => None,
        }
    }
}

pub(crate) type Answer = Result<Reply, NodeError>;

/// Content of a key on a node, as far as its expiry shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// Not reported by the node.
    Unknown,
    /// Key is free.
    Nobody,
    /// Value without an expiry, or of another type than text: not a lock.
    Data,
    /// Lock, with the rest of its lease.
    Lock(Duration),
}

/// Message that a node sends unasked to the manager of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wakeup {
    /// Key, by its name in Redis, and the token that the message is about.
    pub(crate) subject: Subject,
    pub(crate) notice: Notice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Lock was handed to the token, as a claim.
    Granted,
    /// Lock was handed to the token, as a claim with the given times.
    Claimed(Claim),
    /// Lock was handed to the token, as a claim whose start is known.
    Proven(ProvenClaim),
    /// One of several wanted names may be free for the token, which then asks for all of them.
    Free,
    /// Token owns the lock, and `by` waits for it.
    Contended { by: OwnerToken },
    /// Token owns the lock at this node, and `by`, which holds it on the other nodes, wants this node as well.
    Wanted { by: OwnerToken },
    /// Lock of the token is being broken, and `by` has its place at this node. The message proves nothing, because
    /// anyone may publish it. It makes the holder ask the nodes.
    Revoked { by: OwnerToken },
    /// Token has replaced the holder of a broken lock, and that holder's body has stopped. The holder's manager reports
    /// this through the node.
    Stopped,
    /// Permit was given back while the token owns the admission lock. The message proves nothing; it makes a waiting call
    /// ask. If the token has a permit itself, the message means that another call has waited for a permit for a while.
    Freed,
    /// Body is running under the lock that the token waits for. The manager of that body reports this through the node.
    Busy,
}

impl Notice {
    /// Returns `true` if the message carries more than a reason to ask the node.
    pub(crate) const fn is_proof(self) -> bool {
        matches!(self, Self::Claimed(_) | Self::Proven(_))
    }
}

/// Times of a claim, as the node reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Lifetime of the claim, which the previous token has chosen.
    pub(crate) length: Duration,
    /// Start of the claim by the clock of the server, since 1970.
    pub(crate) begun: Duration,
}

/// Claim whose start is known by the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProvenClaim {
    pub(crate) length: Duration,
    /// Earliest start of the claim by the local clock.
    pub(crate) from: Instant,
}

/// Receives a [`Wakeup`]. The task of the connection calls it, so it must neither block nor panic.
pub(crate) type Deliver = Arc<dyn Fn(Wakeup) + Send + Sync>;
