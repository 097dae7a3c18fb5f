//! Messages that a stranger forges: a user who may publish to the channels of processes and knows their tokens, but cannot write keys.
//!
//! A forged message without a proof has the effect of a late message of a node. Proven claims are not forged: the protocol does not promise
//! exclusion against a stranger that forges the times of a proof.

use super::action::Action;
use super::message::{Command, Reply};
use super::node::Notice;
use super::state::Phase;
use super::world::World;
use crate::rule::Rule;

/// Content of a forged message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forged {
    /// Claim without a proof, to the process of the token.
    Granted,
    /// Notice that a smaller token waits, to the process of the token.
    Contended,
    /// Notice that this token waits and holds the lock by other nodes, to the process of the other token.
    Wanted(u8),
    /// Any of these messages, to another process.
    ToAnother,
}

impl World<'_> {
    pub(super) fn forgeries(&self, token: usize, node: usize, actions: &mut Vec<Action>) {
        let forge = |forged| Action::Forge { token, node, forged };
        let made_up = self.scenario.made_up();
        if Some(token) != made_up {
            actions.push(forge(Forged::ToAnother));
        }
        // The process of a token that was released or made up does not read more of the message.
        let is_unknown = self.phase(token) == Phase::Left;
        if is_unknown {
            actions.push(forge(Forged::Contended));
        } else if self.phase(token).is_alive() && !self.link(token, node).down {
            let others = (0..self.scenario.all_tokens()).filter(|other| *other != token);
            actions.extend([Forged::Granted, Forged::Contended].map(forge));
            actions.extend(others.map(|other| forge(Forged::Wanted(other as u8))));
        }
    }

    pub(super) fn forge(&mut self, token: usize, node: usize, forged: Forged) {
        self.state.forgeries -= 1;
        match forged {
            Forged::Granted => drop(self.publish(node, token, Notice::Granted)),
            Forged::Contended => self.push(node, token, Reply::Contended),
            Forged::Wanted(by) => drop(self.publish(node, token, Notice::Wanted { by })),
            Forged::ToAnother if self.keeps(Rule::ForeignTokensAreIgnored) => {}
            // The other process does not know the token, and releases it on another connection.
            Forged::ToAnother => self.link_mut(token, node).stale.push(Command::Release.code()),
        }
    }
}
