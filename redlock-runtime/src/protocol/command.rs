//! What a node is asked, what it answers, and what it says unasked.

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
    /// Is proposed as the fencing number when the token owns the lock after an `Acquire`, `Extend` or `Adopt`; and with a
    /// `SetNx` in any case, because that is no script.
    pub(crate) fence: Option<Ballot>,
    /// Shared by all commands of one acquisition, to all nodes.
    pub(crate) subject: Arc<Subject>,
}

impl Command {
    /// Returns the ballot that the command proposes, with the lock that it proposes it for.
    pub(crate) fn proposal(&self) -> Option<Proposal> {
        self.fence.map(|ballot| Proposal { subject: Arc::clone(&self.subject), ballot })
    }
}

/// A ballot that was sent with a command. It is kept until the reply arrives.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) subject: Arc<Subject>,
    pub(crate) ballot: Ballot,
}

/// What a command is about: a key, and the token that wants it or has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// What it is called. Of several names, that is none of theirs.
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
    /// As what the token wants the lock. A release gives back whatever the token has, so that it may say anything there.
    pub(crate) mode: Mode,
    /// The token that an `Adopt` takes the place of, because the lock was left with it, or a `Revoke`, because somebody breaks
    /// its lock; or that a `Yield` names. Boxed: it is rare, and there are many subjects.
    pub(crate) other: Option<Box<OwnerToken>>,
    /// The names, if there are several; and as what each is wanted, which `mode` is the strongest of. Boxed, because most locks
    /// have one name.
    pub(crate) parts: Option<Arc<Parts>>,
}

impl Subject {
    pub(crate) const fn new(key: LockKey, token: OwnerToken) -> Self {
        Self { key, token, mode: Mode::Exclusive, other: None, parts: None }
    }

    /// The names of a request, which may be several.
    pub(crate) fn of(parts: &Parts, token: OwnerToken) -> Self {
        let several = (!parts.is_single()).then(|| Arc::new(parts.clone()));
        Self { parts: several, ..Self::new(parts.key(), token) }.of_mode(parts.mode())
    }

    /// Each name, and as what it is wanted.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (&LockKey, Class)> {
        let several = self.parts.as_deref().into_iter().flat_map(Parts::iter);
        let single = self.parts.is_none().then(|| (&self.key, Class::of(self.mode)));
        single.into_iter().chain(several.map(|part| (&part.key, part.class)))
    }

    /// Whether it is about several names.
    pub(crate) const fn has_several(&self) -> bool {
        self.parts.is_some()
    }

    /// Whether it is about one name that is wanted alone.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.mode.is_shared() && !self.has_several()
    }

    /// Whether one of its names is called `name` in Redis.
    pub(crate) fn concerns(&self, name: &str) -> bool {
        self.wanted().any(|(key, _)| key.name() == name)
    }

    /// The slots of the names that it wants alone, or something below, each slot once: the registers of all of them number it.
    /// What it has shared since then keeps its number.
    pub(crate) fn numbered_slots(&self) -> Slots {
        let Some(parts) = &self.parts else { return Slots::One([slot_of(self.key.name())]) };
        let numbered = parts.iter().filter(|part| part.is_numbered());
        let mut slots: Vec<_> = numbered.map(|part| slot_of(part.name())).collect();
        slots.sort_unstable();
        slots.dedup();
        Slots::Several(slots)
    }

    /// A name that stands for all of them where it matters which server has them.
    pub(crate) fn route(&self) -> &LockKey {
        self.parts.as_deref().map_or(&self.key, |parts| &parts.first().key)
    }

    /// The same names for another token.
    pub(crate) fn under(&self, token: OwnerToken) -> Self {
        let Self { key, mode, parts, .. } = self;
        Self { key: key.clone(), token, mode: *mode, other: None, parts: parts.clone() }
    }

    /// The same in this mode.
    pub(crate) fn of_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The same token, and another one.
    pub(crate) fn naming(&self, other: OwnerToken) -> Arc<Self> {
        let Self { key, token, mode, parts, .. } = self;
        let other = Some(Box::new(other));
        Arc::new(Self { key: key.clone(), token: *token, mode: *mode, other, parts: parts.clone() })
    }

    /// The same as one of those who share the lock, which the token had alone.
    pub(crate) fn lowered(&self) -> Arc<Self> {
        let Self { key, token, other, parts, .. } = self;
        let parts = parts.as_ref().map(|parts| Arc::new(parts.lowered()));
        Arc::new(Self { key: key.clone(), token: *token, mode: Mode::Shared, other: other.clone(), parts })
    }

    /// Whether the lock is wanted together with others.
    pub(crate) const fn is_shared(&self) -> bool {
        self.mode.is_shared()
    }
}

/// The slots that are numbered together. Nearly always there is one.
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
    /// The name of the key in Redis, or of one that stands for several.
    pub(crate) fn key(&self) -> &str {
        self.subject.route().name()
    }

    pub(crate) fn token(&self) -> &str {
        self.subject.token.as_str()
    }

    /// The other token that this is about; empty, which no owner is called, when there is none.
    pub(crate) fn other(&self) -> &str {
        self.subject.other.as_ref().map_or("", |other| other.as_str())
    }
}

/// `claim` is the lifetime of what is handed to the next waiter: a vote, which it must turn into a lease by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `SET L token NX PX ttl`: take a free lock. The plain command, so that every Redlock client is excluded. A shared lock
    /// is taken as it can be together with others, by a script: and only if nobody who wants it alone has come before.
    SetNx { ttl: Duration },
    /// Take the lock when it is free and nobody waits for longer, or else wait for it in the queue.
    ///
    /// `holds`: the token holds the lock, by enough other nodes, and wants the vote of this one as well. It comes before
    /// all who wait, because none of them can have the lock before it ends; and who has the node is told of it.
    ///
    /// Who releases the token must have dropped the answer to this: a server that has lost its scripts executes what is
    /// sent again behind the release, and it is sent again only for those who wait for the answer.
    Acquire { ttl: Duration, claim: Duration, holds: bool },
    /// Start the lease anew if the token owns the lock; never creates it.
    Extend { ttl: Duration },
    /// The same for a lock that nobody else is known to want, and whose call waits for nothing: it may be sent together with
    /// others.
    Renew { ttl: Duration },
    /// Let the key end after this time if the token owns the lock, and not before: the last command about a token whose key has to
    /// stay. It alone may make a lease shorter.
    Keep { ttl: Duration },
    /// Take the place of the token that the lock was left with, and start the lease anew; never creates it. Where the
    /// token owns the lock already, it is an `Extend`: it may be sent again, and instead of one.
    ///
    /// Who releases the token must have dropped the answer to this, as for `Acquire`.
    Adopt { ttl: Duration },
    /// Take a permit if the token that the subject names owns the turnstile of the lock, whose lease starts anew for `turn`; and tell
    /// who else has one. Where the token has its permit already, its lease starts anew as well.
    Enter { ttl: Duration, turn: Duration },
    /// Pass the lock on to a smaller token, if one waits, and wait for it in the queue. With another token in the subject:
    /// to that one, if it waits, whichever is smaller.
    Yield { claim: Duration },
    /// Leave the queue, and pass the lock on if the token owns it.
    Release { claim: Duration },
    /// Take the place of the token whose lock somebody breaks, for as long as that one would have had it, and tell it. Where the
    /// token has its place already, tell it once more.
    ///
    /// Who releases the token must have dropped the answer to this, as for `Acquire`.
    Revoke,
    /// Raise the register of the key's slot to `number` if it is lower. The number was agreed on by a quorum of other nodes. The reply
    /// proves nothing about the number: a node accepts a number only together with its vote. The key and the token are not used
    /// otherwise.
    Raise { number: u64 },
}

impl Verb {
    /// For how long it takes the lock, or makes its lease.
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

    /// Whether the answer may tell the time of the server.
    pub(crate) const fn tells_time(self) -> bool {
        matches!(self, Self::Acquire { .. }) || self.is_extension()
    }

    /// Whether a node may execute it behind a command that was sent after it. Behind the last command about a token nothing is sent.
    pub(crate) const fn may_be_late(self) -> bool {
        !matches!(self, Self::Keep { .. } | Self::Release { .. })
    }

    /// Whether it starts the lease of an owner anew.
    pub(crate) const fn is_extension(self) -> bool {
        matches!(self, Self::Extend { .. } | Self::Renew { .. } | Self::Keep { .. } | Self::Adopt { .. })
    }
}

/// What a node says to a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// It has accepted the ballot with this number, which was larger than all before.
    Accepted(u64),
    /// It has accepted this one before, which is not smaller.
    Refused { largest: u64 },
}

impl Number {
    /// What several registers of a node say together. Something refuses, and nothing is accepted, unless each has said so; and
    /// where one says nothing, nothing is said.
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

/// `left` is what is left of the present holder's lease; `None` when the key has no expiry, which no lock of ours lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `SetNx`, `Acquire`: the lock is ours. `smaller`: it was ours before, and a smaller token waits for it. `number`:
    /// what the node says to the ballot, if there was one and its register could be used.
    Granted { smaller: bool, number: Option<Number> },
    /// `SetNx`: somebody has it. `Enter`: somebody has it alone, or waits for that.
    Taken,
    /// `Enter`: the token has a permit, and so have others, of which the first loses it after so much time. `strangers` have shares
    /// under names that are no tokens: other programs, of which nobody can tell whether they are the same elsewhere.
    Entered { others: Arc<[OwnerToken]>, strangers: u32, left: Option<Duration> },
    /// `Acquire`: somebody has it, and `rank` others are before us in the queue.
    Queued { left: Option<Duration>, rank: u32 },
    /// `Extend`, `Adopt`: the lease starts anew, and `waiters` wait for its end. `number` as for `Granted`.
    Extended { waiters: u32, number: Option<Number> },
    /// As `Extended`, at a node that abstains for as long as is `left`: it has found the token, which proves a lease only to
    /// whom the node had proven one before that has not ended yet. Nobody else can have had the lock there since.
    Found { waiters: u32, left: Duration },
    /// `Yield`: nobody who waits comes first, and the lock stays ours; its expiry is what it was.
    Kept,
    /// `Yield`: somebody else has it now, and we are in the queue.
    Yielded { left: Option<Duration> },
    /// `Release`: given back.
    Released,
    /// `Release`: executed, and too many waiters are absent for one command. A further release hands the lock to the next one that is
    /// present. `was_owner`: the token owned the lock.
    Unfinished { was_owner: bool },
    /// `Revoke`: the token has the place of the other one for so long, and whether anybody has received what that was told.
    Revoked { left: Duration, is_told: bool },
    /// `Raise`: the register is not lower than the number.
    Raised,
    /// `Enter`: the turnstile is another's. `Extend`, `Adopt`, `Yield`, `Release`: the token does not own the lock. `Revoke`: neither does the other one.
    NotOwner,
}

impl Reply {
    /// What the node says to a ballot, if it says anything.
    pub(crate) const fn number(&self) -> Option<Number> {
        match self {
            Self::Granted { number, .. } | Self::Extended { number, .. } => *number,
            _ => None,
        }
    }
}

pub(crate) type Answer = Result<Reply, NodeError>;

/// What stands under a key at a node, as far as its expiry tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// The node has not said.
    Unknown,
    /// The key is free.
    Nobody,
    /// A value without an expiry, or of another type than text: no lock of anybody.
    Data,
    /// A lock, of whose lease so much is left.
    Lock(Duration),
}

/// What a node says unasked to the manager of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wakeup {
    /// The key as it is named in Redis, and the token that this is about.
    pub(crate) subject: Subject,
    pub(crate) notice: Notice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The lock was handed to the token, as a claim.
    Granted,
    /// The same, with the times of the claim.
    Claimed(Claim),
    /// The same, as a claim whose beginning is known.
    Proven(ProvenClaim),
    /// A name may be free for the token, which wants several: it asks for all of them.
    Free,
    /// The token owns the lock, and `by` waits for it.
    Contended { by: OwnerToken },
    /// The token owns the lock at this node, and `by`, which holds it by the others, wants it here, too.
    Wanted { by: OwnerToken },
    /// Somebody breaks the lock of the token, and `by` has its place at this node. It proves nothing, because anybody may
    /// publish it, and makes whoever has the lock ask.
    Revoked { by: OwnerToken },
    /// The token has taken the place of another one, whose lock somebody breaks, and the body that ran under that has stopped:
    /// so says its manager, through the node.
    Stopped,
    /// Somebody has given a permit back, while the token owns the turnstile. It proves nothing, and makes whoever waits ask. Or the token
    /// has a permit, and somebody has waited for one for a while.
    Freed,
    /// A body runs under the lock that the token waits for: so says the manager of that body, through the node.
    Busy,
}

impl Notice {
    /// Whether it says more than that there is something to ask about.
    pub(crate) const fn is_proof(self) -> bool {
        matches!(self, Self::Claimed(_) | Self::Proven(_))
    }
}

/// What a node tells of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// For how long the node keeps the lock for the token: that is up to the token before.
    pub(crate) length: Duration,
    /// When that began, by the clock of the server, since 1970.
    pub(crate) begun: Duration,
}

/// A claim that began at a time that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProvenClaim {
    pub(crate) length: Duration,
    /// When it began at the earliest, by our clock.
    pub(crate) from: Instant,
}

/// Takes a [`Wakeup`] in. Called in the task of the connection, so it must neither block nor panic.
pub(crate) type Deliver = Arc<dyn Fn(Wakeup) + Send + Sync>;
