//! How the names of lines are hashed.

use crate::client::shared::Shared;

/// Keys may come from outside, and must not be able to meet in one place on purpose.
#[cfg(not(any(test, feature = "testing")))]
pub(super) type Hashing = std::hash::RandomState;

#[cfg(any(test, feature = "testing"))]
pub(super) use self::in_tests::Hashing;

/// How a manager hashes.
#[cfg(not(any(test, feature = "testing")))]
pub(super) fn of(_shared: &Shared) -> Hashing {
    Hashing::new()
}

/// How a manager hashes: in the same way in every run where that has to be the same, and otherwise by chance.
#[cfg(any(test, feature = "testing"))]
pub(super) fn of(shared: &Shared) -> Hashing {
    #[cfg(feature = "testing")]
    let is_replayed = shared.is_replayed;
    #[cfg(not(feature = "testing"))]
    let (is_replayed, _) = (false, shared);
    // The simulation runs in tests, and so are all managers of tests.
    if is_replayed || cfg!(test) { Hashing::SameInEveryRun } else { Hashing::ByChance(std::hash::RandomState::new()) }
}

#[cfg(any(test, feature = "testing"))]
mod in_tests {
    use crate::lock::OwnerToken;
    use crate::lock::reserved::REGISTER;
    use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

    /// How many digits of a token say how many tokens this process has made before.
    const NUMBER: usize = 8;

    #[derive(Clone, Debug)]
    pub(crate) enum Hashing {
        /// Keys may come from outside, and must not be able to meet in one place on purpose.
        ByChance(RandomState),
        /// The same order in every run of a simulation, or of a seed.
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

    /// The line of a reader is called by its token, in which stands how many tokens this process has made before, for whatever
    /// test. That number is left out where the order has to be the same.
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
