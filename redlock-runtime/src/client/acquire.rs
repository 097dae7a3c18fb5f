//! Acquisition of a lock: the local queue of this process, then one try at all nodes, then the queues of the nodes.

mod admission;
mod attaching;
mod first_try;
mod metrics;
mod nested;
mod observed;
mod ordered;
mod path;
mod patience;
mod pending_permit;
mod permits;
mod taken;
mod together;

pub(crate) use self::attaching::attach;
pub(crate) use self::metrics::{AcquireMetrics, is_taken};
use self::path::AcquirePath;
pub(crate) use self::path::{log_no_quorum, named};

use crate::client::acquisition::{Acquisition, ResumeState, Unnumbered};
use crate::client::enclosing::ReentrantEntry;
use crate::client::local_queue::{Entered, LineClosed, LocalOwner, LocalQueue, LocalWait, Superseded};
use crate::client::shared::Shared;
use crate::client::timers::timeout;
use crate::client::waiting_calls::WaitingCall;
use crate::error::LockError;
use crate::lock::parts::Parts;
use crate::lock::slot::slot_of;
use crate::lock::{LockKey, Mode};
use crate::observe::spans::{self, Path};
use crate::protocol::candidate::{Waited, Wanted};
use crate::protocol::fencing_token::FencingToken;
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::timing::LONGEST_SILENCE;
use crate::request::acquire_request::AcquireRequest;
use crate::request::{Place, Wait};
use crate::stats::Known;
use crate::time::clock::Instant;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Shortest time between two checks of a lease that is about to end. Smaller: a busy loop, because tokio's timers count
/// whole milliseconds.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
/// Longest time between two checks. A later owner may have a shorter lease than the present one. Larger: the lock of a
/// leaked guard is taken over later.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// Ownership of a lock by a call.
pub(crate) enum Share {
    Turn(LocalOwner),
    /// Part in the lock of an enclosing call.
    ReentrantEntry(ReentrantEntry),
}

/// Acquired lock, with its fencing token if one was requested.
pub(crate) struct AcquiredLock {
    pub(crate) share: Share,
    pub(crate) fencing_token: Option<FencingToken>,
    /// Source location of the request.
    pub(crate) place: Place,
}

impl AcquiredLock {
    /// Returns the token that the nodes know.
    pub(crate) fn acquisition(&self) -> &Acquisition {
        match &self.share {
            Share::Turn(turn) => turn.acquisition(),
            Share::ReentrantEntry(view) => view.acquisition(),
        }
    }
}

/// Acquires a lock: in the local queue, by one try at all nodes, or in their queues. `asked` is the metrics record of a
/// call that was counted before, if it was.
///
/// # Cancel safety
/// A future that is dropped at any await leaves nothing behind: [`LocalOwner`] and [`LocalWait`] clean up when they are
/// dropped.
pub(crate) async fn acquire<'c>(
    local: &'c Arc<LocalQueue>,
    request: &AcquireRequest,
    asked: Option<AcquireMetrics<'c>>,
) -> Result<AcquiredLock, LockError> {
    let asked = asked.unwrap_or_else(|| AcquireMetrics::begin(local.shared(), request));
    let call = match Call::begin(local, request, &asked) {
        Ok(call) => call,
        Err(error) => return asked.refuse(error),
    };
    let outcome = if spans::calls_enabled() {
        // Boxed, so that the future of other calls stays small.
        Box::pin(call.in_span(call.run())).await
    } else {
        // `run`, inlined here: one more future around these would cost more than all other instrumentation.
        let outcome = match call.enter_enclosing_lock().await {
            Ok(None) => call.take().await,
            Ok(Some(view)) => Ok(view),
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            call.log_failure(&outcome);
        }
        outcome
    };
    call.on_answered(asked, &outcome);
    outcome
}

/// Request with all defaults filled in.
struct Call<'c> {
    local: &'c Arc<LocalQueue>,
    /// Common name of the parts.
    key: LockKey,
    parts: Parts,
    mode: Mode,
    wanted: Wanted,
    wait: Wait,
    /// Number of permits that may be held at a time, for a permit.
    permits: u32,
    /// Call for the permit, if this is the call for its admission lock, or for the share with which it waits for exclusive
    /// locks.
    permit: Option<&'c Self>,
    hold: HoldOptions,
    /// Set if the call may share its token with other calls of the process.
    joins: bool,
    /// Set if the call may enter the lock of an enclosing call.
    is_reentrant: bool,
    /// Set if other calls may wait for this lock in another order.
    has_ordered_lock: bool,
    place: Place,
    label: Option<&'static str>,
    site: &'c Known,
    way: AcquirePath,
    begun: Instant,
    /// Time after which the lock is useless to the call.
    latest: Option<Instant>,
    /// Set when the call begins to wait, if the number of waiting calls is limited.
    waiting: OnceLock<WaitingCall>,
}

/// Reason that an acquisition failed.
enum AcquireError {
    /// Another call of this process has taken over the key.
    Superseded,
    Failed(LockError),
}

impl From<Superseded> for AcquireError {
    fn from(Superseded: Superseded) -> Self {
        Self::Superseded
    }
}

impl<'c> Call<'c> {
    /// Creates the call from a request and the defaults of the manager.
    ///
    /// # Errors
    /// [`LockError::Configuration`] for values that are out of range.
    fn begin(
        local: &'c Arc<LocalQueue>,
        request: &AcquireRequest,
        asked: &AcquireMetrics<'c>,
    ) -> Result<Self, LockError> {
        let (shared, policy) = (local.shared(), &local.shared().policy);
        let parts = request.parts(&shared.namespace)?;
        let linger = policy.linger_of(request)?;
        let (key, mode) = (parts.key(), request.mode_of(&parts));
        check_same_slot(shared, &parts)?;
        let ttl = policy.checked_ttl(request.ttl.unwrap_or(policy.default_ttl))?;
        let wait = match request.wait.unwrap_or(policy.default_wait) {
            Wait::For(Duration::ZERO) => Wait::None,
            wait => wait,
        };
        request.hold.check(ttl)?;
        if !linger.is_zero() {
            local.linger();
        }
        let is_kept = request.hold.min_hold.is_some() || request.hold.window_rest.is_some();
        if is_kept {
            shared.has_kept_keys.store(true, Ordering::Relaxed);
        }
        let wanted = Wanted { ttl, is_fenced: request.is_fenced, is_kept, linger };
        let place = request.place.unwrap_or_else(Place::unknown);
        let AcquireRequest { hold, is_reentrant, has_ordered_lock, label, .. } = *request;
        let joins = request.joins && parts.is_single() && mode == Mode::Shared && hold.renew && !is_kept;
        let (site, latest, way) = (asked.site(), asked.latest, AcquirePath::default());
        let begun = shared.clock.now();
        Ok(Self {
            local,
            key,
            parts,
            mode,
            wanted,
            wait,
            permits: request.permits.unwrap_or(u32::MAX),
            permit: None,
            hold,
            joins,
            is_reentrant,
            has_ordered_lock,
            place,
            label,
            site,
            way,
            begun,
            latest,
            waiting: OnceLock::new(),
        })
    }

    fn shared(&self) -> &Arc<Shared> {
        self.local.shared()
    }

    fn now(&self) -> Instant {
        self.shared().clock.now()
    }

    /// Enters the lock of a caller, or acquires a lock.
    async fn run(&self) -> Result<AcquiredLock, LockError> {
        match self.enter_enclosing_lock().await? {
            Some(view) => Ok(view),
            None => self.take().await,
        }
    }

    /// Acquires the lock, with a fencing number if one was requested.
    async fn take(&self) -> Result<AcquiredLock, LockError> {
        self.wait_until_started().await?;
        if self.joins {
            return self.acquire_jointly().await;
        }
        // Boxed, so that the futures of other calls stay small.
        let mut turn =
            if self.mode.is_permit() { Box::pin(self.obtain_permit()).await? } else { self.obtain().await? };
        loop {
            match self.number(&turn).await {
                Ok(_) if self.latest.is_some_and(|latest| latest <= self.now()) => return Err(self.timeout_error(None)),
                Ok(fencing_token) => return Ok(self.hold(turn, fencing_token)),
                Err(Unnumbered::Again) if self.has_time() => turn = self.start_again(turn).await?,
                Err(Unnumbered::Again) => return Err(turn.acquisition().failure()),
                Err(Unnumbered::Failed(error)) => return Err(error),
            }
        }
    }

    /// Waits for the first connections.
    async fn wait_until_started(&self) -> Result<(), LockError> {
        if self.shared().is_starting() {
            self.shared().started(self.wait).await;
        }
        if self.shared().is_closed() {
            return Err(LockError::Closed);
        }
        Ok(())
    }

    /// Gives the lock to this call, and registers it with the watchdog.
    fn hold(&self, turn: LocalOwner, fencing_token: Option<FencingToken>) -> AcquiredLock {
        let now = self.now();
        let span = self.hold_span(turn.acquisition(), fencing_token);
        let check_within = turn.acquisition().begin(self.hold, self.site.id, span, now);
        self.count_as_acquired(now);
        self.local.watch(turn.acquisition(), check_within, now);
        #[cfg(feature = "testing")]
        self.note_stay(&turn, fencing_token);
        AcquiredLock { share: Share::Turn(turn), fencing_token, place: self.place }
    }

    /// Returns `true` if the call does not use the local queue of its key. Either other calls may have the key at the
    /// same time, or the call wants several keys.
    fn stands_beside(&self) -> bool {
        self.mode.is_shared() || !self.parts.is_single()
    }

    /// Counts the call among the waiting calls for its key, if their number is limited. A call for a permit waits for
    /// its key, even while it waits for the admission lock.
    ///
    /// # Errors
    /// [`LockError::TooManyWaiting`] if the limit is reached.
    fn count_as_waiting(&self) -> Result<(), LockError> {
        let Some(limit) = self.shared().policy.max_waiting else { return Ok(()) };
        let call = self.permit.unwrap_or(self);
        if call.waits() && call.waiting.get().is_none() {
            let waiting = self.shared().waiting_calls.begin(&call.key, limit);
            let waiting = waiting.ok_or_else(|| LockError::TooManyWaiting { key: call.key.clone(), limit })?;
            // The value is only set here, and the call is one task.
            let _ = call.waiting.set(waiting);
        }
        Ok(())
    }

    /// Joins the local queue of the key, and waits for the calls ahead.
    async fn enter(&self) -> Result<LocalOwner, LockError> {
        if self.stands_beside() {
            return Ok(self.local.enter_unqueued((&self.parts, self.mode), self.wanted, self.begun));
        }
        match self.local.enter(&self.key, self.wanted, self.waits(), self.begun) {
            Entered::First(turn) => Ok(turn),
            Entered::Behind(place) => {
                self.count_as_waiting()?;
                self.way.set_queue_rank(place.others());
                // The holder passes the lock on within the process until it is notified of other waiters, so it must
                // receive notifications.
                self.shared().listen();
                self.wait_in_local_queue(place).await
            }
            Entered::Taken => Err(self.contended_locally()),
        }
    }

    /// Waits in the local queue, and regularly checks if the lease of the holder has ended.
    async fn wait_in_local_queue(&self, mut place: LocalWait) -> Result<LocalOwner, LockError> {
        loop {
            let left = self.left().unwrap_or(Duration::MAX);
            let lease = self.local.lease_left(&self.key).unwrap_or(self.wanted.ttl).clamp(SHORTEST_LOOK, LONGEST_LOOK);
            if let Ok(turn) = timeout(lease.min(left), &mut place).await {
                return turn.map_err(|LineClosed| LockError::Closed);
            }
            if let Some(turn) = place.supersede() {
                return Ok(turn);
            }
            if self.shared().is_closed() {
                return Err(LockError::Closed);
            }
            if left <= lease {
                return Err(self.local_queue_timeout_error());
            }
            // A late answer to a renewal may have restored the lock of a caller.
            self.releasable_caller_lock()?;
            if let Some(refusal) = self.queue_head_error() {
                return Err(refusal);
            }
        }
    }

    /// Returns the permanent error that keeps the head of the local queue from the lock. The whole queue fails with it
    /// at once, not one call after the other.
    fn queue_head_error(&self) -> Option<LockError> {
        let first = self.local.acquisition(self.key.name()).filter(|first| first.is_waiting() && first.is_refused())?;
        let is_silent = self.now().since(self.begun) >= LONGEST_SILENCE;
        is_silent.then(|| first.failure())
    }

    /// Acquires the lock for this call. If another call of the process has taken over the key, it waits again.
    async fn obtain(&self) -> Result<LocalOwner, LockError> {
        loop {
            let turn = self.enter().await?;
            match self.secure(turn).await {
                Ok(turn) => return Ok(turn),
                Err(AcquireError::Superseded) => {}
                Err(AcquireError::Failed(error)) => return Err(error),
            }
        }
    }

    /// Acquires the lock for the call at the head of the local queue. It resumes the state that the previous call has
    /// left.
    async fn secure(&self, mut turn: LocalOwner) -> Result<LocalOwner, AcquireError> {
        let mut found = turn.acquisition().resume(self.wanted);
        if let ResumeState::Held { is_passable } = found {
            if is_passable || self.extend_passed_lock(turn.acquisition()).await {
                self.way.goes(Path::Local);
                return Ok(turn);
            }
            turn.change_to_successor(self.wanted.ttl)?;
            found = turn.acquisition().resume(self.wanted);
        }
        let now = self.now();
        match found {
            ResumeState::Superseded => Err(AcquireError::Superseded),
            ResumeState::Ended => Err(AcquireError::Failed(LockError::Closed)),
            ResumeState::Fresh if self.should_try_at_once(now) => self.try_at_once(turn, now).await,
            ResumeState::Fresh | ResumeState::Waiting | ResumeState::Held { .. } => self.wait(turn).await,
        }
    }

    /// Extends a passed lock that has too little of its lease left. Returns `true` if a body may begin.
    async fn extend_passed_lock(&self, acquisition: &Acquisition) -> bool {
        let is_extended = timeout(self.patience(), acquisition.extend()).await.is_ok_and(|extended| extended.is_ok());
        // If too few nodes answer, earlier proofs stay valid. But for a key that has to stay taken after the call,
        // claims are not sufficient.
        is_extended || acquisition.is_useful() && !(self.wanted.is_kept && acquisition.depends_on_claims())
    }

    /// Returns the fencing token of a held lock, if one was requested.
    async fn number(&self, turn: &LocalOwner) -> Result<Option<FencingToken>, Unnumbered> {
        if !self.wanted.is_fenced {
            return Ok(None);
        }
        let limit = match self.wait {
            Wait::For(_) => self.left(),
            // A call that does not wait for holders still waits for answers, which have their own time limits.
            Wait::None | Wait::Forever => None,
        };
        let numbered = turn.acquisition().numbered();
        match limit {
            None => numbered.await.map(Some),
            Some(limit) => match timeout(limit.max(SHORTEST_LOOK), numbered).await {
                Ok(token) => token.map(Some),
                Err(_) if turn.acquisition().is_heard() => Err(Unnumbered::Failed(self.timeout_error(None))),
                Err(_) => Err(Unnumbered::Failed(turn.acquisition().failure())),
            },
        }
    }

    /// Starts again with another token, because the lease of the previous one ended before it had a number.
    async fn start_again(&self, mut turn: LocalOwner) -> Result<LocalOwner, LockError> {
        let next = turn.acquisition().again();
        let secured = match turn.change(next) {
            Ok(()) => self.secure(turn).await,
            Err(superseded) => Err(superseded.into()),
        };
        match secured {
            Ok(turn) => Ok(turn),
            Err(AcquireError::Superseded) => self.obtain().await,
            Err(AcquireError::Failed(error)) => Err(error),
        }
    }

    /// Waits in the queues of the nodes until the lock is ours. If the present token cannot win any longer, another one
    /// replaces it.
    async fn wait(&self, mut turn: LocalOwner) -> Result<LocalOwner, AcquireError> {
        let limit = self.limit();
        // The first call of the local queue waits for all calls behind it, and is not counted with them.
        if self.waits() && self.stands_beside() {
            self.count_as_waiting().map_err(AcquireError::Failed)?;
        }
        loop {
            let acquisition = turn.acquisition();
            match acquisition.wait(limit).await {
                Waited::Held => {
                    self.way.goes(Path::Queued);
                    return Ok(turn);
                }
                Waited::Superseded => return Err(AcquireError::Superseded),
                // Another token takes the same place in the queues.
                Waited::LostMajority => {
                    turn.change(acquisition.again())?;
                    turn.acquisition().resume(self.wanted);
                }
                Waited::Closed => return Err(AcquireError::Failed(LockError::Closed)),
                Waited::TimedOut if acquisition.is_heard() => {
                    return Err(AcquireError::Failed(self.timed_out(acquisition).await));
                }
                Waited::TimedOut | Waited::Silent => {
                    acquisition.wait_for_refusal_replies(self.patience()).await;
                    return Err(AcquireError::Failed(acquisition.failure()));
                }
            }
        }
    }
}

/// Checks that one node command can name all parts.
///
/// # Errors
/// [`LockError::Configuration`] if the names are in different slots of a cluster.
fn check_same_slot(shared: &Shared, parts: &Parts) -> Result<(), LockError> {
    if parts.is_single() {
        return Ok(());
    }
    let (first, slot) = (parts.first(), slot_of(parts.first().name()));
    let other = parts.iter().find(|part| slot_of(part.name()) != slot);
    match other.filter(|_| shared.nodes.iter().any(|node| node.node().has_parts())) {
        None => Ok(()),
        Some(other) => Err(LockError::configuration(format!(
            "{} and {} are in different slots of a cluster, which cannot lock both in one step: put the common part \
             in a hash tag, as in \"{{acme}}:from\" and \"{{acme}}:to\"",
            first.key.quoted(),
            other.key.quoted(),
        ))),
    }
}
