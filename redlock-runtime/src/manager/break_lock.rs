//! Takes a lock from whoever has it under a token, because somebody wants that who knows more than the nodes.
//!
//! 1. At each node, a token of this manager takes the place of the holder's, in one step with telling the holder. The key expires
//!    when it would have, so that nobody else gets it as long as the holder may count on it, whatever happens to us: the same as if
//!    the holder had crashed. It is told once more when all nodes have answered: what it heard before may have come too early.
//! 2. The holder asks all its nodes, hears that it has the lock no more, and stops its body. What it is told proves nothing by
//!    itself: anybody may publish it.
//! 3. The holder says when its token is dead. Only then, the token of this manager is released everywhere, so that whoever waits
//!    first has the lock; and not before all that asks for its places is answered or given up, because that would be executed behind
//!    the release if it was sent again. A holder that says nothing is waited for until its lease is over. This message is not
//!    authenticated either: a client that can read the key and publish can forge it, and then the next body starts too early.
//!
//! By force, the token of the holder is released, and nobody is told.

use super::LockManager;
use crate::client::gather::gather;
use crate::client::local_queue::LocalQueue;
use crate::client::revoked::revoked;
use crate::client::shared::Shared;
use crate::client::timers::timeout;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::BoxFuture;
use crate::node::inspection::{BreakOutcome, BreakReport, NodeBreak, StandIn};
use crate::observe::events;
use crate::protocol::command::{Answer, Command, Notice, Reply, Subject, Verb};
use crate::protocol::lease::drift;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{CLAIM, EXPIRY_MARGIN, MAX_TTL, STOPPING};
use crate::request::BreakRequest;
use crate::text::excerpt;
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::sync::Arc;
use std::time::Duration;

/// For how long the answer of a node is waited for. Smaller, a node that is busy looks silent; larger, breaking a lock takes
/// longer when a node is frozen.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait until the answer of the holder can be heard at enough nodes. Smaller, a connection that is made for that comes
/// too late for a holder that stops at once; larger, breaking a lock takes longer where nothing can be heard.
const LISTENING: Duration = Duration::from_secs(1);

impl LockManager {
    /// Takes the lock of `key` from whoever has it under `token`, which [`inspect`](Self::inspect) tells, and serves whoever
    /// waits first. For people, when the work behind a lock hangs or went astray.
    ///
    /// The holder is told. It asks its nodes, hears that the lock is not its own any more, and has lost it with
    /// [`LossCause::Revoked`](crate::LossCause::Revoked): the attribute and [`with_lock`](Self::with_lock) drop the body at its
    /// next await, a guard says so by [`lost`](crate::LockGuard::lost). When the guard is gone the holder says that it has
    /// stopped, and the next one is served. This waits for that, for five seconds at the most.
    ///
    /// A holder that does not say so, because its body blocks its thread, because it is gone or because it could not be told, has
    /// the lock no more either; but nobody else gets it before the lease is over that the holder may count on, which is not renewed.
    /// So this is never less safe than the crash of a holder. The report says which of it is the case. A holder can be told while
    /// it is connected, once its manager has anything to listen for: [`ready`](Self::ready) or [`check`](Self::check) was called, a
    /// call has waited, or a lease was renewed.
    ///
    /// Whoever has the lock under another token by then keeps it, so that it is no harm to come too late or to come twice. Calls
    /// of one process pass a lock on among themselves with the token, so that it may be another call's by then. The key of a
    /// window, which stays taken after the call, is broken as well: the window may run a second time.
    ///
    /// The lock of another program, a text that is no token of ours, is left alone: its holder cannot be told. It can be
    /// broken [by force](Self::break_lock_by_force).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Dropped midway, the lock may be broken or not. If it is, it is free when the holder has stopped, or when its lease is over.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LossCause};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let report = manager.break_lock("order:7", guard.token().as_str()).await;
    /// assert!(report.is_broken() && report.is_told);
    /// assert!(!report.has_stopped && report.stand_in.is_some(), "the guard is still there");
    /// let lost = guard.lost().await;
    /// assert!(matches!(lost, LockError::Lost { cause: LossCause::Revoked { by, .. }, .. } if *by == report.by));
    /// # Ok(()) }
    /// ```
    pub async fn break_lock(&self, key: impl Into<LockKey>, token: &str) -> BreakReport {
        self.break_lock_within(STOPPING, key, token).await
    }

    /// Does the same as [`break_lock`](Self::break_lock), and waits `within` that time for the holder to stop, in place of five
    /// seconds: for a body that takes long until its next await. No longer than for the lease that the holder may count on.
    ///
    /// Whoever waits is served when the holder stops, also after this has returned, as long as the manager lives. So this is for
    /// processes that would end.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`break_lock`](Self::break_lock).
    pub async fn break_lock_within(&self, within: Duration, key: impl Into<LockKey>, token: &str) -> BreakReport {
        self.break_lock_with(BreakRequest::new(key, token).within(within)).await
    }

    /// Gives the lock of `key` to whoever waits first, at once, if somebody has it under `token`, without telling him. Until he
    /// notices by himself, two may be at work: until he renews, after a third of his `ttl` or so, or, if he does not renew, until his
    /// lease ends. What must never happen then is for [fencing tokens](Self::acquire_fenced) to prevent.
    ///
    /// The lock of another program, a text that is no token of ours, is removed if it is exactly `token` and expires: what does not
    /// expire is no lock.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Dropped midway, the lock may be broken or not.
    pub async fn break_lock_by_force(&self, key: impl Into<LockKey>, token: &str) -> BreakReport {
        self.break_lock_with(BreakRequest::new(key, token).by_force()).await
    }

    /// Breaks a lock as `request` says, for example with a reason.
    ///
    /// Every attempt is logged by the event `broken`, with the token of the holder, a token of this manager, the outcome and the
    /// reason.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`break_lock`](Self::break_lock). The event has the outcome `interrupted`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::admin::BreakRequest;
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let request = BreakRequest::new("order:7", guard.token().as_str()).by_force().reason("its machine is gone");
    /// assert!(manager.break_lock_with(request).await.is_broken());
    /// # Ok(()) }
    /// ```
    pub async fn break_lock_with(&self, request: BreakRequest) -> BreakReport {
        let BreakRequest { key, token, within, is_forced, reason } = request;
        let (key, shared) = (self.broken_key(key).await, self.shared());
        let by = shared.new_token();
        let holder = excerpt(&token);
        let mut trail =
            Trail { shared, key: &key, holder: &holder, by, reason: reason.as_deref(), outcome: "interrupted" };
        let subject = parsed(&token).map(|theirs| Subject::new(key.clone(), theirs));
        let report = match (subject, is_forced) {
            (Some(theirs), false) => revoke(&self.local, theirs, by, within).await,
            (Some(theirs), true) => {
                let report = report(shared, by, &key, release(shared, theirs).await);
                if report.took_any() {
                    tell_turnstile(&self.local, &key).await;
                }
                report
            }
            (None, true) => report(shared, by, &key, remove(shared, &key, &token).await),
            (None, false) => report(shared, by, &key, shared.nodes.iter().map(|_| BreakOutcome::NeedsForce).collect()),
        };
        trail.outcome = report.word(is_forced);
        drop(trail);
        BreakReport { holder: holder.into(), reason, ..report }
    }

    /// The full name of a key that is to be broken, when the nodes were heard of.
    async fn broken_key(&self, key: impl Into<LockKey>) -> LockKey {
        self.shared().heard_of_all().await;
        key.into().below(&self.shared().namespace)
    }
}

/// An attempt to break a lock. Logged when this is dropped, so that an attempt that is cancelled leaves a trace as well.
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

/// The token in `text`, with the mark of those who wait or without.
fn parsed(text: &str) -> Option<OwnerToken> {
    OwnerToken::parse(text.strip_suffix('+').unwrap_or(text))
}

/// What happened to the lock of `key` at each node, where nobody was told.
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
        is_told: false,
        has_stopped: false,
        stand_in: None,
    }
}

/// Replaces the holder's token `theirs` by the breaker's token `by`, and waits up to `patience` for the holder to stop.
async fn revoke(local: &Arc<LocalQueue>, theirs: Subject, by: OwnerToken, patience: Duration) -> BreakReport {
    let shared = local.shared();
    hear_the_answer(shared, &theirs.key).await;
    let revocation = Revocation::begin(local, theirs, by);
    let places = revocation.take_places().await;
    let places = revocation.tell(places).await;
    let report = report(shared, by, &revocation.theirs.key, places.outcomes);
    // Who may have a majority still goes on.
    let has_stopped = report.took_any() && revocation.has_stopped_until(places.until, patience).await;
    if has_stopped {
        tell_turnstile(local, &revocation.theirs.key).await;
    }
    let left = places.until.since(shared.clock.now());
    let stands = !has_stopped && !left.is_zero();
    let stand_in = stands.then(|| StandIn { token: revocation.ours.token, left });
    BreakReport { is_told: places.is_told, has_stopped, stand_in, ..report }
}

/// Tells the call that waits for a permit of `key` that one is free: a lock that is broken is released as an ordinary one, because the
/// token does not say whether it has a permit.
async fn tell_turnstile(local: &LocalQueue, key: &LockKey) {
    let (shared, turnstile) = (local.shared(), key.turnstile());
    let asked = shared.nodes.iter().map(|node| node.node().holder_of(&turnstile)).collect();
    // The call has its turnstile by a quorum, so that another one names it.
    let is_enough = |answers: &[Option<Option<OwnerToken>>]| answers.iter().flatten().count() >= shared.quorum.needed;
    let waiting = gather(asked, PATIENCE, is_enough).await;
    for (index, (node, by)) in shared.nodes.iter().zip(waiting).enumerate() {
        let Some(by) = by.flatten() else { continue };
        let subject = Subject::new(turnstile.clone(), by);
        match local.find(&subject) {
            // A call of this manager needs no channel, which may not be open.
            Some(ours) => {
                ours.notice(index, Notice::Freed);
            }
            None => node.node().tell_freed(&subject),
        }
    }
}

/// Waits until what the holder answers can be heard at enough nodes.
async fn hear_the_answer(shared: &Shared, key: &LockKey) {
    shared.listen();
    let can_hear = || shared.nodes.iter().filter(|node| node.node().is_listening_for(key)).count();
    // Who hears nothing does not learn that the holder has stopped, and leaves the lock to its lease.
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

/// Removes the lock of another program, if it is exactly `value`.
async fn remove(shared: &Shared, key: &LockKey, value: &str) -> Vec<BreakOutcome> {
    outcomes(shared.nodes.iter().map(|node| node.node().remove(key, value)).collect()).await
}

/// Whether the lock was taken away at each node.
async fn outcomes(asked: Vec<BoxFuture<'_, Result<bool, NodeError>>>) -> Vec<BreakOutcome> {
    gather(asked, PATIENCE, |_| false).await.into_iter().map(outcome).collect()
}

/// What an answer means; `None` when there was none in time.
fn outcome(is_broken: Option<Result<bool, NodeError>>) -> BreakOutcome {
    match is_broken {
        Some(Ok(true)) => BreakOutcome::Broken,
        Some(Ok(false)) => BreakOutcome::NotHeld,
        Some(Err(error)) => BreakOutcome::Failed(error),
        None => BreakOutcome::Failed(NodeError::TimedOut(PATIENCE)),
    }
}

/// A lock that stands under a token of this manager in the place of another one. It stays there until its lease is over, unless
/// the holder says that it has stopped ([`Shared::stopped`]).
struct Revocation<'a> {
    local: &'a Arc<LocalQueue>,
    theirs: Subject,
    /// Names theirs.
    ours: Arc<Subject>,
}

/// Where our token has the place.
struct Places {
    outcomes: Vec<BreakOutcome>,
    /// The holder cannot count on its lease any more.
    until: Instant,
    /// Whether what it was told has been received.
    is_told: bool,
}

impl Places {
    /// What is known when the nodes have said that `later`. A place that was taken is not held by the holder when it is asked for
    /// again.
    fn and(self, later: Self) -> Self {
        let outcome = |(one, later)| match (&one, &later) {
            (BreakOutcome::Broken, _) | (_, BreakOutcome::Failed(_)) => one,
            _ => later,
        };
        let outcomes = self.outcomes.into_iter().zip(later.outcomes).map(outcome).collect();
        Self { outcomes, until: self.until.max(later.until), is_told: self.is_told | later.is_told }
    }
}

/// The nodes are asked for places of our token. While this lives, nothing releases it: an answer that is awaited may make a command
/// be sent again, which must not be executed behind the release.
struct Asking<'a> {
    shared: &'a Shared,
    ours: &'a Subject,
}

impl<'a> Asking<'a> {
    /// `None` when the holder has stopped: the token is released by then.
    fn begin(shared: &'a Shared, ours: &'a Subject) -> Option<Self> {
        shared.revocations.ask(&ours.token).then_some(Self { shared, ours })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.shared.has_asked(self.ours);
    }
}

impl<'a> Revocation<'a> {
    fn begin(local: &'a Arc<LocalQueue>, theirs: Subject, token: OwnerToken) -> Self {
        let (shared, now) = (local.shared(), local.shared().clock.now());
        let ours = Arc::new(Subject { other: Some(Box::new(theirs.token)), ..Subject::new(theirs.key.clone(), token) });
        // No call has it, so that what the nodes say of it must not be answered by a release. How long it stands is for the lease
        // of the holder to say.
        shared.kept_tokens.keep(token, now.after(MAX_TTL), now);
        shared.revocations.begin(&ours, now.after(MAX_TTL), now);
        Self { local, theirs, ours }
    }

    /// Asks every node, unless the holder has stopped.
    async fn ask(&self) -> Option<Vec<Option<Answer>>> {
        let (shared, now) = (self.local.shared(), self.local.shared().clock.now());
        // Dropped after the answers.
        let _asking = Asking::begin(shared, &self.ours)?;
        let command = || Command { verb: Verb::Revoke, fence: None, subject: Arc::clone(&self.ours) };
        let asked = shared.nodes.iter().map(|node| node.ask(command(), now));
        let answers = gather(asked.map(|answer| Box::pin(answer) as _).collect(), PATIENCE, |_| false).await;
        if let Some(left) = left(&answers) {
            shared.revocations.lasts(&self.ours.token, left);
        }
        Some(answers)
    }

    /// Takes the place of the holder at every node, and tells it.
    async fn take_places(&self) -> Places {
        let answers = self.ask().await;
        self.places(answers.unwrap_or_default())
    }

    /// What the nodes have answered.
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

    /// Tells the holder once more, if it has lost anything.
    async fn tell(&self, places: Places) -> Places {
        let broken = places.outcomes.iter().enumerate().filter(|(_, outcome)| **outcome == BreakOutcome::Broken);
        // A holder in this manager needs no channel, which may not be open.
        let is_here = broken.map(|(index, _)| revoked(self.local, index, &self.theirs, self.ours.token));
        let Some(is_here) = is_here.reduce(|one, other| one | other) else { return places };
        let places = Places { is_told: places.is_told | is_here, ..places };
        match self.ask().await {
            Some(answers) => places.and(self.places(answers)),
            None => places,
        }
    }

    /// Whether the holder says that it has stopped, for which it has until then, and no longer than is worth waiting for.
    async fn has_stopped_until(&self, until: Instant, patience: Duration) -> bool {
        let shared = self.local.shared();
        if !shared.rules.apply(Rule::BreakersWait) {
            shared.stopped(&self.ours);
        }
        let has_stopped = || shared.revocations.has_stopped(&self.ours.token);
        let patience = until.since(shared.clock.now()).min(patience);
        // Who has not said so by then has not.
        let _ = timeout(patience, wait_until(&shared.changed, has_stopped)).await;
        has_stopped()
    }
}

/// For how long the place lasts that was taken, where it lasts longest.
fn left(answers: &[Option<Answer>]) -> Option<Duration> {
    let left = answers.iter().flatten().filter_map(|answer| match answer {
        Ok(Reply::Revoked { left, .. }) => Some(*left),
        _ => None,
    });
    left.max()
}

/// Whether anybody has received what the nodes were to tell.
fn is_told(answers: &[Option<Answer>]) -> bool {
    answers.iter().flatten().any(|answer| matches!(answer, Ok(Reply::Revoked { is_told: true, .. })))
}

#[cfg(test)]
mod tests;
