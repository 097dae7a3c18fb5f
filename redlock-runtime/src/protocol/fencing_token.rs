//! The number that a protected resource checks.

use crate::error::LockError;
use std::fmt;
use std::str::FromStr;

/// A number that grows with each owner of a lock: what was written with a smaller one is out of date.
///
/// Send it along with every write, and let the resource that is written to refuse what is smaller than the largest one
/// that it has seen. Then a holder that was suspended, and goes on after its lease has run out, can no longer do harm.
///
/// Of two owners of one lock, the later one has the larger token, whatever the clocks say: as long as the nodes keep their
/// data, see [`acquire_fenced`](crate::LockManager::acquire_fenced). Nothing else is promised. There are gaps, and tokens
/// of *different* locks compare as they like.
///
/// A token is a `u64` that also fits into a signed `BIGINT`. It is written and read as a decimal number, also by serde
/// with the feature `serde`. JavaScript rounds numbers above 2^53: send it there as text.
///
/// # In SQL
///
/// Each protected row keeps the token of its last writer, in a column `fencing_token BIGINT NOT NULL DEFAULT 0`:
///
/// ```sql
/// UPDATE orders SET state = $2, fencing_token = $1 WHERE id = $3 AND fencing_token <= $1
/// ```
///
/// Where no row was changed, a later owner has been there: stop. `<=`, because one owner may write more than once. In
/// Redis, [`FencedSet`](crate::FencedSet) does the same.
///
/// # When not to use it
///
/// Where the resource cannot compare it, it protects nothing; a transaction, a unique key or an idempotency key may do
/// the same for less.
///
/// # Examples
/// ```
/// use redlock_runtime::{FencingToken, LockError, LockManager};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let first = manager.acquire_fenced("order:7").await?.fencing_token();
/// let second = manager.acquire_fenced("order:7").await?.fencing_token();
/// assert!(first < second);
/// assert_eq!(second.to_string().parse::<FencingToken>()?, second);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// How many tokens come from one number: for the calls of one process, which pass the lock on among themselves.
    const SEQUENCE_BITS: u32 = 16;

    /// The token of the call that is number `sequence` of those that have the lock with the number of the nodes.
    pub(crate) const fn new(number: u64, sequence: u16) -> Self {
        Self((number << Self::SEQUENCE_BITS) | sequence as u64)
    }

    /// The token as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FencingToken {
    type Err = LockError;

    /// # Errors
    /// [`LockError::Configuration`] for a text that no token has written.
    fn from_str(text: &str) -> Result<Self, LockError> {
        // `parse` would take a sign and leading zeros.
        let token = text.parse().map(Self).ok().filter(|token| token.to_string() == text);
        token.ok_or_else(|| LockError::configuration("this is not the text of a fencing token"))
    }
}

#[cfg(feature = "serde")]
impl serde_core::Serialize for FencingToken {
    fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde_core::Deserialize<'de> for FencingToken {
    fn deserialize<D: serde_core::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ballot_clock::Ballot;

    #[test]
    fn tokens_sort_by_number_and_then_by_sequence_and_fit_a_signed_column() {
        let last = Ballot::NUMBERS.end - 1;
        let parts = [(1, 0), (1, 1), (1, u16::MAX), (2, 0), (last, u16::MAX)];
        let tokens = parts.map(|(number, sequence)| FencingToken::new(number, sequence));
        assert!(tokens.is_sorted_by(|a, b| a < b));
        assert_eq!(tokens.map(u64::from), [0x1_0000, 0x1_0001, 0x1_ffff, 0x2_0000, i64::MAX as u64]);
    }

    #[test]
    fn the_text_is_the_number_and_nothing_else_is() {
        let token = FencingToken::new(7, 3);
        assert_eq!((token.to_string().as_str(), format!("{token:>8}").as_str()), ("458755", "  458755"));
        assert_eq!("458755".parse::<FencingToken>().unwrap(), token);
        for wrong in ["", "+1", "-1", "01", " 1", "1.0", "0x1", "18446744073709551616"] {
            let error = wrong.parse::<FencingToken>().unwrap_err();
            assert_eq!(error.to_string(), "this is not the text of a fencing token", "{wrong}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serde_writes_and_reads_the_number() {
        let last = FencingToken::new(Ballot::NUMBERS.end - 1, u16::MAX);
        for token in [FencingToken::new(1, 0), FencingToken::new(7, 3), last] {
            let json = serde_json::to_string(&token).unwrap();
            assert_eq!(json, token.to_string());
            assert_eq!(serde_json::from_str::<FencingToken>(&json).unwrap(), token);
        }
        for wrong in ["-1", "1.5", "null", r#""458755""#, "18446744073709551616"] {
            serde_json::from_str::<FencingToken>(wrong).unwrap_err();
        }
    }
}
