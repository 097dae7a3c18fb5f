//! Taking up a lock that another call has left at the nodes.

use super::{Call, Obtained};
use crate::client::acquisition::{Acquisition, Unnumbered};
use crate::client::local_queue::{LocalQueue, LocalTurn, Superseded};
use crate::error::LockError;
use crate::protocol::command::Subject;
use crate::request::{DetachedLock, LockRequest, Wait};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// Takes up a lock that another call has left at the nodes.
///
/// # Cancel safety
/// When the future is dropped at any await, what was taken up is given back: the [`LocalTurn`] sees to that.
pub(crate) async fn attach(
    local: &Arc<LocalQueue>,
    detached: &DetachedLock,
    is_fenced: bool,
    location: &'static Location<'static>,
) -> Result<Obtained, LockError> {
    let mut request =
        LockRequest::new(detached.key().clone()).ttl(detached.ttl()).wait(Wait::None).linger(Duration::ZERO);
    request.is_fenced = is_fenced;
    let call = Call::begin(local, &request.asked_at(location))?;
    let turn = call.adopt(detached).await?;
    match call.number(&turn).await {
        Ok(fencing_token) => Ok(call.hold(turn, fencing_token)),
        // There is no second try: the lock was left once.
        Err(Unnumbered::TooLate) => Err(turn.acquisition().failure()),
        Err(Unnumbered::Failed(error)) => Err(error),
    }
}

impl Call<'_> {
    /// Takes the turn, and with it a lock that was left under another token.
    async fn adopt(&self, detached: &DetachedLock) -> Result<LocalTurn, LockError> {
        self.may_start().await?;
        let mut turn = self.enter().await?;
        let other = Some(Box::new(*detached.token()));
        let subject = Subject { key: self.key.clone(), token: self.shared().new_token(), other };
        let acquisition = Acquisition::new(self.shared(), subject, self.wanted.ttl, self.now());
        turn.change(acquisition).map_err(|Superseded| self.taken_here())?;
        turn.acquisition().take_up(self.wanted);
        turn.acquisition().adopt().await?;
        Ok(turn)
    }
}
