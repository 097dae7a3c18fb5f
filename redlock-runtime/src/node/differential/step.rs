//! Random steps for both nodes.

use super::{MANAGERS, TOKENS, TURNSTILE};
use crate::lock::Mode;
use crate::lock::class::Class;
use crate::protocol::command::Verb;
use crate::time::ballot_clock::Ballot;
use fastrand::Rng;
use std::time::Duration;

pub(super) const HOUR: Duration = Duration::from_secs(3600);
/// The lease of a holder that dies, and leaves its queue behind.
pub(super) const MOMENT: Duration = Duration::from_secs(10);
/// Two of these pauses outlast a queue, one does not.
pub(super) const WHILE: Duration = Duration::from_secs(20);
/// Longer than any expiry: a remaining key has no expiry.
const AGES: Duration = Duration::from_secs(20 * 24 * 3600);

/// Some of the keys, and the wanted class of each.
pub(super) type Wish = Vec<(usize, Class)>;
/// Source of the choices.
pub(super) trait Draw {
    /// Returns a number below `end`.
    fn below(&mut self, end: u32) -> u32;

    fn index(&mut self, end: usize) -> usize {
        self.below(u32::try_from(end).unwrap()) as usize
    }

    fn choose(&mut self) -> bool {
        self.below(2) == 1
    }
}

impl Draw for Rng {
    fn below(&mut self, end: u32) -> u32 {
        self.u32(0..end)
    }
}

/// Input of a fuzzer: a byte for each choice, and the first choice after its end.
#[cfg(any(test, fuzzing))]
impl Draw for &[u8] {
    fn below(&mut self, end: u32) -> u32 {
        self.split_off_first().map_or(0, |byte| u32::from(*byte) % end)
    }
}

/// A command for the nodes, or an event.
#[derive(Debug)]
pub(super) enum Step {
    Ask {
        verb: Verb,
        mode: Mode,
        fence: Option<Ballot>,
        key: usize,
        token: usize,
        /// Token of the previous holder for an adoption or a break, or the named token of a yield.
        other: Option<usize>,
    },
    /// A command for several keys.
    AskSeveral {
        verb: Verb,
        fence: Option<Ballot>,
        wish: Wish,
        token: usize,
        other: Option<usize>,
    },
    /// Every token extends every lock, all of them at once.
    ExtendAll {
        ttl: Duration,
    },
    /// A manager starts or stops listening.
    Turn {
        manager: usize,
    },
    Pass(Duration),
}

impl Step {
    /// Draws a step. `latest` are the key and the token of the previous step, which the next one often uses again. If `shared`, tokens also
    /// share locks. If `several`, they also want several keys.
    pub(super) fn random(random: &mut impl Draw, latest: &mut (usize, usize), shared: bool, several: bool) -> Self {
        // Halves and quarters, so that no lease ends at the moment of a command.
        let ttl = if random.choose() { MOMENT } else { HOUR * random.below(4) + HOUR / 2 };
        let claim = if random.choose() { MOMENT } else { HOUR * random.below(2) + HOUR / 4 };
        let verb = match random.below(43) {
            0..=4 => Verb::SetNx { ttl },
            5..=13 => Verb::Acquire { ttl, claim, holds: random.below(3) == 0 },
            14..=17 => Verb::Extend { ttl },
            18..=23 => Verb::Yield { claim },
            24..=27 => Verb::Release { claim },
            28..=30 => return Self::Pass(WHILE),
            31 => return Self::Pass(HOUR * (1 + random.below(3))),
            32 => return Self::Pass(AGES),
            33..=36 => Verb::Adopt { ttl },
            37..=38 => Verb::Revoke,
            39 => Verb::Enter { ttl, turn: claim },
            // Not shorter than any earlier lease, like renewals: a late one would leave a longer lease unchanged.
            40..=41 => return Self::ExtendAll { ttl: HOUR * 4 },
            // Seldom: few locks have an empty register after it.
            _ => match random.index(MANAGERS + 1) {
                MANAGERS => Verb::Raise { number: u64::from(1 + random.below(60)) },
                manager => return Self::Turn { manager },
            },
        };
        if random.choose() {
            *latest = (random.index(TURNSTILE + 1), random.index(TOKENS));
        }
        let (key, token) = *latest;
        let (key, verb) = match verb {
            // Only the first key has an admission lock that tokens can hold.
            Verb::Enter { .. } if !shared => (key, Verb::Revoke),
            Verb::Enter { .. } => (0, verb),
            verb => (key, verb),
        };
        // Adoptions, breaks and entries always name another token, and most yields do.
        let names = matches!(verb, Verb::Adopt { .. } | Verb::Revoke | Verb::Enter { .. })
            || matches!(verb, Verb::Yield { .. }) && random.below(4) > 0;
        // Most tokens keep their mode, and some hold their locks exclusively before they share them.
        let mode = if shared && (token % 2 == 0) != (random.below(6) == 0) { Mode::Shared } else { Mode::Exclusive };
        // A admission lock is never shared.
        let mode = if key == TURNSTILE { Mode::Exclusive } else { mode };
        let has_permit = matches!(verb, Verb::Enter { .. }) || mode.is_shared() && key == 0 && random.choose();
        let mode = if has_permit { Mode::Permit } else { mode };
        // Permits have no number.
        let fence = fence(random).filter(|_| mode != Mode::Permit);
        let other = names.then(|| random.index(TOKENS));
        if several && !matches!(verb, Verb::Revoke | Verb::Enter { .. } | Verb::Raise { .. }) && random.below(3) > 0 {
            let wish = wish(random, token);
            return Self::AskSeveral { verb, fence, wish, token, other };
        }
        // A share with a number is never taken first.
        let fence = fence.filter(|_| mode == Mode::Exclusive || !matches!(verb, Verb::SetNx { .. }));
        Self::Ask { verb, mode, fence, key, token, other }
    }
}

/// Returns two keys or all of them. A token wants the same keys most of the time, and sometimes fewer.
fn wish(random: &mut impl Draw, token: usize) -> Wish {
    if random.below(5) == 0 { wish_of(random) } else { wish_of(&mut Rng::with_seed(token as u64 % 4)) }
}

fn wish_of(source: &mut impl Draw) -> Wish {
    // A admission lock is never wanted together with other keys.
    let left_out = source.index(TURNSTILE + 1);
    let keys = (0..TURNSTILE).filter(|key| *key != left_out);
    let class = |source: &mut _| match Draw::below(source, 6) {
        0..=1 => Class::Exclusive,
        2 => Class::Shared,
        3..=4 => Class::IntentExclusive,
        _ => Class::IntentShared,
    };
    keys.map(|key| (key, class(source))).collect()
}

fn fence(random: &mut impl Draw) -> Option<Ballot> {
    // Some only read, so that empty registers are read as well.
    random.choose().then(|| Ballot::known(u64::from(random.below(70).saturating_sub(10))))
}
