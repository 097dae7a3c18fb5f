//! Commands that a node has not answered yet.

use crate::node::Pending;
use crate::protocol::command::{Answer, Verb};
use crate::time::clock::Instant;
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) verb: Verb,
    pub(crate) sent: Instant,
    /// Which of the commands about the token were sent together.
    pub(crate) round: u64,
    /// The lease end that a positive answer proves.
    pub(crate) end: Instant,
    pub(crate) answer: Pending,
    /// A yield was sent after it: a positive answer proves nothing any more.
    pub(crate) is_void: bool,
    /// A claim came before its answer: which of them is newer is not known.
    pub(crate) is_overtaken: bool,
}

impl InFlight {
    pub(crate) const fn new(verb: Verb, sent: Instant, end: Instant, answer: Pending) -> Self {
        Self { verb, sent, round: 0, end, answer, is_void: false, is_overtaken: false }
    }
}

/// In the order of the connection, which is the order of the answers.
#[derive(Debug)]
pub(crate) struct Queue {
    // Without contention there is one at a time, and no need of memory for more.
    first: Option<InFlight>,
    rest: VecDeque<InFlight>,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, sent: InFlight) {
        match self.first {
            None => self.first = Some(sent),
            Some(_) => self.rest.push_back(sent),
        }
    }

    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<(InFlight, Answer)> {
        let Some(first) = &mut self.first else { return Poll::Pending };
        let answer = ready!(first.answer.poll_answer(cx));
        match std::mem::replace(&mut self.first, self.rest.pop_front()) {
            Some(sent) => Poll::Ready((sent, answer)),
            None => Poll::Pending,
        }
    }

    /// The oldest, if it is answered. Whoever waits for it is not forgotten.
    pub(crate) fn try_answer(&mut self) -> Option<(InFlight, Answer)> {
        let answer = self.first.as_mut()?.answer.try_answer()?;
        std::mem::replace(&mut self.first, self.rest.pop_front()).map(|sent| (sent, answer))
    }

    pub(crate) fn any(&self, is_wanted: impl Fn(&InFlight) -> bool) -> bool {
        self.first.iter().chain(&self.rest).any(is_wanted)
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// When the oldest was sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.first.as_ref().map(|sent| sent.sent)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    pub(crate) fn void(&mut self) {
        self.all().for_each(|sent| sent.is_void = true);
    }

    pub(crate) fn overtake(&mut self) {
        self.all().for_each(|sent| sent.is_overtaken = true);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}
