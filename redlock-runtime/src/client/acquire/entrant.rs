//! The token by which a process asks for a permit, as long as it stands in the turnstile or asks for that.
//!
//! It goes with the turnstile from call to call. Where that may be free, the nodes are asked for the permit right behind the question for
//! the turnstile, to spare a round trip: what they say counts if the turnstile is had by that question, and is given up otherwise.

use super::Call;
use crate::client::local_queue::{LocalTurn, Superseded};
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// What goes with the turnstile from call to call of this process, until one of them has its permit.
pub(super) struct Entrant {
    /// With a token that some nodes have given a permit, or are asked for one.
    pub(super) permit: LocalTurn,
    ttl: Duration,
    permits: u32,
    pub(super) rest: Option<Rest>,
    /// Whether the nodes are asked, and have yet to answer.
    pub(super) is_asked: bool,
}

/// Until when so many others have permits that nothing is to be asked.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// When the first of them loses it, unless it extends it.
    pub(super) first_end: Option<Instant>,
    pub(super) until: Instant,
}

impl Call<'_> {
    /// What the call before has left with the turnstile, or a new token. A call that waits, and for which as many are too many, asks
    /// when that one would have asked again.
    pub(super) fn entrant(&self, turnstile: &LocalTurn) -> Entrant {
        let (ttl, permits) = (self.wanted.ttl, self.permits);
        let left = turnstile.acquisition().companion::<Entrant>().filter(|entrant| entrant.ttl == ttl);
        let Some(mut entrant) = left else { return self.new_entrant() };
        let now = self.now();
        let may_rest = self.waits() && permits == entrant.permits && self.limit().is_none_or(|limit| now < limit);
        entrant.rest = entrant.rest.filter(|rest| may_rest && now < rest.until);
        entrant.permits = permits;
        entrant
    }

    fn new_entrant(&self) -> Entrant {
        let permit = self.local.enter_beside((&self.parts, self.mode), self.wanted, self.begun);
        Entrant { permit, ttl: self.wanted.ttl, permits: self.permits, rest: None, is_asked: false }
    }

    /// Makes ready for [`ask_behind`](Entrant::ask_behind), so that nothing is to be done between the two questions.
    pub(super) fn look_ahead(&self) -> Entrant {
        let entrant = Entrant { is_asked: true, ..self.new_entrant() };
        entrant.permit.acquisition().take_up(self.wanted);
        if self.waits() {
            self.shared().listen();
        }
        entrant
    }

    /// Hears what the nodes say to what was asked ahead, when they have refused the question before that: the answer comes right behind
    /// that. Whoever has refused it need not be told that it is given back, which he would refuse as well.
    pub(super) async fn hear_refusals(&self, turnstile: &LocalTurn, patience: Duration) {
        let turnstile = turnstile.acquisition();
        if turnstile.is_refused()
            && let Some(entrant) = turnstile.companion::<Entrant>()
        {
            let (permit, _) = entrant.permit.shared();
            // It goes with the turnstile, whenever this is dropped.
            turnstile.accompany(entrant);
            permit.until_answered(patience).await;
        }
    }

    /// What was asked ahead was in vain, since the turnstile is not this process's yet: until it is, others may stand in it, of whom
    /// the answers say nothing. And by another token in the same place, so that what comes late finds nobody whom it was sent for.
    pub(super) fn ask_no_more(&self, turnstile: &mut LocalTurn) -> Result<(), Superseded> {
        if self.shared().rules.apply(Rule::AskedAheadEndsWithTheTry) {
            turnstile.change(turnstile.acquisition().again())?;
            turnstile.acquisition().take_up(self.wanted);
        }
        Ok(())
    }
}

impl Entrant {
    /// Asks for the permit behind the question for this `turnstile`, which may be the process's by then: that spares a round trip.
    pub(super) fn ask_behind(self, turnstile: &LocalTurn) {
        self.permit.acquisition().ask_for_permit(turnstile.acquisition());
        turnstile.acquisition().accompany(self);
    }
}
