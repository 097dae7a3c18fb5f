//! Hashing of the names of local queues.

use crate::client::shared::Shared;

/// Random hashing: keys may come from outside, and attackers must not be able to make them collide.
#[cfg(not(any(test, feature = "testing")))]
pub(super) type Hashing = std::hash::RandomState;

#[cfg(any(test, feature = "testing"))]
pub(super) use self::in_tests::Hashing;

/// Returns the hashing of a manager.
#[cfg(not(any(test, feature = "testing")))]
pub(super) fn of(_shared: &Shared) -> Hashing {
    Hashing::new()
}

/// Returns the hashing of a manager: deterministic if runs must be repeatable, and random otherwise.
#[cfg(any(test, feature = "testing"))]
pub(super) fn of(shared: &Shared) -> Hashing {
    #[cfg(feature = "testing")]
    let is_replayed = shared.is_replayed;
    #[cfg(not(feature = "testing"))]
    let (is_replayed, _) = (false, shared);
    // Simulations are tests, and so are all managers in tests.
    if is_replayed || cfg!(test) { Hashing::SameInEveryRun } else { Hashing::ByChance(std::hash::RandomState::new()) }
}

#[cfg(any(test, feature = "testing"))]
mod in_tests {
    use crate::lock::OwnerToken;
    use crate::lock::reserved::REGISTER;
    use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

    /// Number of digits of a token that count the tokens of this process.
    const NUMBER: usize = 8;

    #[derive(Clone, Debug)]
    pub(crate) enum Hashing {
        /// Random hashing: keys may come from outside, and attackers must not be able to make them collide.
        ByChance(RandomState),
        /// Equal order in every run of a simulation, or of a seed.
        SameInEveryRun,
    }

    impl BuildHasher for Hashing {
        type Hasher = LineHasher;

        fn build_hasher(&self) -> LineHasher {
            match self {
                Self::ByChance(state) => LineHasher { hasher: state.build_hasher(), is_the_same: false },
                Self::SameInEveryRun => LineHasher { hasher: DefaultHasher::new(), is_the_same: true },
            }
        }
    }

    /// Hasher of queue names. The queue of a reader has the name of its token, which contains a counter of all tokens
    /// of this process, across tests. If the order must be deterministic, the hash omits that counter.
    #[derive(Debug)]
    pub(crate) struct LineHasher {
        hasher: DefaultHasher,
        is_the_same: bool,
    }

    impl Hasher for LineHasher {
        fn write(&mut self, bytes: &[u8]) {
            let token = bytes.strip_prefix(REGISTER.as_bytes()).filter(|token| token.len() == OwnerToken::LEN);
            let parts = token.filter(|_| self.is_the_same).and_then(|token| {
                let (attempt, manager) = token.split_at_checked(OwnerToken::ATTEMPT_LEN)?;
                Some((attempt.get(..OwnerToken::ATTEMPT_LEN - NUMBER)?, manager))
            });
            match parts {
                Some((time_and_chance, manager)) => {
                    self.hasher.write(time_and_chance);
                    self.hasher.write(manager);
                }
                None => self.hasher.write(bytes),
            }
        }

        fn finish(&self) -> u64 {
            self.hasher.finish()
        }
    }
}
