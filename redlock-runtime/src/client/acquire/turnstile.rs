//! Steps of a call for a permit while it owns the turnstile: it asks the nodes and pauses, until it has a permit.

use super::entrant::{Entrant, Rest};
use super::{Call, SHORTEST_LOOK};
use crate::client::acquisition::{Acquisition, TakenUp};
use crate::client::local_queue::{LocalTurn, PermitWait};
use crate::client::timers::timeout;
use crate::error::LockError;
use crate::observe::spans::Path;
use crate::protocol::candidate::{Entering, turn};
use crate::protocol::rules::Rule;
use crate::protocol::timing::{AFTER_FAILURE, LONGEST_SILENCE, POLL, QUESTIONS_PER_TURN};
use crate::time::clock::Instant;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

/// Reason that a call does not own the turnstile any longer.
pub(super) enum Left {
    /// Another token owns the turnstile.
    TurnLost,
    Failed(LockError),
}

/// Outcome of a wait that another permit may end.
pub(super) enum Came<T> {
    /// Awaited result.
    Ours(T),
    /// Permit that another call of the process has passed on.
    Passed(LocalTurn),
}

/// State of a call while it owns the turnstile.
struct Stay<'t> {
    turnstile: &'t LocalTurn,
    /// Pending request, until the call has its permit. Afterwards, or at any earlier end, it stays with the turnstile.
    entrant: Option<Entrant>,
    /// Set if returned permits are noticed since the last question.
    is_heard: bool,
    /// Set if the call had to wait because all permits were taken.
    has_stayed: bool,
    /// Time since which too few nodes have answered.
    silent_since: Option<Instant>,
    /// Set if the possible deadlock with a caller was already logged.
    is_told: bool,
}

impl Call<'_> {
    /// Registers a waiting call for permits that other calls pass on. A call with `min_hold` neither passes a permit on
    /// nor gets one, and no permit overtakes it.
    pub(super) fn place_in_line(&self) -> Option<PermitWait> {
        self.waits().then(|| self.local.wait_for_permit(&self.key, self.wanted, self.permits))
    }

    /// Waits for the future `ours`, or for a permit of another call.
    pub(super) async fn unless_passed<T>(
        &self,
        place: &mut Option<PermitWait>,
        ours: impl Future<Output = T>,
    ) -> Came<T> {
        let mut ours = pin!(ours);
        poll_fn(|cx| {
            while let Some(Poll::Ready(permit)) = place.as_mut().map(|place| Pin::new(place).poll(cx)) {
                // The call may not have been polled for long.
                let is_good = permit.acquisition().take_up(self.wanted) == (TakenUp::Held { is_passable: true });
                if is_good && !self.shared().is_closed() {
                    self.way.goes(Path::Local);
                    return Poll::Ready(Came::Passed(permit));
                }
                place.as_mut().into_iter().for_each(PermitWait::wait_again);
            }
            ours.as_mut().poll(cx).map(Came::Ours)
        })
        .await
    }

    /// Enters while this process owns the turnstile, which is left when this function returns.
    pub(super) async fn enter_through(
        &self,
        turnstile: &LocalTurn,
        begun: Instant,
        place: &mut Option<PermitWait>,
    ) -> Result<Came<LocalTurn>, Left> {
        let entrant = self.entrant(turnstile);
        entrant.permit.acquisition().take_up(self.wanted);
        if self.waits() {
            // From the first question on, returned permits are noticed.
            self.shared().listen();
        }
        let mut stay = Stay {
            turnstile,
            is_heard: entrant.rest.is_some(),
            entrant: Some(entrant),
            has_stayed: false,
            // A call that does not wait for permits has one time limit for all its questions.
            silent_since: (!self.waits()).then_some(begun),
            is_told: false,
        };
        let came = self.stay(&mut stay, place).await;
        let has_stayed = matches!(came, Ok(Came::Passed(_))) || came.is_ok() && stay.has_stayed;
        drop(stay);
        // Each call that waits in the turnstile takes as long as a body, so other processes go first.
        if has_stayed && turnstile.acquisition().is_contended() {
            turnstile.acquisition().release();
        }
        came
    }

    /// Asks the nodes until they admit the call, with pauses.
    async fn stay(&self, stay: &mut Stay<'_>, place: &mut Option<PermitWait>) -> Result<Came<LocalTurn>, Left> {
        let mut share = None;
        loop {
            if self.shared().is_closed() {
                return Err(Left::Failed(LockError::Closed));
            }
            // Ask the nodes, unless another call passes its permit on first.
            let entering = match self.unless_passed(place, self.ask(stay, share.take())).await {
                Came::Ours(entering) => entering,
                Came::Passed(passed) => return Ok(Came::Passed(passed)),
            };
            let now = self.now();
            self.ask_after_others(stay, entering, now);
            // The call is admitted.
            if entering == Entering::Admitted
                && let Some(Entrant { permit, .. }) = stay.entrant.take()
            {
                return self.extend_claims(permit).await.map(Came::Ours);
            }
            // Otherwise, plan the next question, and stop if the time limit is over.
            let pause = if entering == Entering::Unanswered { AFTER_FAILURE } else { POLL }.min(self.question_pause());
            stay.has_stayed |= matches!(entering, Entering::Full { .. });
            stay.set_rest(match entering {
                Entering::Full { first_end } => stay.rest().or(Some(Rest { first_end, until: now.after(pause) })),
                _ => None,
            });
            self.may_stay(stay, entering, now)?;
            // While it waits, its entries must not last longer than the turnstile.
            if let (Entering::Full { .. }, Some(Entrant { permit, .. })) = (entering, &stay.entrant) {
                permit.acquisition().enter_briefly(stay.turnstile.acquisition());
            }
            // A writer goes first: wait for it as a reader, then ask at once.
            if entering == Entering::Behind {
                self.give_way(stay)?;
                match self.unless_passed(place, self.wait_as_reader(stay)).await {
                    Came::Ours(obtained) => share = Some(obtained?),
                    Came::Passed(passed) => return Ok(Came::Passed(passed)),
                }
                continue;
            }
            // Keep the turnstile, and wait until a permit is given back or the pause is over.
            if !self.keep_turnstile(stay.turnstile).await {
                return Err(Left::TurnLost);
            }
            let until = self.rests_until(stay, now.after(pause));
            match self.unless_passed(place, stay.turnstile.acquisition().until_freed(until)).await {
                Came::Ours(()) => stay.set_rest(None),
                Came::Passed(passed) => return Ok(Came::Passed(passed)),
            }
        }
    }

    /// Requests whole leases if the call was admitted by brief ones. The body waits for them only if its key has to
    /// stay taken after it, because brief leases end soon.
    ///
    /// # Errors
    /// The error of the extension, if the call waits for it.
    async fn extend_claims(&self, permit: LocalTurn) -> Result<LocalTurn, Left> {
        let acquisition = permit.acquisition();
        match acquisition.stands_on_claims() {
            true if self.wanted.is_kept => {
                let left = self.left().filter(|_| self.waits()).unwrap_or(Duration::MAX);
                let extended = timeout(left, acquisition.extend()).await;
                extended.unwrap_or_else(|_| Err(self.timed_out_by(None))).map_err(Left::Failed)?;
            }
            true => acquisition.extend_claims(),
            false => {}
        }
        Ok(permit)
    }

    /// Asks the nodes and returns the progress of the call, unless the previous call has a recent answer. A `share` of
    /// the key with which the call has waited is released right behind the question.
    async fn ask(&self, stay: &mut Stay<'_>, share: Option<LocalTurn>) -> Entering {
        let Some(Entrant { permit, rest, is_asked, .. }) = &mut stay.entrant else { return Entering::Unanswered };
        if let Some(Rest { first_end, .. }) = *rest {
            return Entering::Full { first_end };
        }
        let (permit, turnstile) = (permit.acquisition(), stay.turnstile.acquisition());
        let rules = self.shared().rules;
        let share = share.filter(|_| rules.apply(Rule::SharesAreKeptUntilAsked));
        if let Some(share) = share.as_ref().filter(|_| rules.apply(Rule::OwnSharesAreNotCounted)) {
            permit.is_beside(*share.acquisition().token());
        }
        if !std::mem::replace(is_asked, true) {
            stay.is_heard = turnstile.hears_others();
            permit.ask_for_permit(turnstile);
        }
        drop(share);
        let limit = self.limit().filter(|_| self.waits());
        let entering = permit.enter(turnstile, self.permits, limit, self.waits()).await;
        *is_asked = false;
        entering
    }

    /// Notifies the permit holders if this process, with any of its calls, has found all permits taken for a while. A
    /// command from a cut connection may have made a permit without a holder.
    fn ask_after_others(&self, stay: &Stay<'_>, entering: Entering, now: Instant) {
        let full = &self.shared().full_keys;
        match (entering, full.noted_at(&self.key, now)) {
            (Entering::Full { .. }, None) => full.note(&self.key, now),
            (Entering::Full { .. }, Some(since)) if POLL <= now.since(since) => {
                full.note(&self.key, now);
                if let Some(Entrant { permit, .. }) = &stay.entrant {
                    permit.acquisition().ask_after_others();
                }
            }
            (Entering::Admitted, Some(_)) => full.note_until(&self.key, now),
            _ => {}
        }
    }

    /// Checks that the call may continue to wait.
    ///
    /// # Errors
    /// The reason that the call stops waiting.
    fn may_stay(&self, stay: &mut Stay<'_>, entering: Entering, now: Instant) -> Result<(), Left> {
        if entering == Entering::Unanswered {
            let since = *stay.silent_since.get_or_insert(now);
            let Some(Entrant { permit, .. }) = &stay.entrant else { return Ok(()) };
            return self.may_ask_again(permit.acquisition(), now.since(since), now);
        }
        stay.silent_since = stay.silent_since.filter(|_| !self.waits());
        self.may_rest(stay.rest().and_then(|rest| rest.first_end), now)
    }

    /// Releases the permits of some nodes, for a writer that holds the lock or waits for it with an earlier token.
    fn give_way(&self, stay: &mut Stay<'_>) -> Result<(), Left> {
        // This process may hold the lock itself, idle.
        self.local.end_idle(self.key.name());
        self.does_not_wait_behind_its_callers(&mut stay.is_told).map_err(Left::Failed)?;
        if let Some(Entrant { permit, .. }) = &mut stay.entrant
            && self.shared().rules.apply(Rule::PermitsGiveWay)
        {
            // The local turn of this token has no other user.
            permit.change_to_successor(self.wanted.ttl).map_err(|_| Left::TurnLost)?;
            permit.acquisition().take_up(self.wanted);
        }
        Ok(())
    }

    /// Waits in the queues of the key for a share, until no exclusive lock is ahead of the call. The turnstile is kept
    /// meanwhile.
    ///
    /// # Errors
    /// The loss of the turnstile, or the reason that the call stops waiting.
    async fn wait_as_reader(&self, stay: &mut Stay<'_>) -> Result<LocalTurn, Left> {
        let reader = self.as_reader();
        let mut obtaining = pin!(reader.obtain());
        loop {
            if !self.keep_turnstile(stay.turnstile).await {
                return Err(Left::TurnLost);
            }
            if let Ok(obtained) = timeout(self.question_pause(), obtaining.as_mut()).await {
                return obtained.map_err(Left::Failed);
            }
            // This process may hold the lock idle, without a call.
            self.local.end_idle(self.key.name());
            self.does_not_wait_behind_its_callers(&mut stay.is_told).map_err(Left::Failed)?;
        }
    }

    /// Returns the longest pause of a call between two checks of its turnstile.
    fn question_pause(&self) -> Duration {
        turn(self.wanted.ttl) / QUESTIONS_PER_TURN
    }

    /// Returns the end of the pause, at `look_at` or earlier.
    fn rests_until(&self, stay: &Stay<'_>, look_at: Instant) -> Instant {
        let limit = self.limit().filter(|_| self.waits());
        let (look_at, first_end) = stay.rest().map_or((look_at, None), |rest| (rest.until, rest.first_end));
        let until = [first_end, limit].into_iter().flatten().fold(look_at, Instant::min);
        until.max(self.now().after(SHORTEST_LOOK))
    }

    /// Checks that the call may ask again after a silence of the nodes.
    ///
    /// # Errors
    /// The reason that the call stops waiting.
    fn may_ask_again(&self, permit: &Acquisition, silence: Duration, now: Instant) -> Result<(), Left> {
        let (limit, waits) = (self.limit(), self.waits());
        let is_over = waits && limit.is_some_and(|limit| limit <= now);
        if is_over && permit.is_heard() {
            Err(Left::Failed(self.timed_out_by(None)))
        } else if is_over || silence >= LONGEST_SILENCE && (limit.is_some() || permit.is_refused()) {
            Err(Left::Failed(permit.failure()))
        } else {
            Ok(())
        }
    }

    /// Checks that the call may wait for a permit.
    ///
    /// # Errors
    /// The reason that the call stops waiting.
    fn may_rest(&self, first_end: Option<Instant>, now: Instant) -> Result<(), Left> {
        match self.limit() {
            _ if !self.waits() => Err(Left::Failed(self.full(first_end.map(|end| end.since(now))))),
            Some(limit) if limit <= now => Err(Left::Failed(self.timed_out_by(None))),
            _ => Ok(()),
        }
    }

    /// Extends the turnstile if necessary. Returns `true` if the process still owns it.
    async fn keep_turnstile(&self, turnstile: &LocalTurn) -> bool {
        let acquisition = turnstile.acquisition();
        if acquisition.lease_left().is_none_or(|left| left < turn(self.wanted.ttl) * 2 / 3) {
            // The remaining lease shows too few answers, and the time limit shows the end of the call.
            let left = self.left().filter(|_| self.waits()).unwrap_or(Duration::MAX);
            // The wait is shorter than for other extensions, so that the call notices its own end, such as a shutdown.
            let _ = timeout(left.min(acquisition.node_timeout()), acquisition.extend()).await;
        }
        !turnstile.has_ended() && acquisition.stands_there()
    }
}

impl Stay<'_> {
    fn rest(&self) -> Option<Rest> {
        self.entrant.as_ref()?.rest
    }

    fn set_rest(&mut self, rest: Option<Rest>) {
        if let Some(entrant) = &mut self.entrant {
            entrant.rest = rest;
        }
    }
}

/// Leaves the pending request to the next call, if that owns the turnstile under the same token. Otherwise, the
/// turnstile is released first, so that a late permit request finds a turnstile with another owner.
impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let Some(mut entrant) = self.entrant.take() else { return };
        entrant.rest = entrant.rest.filter(|_| self.is_heard);
        self.turnstile.acquisition().accompany(entrant);
    }
}

#[cfg(test)]
mod tests {
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::client::local_queue::LocalQueue;
    use crate::protocol::command::Verb;
    use crate::protocol::timing::LONGEST_SILENCE;
    use crate::time::clock::Clock;
    use crate::{LockManager, LockRequest};
    use std::sync::Arc;
    use tokio::time::Instant;

    /// The node grants the turnstile at once, and is away for most of a second when it is asked for the permit.
    #[tokio::test(start_paused = true)]
    async fn permit_call_that_does_not_wait_asks_for_the_permit_again_after_failures() {
        let begun = Instant::now();
        let node = HookedNode::new(Clock::tokio(), move |command| {
            let is_away = begun.elapsed() < LONGEST_SILENCE * 9 / 10;
            if is_away && matches!(command.verb, Verb::Enter { .. }) { Fate::CutOff } else { Fate::Answered }
        });
        let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None)));
        drop(manager.try_acquire(LockRequest::new("a").permits(1)).await.unwrap());
    }
}
