//! Pending permit request of a process, which is kept while the process owns the admission lock or asks for it.
//!
//! The request passes with the admission lock from call to call. If the admission lock may be free, the request goes to the nodes
//! right behind the request for the admission lock, which saves a round trip. Its replies count only if that request gets
//! the admission lock; otherwise they are given up.

use super::Call;
use crate::client::local_queue::{LocalOwner, Superseded};
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// Pending permit request that passes with the admission lock between the calls of this process, until one of them has its
/// permit.
pub(super) struct PendingPermit {
    /// Local turn of the token that asks for the permit, or has permits at some nodes.
    pub(super) permit: LocalOwner,
    ttl: Duration,
    permits: u32,
    pub(super) rest: Option<Rest>,
    /// Set while answers to the request are outstanding.
    pub(super) is_asked: bool,
}

/// Pause without questions while all permits are taken.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// End of the first of the other permits, unless it is extended.
    pub(super) first_end: Option<Instant>,
    pub(super) until: Instant,
}

impl Call<'_> {
    /// Returns the request that the previous call has left with the admission lock, or a new one. A waiting call with the
    /// same limit respects the pause of the previous call.
    pub(super) fn pending_permit(&self, admission: &LocalOwner) -> PendingPermit {
        let (ttl, permits) = (self.wanted.ttl, self.permits);
        let left =
            admission.acquisition().companion::<PendingPermit>().filter(|pending_permit| pending_permit.ttl == ttl);
        let Some(mut pending_permit) = left else { return self.new_pending_permit() };
        let now = self.now();
        let may_rest =
            self.waits() && permits == pending_permit.permits && self.limit().is_none_or(|limit| now < limit);
        pending_permit.rest = pending_permit.rest.filter(|rest| may_rest && now < rest.until);
        pending_permit.permits = permits;
        pending_permit
    }

    fn new_pending_permit(&self) -> PendingPermit {
        let permit = self.local.enter_unqueued((&self.parts, self.mode), self.wanted, self.begun);
        PendingPermit { permit, ttl: self.wanted.ttl, permits: self.permits, rest: None, is_asked: false }
    }

    /// Prepares the request for [`send_after_admission`](PendingPermit::send_after_admission), so that no work is left between the two
    /// sends.
    pub(super) fn prepare_early_request(&self) -> PendingPermit {
        let pending_permit = PendingPermit { is_asked: true, ..self.new_pending_permit() };
        pending_permit.permit.acquisition().resume(self.wanted);
        if self.waits() {
            self.shared().listen();
        }
        pending_permit
    }

    /// Waits for the replies to the early permit request after the admission lock was refused. They arrive right after that
    /// refusal. A node that refuses commands would refuse a release as well, so it does not need one.
    pub(super) async fn wait_for_refusal_replies(&self, admission: &LocalOwner, patience: Duration) {
        let admission = admission.acquisition();
        if admission.is_refused()
            && let Some(pending_permit) = admission.companion::<PendingPermit>()
        {
            let (permit, _) = pending_permit.permit.shared();
            // It passes with the admission lock, even if this future is dropped.
            admission.accompany(pending_permit);
            permit.wait_until_answered(patience).await;
        }
    }

    /// Gives up the early permit request, because the process does not own the admission lock yet. Other calls may own it,
    /// and the replies do not count them. The admission lock is requested with another token in the same place, so that late
    /// commands do not find their token.
    pub(super) fn abandon_early_request(&self, admission: &mut LocalOwner) -> Result<(), Superseded> {
        if self.shared().rules.apply(Rule::AskedAheadEndsWithTheTry) {
            admission.change(admission.acquisition().again())?;
            admission.acquisition().resume(self.wanted);
        }
        Ok(())
    }
}

impl PendingPermit {
    /// Sends the permit request right behind the request for this `admission`, which saves a round trip if the
    /// admission lock is free.
    pub(super) fn send_after_admission(self, admission: &LocalOwner) {
        self.permit.acquisition().ask_for_permit(admission.acquisition());
        admission.acquisition().accompany(self);
    }
}
