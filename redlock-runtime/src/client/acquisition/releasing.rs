//! Release of a token at every node that may know it; `protocol/candidate/ending` describes the steps.

use super::present::News;
use super::state::{Sender, Sleeper, State, as_asked};
use super::{Acquisition, ConfirmedRelease};
use crate::lock::Mode;
use crate::protocol::candidate::Phase;
use crate::protocol::command::Subject;
use crate::protocol::last_command::LastCommand;
use crate::time::clock::Instant;
use std::sync::Arc;

impl Acquisition {
    /// Releases the lock, or the place in the queues. The answers are processed in the background. Later calls do
    /// nothing.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        let companion = state.take_companion();
        let news = self.end(&mut state, in_background);
        let ended = Ended::of(&state);
        drop(state);
        drop(news);
        self.follow_up(ended);
        // Under no mutex, and after this token. A node that executes this release first refuses the permit request that
        // was sent behind the admission lock request.
        drop(companion);
    }

    /// Releases the lock. The caller can wait for the answers.
    pub(crate) fn release_confirmed(&self) -> ConfirmedRelease {
        let mut state = self.state();
        let lost = self.loss_error(&state);
        let mode = if state.candidate.is_lowered() { Mode::Shared } else { self.subject.mode };
        let subject = as_asked(Arc::clone(&self.subject), mode);
        let mut confirmed = ConfirmedRelease::new(&self.shared, &subject, lost, state.candidate.known_taken());
        let news = self.end(&mut state, |sender, index, last| {
            sender.forget_answers(index);
            confirmed.send(index, last);
        });
        let ended = Ended::of(&state);
        drop(state);
        drop(news);
        self.follow_up(ended);
        confirmed
    }

    /// Leaves the queues of the nodes, if the token waits there. Also releases the admission lock token of a permit that
    /// returns for votes, because no call has it.
    pub(crate) fn leave_queues(&self) {
        let mut state = self.state();
        let phase = state.candidate.phase();
        if phase == Phase::Waiting || self.stands_beside && phase != Phase::Ended {
            // No call has had the lock.
            self.end(&mut state, in_background);
            let ended = Ended::of(&state);
            let sleeper = state.sleeper.take();
            drop(state);
            sleeper.into_iter().for_each(Sleeper::wake);
            self.follow_up(ended);
        }
    }

    /// Ends the token, once: `send` is called for each node that may know it, with the last command.
    fn end(&self, state: &mut State, mut send: impl FnMut(&mut Sender<'_>, usize, LastCommand)) -> Option<Box<News>> {
        let news = if state.present.is_some() { self.end_present(state, "released", self.now()) } else { None };
        if !state.candidate.end() {
            return news;
        }
        state.watchers.call();
        state.take_in(self.shared.clock);
        let now = self.now();
        self.shared.hot_keys.give(self.key(), state.candidate.waiters(), now);
        if let Some(rest) = state.candidate.kept_for(now) {
            self.shared.kept_tokens.keep(*self.token(), now.after(rest), now);
        }
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.last_commands(now, |index, last| send(&mut sender, index, last));
        self.release_leftovers(state, now);
        news
    }

    /// Releases the detached token at nodes that have only some of its names. No other call can attach to it there.
    pub(super) fn release_leftovers(&self, state: &mut State, now: Instant) {
        let Some(detached) = &self.subject.other else { return };
        for index in state.candidate.take_leftovers() {
            self.shared.release(index, Arc::new(self.subject.under(**detached)), LastCommand::for_unknown_token(now));
        }
    }

    /// Performs the steps that must be done under no mutex, because they wake other tasks. A process that breaks the
    /// lock is notified that the body has stopped. After a cut command, the process listens for its late effects.
    fn follow_up(&self, Ended { says_so, was_cut }: Ended) {
        if was_cut {
            self.shared.listen();
        }
        let by = if says_so { self.shared.revocations.ended(self.token()) } else { Vec::new() };
        for by in by {
            // The breaking process knows one of the names.
            for (key, _) in self.subject.wanted() {
                self.shared.notify_stopped(&Subject::new(key.clone(), by));
            }
        }
    }

    /// Leaves the lock at the nodes that have it, for another worker.
    ///
    /// Notifications about waiters still arrive here, and must not release it.
    pub(crate) fn detach(&self) {
        let (mut state, now) = (self.state(), self.now());
        let news = self.end_present(&mut state, "detached", now);
        self.shared.kept_tokens.keep(*self.token(), now.after(state.candidate.detached_for()), now);
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.detach(now, |index, last| sender.release(index, last));
        let ended = Ended::of(&state);
        drop(state);
        drop(news);
        self.follow_up(ended);
    }
}

/// Remaining steps for a token that has ended.
struct Ended {
    /// Set if a breaking process may wait for the end.
    says_so: bool,
    was_cut: bool,
}

impl Ended {
    fn of(state: &State) -> Self {
        Self { says_so: state.says_that_it_ends(), was_cut: state.candidate.was_cut() }
    }
}

/// Sends a release for whose answer no caller waits.
fn in_background(sender: &mut Sender<'_>, index: usize, last: LastCommand) {
    sender.release(index, last);
}
