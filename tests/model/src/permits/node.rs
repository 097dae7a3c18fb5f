//! Operations of a node for permits. A test beside the code of the runtime compares both in every small state.

use super::Variant;

/// Owner of the admission lock at a node, and holders of permits there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Number of the owner of the admission lock, 0 for none.
    pub turn: u8,
    /// Tokens with permits, a bit for each.
    pub entries: u8,
}

/// Operation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Takes the admission lock, if it is free.
    Take,
    /// Releases or yields the admission lock.
    Open,
    /// Requests a permit, with the admission lock.
    Enter {
        /// `true` if the command was sent again, behind others.
        is_late: bool,
    },
    /// Restarts the lease of the permit.
    Extend,
    /// Releases the permit.
    Leave,
}

/// Answer of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The caller owns the admission lock.
    Granted,
    /// Another number owns the admission lock.
    Taken,
    /// The token has the permit, now or already before.
    Entered {
        /// Other tokens with permits, a bit for each.
        others: u8,
    },
    /// The lease of the permit has restarted.
    Extended,
    /// Released.
    Released,
    /// The caller does not own the admission lock, or the token has no permit.
    NotOwner,
}

impl Node {
    /// Executes a command of token number `token`, whose process owns the admission lock as `by`.
    pub fn execute(&mut self, verb: Verb, by: u8, token: usize, variant: Variant) -> Reply {
        let bit = 1 << token;
        match verb {
            Verb::Take if self.turn == 0 => {
                self.turn = by;
                Reply::Granted
            }
            Verb::Take => Reply::Taken,
            Verb::Open if self.turn == by => {
                self.turn = 0;
                Reply::Released
            }
            Verb::Open => Reply::NotOwner,
            Verb::Enter { is_late } => {
                let is_late = is_late && variant != Variant::LateEntersCreate;
                let in_turn =
                    self.turn == by || matches!(variant, Variant::NoAdmissionLock | Variant::VotesReturnOutside);
                if !in_turn || is_late && self.entries & bit == 0 {
                    return Reply::NotOwner;
                }
                self.entries |= bit;
                Reply::Entered { others: self.entries & !bit }
            }
            Verb::Extend => {
                if variant == Variant::ExtensionsCreate {
                    self.entries |= bit;
                }
                if self.entries & bit == 0 { Reply::NotOwner } else { Reply::Extended }
            }
            Verb::Leave if self.entries & bit == 0 => Reply::NotOwner,
            Verb::Leave => {
                self.entries &= !bit;
                Reply::Released
            }
        }
    }
}
