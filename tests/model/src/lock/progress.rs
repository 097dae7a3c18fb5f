//! What must be true when nothing is on its way: nobody waits for nothing, and nothing is left behind.

use super::action::{self, Action};
use super::message::Command;
use super::scenario::{Scenario, UNBOUNDED};
use super::state::{Phase, State};
use super::world::World;

pub(crate) fn violation(scenario: &Scenario, state: &State, stuck: bool) -> Option<String> {
    let world = World::new(scenario, state);
    if scenario.free.is_some() {
        return world.foreign_lease();
    }
    let broken = world.two_holders().or_else(|| world.stalled()).or_else(|| world.lacking());
    broken.or_else(|| if stuck { world.leftover() } else { None })
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
        let recovers = World::new(self.scenario, &self.state).recovers();
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

    /// When nothing is on its way, a lock that is held is soon on every node that can count for it.
    fn lacking(&self) -> Option<String> {
        let holder = self.tokens().find(|token| self.is_holding(*token)).filter(|_| self.is_quiet())?;
        let lacks = World::new(self.scenario, &self.state).lacks_for_good(holder);
        lacks.then(|| format!("t{holder} holds the lock, and a node that is well stays without it"))
    }

    /// Whether a node does not count, however often `holder` asks and waiters poll, when only the keys of crashed clients
    /// expire.
    fn lacks_for_good(mut self, holder: usize) -> bool {
        (0..self.scenario.all_tokens() + 2).all(|_| {
            self.expire_crashed();
            self.poll_everywhere();
            for node in 0..self.scenario.working_nodes() {
                let link = self.link(holder, node);
                if !link.lease && link.unanswered() == 0 {
                    self.ask_as_holder(holder, node);
                    // What an adopter asks for first says that the lock was not left there.
                    if self.scenario.adopts(holder) && self.may_win_back(holder, node) {
                        self.send(holder, node, Command::WinBack);
                    }
                }
            }
            while let Some(next) = self.arrival() {
                self.state = action::apply(self.scenario, &self.state, next);
            }
            let links = self.state.columns[..self.scenario.working_nodes()].iter().map(|column| column.links[holder]);
            let lacks = links.clone().any(|link| !link.lease && !link.tainted);
            // A second holder is a violation of its own.
            lacks && self.is_holding(holder) && self.two_holders().is_none()
        })
    }

    fn arrival(&self) -> Option<Action> {
        let mut actions = Vec::new();
        action::enabled(self.scenario, &self.state, &mut actions);
        actions.into_iter().find(Action::is_arrival)
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
            let Some(next) = self.arrival() else { return false };
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
