//! A candidate with the answers that it waits for, and those who wait for it.

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
    /// The call that has the lock, if one has.
    pub(super) present: Option<Present>,
    /// The answers that are still to come, for each node in the order of its commands.
    answers: Box<[Queue<Pending>]>,
    /// Those who want to know when the lock is lost.
    pub(super) watchers: LossWatchers,
    /// The task to wake when a wake-up came from a node that it has not foreseen.
    pub(super) sleeper: Option<Sleeper>,
    /// Held while somebody waits for the answers to an extension.
    extending: Option<Arc<Mutex<()>>>,
    rare: Option<Box<Rare>>,
}

/// What few locks ever have. Boxed: there are many locks.
#[derive(Default)]
pub(super) struct Rare {
    /// Admits calls in the body of the present call to views of the lock, one at a time.
    pub(super) views: Option<Arc<Entrance>>,
    /// The turn that ended after the lock was lost, with the cause, if others relied on that turn.
    pub(super) lost_turn: Option<(u32, LossCause)>,
    /// The calls that have the lock together, if several may.
    pub(super) members: Option<Members>,
    /// Who has asked last whether a body runs.
    pub(super) asker: Option<Asker>,
    /// The span of the present call, if anybody wants to see it.
    pub(super) span: Option<Arc<Span>>,
    /// What has become of releases while they were sent.
    pub(super) untold: Vec<Untold>,
    /// Whether somebody may want to hear when the token ends, because it breaks the lock.
    pub(super) says_that_it_ends: bool,
    /// The token that stands in the place of this one, by the last notification that the lock is broken.
    pub(super) revoked_by: Option<OwnerToken>,
    /// Whether somebody has given a permit back since it was asked who has one.
    pub(super) is_freed: bool,
    /// Whether it stands in the turnstile once more, for votes that its permit lacks.
    pub(super) comes_back: bool,
    /// Those who have permits, as the calls have counted them that stood in a turnstile with the token.
    pub(super) counted: Option<Counted>,
    /// What goes with the token from call to call, and ends after it.
    pub(super) companion: Option<Companion>,
}

/// A token whose call does not wait, and wants to know whether the lock is idle.
pub(super) struct Asker {
    pub(super) token: OwnerToken,
    /// The number of the node by which it has asked.
    pub(super) index: usize,
    /// Whether it was told that a body runs.
    pub(super) is_told: bool,
}

/// A task that waits with a token.
pub(super) struct Sleeper {
    pub(super) waker: Waker,
    /// When it goes on by itself.
    pub(super) until: Instant,
}

impl Sleeper {
    pub(super) fn wake(self) {
        self.waker.wake();
    }
}

/// Sends what a candidate wants to be sent at `now`, and keeps the answers for it.
pub(super) struct Sender<'a> {
    shared: &'a Shared,
    subject: &'a Arc<Subject>,
    /// As what the nodes are asked for the lock.
    mode: Mode,
    answers: &'a mut [Queue<Pending>],
    rare: &'a mut Option<Box<Rare>>,
    now: Instant,
    /// The same for all commands that are sent together.
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

    /// Held while somebody waits for the answers to an extension. Made when it is asked for: most locks are extended by the
    /// watchdog alone, which waits for nothing.
    pub(super) fn extending(&mut self) -> Arc<Mutex<()>> {
        Arc::clone(self.extending.get_or_insert_default())
    }

    /// What few locks ever have; made when it is asked for.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The calls that have the lock together, if several may.
    pub(super) fn members(&mut self) -> Option<&mut Members> {
        self.rare.as_mut()?.members.as_mut()
    }

    pub(super) fn asker(&mut self) -> Option<&mut Asker> {
        self.rare.as_mut()?.asker.as_mut()
    }

    /// The span of the present call, if anybody wants to see it.
    pub(super) fn span(&self) -> Option<Arc<Span>> {
        self.rare.as_ref()?.span.clone()
    }

    pub(super) fn take_span(&mut self) -> Option<Arc<Span>> {
        self.rare.as_mut()?.span.take()
    }

    /// What admits calls to views of the lock, for those that are there by now and no others.
    pub(super) fn take_views(&mut self) -> Option<Arc<Entrance>> {
        self.rare.as_mut()?.views.take()
    }

    /// Returns the cause if the lock was lost before that turn ended.
    pub(super) fn loss_of_turn(&self, turn: u32) -> Option<LossCause> {
        let (lost, cause) = self.rare.as_ref()?.lost_turn.as_ref()?;
        (*lost == turn).then(|| cause.clone())
    }

    /// What goes with the token from call to call, if anything does.
    pub(super) fn take_companion(&mut self) -> Option<Companion> {
        self.rare.as_mut()?.companion.take()
    }

    /// Whether there is anything that few locks ever have.
    pub(super) const fn has_rare(&self) -> bool {
        self.rare.is_some()
    }

    /// Whether somebody may want to hear when the token ends, because it breaks the lock.
    pub(super) fn says_that_it_ends(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.says_that_it_ends)
    }

    /// The token of the breaker, if the lock is said to be broken.
    pub(super) fn revoked_by(&self) -> Option<OwnerToken> {
        self.rare.as_ref()?.revoked_by
    }

    /// What is to be told when the mutex is free, if anything is.
    pub(super) fn take_untold(&mut self) -> Option<Vec<Untold>> {
        let untold = &mut self.rare.as_mut()?.untold;
        if untold.is_empty() { None } else { Some(std::mem::take(untold)) }
    }

    /// The candidate, and what sends for it.
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

    /// The task that waits, if it has something to do before it goes on by itself.
    pub(super) fn due_sleeper(&mut self, now: Instant) -> Option<Sleeper> {
        let Self { candidate, sleeper, .. } = self;
        sleeper.take_if(|sleeper| candidate.has_event_before(sleeper.until, now))
    }

    /// Takes in the answers that are here.
    ///
    /// Without asking to be woken: whoever waits for an answer is not forgotten. And without tokio's cooperative budget,
    /// by which a task that looks at many answers is told that they are not here yet.
    pub(super) fn take_in(&mut self, clock: Clock) {
        self.take_in_all(clock, Pending::try_answer);
    }

    /// The same, and the task of `cx` is woken for the next one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock) {
        self.take_in_all(clock, |pending| match pending.poll_answer(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        });
    }

    /// Takes in the answers that `answer` gets out of what is still to come.
    fn take_in_all(&mut self, clock: Clock, mut answer: impl FnMut(&mut Pending) -> Option<Answer>) {
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
            // A node that says "not yours" leaves the older leases of others, or none: bodies have set their timers.
            self.call_if_shorter_than(counted_on);
        }
    }

    /// The answer to a command that has gone out to node number `index` will come in this way.
    #[cfg(test)]
    pub(super) fn expect(&mut self, index: usize, answer: Pending) {
        self.answers[index].push(answer);
    }

    /// The clock of node number `index` went ahead by at most `step`.
    pub(super) fn clock_stepped(&mut self, index: usize, step: Duration, clock: Clock) {
        let counted_on = self.candidate.held_until();
        self.take_in(clock);
        self.candidate.clock_stepped(index, step);
        self.call_if_shorter_than(counted_on);
    }

    /// A notification by node number `index` says that the lock is broken and that the token `by` is stored in its place.
    pub(super) fn revoked(&mut self, index: usize, by: OwnerToken, now: Instant) {
        let counted_on = self.candidate.held_until();
        self.rare().revoked_by = Some(by);
        self.candidate.revoked(index, now);
        self.call_if_shorter_than(counted_on);
    }

    /// Wakes those who rely on the lock, if it is held for less time than was `counted_on`.
    fn call_if_shorter_than(&mut self, counted_on: Option<Instant>) {
        if counted_on.is_some() && self.candidate.held_until() < counted_on {
            self.watchers.call();
        }
    }
}

/// The same `subject`, as one of those who share the lock if that is so by now.
pub(super) fn as_asked(subject: Arc<Subject>, mode: Mode) -> Arc<Subject> {
    if subject.mode == mode { subject } else { subject.lowered() }
}

impl Sender<'_> {
    /// The same ballot is proposed as was before, if one was.
    pub(super) const fn propose(&mut self, ballot: Option<Ballot>) {
        self.ballot = ballot;
    }

    /// The ballot that was proposed, if one was drawn.
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

    /// The ballot that is proposed; `None` when there are no larger ones, and nodes say nothing of a number then.
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

    /// Sends the last command to node number `index`, to be settled in the background.
    pub(super) fn release(&mut self, index: usize, last: LastCommand) {
        self.forget_answers(index);
        let subject = as_asked(Arc::clone(self.subject), self.mode);
        let untold = held_back::hold_back(|| self.shared.release(index, subject, last));
        if !untold.is_empty() {
            self.rare.get_or_insert_default().untold.extend(untold);
        }
    }

    /// The answers of a node that are still to come are dropped before its last command is sent; see
    /// `protocol/candidate/ending`.
    pub(super) fn forget_answers(&mut self, index: usize) {
        if let Some(answers) = self.answers.get_mut(index) {
            answers.clear();
        }
    }
}
