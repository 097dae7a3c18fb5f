//! Attaching to a detached lock.

use super::{AcquireMetrics, AcquiredLock, Call};
use crate::client::acquisition::{Acquisition, Unnumbered};
use crate::client::local_queue::{LocalOwner, LocalQueue, Superseded};
use crate::error::{LockError, LossCause};
use crate::observe::spans::{self, Path};
use crate::protocol::command::Subject;
use crate::request::{DetachedLock, Wait};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// Attaches to a lock that another call has left at the nodes.
///
/// # Cancel safety
/// If the future is dropped at any await, an attached lock is released: [`LocalOwner`] does that when it is dropped.
pub(crate) async fn attach(
    local: &Arc<LocalQueue>,
    detached: &DetachedLock,
    is_fenced: bool,
    location: &'static Location<'static>,
) -> Result<AcquiredLock, LockError> {
    let mut request = detached.request().called_at(location);
    request.ttl = Some(detached.ttl());
    request.wait = Some(Wait::None);
    request.linger = Some(Duration::ZERO);
    request.is_fenced = is_fenced;
    let asked = AcquireMetrics::begin(local.shared(), &request);
    let call = match Call::begin(local, &request, &asked) {
        Ok(call) => call,
        Err(error) => return asked.refuse(error),
    };
    let outcome = if spans::calls_enabled() {
        Box::pin(call.in_span(call.attach(detached))).await
    } else {
        let outcome = call.attach(detached).await;
        call.log_failure(&outcome);
        outcome
    };
    call.on_answered(asked, &outcome);
    outcome
}

impl Call<'_> {
    async fn attach(&self, detached: &DetachedLock) -> Result<AcquiredLock, LockError> {
        let turn = self.adopt(detached).await?;
        self.way.goes(Path::Attached);
        match self.number(&turn).await {
            Ok(fencing_token) => Ok(self.hold(turn, fencing_token)),
            // There is no second try, because the lock was left only once.
            Err(Unnumbered::Again) => Err(turn.acquisition().failure()),
            Err(Unnumbered::Failed(error)) => Err(error),
        }
    }

    /// Enters the local queue, and adopts the lock that was left under another token.
    async fn adopt(&self, detached: &DetachedLock) -> Result<LocalOwner, LockError> {
        self.wait_until_started().await?;
        let mut turn = self.enter().await?;
        let other = Some(Box::new(*detached.token()));
        let subject = Subject { other, ..Subject::of(&self.parts, self.shared().new_token()) };
        let acquisition = Acquisition::new(self.shared(), subject, self.wanted.ttl, self.now());
        turn.change(acquisition).map_err(|Superseded| self.contended_locally())?;
        turn.acquisition().resume(self.wanted);
        turn.acquisition().adopt().await.map_err(not_attached)?;
        Ok(turn)
    }
}

/// Converts the error of a token that the nodes deny: the call has not held the lock.
fn not_attached(error: LockError) -> LockError {
    match error {
        LockError::Lost { key, held_for, cause: LossCause::Taken } => {
            LockError::Lost { key, held_for, cause: LossCause::NotAttached }
        }
        other => other,
    }
}
