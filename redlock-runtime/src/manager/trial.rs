//! Tries a lock at one node, for [`LockManager::check`](super::LockManager::check) and
//! [`LockManager::ready`](super::LockManager::ready).

use crate::client::shared::Shared;
use crate::error::NodeError;
use crate::node::report::{Deployment, NodeReport};
use crate::node::{Node, Pending};
use crate::protocol::last_command::LastCommand;
use crate::protocol::timing::{CLAIM, QUEUE_EXPIRY};
use crate::protocol::trial::{Outcome, Step, TRIAL_TTL, Trial};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often a lock is tried that was not answered as it should be. Fewer, a server that pauses or is told to forget its
/// scripts in the midst of it looks broken; more, one that is broken is found out later.
const TRIES: usize = 2;

/// What node number `index` is like, and whether a lock works there. Each answer is waited for in `patience`.
pub(super) async fn report(shared: &Shared, index: usize, deployment: &Deployment, patience: Duration) -> NodeReport {
    let Some(handle) = shared.nodes.get(index) else { return NodeReport::unknown("") };
    let node = handle.node();
    let mut report = node.report(trial(shared).key(), patience).await;
    report.weigh(deployment);
    if report.may_be_tried() {
        let expects_hand_over = node.hands_over() && report.capabilities.wake_ups == Some(true);
        match attempts(shared, index, node, expects_hand_over, patience).await {
            Ok(outcome) => report.tried(outcome, node.hands_over()),
            Err(error) => report.error = Some(error),
        }
    }
    report
}

/// Tries a lock until it works, a few times.
///
/// # Errors
/// When there was no answer.
async fn attempts(
    shared: &Shared,
    index: usize,
    node: &dyn Node,
    expects_hand_over: bool,
    patience: Duration,
) -> Result<Outcome, NodeError> {
    let mut outcome = Outcome::default();
    for _ in 0..TRIES {
        let attempt = Attempt::begin(shared, index, node, trial(shared));
        outcome = timeout(patience, attempt.outcome()).await.unwrap_or(Err(NodeError::TimedOut(patience)))?;
        if outcome.is_clean() && outcome.is_handed_over >= expects_hand_over {
            break;
        }
    }
    Ok(outcome)
}

/// A lock that nobody has tried.
fn trial(shared: &Shared) -> Trial {
    Trial::new(&shared.namespace, || shared.new_token())
}

/// A trial under way. When it is dropped before it has gone well, whatever it has left is released.
struct Attempt<'a> {
    shared: &'a Shared,
    index: usize,
    trial: Trial,
    answers: Vec<(Step, Pending)>,
    is_clean: bool,
}

impl<'a> Attempt<'a> {
    /// Sends all commands, so that the whole trial takes one round trip.
    fn begin(shared: &'a Shared, index: usize, node: &dyn Node, trial: Trial) -> Self {
        let now = shared.clock.now();
        // No call has these tokens. What the node says of them must not be taken for what a dead call has left behind,
        // or they would be released in the midst of the trial.
        for subject in trial.subjects() {
            shared.kept_tokens.keep(subject.token, now.after(QUEUE_EXPIRY), now);
        }
        let mut attempt = Self { shared, index, trial, answers: Vec::new(), is_clean: false };
        for (step, command) in attempt.trial.commands() {
            attempt.answers.push((step, node.send(command)));
        }
        attempt
    }

    /// # Errors
    /// When an answer does not come.
    async fn outcome(mut self) -> Result<Outcome, NodeError> {
        let mut outcome = Outcome::default();
        for (step, answer) in &mut self.answers {
            match answer.await {
                Err(error) if !matches!(error, NodeError::Refused(_) | NodeError::Unintelligible(_)) => {
                    return Err(error);
                }
                answer => outcome.answered(*step, answer),
            }
        }
        self.is_clean = outcome.is_clean();
        Ok(outcome)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_clean {
            return;
        }
        // The answers first: what takes the lock is not sent again for nobody, behind its release.
        self.answers.clear();
        let last = LastCommand::release(CLAIM, TRIAL_TTL, self.shared.clock.now());
        for subject in self.trial.subjects() {
            self.shared.release(self.index, Arc::clone(subject), last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::node_handle::NodeHandle;
    use crate::lock::LockKey;
    use crate::lock::owner_token::ManagerId;
    use crate::node::abstention::Caution;
    use crate::node::{BoxFuture, Environment, Recipient, ServerRegister, Status};
    use crate::protocol::command::Command;
    use crate::protocol::node_state::NodeState;
    use crate::protocol::rules::Rules;
    use crate::request::{AfterRestart, Policy};
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenClock;
    use std::future::ready;
    use std::sync::Mutex;

    const PATIENCE: Duration = Duration::from_millis(100);

    /// A node whose connection breaks after so many commands, and is there again when the trial is over.
    #[derive(Debug)]
    struct CutNode {
        clock: Clock,
        state: Mutex<NodeState>,
        commands: Mutex<usize>,
        cut_at: usize,
        /// What was not answered, though it was executed.
        unanswered: Option<Mutex<Vec<Unanswered>>>,
    }

    struct Unanswered(#[expect(dead_code, reason = "whoever asked waits as long as it lives")] Recipient);

    impl std::fmt::Debug for Unanswered {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Unanswered")
        }
    }

    impl CutNode {
        fn new(clock: Clock, cut_at: usize, answers: bool) -> Arc<Self> {
            let (state, commands) = (Mutex::default(), Mutex::new(0));
            Arc::new(Self { clock, state, commands, cut_at, unanswered: (!answers).then(Mutex::default) })
        }

        fn is_empty(&self) -> bool {
            self.state.lock().unwrap().is_empty(self.clock.now())
        }
    }

    impl Node for CutNode {
        fn label(&self) -> &'static str {
            "cut"
        }

        fn send_for(&self, command: Command, recipient: Recipient) {
            let mut commands = self.commands.lock().unwrap();
            *commands += 1;
            let is_of_trial = *commands <= LENGTH;
            if is_of_trial && *commands > self.cut_at {
                return recipient.answer(Err(NodeError::Disconnected));
            }
            let (reply, _) = self.state.lock().unwrap().execute(self.clock.now(), &command, &mut |_, _| 1);
            match &self.unanswered {
                Some(unanswered) if is_of_trial => unanswered.lock().unwrap().push(Unanswered(recipient)),
                _ => recipient.answer(Ok(reply)),
            }
        }

        fn status(&self) -> Status {
            Status::Up
        }

        fn up_for<'a>(&'a self, _key: &'a LockKey) -> BoxFuture<'a, ()> {
            Box::pin(ready(()))
        }

        fn epoch_of(&self, _key: &LockKey) -> u64 {
            0
        }

        fn listen(&self) {}

        fn is_listening_for(&self, _key: &LockKey) -> bool {
            true
        }

        fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
            Box::pin(ready(Err(NodeError::Disconnected)))
        }

        fn report<'a>(&'a self, _key: &'a LockKey, _patience: Duration) -> BoxFuture<'a, NodeReport> {
            Box::pin(ready(NodeReport::in_memory("cut")))
        }
    }

    /// How many commands a trial has.
    const LENGTH: usize = 13;

    fn shared(node: Arc<CutNode>) -> Shared {
        let (clock, policy) = (node.clock, Policy::default());
        let caution = Caution { after_restart: AfterRestart::Trust, rules: Rules::default() };
        let environment = Environment {
            manager: ManagerId::numbered(7),
            token_clock: Arc::new(TokenClock::new(clock)),
            changed: Arc::default(),
            deliver: Arc::new(|_| {}),
            connected: Arc::new(|| {}),
            servers: Arc::new(ServerRegister::new(clock, caution, policy.quorum(1), policy.drift_factor)),
        };
        let nodes = Box::new([NodeHandle::at_once(node, clock)]);
        Shared::new(environment, clock, policy, "".into(), nodes, Rules::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_is_cut_off_or_given_up_anywhere_leaves_nothing() {
        for (cut_at, answers) in (0..=LENGTH).flat_map(|cut_at| [(cut_at, true), (cut_at, false)]) {
            let node = CutNode::new(Clock::tokio(), cut_at, answers);
            let shared = shared(Arc::clone(&node));
            let outcome = attempts(&shared, 0, &*node, true, PATIENCE).await;
            assert_eq!(outcome.is_ok(), cut_at == LENGTH && answers, "{cut_at} {answers}: {outcome:?}");
            assert!(node.is_empty(), "{cut_at} {answers}: {node:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_well_is_tried_once() {
        let node = CutNode::new(Clock::tokio(), LENGTH, true);
        let shared = shared(Arc::clone(&node));
        let outcome = attempts(&shared, 0, &*node, true, PATIENCE).await.unwrap();
        assert!(outcome.is_clean() && outcome.is_handed_over);
        assert_eq!(*node.commands.lock().unwrap(), LENGTH, "and nothing was released once more");
    }
}
