//! What a node does for permits. The code of the node must do the same, which a test beside it checks in every small state.

use super::Variant;

/// Who stands in the turnstile of a node, and who has permits there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The number of whoever stands in the turnstile; 0 for nobody.
    pub turn: u8,
    /// The tokens that have permits, a bit for each.
    pub entries: u8,
}

/// What a node is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// The turnstile, if it is free.
    Take,
    /// The turnstile is given back, or yielded.
    Open,
    /// A permit, behind the turnstile.
    Enter {
        /// It was sent again, behind others.
        is_late: bool,
    },
    /// The lease of the permit starts anew.
    Extend,
    /// The permit is given back.
    Leave,
}

/// What a node says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The turnstile is the caller's.
    Granted,
    /// It is somebody else's.
    Taken,
    /// The permit is given, or was before; these others have one.
    Entered {
        /// A bit for each.
        others: u8,
    },
    /// The lease of the permit has started anew.
    Extended,
    /// It is given back.
    Released,
    /// The turnstile is not the caller's, or the permit is not the token's.
    NotOwner,
}

impl Node {
    /// Executes a command of number `token`, whose process stands in the turnstile as `by`.
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
                let in_turn = self.turn == by || matches!(variant, Variant::NoTurnstile | Variant::VotesReturnOutside);
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
