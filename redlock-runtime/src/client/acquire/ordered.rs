//! Check of the lock order of a call.

use super::Call;
use crate::client::enclosing::{Frame, frames};
use crate::client::lock_order::Asked;
use crate::error::LockError;
use crate::observe::events;
use crate::request::OrderCheck;

impl Call<'_> {
    /// Checks that the call acquires its lock in the order of earlier calls.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] if other calls have acquired these locks in another order, and the manager denies
    /// that.
    pub(super) fn check_lock_order(&self) -> Result<(), LockError> {
        let check = self.shared().policy.order_check;
        // A call that does not wait cannot block other calls.
        if check == OrderCheck::Off || !self.has_ordered_lock || !self.waits() {
            return Ok(());
        }
        let held: Vec<_> = frames().into_iter().filter_map(|frame| self.taken_before(frame)).collect();
        let (order, is_kept) = (&self.shared().lock_order, check == OrderCheck::Warn);
        if held.is_empty() {
            return Ok(());
        }
        let asked = Asked { key: self.key.clone(), place: self.place, is_alone: false };
        match order.contradiction(&held, &asked, is_kept) {
            None => Ok(()),
            Some(held) if is_kept => {
                let shared = self.shared();
                events::lock_order(shared.told(&self.key), held.told(shared.policy.redaction));
                Ok(())
            }
            Some(held) => Err(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) }),
        }
    }

    /// Returns the lock that a calling body has acquired before this call. A view does not count, because its lock was
    /// acquired earlier. Locks of one request have no order among each other.
    fn taken_before(&self, frame: Frame) -> Option<Asked> {
        let (is_same, tenure) = (frame.meets(&self.parts), frame.tenure);
        let is_ours = tenure.shared().id == self.shared().id && !is_same;
        let is_before = is_ours && !tenure.is_view() && tenure.is_held();
        is_before.then(|| Asked { key: tenure.key().clone(), place: tenure.place(), is_alone: tenure.is_alone() })
    }
}
