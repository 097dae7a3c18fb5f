//! Lease arithmetic: the time until which a node's answer proves that the token owns the lock.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation. That text subtracts the elapsed time and the drift
//! once for the whole round. Here each node has its own lease end, so that a late or lost answer changes only the proof
//! of its node.

use crate::protocol::quorum::Quorum;
use crate::protocol::timing::{CLAIM, EXPIRY_PRECISION, LEAST_USEFUL_PER_TTL};
use crate::time::clock::Instant;
use std::time::Duration;

/// Rounds `time` up to whole milliseconds, the unit of servers. It never rounds down, because an expiry of zero deletes
/// the key.
pub(crate) const fn whole_millis(time: Duration) -> Duration {
    match time.subsec_nanos() % 1_000_000 {
        0 => time,
        over => time.saturating_add(Duration::from_nanos(1_000_000 - over as u64)),
    }
}

/// Returns the lifetime of the claim that a node sets between one holder and the next.
pub(crate) fn claim(ttl: Duration) -> Duration {
    ttl.min(CLAIM)
}

/// Returns the time by which a server's clock may run ahead of ours during a lease of length `ttl`.
pub(crate) fn drift(ttl: Duration, factor: f64) -> Duration {
    ttl.mul_f64(factor) + EXPIRY_PRECISION
}

/// Returns the provable duration of a lease, counted from the moment of sending. The server starts its clock after that
/// moment.
pub(crate) fn provable(ttl: Duration, drift_factor: f64) -> Duration {
    ttl.saturating_sub(drift(ttl, drift_factor))
}

/// Returns the shortest `ttl`, in whole milliseconds, with which a lease is provable for `time`.
pub(crate) fn min_ttl_to_prove(time: Duration, drift_factor: f64) -> Duration {
    let (drift, one) = (EXPIRY_PRECISION, Duration::from_millis(1));
    let ttl = whole_millis((time + drift).div_f64(1.0 - drift_factor));
    // The division may have rounded down.
    if provable(ttl, drift_factor) < time { ttl + one } else { ttl }
}

/// Returns the shortest rest of a lease of length `ttl` with which a body may begin.
pub(crate) fn least_useful(ttl: Duration) -> Duration {
    ttl / LEAST_USEFUL_PER_TTL
}

/// Returns the time until which enough nodes provably hold the lock for us: the q-th largest of the known lease `ends`.
pub(crate) fn valid_until(ends: &(impl Iterator<Item = Instant> + Clone), quorum: Quorum) -> Option<Instant> {
    let reached = |end: Instant| ends.clone().filter(|other| *other >= end).count() >= quorum.needed;
    ends.clone().filter(|end| reached(*end)).max()
}

/// Returns the time from which enough nodes are free, if no lease is renewed: the q-th smallest of the known lease
/// `ends` of other tokens.
pub(crate) fn free_from(ends: &(impl Iterator<Item = Instant> + Clone), quorum: Quorum) -> Option<Instant> {
    let reached = |end: Instant| ends.clone().filter(|other| *other <= end).count() >= quorum.needed;
    ends.clone().filter(|end| reached(*end)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn ttl_for_a_provable_time_is_minimal() {
        for factor in [0.0, 0.01, 0.1] {
            for micros in (0..100_000).step_by(37).chain([29_697_999_999, 3_600_000_000]) {
                let time = Duration::from_micros(micros);
                let ttl = min_ttl_to_prove(time, factor);
                assert_eq!(ttl, whole_millis(ttl));
                assert!(provable(ttl, factor) >= time, "{ttl:?} proves less than {time:?}");
                let less = ttl.saturating_sub(Duration::from_millis(2));
                assert!(micros == 0 || provable(less, factor) < time, "{ttl:?} is too long for {time:?}");
            }
        }
    }

    #[test]
    fn rounding_to_whole_milliseconds_never_shortens() {
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
    fn lock_is_free_when_the_qth_lease_of_other_holders_ends() {
        let table: [(&[Option<u64>], Option<u64>); 7] = [
            (&[None], None),
            (&[Some(5)], Some(5)),
            (&[Some(5), None, None], None),
            (&[Some(9), None, Some(7)], Some(9)),
            (&[Some(9), Some(8), Some(7)], Some(8)),
            (&[Some(4), Some(4), Some(4)], Some(4)),
            (&[Some(1), Some(5), Some(3), Some(4), Some(2)], Some(3)),
        ];
        for (ends, expected) in table {
            let known = ends.iter().flatten().copied().map(at);
            assert_eq!(free_from(&known, Quorum::of(ends.len(), 0)), expected.map(at), "{ends:?}");
        }
        let ends = [1, 5, 3, 4, 2].map(at);
        assert_eq!(free_from(&ends.into_iter(), Quorum::of(5, 2)), Some(at(4)), "four of five");
    }

    #[test]
    fn ttl_below_the_drift_proves_nothing() {
        // A peer wraps around to 1.8e19 milliseconds here.
        assert_eq!(provable(Duration::from_millis(1), 0.01), Duration::ZERO);
        assert_eq!(provable(Duration::from_secs(1), 0.01), Duration::from_millis(988));
    }
}
