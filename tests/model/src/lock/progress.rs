//! What must be true when nothing is on its way: nobody waits for nothing, and nothing is left behind.

use super::action::{self, Action};
use super::message::Command;
use super::scenario::{Scenario, UNBOUNDED};
use super::state::{Phase, State};
use super::world::World;

pub(crate) fn violation(scenario: &Scenario, state: &State, stuck: bool) -> Option<String> {
    let world = World::new(scenario, *state);
    if scenario.free.is_some() {
        return world.foreign_lease();
    }
    world.two_holders().or_else(|| world.stalled()).or_else(|| if stuck { world.leftover() } else { None })
}

impl World<'_> {
    fn tokens(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.scenario.all_tokens()
    }

    fn two_holders(&self) -> Option<String> {
        let holders: Vec<_> = self.tokens().filter(|token| self.is_holding(*token)).collect();
        (holders.len() > 1).then(|| format!("tokens {holders:?} hold the lock at once"))
    }

    fn is_holding(&self, token: usize) -> bool {
        self.phase(token) == Phase::Hold && self.is_valid(token)
    }

    fn foreign_lease(&self) -> Option<String> {
        let owner = self.state.columns[0].node.owner.map(usize::from);
        let is_foreign = |token: &usize| self.links(*token).any(|link| link.lease && !link.tainted);
        let token = self.tokens().find(|token| owner != Some(*token) && is_foreign(token))?;
        Some(format!("t{token} counts a lease of a node that it does not own"))
    }

    /// Without timers, nothing would ever happen again; with them, polls must help.
    fn stalled(&self) -> Option<String> {
        let waiter = self.tokens().find(|token| self.phase(*token).is_waiting())?;
        let is_held = self.tokens().any(|token| self.is_holding(token));
        if is_held || !self.is_quiet() {
            return None;
        }
        if !self.scenario.has_timers() {
            return Some(format!("t{waiter} waits, nobody holds the lock, and nothing is on its way"));
        }
        let recovers = World::new(self.scenario, self.state).recovers();
        (!recovers).then(|| format!("t{waiter} waits, nobody holds the lock, and polling does not help"))
    }

    fn is_quiet(&self) -> bool {
        let columns = &self.state.columns[..self.scenario.working_nodes()];
        columns.iter().all(|column| column.links.iter().all(|link| link.is_quiet()))
    }

    /// Whether somebody holds the lock after some safety polls, when only the keys of crashed clients expire.
    fn recovers(mut self) -> bool {
        (0..self.scenario.all_tokens() + 2).any(|_| {
            self.expire_crashed();
            self.poll_everywhere();
            self.settle()
        })
    }

    fn expire_crashed(&mut self) {
        for node in 0..self.scenario.nodes {
            let owner = self.node(node).owner.map(usize::from);
            if owner.is_some_and(|owner| self.phase(owner) == Phase::Crashed) {
                self.node_mut(node).expire();
            }
        }
    }

    fn poll_everywhere(&mut self) {
        for token in self.tokens() {
            (0..self.scenario.nodes).for_each(|node| self.poll(token, node));
        }
    }

    pub(crate) fn poll(&mut self, token: usize, node: usize) {
        if self.phase(token) == Phase::Wait && self.link(token, node).unanswered() == 0 {
            self.send(token, node, Command::Acquire);
        }
    }

    /// Lets everything arrive; whether somebody holds the lock on the way.
    fn settle(&mut self) -> bool {
        while !self.tokens().any(|token| self.is_holding(token)) {
            let mut actions = Vec::new();
            action::enabled(self.scenario, &self.state, &mut actions);
            let Some(next) = actions.into_iter().find(Action::is_arrival) else { return false };
            self.state = action::apply(self.scenario, &self.state, next);
        }
        true
    }

    /// At the end of everything, nodes must be empty. A waiter that waits for its timers is not the end,
    /// and what a fault has left behind goes when it expires.
    fn leftover(&self) -> Option<String> {
        let is_waited_for = self.tokens().any(|token| self.phase(token).is_waiting());
        if is_waited_for || self.scenario.has_faults() && self.scenario.expiries != UNBOUNDED {
            return None;
        }
        let nodes = &self.state.columns[..self.scenario.working_nodes()];
        let is_empty = nodes.iter().all(|column| column.node.owner.is_none() && column.node.queue == 0);
        (!is_empty).then(|| "nothing can happen any more, and a node still has a key or a queue".to_owned())
    }
}
