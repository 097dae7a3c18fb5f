//! Candidate with its outstanding answers, and the tasks that wait for it.

use super::entrance::Entrance;
use super::loss_watchers::{Companion, LossWatchers};
use super::members::Members;
use super::present::Present;
use crate::client::shared::Shared;
use crate::error::LossCause;
use crate::lock::{Mode, OwnerToken};
use crate::node::Pending;
use crate::observe::held_back::{self, Untold};
use crate::protocol::candidate::{Candidate, Counted, Fence, Outgoing, Queue};
use crate::protocol::command::{Answer, Command, Subject};
use crate::protocol::last_command::LastCommand;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::{Clock, Instant};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Mutex;
use tracing::Span;

pub(super) struct State {
    pub(super) candidate: Candidate,
    /// Call that has the lock, if there is one.
    pub(super) present: Option<Present>,
    /// Outstanding answers, for each node in the order of its commands.
    answers: Box<[Queue<Pending>]>,
    /// Watchers of a loss of the lock.
    pub(super) watchers: LossWatchers,
    /// Task to wake when an unforeseen wake-up of a node arrives.
    pub(super) sleeper: Option<Sleeper>,
    /// Locked while a caller waits for the answers to an extension.
    extending: Option<Arc<Mutex<()>>>,
    rare: Option<Box<Rare>>,
}

/// Data that few locks have. Boxed: there are many locks.
#[derive(Default)]
pub(super) struct Rare {
    /// Admits calls in the body of the present call to views of the lock, one at a time.
    pub(super) views: Option<Arc<Entrance>>,
    /// Turn that ended after the lock was lost, with the cause, if others relied on that turn.
    pub(super) lost_turn: Option<(u32, LossCause)>,
    /// Calls that share the lock, if several may.
    pub(super) members: Option<Members>,
    /// Token that was the last to ask if a body runs.
    pub(super) asker: Option<Asker>,
    /// Span of the present call, if spans are enabled.
    pub(super) span: Option<Arc<Span>>,
    /// Outcomes of releases that are logged after the mutex is free.
    pub(super) untold: Vec<Untold>,
    /// Set if a breaking process may wait for the end of the token.
    pub(super) says_that_it_ends: bool,
    /// Token that has the place of this one, according to the last break message.
    pub(super) revoked_by: Option<OwnerToken>,
    /// Set if a permit was given back since the last question.
    pub(super) is_freed: bool,
    /// Set while the permit returns to the admission lock for its missing votes.
    pub(super) comes_back: bool,
    /// Permit holders that were counted under the admission lock with this token.
    pub(super) counted: Option<Counted>,
    /// Data that passes with the token from call to call, and is dropped after it.
    pub(super) companion: Option<Companion>,
}

/// Token whose call does not wait, and asks if the lock is idle.
pub(super) struct Asker {
    pub(super) token: OwnerToken,
    /// Number of the node through which it has asked.
    pub(super) index: usize,
    /// Set after it was told that a body runs.
    pub(super) is_told: bool,
}

/// Task that waits with a token.
pub(super) struct Sleeper {
    pub(super) waker: Waker,
    /// Time at which it continues by itself.
    pub(super) until: Instant,
}

impl Sleeper {
    pub(super) fn wake(self) {
        self.waker.wake();
    }
}

/// Sender of a candidate's commands at `now`, which keeps their answers.
pub(super) struct Sender<'a> {
    shared: &'a Shared,
    subject: &'a Arc<Subject>,
    /// Mode of the commands.
    mode: Mode,
    answers: &'a mut [Queue<Pending>],
    rare: &'a mut Option<Box<Rare>>,
    now: Instant,
    /// Ballot of all commands that are sent together.
    ballot: Option<Ballot>,
}

impl State {
    pub(super) fn new(candidate: Candidate, nodes: usize) -> Self {
        let answers = std::iter::repeat_with(Queue::new).take(nodes).collect();
        Self {
            candidate,
            present: None,
            answers,
            watchers: LossWatchers::default(),
            sleeper: None,
            extending: None,
            rare: None,
        }
    }

    /// Returns the mutex for callers that wait for the answers to an extension. It is created on demand, because most
    /// locks are only extended by the watchdog, which does not wait.
    pub(super) fn extending(&mut self) -> Arc<Mutex<()>> {
        Arc::clone(self.extending.get_or_insert_default())
    }

    /// Returns the rarely used data, and creates it on demand.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns the calls that share the lock, if several may.
    pub(super) fn members(&mut self) -> Option<&mut Members> {
        self.rare.as_mut()?.members.as_mut()
    }

    pub(super) fn asker(&mut self) -> Option<&mut Asker> {
        self.rare.as_mut()?.asker.as_mut()
    }

    /// Returns the span of the present call, if spans are enabled.
    pub(super) fn span(&self) -> Option<Arc<Span>> {
        self.rare.as_ref()?.span.clone()
    }

    pub(super) fn take_span(&mut self) -> Option<Arc<Span>> {
        self.rare.as_mut()?.span.take()
    }

    /// Removes and returns the entrance to views of the lock, with its present users and no later ones.
    pub(super) fn take_views(&mut self) -> Option<Arc<Entrance>> {
        self.rare.as_mut()?.views.take()
    }

    /// Returns the cause if the lock was lost before that turn ended.
    pub(super) fn loss_of_turn(&self, turn: u32) -> Option<LossCause> {
        let (lost, cause) = self.rare.as_ref()?.lost_turn.as_ref()?;
        (*lost == turn).then(|| cause.clone())
    }

    /// Removes and returns the data that passes with the token from call to call.
    pub(super) fn take_companion(&mut self) -> Option<Companion> {
        self.rare.as_mut()?.companion.take()
    }

    /// Returns `true` if the rarely used data exists.
    pub(super) const fn has_rare(&self) -> bool {
        self.rare.is_some()
    }

    /// Returns `true` if a breaking process may wait for the end of the token.
    pub(super) fn says_that_it_ends(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.says_that_it_ends)
    }

    /// Returns the token of the breaking process, if a break was announced.
    pub(super) fn revoked_by(&self) -> Option<OwnerToken> {
        self.rare.as_ref()?.revoked_by
    }

    /// Removes and returns the outcomes to log after the mutex is free.
    pub(super) fn take_untold(&mut self) -> Option<Vec<Untold>> {
        let untold = &mut self.rare.as_mut()?.untold;
        if untold.is_empty() { None } else { Some(std::mem::take(untold)) }
    }

    /// Returns the candidate, and its sender.
    pub(super) fn parts<'a>(
        &'a mut self,
        shared: &'a Shared,
        subject: &'a Arc<Subject>,
        now: Instant,
    ) -> (&'a mut Candidate, Sender<'a>) {
        let Self { candidate, answers, rare, .. } = self;
        let mode = if candidate.is_lowered() { Mode::Shared } else { subject.mode };
        (candidate, Sender { shared, subject, mode, answers, rare, now, ballot: None })
    }

    /// Returns the waiting task, if it has an action due before it continues by itself.
    pub(super) fn due_sleeper(&mut self, now: Instant) -> Option<Sleeper> {
        let Self { candidate, sleeper, .. } = self;
        sleeper.take_if(|sleeper| candidate.has_event_before(sleeper.until, now))
    }

    /// Processes the arrived answers.
    ///
    /// It registers no waker, so a task that waits for an answer is not forgotten. It also bypasses tokio's cooperative
    /// budget, under which a task that polls many answers sees them as missing.
    pub(super) fn take_in(&mut self, clock: Clock) {
        self.process_replies_from(clock, Pending::try_answer);
    }

    /// Processes the arrived answers, and registers the task of `cx` for the next one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock) {
        self.process_replies_from(clock, |pending| match pending.poll_answer(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        });
    }

    /// Processes the answers that `answer` gets from the outstanding ones.
    fn process_replies_from(&mut self, clock: Clock, mut answer: impl FnMut(&mut Pending) -> Option<Answer>) {
        let counted_on = if self.watchers.is_empty() { None } else { self.candidate.held_until() };
        let mut is_any = false;
        for (index, answers) in self.answers.iter_mut().enumerate() {
            while let Some(answer) = answers.first_mut().and_then(&mut answer) {
                answers.pop();
                self.candidate.answered(index, answer, clock.now());
                is_any = true;
            }
        }
        if is_any {
            self.candidate.note_proof();
            // A node that denies the lock may shorten it to older leases of others, or end it: bodies have set their
            // timers.
            self.wake_watchers_if_shortened(counted_on);
        }
    }

    /// Registers the answer to a command that was sent to node number `index`.
    #[cfg(test)]
    pub(super) fn expect(&mut self, index: usize, answer: Pending) {
        self.answers[index].push(answer);
    }

    /// Records that the clock of node number `index` went ahead by at most `step`.
    pub(super) fn on_clock_step(&mut self, index: usize, step: Duration, clock: Clock) {
        let counted_on = self.candidate.held_until();
        self.take_in(clock);
        self.candidate.on_clock_step(index, step);
        self.wake_watchers_if_shortened(counted_on);
    }

    /// Handles a break message from node number `index`: the token `by` has the place of this one.
    pub(super) fn revoked(&mut self, index: usize, by: OwnerToken, now: Instant) {
        let counted_on = self.candidate.held_until();
        self.rare().revoked_by = Some(by);
        self.candidate.revoked(index, now);
        self.wake_watchers_if_shortened(counted_on);
    }

    /// Wakes the watchers of the lock, if it is held for less time than was `counted_on`.
    fn wake_watchers_if_shortened(&mut self, counted_on: Option<Instant>) {
        if counted_on.is_some() && self.candidate.held_until() < counted_on {
            self.watchers.call();
        }
    }
}

/// Returns `subject` in the present mode, which may be a downgraded one.
pub(super) fn as_asked(subject: Arc<Subject>, mode: Mode) -> Arc<Subject> {
    if subject.mode == mode { subject } else { subject.lowered() }
}

impl Sender<'_> {
    /// Proposes the given ballot again, if there is one.
    pub(super) const fn propose(&mut self, ballot: Option<Ballot>) {
        self.ballot = ballot;
    }

    /// Returns the ballot that was proposed, if one was drawn.
    pub(super) const fn proposed(&self) -> Option<Ballot> {
        self.ballot
    }

    /// Sends one command in the order of the connection, and keeps the place of its answer.
    pub(super) fn send(&mut self, Outgoing { index, verb, fence, other }: Outgoing) {
        let fence = fence.and_then(|fence| self.ballot(fence));
        if let (Some(node), Some(answers)) = (self.shared.nodes.get(index), self.answers.get_mut(index)) {
            let subject = other.map_or_else(|| Arc::clone(self.subject), |other| self.subject.naming(other));
            let subject = as_asked(subject, self.mode);
            answers.push(node.ask(Command { verb, fence, subject }, self.now));
        }
    }

    /// Returns the ballot to propose; `None` if there are no larger ones, in which case nodes reply without a number.
    fn ballot(&mut self, fence: Fence) -> Option<Ballot> {
        match fence {
            Fence::Known(number) => Some(Ballot::known(number)),
            Fence::New => {
                let draw = || self.shared.servers.ballots.draw_for(&self.subject.numbered_slots());
                self.ballot = self.ballot.or_else(draw);
                self.ballot
            }
        }
    }

    /// Sends the last command to node number `index`. Its answer is processed in the background.
    pub(super) fn release(&mut self, index: usize, last: LastCommand) {
        self.forget_answers(index);
        let subject = as_asked(Arc::clone(self.subject), self.mode);
        let untold = held_back::hold_back(|| self.shared.release(index, subject, last));
        if !untold.is_empty() {
            self.rare.get_or_insert_default().untold.extend(untold);
        }
    }

    /// Discards the outstanding answers of a node before its last command is sent; see `protocol/candidate/ending`.
    pub(super) fn forget_answers(&mut self, index: usize) {
        if let Some(answers) = self.answers.get_mut(index) {
            answers.clear();
        }
    }
}
