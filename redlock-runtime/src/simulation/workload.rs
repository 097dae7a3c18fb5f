//! Workload of the programs that use the locks.

use super::profile::Profile;
use super::tree;
use crate::lock::Mode;
use crate::protocol::hold_options::HoldOptions;
use crate::request::Wait;
use fastrand::Rng;
use std::ops::Range;
use std::time::Duration;

/// One use of a lock.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub(super) struct Call {
    pub(super) key: usize,
    /// Other key or place, if the call wants two.
    pub(super) also: Option<usize>,
    pub(super) ttl: Duration,
    pub(super) wait: Wait,
    /// Time before the call.
    pub(super) pause: Duration,
    /// Time after which the acquisition is dropped.
    pub(super) patience: Option<Duration>,
    pub(super) body: Duration,
    /// `true` if the body is stopped when the lease ends.
    pub(super) is_held: bool,
    /// `true` if the body extends the lease halfway.
    pub(super) extends: bool,
    pub(super) is_fenced: bool,
    pub(super) mode: Mode,
    /// Largest number of permit holders, if the call wants a permit.
    pub(super) permits: Option<u32>,
    /// `true` if the body downgrades in its middle.
    pub(super) is_lowered: bool,
    pub(super) hold: HoldOptions,
    /// Time for which the process retains the lock afterwards.
    pub(super) linger: Duration,
    pub(super) end: End,
}

/// End of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Drop,
    Release,
    Panic,
    /// Detaches the lock. Several copies of its text may be attached.
    Detach {
        copies: usize,
    },
}

/// Work of one task of one manager.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) calls: Vec<Call>,
    /// Time after its calls in which the task attaches detached locks.
    pub(super) shift: Duration,
    /// Time at which the task is dropped.
    pub(super) aborted_after: Option<Duration>,
}

/// Another program without queues, which holds a lock for a while.
#[derive(Clone, Debug)]
pub(super) struct Foreign {
    pub(super) key: usize,
    pub(super) at: Duration,
    pub(super) ttl: Duration,
    pub(super) body: Duration,
    /// `true` if it deletes its key at the end instead of letting it expire.
    pub(super) deletes: bool,
}

impl Call {
    /// Returns the longest hold, independent of the body. Without renewal, the hold ends with its first lease.
    pub(super) fn longest_hold(&self) -> Option<Duration> {
        let lease = (!self.hold.renew && !self.extends).then_some(self.ttl);
        self.hold.max_hold.into_iter().chain(lease).min()
    }

    fn draw(random: &mut Rng, profile: &Profile, keys: usize) -> Self {
        let (sometimes, millis) = (Sometimes::of(random, profile), Duration::from_millis);
        let waits = &profile.waits;
        let ttl = millis(profile.ttls[random.usize(0..profile.ttls.len())]);
        let linger =
            if profile.lingers.is_empty() { 0 } else { profile.lingers[random.usize(0..profile.lingers.len())] };
        Self {
            key: random.usize(0..keys),
            also: None,
            ttl,
            wait: waits[random.usize(0..waits.len())],
            pause: millis(random.u64(profile.pauses.clone())),
            patience: sometimes.cancels.then(|| millis(random.u64(0..400))),
            body: millis(random.u64(profile.bodies.clone())),
            is_held: sometimes.holds,
            extends: sometimes.extends,
            is_fenced: random.u8(0..100) < profile.fenced,
            mode: Mode::Exclusive,
            permits: None,
            is_lowered: false,
            hold: terms(random, profile, ttl, sometimes.end),
            linger: millis(linger),
            end: sometimes.end,
        }
        .shared_sometimes(random, profile.sharing)
        .in_the_tree_sometimes(random, profile.tree)
        .both_sometimes(random, profile.sets)
        .permitted_sometimes(random, &profile.permits)
    }

    /// Changes the key to a place in the tree, with the given chance.
    fn in_the_tree_sometimes(self, random: &mut Rng, percent: u8) -> Self {
        if percent == 0 || random.u8(0..100) >= percent {
            return self;
        }
        Self { key: tree::place(random), ..self }
    }

    /// Adds the other key or another place, with the given chance. Such a call always waits.
    fn both_sometimes(self, random: &mut Rng, percent: u8) -> Self {
        if percent == 0 || random.u8(0..100) >= percent {
            return self;
        }
        let also = if tree::path(self.key).is_some() { tree::place(random) } else { 1 - self.key };
        let wait = if self.wait == Wait::None { Wait::Forever } else { self.wait };
        Self { also: Some(also).filter(|also| *also != self.key), wait, ..self }
    }

    /// Changes the call to a permit, with a limit from `permits`.
    fn permitted_sometimes(self, random: &mut Rng, permits: &[u32]) -> Self {
        let drawn = if permits.is_empty() { 0 } else { permits[random.usize(0..permits.len())] };
        if drawn == 0 {
            return self;
        }
        Self { mode: Mode::Permit, permits: Some(drawn), also: None, is_fenced: false, is_lowered: false, ..self }
    }

    /// Returns the keys that the call wants.
    pub(super) fn keys(&self) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(self.key).chain(self.also)
    }

    /// Makes the call shared, with the given chance.
    fn shared_sometimes(self, random: &mut Rng, percent: u8) -> Self {
        match if percent == 0 { 100 } else { random.u8(0..100) } {
            drawn if drawn < percent => Self { mode: Mode::Shared, is_fenced: false, ..self },
            drawn => Self { is_lowered: drawn < percent + percent / 2, ..self },
        }
    }
}

/// Draws renewal, `max_hold` and `min_hold` of a call.
fn terms(random: &mut Rng, profile: &Profile, ttl: Duration, end: End) -> HoldOptions {
    let mut sometimes = |percent: u8, range: Range<u64>| {
        let is_so = random.u8(0..100) < percent;
        is_so.then(|| Duration::from_millis(random.u64(range)))
    };
    let (renew, longest) = (sometimes(profile.renewals, 0..1).is_some(), sometimes(profile.max_holds, 20..600));
    // Without renewal, the limit can only be shorter than the lease.
    let max_hold = longest.map(|longest| if renew { longest } else { longest.min(ttl) });
    // The process that attaches a detached lock does not know its `min_hold`.
    let min_hold = sometimes(profile.min_holds, 1..800).filter(|_| !matches!(end, End::Detach { .. }));
    HoldOptions { renew, max_hold, min_hold, window_rest: None }
}

/// Random options of a call.
struct Sometimes {
    cancels: bool,
    holds: bool,
    extends: bool,
    end: End,
}

impl Sometimes {
    fn of(random: &mut Rng, profile: &Profile) -> Self {
        let mut percent = |percent: u8| random.u8(0..100) < percent;
        let end = match (percent(profile.panics), percent(30)) {
            (true, _) => End::Panic,
            (false, true) => End::Release,
            (false, false) => End::Drop,
        };
        let detaches = profile.detaches > 0 && percent(profile.detaches);
        let drawn =
            Self { cancels: percent(profile.cancels), holds: percent(70), extends: percent(profile.extends), end };
        if detaches { Self { end: End::Detach { copies: random.usize(1..=3) }, ..drawn } } else { drawn }
    }
}

impl Work {
    pub(super) fn draw(random: &mut Rng, profile: &Profile, keys: usize) -> Self {
        let calls = (0..random.u32(profile.calls.clone())).map(|_| Call::draw(random, profile, keys)).collect();
        let is_aborted = random.u8(0..100) < profile.aborts;
        let shift = if profile.detaches > 0 { random.u64(0..1000) } else { 0 };
        let shift = Duration::from_millis(shift);
        Self { calls, shift, aborted_after: is_aborted.then(|| Duration::from_millis(random.u64(0..2000))) }
    }
}

impl Foreign {
    pub(super) fn draw(random: &mut Rng, keys: usize, tree: u8) -> Self {
        let millis = |random: &mut Rng, most| Duration::from_millis(random.u64(0..most));
        Self {
            key: if tree > 0 { tree::place(random) } else { random.usize(0..keys) },
            at: millis(random, 500),
            ttl: Duration::from_millis(200) + millis(random, 1000),
            body: millis(random, 600),
            deletes: random.bool(),
        }
    }
}
