//! When to try again: the schedule of an acquisition that did not succeed at once.

use crate::options::Wait;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(80);
/// With less time than this left, another round is not worth its commands.
const LAST_MOMENT: Duration = Duration::from_millis(2);

/// A caller with a limit does not wait for servers that are gone for longer than this: waiting is for holders.
const LONGEST_SILENCE: Duration = Duration::from_secs(1);

/// Why a round did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Somebody else holds the lock.
    Contended,
    /// Too few nodes answered in time.
    Silent,
}

#[derive(Debug)]
pub(super) struct Retry {
    /// `None` waits for ever.
    limit: Option<Duration>,
    patience: Duration,
    /// How far the patience may grow when the nodes turn out to be slow rather than dead.
    most_patience: Duration,
    pause: Duration,
    /// When the first of the silent rounds ended that were the last ones.
    silent_since: Option<Duration>,
}

impl Retry {
    pub(super) fn new(wait: Wait, ttl: Duration, node_timeout: Duration) -> Self {
        let limit = match wait {
            Wait::None => Some(Duration::ZERO),
            Wait::For(limit) => Some(limit),
            Wait::Forever => None,
        };
        Self {
            limit,
            patience: node_timeout,
            most_patience: node_timeout.max(ttl / 10),
            pause: FIRST_PAUSE,
            silent_since: None,
        }
    }

    /// How long the next round may take.
    pub(super) fn patience(&self, elapsed: Duration) -> Duration {
        match self.limit.map(|limit| (limit, limit.saturating_sub(elapsed))) {
            // A caller who does not wait for holders still waits for answers.
            None | Some((Duration::ZERO, _)) => self.patience,
            // The sleep before took too long: the wait is over, and a whole patience beyond it is not granted.
            Some((_, Duration::ZERO)) => self.patience.min(LAST_MOMENT),
            Some((_, left)) => self.patience.min(left),
        }
    }

    /// Whether the end of the wait cuts a round with that `patience` short, so that its silence says nothing about the
    /// nodes.
    pub(super) fn is_cut(&self, patience: Duration) -> bool {
        patience < self.patience
    }

    /// How long to sleep before the next round; `None` when the wait is over. `random` is in `0.0..1.0`.
    ///
    /// There is always a round after the last sleep, and it ends within the wait.
    pub(super) fn pause(&mut self, outcome: Outcome, elapsed: Duration, random: f64) -> Option<Duration> {
        let silence = self.silence(outcome, elapsed);
        let pause = self.pause.mul_f64(0.5 + random);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let Some(limit) = self.limit else { return Some(pause) };
        let left = limit.saturating_sub(elapsed);
        (silence < LONGEST_SILENCE && left >= LAST_MOMENT).then(|| pause.min(left / 2))
    }

    /// For how long no round has heard enough nodes. The next one is given more time: they may be slow and not dead.
    fn silence(&mut self, outcome: Outcome, elapsed: Duration) -> Duration {
        if outcome == Outcome::Contended {
            self.silent_since = None;
            return Duration::ZERO;
        }
        self.patience = (self.patience * 2).min(self.most_patience);
        elapsed.saturating_sub(*self.silent_since.get_or_insert(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    const NODE_TIMEOUT: Duration = Duration::from_millis(50);

    fn retry(wait: Wait) -> Retry {
        Retry::new(wait, TTL, NODE_TIMEOUT)
    }

    #[test]
    fn no_wait_is_one_round() {
        let mut retry = retry(Wait::None);
        assert_eq!(retry.patience(Duration::ZERO), NODE_TIMEOUT);
        assert_eq!(retry.pause(Outcome::Contended, Duration::ZERO, 0.5), None);
    }

    #[test]
    fn the_last_sleep_is_followed_by_a_round_within_the_wait() {
        for random in [0.0, 0.5, 0.999] {
            let limit = Duration::from_secs(1);
            let mut retry = retry(Wait::For(limit));
            let (mut elapsed, mut rounds) = (Duration::ZERO, 0);
            while let Some(pause) = retry.pause(Outcome::Contended, elapsed, random) {
                elapsed += pause;
                rounds += 1;
                assert!(elapsed + retry.patience(elapsed) <= limit, "at {elapsed:?}");
            }
            assert!(limit < elapsed + LAST_MOMENT, "gives up at {elapsed:?}");
            assert!((8..60).contains(&rounds), "{rounds} rounds");
        }
    }

    #[test]
    fn a_sleep_that_took_too_long_does_not_prolong_the_wait() {
        let mut retry = retry(Wait::For(Duration::from_secs(1)));
        assert_eq!(retry.patience(Duration::ZERO), NODE_TIMEOUT);
        retry.pause(Outcome::Silent, Duration::from_millis(990), 0.5).unwrap();
        for late in [1000, 1001, 5000] {
            let patience = retry.patience(Duration::from_millis(late));
            assert!(patience <= LAST_MOMENT && retry.is_cut(patience), "{patience:?} at {late} ms");
        }
    }

    #[test]
    fn dead_servers_are_not_waited_for_like_a_holder() {
        let at = Duration::from_millis;
        let mut limited = retry(Wait::For(Duration::from_secs(10)));
        assert!(limited.pause(Outcome::Silent, at(50), 0.5).is_some());
        assert!(limited.pause(Outcome::Silent, at(900), 0.5).is_some());
        assert!(limited.pause(Outcome::Contended, at(1000), 0.5).is_some(), "somebody answered");
        assert!(limited.pause(Outcome::Silent, at(1100), 0.5).is_some());
        assert!(limited.pause(Outcome::Silent, at(2100), 0.5).is_none());
        let mut endless = retry(Wait::Forever);
        assert!(endless.pause(Outcome::Silent, at(50), 0.5).is_some());
        assert!(endless.pause(Outcome::Silent, at(100_000), 0.5).is_some());
    }

    #[test]
    fn pauses_grow_and_are_spread() {
        let mut retry = retry(Wait::Forever);
        let pauses: Vec<_> = (0..8).filter_map(|_| retry.pause(Outcome::Contended, TTL, 0.5)).collect();
        assert_eq!(pauses.first(), Some(&FIRST_PAUSE));
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
        let spread = [0.0, 0.999].map(|random| retry.pause(Outcome::Contended, TTL, random).unwrap());
        assert!(spread[1] > 2 * spread[0], "{spread:?}");
    }

    #[test]
    fn patience_grows_with_silence_only_and_within_bounds() {
        let mut retry = retry(Wait::Forever);
        retry.pause(Outcome::Contended, Duration::ZERO, 0.5);
        assert_eq!(retry.patience(Duration::ZERO), NODE_TIMEOUT);
        for _ in 0..20 {
            retry.pause(Outcome::Silent, Duration::ZERO, 0.5);
        }
        assert_eq!(retry.patience(Duration::ZERO), TTL / 10);
    }
}
