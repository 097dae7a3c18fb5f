//! Acquiring a lock: the line in this process, then one try at all nodes, then the queues of the nodes.

use crate::clock::Instant;
use crate::error::LockError;
use crate::key::LockKey;
use crate::local_queue::{Ended, Entered, LocalQueue, Seat, Ticket};
use crate::options::{LockRequest, Wait};
use crate::ownership::{Ownership, Waited};
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
    let call = Call::begin(core, request)?;
    if core.is_starting() {
        core.started(call.wait).await;
    }
    if core.is_closed() {
        return Err(LockError::Closed);
    }
    let seat = match LocalQueue::enter(core, &call.key, call.ttl, call.wait != Wait::None) {
        Entered::First(seat) => seat,
        Entered::Behind(ticket) => {
            // Who has the lock passes it on here until it hears of others: so it must be able to hear.
            core.listen();
            call.stand_in_line(ticket).await?
        }
        Entered::Taken => return Err(call.contended()),
    };
    call.obtain(seat).await
}

/// A request with everything decided.
struct Call<'c> {
    core: &'c Arc<Core>,
    key: LockKey,
    ttl: Duration,
    wait: Wait,
    begun: Instant,
}

impl<'c> Call<'c> {
    fn begin(core: &'c Arc<Core>, request: LockRequest) -> Result<Self, LockError> {
        let key = request.key.below(&core.namespace);
        key.check()?;
        let ttl = core.policy.checked_ttl(request.ttl.unwrap_or(core.policy.default_ttl))?;
        let wait = match request.wait.unwrap_or(core.policy.default_wait) {
            Wait::For(Duration::ZERO) => Wait::None,
            wait => wait,
        };
        Ok(Self { core, key, ttl, wait, begun: core.clock.now() })
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
        if seat.ownership().is_held() {
            if is_still_useful(seat.ownership()).await {
                return Ok(seat);
            }
            seat.change_to_successor(self.ttl);
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
                Waited::Spoilt => seat.change(seat.ownership().again()),
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
