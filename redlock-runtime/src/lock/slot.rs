//! Cluster slots. Keys of one slot are on one server, and one script may use them together.
//!
//! The slot follows from the *hash tag*: the text between the first `{` and the first `}` after it. A key without a hash tag is
//! hashed as a whole.

use crate::time::ballot_clock::SLOTS;
use std::sync::LazyLock;

/// Returns the slot of the key called `name`.
pub(crate) fn slot_of(name: &str) -> u16 {
    slot(hash_tag(name).unwrap_or(name).as_bytes())
}

/// Returns the hash tag of `name`. Without one, the whole name determines the slot.
pub(crate) fn hash_tag(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

/// Returns the slot of a hash tag, or of a whole key.
pub(crate) fn slot(tag: &[u8]) -> u16 {
    let next = |crc: u16, byte: &u8| {
        let [high, low] = crc.to_be_bytes();
        u16::from_be_bytes([low, 0]) ^ TABLE.get(usize::from(high ^ byte)).copied().unwrap_or_default()
    };
    tag.iter().fold(0, next) % SLOTS
}

/// CRC-16/XMODEM, for each value of a byte. Source: the Redis cluster specification.
static TABLE: LazyLock<[u16; 256]> = LazyLock::new(|| {
    let shifted = |crc: u16| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    let mut byte = 0_u16..;
    std::array::from_fn(|_| (0..8).fold(byte.next().unwrap_or_default() << 8, |crc, _| shifted(crc)))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_slots_match_the_cluster_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3 % SLOTS);
        // `CLUSTER KEYSLOT` of a server.
        assert_eq!([slot_of("foo"), slot_of("{user1000}.following"), slot_of("{}x")], [12182, 3443, slot(b"{}x")]);
    }
}
