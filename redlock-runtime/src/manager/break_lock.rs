//! Takes a lock from whoever has it under a token, because somebody wants that who knows more than the nodes.
//!
//! 1. At each node, a token of this manager takes the place of the holder's: as when a lock is taken up that another worker
//!    has left, so that nobody else gets it, the queue stays what it is, and the holder's token is worth nothing from then on.
//! 2. Behind that, on the same connection, the holder is told. It asks the node, hears that it has the lock no more, and
//!    stops its body when a majority says so. What it is told proves nothing by itself: anybody may publish it.
//! 3. The holder says when its body has stopped, for which it gets a while.
//! 4. The token of this manager is released everywhere, so that whoever waits first has the lock.
//!
//! By force, it is 4 alone, with the token of the holder.

use super::LockManager;
use crate::client::gather::gather;
use crate::client::local_queue::LocalQueue;
use crate::client::revoked::revoked;
use crate::client::shared::Shared;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::BoxFuture;
use crate::node::inspection::{BreakOutcome, BreakReport, NodeBreak};
use crate::protocol::command::{Answer, Command, Reply, Subject, Verb};
use crate::protocol::last_command::LastCommand;
use crate::protocol::timing::{CLAIM, QUEUE_EXPIRY};
use crate::time::wait_until::wait_until;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// For how long the answer of a node is waited for. Smaller, a node that is busy looks silent; larger, breaking a lock takes
/// longer when a node is frozen.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the holder may take to stop, from when it was told. Smaller, a body that is busy may still be at work when the next
/// one begins; larger, who waits goes on waiting where a body blocks its thread.
const GRACE: Duration = Duration::from_secs(2);

/// For how long the lock stands under the token of this manager at most, should this process die meanwhile. Smaller than what
/// waiting for the nodes and for the holder takes, others may have it before the holder stops; larger, they wait for longer.
const STAY: Duration = Duration::from_secs(4);

impl LockManager {
    /// Takes the lock of `key` from whoever has it under `token`, which [`inspect`](Self::inspect) tells, and serves whoever
    /// waits first. For people, when the work behind a lock hangs or went astray.
    ///
    /// The holder is told first. It asks its nodes, hears that the lock is not its own any more, and its body is dropped at its
    /// next await with [`LossCause::Revoked`](crate::LossCause::Revoked). When that is done the next one is served, or after two
    /// seconds. The report says whether the holder was told, and has stopped. It can be told while it is connected, once its
    /// manager has anything to listen for: [`ready`](Self::ready) or [`check`](Self::check) was called, a call has waited, or a
    /// lease was renewed. One that was not told goes on until it notices by itself: for that long two may be at work, as also
    /// when a body blocks its thread. What must never happen then is for [fencing tokens](Self::acquire_fenced) to prevent.
    ///
    /// Whoever has the lock under another token by then keeps it, so that it is no harm to come too late or to come twice. The
    /// lock of another program, a text that is no token of ours, is removed if it is exactly `token`; its holder is not told.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// Dropped midway, the lock may be broken or not. What stands there under a token of this manager is released once the
    /// nodes answer.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LossCause};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let report = manager.break_lock("order:7", guard.token().as_str()).await;
    /// assert!(report.is_broken() && report.is_told);
    /// assert!(matches!(guard.lost().await, LockError::Lost { cause: LossCause::Revoked, .. }));
    /// # Ok(()) }
    /// ```
    pub async fn break_lock(&self, key: impl Into<LockKey>, token: &str) -> BreakReport {
        self.break_as(key.into(), token, true).await
    }

    /// Does the same at once, without telling the holder, and without giving it time to stop.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// Dropped midway, the lock may be broken or not.
    pub async fn break_lock_by_force(&self, key: impl Into<LockKey>, token: &str) -> BreakReport {
        self.break_as(key.into(), token, false).await
    }

    async fn break_as(&self, key: LockKey, token: &str, tells: bool) -> BreakReport {
        let shared = self.shared();
        shared.heard_of_all().await;
        let key = key.below(&shared.namespace);
        let (outcomes, told) = match OwnerToken::parse(token.strip_suffix('+').unwrap_or(token)) {
            None => (remove(shared, &key, token).await, Told::default()),
            Some(token) if tells => revoke(&self.local, Subject::new(key.clone(), token)).await,
            Some(token) => (release(shared, Subject::new(key.clone(), token)).await, Told::default()),
        };
        let labels = shared.nodes.iter().map(|node| node.label().into());
        let nodes = labels.zip(outcomes).map(|(node, outcome)| NodeBreak { node, outcome }).collect();
        BreakReport { key, nodes, needed: shared.quorum.needed, is_told: told.is_told, has_stopped: told.has_stopped }
    }
}

/// What the holder knows, and has said.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    is_told: bool,
    has_stopped: bool,
}

/// Tells whoever has the lock as `theirs`, and releases it when they have stopped, or had time to. What happened at each node, and
/// what they know.
async fn revoke(local: &Arc<LocalQueue>, theirs: Subject) -> (Vec<BreakOutcome>, Told) {
    let shared = local.shared();
    // For the answer.
    shared.listen();
    let mut revocation = Revocation::begin(local, theirs);
    let (outcomes, is_told) = revocation.outcomes().await;
    let is_told = is_told && outcomes.contains(&BreakOutcome::Broken);
    let has_stopped = || shared.revocations.has_stopped(&revocation.ours.token);
    if is_told {
        // Who does not answer in time is passed over.
        let _ = timeout(GRACE, wait_until(&shared.changed, has_stopped)).await;
    }
    let told = Told { is_told, has_stopped: has_stopped() };
    (outcomes, told)
}

/// Releases a token of another process.
async fn release(shared: &Shared, theirs: Subject) -> Vec<BreakOutcome> {
    let (subject, now) = (Arc::new(theirs), shared.clock.now());
    let command = || Command { verb: Verb::Release { claim: CLAIM }, fence: None, subject: Arc::clone(&subject) };
    let asked = shared.nodes.iter().map(|node| node.ask(command(), now));
    answers(asked.map(|answer| Box::pin(async { answer.await.map(|reply| reply == Reply::Released) }) as _)).await
}

/// Removes the lock of another program, if it is exactly `value`.
async fn remove(shared: &Shared, key: &LockKey, value: &str) -> Vec<BreakOutcome> {
    answers(shared.nodes.iter().map(|node| node.node().remove(key, value))).await
}

/// Whether the lock was taken away at each node.
async fn answers(asked: impl Iterator<Item = BoxFuture<'_, Result<bool, NodeError>>>) -> Vec<BreakOutcome> {
    let answers = gather(asked.collect(), PATIENCE, |_| false).await;
    answers.into_iter().map(outcome).collect()
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

/// A lock that stands under a token of this manager in the place of another one. Dropped, it is released.
struct Revocation<'a> {
    local: &'a Arc<LocalQueue>,
    theirs: Subject,
    /// Names theirs.
    ours: Arc<Subject>,
    /// For each node, whether our token has taken the place, and whether the holder has received what it was told.
    asked: Vec<BoxFuture<'a, (Answer, bool)>>,
}

impl<'a> Revocation<'a> {
    /// Sends everything: to each node first what takes the place, then what tells the holder.
    fn begin(local: &'a Arc<LocalQueue>, theirs: Subject) -> Self {
        let (shared, now) = (local.shared(), local.shared().clock.now());
        let token = shared.new_token();
        // No call has it, so that what the nodes say of it must not be answered by a release.
        shared.kept_tokens.keep(token, now.after(QUEUE_EXPIRY), now);
        shared.revocations.begin(token);
        let ours = Arc::new(Subject { other: Some(Box::new(theirs.token)), ..Subject::new(theirs.key.clone(), token) });
        let command = || Command { verb: Verb::Adopt { ttl: STAY }, fence: None, subject: Arc::clone(&ours) };
        let asked = shared.nodes.iter().map(|node| {
            let adopted = node.ask(command(), now);
            let told = node.node().tell_revoked(&theirs, &token);
            Box::pin(async move { (adopted.await, told.await) }) as _
        });
        let asked = asked.collect();
        Self { local, theirs, ours, asked }
    }

    /// What happened at each node, and whether anybody was told.
    async fn outcomes(&mut self) -> (Vec<BreakOutcome>, bool) {
        let answers = gather(std::mem::take(&mut self.asked), PATIENCE, |_| false).await;
        let mut is_told = answers.iter().flatten().any(|(_, is_told)| *is_told);
        let is_ours = |answer| matches!(answer, Reply::Extended { .. } | Reply::Found { .. });
        let outcomes: Vec<_> =
            answers.into_iter().map(|answer| outcome(answer.map(|(answer, _)| answer.map(is_ours)))).collect();
        // A holder in this manager needs no channel, which may not be open.
        for (index, _) in outcomes.iter().enumerate().filter(|(_, outcome)| **outcome == BreakOutcome::Broken) {
            is_told |= revoked(self.local, index, &self.theirs, self.ours.token);
        }
        (outcomes, is_told)
    }
}

impl Drop for Revocation<'_> {
    fn drop(&mut self) {
        // The answers first: what takes the place is not sent again for nobody, behind its release.
        self.asked.clear();
        let shared = self.local.shared();
        shared.revocations.end(&self.ours.token);
        let last = LastCommand::release(CLAIM, STAY, shared.clock.now());
        for index in 0..shared.nodes.len() {
            shared.release(index, Arc::clone(&self.ours), last);
        }
    }
}
