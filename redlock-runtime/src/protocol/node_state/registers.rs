//! Fencing registers: the largest ballot that the node has accepted for the locks of each slot.

use crate::protocol::command::Number;
use crate::protocol::rules::{Rule, Rules};
use std::collections::HashMap;

/// Registers by slot. They do not expire, and there are at most as many as slots.
#[derive(Debug, Default)]
pub(super) struct Registers(HashMap<u16, u64>);

impl Registers {
    /// Processes a ballot for a lock of `slot`.
    pub(super) fn propose(&mut self, slot: u16, ballot: u64, rules: Rules) -> Option<Number> {
        let largest = self.0.get(&slot).copied().unwrap_or_default();
        if ballot > largest || ballot == largest && !rules.apply(Rule::BallotsOnlyRise) {
            self.0.insert(slot, ballot);
            return Some(Number::Accepted(ballot));
        }
        // A ballot that only reads finds nothing, and creates nothing.
        (largest > 0).then_some(Number::Refused { largest })
    }
}

impl Registers {
    /// Returns the largest ballot for the locks of `slot`; zero if there was none.
    pub(super) fn look(&self, slot: u16) -> u64 {
        self.0.get(&slot).copied().unwrap_or_default()
    }

    /// Raises the register of `slot` to `largest` if it is lower. Unlike a proposal, this accepts nothing.
    pub(super) fn raise(&mut self, slot: u16, largest: u64) {
        let register = self.0.entry(slot).or_default();
        *register = largest.max(*register);
    }
}

/// Manipulation of the registers by tests.
#[cfg(any(test, fuzzing))]
impl Registers {
    /// Creates the registers of a node with one register.
    pub(super) fn at(slot: u16, largest: u64) -> Self {
        Self([(slot, largest)].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_register_refuses_smaller_or_equal_ballots() {
        let (mut registers, rules) = (Registers::default(), Rules::default());
        for (raised, proposed, expected) in [
            (5, 5, Number::Refused { largest: 5 }),
            (3, 4, Number::Refused { largest: 5 }),
            (7, 8, Number::Accepted(8)),
        ] {
            registers.raise(0, raised);
            assert_eq!(registers.propose(0, proposed, rules), Some(expected), "{raised}, {proposed}");
        }
    }

    #[test]
    fn accepted_ballots_rise_in_each_slot() {
        let (mut registers, rules) = (Registers::default(), Rules::default());
        let table = [
            (0, 0, None),
            (0, 5, Some(Number::Accepted(5))),
            (0, 5, Some(Number::Refused { largest: 5 })),
            (0, 4, Some(Number::Refused { largest: 5 })),
            (0, 0, Some(Number::Refused { largest: 5 })),
            (1, 4, Some(Number::Accepted(4))),
            (0, 6, Some(Number::Accepted(6))),
        ];
        for (slot, ballot, expected) in table {
            assert_eq!(registers.propose(slot, ballot, rules), expected, "{ballot} in {slot}");
        }
    }
}
