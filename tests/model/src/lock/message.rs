//! Messages between clients and nodes, each as a code of four bits.

use super::node::{self, Verb};
use super::scenario::DETACHED;

/// A node command with the token of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Takes a free lock.
    SetNx,
    /// Takes the lock, or waits for it.
    Acquire,
    /// Restarts the lease.
    Extend,
    /// Hands the lock to a smaller token.
    Yield,
    /// Leaves the queue, and hands the lock over.
    Release,
    /// Takes the place of token 0, in scenarios with a detached token.
    Adopt,
    /// `ACQUIRE` of a token that holds the lock by other nodes.
    WinBack,
    /// Hands the lock to this token, which holds it by other nodes.
    YieldTo(u8),
}

impl Command {
    /// Commands in the order of their codes, which begin at 1. The codes of commands that name a token follow.
    const ALL: [Self; 7] =
        [Self::SetNx, Self::Acquire, Self::Extend, Self::Yield, Self::Release, Self::Adopt, Self::WinBack];
    const YIELD_TO: u8 = 8;

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code.checked_sub(Self::YIELD_TO) {
            Some(to) => Some(Self::YieldTo(to)),
            None => Self::ALL.get(usize::from(code.checked_sub(1)?)).copied(),
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::SetNx => 1,
            Self::Acquire => 2,
            Self::Extend => 3,
            Self::Yield => 4,
            Self::Release => 5,
            Self::Adopt => 6,
            Self::WinBack => 7,
            Self::YieldTo(to) => Self::YIELD_TO + to,
        }
    }

    pub(crate) const fn is_yield(self) -> bool {
        matches!(self, Self::Yield | Self::YieldTo(_))
    }

    /// Returns the operation of the node.
    pub(crate) const fn verb(self) -> Verb {
        match self {
            Self::SetNx => Verb::SetNx,
            Self::Acquire => Verb::Acquire { holds: false },
            Self::WinBack => Verb::Acquire { holds: true },
            Self::Extend => Verb::Extend,
            Self::Yield => Verb::Yield { to: None },
            Self::YieldTo(to) => Verb::Yield { to: Some(to) },
            Self::Release => Verb::Release,
            Self::Adopt => Verb::Adopt { from: DETACHED as u8 },
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SetNx => "SETNX",
            Self::Acquire => "ACQUIRE",
            Self::Extend => "EXTEND",
            Self::Yield => "YIELD",
            Self::Release => "RELEASE",
            Self::Adopt => "ADOPT",
            Self::WinBack => "ACQUIRE as holder",
            Self::YieldTo(0) => "YIELD to t0",
            Self::YieldTo(1) => "YIELD to t1",
            Self::YieldTo(2) => "YIELD to t2",
            Self::YieldTo(_) => "YIELD to t3",
        }
    }
}

/// A reply or a push. The answer to `RELEASE` is not modelled: a cut may happen before or after it, and a repeated `RELEASE`
/// covers both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `OK` of `SETNX`, `EXTEND` and `ADOPT`, `GRANTED` without a smaller token in the queue.
    Lease,
    /// [`Lease`](Self::Lease), if the lease has ended before the reply arrives.
    LeaseOver,
    /// `GRANTED` while a smaller token waits.
    LeaseSmaller,
    /// [`LeaseSmaller`](Self::LeaseSmaller), if the lease has ended before the reply arrives.
    LeaseSmallerOver,
    /// `QUEUED`, `NOT_OWNER` to an `EXTEND` or `ADOPT`, nil to a `SETNX`.
    No,
    /// `KEPT`, to a `YIELD`.
    Kept,
    /// `YIELDED` or `NOT_OWNER`, to a `YIELD`.
    Yielded,
    /// Push: the lock was handed over, as a claim.
    Granted,
    /// Push: the lock was handed over, as a claim that is proven until its key expires.
    Proven,
    /// [`Proven`](Self::Proven), if the proof has ended before the push arrives.
    ProvenOver,
    /// Push: a smaller token waits.
    Contended,
    /// Push: this token waits, which holds the lock by other nodes.
    Wanted(u8),
}

impl Reply {
    /// Replies in the order of their codes, which begin at 1. The codes of replies that name a token follow.
    const ALL: [Self; 9] = [
        Self::Lease,
        Self::LeaseOver,
        Self::LeaseSmaller,
        Self::LeaseSmallerOver,
        Self::No,
        Self::Kept,
        Self::Yielded,
        Self::Granted,
        Self::Contended,
    ];
    const WANTED: u8 = 10;
    const PROVEN: u8 = 14;
    const PROVEN_OVER: u8 = 15;

    /// Converts the node's `reply` to `command`. Replies with the same effect on the client become one.
    pub(crate) const fn to(command: Command, reply: node::Reply) -> Option<Self> {
        match (command, reply) {
            (Command::Release, _) => None,
            (Command::Yield | Command::YieldTo(_), node::Reply::Kept) => Some(Self::Kept),
            (Command::Yield | Command::YieldTo(_), _) => Some(Self::Yielded),
            (_, node::Reply::Granted { smaller: true }) => Some(Self::LeaseSmaller),
            (_, node::Reply::Granted { .. } | node::Reply::Extended { .. }) => Some(Self::Lease),
            _ => Some(Self::No),
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code.checked_sub(Self::WANTED) {
            Some(_) if code == Self::PROVEN => Some(Self::Proven),
            Some(_) if code == Self::PROVEN_OVER => Some(Self::ProvenOver),
            Some(by) => Some(Self::Wanted(by)),
            None => Self::ALL.get(usize::from(code.checked_sub(1)?)).copied(),
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Lease => 1,
            Self::LeaseOver => 2,
            Self::LeaseSmaller => 3,
            Self::LeaseSmallerOver => 4,
            Self::No => 5,
            Self::Kept => 6,
            Self::Yielded => 7,
            Self::Granted => 8,
            Self::Contended => 9,
            Self::Wanted(by) => Self::WANTED + by,
            Self::Proven => Self::PROVEN,
            Self::ProvenOver => Self::PROVEN_OVER,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lease => "a lease",
            Self::LeaseOver => "a lease that is over",
            Self::LeaseSmaller => "a lease while a smaller token waits",
            Self::LeaseSmallerOver => "a lease that is over while a smaller token waits",
            Self::No => "QUEUED or NOT_OWNER",
            Self::Kept => "KEPT",
            Self::Yielded => "YIELDED or NOT_OWNER to its YIELD",
            Self::Granted => "push granted",
            Self::Proven => "push granted, proven",
            Self::ProvenOver => "push granted, proven before",
            Self::Contended => "push contended",
            Self::Wanted(0) => "push wanted by t0",
            Self::Wanted(1) => "push wanted by t1",
            Self::Wanted(2) => "push wanted by t2",
            Self::Wanted(_) => "push wanted by t3",
        }
    }

    pub(crate) fn is_push(self) -> bool {
        self.is_claim() || matches!(self, Self::Contended | Self::Wanted(_))
    }

    pub(crate) fn is_claim(self) -> bool {
        matches!(self, Self::Granted | Self::Proven | Self::ProvenOver)
    }

    pub(crate) fn answers_yield(self) -> bool {
        matches!(self, Self::Kept | Self::Yielded)
    }

    /// Returns the reply as it arrives after the key has expired.
    pub(crate) fn expired(self) -> Self {
        match self {
            Self::Lease => Self::LeaseOver,
            Self::LeaseSmaller => Self::LeaseSmallerOver,
            Self::Proven => Self::ProvenOver,
            other => other,
        }
    }
}
