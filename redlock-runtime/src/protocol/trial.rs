//! A lock that is tried once at one node: which commands, in which order, and what a node answers where locks work.
//!
//! 1. The first token takes the lock and extends it. The second one waits for it in the queue.
//! 2. The first one gives it back, which hands it to the second, if that can be woken: so an extension by the second one
//!    tells whether it was.
//! 3. The second one asks again, as whoever waits does, and has the lock in either case. It offers to yield; nobody waits.
//! 4. The third one adopts the lock from the second, and gives it back.
//! 5. The fourth one does the same with fencing. Its ballot is looked at like any other, and never accepted: a register that
//!    is made once stays for ever.
//!
//! The commands can be sent together. When each is answered as it should be, nothing is left at the node.

use super::command::{Answer, Command, Reply, Subject, Verb};
use super::timing::CLAIM;
use crate::lock::{LockKey, OwnerToken};
use crate::time::ballot_clock::Ballot;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The `ttl` of the lock. Smaller, a server that pauses in the midst of the trial lets it expire; larger, a server that
/// takes a lock and refuses to give it back keeps it for longer.
pub(crate) const TRIAL_TTL: Duration = Duration::from_secs(2);

/// The begin of the name, after the namespace. What follows is a token, so that no other lock and no other trial has it.
pub(crate) const TRIAL_NAME: &str = "redlock:check:";

/// One lock with the tokens that want it.
#[derive(Debug)]
pub(crate) struct Trial {
    first: Arc<Subject>,
    second: Arc<Subject>,
    adopter: Arc<Subject>,
    fenced: Arc<Subject>,
}

/// What a command of the trial is for.
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

/// What has come of a trial.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The first step that was not answered as it should be, of those that every lock needs.
    pub(crate) failed: Option<(Step, Answer)>,
    /// The same, of those that only fenced locks need.
    pub(crate) failed_fenced: Option<(Step, Answer)>,
    /// Whether the lock was handed to the token that waited, because that could be woken.
    pub(crate) is_handed_over: bool,
}

impl Trial {
    /// A lock below `namespace`, which is empty or ends in its separator. Every call of `token` makes a later one.
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

    /// What a node may know after a trial that went wrong.
    pub(crate) const fn subjects(&self) -> [&Arc<Subject>; 4] {
        [&self.first, &self.second, &self.adopter, &self.fenced]
    }

    /// What is sent, in this order.
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

    /// Whether `reply` is what a node answers where locks work.
    const fn expects(self, reply: &Reply) -> bool {
        match self {
            Self::Take | Self::AskAgain | Self::TakeFenced | Self::AskFenced => matches!(reply, Reply::Granted { .. }),
            Self::Extend | Self::Adopt | Self::ExtendFenced => matches!(reply, Reply::Extended { .. }),
            Self::Wait => matches!(reply, Reply::Queued { .. }),
            // Whoever cannot be woken is passed over, and the lock is free.
            Self::HandOver => matches!(reply, Reply::Extended { .. } | Reply::NotOwner),
            Self::Yield => matches!(reply, Reply::Kept),
            Self::GiveBack | Self::GiveBackAdopted | Self::GiveBackFenced => matches!(reply, Reply::Released),
        }
    }
}

impl Outcome {
    /// Takes in the `answer` to a step.
    pub(crate) fn answered(&mut self, step: Step, answer: Answer) {
        match &answer {
            Ok(reply) if step.expects(reply) => {
                self.is_handed_over |= step == Step::HandOver && *reply != Reply::NotOwner;
            }
            _ if step.is_fenced() => _ = self.failed_fenced.get_or_insert((step, answer)),
            _ => _ = self.failed.get_or_insert((step, answer)),
        }
    }

    /// Whether the node has been left as it was found.
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

    /// The outcome at a well node, where so many listen to each message; `change` may change the answers. The second is
    /// whether anything was left there.
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
    fn it_passes_at_a_well_node_and_leaves_nothing() {
        for listeners in [0, 1] {
            let (outcome, is_left) = outcome(listeners, |_, answer| answer);
            assert_eq!(outcome, Outcome { is_handed_over: listeners == 1, ..Outcome::default() });
            assert!(outcome.is_clean() && !is_left);
        }
    }

    #[test]
    fn the_first_step_that_fails_is_told_and_fencing_apart() {
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
    fn what_is_no_answer_to_the_step_fails_it() {
        let (outcome, _) = outcome(1, |step, answer| if step == Step::Take { Ok(Reply::Taken) } else { answer });
        assert_eq!(outcome.failed, Some((Step::Take, Ok(Reply::Taken))));
    }

    #[test]
    fn its_name_is_below_the_namespace_and_nobody_elses() {
        let trial = trial();
        let name = trial.key().name();
        assert!(name.starts_with("shop:redlock:check:") && name.ends_with(trial.first.token.as_str()), "{name}");
        let mut tokens = trial.subjects().map(|subject| subject.token);
        assert!(tokens.is_sorted(), "the second has to wait behind the first");
        tokens.sort();
        assert!(tokens.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
