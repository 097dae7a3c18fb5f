//! Draws what happens next to both nodes.

use super::{KEYS, MANAGERS, TOKENS};
use crate::lock::Mode;
use crate::protocol::command::Verb;
use crate::time::ballot_clock::Ballot;
use fastrand::Rng;
use std::time::Duration;

pub(super) const HOUR: Duration = Duration::from_secs(3600);
/// The lease of a holder that dies, and leaves its queue behind.
pub(super) const MOMENT: Duration = Duration::from_secs(10);
/// Two of them outlast a queue, one does not.
pub(super) const WHILE: Duration = Duration::from_secs(20);
/// Longer than any expiry: what is still there does not expire.
const AGES: Duration = Duration::from_secs(20 * 24 * 3600);

/// What the nodes are asked, or what happens to them.
#[derive(Debug)]
pub(super) enum Step {
    Ask {
        verb: Verb,
        mode: Mode,
        fence: Option<Ballot>,
        key: usize,
        token: usize,
        /// Whose place it takes, if it adopts the lock or breaks it; or whom it names, if it yields.
        other: Option<usize>,
    },
    /// Every token extends every lock, all of them at once.
    ExtendAll {
        ttl: Duration,
    },
    /// A manager begins to listen, or stops.
    Turn {
        manager: usize,
    },
    Pass(Duration),
}

impl Step {
    /// `latest`: the key and the token of the step before, which often are those of the next one. `shared`: whether tokens share locks as well.
    pub(super) fn random(random: &mut Rng, latest: &mut (usize, usize), shared: bool) -> Self {
        // Halves and quarters, so that nothing ever ends at the very moment at which it is asked for.
        let ttl = if random.bool() { MOMENT } else { HOUR * random.u32(0..4) + HOUR / 2 };
        let claim = if random.bool() { MOMENT } else { HOUR * random.u32(0..2) + HOUR / 4 };
        let verb = match random.u32(0..43) {
            0..=4 => Verb::SetNx { ttl },
            5..=13 => Verb::Acquire { ttl, claim, holds: random.u8(0..3) == 0 },
            14..=17 => Verb::Extend { ttl },
            18..=23 => Verb::Yield { claim },
            24..=27 => Verb::Release { claim },
            28..=30 => return Self::Pass(WHILE),
            31 => return Self::Pass(HOUR * random.u32(1..4)),
            32 => return Self::Pass(AGES),
            33..=36 => Verb::Adopt { ttl },
            37..=38 => Verb::Revoke,
            39 => Verb::Enter { ttl, turn: claim },
            // No shorter than any lease before, as renewals are: a late one would leave a longer lease as it is.
            40..=41 => return Self::ExtendAll { ttl: HOUR * 4 },
            _ => return Self::Turn { manager: random.usize(0..MANAGERS) },
        };
        if random.bool() {
            *latest = (random.usize(0..KEYS.len()), random.usize(0..TOKENS));
        }
        let (key, token) = *latest;
        // Who adopts or revokes always names another one, and most of those who yield do.
        let (key, verb) = match verb {
            // Only the first key has a turnstile that tokens stand in.
            Verb::Enter { .. } if !shared => (key, Verb::Revoke),
            Verb::Enter { .. } => (0, verb),
            verb => (key, verb),
        };
        let names = matches!(verb, Verb::Adopt { .. } | Verb::Revoke | Verb::Enter { .. })
            || matches!(verb, Verb::Yield { .. }) && random.u8(0..4) > 0;
        // Most tokens stay what they are, and some have their locks alone before they share them.
        let mode = if shared && (token % 2 == 0) != (random.u8(0..6) == 0) { Mode::Shared } else { Mode::Exclusive };
        // Nobody shares a turnstile.
        let mode = if key == 3 { Mode::Exclusive } else { mode };
        let has_permit = matches!(verb, Verb::Enter { .. }) || mode.is_shared() && key == 0 && random.bool();
        let mode = if has_permit { Mode::Permit } else { mode };
        let fence = fence(random).filter(|_| mode == Mode::Exclusive);
        Self::Ask { verb, mode, fence, key, token, other: names.then(|| random.usize(0..TOKENS)) }
    }
}

fn fence(random: &mut Rng) -> Option<Ballot> {
    random.bool().then(|| Ballot::known(random.u64(0..60)))
}
