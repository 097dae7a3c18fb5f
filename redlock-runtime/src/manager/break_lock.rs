//! Breaks a lock: takes it from its holder, because an operator knows more than the nodes.
//!
//! 1. At each node, a token of this manager replaces the token of the holder, in one step with the notification of the holder. The
//!    key keeps its expiry, so no other call acquires it while the holder may rely on its lease, whatever happens to this process.
//!    This is as safe as a crash of the holder. The holder is notified a second time when all nodes have replied, because the first
//!    notification may have come too early.
//! 2. The holder asks all its nodes, learns that it no longer holds the lock, and stops its body. The notification proves nothing
//!    by itself, because any client may publish it.
//! 3. The holder reports when its token is dead. Only then is the token of this manager released everywhere, and the next waiter is
//!    served. The release also waits until every command that replaces a token is answered or given up. Otherwise such a command
//!    could be sent again and be executed after the release. If the holder reports nothing, its lease must end first. The report is
//!    not authenticated either: a client that can read the key and publish can forge it. Then the next body starts too early.
//!
//! Breaking by force releases the token of the holder, and does not notify the holder.

use super::LockManager;
use crate::client::gather::gather;
use crate::client::local_queue::LocalQueue;
use crate::client::revoked::revoked;
use crate::client::shared::Shared;
use crate::client::timers::timeout;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::BoxFuture;
use crate::node::inspection::{BreakOutcome, BreakReport, NodeBreak, PlaceholderOwner};
use crate::observe::events;
use crate::protocol::command::{Answer, Command, Notice, Reply, Subject, Verb};
use crate::protocol::lease::drift;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{CLAIM, EXPIRY_MARGIN, MAX_TTL};
use crate::request::{BreakOptions, BreakTarget};
use crate::text::excerpt;
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for the reply of a node: 1 s. Too small: a busy node looks unreachable. Too large: breaking a lock takes longer if a node is
/// frozen.
const PATIENCE: Duration = Duration::from_secs(1);

/// Timeout for the subscriptions on which the report of the holder arrives: 1 s. Too small: the subscription comes too late for a
/// holder that stops at once. Too large: breaking a lock takes longer if subscriptions do not work.
const LISTENING: Duration = Duration::from_secs(1);

impl LockManager {
    /// Takes the lock of `key` from the given holder, and serves the next waiter. Operators use it if the work behind a lock hangs.
    ///
    /// `options` names the holder: an [`OwnerToken`] that [`inspect`](Self::inspect) returned, or [`BreakOptions`] with more
    /// settings. If another token holds the lock meanwhile, nothing happens, so the call can be repeated safely.
    ///
    /// 1. The holder is notified and loses the lock with [`LossCause::Revoked`](crate::LossCause::Revoked). The attribute and
    ///    [`with_lock`](Self::with_lock) drop the body at its next `.await`; a guard reports it by [`lost`](crate::LockGuard::lost).
    /// 2. When the guard is dropped, the holder reports that it stopped, and the next waiter is served. The call waits for this report
    ///    for up to [`wait`](BreakOptions::wait).
    /// 3. Without a report, the key stays locked until the lease of the holder ends, and is not renewed. The holder may be gone, cut off,
    ///    or blocking its thread. So the call is never less safe than a crash of the holder.
    ///
    /// The holder can be notified if it is connected and subscribed. A manager subscribes in [`ready`](Self::ready), in
    /// [`check`](Self::check), at its first wait and at its first renewal.
    ///
    /// Calls of one process hand a lock on with its token, so the token may belong to a later call. Breaking the key of a
    /// `once_per` window lets the window run a second time. A lock of another program is broken [by force](BreakOptions::by_force)
    /// only.
    ///
    /// Every attempt is logged by the event `broken`, with the token of the holder, a token of this manager, the outcome and the
    /// [reason](BreakOptions::reason).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// If the future is dropped, the lock may be broken or not. If it is, it is free when the holder has stopped or when its lease ends.
    /// The event has the outcome `interrupted`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LossCause};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let report = manager.break_lock("order:7", *guard.token()).await;
    /// assert!(report.is_broken() && report.holder_notified);
    /// assert!(!report.holder_stopped && report.placeholder.is_some(), "the guard still exists");
    /// let lost = guard.lost().await;
    /// assert!(matches!(lost, LockError::Lost { cause: LossCause::Revoked { by, .. }, .. } if *by == report.by));
    /// # Ok(()) }
    /// ```
    ///
    /// At once, because the machine of the holder is known to be gone:
    /// ```
    /// # use redlock_runtime::admin::BreakOptions;
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// # let manager = LockManager::in_memory();
    /// # let guard = manager.acquire("order:7").await?;
    /// let options = BreakOptions::new(*guard.token()).by_force().reason("its machine is gone");
    /// assert!(manager.break_lock("order:7", options).await.is_broken());
    /// # Ok(()) }
    /// ```
    pub async fn break_lock(&self, key: impl Into<LockKey>, options: impl Into<BreakOptions>) -> BreakReport {
        let BreakOptions { holder, wait, is_forced, reason } = options.into();
        let (key, shared) = (self.broken_key(key).await, self.shared());
        let by = shared.new_token();
        let shown = match &holder {
            BreakTarget::Token(token) => token.to_string(),
            BreakTarget::Foreign(value) => excerpt(value),
        };
        let mut trail =
            Trail { shared, key: &key, holder: &shown, by, reason: reason.as_deref(), outcome: "interrupted" };
        let report = match (holder, is_forced) {
            (BreakTarget::Token(token), false) => revoke(&self.local, Subject::new(key.clone(), token), by, wait).await,
            (BreakTarget::Token(token), true) => {
                let report = report(shared, by, &key, release(shared, Subject::new(key.clone(), token)).await);
                if report.has_broken_majority() {
                    notify_permit_waiter(&self.local, &key).await;
                }
                report
            }
            (BreakTarget::Foreign(value), true) => report(shared, by, &key, remove(shared, &key, &value).await),
            (BreakTarget::Foreign(_), false) => {
                report(shared, by, &key, shared.nodes.iter().map(|_| BreakOutcome::NeedsForce).collect())
            }
        };
        trail.outcome = report.word(is_forced);
        drop(trail);
        BreakReport { holder: shown.into(), reason, ..report }
    }

    /// Returns the key below the namespace, after the first connection attempts of all nodes.
    async fn broken_key(&self, key: impl Into<LockKey>) -> LockKey {
        self.shared().wait_for_first_connections().await;
        key.into().below(&self.shared().namespace)
    }
}

/// Attempt to break a lock. It is logged when this value is dropped, so a cancelled attempt is logged, too.
struct Trail<'a> {
    shared: &'a Shared,
    key: &'a LockKey,
    holder: &'a str,
    by: OwnerToken,
    reason: Option<&'a str>,
    outcome: &'static str,
}

impl Drop for Trail<'_> {
    fn drop(&mut self) {
        events::broken(self.shared.told(self.key), (self.holder, &self.by), self.outcome, self.reason);
    }
}

/// Returns a report with the outcome at each node, without a notified holder.
fn report(shared: &Shared, by: OwnerToken, key: &LockKey, outcomes: Vec<BreakOutcome>) -> BreakReport {
    let labels = shared.nodes.iter().map(|node| node.label().into());
    let nodes = labels.zip(outcomes).map(|(node, outcome)| NodeBreak { node, outcome }).collect();
    BreakReport {
        key: key.clone(),
        holder: "".into(),
        by,
        reason: None,
        nodes,
        needed: shared.quorum.needed,
        holder_notified: false,
        holder_stopped: false,
        placeholder: None,
    }
}

/// Replaces the holder's token `theirs` by the breaker's token `by`, and waits up to `patience` for the holder to stop.
async fn revoke(local: &Arc<LocalQueue>, theirs: Subject, by: OwnerToken, patience: Duration) -> BreakReport {
    let shared = local.shared();
    wait_until_report_can_arrive(shared, &theirs.key).await;
    let revocation = Revocation::begin(local, theirs, by);
    let places = revocation.replace_holder_tokens().await;
    let places = revocation.tell(places).await;
    let report = report(shared, by, &revocation.theirs.key, places.outcomes);
    // A holder that may still have a majority does not stop.
    let holder_stopped = report.has_broken_majority() && revocation.wait_until_stopped(places.until, patience).await;
    if holder_stopped {
        notify_permit_waiter(local, &revocation.theirs.key).await;
    }
    let remaining = places.until.since(shared.clock.now());
    let is_locked = !holder_stopped && !remaining.is_zero();
    let placeholder = is_locked.then(|| PlaceholderOwner { token: revocation.ours.token, remaining });
    BreakReport { holder_notified: places.is_told, holder_stopped, placeholder, ..report }
}

/// Notifies the call that waits for a permit of `key` that a permit is free. The broken lock is released as an ordinary lock, because its
/// token does not show whether it is a permit.
async fn notify_permit_waiter(local: &LocalQueue, key: &LockKey) {
    let (shared, admission) = (local.shared(), key.admission());
    let asked = shared.nodes.iter().map(|node| node.node().holder_of(&admission)).collect();
    // The call holds its admission lock at a quorum, so a quorum of answers names it.
    let is_enough = |answers: &[Option<Option<OwnerToken>>]| answers.iter().flatten().count() >= shared.quorum.needed;
    let waiting = gather(asked, PATIENCE, is_enough).await;
    for (index, (node, by)) in shared.nodes.iter().zip(waiting).enumerate() {
        let Some(by) = by.flatten() else { continue };
        let subject = Subject::new(admission.clone(), by);
        match local.find(&subject) {
            // A call of this manager is notified directly, because its channel may not be open.
            Some(ours) => {
                ours.notice(index, Notice::Freed);
            }
            None => node.node().notify_freed(&subject),
        }
    }
}

/// Waits until the report of the holder can arrive through enough nodes.
async fn wait_until_report_can_arrive(shared: &Shared, key: &LockKey) {
    shared.listen();
    let can_hear = || shared.nodes.iter().filter(|node| node.node().is_listening_for(key)).count();
    // Without subscriptions, this manager does not learn that the holder has stopped, and the lease must end.
    let _ = timeout(LISTENING, wait_until(&shared.changed, || can_hear() >= shared.quorum.needed)).await;
}

/// Releases a token of another process.
async fn release(shared: &Shared, theirs: Subject) -> Vec<BreakOutcome> {
    let (subject, now) = (Arc::new(theirs), shared.clock.now());
    let command = || Command { verb: Verb::Release { claim: CLAIM }, fence: None, subject: Arc::clone(&subject) };
    let asked = shared.nodes.iter().map(|node| node.ask(command(), now));
    let asked = asked.map(|answer| Box::pin(async { answer.await.map(|reply| reply == Reply::Released) }) as _);
    outcomes(asked.collect()).await
}

/// Deletes the lock of another program, if its value is exactly `value`.
async fn remove(shared: &Shared, key: &LockKey, value: &str) -> Vec<BreakOutcome> {
    outcomes(shared.nodes.iter().map(|node| node.node().remove(key, value)).collect()).await
}

/// Returns whether the lock was removed at each node.
async fn outcomes(asked: Vec<BoxFuture<'_, Result<bool, NodeError>>>) -> Vec<BreakOutcome> {
    gather(asked, PATIENCE, |_| false).await.into_iter().map(outcome).collect()
}

/// Returns the meaning of a reply; `None` is a timeout.
fn outcome(is_broken: Option<Result<bool, NodeError>>) -> BreakOutcome {
    match is_broken {
        Some(Ok(true)) => BreakOutcome::Broken,
        Some(Ok(false)) => BreakOutcome::NotHeld,
        Some(Err(error)) => BreakOutcome::Failed(error),
        None => BreakOutcome::Failed(NodeError::TimedOut(PATIENCE)),
    }
}

/// Token of this manager that replaces the token of a holder. It stays until the lease ends, unless the holder reports that it stopped
/// ([`Shared::stopped`]).
struct Revocation<'a> {
    local: &'a Arc<LocalQueue>,
    theirs: Subject,
    /// Names the token that it replaces.
    ours: Arc<Subject>,
}

/// Nodes at which our token has replaced the holder's token.
struct Places {
    outcomes: Vec<BreakOutcome>,
    /// Time after which the holder cannot rely on its lease.
    until: Instant,
    /// `true` if a client received the notification.
    is_told: bool,
}

impl Places {
    /// Merges the results of a second round. In that round, a node with a replaced token reports that the holder does not hold the
    /// lock.
    fn and(self, later: Self) -> Self {
        let outcome = |(one, later)| match (&one, &later) {
            (BreakOutcome::Broken, _) | (_, BreakOutcome::Failed(_)) => one,
            _ => later,
        };
        let outcomes = self.outcomes.into_iter().zip(later.outcomes).map(outcome).collect();
        Self { outcomes, until: self.until.max(later.until), is_told: self.is_told | later.is_told }
    }
}

/// Round in which the nodes replace the token. While this value lives, our token is not released. A command of the round may be
/// sent again, and must not be executed after the release.
struct Asking<'a> {
    shared: &'a Shared,
    ours: &'a Subject,
}

impl<'a> Asking<'a> {
    /// Returns `None` if the holder has stopped: the token is already released.
    fn begin(shared: &'a Shared, ours: &'a Subject) -> Option<Self> {
        shared.revocations.ask(&ours.token).then_some(Self { shared, ours })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.shared.on_break_answered(self.ours);
    }
}

impl<'a> Revocation<'a> {
    fn begin(local: &'a Arc<LocalQueue>, theirs: Subject, token: OwnerToken) -> Self {
        let (shared, now) = (local.shared(), local.shared().clock.now());
        let ours = Arc::new(Subject { other: Some(Box::new(theirs.token)), ..Subject::new(theirs.key.clone(), token) });
        // No call holds this token, so without the next line a wake-up about it would release it. It stays for the lease of the holder.
        shared.kept_tokens.keep(token, now.after(MAX_TTL), now);
        shared.revocations.begin(&ours, now.after(MAX_TTL), now);
        Self { local, theirs, ours }
    }

    /// Asks every node to replace the token, unless the holder has stopped.
    async fn ask(&self) -> Option<Vec<Option<Answer>>> {
        let (shared, now) = (self.local.shared(), self.local.shared().clock.now());
        // Dropped after the replies.
        let _asking = Asking::begin(shared, &self.ours)?;
        let command = || Command { verb: Verb::Revoke, fence: None, subject: Arc::clone(&self.ours) };
        let asked = shared.nodes.iter().map(|node| node.ask(command(), now));
        let answers = gather(asked.map(|answer| Box::pin(answer) as _).collect(), PATIENCE, |_| false).await;
        if let Some(left) = left(&answers) {
            shared.revocations.lasts(&self.ours.token, left);
        }
        Some(answers)
    }

    /// Replaces the token of the holder at every node, and notifies the holder.
    async fn replace_holder_tokens(&self) -> Places {
        let answers = self.ask().await;
        self.places(answers.unwrap_or_default())
    }

    /// Returns the meaning of the replies.
    fn places(&self, answers: Vec<Option<Answer>>) -> Places {
        let (shared, now) = (self.local.shared(), self.local.shared().clock.now());
        let until = left(&answers).map_or(now, |left| {
            let margin = drift(left, shared.policy.drift_factor) + EXPIRY_MARGIN;
            now.after(left + margin)
        });
        let is_told = is_told(&answers);
        let is_ours = |reply| matches!(reply, Reply::Revoked { .. });
        let outcomes = answers.into_iter().map(|answer| outcome(answer.map(|answer| answer.map(is_ours))));
        Places { outcomes: outcomes.collect(), until, is_told }
    }

    /// Notifies the holder a second time, if it has lost a node.
    async fn tell(&self, places: Places) -> Places {
        let broken = places.outcomes.iter().enumerate().filter(|(_, outcome)| **outcome == BreakOutcome::Broken);
        // A holder in this manager is notified directly, because its channel may not be open.
        let is_here = broken.map(|(index, _)| revoked(self.local, index, &self.theirs, self.ours.token));
        let Some(is_here) = is_here.reduce(|one, other| one | other) else { return places };
        let places = Places { is_told: places.is_told | is_here, ..places };
        match self.ask().await {
            Some(answers) => places.and(self.places(answers)),
            None => places,
        }
    }

    /// Waits for the report that the holder has stopped, up to `patience` and until its lease has ended. Returns whether it came.
    async fn wait_until_stopped(&self, until: Instant, patience: Duration) -> bool {
        let shared = self.local.shared();
        if !shared.rules.apply(Rule::BreakersWait) {
            shared.stopped(&self.ours);
        }
        let has_stopped = || shared.revocations.has_stopped(&self.ours.token);
        let patience = until.since(shared.clock.now()).min(patience);
        // A timeout means that the report did not come.
        let _ = timeout(patience, wait_until(&shared.changed, has_stopped)).await;
        has_stopped()
    }
}

/// Returns the longest remaining expiry of the nodes that replaced the token.
fn left(answers: &[Option<Answer>]) -> Option<Duration> {
    let left = answers.iter().flatten().filter_map(|answer| match answer {
        Ok(Reply::Revoked { left, .. }) => Some(*left),
        _ => None,
    });
    left.max()
}

/// Returns `true` if a client received the notification.
fn is_told(answers: &[Option<Answer>]) -> bool {
    answers.iter().flatten().any(|answer| matches!(answer, Ok(Reply::Revoked { is_told: true, .. })))
}

#[cfg(test)]
mod tests;
