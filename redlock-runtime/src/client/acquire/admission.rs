//! Steps of a call for a permit while it owns the admission lock: it asks the nodes and pauses, until it has a permit.

use super::pending_permit::{PendingPermit, Rest};
use super::{Call, SHORTEST_LOOK};
use crate::client::acquisition::{Acquisition, ResumeState};
use crate::client::local_queue::{LocalOwner, PermitWait};
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

/// Reason that a call does not own the admission lock any longer.
pub(super) enum AdmissionError {
    /// Another token owns the admission lock.
    TurnLost,
    Failed(LockError),
}

/// Outcome of a wait that another permit may end.
pub(super) enum PermitOutcome<T> {
    /// Awaited result.
    Ours(T),
    /// Permit that another call of the process has passed on.
    Passed(LocalOwner),
}

/// State of a call while it owns the admission lock.
struct PermitAttempt<'t> {
    admission: &'t LocalOwner,
    /// Pending request, until the call has its permit. Afterwards, or at any earlier end, it stays with the admission lock.
    pending_permit: Option<PendingPermit>,
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
    pub(super) fn register_for_permit(&self) -> Option<PermitWait> {
        self.waits().then(|| self.local.wait_for_permit(&self.key, self.wanted, self.permits))
    }

    /// Waits for the future `ours`, or for a permit of another call.
    pub(super) async fn race_passed_permit<T>(
        &self,
        place: &mut Option<PermitWait>,
        ours: impl Future<Output = T>,
    ) -> PermitOutcome<T> {
        let mut ours = pin!(ours);
        poll_fn(|cx| {
            while let Some(Poll::Ready(permit)) = place.as_mut().map(|place| Pin::new(place).poll(cx)) {
                // The call may not have been polled for long.
                let is_good = permit.acquisition().resume(self.wanted) == (ResumeState::Held { is_passable: true });
                if is_good && !self.shared().is_closed() {
                    self.way.goes(Path::Local);
                    return Poll::Ready(PermitOutcome::Passed(permit));
                }
                place.as_mut().into_iter().for_each(PermitWait::wait_again);
            }
            ours.as_mut().poll(cx).map(PermitOutcome::Ours)
        })
        .await
    }

    /// Enters while this process owns the admission lock, which is left when this function returns.
    pub(super) async fn enter_through(
        &self,
        admission: &LocalOwner,
        begun: Instant,
        place: &mut Option<PermitWait>,
    ) -> Result<PermitOutcome<LocalOwner>, AdmissionError> {
        let pending_permit = self.pending_permit(admission);
        pending_permit.permit.acquisition().resume(self.wanted);
        if self.waits() {
            // From the first question on, returned permits are noticed.
            self.shared().listen();
        }
        let mut stay = PermitAttempt {
            admission,
            is_heard: pending_permit.rest.is_some(),
            pending_permit: Some(pending_permit),
            has_stayed: false,
            // A call that does not wait for permits has one time limit for all its questions.
            silent_since: (!self.waits()).then_some(begun),
            is_told: false,
        };
        let came = self.stay(&mut stay, place).await;
        let has_stayed = matches!(came, Ok(PermitOutcome::Passed(_))) || came.is_ok() && stay.has_stayed;
        drop(stay);
        // Each call that waits in the admission lock takes as long as a body, so other processes go first.
        if has_stayed && admission.acquisition().is_contended() {
            admission.acquisition().release();
        }
        came
    }

    /// Asks the nodes until they admit the call, with pauses.
    async fn stay(
        &self,
        stay: &mut PermitAttempt<'_>,
        place: &mut Option<PermitWait>,
    ) -> Result<PermitOutcome<LocalOwner>, AdmissionError> {
        let mut share = None;
        loop {
            if self.shared().is_closed() {
                return Err(AdmissionError::Failed(LockError::Closed));
            }
            // Ask the nodes, unless another call passes its permit on first.
            let entering = match self.race_passed_permit(place, self.ask(stay, share.take())).await {
                PermitOutcome::Ours(entering) => entering,
                PermitOutcome::Passed(passed) => return Ok(PermitOutcome::Passed(passed)),
            };
            let now = self.now();
            self.notify_permit_holders(stay, entering, now);
            // The call is admitted.
            if entering == Entering::Admitted
                && let Some(PendingPermit { permit, .. }) = stay.pending_permit.take()
            {
                return self.extend_claims(permit).await.map(PermitOutcome::Ours);
            }
            // Otherwise, plan the next question, and stop if the time limit is over.
            let pause = if entering == Entering::Unanswered { AFTER_FAILURE } else { POLL }.min(self.question_pause());
            stay.has_stayed |= matches!(entering, Entering::Full { .. });
            stay.set_rest(match entering {
                Entering::Full { first_end } => stay.rest().or(Some(Rest { first_end, until: now.after(pause) })),
                _ => None,
            });
            self.check_wait_continues(stay, entering, now)?;
            // While it waits, its entries must not last longer than the admission lock.
            if let (Entering::Full { .. }, Some(PendingPermit { permit, .. })) = (entering, &stay.pending_permit) {
                permit.acquisition().enter_briefly(stay.admission.acquisition());
            }
            // A writer goes first: wait for it as a reader, then ask at once.
            if entering == Entering::Behind {
                self.release_permits_for_writer(stay)?;
                match self.race_passed_permit(place, self.wait_as_reader(stay)).await {
                    PermitOutcome::Ours(obtained) => share = Some(obtained?),
                    PermitOutcome::Passed(passed) => return Ok(PermitOutcome::Passed(passed)),
                }
                continue;
            }
            // Keep the admission lock, and wait until a permit is given back or the pause is over.
            if !self.extend_admission_if_needed(stay.admission).await {
                return Err(AdmissionError::TurnLost);
            }
            let until = self.rests_until(stay, now.after(pause));
            match self.race_passed_permit(place, stay.admission.acquisition().wait_until_permit_freed(until)).await {
                PermitOutcome::Ours(()) => stay.set_rest(None),
                PermitOutcome::Passed(passed) => return Ok(PermitOutcome::Passed(passed)),
            }
        }
    }

    /// Requests whole leases if the call was admitted by brief ones. The body waits for them only if its key has to
    /// stay taken after it, because brief leases end soon.
    ///
    /// # Errors
    /// The error of the extension, if the call waits for it.
    async fn extend_claims(&self, permit: LocalOwner) -> Result<LocalOwner, AdmissionError> {
        let acquisition = permit.acquisition();
        match acquisition.depends_on_claims() {
            true if self.wanted.is_kept => {
                let left = self.left().filter(|_| self.waits()).unwrap_or(Duration::MAX);
                let extended = timeout(left, acquisition.extend()).await;
                extended.unwrap_or_else(|_| Err(self.timeout_error(None))).map_err(AdmissionError::Failed)?;
            }
            true => acquisition.extend_claims(),
            false => {}
        }
        Ok(permit)
    }

    /// Asks the nodes and returns the progress of the call, unless the previous call has a recent answer. A `share` of
    /// the key with which the call has waited is released right behind the question.
    async fn ask(&self, stay: &mut PermitAttempt<'_>, share: Option<LocalOwner>) -> Entering {
        let Some(PendingPermit { permit, rest, is_asked, .. }) = &mut stay.pending_permit else {
            return Entering::Unanswered;
        };
        if let Some(Rest { first_end, .. }) = *rest {
            return Entering::Full { first_end };
        }
        let (permit, admission) = (permit.acquisition(), stay.admission.acquisition());
        let rules = self.shared().rules;
        let share = share.filter(|_| rules.apply(Rule::SharesAreKeptUntilAsked));
        if let Some(share) = share.as_ref().filter(|_| rules.apply(Rule::OwnSharesAreNotCounted)) {
            permit.set_share_beside(*share.acquisition().token());
        }
        if !std::mem::replace(is_asked, true) {
            stay.is_heard = admission.hears_others();
            permit.ask_for_permit(admission);
        }
        drop(share);
        let limit = self.limit().filter(|_| self.waits());
        let entering = permit.enter(admission, self.permits, limit, self.waits()).await;
        *is_asked = false;
        entering
    }

    /// Notifies the permit holders if this process, with any of its calls, has found all permits taken for a while. A
    /// command from a cut connection may have made a permit without a holder.
    fn notify_permit_holders(&self, stay: &PermitAttempt<'_>, entering: Entering, now: Instant) {
        let full = &self.shared().full_keys;
        match (entering, full.noted_at(&self.key, now)) {
            (Entering::Full { .. }, None) => full.note(&self.key, now),
            (Entering::Full { .. }, Some(since)) if POLL <= now.since(since) => {
                full.note(&self.key, now);
                if let Some(PendingPermit { permit, .. }) = &stay.pending_permit {
                    permit.acquisition().notify_permit_holders();
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
    fn check_wait_continues(
        &self,
        stay: &mut PermitAttempt<'_>,
        entering: Entering,
        now: Instant,
    ) -> Result<(), AdmissionError> {
        if entering == Entering::Unanswered {
            let since = *stay.silent_since.get_or_insert(now);
            let Some(PendingPermit { permit, .. }) = &stay.pending_permit else { return Ok(()) };
            return self.check_retry_after_silence(permit.acquisition(), now.since(since), now);
        }
        stay.silent_since = stay.silent_since.filter(|_| !self.waits());
        self.may_rest(stay.rest().and_then(|rest| rest.first_end), now)
    }

    /// Releases the permits of some nodes, for a writer that holds the lock or waits for it with an earlier token.
    fn release_permits_for_writer(&self, stay: &mut PermitAttempt<'_>) -> Result<(), AdmissionError> {
        // This process may hold the lock itself, idle.
        self.local.end_idle(self.key.name());
        self.check_not_queued_behind_callers(&mut stay.is_told).map_err(AdmissionError::Failed)?;
        if let Some(PendingPermit { permit, .. }) = &mut stay.pending_permit
            && self.shared().rules.apply(Rule::PermitsGiveWay)
        {
            // The local turn of this token has no other user.
            permit.change_to_successor(self.wanted.ttl).map_err(|_| AdmissionError::TurnLost)?;
            permit.acquisition().resume(self.wanted);
        }
        Ok(())
    }

    /// Waits in the queues of the key for a share, until no exclusive lock is ahead of the call. The admission lock is kept
    /// meanwhile.
    ///
    /// # Errors
    /// The loss of the admission lock, or the reason that the call stops waiting.
    async fn wait_as_reader(&self, stay: &mut PermitAttempt<'_>) -> Result<LocalOwner, AdmissionError> {
        let reader = self.to_shared_call();
        let mut obtaining = pin!(reader.obtain());
        loop {
            if !self.extend_admission_if_needed(stay.admission).await {
                return Err(AdmissionError::TurnLost);
            }
            if let Ok(obtained) = timeout(self.question_pause(), obtaining.as_mut()).await {
                return obtained.map_err(AdmissionError::Failed);
            }
            // This process may hold the lock idle, without a call.
            self.local.end_idle(self.key.name());
            self.check_not_queued_behind_callers(&mut stay.is_told).map_err(AdmissionError::Failed)?;
        }
    }

    /// Returns the longest pause of a call between two checks of its admission lock.
    fn question_pause(&self) -> Duration {
        turn(self.wanted.ttl) / QUESTIONS_PER_TURN
    }

    /// Returns the end of the pause, at `look_at` or earlier.
    fn rests_until(&self, stay: &PermitAttempt<'_>, look_at: Instant) -> Instant {
        let limit = self.limit().filter(|_| self.waits());
        let (look_at, first_end) = stay.rest().map_or((look_at, None), |rest| (rest.until, rest.first_end));
        let until = [first_end, limit].into_iter().flatten().fold(look_at, Instant::min);
        until.max(self.now().after(SHORTEST_LOOK))
    }

    /// Checks that the call may ask again after a silence of the nodes.
    ///
    /// # Errors
    /// The reason that the call stops waiting.
    fn check_retry_after_silence(
        &self,
        permit: &Acquisition,
        silence: Duration,
        now: Instant,
    ) -> Result<(), AdmissionError> {
        let (limit, waits) = (self.limit(), self.waits());
        let is_over = waits && limit.is_some_and(|limit| limit <= now);
        if is_over && permit.is_heard() {
            Err(AdmissionError::Failed(self.timeout_error(None)))
        } else if is_over || silence >= LONGEST_SILENCE && (limit.is_some() || permit.is_refused()) {
            Err(AdmissionError::Failed(permit.failure()))
        } else {
            Ok(())
        }
    }

    /// Checks that the call may wait for a permit.
    ///
    /// # Errors
    /// The reason that the call stops waiting.
    fn may_rest(&self, first_end: Option<Instant>, now: Instant) -> Result<(), AdmissionError> {
        match self.limit() {
            _ if !self.waits() => Err(AdmissionError::Failed(self.full(first_end.map(|end| end.since(now))))),
            Some(limit) if limit <= now => Err(AdmissionError::Failed(self.timeout_error(None))),
            _ => Ok(()),
        }
    }

    /// Extends the admission lock if necessary. Returns `true` if the process still owns it.
    async fn extend_admission_if_needed(&self, admission: &LocalOwner) -> bool {
        let acquisition = admission.acquisition();
        if acquisition.lease_left().is_none_or(|left| left < turn(self.wanted.ttl) * 2 / 3) {
            // The remaining lease shows too few answers, and the time limit shows the end of the call.
            let left = self.left().filter(|_| self.waits()).unwrap_or(Duration::MAX);
            // The wait is shorter than for other extensions, so that the call notices its own end, such as a shutdown.
            let _ = timeout(left.min(acquisition.node_timeout()), acquisition.extend()).await;
        }
        !admission.has_ended() && acquisition.is_provably_held()
    }
}

impl PermitAttempt<'_> {
    fn rest(&self) -> Option<Rest> {
        self.pending_permit.as_ref()?.rest
    }

    fn set_rest(&mut self, rest: Option<Rest>) {
        if let Some(pending_permit) = &mut self.pending_permit {
            pending_permit.rest = rest;
        }
    }
}

/// Leaves the pending request to the next call, if that owns the admission lock under the same token. Otherwise, the
/// admission lock is released first, so that a late permit request finds an admission lock with another owner.
impl Drop for PermitAttempt<'_> {
    fn drop(&mut self) {
        let Some(mut pending_permit) = self.pending_permit.take() else { return };
        pending_permit.rest = pending_permit.rest.filter(|_| self.is_heard);
        self.admission.acquisition().accompany(pending_permit);
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

    /// The node grants the admission lock at once, and is away for most of a second when it is asked for the permit.
    #[tokio::test(start_paused = true)]
    async fn permit_try_without_wait_retries_after_node_failures() {
        let begun = Instant::now();
        let node = HookedNode::new(Clock::tokio(), move |command| {
            let is_away = begun.elapsed() < LONGEST_SILENCE * 9 / 10;
            if is_away && matches!(command.verb, Verb::Enter { .. }) { Fate::CutOff } else { Fate::Answered }
        });
        let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None)));
        drop(manager.try_acquire(LockRequest::new("a").permits(1)).await.unwrap());
    }
}
