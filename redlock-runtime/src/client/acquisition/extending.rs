//! Extensions whose answers a caller waits for: `extend`, and attaching to a detached lock.

use super::Acquisition;
use crate::client::timers::{sleep, timeout};
use crate::error::{LockError, LossCause};
use crate::protocol::candidate::{Extension, Fence};
use crate::protocol::timing::AFTER_FAILURE;
use crate::time::clock::Instant;
use std::future::poll_fn;
use std::task::Poll;
use tokio::sync::OwnedMutexGuard;

impl Acquisition {
    /// Restarts the lease at every node, counted from now.
    ///
    /// # Errors
    /// [`LockError::Lost`] if too many nodes report another owner, [`LockError::NoQuorum`] if too few answer in time.
    /// In both cases, earlier proofs stay valid.
    pub(crate) async fn extend(&self) -> Result<(), LockError> {
        // Without a ballot: the number of the token does not change.
        self.extend_with(None).await
    }

    /// Attaches to a lock that another call has left at the nodes, together with the fencing number if one is wanted.
    ///
    /// # Errors
    /// The errors of [`extend`](Self::extend).
    pub(crate) async fn adopt(&self) -> Result<(), LockError> {
        let fence = self.state().candidate.adopt();
        let extended = self.extend_with(fence).await;
        let (mut state, now) = (self.state(), self.now());
        self.release_leftovers(&mut state, now);
        extended?;
        if !state.candidate.is_won(now) {
            // The task was not polled for a long time, and the granted leases have ended.
            return Err(self.loss(&state, LossCause::Expired));
        }
        state.candidate.hold(now);
        Ok(())
    }

    /// Waits until no other caller waits for answers, because an answer wakes only one task.
    pub(super) async fn alone(&self) -> OwnedMutexGuard<()> {
        let extending = self.lock().extending();
        extending.lock_owned().await
    }

    /// Restarts the lease, and proposes a ballot if there is a `fence`. One call at a time.
    ///
    /// The time limit for a node that does not answer, or fails, is that of an acquisition.
    async fn extend_with(&self, fence: Option<Fence>) -> Result<(), LockError> {
        let _alone = self.alone().await;
        let begun = self.now();
        let limit = begun.after(self.patience());
        loop {
            let now = self.now();
            {
                let mut state = self.state();
                state.take_in(self.shared.clock);
                let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
                if !candidate.extend(fence, now, |out| sender.send(out)) {
                    return Err(self.loss_error(&state));
                }
            }
            // The wait is divided into parts, because a shutdown of the manager does not wake this call.
            let extension = loop {
                let part = limit.since(self.now()).min(self.node_timeout());
                match timeout(part, self.extended(begun)).await {
                    Ok(extension) => break extension,
                    Err(_) if self.now() < limit && !self.shared.is_closed() => {}
                    Err(_) => {
                        // The answers to a renewal by the watchdog count as well. They do not wake this call.
                        let mut state = self.state();
                        state.take_in(self.shared.clock);
                        return if state.candidate.is_extended(begun) { Ok(()) } else { Err(self.no_quorum(&state)) };
                    }
                }
            };
            match extension {
                Extension::Extended => {
                    // The wait may have been longer than the lease.
                    let (state, now) = (self.state(), self.now());
                    let is_valid = state.candidate.valid_until().is_some_and(|end| now < end);
                    return if is_valid { Ok(()) } else { Err(self.loss(&state, LossCause::Expired)) };
                }
                Extension::NotOurs => return Err(self.loss_error(&self.state())),
                Extension::Unanswered if limit.since(self.now()) > AFTER_FAILURE && !self.shared.is_closed() => {
                    sleep(AFTER_FAILURE).await;
                }
                Extension::Open | Extension::Unanswered => return Err(self.no_quorum(&self.state())),
            }
        }
    }

    /// Waits for the answers that decide the extension that was begun at `begun`.
    async fn extended(&self, begun: Instant) -> Extension {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.candidate.has_ended(begun) {
                return Poll::Ready(Extension::NotOurs);
            }
            state.poll(cx, self.shared.clock);
            match state.candidate.extension(begun) {
                Extension::Open => Poll::Pending,
                extension => Poll::Ready(extension),
            }
        })
        .await
    }
}
