//! Steps of the lock model: the possible steps in a state, and their effects.

use std::fmt;

use super::forgery::Forged;
use super::message::{Command, Reply};
use super::scenario::{Scenario, UNBOUNDED};
use super::state::{Phase, State};
use super::world::World;
use crate::rule::Rule;

/// One step. `noticed` is `true` if the nodes already know which connections are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same few numbers everywhere")]
pub enum Action {
    /// A node executes the oldest command of a token.
    Execute { token: usize, node: usize, command: u8, noticed: bool },
    /// A node executes the oldest command of a token and answers with an error. With `keeps_vote`, the error changes nothing at the client.
    Fail { token: usize, node: usize, command: u8, keeps_vote: bool },
    /// A stranger forges a message about a token.
    Forge { token: usize, node: usize, forged: Forged },
    /// A node executes the oldest command from a broken connection, or from another process.
    ExecuteStale { token: usize, node: usize, command: u8, noticed: bool },
    /// Commands from a broken connection are lost.
    Lose { token: usize, node: usize },
    /// A reply or push arrives.
    Deliver { token: usize, node: usize, reply: u8 },
    /// A waiter repeats `ACQUIRE`, by a timer.
    Poll { token: usize, node: usize },
    /// A holder renews its lease at a node that does not count.
    Renew { token: usize, node: usize },
    /// A holder asks a node for a missing vote.
    WinBack { token: usize, node: usize },
    /// A client without rules sends this command.
    Send { token: usize, node: usize, command: u8 },
    /// A holder releases, or a waiter gives up.
    Leave { token: usize },
    /// A client reuses its released token. Possible only if that rule is switched off.
    Reuse { token: usize },
    /// The key of a node expires.
    ExpireKey { node: usize },
    /// The share of a token expires.
    ExpireShare { token: usize, node: usize },
    /// A queue without live clients expires.
    ExpireQueue { node: usize },
    /// A client ends.
    Crash { token: usize },
    /// A connection breaks.
    Cut { token: usize, node: usize },
    /// A new connection is made.
    Reconnect { token: usize, node: usize },
}

impl Action {
    /// Returns `true` for the arrival of a message without a new fault.
    pub(crate) fn is_arrival(&self) -> bool {
        matches!(self, Self::Execute { noticed: true, .. } | Self::Deliver { .. } | Self::Reconnect { .. })
    }
}

/// Commands that a client without rules may send, in addition to a yield to any other token. A yield to a token that does not wait is a
/// plain one. A plain `SETNX` covers the grant of a vote that a holder wins back.
const ANYTHING: [Command; 3] = [Command::SetNx, Command::Acquire, Command::Extend];

pub(crate) fn enabled(scenario: &Scenario, state: &State, actions: &mut Vec<Action>) {
    let world = World::new(scenario, state);
    for node in 0..scenario.nodes {
        (0..scenario.all_tokens()).for_each(|token| world.on_link(token, node, actions));
        if state.expiries > 0 {
            world.on_node(node, actions);
        }
    }
    (0..scenario.all_tokens()).for_each(|token| world.on_token(token, actions));
}

pub(crate) fn apply(scenario: &Scenario, state: &State, action: Action) -> State {
    let mut world = World::new(scenario, state);
    world.step(action);
    world.state
}

impl World<'_> {
    fn on_link(&self, token: usize, node: usize, actions: &mut Vec<Action>) {
        self.on_network(token, node, actions);
        if self.state.forgeries > 0 {
            self.forgeries(token, node, actions);
        }
        let (link, phase) = (self.link(token, node), self.phase(token));
        if link.down || !phase.is_alive() {
            return;
        }
        if let Some(most) = self.scenario.free {
            if link.unanswered() < most {
                let send = |command: Command| Action::Send { token, node, command: command.code() };
                actions.extend(ANYTHING.map(send));
                actions.extend(self.scenario.adopts(token).then(|| send(Command::Adopt)));
                let others = (0..self.scenario.all_tokens()).filter(|other| *other != token);
                actions.extend(others.map(|other| send(Command::YieldTo(other as u8))));
            }
        } else if link.unanswered() == 0 {
            match phase {
                Phase::Wait if self.state.polls > 0 => actions.push(Action::Poll { token, node }),
                // A node that could not be asked may still have the lock under the detached token.
                Phase::Hold if (!link.lease || link.claim) && (link.vote || self.scenario.adopts(token)) => {
                    actions.push(Action::Renew { token, node });
                }
                _ => {}
            }
            if phase == Phase::Hold && self.state.polls > 0 && self.may_win_back(token, node) {
                actions.push(Action::WinBack { token, node });
            }
        }
    }

    fn on_network(&self, token: usize, node: usize, actions: &mut Vec<Action>) {
        let (link, phase) = (self.link(token, node), self.phase(token));
        let works = node < self.scenario.working_nodes();
        if works && !link.down && !link.commands.is_empty() {
            let command = link.commands.first();
            actions.extend(self.notices().map(|noticed| Action::Execute { token, node, command, noticed }));
            if self.may_fail(token, command) {
                actions.extend([true, false].map(|keeps_vote| Action::Fail { token, node, command, keeps_vote }));
            }
        }
        if works && !link.stale.is_empty() {
            let command = link.stale.first();
            actions.extend(self.notices().map(|noticed| Action::ExecuteStale { token, node, command, noticed }));
        }
        if !link.stale.is_empty() || phase == Phase::Crashed && !link.commands.is_empty() {
            actions.push(Action::Lose { token, node });
        }
        if !link.replies.is_empty() {
            actions.push(Action::Deliver { token, node, reply: link.replies.first() });
        }
        if link.down {
            actions.push(Action::Reconnect { token, node });
        } else if self.state.cuts > 0 && link.stale.is_empty() && self.may_cut(token, node) {
            actions.push(Action::Cut { token, node });
        }
    }

    /// Returns `true` if a cut of the connection would have an effect.
    fn may_cut(&self, token: usize, node: usize) -> bool {
        let is_idle = !self.phase(token).is_alive() && self.link(token, node).commands.is_empty();
        !is_idle && !matches!(self.phase(token), Phase::Crashed | Phase::Unborn)
    }

    /// Returns both possibilities if a `PUBLISH` may go to a connection that is gone.
    fn notices(&self) -> impl Iterator<Item = bool> + use<> {
        let is_gone = |token: usize| self.phase(token) == Phase::Crashed || self.links(token).any(|link| link.down);
        let both = (0..self.scenario.all_tokens()).any(is_gone);
        [true, false].into_iter().take(1 + usize::from(both))
    }

    fn on_node(&self, node: usize, actions: &mut Vec<Action>) {
        let contents = self.state.columns[node].node;
        if contents.owner.is_some() {
            actions.push(Action::ExpireKey { node });
        }
        let readers = (0..self.scenario.all_tokens()).filter(|token| contents.readers >> token & 1 == 1);
        actions.extend(readers.map(|token| Action::ExpireShare { token, node }));
        let is_interested = |token: &usize| contents.is_queued(*token as u8) && self.phase(*token).is_alive();
        let is_abandoned = !(0..self.scenario.all_tokens()).any(|token| is_interested(&token));
        if contents.queue != 0 && is_abandoned && self.keeps(Rule::QueuesExpire) {
            actions.push(Action::ExpireQueue { node });
        }
    }

    fn on_token(&self, token: usize, actions: &mut Vec<Action>) {
        let phase = self.phase(token);
        if phase == Phase::Hold || phase.is_waiting() && self.scenario.give_up {
            actions.push(Action::Leave { token });
        }
        if phase.is_alive() && self.state.crashes > 0 {
            actions.push(Action::Crash { token });
        }
        let is_released = phase == Phase::Left && self.links(token).all(|link| link.commands.is_empty() && !link.down);
        if is_released && !self.keeps(Rule::ReleasedTokensAreDead) {
            actions.push(Action::Reuse { token });
        }
    }

    fn step(&mut self, action: Action) {
        match action {
            Action::Execute { token, node, noticed, .. } => {
                self.noticed = noticed;
                self.execute_next(token, node);
            }
            Action::Fail { token, node, keeps_vote, .. } => self.fail_next(token, node, keeps_vote),
            Action::Forge { token, node, forged } => self.forge(token, node, forged),
            Action::ExecuteStale { token, node, noticed, .. } => {
                self.noticed = noticed;
                self.execute_stale(token, node);
            }
            Action::Lose { token, node } => self.lose(token, node),
            Action::Deliver { token, node, .. } => self.deliver(token, node),
            Action::Poll { token, node } => {
                spend(&mut self.state.polls);
                self.send(token, node, Command::Acquire);
            }
            Action::Renew { token, node } => self.send(token, node, self.scenario.extension(token)),
            Action::WinBack { token, node } => {
                spend(&mut self.state.polls);
                self.send(token, node, Command::WinBack);
            }
            Action::Send { token, node, command } => self.send_anything(token, node, command),
            Action::Leave { token } => self.leave(token),
            Action::Reuse { token } => self.wait(token),
            Action::ExpireKey { node } => self.expire_key(node),
            Action::ExpireShare { token, node } => self.expire_share(token, node),
            Action::ExpireQueue { node } => self.node_mut(node).queue = 0,
            Action::Crash { token } => {
                spend(&mut self.state.crashes);
                self.crash(token);
            }
            Action::Cut { token, node } => {
                spend(&mut self.state.cuts);
                self.cut(token, node);
            }
            Action::Reconnect { token, node } => self.reconnect(token, node),
        }
    }

    fn send_anything(&mut self, token: usize, node: usize, command: u8) {
        match Command::from_code(command) {
            Some(command) if command.is_yield() => self.send_yield(token, node, command),
            Some(command) => self.send(token, node, command),
            None => {}
        }
    }

    fn expire_share(&mut self, token: usize, node: usize) {
        spend(&mut self.state.expiries);
        let contents = self.node(node);
        self.node_mut(node).expire_share(token as u8);
        if contents.claims >> token & 1 == 0 {
            self.end_lease(token, node);
        }
    }

    /// Expires the key, and the lease of its owner. The expiry of a claim ends no lease: the client must not count a claim as a lease.
    fn expire_key(&mut self, node: usize) {
        spend(&mut self.state.expiries);
        let contents = self.node(node);
        self.node_mut(node).expire();
        if let Some(owner) = contents.owner.filter(|_| !contents.is_claim) {
            self.end_lease(usize::from(owner), node);
        }
    }
}

fn spend(budget: &mut u8) {
    if *budget != UNBOUNDED {
        *budget -= 1;
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = |code| Command::from_code(code).map_or("?", Command::name);
        let reply = |code| Reply::from_code(code).map_or("?", Reply::name);
        let late = |noticed| if noticed { "" } else { " (dead connections not yet noticed)" };
        match *self {
            Self::Execute { token, node, command: code, noticed } => {
                write!(f, "node {node} executes {} of t{token}{}", command(code), late(noticed))
            }
            Self::ExecuteStale { token, node, command: code, noticed } => {
                write!(f, "node {node} executes stale {} of t{token}{}", command(code), late(noticed))
            }
            Self::Fail { token, node, command: code, .. } => {
                write!(f, "node {node} executes {} of t{token} and answers with an error", command(code))
            }
            Self::Forge { token, node, forged } => {
                write!(f, "a forged message of node {node} about t{token}: {forged:?}")
            }
            Self::Lose { token, node } => write!(f, "what t{token} sent to node {node} before is lost"),
            Self::Deliver { token, node, reply: code } => {
                write!(f, "t{token} receives {} from node {node}", reply(code))
            }
            Self::Poll { token, node } => write!(f, "t{token} polls node {node}"),
            Self::Renew { token, node } => write!(f, "t{token} renews at node {node}"),
            Self::WinBack { token, node } => write!(f, "t{token} asks node {node} for its vote"),
            Self::Send { token, node, command: code } => write!(f, "t{token} sends {} to node {node}", command(code)),
            Self::Leave { token } => write!(f, "t{token} leaves"),
            Self::Reuse { token } => write!(f, "t{token} is used again"),
            Self::ExpireKey { node } => write!(f, "the key of node {node} expires"),
            Self::ExpireShare { token, node } => write!(f, "the share of t{token} at node {node} expires"),
            Self::ExpireQueue { node } => write!(f, "the queue of node {node} expires"),
            Self::Crash { token } => write!(f, "the client of t{token} crashes"),
            Self::Cut { token, node } => write!(f, "the connection of t{token} to node {node} breaks"),
            Self::Reconnect { token, node } => write!(f, "t{token} connects to node {node} again"),
        }
    }
}
