//! Nested calls: the effect of the callers' locks on a call inside their bodies.
//!
//! | lock of a caller | outcome of the nested call |
//! |---|---|
//! | covers the same lock, and the call is reentrant | the call enters as a [`ReentrantEntry`], without a command, after other views |
//! | was handed to this task and has ended, and the call is reentrant | [`LockError::Lost`] |
//! | is a view that has ended before its body, and the call is reentrant | [`LockError::Lost`] |
//! | is shared by both, or both want places below it | a share for the call; it never waits for a writer, which may wait for its caller |
//! | is shared, and the call wants other names too | a warning, and the call waits: a writer of the common names may come in |
//! | is shared, and a waiter for the common names is in between | [`LockError::WouldDeadlock`], at once |
//! | covers only a part of the call's names | [`LockError::WouldDeadlock`], reentrant or not |
//! | is of a place below the wanted one | [`LockError::WouldDeadlock`], reentrant or not |
//! | is shared, and the call wants it exclusively | [`LockError::WouldDeadlock`], reentrant or not |
//! | conflicts, and the call does not wait | like any other call: the lock is taken |
//! | is a share of it, and the call wants a permit | a permit for the call; it waits neither for a writer nor long for other permits |
//! | conflicts, and only the call itself can end it | [`LockError::WouldDeadlock`], at once |
//! | conflicts, and each body sees its guard and may release it | a warning, and the call waits |
//! | belongs to another manager of the same servers | [`LockError::WouldDeadlock`], or the warning, reentrant or not |

use super::{AcquireError, AcquiredLock, Call, Share};
use crate::client::enclosing::{BodyHold, Frame, ReentrantEntry, frames_of};
use crate::client::local_queue::LocalOwner;
use crate::client::timers::timeout;
use crate::error::{HeldLock, LockError, Why};
use crate::lock::class::Class;
use crate::lock::part::Part;
use crate::lock::parts::Parts;
use crate::lock::{LockKey, OwnerToken};
use crate::observe::events;
use crate::observe::spans::Path;
use crate::protocol::candidate::Wanted;
use crate::protocol::fencing_token::FencingToken;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Wait of a nested call for another view after which a warning is logged. Smaller: ordinary turns of two branches are
/// logged. Larger: the log does not explain a hanging program.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Registration of a task that is woken when a lock is lost; it ends on drop.
struct Watcher<'a> {
    tenure: &'a BodyHold,
    number: Option<u32>,
}

impl Watcher<'_> {
    fn watch(&mut self, cx: &Context<'_>) {
        self.tenure.watch(&mut self.number, cx.waker());
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.tenure.acquisition().forget_watcher(number);
        }
    }
}

impl Call<'_> {
    /// Enters the lock of a caller, if the call is reentrant. Returns `None` for any other call.
    ///
    /// # Errors
    /// - [`LockError::WouldDeadlock`] if the call would wait for its own caller, or acquires locks in another order
    ///   than other calls.
    /// - [`LockError::Configuration`] if it wants a fencing number that the caller does not have.
    /// - [`LockError::Lost`] if the caller has lost the lock.
    /// - The errors of a wait for another call that has a view.
    pub(super) async fn enter_enclosing_lock(&self) -> Result<Option<AcquiredLock>, LockError> {
        let Some(enclosing) = self.covering()? else {
            self.check_no_self_wait()?;
            return self.check_lock_order().map(|()| None);
        };
        let fencing_token = self.nested_fencing_token(&enclosing)?;
        if self.hold.min_hold.is_some() && enclosing.acquisition().depends_on_claims() {
            // A key that has to stay taken after the call needs leases.
            Box::pin(enclosing.acquisition().extend()).await?;
        }
        match ReentrantEntry::try_enter(enclosing, self.place, self.hold.max_hold, self.begun) {
            Ok(view) => Ok(Some(self.hold_view(view, fencing_token))),
            // Boxed, so that the futures of other calls stay small.
            Err(enclosing) if self.waits() => Box::pin(self.enter_after_other_views(&enclosing)).await.map(Some),
            Err(_) => Err(self.contended_locally()),
        }
    }

    /// Enters after another call that has a view of `enclosing`. After a long wait, it logs a warning: the view may
    /// belong to a caller of this call, which is unknown for a guard without a body.
    ///
    /// # Errors
    /// The errors of [`wait_for_views`](Self::wait_for_views).
    async fn enter_after_other_views(&self, enclosing: &BodyHold) -> Result<AcquiredLock, LockError> {
        let mut entering = pin!(self.wait_for_views(enclosing));
        if let Ok(entered) = timeout(LONG_WAIT, entering.as_mut()).await {
            return entered;
        }
        if let Some(other) = enclosing.admitted() {
            events::nested_wait(self.shared().told(&self.key), self.place.line(), other.line());
        }
        entering.await
    }

    /// Waits until no other call has a view of `enclosing`, and enters.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and [`LockError::Lost`] if the enclosing lock is lost during the wait.
    async fn wait_for_views(&self, enclosing: &BodyHold) -> Result<AcquiredLock, LockError> {
        let mut entering = pin!(ReentrantEntry::enter(enclosing, self.place, self.hold.max_hold));
        let mut watcher = Watcher { tenure: enclosing, number: None };
        loop {
            let (left, lease) = (self.left().unwrap_or(Duration::MAX), enclosing.remaining());
            let entered = poll_fn(|cx| {
                watcher.watch(cx);
                // After the registration, so that every later loss wakes the task.
                if enclosing.is_held() { entering.as_mut().poll(cx) } else { Poll::Ready(None) }
            });
            match timeout(lease.min(left), entered).await {
                Ok(Some(view)) if enclosing.is_held() => {
                    let fencing_token = self.nested_fencing_token(enclosing)?;
                    return Ok(self.hold_view(view, fencing_token));
                }
                Err(_) if left <= lease => return Err(self.timeout_error(None)),
                // The lease was extended in the meantime.
                Err(_) if enclosing.is_held() => {}
                _ => return Err(enclosing.loss()),
            }
        }
    }

    /// Returns the enclosing call of the same manager that holds the lock, if this call may enter it. An exclusive lock
    /// covers every class of its key.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the call was handed a lock that has ended, or if its body continues after the end of its
    /// view. The lock admits no other call until that body is done.
    fn covering(&self) -> Result<Option<BodyHold>, LockError> {
        if !self.is_reentrant {
            return Ok(None);
        }
        let mut outlived = None;
        for Frame { tenure, is_inherited, .. } in frames_of(&self.parts) {
            // A reader cannot cover a writer, and one key cannot cover two.
            if tenure.shared().id != self.shared().id
                || !tenure.parts().cover(&self.parts)
                || !self.is_counted_by(&tenure)
            {
                continue;
            }
            if tenure.is_held() {
                return outlived.map_or(Ok(Some(tenure)), |view: BodyHold| Err(view.loss()));
            }
            if is_inherited {
                return Err(tenure.loss());
            }
            if tenure.is_view() && !tenure.is_released() {
                outlived.get_or_insert(tenure);
            }
        }
        Ok(None)
    }

    /// Returns `true` if the call may use the caller's lock as a permit. An uncounted number of readers share a lock,
    /// so a share is not a permit.
    fn is_counted_by(&self, tenure: &BodyHold) -> bool {
        let is_alone = || tenure.parts().class_of(self.key.name()) == Some(Class::Exclusive);
        !self.mode.is_permit() || tenure.acquisition().mode().is_permit() || is_alone()
    }

    /// Returns the fencing token of a nested call, which is that of the enclosing call.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the enclosing call is not fenced.
    fn nested_fencing_token(&self, enclosing: &BodyHold) -> Result<Option<FencingToken>, LockError> {
        if !self.wanted.is_fenced {
            return Ok(None);
        }
        match enclosing.fencing_token() {
            None if !enclosing.is_held() => Err(enclosing.loss()),
            None => Err(LockError::configuration(format!(
                "{} is held without a fencing token by the call at {}, so the nested call at {} has none: add \
                 `fencing` to the outer call",
                self.key.quoted(),
                enclosing.place().line(),
                self.place.line(),
            ))),
            number => Ok(number),
        }
    }

    /// Gives the enclosing lock to this call as well. A `min_hold` of the call applies to the whole lock.
    fn hold_view(&self, view: ReentrantEntry, fencing_token: Option<FencingToken>) -> AcquiredLock {
        if let Some(least) = self.hold.min_hold {
            view.tenure().keep_until(self.now().after(least));
        }
        self.way.goes(Path::Nested);
        let since = view.tenure().observe_view(self.site.id, self.hold_span(view.acquisition(), fencing_token));
        self.count_as_acquired(since.unwrap_or(self.begun));
        #[cfg(feature = "testing")]
        self.note_view(&view);
        AcquiredLock { share: Share::ReentrantEntry(view), fencing_token, place: self.place }
    }

    /// Checks that the call would not wait for its own callers.
    ///
    /// # Errors
    /// The errors of [`releasable_caller_lock`](Self::releasable_caller_lock).
    fn check_no_self_wait(&self) -> Result<(), LockError> {
        if let Some(held) = self.releasable_caller_lock()? {
            let shared = self.shared();
            events::deadlock(shared.told(&self.key), held.told(shared.policy.redaction));
        }
        Ok(())
    }

    /// Returns a caller's lock that this call would wait for, and that the caller may release meanwhile.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] if a caller cannot release such a lock: the call would wait for itself.
    pub(super) fn releasable_caller_lock(&self) -> Result<Option<HeldLock>, LockError> {
        let mut may_end = None;
        if !self.waits() {
            return Ok(may_end);
        }
        for frame in frames_of(&self.parts) {
            match self.conflict(&frame) {
                Some(held) if frame.shows_guard => may_end = may_end.or(Some(held)),
                Some(held) => return Err(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) }),
                None => {}
            }
        }
        Ok(may_end)
    }

    /// Returns a calling body with a common name in compatible classes.
    pub(super) fn compatible_calling_frame(&self) -> Option<Frame> {
        let goes_together = |frame: &Frame| self.parts.conflict_with(&frame.tenure.parts()).is_none();
        frames_of(&self.parts).find(|frame| goes_together(frame) && self.beside(frame).is_some())
    }

    /// Acquires a lock beside that of a caller. If that fails at once, a waiter may be in between, and it waits for the
    /// caller: waiting for it would be a deadlock. This is the case if the common names cannot be acquired either. A
    /// holder of the other names may wait for none of them, so the call waits and logs a warning.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] if the call would wait for itself, unless the caller may release its lock
    /// meanwhile.
    pub(super) async fn try_beside_caller(&self, turn: LocalOwner, frame: &Frame) -> Result<LocalOwner, AcquireError> {
        let token = *turn.acquisition().token();
        let error = match self.try_until_answered(turn).await {
            Err(AcquireError::Failed(error)) if error.is_contended() => error,
            tried => return tried,
        };
        let Some(held) = self.beside(frame) else { return Err(AcquireError::Superseded) };
        if !frame.shows_guard && Box::pin(self.is_blocked_by_waiter(frame, &token)).await {
            return Err(AcquireError::Failed(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) }));
        }
        let shared = self.shared();
        events::deadlock(shared.told(&self.key), held.told(shared.policy.redaction));
        drop(error);
        Box::pin(self.wait(self.enter().await.map_err(AcquireError::Failed)?)).await
    }

    /// Returns `true` if a waiter blocks the call, which was refused under `token`, at names that its caller has. The
    /// nodes are asked for these names alone, under another token, unless there are no other names.
    async fn is_blocked_by_waiter(&self, frame: &Frame, token: &OwnerToken) -> bool {
        let held = frame.tenure.parts();
        let (common, own): (Vec<_>, Vec<_>) =
            self.parts.iter().cloned().partition(|part| held.class_of(part.name()).is_some());
        if own.is_empty() {
            return true;
        }
        let is_place = common.iter().all(|part| part.class.is_intent());
        let above = common.last().filter(|_| is_place).map(|part| (part.name().to_owned(), part.class));
        // One unknown place below the common places, because every request below a place names a place there.
        let unknown = above.map(|(name, class)| {
            let alone = if class == Class::IntentShared { Class::Shared } else { Class::Exclusive };
            Part::new(LockKey::of_place(format!("{name}/{}", token.as_str())), alone)
        });
        let Some(parts) = Parts::of(common.into_iter().chain(unknown)) else { return false };
        let wanted = Wanted { is_fenced: false, is_kept: false, linger: Duration::ZERO, ..self.wanted };
        let turn = self.local.enter_unqueued((&parts, parts.mode()), wanted, self.now());
        turn.acquisition().resume(wanted);
        matches!(self.try_until_answered(turn).await, Err(AcquireError::Failed(error)) if error.is_contended())
    }

    /// Returns the lock of a calling body that conflicts with the call, with the reason.
    fn conflict(&self, frame: &Frame) -> Option<HeldLock> {
        let part = self.parts.conflict_with(&frame.tenure.parts())?;
        self.lock_blocking_part(frame, part)
    }

    /// Returns the lock of a calling body that would block the call if a waiter came in between. The classes of the
    /// common names are compatible.
    pub(super) fn beside(&self, frame: &Frame) -> Option<HeldLock> {
        let held = frame.tenure.parts();
        let part = self.parts.iter().find(|part| held.class_of(part.name()).is_some())?;
        self.lock_blocking_part(frame, part)
    }

    /// Returns the lock of a body that blocks one `part` of the call, if the call had to wait.
    fn lock_blocking_part(&self, Frame { tenure, .. }: &Frame, part: &Part) -> Option<HeldLock> {
        let why = if tenure.shared().id == self.shared().id {
            self.why(tenure.parts().class_of(part.name())?, part.class)
        } else if tenure.shared().has_same_servers(self.shared()) {
            Why::OtherManager
        } else {
            return None;
        };
        let held = || HeldLock::new(tenure.key().clone(), tenure.place().line(), self.place.line(), why);
        let is_part = part.key != self.key;
        tenure.is_held().then(held).map(|held| if is_part { held.of_part(part.key.clone()) } else { held })
    }

    /// Returns the reason that the class of a caller blocks the wanted class of the same name.
    const fn why(&self, held: Class, wanted: Class) -> Why {
        match held {
            Class::Shared if matches!(wanted, Class::Exclusive | Class::IntentExclusive) => Why::Upgrade,
            Class::IntentExclusive | Class::IntentShared if !wanted.is_intent() => Why::Below,
            Class::Exclusive if self.is_reentrant => Why::More,
            _ => Why::Same,
        }
    }
}
