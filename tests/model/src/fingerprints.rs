//! The set of visited states: 64 bits of each, in one open-addressing table.
//!
//! Two states with one fingerprint would hide one of them. The probability that this happens at all is about
//! n² / 2⁶⁵ for 64 bits: one in 40 000 for 30 million states, one in 400 for 300 million.

/// A set of fingerprints that grows by doubling.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    /// Table in which 0 marks a free place. Its length is a power of two, and at most three quarters of it are used.
    table: Vec<u64>,
    len: usize,
}

impl Fingerprints {
    pub(crate) fn new() -> Self {
        Self { table: vec![0; 1 << 12], len: 0 }
    }

    /// Adds `fingerprint`. Returns `true` if it is new.
    pub(crate) fn insert(&mut self, fingerprint: u64) -> bool {
        if self.len >= self.table.len() / 4 * 3 {
            self.grow();
        }
        let fingerprint = fingerprint.max(1);
        let place = self.place(fingerprint);
        let is_new = self.table[place] == 0;
        self.table[place] = fingerprint;
        self.len += usize::from(is_new);
        is_new
    }

    /// Returns the place of `fingerprint`, or the free place for it.
    fn place(&self, fingerprint: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut place = fingerprint as usize & mask;
        while self.table[place] != 0 && self.table[place] != fingerprint {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let longer = vec![0; 2 * self.table.len()];
        for fingerprint in std::mem::replace(&mut self.table, longer) {
            let place = self.place(fingerprint);
            self.table[place] = fingerprint;
        }
    }
}

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// Combines both halves of the full product (the step of wyhash).
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let start = SEED ^ (bytes.len() as u64);
    let mixed = bytes.chunks(8).fold(start, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        fold(hash ^ u64::from_le_bytes(word), FACTOR) ^ hash.rotate_left(23)
    });
    fold(mixed, SEED ^ FACTOR)
}
