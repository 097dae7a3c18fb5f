//! States as bytes: words in which most bytes are zero.

/// Appends a mask of the non-zero bytes, then these bytes.
pub(crate) fn push_packed(word: u64, bytes: &mut Vec<u8>) {
    let mask_at = bytes.len();
    bytes.push(0);
    for (bit, byte) in word.to_le_bytes().into_iter().enumerate() {
        if byte != 0 {
            bytes[mask_at] |= 1 << bit;
            bytes.push(byte);
        }
    }
}

pub(crate) fn take_packed(bytes: &mut &[u8]) -> u64 {
    let mask = take(bytes);
    let word = std::array::from_fn(|bit| if mask >> bit & 1 == 1 { take(bytes) } else { 0 });
    u64::from_le_bytes(word)
}

pub(crate) fn take(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    *bytes = rest;
    *first
}
