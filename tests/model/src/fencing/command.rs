//! Commands of a client to a node, each as one code.

/// Largest ballot.
pub(super) const MOST: u8 = 6;

/// Smallest ballot that no clock explains. Healthy nodes do not reach it, unless a quorum has returned such a ballot.
pub(super) const FAR: u8 = 4;

/// One command in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Takes the node if it is free. Proposes the ballot in any case.
    Take(u8),
    /// Takes the node if it is free or ours, and then proposes the ballot.
    Ask(u8),
    /// Takes the node if it is free or ours, without a ballot.
    AskPlainly,
    /// Releases the node.
    Give,
}

impl Sent {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Take(ballot) => ballot,
            Self::Ask(ballot) => MOST + ballot,
            Self::AskPlainly => 2 * MOST + 1,
            Self::Give => 2 * MOST + 2,
        }
    }

    pub(super) const fn from_code(code: u8) -> Self {
        match code {
            1..=MOST => Self::Take(code),
            code if code <= 2 * MOST => Self::Ask(code - MOST),
            code if code == 2 * MOST + 1 => Self::AskPlainly,
            _ => Self::Give,
        }
    }

    /// Returns the proposed ballot, and if only the owner proposes it.
    pub(super) const fn ballot(self) -> Option<(u8, bool)> {
        match self {
            Self::Take(ballot) => Some((ballot, false)),
            Self::Ask(ballot) => Some((ballot, true)),
            Self::AskPlainly | Self::Give => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_codes_are_decoded_unchanged() {
        let numbered = (1..=MOST).flat_map(|ballot| [Sent::Take(ballot), Sent::Ask(ballot)]);
        let all: Vec<_> = numbered.chain([Sent::AskPlainly, Sent::Give]).collect();
        assert!(all.iter().all(|sent| Sent::from_code(sent.code()) == *sent && sent.code() < 16));
    }
}
