//! Acquiring a lock: the line in this process, then one try at all nodes, then the queues of the nodes.

use crate::clock::Instant;
use crate::detached::DetachedLock;
use crate::error::LockError;
use crate::fencing_token::FencingToken;
use crate::key::LockKey;
use crate::local_queue::{Ended, Entered, LOOKS_PER_TTL, LocalQueue, Seat, Ticket, Wish};
use crate::options::{HoldTerms, LockRequest, Wait};
use crate::ownership::{Ownership, Unnumbered, Waited};
use crate::quorum::Verdict;
use crate::shared::Core;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The least time between two looks at a lease that is about to run out.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
/// The most: whoever has the lock by then may have taken it for less time than the one before.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// # Cancel safety
/// Dropped at any await, it leaves nothing behind: the [`Seat`] and the [`Ticket`] see to that.
pub(crate) async fn acquire(core: &Arc<Core>, request: LockRequest) -> Result<Seat, LockError> {
    let call = Call::begin(core, request, false)?;
    call.may_start().await?;
    let seat = call.obtain(call.enter().await?).await?;
    seat.ownership().begin(call.hold);
    Ok(seat)
}

/// Acquires a lock together with a fencing token.
///
/// # Cancel safety
/// As for [`acquire`].
pub(crate) async fn acquire_fenced(core: &Arc<Core>, request: LockRequest) -> Result<(Seat, FencingToken), LockError> {
    let call = Call::begin(core, request, true)?;
    call.may_start().await?;
    let mut seat = call.enter().await?;
    loop {
        seat = call.obtain(seat).await?;
        match seat.ownership().numbered().await {
            Ok(token) => {
                seat.ownership().begin(call.hold);
                return Ok((seat, token));
            }
            Err(Unnumbered::Overtaken { above }) if call.has_time() => {
                seat.change(seat.ownership().again_above(above));
            }
            Err(Unnumbered::Overtaken { .. }) => return Err(seat.ownership().failure()),
            Err(Unnumbered::Failed(error)) => return Err(error),
        }
    }
}

/// Takes up a lock that another call has left at the nodes.
///
/// # Cancel safety
/// Dropped at any await, the lock is given back.
pub(crate) async fn attach(core: &Arc<Core>, detached: DetachedLock) -> Result<Seat, LockError> {
    let (token, request) = (*detached.token(), LockRequest::new(detached.key().clone()).ttl(detached.ttl()));
    let call = Call::begin(core, request.wait(Wait::None), false)?;
    call.may_start().await?;
    let mut seat = call.enter().await?;
    seat.change(Ownership::new(core, &call.key, token, call.ttl));
    seat.ownership().attach().await?;
    seat.ownership().begin(call.hold);
    Ok(seat)
}

/// A request with everything decided.
struct Call<'c> {
    core: &'c Arc<Core>,
    key: LockKey,
    ttl: Duration,
    wait: Wait,
    hold: HoldTerms,
    is_fenced: bool,
    begun: Instant,
}

impl<'c> Call<'c> {
    fn begin(core: &'c Arc<Core>, request: LockRequest, is_fenced: bool) -> Result<Self, LockError> {
        let key = request.key.below(&core.namespace);
        key.check()?;
        let ttl = core.policy.checked_ttl(request.ttl.unwrap_or(core.policy.default_ttl))?;
        let wait = match request.wait.unwrap_or(core.policy.default_wait) {
            Wait::For(Duration::ZERO) => Wait::None,
            wait => wait,
        };
        request.hold.check(ttl)?;
        core.servers.lease_of(request.hold.min_hold.map_or(ttl, |least| least.max(ttl)));
        Ok(Self { core, key, ttl, wait, hold: request.hold, is_fenced, begun: core.clock.now() })
    }

    /// Waits for the first connections, and sees to it that the watchdog looks at the lock in time.
    async fn may_start(&self) -> Result<(), LockError> {
        if self.core.is_starting() {
            self.core.started(self.wait).await;
        }
        if self.core.is_closed() {
            return Err(LockError::Closed);
        }
        self.core.watchdog.look_within(self.core, self.ttl / LOOKS_PER_TTL, self.begun);
        Ok(())
    }

    /// Takes the seat for the key, waiting for whoever has it.
    async fn enter(&self) -> Result<Seat, LockError> {
        let wish = Wish { ttl: self.ttl, is_fenced: self.is_fenced, waits: self.wait != Wait::None };
        match LocalQueue::enter(self.core, &self.key, wish, self.begun) {
            Entered::First(seat) => Ok(seat),
            Entered::Behind(ticket) => {
                // Who has the lock passes it on here until it hears of others: so it must be able to hear.
                self.core.listen();
                self.stand_in_line(ticket).await
            }
            Entered::Taken => Err(self.contended()),
        }
    }

    async fn stand_in_line(&self, mut ticket: Ticket) -> Result<Seat, LockError> {
        loop {
            let left = self.left().unwrap_or(Duration::MAX);
            let lease = self.core.local.lease_left(&self.key).unwrap_or(self.ttl).clamp(SHORTEST_LOOK, LONGEST_LOOK);
            if let Ok(seat) = timeout(lease.min(left), &mut ticket).await {
                return seat.map_err(|Ended| LockError::Closed);
            }
            if let Some(seat) = ticket.take_over() {
                return Ok(seat);
            }
            if left <= lease {
                return Err(self.timed_out());
            }
        }
    }

    /// Makes the lock of this process that of this call.
    async fn obtain(&self, mut seat: Seat) -> Result<Seat, LockError> {
        seat.ownership().want_number(self.is_fenced);
        if seat.ownership().is_held() {
            if is_still_useful(seat.ownership()).await {
                return Ok(seat);
            }
            seat.change_to_successor(self.ttl);
            seat.ownership().want_number(self.is_fenced);
        }
        if self.may_claim(&seat) {
            let now = self.core.clock.now();
            let verdict = seat.ownership().claimed(now, self.patience()).await;
            match (verdict, self.wait) {
                (Verdict::Reached, _) => return Ok(seat),
                (Verdict::Contended, Wait::None) => return Err(self.contended()),
                (Verdict::OutOfReach | Verdict::Open, Wait::None) => return Err(seat.ownership().failure()),
                (_, Wait::For(_) | Wait::Forever) => {}
            }
        }
        self.wait(seat).await
    }

    /// Whether to try at once without standing in the queues first. Where others have waited lately it would fail, and
    /// who does not wait may not stand in a queue.
    fn may_claim(&self, seat: &Seat) -> bool {
        !seat.ownership().is_waiting()
            && (self.wait == Wait::None || !self.core.hot_keys.is_hot(&self.key, self.core.clock.now()))
    }

    async fn wait(&self, mut seat: Seat) -> Result<Seat, LockError> {
        let limit = self.limit();
        loop {
            match seat.ownership().waited(limit).await {
                Waited::Held => return Ok(seat),
                Waited::Spoilt => {
                    seat.change(seat.ownership().again());
                    seat.ownership().want_number(self.is_fenced);
                }
                Waited::Closed => return Err(LockError::Closed),
                Waited::TimedOut if seat.ownership().is_heard() => return Err(self.timed_out()),
                Waited::TimedOut | Waited::Silent => return Err(seat.ownership().failure()),
            }
        }
    }

    /// When the wait is over; `None` waits for ever.
    fn limit(&self) -> Option<Instant> {
        match self.wait {
            Wait::None => Some(self.begun),
            Wait::For(limit) => Some(self.begun.after(limit)),
            Wait::Forever => None,
        }
    }

    fn left(&self) -> Option<Duration> {
        self.limit().map(|limit| limit.since(self.core.clock.now()))
    }

    /// Whether there is time for one more try.
    fn has_time(&self) -> bool {
        self.left().is_none_or(|left| !left.is_zero())
    }

    /// How long the first try may take.
    fn patience(&self) -> Duration {
        let node_timeout = self.core.policy.node_timeout(self.ttl);
        match (self.wait, self.left()) {
            // A caller who does not wait for holders still waits for answers.
            (Wait::None, _) | (_, None) => node_timeout,
            (_, Some(left)) => node_timeout.min(left),
        }
    }

    fn contended(&self) -> LockError {
        LockError::Contended { key: self.key.clone() }
    }

    fn timed_out(&self) -> LockError {
        LockError::TimedOut { key: self.key.clone(), waited: self.core.clock.now().since(self.begun) }
    }
}

/// Whether a lock that was passed on is good for a whole body; asks for a new lease when too little is left of it.
async fn is_still_useful(ownership: &Ownership) -> bool {
    // What was proven before stays so when too few nodes answer.
    ownership.is_passable() || ownership.extend().await.is_ok() || ownership.is_useful()
}
