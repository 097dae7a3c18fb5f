//! Short queue of small codes, packed into one word: the messages in transit on one connection.

/// Up to eight codes from 1 to 15, the oldest in the lowest four bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fifo(u32);

impl Fifo {
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn len(self) -> u32 {
        (32 - self.0.leading_zeros()).div_ceil(4)
    }

    /// Returns the oldest code, 0 if empty.
    pub(crate) const fn first(self) -> u8 {
        (self.0 & 15) as u8
    }

    /// Returns the newest code, 0 if empty.
    pub(crate) const fn last(self) -> u8 {
        match self.len() {
            0 => 0,
            len => (self.0 >> (4 * (len - 1))) as u8,
        }
    }

    pub(crate) fn push(&mut self, code: u8) {
        debug_assert!(self.len() < 8 && (1..16).contains(&code), "a queue was meant to stay short");
        self.0 |= u32::from(code) << (4 * self.len());
    }

    pub(crate) const fn pop(&mut self) {
        self.0 >>= 4;
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |place| (self.0 >> (4 * place)) as u8 & 15)
    }

    pub(crate) fn contains(self, code: u8) -> bool {
        self.iter().any(|other| other == code)
    }

    /// Replaces every code by the result of `change`.
    pub(crate) fn map(self, change: impl Fn(u8) -> u8) -> Self {
        let mut changed = Self::default();
        self.iter().for_each(|code| changed.push(change(code)));
        changed
    }
}
