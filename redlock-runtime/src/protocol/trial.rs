//! Trial of one lock at one node: its commands, their order, and the replies of a working node.
//!
//! 1. The first token takes the lock and extends it. The second token waits for it in the queue.
//! 2. The first token releases the lock, which hands it to the second if that can be woken. An extension by the second
//!    token shows the outcome.
//! 3. The second token asks again, as every waiter does, and owns the lock in either case. It offers to yield; no other
//!    token waits.
//! 4. The third token adopts the lock from the second, and releases it.
//! 5. The fourth token takes and releases the lock with fencing. Its ballot is compared like any other, and never
//!    accepted: a register that was created once stays forever.
//!
//! The commands can be sent together. If each gets the expected reply, nothing is left at the node.

use super::command::{Answer, Command, Reply, Subject, Verb};
use super::timing::CLAIM;
use crate::lock::{LockKey, OwnerToken};
use crate::time::ballot_clock::Ballot;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Lease of the trial lock. Smaller: the lock expires when a server pauses in the middle of the trial. Larger: a server
/// that grants locks and refuses releases keeps the lock for longer.
pub(crate) const TRIAL_TTL: Duration = Duration::from_secs(2);

/// Beginning of the name, after the namespace. A token follows, so that no other lock and no other trial has the same
/// name.
pub(crate) const TRIAL_NAME: &str = "redlock:check:";

/// One lock with the tokens that want it.
#[derive(Debug)]
pub(crate) struct Trial {
    first: Arc<Subject>,
    second: Arc<Subject>,
    adopter: Arc<Subject>,
    fenced: Arc<Subject>,
}

/// Purpose of one command of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Take,
    Extend,
    Wait,
    GiveBack,
    HandOver,
    AskAgain,
    Yield,
    Adopt,
    GiveBackAdopted,
    TakeFenced,
    AskFenced,
    ExtendFenced,
    GiveBackFenced,
}

/// Result of a trial.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// First step with an unexpected answer, among the steps that every lock needs.
    pub(crate) failed: Option<(Step, Answer)>,
    /// First step with an unexpected answer, of those that only fenced locks need.
    pub(crate) failed_fenced: Option<(Step, Answer)>,
    /// Set if the lock was handed to the waiting token, because that token could be woken.
    pub(crate) is_handed_over: bool,
}

impl Trial {
    /// Creates a lock below `namespace`, which is empty or ends in its separator. Every call of `token` creates a later
    /// token.
    pub(crate) fn new(namespace: &str, token: impl Fn() -> OwnerToken) -> Self {
        let first = token();
        let key = LockKey::from([TRIAL_NAME, first.as_str()].concat()).below(namespace);
        let subject = |token| Subject::new(key.clone(), token);
        let second = token();
        Self {
            first: Arc::new(subject(first)),
            second: Arc::new(subject(second)),
            adopter: Arc::new(Subject { other: Some(Box::new(second)), ..subject(token()) }),
            fenced: Arc::new(subject(token())),
        }
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.first.key
    }

    /// Returns the subjects that a node may know after a failed trial.
    pub(crate) const fn subjects(&self) -> [&Arc<Subject>; 4] {
        [&self.first, &self.second, &self.adopter, &self.fenced]
    }

    /// Returns the commands in the order of sending.
    pub(crate) fn commands(&self) -> [(Step, Command); 13] {
        const TTL: Duration = TRIAL_TTL;
        let (extend, release) = (Verb::Extend { ttl: TTL }, Verb::Release { claim: CLAIM });
        let acquire = Verb::Acquire { ttl: TTL, claim: CLAIM, holds: false };
        let plain =
            |step, verb, subject: &Arc<Subject>| (step, Command { verb, fence: None, subject: Arc::clone(subject) });
        let fenced =
            |step, verb| (step, Command { verb, fence: Some(Ballot::LOOK), subject: Arc::clone(&self.fenced) });
        [
            plain(Step::Take, Verb::SetNx { ttl: TTL }, &self.first),
            plain(Step::Extend, extend, &self.first),
            plain(Step::Wait, acquire, &self.second),
            plain(Step::GiveBack, release, &self.first),
            plain(Step::HandOver, extend, &self.second),
            plain(Step::AskAgain, acquire, &self.second),
            plain(Step::Yield, Verb::Yield { claim: CLAIM }, &self.second),
            plain(Step::Adopt, Verb::Adopt { ttl: TTL }, &self.adopter),
            plain(Step::GiveBackAdopted, release, &self.adopter),
            fenced(Step::TakeFenced, Verb::SetNx { ttl: TTL }),
            fenced(Step::AskFenced, acquire),
            fenced(Step::ExtendFenced, extend),
            plain(Step::GiveBackFenced, release, &self.fenced),
        ]
    }
}

impl Step {
    const fn is_fenced(self) -> bool {
        matches!(self, Self::TakeFenced | Self::AskFenced | Self::ExtendFenced | Self::GiveBackFenced)
    }

    /// Returns `true` if `reply` is the reply of a working node.
    const fn expects(self, reply: &Reply) -> bool {
        match self {
            Self::Take | Self::AskAgain | Self::TakeFenced | Self::AskFenced => matches!(reply, Reply::Granted { .. }),
            Self::Extend | Self::Adopt | Self::ExtendFenced => matches!(reply, Reply::Extended { .. }),
            Self::Wait => matches!(reply, Reply::Queued { .. }),
            // A waiter that cannot be woken is passed over, and the lock is free.
            Self::HandOver => matches!(reply, Reply::Extended { .. } | Reply::NotOwner),
            Self::Yield => matches!(reply, Reply::Kept),
            Self::GiveBack | Self::GiveBackAdopted | Self::GiveBackFenced => matches!(reply, Reply::Released),
        }
    }
}

impl Outcome {
    /// Records the `answer` to a step.
    pub(crate) fn answered(&mut self, step: Step, answer: Answer) {
        match &answer {
            Ok(reply) if step.expects(reply) => {
                self.is_handed_over |= step == Step::HandOver && *reply != Reply::NotOwner;
            }
            _ if step.is_fenced() => _ = self.failed_fenced.get_or_insert((step, answer)),
            _ => _ = self.failed.get_or_insert((step, answer)),
        }
    }

    /// Returns `true` if the trial has left nothing at the node.
    pub(crate) const fn is_clean(&self) -> bool {
        self.failed.is_none() && self.failed_fenced.is_none()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Take => "taking a lock",
            Self::Extend => "extending a lock",
            Self::Wait => "waiting for a lock",
            Self::GiveBack | Self::GiveBackAdopted => "giving a lock back",
            Self::HandOver => "extending a lock that was handed over",
            Self::AskAgain => "asking again for a lock",
            Self::Yield => "yielding a lock",
            Self::Adopt => "adopting a lock",
            Self::TakeFenced | Self::AskFenced => "taking a fenced lock",
            Self::ExtendFenced => "extending a fenced lock",
            Self::GiveBackFenced => "giving a fenced lock back",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeError;
    use crate::lock::owner_token::ManagerId;
    use crate::protocol::node_state::NodeState;
    use crate::time::clock::Instant;
    use crate::time::token_clock::TokenTime;
    use std::cell::Cell;

    fn trial() -> Trial {
        let (manager, count) = (ManagerId::numbered(7), Cell::new(0));
        Trial::new("shop:", || OwnerToken::new(manager, TokenTime::new(1, count.replace(count.get() + 1))))
    }

    /// Runs the trial at a healthy node with this number of listeners to each message; `change` may change the answers.
    /// The second value is `true` if anything was left at the node.
    fn outcome(listeners: usize, change: impl Fn(Step, Answer) -> Answer) -> (Outcome, bool) {
        let (mut node, mut outcome) = (NodeState::default(), Outcome::default());
        let now = Instant::from_origin(Duration::from_secs(1));
        for (step, command) in trial().commands() {
            let (reply, _) = node.execute(now, &command, &mut |_, _| listeners);
            outcome.answered(step, change(step, Ok(reply)));
        }
        (outcome, !node.is_empty(now))
    }

    #[test]
    fn trial_passes_on_a_healthy_node_and_leaves_nothing() {
        for listeners in [0, 1] {
            let (outcome, is_left) = outcome(listeners, |_, answer| answer);
            assert_eq!(outcome, Outcome { is_handed_over: listeners == 1, ..Outcome::default() });
            assert!(outcome.is_clean() && !is_left);
        }
    }

    #[test]
    fn trial_reports_the_first_failed_step_and_fencing_separately() {
        let refused = || Err(NodeError::Refused("NOPERM".into()));
        let fail = |failing: &'static [Step]| {
            let (outcome, _) = outcome(1, move |step, answer| if failing.contains(&step) { refused() } else { answer });
            assert!(!outcome.is_clean());
            (outcome.failed.map(|(step, _)| step), outcome.failed_fenced.map(|(step, _)| step))
        };
        assert_eq!(fail(&[Step::GiveBack, Step::Yield]), (Some(Step::GiveBack), None));
        assert_eq!(fail(&[Step::ExtendFenced]), (None, Some(Step::ExtendFenced)));
        assert_eq!(fail(&[Step::HandOver, Step::TakeFenced]), (Some(Step::HandOver), Some(Step::TakeFenced)));
    }

    #[test]
    fn unexpected_reply_fails_the_trial_step() {
        let (outcome, _) = outcome(1, |step, answer| if step == Step::Take { Ok(Reply::Taken) } else { answer });
        assert_eq!(outcome.failed, Some((Step::Take, Ok(Reply::Taken))));
    }

    #[test]
    fn trial_key_is_unique_and_below_the_namespace() {
        let trial = trial();
        let name = trial.key().name();
        assert!(name.starts_with("shop:redlock:check:") && name.ends_with(trial.first.token.as_str()), "{name}");
        let mut tokens = trial.subjects().map(|subject| subject.token);
        assert!(tokens.is_sorted(), "the second has to wait behind the first");
        tokens.sort();
        assert!(tokens.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
