//! A single client, for a comparison of its state and commands with the client of the code.
//!
//! Begin with one of the ways to start. Then, in any order, let a node answer the oldest command, push,
//! lose its connection or get a new one, let a key expire, poll, or leave. After each step, compare [`Client::phase`],
//! the knowledge of each node, and the unanswered commands.

use super::message::{Command, Reply};
use super::scenario::Scenario;
use super::state::{Phase, State};
use super::world::World;
use crate::fifo::Fifo;
use crate::rule::Rule;

/// The client of one token. The actions of smaller and larger tokens reach it as replies and pushes.
#[derive(Debug, Clone)]
pub struct Client {
    scenario: Scenario,
    state: State,
}

/// Knowledge of a client about one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent bits of the protocol")]
pub struct Known {
    /// `true` if the node keeps the lock for the token, as a claim or as a lease.
    pub vote: bool,
    /// `true` if the node provably keeps the lock for the token: its lease is not over.
    pub lease: bool,
    /// `true` after a yield was cut off: the node never counts again.
    pub tainted: bool,
    /// `true` while there is no connection.
    pub down: bool,
}

/// Token of the client. The smaller token before it is the detached one.
const TOKEN: usize = 1;

impl Client {
    /// Returns a client that has sent nothing to any of `nodes` nodes, with all rules except `without`. With `adopts`, it takes the
    /// place of the detached token.
    #[must_use]
    pub fn new(nodes: usize, adopts: bool, without: Option<Rule>) -> Self {
        let scenario = Scenario { adopters: adopts.into(), without, ..Scenario::new(nodes, TOKEN + 1) };
        Self { scenario, state: State::default() }
    }

    /// Sends a first try to all nodes, without a place in the queues.
    pub fn try_at_once(&mut self) {
        let command = if self.scenario.adopts(TOKEN) { Command::Adopt } else { Command::SetNx };
        self.change(|world| world.try_at_once(TOKEN, command));
    }

    /// Enters the queues of all nodes.
    pub fn wait(&mut self) {
        self.change(|world| world.wait(TOKEN));
    }

    /// Delivers the answer of `node` to the oldest command, which is `None` for a `RELEASE`.
    pub fn answer(&mut self, node: usize, reply: Option<Reply>) {
        self.change(|world| {
            world.link_mut(TOKEN, node).commands.pop();
            if let Some(reply) = reply {
                world.arrive(node, reply);
            }
        });
    }

    /// Delivers a push of `node`.
    pub fn push(&mut self, node: usize, push: Reply) {
        self.change(|world| world.arrive(node, push));
    }

    /// Fires the timer of a waiter: it asks `node` again, unless an answer is outstanding.
    pub fn poll(&mut self, node: usize) {
        self.change(|world| world.poll(TOKEN, node));
    }

    /// Asks `node` for a missing vote of a holder.
    pub fn win_back(&mut self, node: usize) {
        self.change(|world| world.send(TOKEN, node, Command::WinBack));
    }

    /// Expires the key of `node`, and with it the lease of the key.
    pub fn expire(&mut self, node: usize) {
        self.change(|world| world.end_lease(TOKEN, node));
    }

    /// Breaks the connection to `node`. The outcome of the commands on it remains unknown.
    pub fn cut(&mut self, node: usize) {
        self.change(|world| {
            world.cut(TOKEN, node);
            world.link_mut(TOKEN, node).stale = Fifo::default();
        });
    }

    /// Makes a new connection to `node`.
    pub fn reconnect(&mut self, node: usize) {
        self.change(|world| world.reconnect(TOKEN, node));
    }

    /// Releases the lock, or gives up waiting for it.
    pub fn leave(&mut self) {
        self.change(|world| world.leave(TOKEN));
    }

    /// Returns the phase of the client.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.state.phases[TOKEN]
    }

    /// Returns its knowledge about `node`.
    #[must_use]
    pub fn known(&self, node: usize) -> Known {
        let link = self.state.columns[node].links[TOKEN];
        Known { vote: link.vote, lease: link.lease, tainted: link.tainted, down: link.down }
    }

    /// Returns the unanswered commands to `node`, the oldest first. Without a connection, these are the commands for
    /// the next one.
    #[must_use]
    pub fn unanswered(&self, node: usize) -> Vec<Command> {
        let link = self.state.columns[node].links[TOKEN];
        link.commands.iter().filter_map(Command::from_code).collect()
    }

    fn change(&mut self, change: impl FnOnce(&mut World<'_>)) {
        let mut world = World::new(&self.scenario, &self.state);
        change(&mut world);
        self.state = world.state;
    }
}

impl World<'_> {
    fn arrive(&mut self, node: usize, reply: Reply) {
        self.link_mut(TOKEN, node).replies.push(reply.code());
        self.deliver(TOKEN, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Known = Known { vote: false, lease: false, tainted: false, down: false };

    #[test]
    fn yielding_client_counts_the_node_after_a_new_grant() {
        let mut client = Client::new(3, false, None);
        client.wait();
        client.answer(0, Some(Reply::No));
        client.answer(1, Some(Reply::LeaseSmaller));
        assert_eq!((client.known(1), client.unanswered(1)), (NOTHING, vec![Command::Yield]));
        client.answer(1, Some(Reply::Yielded));
        for (node, phase) in [(1, Phase::Wait), (0, Phase::Wait)] {
            client.push(node, Reply::Granted);
            assert_eq!((client.known(node), client.phase()), (Known { vote: true, ..NOTHING }, phase));
        }
        assert_eq!(
            [0, 1, 2].map(|node| client.unanswered(node)),
            [vec![Command::Extend], vec![Command::Extend], vec![Command::Acquire]]
        );
        client.answer(0, Some(Reply::Lease));
        client.answer(1, Some(Reply::Lease));
        assert_eq!(client.phase(), Phase::Hold);
        client.expire(1);
        assert_eq!(client.phase(), Phase::Left);
        assert_eq!(client.unanswered(2), [Command::Acquire, Command::Release]);
    }

    #[test]
    fn cut_yield_taints_the_node_and_a_cut_release_is_sent_again() {
        let mut client = Client::new(3, false, None);
        client.wait();
        client.answer(0, Some(Reply::LeaseSmaller));
        client.cut(0);
        assert_eq!(client.known(0), Known { tainted: true, down: true, ..NOTHING });
        client.leave();
        client.cut(1);
        client.reconnect(1);
        assert_eq!(client.unanswered(1), [Command::Release]);
        client.answer(1, None);
        assert_eq!(client.unanswered(1), []);
    }

    #[test]
    fn refused_adopter_does_not_wait() {
        let mut client = Client::new(1, true, None);
        client.try_at_once();
        assert_eq!(client.unanswered(0), [Command::Adopt]);
        client.answer(0, Some(Reply::No));
        assert_eq!((client.phase(), client.unanswered(0)), (Phase::Left, vec![Command::Release]));
    }
}
