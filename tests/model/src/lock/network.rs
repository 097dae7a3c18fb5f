//! The network between clients and nodes: order per connection, pushes, cuts, crashes and stale commands.

use super::message::{Command, Reply};
use super::node::Notice;
use super::state::{Link, Phase};
use super::world::World;
use crate::fifo::Fifo;
use crate::rule::Rule;

/// Number of replies and pushes in transit, beyond which a notice is dropped. The next `ACQUIRE` triggers another notice.
const MOST_REPLIES: u32 = 4;

impl World<'_> {
    /// Appends `command` to the connection, if there is one.
    pub(crate) fn send(&mut self, token: usize, node: usize, command: Command) {
        let link = self.link_mut(token, node);
        if !link.down {
            link.commands.push(command.code());
        }
    }

    /// Runs `command` of `token` at the node. Returns `None` if the command has no answer.
    pub(crate) fn execute(&mut self, node: usize, token: usize, command: Command) -> Option<Reply> {
        let (mut contents, without, sharing) = (self.node(node), self.scenario.without, self.scenario.sharing);
        let publish = &mut |to: u8, notice| self.publish(node, to.into(), notice);
        let reply = contents.execute(token as u8, command.verb(), sharing, without, publish);
        if !self.scenario.tells_claims() {
            (contents.is_claim, contents.claims) = (false, 0);
        }
        *self.node_mut(node) = contents;
        Reply::to(command, reply)
    }

    /// Executes the oldest command of `token` at the node.
    pub(crate) fn execute_next(&mut self, token: usize, node: usize) {
        let Some(command) = Command::from_code(self.link(token, node).commands.first()) else { return };
        self.link_mut(token, node).commands.pop();
        self.link_mut(token, node).has_only_failed = false;
        if let Some(reply) = self.execute(node, token, command) {
            self.answer(token, node, reply);
        }
    }

    /// Executes the oldest command from the broken connection at the node.
    pub(crate) fn execute_stale(&mut self, token: usize, node: usize) {
        let Some(command) = Command::from_code(self.link(token, node).stale.first()) else { return };
        self.link_mut(token, node).stale.pop();
        self.execute(node, token, command);
    }

    /// Drops the commands that were not executed.
    pub(crate) fn lose(&mut self, token: usize, node: usize) {
        let is_crashed = self.phase(token) == Phase::Crashed;
        let link = self.link_mut(token, node);
        link.stale = Fifo::default();
        if is_crashed {
            link.commands = Fifo::default();
        }
    }

    fn answer(&mut self, token: usize, node: usize, reply: Reply) {
        let reply = self.without_difference(token, reply);
        if self.phase(token).is_alive() && !self.changes_nothing(token, node, reply) {
            self.link_mut(token, node).replies.push(reply.code());
        }
    }

    /// Merges replies that have the same effect on the client. A client that never yields ignores smaller tokens.
    /// A client without rules ignores the outcome of a `YIELD`, because its lease is void in both cases.
    fn without_difference(&self, token: usize, reply: Reply) -> Reply {
        let is_free = self.scenario.free.is_some();
        match reply {
            Reply::LeaseSmaller if is_free || self.phase(token) == Phase::Hold => Reply::Lease,
            Reply::Kept if is_free => Reply::Yielded,
            other => other,
        }
    }

    /// Returns `true` if `reply` never has an effect on the client, at any time of its arrival. Such replies are not sent.
    fn changes_nothing(&self, token: usize, node: usize, reply: Reply) -> bool {
        let (link, phase) = (self.link(token, node), self.phase(token));
        let is_next = link.replies.is_empty();
        let will_be_void = link.has_unexecuted_yield() && self.keeps(Rule::YieldVoids);
        match reply {
            Reply::No => is_next && !link.vote && !link.lease && phase != Phase::Fast,
            Reply::Lease if self.scenario.free.is_some() => is_next && link.lease || will_be_void,
            Reply::Lease => is_next && link.vote && link.lease && phase != Phase::Fast || will_be_void,
            Reply::LeaseSmaller => will_be_void,
            _ => false,
        }
    }

    /// Publishes a notice about `token`. Returns `true` if the node counts a receiver.
    pub(crate) fn publish(&mut self, node: usize, token: usize, notice: Notice) -> bool {
        if !self.is_heard(node, token) {
            return !self.noticed;
        }
        match notice {
            Notice::Granted if node < self.scenario.proves => self.push(node, token, Reply::Proven),
            Notice::Granted => self.push(node, token, Reply::Granted),
            // Only waiters yield, and only to smaller tokens. A holder ignores the notice.
            Notice::Contended { by } if self.phase(token) == Phase::Left || usize::from(by) < token => {
                self.push(node, token, Reply::Contended);
            }
            Notice::Contended { .. } => {}
            Notice::Wanted { by } => self.push(node, token, Reply::Wanted(by)),
        }
        true
    }

    fn is_heard(&self, node: usize, token: usize) -> bool {
        self.phase(token) != Phase::Crashed && !self.link(token, node).down
    }

    pub(crate) fn push(&mut self, node: usize, token: usize, push: Reply) {
        if self.phase(token) == Phase::Left {
            self.release_unknown(token, node);
        } else if (self.scenario.free.is_none() || self.scenario.proves > 0 && push.is_claim())
            && !self.is_needless(node, token, push)
        {
            self.link_mut(token, node).replies.push(push.code());
        }
    }

    /// Returns `true` for a notice without an effect, and for a repetition of the previous notice.
    fn is_needless(&self, node: usize, token: usize, push: Reply) -> bool {
        let replies = self.link(token, node).replies;
        let is_again = replies.last() == push.code() || replies.len() >= MOST_REPLIES;
        !push.is_claim() && (self.phase(token) == Phase::Hold || is_again)
    }

    /// Handles a push to a process that no longer knows the token. Its transit and the transit of the `RELEASE` back are
    /// one delay, because nothing else depends on the moment in between.
    fn release_unknown(&mut self, token: usize, node: usize) {
        if self.keeps(Rule::UnknownTokensAreReleased) && !self.link(token, node).is_releasing() {
            self.send(token, node, Command::Release);
        }
    }

    /// Breaks the connection. Commands in transit may still be executed, and replies are lost.
    pub(crate) fn cut(&mut self, token: usize, node: usize) {
        let phase = self.phase(token);
        let link = self.link(token, node);
        let mut broken = Link { stale: link.stale, down: true, ..link };
        link.commands.iter().for_each(|command| broken.stale.push(command));
        (broken.commands, broken.replies) = (Fifo::default(), Fifo::default());
        broken.tainted |= phase.is_alive() && link.has_yield_out() && self.keeps(Rule::CutYieldTaints);
        broken.vote &= phase == Phase::Hold;
        broken.claim &= broken.vote;
        broken.has_only_failed = false;
        if link.is_releasing() && self.keeps(Rule::ReleasesAreSeenThrough) {
            broken.commands.push(Command::Release.code());
        }
        *self.link_mut(token, node) = broken;
        self.after_cut(token);
    }

    pub(crate) fn reconnect(&mut self, token: usize, node: usize) {
        self.link_mut(token, node).down = false;
        match self.phase(token) {
            Phase::Wait => self.send(token, node, Command::Acquire),
            Phase::Hold => self.ask_as_holder(token, node),
            _ => {}
        }
    }

    /// Ends the client. Its connections close, or are found dead, after any time.
    pub(crate) fn crash(&mut self, token: usize) {
        self.state.phases[token] = Phase::Crashed;
        self.forget(token);
    }
}
