//! Acquisition of a shared lock together with other calls of the process, under one token.
//!
//! `protocol/candidate/joining` and the request decide which calls may do so. A call needs its own token in three
//! cases: its guard can be left to another worker, its key stays taken after it, or its lease is not renewed.

use super::{AcquireError, AcquiredLock, Call, Share};
use crate::client::enclosing::ReentrantEntry;
use crate::client::local_queue::{LONGEST_GATHERING, LocalOwner, Member, News, ReaderWait, Together};
use crate::client::timers::timeout;
use crate::error::LockError;
use crate::observe::spans::Path;
use crate::protocol::timing::LONGEST_SILENCE;

impl Call<'_> {
    /// Acquires the lock together with other calls. The call joins the present holders, or waits for the result of
    /// another call. Otherwise it asks the nodes, and other calls wait for its result.
    pub(super) async fn acquire_jointly(&self) -> Result<AcquiredLock, LockError> {
        // A call from a body that shares the lock must not wait for a call that may wait for that body.
        let gathers = self.waits() && self.compatible_calling_frame().is_none();
        let turn = match self.local.enter_together(&self.key, self.wanted, gathers, self.now()) {
            Together::Joined(member) => return Ok(self.hold_joined(member)),
            Together::Asks(turn) => Some(turn),
            // Boxed, so that the futures of other calls stay small.
            Together::Behind(place) => match Box::pin(self.gather(place)).await? {
                News::Joined(member) => return Ok(self.hold_joined(member)),
                News::Founds(turn) => Some(turn),
                News::Alone => None,
            },
        };
        let turn = match turn {
            Some(turn) => self.secure(turn).await,
            None => Err(AcquireError::Superseded),
        };
        let turn = match turn {
            Ok(turn) => turn,
            Err(AcquireError::Superseded) => self.obtain().await?,
            Err(AcquireError::Failed(error)) => return Err(error),
        };
        Ok(self.open(turn))
    }

    /// Waits for the result of another call, for at most half of the remaining time. The rest is for a separate token.
    ///
    /// # Errors
    /// The error at the end of the wait, or if too many nodes refuse permanently. The token of the call itself decides
    /// about silent nodes.
    async fn gather(&self, mut place: ReaderWait) -> Result<News, LockError> {
        self.count_as_waiting()?;
        let longest = self.left().map_or(LONGEST_GATHERING, |left| LONGEST_GATHERING.min(left / 2));
        let first = self.local.gathering_acquisition(&self.key);
        let in_time = timeout(longest, &mut place).await;
        let first = self.local.gathering_acquisition(&self.key).or(first);
        let news = in_time.unwrap_or_else(|_| place.end(self.now()));
        match news {
            // The call may not have been polled for longer than the lock was kept for it.
            News::Joined(member) if !member.is_held() && self.has_time() => return Ok(News::Alone),
            News::Joined(_) | News::Founds(_) => return Ok(news),
            News::Alone => {}
        }
        if self.shared().is_closed() {
            return Err(LockError::Closed);
        }
        let Some(first) = first else {
            return if self.has_time() { Ok(news) } else { Err(self.timeout_error(None)) };
        };
        // Its task may not have processed answers for a while.
        first.process_arrived_replies();
        let is_refused = first.is_refused() && self.now().since(self.begun) >= LONGEST_SILENCE;
        match self.has_time() {
            true if !is_refused => Ok(news),
            false if !is_refused && first.is_heard() => Err(self.timed_out(&first).await),
            _ => Err(first.failure()),
        }
    }

    /// Gives the lock to this call, and lets other calls join.
    fn open(&self, turn: LocalOwner) -> AcquiredLock {
        let now = self.now();
        let check_within = turn.acquisition().check_within(now);
        let member = self.local.open_to_readers(turn, self.site.id, now);
        let obtained = self.hold_member(member);
        self.local.watch(obtained.acquisition(), check_within, now);
        obtained
    }

    fn hold_joined(&self, member: Member) -> AcquiredLock {
        self.way.goes(Path::Local);
        self.hold_member(member)
    }

    fn hold_member(&self, member: Member) -> AcquiredLock {
        let now = self.now();
        let view = ReentrantEntry::of_member(member, (self.place, self.site.id), self.hold.max_hold, now);
        view.tenure().observe_view(self.site.id, self.hold_span(view.acquisition(), None));
        self.count_as_acquired(now);
        #[cfg(feature = "testing")]
        self.note_view(&view);
        AcquiredLock { share: Share::ReentrantEntry(view), fencing_token: None, place: self.place }
    }
}
