//! A call that wants a permit: it stands in the turnstile of the key, and enters when so few others have one that it may.
//!
//! 1. The turnstile is an ordinary exclusive lock, with the line of this process and the queues of the nodes. So calls that want
//!    permits are served one after the other, in the order in which they came.
//! 2. Who has it asks the nodes for a permit, and is admitted by what they say of the others (`protocol/candidate/permits`). Then the
//!    turnstile is left to the next one, and the body begins without waiting for that.
//! 3. While too many have permits, the call stays in the turnstile: it asks again when one is given back, when one runs out, and
//!    now and then.
//! 4. While somebody has the lock alone, or has come before to have it alone, what some nodes have given is given back, and another
//!    token asks them later: that one may need these nodes for what it has of the others, and would wait for them as long as this
//!    one does for those.
//! 5. A permit that another call of this process gives back may be passed on to it meanwhile, wherever it stands. Then it leaves the
//!    turnstile to the next one, together with what the nodes have told by then: so that one has nothing to ask.
//! 6. Should the turnstile be lost meanwhile, the permit is given back that some nodes have given, and another token begins anew.

use super::{Call, SHORTEST_LOOK, Way};
use crate::client::acquisition::{Acquisition, TakenUp};
use crate::client::enclosing::{Frame, frames_of};
use crate::client::local_queue::{LocalTurn, PermitWait};
use crate::error::LockError;
use crate::lock::Mode;
use crate::lock::parts::Parts;
use crate::observe::events;
use crate::observe::spans::Path;
use crate::protocol::candidate::{Entering, Wanted, turn};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{AFTER_FAILURE, LONGEST_SILENCE, POLL, QUESTIONS_PER_TURN};
use crate::request::Wait;
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// Why a call stands in the turnstile no longer.
enum Left {
    /// The turnstile is another's by now.
    TurnLost,
    Failed(LockError),
}

/// What a call has come by while it waited.
enum Came<T> {
    /// What it has waited for.
    Ours(T),
    /// A permit of another call.
    Passed(LocalTurn),
}

/// What the next call has with the turnstile when the one before was given a permit by another call.
struct Entrant {
    /// With a token that some nodes have given a permit, or are asked for one.
    permit: LocalTurn,
    ttl: Duration,
    permits: u32,
    rest: Option<Rest>,
}

/// What a call has while it stands in the turnstile.
struct Stay<'t> {
    turnstile: &'t LocalTurn,
    /// With the token by which the nodes are asked for a permit.
    permit: LocalTurn,
    rest: Option<Rest>,
    /// Since when too few nodes have answered.
    silent_since: Option<Instant>,
    /// For how long it rests when it gives way once more.
    pause_behind: Duration,
    /// Whether it was told that it waits for a caller of the call.
    is_told: bool,
}

/// Until when so many others have permits that nothing is to be asked.
#[derive(Clone, Copy)]
struct Rest {
    /// When the first of them loses it, unless it extends it.
    first_end: Option<Instant>,
    until: Instant,
}

impl<'c> Call<'c> {
    /// Obtains a permit.
    pub(super) async fn obtain_permit(&self) -> Result<LocalTurn, LockError> {
        self.does_not_wait_for_permits_of_its_own()?;
        let gate = self.of_turnstile();
        let mut place = self.place_in_line();
        loop {
            let turnstile = match self.unless_passed(&mut place, self.obtain_turnstile(&gate)).await {
                Came::Ours(turnstile) => turnstile?,
                Came::Passed(permit) => return Ok(permit),
            };
            match self.enter_through(&turnstile, &mut place).await {
                Ok(Came::Ours(permit)) => {
                    self.way.goes(if gate.way.path() == Path::Fast { Path::Fast } else { Path::Queued });
                    return Ok(permit);
                }
                Ok(Came::Passed(permit)) => return Ok(permit),
                Err(Left::TurnLost) => {}
                Err(Left::Failed(error)) => return Err(error),
            }
        }
    }

    /// # Errors
    /// [`LockError::WouldDeadlock`] when its own callers have as many permits as there may be, and none of them can give one back.
    fn does_not_wait_for_permits_of_its_own(&self) -> Result<(), LockError> {
        if !self.waits() {
            return Ok(());
        }
        let enough = self.permits.saturating_sub(1) as usize;
        let of_callers = |may_end: bool| {
            let mut counted = Vec::new();
            // Nodes count tokens: bodies that share one are one, and who has something below has no permit.
            let is_counted = |frame: &Frame| {
                let (tenure, token) = (&frame.tenure, frame.tenure.acquisition().token());
                let is_new = (may_end || !frame.shows_guard)
                    && !tenure.is_view()
                    && tenure.parts().class_of(self.key.name()).is_some_and(|class| !class.is_intent())
                    && !counted.contains(token);
                if is_new {
                    counted.push(*token);
                }
                is_new
            };
            frames_of(&self.parts).filter(is_counted).filter_map(|frame| self.beside(&frame)).nth(enough)
        };
        if let Some(held) = of_callers(false) {
            return Err(LockError::WouldDeadlock { key: self.key.clone(), held: Box::new(held) });
        }
        if let Some(held) = of_callers(true) {
            let shared = self.shared();
            events::deadlock(shared.told(&self.key), held.told(shared.policy.redacts_keys));
        }
        Ok(())
    }

    /// Obtains the turnstile. Who stays in it may wait for a caller of this call, or behind somebody who does; whoever only enters
    /// is through before it is looked at again.
    async fn obtain_turnstile(&self, gate: &Call<'_>) -> Result<LocalTurn, LockError> {
        let (mut obtaining, mut is_told) = (pin!(gate.obtain()), false);
        let obtained = loop {
            match timeout(LONGEST_SILENCE, obtaining.as_mut()).await {
                Ok(obtained) => break obtained,
                Err(_) => self.does_not_wait_behind_its_callers(&mut is_told)?,
            }
        };
        obtained.map_err(|error| self.about_the_permit(error))
    }

    /// # Errors
    /// [`LockError::WouldDeadlock`] when the call waits for somebody who may wait for a caller of it, unless that caller may give its
    /// lock back meanwhile.
    fn does_not_wait_behind_its_callers(&self, is_told: &mut bool) -> Result<(), LockError> {
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
            events::deadlock(shared.told(&self.key), held.told(shared.policy.redacts_keys));
        }
        Ok(())
    }

    /// The call for the turnstile. A call that does not wait for permits waits for those who are about to enter, which takes no
    /// longer than their questions: whoever stays in the turnstile waits for a permit.
    fn of_turnstile(&self) -> Call<'c> {
        let ttl = turn(self.wanted.ttl);
        let wait = if self.waits() { self.wait } else { Wait::For(self.shared().node_timeout(ttl)) };
        let key = self.key.turnstile();
        Call {
            local: self.local,
            parts: Parts::single(key.clone(), Mode::Exclusive),
            key,
            mode: Mode::Exclusive,
            wanted: Wanted { ttl, is_fenced: false, is_kept: false, linger: Duration::ZERO },
            wait,
            permits: 0,
            hold: HoldOptions::default(),
            joins: false,
            is_reentrant: false,
            has_ordered_lock: false,
            place: self.place,
            label: self.label,
            site: self.site,
            way: Way::default(),
            begun: self.begun,
            latest: None,
        }
    }

    /// The error of a call for the turnstile, as one of the call for the permit.
    fn about_the_permit(&self, error: LockError) -> LockError {
        let ours = || self.key.clone();
        match error {
            LockError::Contended { .. } => self.full(None),
            LockError::TimedOut { .. } if !self.waits() => self.full(None),
            LockError::TimedOut { .. } => self.timed_out_by(None),
            LockError::NoQuorum { needed, nodes, causes, .. } => {
                LockError::NoQuorum { key: Some(ours()), needed, nodes, causes }
            }
            LockError::Refused { needed, nodes, causes, .. } => {
                LockError::Refused { key: Some(ours()), needed, nodes, causes }
            }
            error => error,
        }
    }

    /// Where permits of other calls are passed on to it, if it waits. One that is kept passes on to nobody, and nobody is passed one
    /// before whoever wants to keep it.
    fn place_in_line(&self) -> Option<PermitWait> {
        self.waits().then(|| self.local.wait_for_permit(&self.key, self.wanted, self.permits))
    }

    /// Waits for what is `ours`, or for a permit of another call.
    async fn unless_passed<T>(&self, place: &mut Option<PermitWait>, ours: impl Future<Output = T>) -> Came<T> {
        let mut ours = pin!(ours);
        poll_fn(|cx| {
            while let Some(Poll::Ready(permit)) = place.as_mut().map(|place| Pin::new(place).poll(cx)) {
                // The call may not have been polled for long.
                let is_good = permit.acquisition().take_up(self.wanted) == (TakenUp::Held { is_passable: true });
                if is_good && !self.shared().is_closed() {
                    self.way.goes(Path::Local);
                    return Poll::Ready(Came::Passed(permit));
                }
                place.as_mut().into_iter().for_each(PermitWait::wait_again);
            }
            ours.as_mut().poll(cx).map(Came::Ours)
        })
        .await
    }

    /// Enters while this process has the turnstile, which is left with the return of this.
    async fn enter_through(
        &self,
        turnstile: &LocalTurn,
        place: &mut Option<PermitWait>,
    ) -> Result<Came<LocalTurn>, Left> {
        let (permit, rest) = self.entrant(turnstile).await?;
        permit.acquisition().take_up(self.wanted);
        if self.waits() {
            // Whoever gives a permit back from the first question on is heard.
            self.shared().listen();
        }
        let mut stay =
            Stay { turnstile, permit, rest, silent_since: None, pause_behind: AFTER_FAILURE, is_told: false };
        match self.stay(&mut stay, place).await {
            Ok(Came::Ours(())) => Ok(Came::Ours(stay.permit)),
            Ok(Came::Passed(passed)) => {
                self.leave_entrant(stay);
                Ok(Came::Passed(passed))
            }
            Err(left) => {
                // Who does not wait has found what the next one need not ask for.
                if matches!(left, Left::Failed(_)) && stay.rest.is_some() {
                    self.leave_entrant(stay);
                }
                Err(left)
            }
        }
    }

    /// Asks the nodes until they admit the call, and rests in between.
    async fn stay(&self, stay: &mut Stay<'_>, place: &mut Option<PermitWait>) -> Result<Came<()>, Left> {
        loop {
            let entering = match self.unless_passed(place, self.ask(stay)).await {
                Came::Ours(entering) => entering,
                Came::Passed(passed) => return Ok(Came::Passed(passed)),
            };
            if entering == Entering::Admitted {
                return Ok(Came::Ours(()));
            }
            let now = self.now();
            let pause = stay.pause_after(entering).min(turn(self.wanted.ttl) / QUESTIONS_PER_TURN);
            stay.rest = match entering {
                Entering::Full { first_end } => stay.rest.or(Some(Rest { first_end, until: now.after(pause) })),
                _ => None,
            };
            self.may_stay(stay, entering, now)?;
            if entering == Entering::Behind {
                self.give_way(stay)?;
            }
            if !self.keep_turnstile(stay.turnstile).await {
                return Err(Left::TurnLost);
            }
            let until = self.rests_until(stay, now.after(pause));
            match self.unless_passed(place, self.rest(stay, entering, until)).await {
                Came::Ours(()) => stay.rest = None,
                Came::Passed(passed) => return Ok(Came::Passed(passed)),
            }
        }
    }

    /// How far the call is by what the nodes say, unless the call before has just heard that.
    async fn ask(&self, stay: &Stay<'_>) -> Entering {
        match stay.rest {
            Some(Rest { first_end, .. }) => Entering::Full { first_end },
            None => stay.permit.acquisition().enter(stay.turnstile.acquisition(), self.permits).await,
        }
    }

    /// # Errors
    /// When the call waits no longer.
    fn may_stay(&self, stay: &mut Stay<'_>, entering: Entering, now: Instant) -> Result<(), Left> {
        if self.shared().is_closed() {
            return Err(Left::Failed(LockError::Closed));
        }
        if entering == Entering::Unanswered {
            let since = *stay.silent_since.get_or_insert(now);
            return self.may_ask_again(stay.permit.acquisition(), now.since(since), now);
        }
        stay.silent_since = None;
        self.may_rest(stay.rest.and_then(|rest| rest.first_end), now)
    }

    /// Gives back what some nodes have given, for whoever has the lock alone or has come before to have it so.
    fn give_way(&self, stay: &mut Stay<'_>) -> Result<(), Left> {
        // It may be this process that has the lock, and nobody in it.
        self.local.end_idle(self.key.name());
        self.does_not_wait_behind_its_callers(&mut stay.is_told).map_err(Left::Failed)?;
        if self.shared().rules.apply(Rule::PermitsGiveWay) {
            // Nobody else has the line of its token.
            stay.permit.change_to_successor(self.wanted.ttl).map_err(|_| Left::TurnLost)?;
            stay.permit.acquisition().take_up(self.wanted);
        }
        Ok(())
    }

    /// Until when the call does not ask again by itself, which is to `look_at` it then.
    fn rests_until(&self, stay: &Stay<'_>, look_at: Instant) -> Instant {
        let limit = self.limit().filter(|_| self.waits());
        let (look_at, first_end) = stay.rest.map_or((look_at, None), |rest| (rest.until, rest.first_end));
        let until = [first_end, limit].into_iter().flatten().fold(look_at, Instant::min);
        until.max(self.now().after(SHORTEST_LOOK))
    }

    async fn rest(&self, stay: &Stay<'_>, entering: Entering, until: Instant) {
        if entering == Entering::Behind && self.shared().rules.apply(Rule::PermitsGiveWay) {
            // A permit that is given back is of no use to it, least of all its own, of which it would be told.
            let shared = self.shared();
            let closed = wait_until(&shared.changed, || shared.is_closed());
            let _ = timeout(until.since(self.now()), closed).await;
        } else {
            stay.turnstile.acquisition().until_freed(until).await;
        }
    }

    /// The token by which the nodes are asked for a permit: that of the call before, if it has left one with the turnstile. Until then
    /// there is nothing to ask for a call that waits, and for which as many are too many.
    async fn entrant(&self, turnstile: &LocalTurn) -> Result<(LocalTurn, Option<Rest>), Left> {
        let left = turnstile.acquisition().companion::<Entrant>();
        let Some(Entrant { permit, permits, rest, .. }) = left.filter(|entrant| entrant.ttl == self.wanted.ttl) else {
            return Ok((self.enter().await.map_err(Left::Failed)?, None));
        };
        let now = self.now();
        let may_rest = self.waits() && permits == self.permits && self.limit().is_none_or(|limit| now < limit);
        Ok((permit, rest.filter(|rest| may_rest && now < rest.until)))
    }

    /// The next call goes on with the token of this one, if it has the turnstile by the same.
    fn leave_entrant(&self, Stay { turnstile, permit, rest, .. }: Stay<'_>) {
        let (ttl, permits) = (self.wanted.ttl, self.permits);
        turnstile.acquisition().accompany(Entrant { permit, ttl, permits, rest });
    }

    /// # Errors
    /// When the call waits for answers no longer, or for nothing any more. Who does not wait for permits keeps the turnstile from others
    /// for a node timeout.
    fn may_ask_again(&self, permit: &Acquisition, silence: Duration, now: Instant) -> Result<(), Left> {
        let (limit, waits) = (self.limit(), self.waits());
        let longest = if waits { LONGEST_SILENCE } else { permit.node_timeout() };
        let is_over = waits && limit.is_some_and(|limit| limit <= now);
        if is_over && permit.is_heard() {
            Err(Left::Failed(self.timed_out_by(None)))
        } else if is_over || silence >= longest && (limit.is_some() || permit.is_refused()) {
            Err(Left::Failed(permit.failure()))
        } else {
            Ok(())
        }
    }

    /// # Errors
    /// When the call waits no longer.
    fn may_rest(&self, first_end: Option<Instant>, now: Instant) -> Result<(), Left> {
        match self.limit() {
            _ if !self.waits() => Err(Left::Failed(self.full(first_end.map(|end| end.since(now))))),
            Some(limit) if limit <= now => Err(Left::Failed(self.timed_out_by(None))),
            _ => Ok(()),
        }
    }

    /// Sees to it that the turnstile is this process's for a while yet.
    async fn keep_turnstile(&self, turnstile: &LocalTurn) -> bool {
        let acquisition = turnstile.acquisition();
        if acquisition.lease_left().is_none_or(|left| left < turn(self.wanted.ttl) * 2 / 3) {
            // Too few answers are told by what is left then.
            let _ = acquisition.extend().await;
        }
        !turnstile.has_ended() && acquisition.stands_there()
    }

    /// So many others have permits.
    fn full(&self, lease_left: Option<Duration>) -> LockError {
        LockError::Contended { key: self.key.clone(), lease_left, holder: None }
    }
}

impl Stay<'_> {
    /// How long a call rests that has got so far. Who gives way looks again soon at first, and after twice as long each time: an
    /// exclusive lock may be a short one, or one that nobody uses.
    fn pause_after(&mut self, entering: Entering) -> Duration {
        if entering == Entering::Behind {
            let longer = POLL.min(self.pause_behind * 2);
            return std::mem::replace(&mut self.pause_behind, longer);
        }
        self.pause_behind = AFTER_FAILURE;
        if entering == Entering::Unanswered { AFTER_FAILURE } else { POLL }
    }
}
