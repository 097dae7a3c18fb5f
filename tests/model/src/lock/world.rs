//! A state during a step, together with the rules of its scenario.

use super::message::{Command, Reply};
use super::node::Node;
use super::scenario::Scenario;
use super::state::{Link, Phase, State};
use crate::rule::Rule;

/// State and scenario. The rules of the node, the client and the network are methods of this type, in one file each.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) state: State,
    /// `true` if the nodes have noticed which connections are gone, so that `PUBLISH` counts no receiver there.
    pub(crate) noticed: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &'a Scenario, state: &State) -> Self {
        Self { scenario, state: *state, noticed: true }
    }

    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.scenario.keeps(rule)
    }

    pub(crate) fn node(&self, node: usize) -> Node {
        self.state.columns[node].node
    }

    pub(crate) fn node_mut(&mut self, node: usize) -> &mut Node {
        &mut self.state.columns[node].node
    }

    pub(crate) fn phase(&self, token: usize) -> Phase {
        self.state.phases[token]
    }

    pub(crate) fn link(&self, token: usize, node: usize) -> Link {
        self.state.columns[node].links[token]
    }

    pub(crate) fn link_mut(&mut self, token: usize, node: usize) -> &mut Link {
        &mut self.state.columns[node].links[token]
    }

    /// Returns the connections of `token`, in the order of the nodes.
    pub(crate) fn links(&self, token: usize) -> impl Iterator<Item = Link> {
        self.state.columns[..self.scenario.nodes].iter().map(move |column| column.links[token])
    }

    /// Returns `true` if `V` is in the future: a quorum of leases counts.
    pub(crate) fn is_valid(&self, token: usize) -> bool {
        self.links(token).filter(|link| link.lease && !link.tainted).count() >= self.scenario.quorum()
    }

    /// Returns the number of nodes whose votes can still become leases of this token.
    pub(crate) fn votes(&self, token: usize) -> usize {
        self.links(token).filter(|link| link.vote && !link.tainted && !link.has_yield_out()).count()
    }
}

impl Link {
    /// Returns `true` if a `YIELD` is unanswered. One connection keeps the order, so everything that arrives
    /// meanwhile answers an earlier command.
    pub(crate) fn has_yield_out(self) -> bool {
        self.has_unexecuted_yield() || self.answers().any(Reply::answers_yield)
    }

    pub(crate) fn has_unexecuted_yield(self) -> bool {
        self.commands.iter().filter_map(Command::from_code).any(Command::is_yield)
    }

    pub(crate) fn answers(self) -> impl Iterator<Item = Reply> {
        self.replies.iter().filter_map(Reply::from_code).filter(|reply| !reply.is_push())
    }

    /// Returns the number of commands without an answer.
    pub(crate) fn unanswered(self) -> u32 {
        self.commands.len() + self.answers().map(|_| 1).sum::<u32>()
    }

    pub(crate) fn is_releasing(self) -> bool {
        self.commands.contains(Command::Release.code())
    }

    /// Returns `true` if no message is in transit, in either direction or from an earlier connection.
    pub(crate) fn is_quiet(self) -> bool {
        self.commands.is_empty() && self.replies.is_empty() && self.stale.is_empty() && !self.down
    }
}
