//! The register of a node, on plain data. It equals the runtime's `protocol/node_state/registers.rs` and the scripts.
//!
//! The search runs this machine, and a test of the runtime compares it with that file for every small register.

use super::Variant;
use crate::rule::Rule;

/// Largest ballot that a node has accepted, 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Register(pub u8);

impl Register {
    /// Stores `ballot` if it is acceptable. Returns `true` if it was accepted.
    pub fn propose(&mut self, ballot: u8, variant: Variant) -> bool {
        let is_accepted = match variant {
            Variant::Overwrites => true,
            Variant::Without(Rule::BallotsOnlyRise) => ballot >= self.0,
            _ => ballot > self.0,
        };
        if is_accepted {
            self.0 = ballot;
        }
        is_accepted
    }

    /// Raises the register to `number` if it is lower. This is not an acceptance.
    pub fn raise(&mut self, number: u8) {
        self.0 = self.0.max(number);
    }
}
