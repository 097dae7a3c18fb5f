//! A call in the body of another: what the locks of its callers mean for it.
//!
//! | a caller has the same lock | what becomes of the call |
//! |---|---|
//! | and the call is reentrant | it enters as a [`View`], without a command, behind another call that has one |
//! | was handed to this task, and has ended | [`LockError::Lost`], if the call is reentrant |
//! | and the body goes on after the end of its own view | [`LockError::Lost`], if the call is reentrant |
//! | and both share it, or want places below it | the call has a share of its own; it does not wait for a writer, who waits for its caller |
//! | and the call wants a name beside those | it waits for that one, with a warning: a writer of what both share may still come in between |
//! | and somebody waits in between for what both share | [`LockError::WouldDeadlock`], at once |
//! | but not all that the call wants | [`LockError::WouldDeadlock`], reentrant or not |
//! | of a place below the one that the call wants | [`LockError::WouldDeadlock`], reentrant or not |
//! | shared, and the call wants it alone | [`LockError::WouldDeadlock`], reentrant or not |
//! | and the call does not wait | as of any other call: the lock is taken |
//! | a share of it, and the call wants a permit | the call has a permit of its own; it waits neither for a writer, as above, nor for long behind others that want permits, who may wait for its caller |
//! | and nothing but the call can go on | [`LockError::WouldDeadlock`], at once |
//! | and each that has it may give it back meanwhile, since its body sees the guard | a warning, and the call waits |
//! | with another manager of the same servers | [`LockError::WouldDeadlock`], or the warning, reentrant or not |

use super::{Call, Obtained, Setback, Share};
use crate::client::enclosing::{Frame, Tenure, View, frames_of};
use crate::client::local_queue::LocalTurn;
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

/// A nested call that waits for another one for so long says so in the log. Smaller, ordinary turns of two branches are told;
/// larger, whoever looks why a program hangs finds nothing.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// A task that is woken when a lock is lost, until this is dropped.
struct Watcher<'a> {
    tenure: &'a Tenure,
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
    /// Enters the lock of a caller, if the call is reentrant. `None` when it is a call like any other.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] when the call would wait for its own caller, or in another order than others;
    /// [`LockError::Configuration`] for a number that the caller does not have; [`LockError::Lost`] when the lock is gone that it
    /// was to enter; and those of a wait for another call that has a view.
    pub(super) async fn enter_the_callers(&self) -> Result<Option<Obtained>, LockError> {
        let Some(enclosing) = self.covering()? else {
            self.does_not_wait_for_itself()?;
            return self.keeps_the_order().map(|()| None);
        };
        let fencing_token = self.number_of(&enclosing)?;
        if self.hold.min_hold.is_some() && enclosing.acquisition().stands_on_claims() {
            // A key that has to stay taken after the call needs leases.
            Box::pin(enclosing.acquisition().extend()).await?;
        }
        match View::try_enter(enclosing, self.place, self.hold.max_hold, self.begun) {
            Ok(view) => Ok(Some(self.hold_view(view, fencing_token))),
            // Boxed, so that other calls do not pay for it with the size of their futures.
            Err(enclosing) if self.waits() => Box::pin(self.enter_behind(&enclosing)).await.map(Some),
            Err(_) => Err(self.taken_here()),
        }
    }

    /// Enters behind another call that has a view of `enclosing`. A long wait may be one for itself: a view whose guard has no
    /// body is not known to be the caller's.
    ///
    /// # Errors
    /// As [`wait_for_views`](Self::wait_for_views).
    async fn enter_behind(&self, enclosing: &Tenure) -> Result<Obtained, LockError> {
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
    /// [`LockError::TimedOut`], and the loss of the lock while the call waits: what it was to enter is gone.
    async fn wait_for_views(&self, enclosing: &Tenure) -> Result<Obtained, LockError> {
        let mut entering = pin!(View::enter(enclosing, self.place, self.hold.max_hold));
        let mut watcher = Watcher { tenure: enclosing, number: None };
        loop {
            let (left, lease) = (self.left().unwrap_or(Duration::MAX), enclosing.remaining());
            let entered = poll_fn(|cx| {
                watcher.watch(cx);
                // After having registered: a loss from now on wakes us.
                if enclosing.is_held() { entering.as_mut().poll(cx) } else { Poll::Ready(None) }
            });
            match timeout(lease.min(left), entered).await {
                Ok(Some(view)) if enclosing.is_held() => {
                    let fencing_token = self.number_of(enclosing)?;
                    return Ok(self.hold_view(view, fencing_token));
                }
                Err(_) if left <= lease => return Err(self.timed_out_by(None)),
                // The lease was made longer meanwhile.
                Err(_) if enclosing.is_held() => {}
                _ => return Err(enclosing.loss()),
            }
        }
    }

    /// The call of the same manager that encloses this one and has the lock, if this one may enter it. An exclusive lock is
    /// good for whatever a nested call wants of its key.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the call was handed a lock that has ended meanwhile, or when its body goes on without its view:
    /// no other call is admitted to the lock before that one is done.
    fn covering(&self) -> Result<Option<Tenure>, LockError> {
        if !self.is_reentrant {
            return Ok(None);
        }
        let mut outlived = None;
        for Frame { tenure, is_inherited, .. } in frames_of(&self.parts) {
            // Who shares a lock has nothing to give to who wants it alone, and who has one key nothing to who wants two.
            if tenure.shared().id != self.shared().id
                || !tenure.parts().cover(&self.parts)
                || !self.is_counted_by(&tenure)
            {
                continue;
            }
            if tenure.is_held() {
                return outlived.map_or(Ok(Some(tenure)), |view: Tenure| Err(view.loss()));
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

    /// Whether the lock of a caller is one that was counted, if the call wants a permit: any number of readers share a lock without
    /// being counted.
    fn is_counted_by(&self, tenure: &Tenure) -> bool {
        let is_alone = || tenure.parts().class_of(self.key.name()) == Some(Class::Exclusive);
        !self.mode.is_permit() || tenure.acquisition().mode().is_permit() || is_alone()
    }

    /// The fencing token of a nested call, which is that of the call that encloses it.
    ///
    /// # Errors
    /// [`LockError::Configuration`] when that one is not fenced.
    fn number_of(&self, enclosing: &Tenure) -> Result<Option<FencingToken>, LockError> {
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

    /// The lock is that of this call as well from now on. The least hold of the call becomes one of the whole lock.
    fn hold_view(&self, view: View, fencing_token: Option<FencingToken>) -> Obtained {
        if let Some(least) = self.hold.min_hold {
            view.tenure().keep_until(self.now().after(least));
        }
        self.way.goes(Path::Nested);
        let since = view.tenure().observe_view(self.site.id, self.hold_span(view.acquisition(), fencing_token));
        self.count_as_acquired(since.unwrap_or(self.begun));
        #[cfg(feature = "testing")]
        self.note_view(&view);
        Obtained { share: Share::View(view), fencing_token, place: self.place }
    }

    /// # Errors
    /// As [`caller_that_may_end`](Self::caller_that_may_end).
    fn does_not_wait_for_itself(&self) -> Result<(), LockError> {
        if let Some(held) = self.caller_that_may_end()? {
            let shared = self.shared();
            events::deadlock(shared.told(&self.key), held.told(shared.policy.redaction));
        }
        Ok(())
    }

    /// The lock of a caller that the call would wait for, which that caller may give back meanwhile.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] when one of them cannot: the call would wait for itself.
    pub(super) fn caller_that_may_end(&self) -> Result<Option<HeldLock>, LockError> {
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

    /// A body that has a name in common with the call, in classes that go together: its own caller.
    pub(super) fn shares_with_a_caller(&self) -> Option<Frame> {
        let goes_together = |frame: &Frame| self.parts.conflict_with(&frame.tenure.parts()).is_none();
        frames_of(&self.parts).find(|frame| goes_together(frame) && self.beside(frame).is_some())
    }

    /// Takes a lock beside that of a caller. When it cannot be had at once, somebody may have come in between, who waits for the caller: to
    /// wait for that one would be to wait for oneself. It is so if the names that both have in common cannot be had, either. Of the other
    /// names somebody may have one who waits for nobody, so the call waits and says what may be wrong.
    ///
    /// # Errors
    /// [`LockError::WouldDeadlock`] when the call would wait for itself, unless the caller may give its lock back meanwhile.
    pub(super) async fn try_beside(&self, turn: LocalTurn, frame: &Frame) -> Result<LocalTurn, Setback> {
        let token = *turn.acquisition().token();
        let error = match self.try_until_answered(turn).await {
            Err(Setback::Failed(error)) if error.is_contended() => error,
            tried => return tried,
        };
        let Some(held) = self.beside(frame) else { return Err(Setback::Superseded) };
        if !frame.shows_guard && Box::pin(self.has_somebody_between(frame, &token)).await {
            return Err(Setback::Failed(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) }));
        }
        let shared = self.shared();
        events::deadlock(shared.told(&self.key), held.told(shared.policy.redaction));
        drop(error);
        Box::pin(self.wait(self.enter().await.map_err(Setback::Failed)?)).await
    }

    /// Whether somebody keeps the call, which was refused under this `token`, from names that its caller has. The nodes are asked for those
    /// alone, under another token, unless there are no others.
    async fn has_somebody_between(&self, frame: &Frame, token: &OwnerToken) -> bool {
        let held = frame.tenure.parts();
        let (common, own): (Vec<_>, Vec<_>) =
            self.parts.iter().cloned().partition(|part| held.class_of(part.name()).is_some());
        if own.is_empty() {
            return true;
        }
        let is_place = common.iter().all(|part| part.class.is_intent());
        let above = common.last().filter(|_| is_place).map(|part| (part.name().to_owned(), part.class));
        // Below the places in common, one that nobody else knows: nobody wants what is below a place without a place there.
        let unknown = above.map(|(name, class)| {
            let alone = if class == Class::IntentShared { Class::Shared } else { Class::Exclusive };
            Part::new(LockKey::of_place(format!("{name}/{}", token.as_str())), alone)
        });
        let Some(parts) = Parts::of(common.into_iter().chain(unknown)) else { return false };
        let wanted = Wanted { is_fenced: false, is_kept: false, linger: Duration::ZERO, ..self.wanted };
        let turn = self.local.enter_beside((&parts, parts.mode()), wanted, self.now());
        turn.acquisition().take_up(wanted);
        matches!(self.try_until_answered(turn).await, Err(Setback::Failed(error)) if error.is_contended())
    }

    /// Why a body is in the way of the call, which wants what goes with its lock for nobody.
    fn conflict(&self, frame: &Frame) -> Option<HeldLock> {
        let part = self.parts.conflict_with(&frame.tenure.parts())?;
        self.in_the_way(frame, part)
    }

    /// Why a body would be in the way of the call, should somebody come in between who waits for that body. What both want goes
    /// together.
    pub(super) fn beside(&self, frame: &Frame) -> Option<HeldLock> {
        let held = frame.tenure.parts();
        let part = self.parts.iter().find(|part| held.class_of(part.name()).is_some())?;
        self.in_the_way(frame, part)
    }

    /// The lock of a body that is in the way of one `part` of the call, should it have to wait.
    fn in_the_way(&self, Frame { tenure, .. }: &Frame, part: &Part) -> Option<HeldLock> {
        let why = if tenure.shared().id == self.shared().id {
            self.why(tenure.parts().class_of(part.name())?, part.class)
        } else if tenure.shared().has_the_nodes_of(self.shared()) {
            Why::OtherManager
        } else {
            return None;
        };
        let held = || HeldLock::new(tenure.key().clone(), tenure.place().line(), self.place.line(), why);
        let is_part = part.key != self.key;
        tenure.is_held().then(held).map(|held| if is_part { held.of_part(part.key.clone()) } else { held })
    }

    /// Why the class of a caller is in the way of the one that the call wants of the same name.
    const fn why(&self, held: Class, wanted: Class) -> Why {
        match held {
            Class::Shared if matches!(wanted, Class::Exclusive | Class::IntentExclusive) => Why::Upgrade,
            Class::IntentExclusive | Class::IntentShared if !wanted.is_intent() => Why::Below,
            Class::Exclusive if self.is_reentrant => Why::More,
            _ => Why::Same,
        }
    }
}
