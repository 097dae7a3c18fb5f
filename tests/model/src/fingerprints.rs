//! The set of visited states: 64 bits of each, in one open-addressing table.
//!
//! Two states with one fingerprint would hide one of them. With 64 bits, the chance that this happens at all is about
//! n² / 2⁶⁵: one in 40 000 for 30 million states, one in 400 for 300 million.

/// A set of fingerprints for a number of states that is known beforehand.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    /// 0 marks a free place. As long as a power of two, and at most three quarters full.
    table: Vec<u64>,
}

impl Fingerprints {
    pub(crate) fn for_states(states: usize) -> Self {
        // The allocator hands out untouched zero pages: a search that ends early has not paid for the table.
        Self { table: vec![0; (states + states / 3 + 1).next_power_of_two()] }
    }

    /// Whether `fingerprint` is new.
    pub(crate) fn insert(&mut self, fingerprint: u64) -> bool {
        let mask = self.table.len() - 1;
        let fingerprint = fingerprint.max(1);
        let mut place = fold(fingerprint, SEED) as usize & mask;
        loop {
            match self.table[place] {
                0 => break self.table[place] = fingerprint,
                taken if taken == fingerprint => return false,
                _ => place = (place + 1) & mask,
            }
        }
        true
    }
}

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// Both halves of the full product, mixed (the step of wyhash).
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
