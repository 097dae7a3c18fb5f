//! How the names of lines are hashed.

/// Keys may come from outside, and must not be able to meet in one place on purpose.
#[cfg(not(test))]
pub(super) type Hashing = std::hash::RandomState;

/// The same order in every run of a simulation.
#[cfg(test)]
pub(super) type Hashing = std::hash::BuildHasherDefault<SameInEveryRun>;

/// The line of a reader is called by its token, in which stands how many tokens this test process has made before, for whatever
/// test. That number is left out.
#[cfg(test)]
#[derive(Default)]
pub(super) struct SameInEveryRun(std::hash::DefaultHasher);

#[cfg(test)]
impl std::hash::Hasher for SameInEveryRun {
    fn write(&mut self, bytes: &[u8]) {
        use crate::lock::OwnerToken;
        use crate::lock::reserved::REGISTER;
        const NUMBER: usize = 8;
        match bytes.strip_prefix(REGISTER.as_bytes()) {
            Some(token) if token.len() == OwnerToken::LEN => {
                self.0.write(&token[..OwnerToken::ATTEMPT_LEN - NUMBER]);
                self.0.write(&token[OwnerToken::ATTEMPT_LEN..]);
            }
            _ => self.0.write(bytes),
        }
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
