//! Keys for which others have waited lately, and whether a first try for such a key is skipped.

use crate::client::recent_keys::RecentKeys;
use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::time::Duration;

/// For how long a key is hot after others have waited for it. Smaller, a first try fails more often before the call waits;
/// larger, calls for a key that has become free go through the queues for longer, which costs a script instead of a `SET`.
const MEMORY: Duration = Duration::from_secs(2);

/// Remembers contention: a key that is taken for another one is asked for by a script instead of a plain `SET`, and that is
/// all.
#[derive(Debug)]
pub(crate) struct HotKeys(RecentKeys);

impl HotKeys {
    pub(crate) fn new() -> Self {
        Self(RecentKeys::remembered_for(MEMORY))
    }

    /// Whether a call for `key` may try all nodes at once, without standing in their queues first. Where others have waited
    /// lately it would fail; but who does not wait may not stand in a queue.
    pub(crate) fn may_try_at_once(&self, key: &LockKey, waits: bool, now: Instant) -> bool {
        !(waits && self.0.contains(key, now))
    }

    /// Others wait for `key` now.
    pub(crate) fn heat(&self, key: &LockKey, now: Instant) {
        self.0.note(key, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_cool_down() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
        let is_hot = |now| !hot.may_try_at_once(&key, true, now);
        assert!(!is_hot(at(5)));
        hot.heat(&key, at(10));
        assert!(is_hot(at(2009)));
        assert!(!is_hot(at(2010)));
        assert!(hot.may_try_at_once(&key, false, at(10)), "who does not wait has no other way");
    }
}
