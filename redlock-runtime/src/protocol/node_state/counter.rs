//! Fencing counters: one for each lock, and the largest number of the node.

use crate::lock::OwnerToken;
use crate::protocol::command::Fence;
use crate::protocol::timing::COUNTER_EXPIRY;
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Counters {
    of: HashMap<Arc<str>, Counter>,
    largest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    number: u64,
    by: OwnerToken,
    expires: Instant,
}

impl Counters {
    /// The number of `token`, which owns the lock; `None` when it gets none.
    pub(super) fn apply(&mut self, fence: Fence, key: &str, token: OwnerToken, now: Instant) -> Option<u64> {
        let counter = self.of.get(key).filter(|counter| now < counter.expires);
        // One that has expired starts again above every number that the node has given to anybody.
        let (number, by) = counter.map_or((self.largest, None), |counter| (counter.number, Some(counter.by)));
        let is_ours = by == Some(token);
        let number = match fence {
            Fence::Draw { .. } if is_ours => number,
            Fence::Draw { above } => number.max(above) + 1,
            Fence::Raise { to } if is_ours || number < to => number.max(to),
            Fence::Raise { .. } => return None,
        };
        self.of.insert(key.into(), Counter { number, by: token, expires: now.after(COUNTER_EXPIRY) });
        // Also after a raise. Otherwise the counter of this lock, once expired, would start below it.
        self.largest = self.largest.max(number);
        Some(number)
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// Removes what has expired.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.of.retain(|_, counter| now < counter.expires);
    }
}

/// What only an observer can see of the counters, and do to them.
#[cfg(test)]
impl Counters {
    /// Those of a node where `key` has a counter like this, or none, and `largest` is the largest number.
    pub(super) fn at(key: &str, counter: Option<(u64, OwnerToken)>, expires: Instant, largest: u64) -> Self {
        let of = counter.map(|(number, by)| (key.into(), Counter { number, by, expires }));
        Self { of: of.into_iter().collect(), largest }
    }

    /// The number of `key` and whom it was drawn by, and the largest number.
    pub(super) fn look(&self, key: &str, now: Instant) -> (Option<(u64, OwnerToken)>, u64) {
        let counter = self.of.get(key).filter(|counter| now < counter.expires);
        (counter.map(|counter| (counter.number, counter.by)), self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;
    use Fence::{Draw, Raise};
    use std::time::Duration;

    #[test]
    fn numbers_are_drawn_once_and_raised_and_never_fall() {
        let [a, b] = [0, 1].map(|counter| OwnerToken::new(ManagerId::random(), TokenTime::new(1, counter)));
        let (start, day) = (Instant::from_origin(Duration::ZERO), Duration::from_secs(24 * 3600));
        let mut counters = Counters::default();
        let table = [
            (0, "x", a, Draw { above: 0 }, Some(1)),
            (1, "x", a, Draw { above: 0 }, Some(1)),
            (1, "x", a, Draw { above: 9 }, Some(1)),
            (1, "x", b, Draw { above: 0 }, Some(2)),
            (1, "x", b, Raise { to: 7 }, Some(7)),
            (1, "x", b, Raise { to: 5 }, Some(7)),
            (1, "x", a, Raise { to: 7 }, None),
            (1, "x", a, Raise { to: 8 }, Some(8)),
            (1, "x", b, Draw { above: 20 }, Some(21)),
            // Another lock starts above all of them, so that one that has expired does.
            (2, "y", a, Draw { above: 0 }, Some(22)),
            (31, "x", b, Draw { above: 0 }, Some(21)),
            (62, "x", b, Draw { above: 0 }, Some(23)),
            (62, "y", a, Raise { to: 23 }, None),
            (62, "y", a, Raise { to: 40 }, Some(40)),
            (62, "z", a, Draw { above: 0 }, Some(41)),
        ];
        for (days, key, token, fence, expected) in table {
            let now = start.after(day * days);
            assert_eq!(counters.apply(fence, key, token, now), expected, "{fence:?} of {key} on day {days}");
        }
        let left = [92, 93].map(|days| {
            counters.sweep(start.after(day * days));
            counters.len()
        });
        assert_eq!(left, [3, 0]);
    }
}
