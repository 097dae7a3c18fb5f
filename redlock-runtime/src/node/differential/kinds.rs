//! Names for the results of a step, so that a test can report the kinds that occurred.

use crate::lock::OwnerToken;
use crate::protocol::command::{Number, Reply, Verb};

/// Returns the kind of a reply.
pub(super) fn kind(reply: &Reply) -> &'static str {
    match reply {
        Reply::Granted { smaller: false, .. } => "granted",
        Reply::Granted { smaller: true, .. } => "granted before a smaller one",
        Reply::Entered { others, .. } if others.is_empty() => "entered",
        Reply::Entered { .. } => "entered beside others",
        Reply::Taken => "held",
        Reply::Queued { rank: 0, .. } => "first in the queue",
        Reply::Queued { .. } => "queued",
        Reply::Extended { waiters: 0, .. } => "extended",
        Reply::Extended { .. } => "extended, others wait",
        Reply::Found { .. } => panic!("no node here abstains"),
        Reply::Kept => "kept",
        Reply::Yielded { .. } => "yielded",
        Reply::Released => "released",
        Reply::Unfinished { .. } => "unfinished",
        Reply::Revoked { is_told: false, .. } => "broken",
        Reply::Revoked { is_told: true, .. } => "broken, and told",
        Reply::Raised => "a register is raised",
        Reply::NotOwner => "not owner",
    }
}

/// Returns the result of a token that takes the place of another one.
pub(super) fn adoption(
    verb: Verb,
    token: OwnerToken,
    from: Option<OwnerToken>,
    owner: Option<OwnerToken>,
) -> Option<&'static str> {
    let found = match owner {
        Some(owner) if owner == token => ["it was adopted before", "it was broken before"],
        Some(owner) if Some(owner) == from => ["it is adopted", "it is broken"],
        Some(_) => ["another has it", "another has what is to be broken"],
        None => ["nobody has it", "nobody has what is to be broken"],
    };
    match verb {
        Verb::Adopt { .. } => Some(found[0]),
        Verb::Revoke => Some(found[1]),
        _ => None,
    }
}

/// Returns the result of a command for a shared lock, which `owner` held exclusively before.
pub(super) fn sharing(verb: Verb, reply: &Reply, owner: Option<OwnerToken>) -> Option<&'static str> {
    match (verb, reply) {
        (Verb::SetNx { .. }, Reply::Granted { .. }) => Some("shared at once"),
        (Verb::SetNx { .. }, _) => Some("not shared"),
        (Verb::Acquire { .. }, Reply::Granted { .. }) => Some("shared"),
        (Verb::Acquire { .. }, _) => Some("waits to share"),
        (Verb::Extend { .. }, Reply::Extended { .. }) if owner.is_some() => Some("lowered"),
        (Verb::Extend { .. }, Reply::Extended { .. }) => Some("a share goes on"),
        (Verb::Adopt { .. }, Reply::Extended { .. }) => Some("a share is adopted"),
        (Verb::Yield { .. }, Reply::Yielded { .. }) => Some("a share is yielded"),
        (Verb::Yield { .. }, Reply::Kept) => Some("a share is kept"),
        (Verb::Release { .. }, Reply::Released) => Some("a share is released"),
        (Verb::Revoke, Reply::Revoked { .. }) => Some("a share is broken"),
        _ => None,
    }
}

/// Returns the result of a request for several keys.
pub(super) fn of_several(verb: Verb, reply: &Reply) -> Option<&'static str> {
    match (verb, reply) {
        (Verb::SetNx { .. }, Reply::Granted { .. }) => Some("several at once"),
        (Verb::SetNx { .. }, _) => Some("not several at once"),
        (Verb::Acquire { .. }, Reply::Granted { smaller: false, .. }) => Some("several"),
        (Verb::Acquire { .. }, Reply::Granted { smaller: true, .. }) => Some("several before a smaller one"),
        (Verb::Acquire { .. }, _) => Some("waits for several"),
        (Verb::Adopt { .. }, Reply::Extended { .. }) => Some("several are adopted"),
        (Verb::Adopt { .. }, _) => Some("several are not adopted"),
        (_, Reply::Extended { waiters: 0, .. }) => Some("several go on"),
        (_, Reply::Extended { .. }) => Some("several go on, others wait"),
        (Verb::Extend { .. }, _) => Some("several do not go on"),
        (Verb::Yield { .. }, Reply::Yielded { .. }) => Some("several are yielded"),
        (Verb::Yield { .. }, Reply::Kept) => Some("several are kept"),
        (Verb::Release { .. }, Reply::Released) => Some("several are released"),
        (Verb::Release { .. }, _) => Some("several are left"),
        _ => None,
    }
}

/// Returns the result of a holder that asks for a vote.
pub(super) const fn hold(verb: Verb, reply: &Reply) -> Option<&'static str> {
    match (verb, reply) {
        (Verb::Acquire { holds: true, .. }, Reply::Granted { .. }) => Some("granted to a holder"),
        (Verb::Acquire { holds: true, .. }, Reply::Queued { .. }) => Some("a holder is queued"),
        _ => None,
    }
}

/// Returns the result of a yield that names a larger token.
pub(super) const fn naming(verb: Verb, reply: &Reply) -> Option<&'static str> {
    match (verb, reply) {
        (Verb::Yield { .. }, Reply::Yielded { .. }) => Some("yielded, and a larger one was named"),
        (Verb::Yield { .. }, Reply::Kept) => Some("kept, and a larger one was named"),
        _ => None,
    }
}

/// Returns the result of a ballot for several keys.
pub(super) const fn numbering_several(reply: &Reply) -> Option<&'static str> {
    let (Reply::Granted { number, .. } | Reply::Extended { number, .. }) = reply else { return None };
    match number {
        Some(Number::Accepted(_)) => Some("accepted a ballot for several"),
        Some(Number::Refused { .. }) => Some("refused a ballot for several"),
        None => Some("said nothing of a ballot for several"),
    }
}

/// Returns the result of a ballot of a token that now shares a lock it held exclusively.
pub(super) const fn numbering_lowered(reply: &Reply) -> Option<&'static str> {
    let (Reply::Granted { number, .. } | Reply::Extended { number, .. }) = reply else { return None };
    match number {
        Some(Number::Accepted(_)) => Some("accepted a ballot for a share"),
        Some(Number::Refused { .. }) => Some("refused a ballot for a share"),
        None => Some("said nothing of a ballot for a share"),
    }
}

/// Returns the result of the ballot of a fenced command.
pub(super) const fn numbering(reply: &Reply) -> Option<&'static str> {
    let (Reply::Granted { number, .. } | Reply::Extended { number, .. }) = reply else { return None };
    match number {
        Some(Number::Accepted(_)) => Some("accepted a ballot"),
        Some(Number::Refused { .. }) => Some("refused a ballot"),
        None => Some("said nothing of a ballot"),
    }
}
