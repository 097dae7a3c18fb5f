//! Lease arithmetic: until when a node's answer proves that the lock is ours.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation. Where that text subtracts the elapsed time and
//! the drift once for the whole round, each node has its own lease end here, so that a late or lost answer changes
//! only what that node proves.

use crate::protocol::quorum::Quorum;
use crate::time::clock::Instant;
use std::time::Duration;

/// Redis expires keys to the millisecond, on both sides of the measurement.
const EXPIRY_PRECISION: Duration = Duration::from_millis(2);

/// The lifetime of a claim, for a `ttl` that is not shorter: well above the worst round trip.
pub(crate) const CLAIM: Duration = Duration::from_secs(1);

/// The longest `ttl`: what is abandoned for longer than this needs a person, not a lease.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a waiting token stands in the queue of a node without being heard of. Nothing else removes those of dead
/// processes.
pub(crate) const QUEUE_EXPIRY: Duration = Duration::from_secs(30);

/// How long a fencing counter that nothing is drawn from stays at a node: longer than [`MAX_TTL`], or a node could forget
/// the number of a lease that still runs.
pub(crate) const COUNTER_EXPIRY: Duration = Duration::from_secs(31 * 24 * 3600);

/// `time` in whole milliseconds, in which servers count: never less, because an expiry of nothing deletes the key.
pub(crate) const fn whole_millis(time: Duration) -> Duration {
    match time.subsec_nanos() % 1_000_000 {
        0 => time,
        over => time.saturating_add(Duration::from_nanos(1_000_000 - over as u64)),
    }
}

/// The claim that a node gives on the way from one holder to the next.
pub(crate) fn claim(ttl: Duration) -> Duration {
    ttl.min(CLAIM)
}

/// How far a server's clock may run ahead of ours during a lease of length `ttl`.
pub(crate) fn drift(ttl: Duration, factor: f64) -> Duration {
    ttl.mul_f64(factor) + EXPIRY_PRECISION
}

/// The time for which a lease is provable when the answer costs nothing, counted from the send: the server starts
/// its clock after that.
pub(crate) fn provable(ttl: Duration, drift_factor: f64) -> Duration {
    ttl.saturating_sub(drift(ttl, drift_factor))
}

/// A lock with less validity than this left is not worth entering the body for.
pub(crate) fn least_useful(ttl: Duration) -> Duration {
    ttl / 20
}

/// How long to wait for a node when the user set no `node_timeout`: long enough for a healthy network, short enough
/// that a dead majority is noticed long before a lease runs out.
pub(crate) fn node_timeout(ttl: Duration) -> Duration {
    (ttl / 50).clamp(Duration::from_millis(10), Duration::from_millis(50))
}

/// The moment until which enough nodes provably hold the lock for us: the q-th largest of the lease `ends` that are
/// known.
pub(crate) fn valid_until(ends: &(impl Iterator<Item = Instant> + Clone), quorum: Quorum) -> Option<Instant> {
    let reached = |end: Instant| ends.clone().filter(|other| *other >= end).count() >= quorum.needed;
    ends.clone().filter(|end| reached(*end)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn whole_milliseconds_are_never_less() {
        for (nanos, millis) in [(0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (2_500_000_000, 2500)] {
            assert_eq!(whole_millis(Duration::from_nanos(nanos)), Duration::from_millis(millis), "{nanos}");
        }
        assert_eq!(whole_millis(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn validity_is_the_qth_largest_lease_end() {
        let table: [(&[Option<u64>], Option<u64>); 9] = [
            (&[None], None),
            (&[Some(5)], Some(5)),
            (&[Some(5), None], None),
            (&[Some(5), Some(7)], Some(5)),
            (&[Some(9), None, Some(7)], Some(7)),
            (&[Some(9), Some(8), Some(7)], Some(8)),
            (&[Some(4), Some(4), Some(4)], Some(4)),
            (&[Some(1), Some(5), Some(3), Some(4), Some(2)], Some(3)),
            (&[Some(1), Some(5), None, None, None], None),
        ];
        for (ends, expected) in table {
            let known = ends.iter().flatten().copied().map(at);
            assert_eq!(valid_until(&known, Quorum::of(ends.len(), 0)), expected.map(at), "{ends:?}");
        }
        let ends = [1, 5, 3, 4, 2].map(at);
        assert_eq!(valid_until(&ends.into_iter(), Quorum::of(5, 2)), Some(at(2)), "four of five");
    }

    #[test]
    fn a_ttl_below_the_drift_proves_nothing() {
        // A peer wraps around to 1.8e19 milliseconds here.
        assert_eq!(provable(Duration::from_millis(1), 0.01), Duration::ZERO);
        assert_eq!(provable(Duration::from_secs(1), 0.01), Duration::from_millis(988));
    }

    #[test]
    fn node_timeouts_follow_the_ttl_within_bounds() {
        let table = [(100, 10), (500, 10), (1000, 20), (2500, 50), (30_000, 50)];
        for (ttl, expected) in table {
            assert_eq!(node_timeout(Duration::from_millis(ttl)), Duration::from_millis(expected));
        }
    }
}
