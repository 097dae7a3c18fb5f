//! Tries a lock at one node, for [`LockManager::check`](super::LockManager::check) and
//! [`LockManager::ready`](super::LockManager::ready).

use crate::client::shared::Shared;
use crate::client::timers::timeout;
use crate::error::NodeError;
use crate::node::report::{Deployment, NodeReport};
use crate::node::{Node, Pending};
use crate::protocol::last_command::LastCommand;
use crate::protocol::timing::{CLAIM, QUEUE_EXPIRY};
use crate::protocol::trial::{Outcome, Step, TRIAL_TTL, Trial};
use std::sync::Arc;
use std::time::Duration;

/// Number of attempts if a reply is wrong. Too small: a server looks broken if it pauses or loses its scripts during the trial. Too
/// large: the report about a broken server takes longer.
const TRIES: usize = 2;

/// Returns the report about node number `index`, after a trial of a lock. `patience` is the timeout of each reply. The `deployment`
/// is queried after the node has answered, because it depends on the measured distance.
pub(super) async fn report(
    shared: &Shared,
    index: usize,
    deployment: impl Fn() -> Deployment,
    patience: Duration,
) -> NodeReport {
    let Some(handle) = shared.nodes.get(index) else { return NodeReport::unknown("") };
    let node = handle.node();
    let mut report = node.report(trial(shared).key(), patience).await;
    report.set_deployment_error(&deployment());
    if report.may_be_tried() {
        let expects_hand_over = node.hands_over() && report.capabilities.pub_sub == Some(true);
        match attempts(shared, index, node, expects_hand_over, patience).await {
            Ok(outcome) => report.tried(outcome, node.hands_over()),
            Err(error) => report.error = Some(error),
        }
    }
    report
}

/// Tries a lock until it works, up to `TRIES` times.
///
/// # Errors
/// [`NodeError`] if a reply did not come.
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

/// Returns a trial with a fresh lock.
fn trial(shared: &Shared) -> Trial {
    Trial::new(&shared.namespace, || shared.new_token())
}

/// Trial in progress. If it is dropped before it has succeeded, everything that it left at the node is released.
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
        // No call holds these tokens. Without this, a wake-up about them would look like the remains of a dead call, and they would
        // be released during the trial.
        for subject in trial.subjects() {
            shared.kept_tokens.keep(subject.token, now.after(QUEUE_EXPIRY), now);
        }
        let mut attempt = Self { shared, index, trial, answers: Vec::new(), is_clean: false };
        for (step, command) in attempt.trial.commands() {
            attempt.answers.push((step, node.send(command)));
        }
        attempt
    }

    /// Waits for all replies.
    ///
    /// # Errors
    /// [`NodeError`] if a reply does not come.
    async fn outcome(mut self) -> Result<Outcome, NodeError> {
        let mut outcome = Outcome::default();
        for (step, answer) in &mut self.answers {
            match answer.await {
                Err(error) if !matches!(error, NodeError::Refused(_) | NodeError::UnexpectedReply(_)) => {
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
        // The pending replies are dropped first: an acquisition without a receiver is not sent again behind its release.
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
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::time::clock::Clock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const PATIENCE: Duration = Duration::from_millis(100);
    /// Number of commands in a trial.
    const LENGTH: usize = 13;

    /// Returns a node whose connection breaks after `cut_at` commands, and works again after the trial.
    fn cut_node(cut_at: usize, answers: bool) -> (Arc<HookedNode>, Arc<AtomicUsize>) {
        let commands = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&commands);
        let node = HookedNode::new(Clock::tokio(), move |_| match counter.fetch_add(1, Ordering::Relaxed) {
            after if after >= LENGTH => Fate::Answered,
            late if late >= cut_at => Fate::CutOff,
            _ if answers => Fate::Answered,
            _ => Fate::Unanswered,
        });
        (node, commands)
    }

    #[tokio::test(start_paused = true)]
    async fn interrupted_trial_leaves_no_lock_behind() {
        for (cut_at, answers) in (0..=LENGTH).flat_map(|cut_at| [(cut_at, true), (cut_at, false)]) {
            let (node, _) = cut_node(cut_at, answers);
            let shared = node.shared();
            let outcome = attempts(&shared, 0, &*node, true, PATIENCE).await;
            assert_eq!(outcome.is_ok(), cut_at == LENGTH && answers, "{cut_at} {answers}: {outcome:?}");
            assert!(node.is_empty(), "{cut_at} {answers}: {node:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn healthy_node_is_tried_once() {
        let (node, commands) = cut_node(LENGTH, true);
        let shared = node.shared();
        let outcome = attempts(&shared, 0, &*node, true, PATIENCE).await.unwrap();
        assert!(outcome.is_clean() && outcome.is_handed_over);
        assert_eq!(commands.load(Ordering::Relaxed), LENGTH, "and nothing was released once more");
    }
}
