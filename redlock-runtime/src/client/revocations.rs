//! Locks that are being broken: by this process, and those of this process.

use crate::lock::OwnerToken;
use crate::protocol::command::Subject;
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many who say that they break one lock are told that its body has stopped, of more than that the latest. Smaller, somebody who
/// only says so keeps the answer from who does it; larger, more memory for whoever may publish.
const MOST: usize = 4;

/// Apart from the locks, of which there are many, since it is rare.
#[derive(Debug, Default)]
pub(crate) struct Revocations(Mutex<Tokens>);

/// Those who say that they break a lock, by the tokens that stand there instead.
type By = Vec<OwnerToken>;

/// Under one mutex, so that each of those who break a lock is told: by the end of its body, or at once when that is over.
#[derive(Debug, Default)]
struct Tokens {
    /// The tokens of this process under which locks stand that it breaks.
    ours: HashMap<OwnerToken, Standing>,
    /// The tokens of this process that are to say when they end: those whose locks somebody breaks, as is said, and those that
    /// another call has superseded, which no line names although their bodies may be at work.
    theirs: HashMap<OwnerToken, By>,
}

/// A token that has the place of a holder whose lock is broken.
#[derive(Debug)]
struct Standing {
    subject: Arc<Subject>,
    /// Answers are awaited, for which a command may be sent again.
    is_asked_for: bool,
    has_stopped: bool,
    /// Somebody breaks what stands there in turn.
    by: By,
    /// For how long it may stand there, as far as the nodes have said.
    left: Duration,
    /// Nothing stands under it any more.
    until: Instant,
}

/// A holder has stopped, before a token that has its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// Whether the token can be released: nothing can be sent behind that.
    pub(crate) is_free: bool,
    /// Who is to be told in turn.
    pub(crate) by: By,
}

impl Revocations {
    /// A lock that this process breaks stands under the token of `subject` from now on, and until then at the most.
    pub(crate) fn begin(&self, subject: &Arc<Subject>, until: Instant, now: Instant) {
        let mut tokens = self.tokens();
        tokens.ours.retain(|_, standing| now < standing.until);
        let (subject, by) = (Arc::clone(subject), By::new());
        let standing = Standing { subject, is_asked_for: false, has_stopped: false, by, left: Duration::ZERO, until };
        tokens.ours.insert(standing.subject.token, standing);
    }

    /// The nodes are asked to put `token` into the place of the holder, until [`asked`](Self::asked). `false` when that one has
    /// stopped.
    pub(crate) fn ask(&self, token: &OwnerToken) -> bool {
        let mut tokens = self.tokens();
        let standing = tokens.ours.get_mut(token).filter(|standing| !standing.has_stopped);
        standing.map(|standing| standing.is_asked_for = true).is_some()
    }

    /// A node says for how much longer `token` stands there.
    pub(crate) fn lasts(&self, token: &OwnerToken, left: Duration) {
        if let Some(standing) = self.tokens().ours.get_mut(token) {
            standing.left = standing.left.max(left);
        }
    }

    /// For how long `token` may stand at the nodes, as far as they have said.
    pub(crate) fn left(&self, token: &OwnerToken) -> Duration {
        self.tokens().ours.get(token).map_or(Duration::ZERO, |standing| standing.left)
    }

    /// No answer is awaited any more. Whether the holder before `token` has stopped meanwhile, so that it is to be released now.
    pub(crate) fn asked(&self, token: &OwnerToken) -> bool {
        let mut tokens = self.tokens();
        let standing = tokens.ours.get_mut(token);
        standing.is_some_and(|standing| std::mem::take(&mut standing.is_asked_for) && standing.has_stopped)
    }

    /// The holder before the token of `subject` says that it has stopped. `None` when that is no news.
    pub(crate) fn stopped(&self, subject: &Subject) -> Option<Stopped> {
        let mut tokens = self.tokens();
        let standing = tokens.ours.get_mut(&subject.token)?;
        // Anybody may publish it, and what is said of another key must not keep the true one from being heard.
        let is_news = standing.subject.key.name() == subject.key.name() && !standing.has_stopped;
        standing.has_stopped |= is_news;
        is_news.then(|| Stopped { is_free: !standing.is_asked_for, by: std::mem::take(&mut standing.by) })
    }

    pub(crate) fn has_stopped(&self, token: &OwnerToken) -> bool {
        self.tokens().ours.get(token).is_some_and(|standing| standing.has_stopped)
    }

    /// The lock of `token`, which this process has or wants, stands under the token `by`, says somebody. It says when it ends.
    pub(crate) fn revoked(&self, token: OwnerToken, by: OwnerToken) {
        note(self.tokens().theirs.entry(token).or_default(), by);
    }

    /// Another call goes on without `token`, whose body may be at work. It says when it ends.
    pub(crate) fn superseded(&self, token: OwnerToken) {
        self.tokens().theirs.entry(token).or_default();
    }

    /// Whether there is somebody to say that `token` has ended, or that the holder has whose place it has: then `by` is told as
    /// well.
    pub(crate) fn will_say(&self, token: &OwnerToken, by: OwnerToken) -> bool {
        let mut tokens = self.tokens();
        let Tokens { ours, theirs } = &mut *tokens;
        let standing = ours.get_mut(token).filter(|standing| !standing.has_stopped);
        let told = standing.map(|standing| &mut standing.by).or_else(|| theirs.get_mut(token));
        told.map(|told| note(told, by)).is_some()
    }

    /// The body under `token` has stopped: who is to be told.
    pub(crate) fn ended(&self, token: &OwnerToken) -> By {
        self.tokens().theirs.remove(token).unwrap_or_default()
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `by` is among those who are told.
fn note(told: &mut By, by: OwnerToken) {
    if !told.contains(&by) {
        told.push(by);
    }
    let too_many = told.len().saturating_sub(MOST);
    told.drain(..too_many);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    fn token(counter: u16) -> OwnerToken {
        OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, counter))
    }

    fn of(key: &str, token: OwnerToken) -> Arc<Subject> {
        Arc::new(Subject::new(key.into(), token))
    }

    /// One that stands in for the holder of `order:7`.
    fn standing(token: OwnerToken) -> Revocations {
        let (now, revocations) = (Instant::from_origin(Duration::ZERO), Revocations::default());
        revocations.begin(&of("order:7", token), now.after(Duration::from_secs(9)), now);
        revocations
    }

    #[test]
    fn of_many_who_say_that_they_break_a_lock_the_latest_are_told() {
        let (ours, by) = (token(0), [1, 2, 3, 4, 5, 6].map(token));
        let revocations = Revocations::default();
        for by in by.iter().chain(by.last()) {
            revocations.revoked(ours, *by);
        }
        assert_eq!(revocations.ended(&ours), by[2..]);
        assert_eq!(revocations.ended(&ours), [], "told once");
    }

    #[test]
    fn who_was_superseded_says_when_it_ends_and_not_before() {
        let [ours, by] = [0, 1].map(token);
        let revocations = Revocations::default();
        assert!(!revocations.will_say(&ours, by), "nobody has it");
        revocations.superseded(ours);
        assert!(revocations.will_say(&ours, by));
        assert_eq!(revocations.ended(&ours), [by]);
        assert!(!revocations.will_say(&ours, by), "it is over");
    }

    #[test]
    fn what_stands_in_for_a_holder_says_that_it_has_stopped_to_whoever_breaks_it_in_turn() {
        let [ours, by] = [0, 1].map(token);
        let revocations = standing(ours);
        assert!(revocations.will_say(&ours, by));
        assert_eq!(revocations.stopped(&of("order:8", ours)), None, "of another key");
        assert_eq!(revocations.stopped(&of("order:7", ours)), Some(Stopped { is_free: true, by: vec![by] }));
        assert_eq!(revocations.stopped(&of("order:7", ours)), None, "no news");
        assert!(!revocations.will_say(&ours, by), "it is over");
    }

    #[test]
    fn nothing_is_released_while_it_is_asked_for() {
        let ours = token(0);
        let revocations = standing(ours);
        assert!(revocations.ask(&ours));
        assert!(!revocations.asked(&ours), "the holder has not stopped");
        assert!(revocations.ask(&ours));
        let stopped = revocations.stopped(&of("order:7", ours));
        assert_eq!(stopped, Some(Stopped { is_free: false, by: vec![] }));
        assert!(revocations.asked(&ours), "now it can be released");
        assert!(!revocations.asked(&ours), "once");
        assert!(!revocations.ask(&ours), "and asked for no more");
    }
}
