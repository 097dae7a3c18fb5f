//! Scripts that end with an error after they have written: a server that runs out of memory, or that lacks a permission.

use super::message::{Command, Reply};
use super::state::Phase;
use super::world::World;
use crate::rule::Rule;

impl World<'_> {
    /// Returns `true` if `command` is a script whose failure the client must handle. A failed `RELEASE` is repeated, as after
    /// a cut.
    pub(super) fn may_fail(&self, token: usize, command: u8) -> bool {
        let command = Command::from_code(command);
        let is_script = command.is_some_and(|command| !matches!(command, Command::SetNx | Command::Release));
        is_script && self.state.failures > 0 && matches!(self.phase(token), Phase::Wait | Phase::Hold)
    }

    /// Executes the oldest command of `token`, and answers with an error. If the client is waiting, the node no longer counts. With
    /// `keeps_vote`, the error arrives at once, or after the client has acquired the lock: then it changes nothing. The error of a yield
    /// always arrives, because the yield voids every answer before its own.
    pub(super) fn fail_next(&mut self, token: usize, node: usize, keeps_vote: bool) {
        self.state.failures -= 1;
        let Some(command) = Command::from_code(self.link(token, node).commands.first()) else { return };
        self.link_mut(token, node).commands.pop();
        self.execute(node, token, command);
        let reply = if command.is_yield() { Reply::Yielded } else { Reply::No };
        if command.is_yield() || !keeps_vote && self.phase(token) == Phase::Wait {
            self.link_mut(token, node).replies.push(reply.code());
        }
    }

    /// Records that the client sends its first commands. If the rule is off, the client releases only nodes with an answer
    /// that is not an error.
    pub(super) fn expect_answers(&mut self, token: usize) {
        let may_forget = !self.keeps(Rule::FailedScriptsAreReleased);
        (0..self.scenario.nodes).for_each(|node| self.link_mut(token, node).has_only_failed = may_forget);
    }
}
