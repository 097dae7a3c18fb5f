//! Locks that are being broken: by this process, and locks of this process.

use crate::lock::OwnerToken;
use crate::protocol::command::Subject;
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of breaking tokens that are notified when the body of one lock stops; of more, the latest. Smaller: a
/// false break message suppresses the notification of the real breaker. Larger: users who may publish can take more
/// memory.
const MOST: usize = 4;

/// Maximum number of break messages in a second about tokens without a lock, each of which is answered by a message to
/// every node. Smaller: an operator who breaks many locks that have just ended waits for their leases. Larger: a user
/// who may publish makes this process send more messages.
const MOST_ANSWERS: u32 = 64;

/// Broken locks. Stored apart from the locks, of which there are many, because breaking is rare.
#[derive(Debug, Default)]
pub(crate) struct Revocations(Mutex<Tokens>);

/// Tokens that announced a break of a lock and have its place.
type By = Vec<OwnerToken>;

/// Both maps under one mutex, so that each breaking token is notified: at the end of the body, or at once if that is
/// over.
#[derive(Debug, Default)]
struct Tokens {
    /// Tokens of this process that have the place of locks that it breaks.
    ours: HashMap<OwnerToken, Standing>,
    /// Tokens of this process whose end must be reported: tokens whose locks are being broken according to a message,
    /// and tokens that another call has superseded. The latter are in no local queue, although their bodies may still
    /// run.
    theirs: HashMap<OwnerToken, By>,
    /// Begin of the present second, and the number of answers in it.
    answers: Option<(Instant, u32)>,
}

/// Token in the place of a holder whose lock is broken.
#[derive(Debug)]
struct Standing {
    subject: Arc<Subject>,
    /// Set while answers are outstanding, for which a command may be sent again.
    is_asked_for: bool,
    has_stopped: bool,
    /// Tokens that are breaking this placeholder in turn.
    by: By,
    /// Time for which the placeholder stays at the nodes, as far as they have reported.
    left: Duration,
    /// End of the placeholder at all nodes.
    until: Instant,
}

/// News that the holder before a placeholder has stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// Set if the token can be released: no command can be sent behind that release.
    pub(crate) is_free: bool,
    /// Tokens that must be notified in turn.
    pub(crate) by: By,
}

impl Revocations {
    /// Records that the token of `subject` has the place of a lock that this process breaks, until `until` at the
    /// latest.
    pub(crate) fn begin(&self, subject: &Arc<Subject>, until: Instant, now: Instant) {
        let mut tokens = self.tokens();
        tokens.ours.retain(|_, standing| now < standing.until);
        let (subject, by) = (Arc::clone(subject), By::new());
        let standing = Standing { subject, is_asked_for: false, has_stopped: false, by, left: Duration::ZERO, until };
        tokens.ours.insert(standing.subject.token, standing);
    }

    /// Begins to ask the nodes to put `token` into the place of the holder, until [`asked`](Self::asked). Returns
    /// `false` if the holder has stopped.
    pub(crate) fn ask(&self, token: &OwnerToken) -> bool {
        let mut tokens = self.tokens();
        let standing = tokens.ours.get_mut(token).filter(|standing| !standing.has_stopped);
        standing.map(|standing| standing.is_asked_for = true).is_some()
    }

    /// Records the time for which `token` stays at a node.
    pub(crate) fn lasts(&self, token: &OwnerToken, left: Duration) {
        if let Some(standing) = self.tokens().ours.get_mut(token) {
            standing.left = standing.left.max(left);
        }
    }

    /// Returns the time for which `token` may stay at the nodes, as far as they have reported.
    pub(crate) fn left(&self, token: &OwnerToken) -> Duration {
        self.tokens().ours.get(token).map_or(Duration::ZERO, |standing| standing.left)
    }

    /// Records that no answer is outstanding any longer. Returns `true` if the holder before `token` has stopped
    /// meanwhile, so that the token must be released now.
    pub(crate) fn asked(&self, token: &OwnerToken) -> bool {
        let mut tokens = self.tokens();
        let standing = tokens.ours.get_mut(token);
        standing.is_some_and(|standing| std::mem::take(&mut standing.is_asked_for) && standing.has_stopped)
    }

    /// Records that the holder before the token of `subject` has stopped. Returns `None` if that is not new.
    pub(crate) fn stopped(&self, subject: &Subject) -> Option<Stopped> {
        let mut tokens = self.tokens();
        let standing = tokens.ours.get_mut(&subject.token)?;
        // Anyone may publish this, and a message about another key must not suppress the true one.
        let is_news = standing.subject.key.name() == subject.key.name() && !standing.has_stopped;
        standing.has_stopped |= is_news;
        is_news.then(|| Stopped { is_free: !standing.is_asked_for, by: std::mem::take(&mut standing.by) })
    }

    pub(crate) fn has_stopped(&self, token: &OwnerToken) -> bool {
        self.tokens().ours.get(token).is_some_and(|standing| standing.has_stopped)
    }

    /// Records a message that `by` has the place of `token`, which has or wants a lock in this process. The end of
    /// `token` must be reported.
    pub(crate) fn revoked(&self, token: OwnerToken, by: OwnerToken) {
        note(self.tokens().theirs.entry(token).or_default(), by);
    }

    /// Records that another call continues without `token`, whose body may still run. Its end must be reported.
    pub(crate) fn superseded(&self, token: OwnerToken) {
        self.tokens().theirs.entry(token).or_default();
    }

    /// Returns `true` if this process will report the end of `token`, or of the holder that it replaces. In that case,
    /// `by` is notified as well.
    pub(crate) fn will_say(&self, token: &OwnerToken, by: OwnerToken) -> bool {
        let mut tokens = self.tokens();
        let Tokens { ours, theirs, .. } = &mut *tokens;
        let standing = ours.get_mut(token).filter(|standing| !standing.has_stopped);
        let told = standing.map(|standing| &mut standing.by).or_else(|| theirs.get_mut(token));
        told.map(|told| note(told, by)).is_some()
    }

    /// Returns `true` if a break message about a token without a lock may be answered now. Otherwise the breaking
    /// process waits until the lease has ended.
    pub(crate) fn may_answer(&self, now: Instant) -> bool {
        let mut tokens = self.tokens();
        let present = tokens.answers.filter(|(begun, _)| now.since(*begun) < Duration::from_secs(1));
        let (begun, count) = present.unwrap_or((now, 0));
        tokens.answers = Some((begun, count.saturating_add(1)));
        count < MOST_ANSWERS
    }

    /// Records that the body under `token` has stopped. Returns the tokens to notify.
    pub(crate) fn ended(&self, token: &OwnerToken) -> By {
        self.tokens().theirs.remove(token).unwrap_or_default()
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        // Code under this mutex cannot panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds `by` to the tokens to notify.
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

    /// Creates a placeholder for the holder of `order:7`.
    fn standing(token: OwnerToken) -> Revocations {
        let (now, revocations) = (Instant::from_origin(Duration::ZERO), Revocations::default());
        revocations.begin(&of("order:7", token), now.after(Duration::from_secs(9)), now);
        revocations
    }

    #[test]
    fn only_the_latest_breakers_are_notified_when_the_holder_ends() {
        let (ours, by) = (token(0), [1, 2, 3, 4, 5, 6].map(token));
        let revocations = Revocations::default();
        for by in by.iter().chain(by.last()) {
            revocations.revoked(ours, *by);
        }
        assert_eq!(revocations.ended(&ours), by[2..]);
        assert_eq!(revocations.ended(&ours), [], "told once");
    }

    #[test]
    fn superseded_holder_notifies_the_breaker_when_it_ends() {
        let [ours, by] = [0, 1].map(token);
        let revocations = Revocations::default();
        assert!(!revocations.will_say(&ours, by), "nobody has it");
        revocations.superseded(ours);
        assert!(revocations.will_say(&ours, by));
        assert_eq!(revocations.ended(&ours), [by]);
        assert!(!revocations.will_say(&ours, by), "it is over");
    }

    #[test]
    fn placeholder_reports_that_the_holder_stopped_to_its_own_breaker() {
        let [ours, by] = [0, 1].map(token);
        let revocations = standing(ours);
        assert!(revocations.will_say(&ours, by));
        assert_eq!(revocations.stopped(&of("order:8", ours)), None, "of another key");
        assert_eq!(revocations.stopped(&of("order:7", ours)), Some(Stopped { is_free: true, by: vec![by] }));
        assert_eq!(revocations.stopped(&of("order:7", ours)), None, "no news");
        assert!(!revocations.will_say(&ours, by), "it is over");
    }

    #[test]
    fn placeholder_is_not_released_while_a_request_is_pending() {
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

    #[test]
    fn break_messages_without_a_lock_are_answered_at_a_limited_rate() {
        let (revocations, begun) = (Revocations::default(), Instant::from_origin(Duration::from_secs(5)));
        let answered = |at: Instant| (0..10 * MOST_ANSWERS).filter(|_| revocations.may_answer(at)).count();
        assert_eq!(answered(begun), MOST_ANSWERS as usize);
        assert_eq!(answered(begun.after(Duration::from_millis(999))), 0);
        assert_eq!(answered(begun.after(Duration::from_secs(1))), MOST_ANSWERS as usize);
    }
}
