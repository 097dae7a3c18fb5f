//! Acquiring a lock: the line in this process, then one try at all nodes, then the queues of the nodes.

use crate::client::acquisition::{Ownership, Unnumbered, Waited};
use crate::client::local_queue::{Ended, Entered, LOOKS_PER_TTL, LocalQueue, Seat, TakenOver, Ticket, Wish};
use crate::client::shared::Core;
use crate::error::LockError;
use crate::lock::LockKey;
use crate::protocol::command::Subject;
use crate::protocol::fencing_token::FencingToken;
use crate::protocol::quorum::Verdict;
use crate::request::DetachedLock;
use crate::request::{HoldTerms, LockRequest, Wait};
use crate::time::clock::Instant;
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
    let seat = call.obtain().await?;
    call.hold(&seat);
    Ok(seat)
}

/// Acquires a lock together with a fencing token.
///
/// # Cancel safety
/// As for [`acquire`].
pub(crate) async fn acquire_fenced(core: &Arc<Core>, request: LockRequest) -> Result<(Seat, FencingToken), LockError> {
    let call = Call::begin(core, request, true)?;
    call.may_start().await?;
    let mut seat = call.obtain().await?;
    loop {
        match call.numbered(&seat).await {
            Ok(token) => {
                call.hold(&seat);
                return Ok((seat, token));
            }
            Err(Unnumbered::Overtaken { above }) if call.has_time() => seat = call.start_above(seat, above).await?,
            Err(Unnumbered::Overtaken { .. }) => return Err(seat.ownership().failure()),
            Err(Unnumbered::Failed(error)) => return Err(error),
        }
    }
}

/// Takes up a lock that another call has left at the nodes.
///
/// # Cancel safety
/// Dropped at any await, what was taken up is given back: the [`Seat`] sees to that.
pub(crate) async fn attach(core: &Arc<Core>, detached: &DetachedLock) -> Result<Seat, LockError> {
    let call = Call::begin(core, attachment(detached), false)?;
    let seat = call.adopt(detached).await?;
    call.hold(&seat);
    Ok(seat)
}

/// Takes up a lock that another call has left at the nodes, together with a fencing token.
///
/// # Cancel safety
/// As for [`attach`].
pub(crate) async fn attach_fenced(
    core: &Arc<Core>,
    detached: &DetachedLock,
) -> Result<(Seat, FencingToken), LockError> {
    let call = Call::begin(core, attachment(detached), true)?;
    let seat = call.adopt(detached).await?;
    match call.numbered(&seat).await {
        Ok(token) => {
            call.hold(&seat);
            Ok((seat, token))
        }
        // There is no second try: the lock was left once.
        Err(Unnumbered::Overtaken { .. }) => Err(seat.ownership().failure()),
        Err(Unnumbered::Failed(error)) => Err(error),
    }
}

fn attachment(detached: &DetachedLock) -> LockRequest {
    LockRequest::new(detached.key().clone()).ttl(detached.ttl()).wait(Wait::None)
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

    /// Waits for the first connections.
    async fn may_start(&self) -> Result<(), LockError> {
        if self.core.is_starting() {
            self.core.started(self.wait).await;
        }
        if self.core.is_closed() {
            return Err(LockError::Closed);
        }
        Ok(())
    }

    /// The lock is that of this call from now on, and the watchdog looks at it in time.
    fn hold(&self, seat: &Seat) {
        let (now, within) = (self.core.clock.now(), self.ttl / LOOKS_PER_TTL);
        seat.ownership().begin(self.hold, now);
        self.core.local.look_by(&self.key, now.after(within));
        self.core.watchdog.look_within(self.core, within, now);
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
            if self.core.is_closed() {
                return Err(LockError::Closed);
            }
            if left <= lease {
                return Err(self.gave_up_in_line());
            }
        }
    }

    /// Whoever represents the process may have waited for servers that are silent.
    fn gave_up_in_line(&self) -> LockError {
        let first = self.core.local.ownership(self.key.name());
        let silent = first.filter(|first| first.is_waiting() && !first.is_heard());
        silent.map_or_else(|| self.timed_out(), |first| first.failure())
    }

    /// Takes the seat, and with it a lock that was left under another token.
    async fn adopt(&self, detached: &DetachedLock) -> Result<Seat, LockError> {
        self.may_start().await?;
        let mut seat = self.enter().await?;
        let from = Some(Box::new(*detached.token()));
        let subject = Subject { key: self.key.clone(), token: self.core.new_token(), from };
        let ownership = Ownership::new(self.core, subject, self.ttl, self.core.clock.now());
        seat.change(ownership).map_err(|TakenOver| self.contended())?;
        seat.ownership().want_number(self.is_fenced);
        seat.ownership().adopt().await?;
        Ok(seat)
    }

    /// Makes the lock of this process that of this call. A seat that another call has taken over meanwhile is waited for
    /// once more.
    async fn obtain(&self) -> Result<Seat, LockError> {
        loop {
            let seat = self.enter().await?;
            if let Some(seat) = self.secure(seat).await? {
                return Ok(seat);
            }
        }
    }

    /// `None` when another call has taken the seat.
    async fn secure(&self, mut seat: Seat) -> Result<Option<Seat>, LockError> {
        if seat.ownership().is_forfeited() {
            return Ok(None);
        }
        seat.ownership().want_number(self.is_fenced);
        if seat.ownership().is_held() {
            if self.is_still_useful(seat.ownership()).await {
                return Ok(Some(seat));
            }
            if seat.change_to_successor(self.ttl).is_err() {
                return Ok(None);
            }
            seat.ownership().want_number(self.is_fenced);
        }
        let now = self.core.clock.now();
        if self.may_claim(&seat, now) {
            let verdict = seat.ownership().claimed(now, self.patience()).await;
            match (verdict, self.wait) {
                (Verdict::Reached, _) => return Ok(Some(seat)),
                (Verdict::Contended, Wait::None) => return Err(self.contended()),
                (Verdict::OutOfReach | Verdict::Open, Wait::None) => return Err(seat.ownership().failure()),
                (_, Wait::For(_) | Wait::Forever) => {}
            }
        }
        self.wait(seat).await
    }

    /// Whether a lock that was passed on is good for a whole body; asks for a new lease when too little is left of it.
    async fn is_still_useful(&self, ownership: &Ownership) -> bool {
        if ownership.is_passable() {
            return true;
        }
        let is_extended = timeout(self.patience(), ownership.extend()).await.is_ok_and(|extended| extended.is_ok());
        // What was proven before stays so when too few nodes answer.
        is_extended || ownership.is_useful()
    }

    /// The fencing token of a lock that is held.
    async fn numbered(&self, seat: &Seat) -> Result<FencingToken, Unnumbered> {
        let limit = match self.wait {
            Wait::For(_) => self.left(),
            // Who does not wait for holders still waits for answers, and those have limits of their own.
            Wait::None | Wait::Forever => None,
        };
        let numbered = seat.ownership().numbered();
        match limit {
            None => numbered.await,
            Some(limit) => match timeout(limit.max(SHORTEST_LOOK), numbered).await {
                Ok(token) => token,
                Err(_) => Err(Unnumbered::Failed(seat.ownership().failure())),
            },
        }
    }

    /// Starts anew with another token, whose fencing number is larger than `above`.
    async fn start_above(&self, mut seat: Seat, above: u64) -> Result<Seat, LockError> {
        let next = seat.ownership().again_above(above);
        if seat.change(next).is_ok()
            && let Some(seat) = self.secure(seat).await?
        {
            return Ok(seat);
        }
        self.obtain().await
    }

    /// Whether to try at once without standing in the queues first. Where others have waited lately it would fail, and
    /// who does not wait may not stand in a queue.
    fn may_claim(&self, seat: &Seat, now: Instant) -> bool {
        !seat.ownership().is_waiting() && (self.wait == Wait::None || !self.core.hot_keys.is_hot(&self.key, now))
    }

    /// `None` when another call has taken the seat.
    async fn wait(&self, mut seat: Seat) -> Result<Option<Seat>, LockError> {
        let limit = self.limit();
        loop {
            match seat.ownership().waited(limit).await {
                Waited::Held => return Ok(Some(seat)),
                Waited::TakenOver => return Ok(None),
                Waited::Spoilt => {
                    if seat.change(seat.ownership().again()).is_err() {
                        return Ok(None);
                    }
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
