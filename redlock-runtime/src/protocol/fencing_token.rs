//! The number that a protected resource checks.

use crate::error::LockError;
use std::fmt;
use std::str::FromStr;

/// A number that grows with each holder of a lock. A write with a smaller number is outdated.
///
/// Send the number with every write, and let the storage reject numbers that are smaller than the largest one that it has seen. A
/// holder that was suspended, and continues after its lease has ended, is then rejected as soon as a later holder has written.
///
/// Of two holders of one lock, the later one has the larger token, as long as no node loses its data. If one node loses its data, a
/// token can be smaller than an earlier one; see [`LockRequest::fencing`](crate::LockRequest::fencing). Tokens have gaps, and tokens of
/// *different* locks cannot be compared.
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
/// If no row was changed, a later holder has written: stop. Use `<=`, because one holder may write more than once. In Redis,
/// [`FencedSet`](crate::FencedSet) does the same.
///
/// If the new values depend on a read, fence first and then read, in the same transaction. Otherwise a late write between the read and
/// the update is lost.
///
/// # When not to use it
///
/// If the storage cannot compare the number, it protects nothing. A transaction, a unique key or an idempotency key may do the same at a
/// lower cost.
///
/// # Examples
/// ```
/// use redlock_runtime::{FencingToken, LockError, LockManager, LockRequest};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let first = manager.acquire(LockRequest::new("order:7").fencing()).await?.fencing_token();
/// let second = manager.acquire(LockRequest::new("order:7").fencing()).await?.fencing_token();
/// assert!(first < second);
/// assert_eq!(second.to_string().parse::<FencingToken>()?, second);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Bits for the sequence. Each number of the nodes makes 16 384 tokens, for the calls of one process that pass the lock on to each
    /// other.
    const SEQUENCE_BITS: u32 = 14;

    /// Returns the token of call `sequence` under the given number of the nodes; `None` if the number has no further tokens.
    pub(crate) const fn for_call(number: u64, sequence: u32) -> Option<Self> {
        let is_valid = sequence >> Self::SEQUENCE_BITS == 0;
        if is_valid { Some(Self((number << Self::SEQUENCE_BITS) | sequence as u64)) } else { None }
    }

    /// Returns the first token under the given number of the nodes.
    pub(crate) const fn first(number: u64) -> Self {
        Self(number << Self::SEQUENCE_BITS)
    }

    /// Returns the token as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the token as a signed number, for a `BIGINT` column. Tokens are smaller than 2^63.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0.cast_signed()
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        token.as_i64()
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
    /// [`LockError::Configuration`] if the text was not written by a token.
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
    fn fencing_tokens_sort_by_number_then_sequence_and_fit_in_an_i64() {
        let (last, sequence) = (Ballot::NUMBERS.end - 1, (1 << FencingToken::SEQUENCE_BITS) - 1);
        let parts = [(1, 0), (1, 1), (1, sequence), (2, 0), (last, sequence)];
        let tokens = parts.map(|(number, sequence)| FencingToken::for_call(number, sequence).unwrap());
        assert!(tokens.is_sorted_by(|a, b| a < b));
        assert_eq!(tokens.map(u64::from), [0x4000, 0x4001, 0x7fff, 0x8000, i64::MAX as u64]);
        assert_eq!([sequence + 1, u32::MAX].map(|sequence| FencingToken::for_call(1, sequence)), [None; 2]);
    }

    #[test]
    fn text_of_a_fencing_token_is_exactly_its_number() {
        let token = FencingToken::for_call(7, 3).unwrap();
        assert_eq!((token.to_string().as_str(), format!("{token:>8}").as_str()), ("114691", "  114691"));
        assert_eq!("114691".parse::<FencingToken>().unwrap(), token);
        for wrong in ["", "+1", "-1", "01", " 1", "1.0", "0x1", "18446744073709551616"] {
            let error = wrong.parse::<FencingToken>().unwrap_err();
            assert_eq!(error.to_string(), "this is not the text of a fencing token", "{wrong}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serde_writes_and_reads_the_number() {
        for token in [FencingToken::first(1), FencingToken::for_call(7, 3).unwrap(), FencingToken(i64::MAX as u64)] {
            let json = serde_json::to_string(&token).unwrap();
            assert_eq!(json, token.to_string());
            assert_eq!(serde_json::from_str::<FencingToken>(&json).unwrap(), token);
        }
        for wrong in ["-1", "1.5", "null", r#""114691""#, "18446744073709551616"] {
            serde_json::from_str::<FencingToken>(wrong).unwrap_err();
        }
    }
}
