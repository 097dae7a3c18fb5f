//! A call in the body of another: what the locks of its callers mean for it.
//!
//! | a caller has the same lock | what becomes of the call |
//! |---|---|
//! | and the call does not wait | as of any other call: the lock is taken |
//! | and nothing but the call can go on | [`LockError::WouldDeadlock`], at once |
//! | and may give it back meanwhile, since its body sees the guard | a warning, and the call waits |
//! | with another manager of the same servers | [`LockError::WouldDeadlock`], or the warning |

use super::Call;
use crate::client::enclosing::{Frame, frames_of};
use crate::error::{HeldLock, LockError, Why};

impl Call<'_> {
    /// # Errors
    /// [`LockError::WouldDeadlock`] when the call would wait for its own caller.
    pub(super) fn does_not_wait_for_itself(&self) -> Result<(), LockError> {
        if !self.waits() {
            return Ok(());
        }
        let in_the_way = frames_of(&self.key).find_map(|frame| Some((self.conflict(&frame)?, frame)));
        match in_the_way {
            None => Ok(()),
            Some((held, frame)) if frame.shows_guard => {
                let key = self.key.as_str();
                tracing::warn!("{key:?} {held}, unless the lock is given back meanwhile");
                Ok(())
            }
            Some((held, _)) => Err(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) }),
        }
    }

    /// Why a body is in the way of the call, which has a lock of the same name.
    fn conflict(&self, Frame { tenure, .. }: &Frame) -> Option<HeldLock> {
        let why = if tenure.shared().id == self.shared().id {
            Why::Same
        } else if tenure.shared().has_the_nodes_of(self.shared()) {
            Why::OtherManager
        } else {
            return None;
        };
        let held = || HeldLock::new(tenure.key().clone(), tenure.place().line(), self.place.line(), why);
        tenure.is_held().then(held)
    }
}
