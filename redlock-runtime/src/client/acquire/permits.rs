//! Acquisition of a permit: the call acquires the admission lock of the key, and enters if few enough other calls have
//! permits.
//!
//! 1. The admission lock is an ordinary exclusive lock, with a local queue and the queues of the nodes. So calls for permits
//!    are served one after the other, in the order of their arrival.
//! 2. The owner of the admission lock asks the nodes for a permit, and is admitted by their reports about the others
//!    (`protocol/candidate/permits`). Then it leaves the admission lock to the next call, and the body begins without
//!    waiting for that. If the admission lock may be free, the nodes are asked for both together. The permit counts if that
//!    request also gets the admission lock.
//! 3. While all permits are taken, the call stays in the admission lock. It asks again when a permit is given back, when a
//!    lease ends, and at intervals.
//! 4. While another call holds the lock exclusively, or waits for that with an earlier token, the permit is released at
//!    the nodes that have given it. The other call may need these nodes for its majority, and both would wait for each
//!    other. Then the call waits in the queues of the key as a reader, with a separate token. It keeps this share until
//!    it has asked for the permit, so that no writer comes in between. Others in the admission lock might count the share as
//!    a permit, so it is released right behind the question.
//! 5. Meanwhile, another call of this process may pass on its permit, wherever the waiting call is. The call then
//!    leaves the admission lock to the next one, together with the reports of the nodes, so that the next one need not ask.
//! 6. A call that has waited in the admission lock for a permit gives the admission lock to waiting processes, before other calls
//!    of this process.
//! 7. If the admission lock is lost meanwhile, the permits of some nodes are released, and the call starts again with
//!    another token.

use super::admission::{AdmissionError, PermitOutcome};
use super::{AcquirePath, Call};
use crate::client::enclosing::{Frame, frames_of};
use crate::client::local_queue::LocalOwner;
use crate::client::timers::{sleep, timeout};
use crate::error::LockError;
use crate::lock::Mode;
use crate::lock::parts::Parts;
use crate::observe::events;
use crate::observe::spans::Path;
use crate::protocol::candidate::{Wanted, turn};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::timing::{AFTER_FAILURE, LONGEST_SILENCE};
use crate::request::Wait;
use crate::time::clock::Instant;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

impl Call<'_> {
    /// Acquires a permit.
    pub(super) async fn obtain_permit(&self) -> Result<LocalOwner, LockError> {
        self.check_callers_leave_permit()?;
        let (mut gate, begun) = (self.of_admission(), self.now());
        let mut place = self.register_for_permit();
        loop {
            let admission = match self.race_passed_permit(&mut place, self.obtain_admission(&mut gate, begun)).await {
                PermitOutcome::Ours(admission) => admission?,
                PermitOutcome::Passed(permit) => return Ok(permit),
            };
            match self.enter_through(&admission, begun, &mut place).await {
                Ok(PermitOutcome::Ours(permit)) => {
                    self.way.goes(if gate.way.path() == Path::Fast { Path::Fast } else { Path::Queued });
                    return Ok(permit);
                }
                Ok(PermitOutcome::Passed(permit)) => return Ok(permit),
                Err(AdmissionError::TurnLost) => {}
                Err(AdmissionError::Failed(error)) => return Err(error),
            }
        }
    }

    /// Checks that the callers of this call do not hold all permits themselves.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] if they hold all permits, and none of them can release one.
    fn check_callers_leave_permit(&self) -> Result<(), LockError> {
        if !self.waits() {
            return Ok(());
        }
        let enough = self.permits.saturating_sub(1) as usize;
        let of_callers = |may_end: bool| {
            let mut counted = Vec::new();
            // Nodes count tokens: bodies that share a token count once, and an intent is not a permit.
            let has_permit = |frame: &Frame| {
                !frame.tenure.is_view()
                    && frame.tenure.parts().class_of(self.key.name()).is_some_and(|class| !class.is_intent())
            };
            let callers = frames_of(&self.parts).filter(|frame| (may_end || !frame.shows_guard) && has_permit(frame));
            let held = callers.filter_map(|frame| {
                let (held, token) = (self.beside(&frame)?, *frame.tenure.acquisition().token());
                let is_new = !counted.contains(&token);
                counted.push(token);
                is_new.then_some(held)
            });
            { held }.nth(enough)
        };
        if let Some(held) = of_callers(false) {
            return Err(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) });
        }
        if let Some(held) = of_callers(true) {
            let shared = self.shared();
            events::deadlock(shared.told(&self.key), held.told(shared.policy.redaction));
        }
        Ok(())
    }

    /// Acquires the admission lock. If too few nodes answer, a call that does not wait for permits tries again. Its time
    /// limit counts from `begun`, as for every call that does not wait: a short failure shows nothing about the
    /// permits.
    async fn obtain_admission(&self, gate: &mut Call<'_>, begun: Instant) -> Result<LocalOwner, LockError> {
        let limit = begun.after(LONGEST_SILENCE);
        loop {
            let obtained = self.wait_for_admission(gate).await;
            let is_silent = !self.waits() && matches!(obtained, Err(LockError::NoQuorum { .. }));
            if !is_silent || limit.since(self.now()) <= AFTER_FAILURE {
                return obtained;
            }
            // The pause is random, so that two calls with some nodes each do not collide again and again.
            sleep(AFTER_FAILURE.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
            if self.shared().is_closed() {
                return Err(LockError::Closed);
            }
            gate.begun = self.now();
        }
    }

    /// Acquires the admission lock. A call that stays there may wait for a caller of this call, or behind such a waiter. A
    /// call that only passes through is done before the next check.
    async fn wait_for_admission(&self, gate: &Call<'_>) -> Result<LocalOwner, LockError> {
        let (mut obtaining, mut is_told) = (pin!(gate.obtain()), false);
        let obtained = loop {
            match timeout(LONGEST_SILENCE, obtaining.as_mut()).await {
                Ok(obtained) => break obtained,
                Err(_) => self.check_not_queued_behind_callers(&mut is_told)?,
            }
        };
        obtained.map_err(|error| self.to_permit_error(error))
    }

    /// Checks that the call does not wait behind a waiter for its own callers.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] if it does, unless its caller may release its lock meanwhile.
    pub(super) fn check_not_queued_behind_callers(&self, is_told: &mut bool) -> Result<(), LockError> {
        if !self.waits() {
            return Ok(());
        }
        let of_callers = |may_end: bool| {
            let mut callers = frames_of(&self.parts).filter(move |frame| frame.shows_guard == may_end);
            callers.find_map(|frame| self.beside(&frame))
        };
        if let Some(held) = of_callers(false) {
            return Err(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) });
        }
        if let Some(held) = of_callers(true).filter(|_| !std::mem::replace(is_told, true)) {
            let shared = self.shared();
            events::deadlock(shared.told(&self.key), held.told(shared.policy.redaction));
        }
        Ok(())
    }

    /// Returns the call for the permit if this is the one for its admission lock.
    pub(super) fn permit_call_of_admission(&self) -> Option<&Self> {
        self.permit.filter(|_| !self.mode.is_shared())
    }

    /// Returns the call for a share of the key, which waits for exclusive locks in the queues of the nodes. Its lease
    /// is short, because the share is held only until the nodes were asked for the permit.
    pub(super) fn to_shared_call(&self) -> Call<'_> {
        Call {
            parts: Parts::single(self.key.clone(), Mode::Shared),
            key: self.key.clone(),
            mode: Mode::Shared,
            wait: self.wait,
            ..self.of_admission()
        }
    }

    /// Returns the call for the admission lock. A call that does not wait for permits still waits for calls that pass
    /// through, for about the time of their questions. A call that stays longer waits for a permit itself. The time
    /// counts from now, because the call may have waited for its first connections.
    fn of_admission(&self) -> Call<'_> {
        let ttl = turn(self.wanted.ttl);
        let wait = if self.waits() { self.wait } else { Wait::For(self.shared().node_timeout(ttl)) };
        let key = self.key.admission();
        Call {
            local: self.local,
            parts: Parts::single(key.clone(), Mode::Exclusive),
            key,
            mode: Mode::Exclusive,
            wanted: Wanted { ttl, is_fenced: false, is_kept: false, linger: Duration::ZERO },
            wait,
            permits: 0,
            permit: Some(self),
            hold: HoldOptions::default(),
            joins: false,
            is_reentrant: false,
            has_ordered_lock: false,
            place: self.place,
            label: self.label,
            site: self.site,
            way: AcquirePath::default(),
            begun: if self.waits() { self.begun } else { self.now() },
            latest: None,
            waiting: OnceLock::new(),
        }
    }

    /// Converts an error about the admission lock to one about the permit.
    fn to_permit_error(&self, error: LockError) -> LockError {
        let ours = || self.key.clone();
        match error {
            LockError::Contended { .. } => self.full(None),
            LockError::TimedOut { .. } if !self.waits() => self.full(None),
            LockError::TimedOut { .. } => self.timeout_error(None),
            LockError::NoQuorum { needed, nodes, causes, .. } => {
                LockError::NoQuorum { key: Some(ours()), needed, nodes, causes }
            }
            LockError::Refused { needed, nodes, causes, .. } => {
                LockError::Refused { key: Some(ours()), needed, nodes, causes }
            }
            error => error,
        }
    }

    /// Returns the error for taken permits.
    pub(super) fn full(&self, lease_left: Option<Duration>) -> LockError {
        LockError::Contended { key: self.key.clone(), lease_left, holder: None }
    }
}
