//! Progress properties: when no message is in transit, each waiter has a blocker, and a final state is empty.

use super::action::{self, Action};
use super::message::Command;
use super::scenario::{Scenario, UNBOUNDED};
use super::state::{Column, Phase, State};
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
        let is_broken = holders.iter().any(|one| holders.iter().any(|other| self.conflict(*one, *other)));
        is_broken.then(|| format!("tokens {holders:?} hold the lock at once"))
    }

    /// Returns `true` if two tokens cannot hold the lock together.
    fn conflict(&self, one: usize, other: usize) -> bool {
        let is_reader = |token: usize| self.scenario.sharing >> token & 1 == 1;
        one != other && !(is_reader(one) && is_reader(other))
    }

    fn is_holding(&self, token: usize) -> bool {
        self.phase(token) == Phase::Hold && self.is_valid(token)
    }

    fn foreign_lease(&self) -> Option<String> {
        let node = self.state.columns[0].node;
        let is_foreign = |token: &usize| self.links(*token).any(|link| link.lease && !link.tainted);
        let token = self.tokens().find(|token| !node.has(*token as u8) && is_foreign(token))?;
        Some(format!("t{token} counts a lease of a node that it does not own"))
    }

    /// Finds a waiter without a blocker. Without timers, it would wait for ever. With timers, polls must help.
    fn stalled(&self) -> Option<String> {
        let waiter = self.unblocked_waiter().filter(|_| self.is_quiet())?;
        if !self.scenario.has_timers() {
            return Some(format!("t{waiter} waits, nobody holds the lock, and nothing is on its way"));
        }
        let recovers = World::new(self.scenario, &self.state).recovers();
        (!recovers).then(|| format!("t{waiter} waits, nobody holds the lock, and polling does not help"))
    }

    /// Returns a waiter that conflicts with neither a holder nor an earlier waiter.
    fn unblocked_waiter(&self) -> Option<usize> {
        let is_before = |other: usize, waiter: usize| self.phase(other).is_waiting() && other < waiter;
        let blocks =
            |other, waiter| self.conflict(other, waiter) && (self.is_holding(other) || is_before(other, waiter));
        let mut waiters = self.tokens().filter(|token| self.phase(*token).is_waiting());
        waiters.find(|waiter| !self.tokens().any(|other| blocks(other, *waiter)))
    }

    fn is_quiet(&self) -> bool {
        let columns = &self.state.columns[..self.scenario.working_nodes()];
        columns.iter().all(|column| column.links.iter().all(|link| link.is_quiet()))
    }

    /// Returns `true` if every waiter has a blocker after some safety polls, while only the keys of crashed clients expire.
    fn recovers(mut self) -> bool {
        (0..self.scenario.all_tokens() + 2).any(|_| {
            self.expire_crashed();
            self.poll_everywhere();
            self.settle()
        })
    }

    /// Finds a holder that is missing a reachable node. When no message is in transit, it should soon have all of them.
    fn lacking(&self) -> Option<String> {
        let holder = self.tokens().find(|token| self.is_holding(*token)).filter(|_| self.is_quiet())?;
        let lacks = World::new(self.scenario, &self.state).lacks_for_good(holder);
        lacks.then(|| format!("t{holder} holds the lock, and a node that is well stays without it"))
    }

    /// Returns `true` if a node never counts, however often `holder` asks and waiters poll. Only the keys of crashed clients
    /// expire.
    fn lacks_for_good(mut self, holder: usize) -> bool {
        (0..self.scenario.all_tokens() + 2).all(|_| {
            self.expire_crashed();
            self.poll_everywhere();
            for node in 0..self.scenario.working_nodes() {
                let link = self.link(holder, node);
                if !link.lease && link.unanswered() == 0 {
                    self.ask_as_holder(holder, node);
                    // The first request of an adopter only finds out that the lock was not left there.
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
            // Two holders are a separate violation.
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
            let is_crashed = |token: &usize| self.phase(*token) == Phase::Crashed;
            for token in self.tokens().filter(is_crashed).collect::<Vec<_>>() {
                self.node_mut(node).expire_share(token as u8);
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

    /// Delivers messages until no waiter is unblocked. Returns `false` if the messages end before.
    fn settle(&mut self) -> bool {
        while self.unblocked_waiter().is_some() {
            let Some(next) = self.arrival() else { return false };
            self.state = action::apply(self.scenario, &self.state, next);
        }
        true
    }

    /// Finds a node that is not empty in a final state. A state with a waiter is not final, because its timers may fire.
    /// Leftovers of a fault may also remain until they expire.
    fn leftover(&self) -> Option<String> {
        let is_waited_for = self.tokens().any(|token| self.phase(token).is_waiting());
        if is_waited_for || self.scenario.has_faults() && self.scenario.expiries != UNBOUNDED {
            return None;
        }
        let nodes = &self.state.columns[..self.scenario.working_nodes()];
        let is_empty =
            nodes.iter().all(|Column { node, .. }| node.owner.is_none() && node.readers == 0 && node.queue == 0);
        (!is_empty).then(|| "nothing can happen any more, and a node still has a key or a queue".to_owned())
    }
}
