//! Pending permit request of a process, which is kept while the process owns the turnstile or asks for it.
//!
//! The request passes with the turnstile from call to call. If the turnstile may be free, the request goes to the nodes
//! right behind the request for the turnstile, which saves a round trip. Its replies count only if that request gets
//! the turnstile; otherwise they are given up.

use super::Call;
use crate::client::local_queue::{LocalTurn, Superseded};
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// Pending permit request that passes with the turnstile between the calls of this process, until one of them has its
/// permit.
pub(super) struct Entrant {
    /// Local turn of the token that asks for the permit, or has permits at some nodes.
    pub(super) permit: LocalTurn,
    ttl: Duration,
    permits: u32,
    pub(super) rest: Option<Rest>,
    /// Set while answers to the request are outstanding.
    pub(super) is_asked: bool,
}

/// Pause without questions while all permits are taken.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// End of the first of the other permits, unless it is extended.
    pub(super) first_end: Option<Instant>,
    pub(super) until: Instant,
}

impl Call<'_> {
    /// Returns the request that the previous call has left with the turnstile, or a new one. A waiting call with the
    /// same limit respects the pause of the previous call.
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

    /// Prepares the request for [`ask_behind`](Entrant::ask_behind), so that no work is left between the two sends.
    pub(super) fn look_ahead(&self) -> Entrant {
        let entrant = Entrant { is_asked: true, ..self.new_entrant() };
        entrant.permit.acquisition().take_up(self.wanted);
        if self.waits() {
            self.shared().listen();
        }
        entrant
    }

    /// Waits for the replies to the early permit request after the turnstile was refused. They arrive right after that
    /// refusal. A node that refuses commands would refuse a release as well, so it does not need one.
    pub(super) async fn hear_refusals(&self, turnstile: &LocalTurn, patience: Duration) {
        let turnstile = turnstile.acquisition();
        if turnstile.is_refused()
            && let Some(entrant) = turnstile.companion::<Entrant>()
        {
            let (permit, _) = entrant.permit.shared();
            // It passes with the turnstile, even if this future is dropped.
            turnstile.accompany(entrant);
            permit.until_answered(patience).await;
        }
    }

    /// Gives up the early permit request, because the process does not own the turnstile yet. Other calls may own it,
    /// and the replies do not count them. The turnstile is requested with another token in the same place, so that late
    /// commands do not find their token.
    pub(super) fn ask_no_more(&self, turnstile: &mut LocalTurn) -> Result<(), Superseded> {
        if self.shared().rules.apply(Rule::AskedAheadEndsWithTheTry) {
            turnstile.change(turnstile.acquisition().again())?;
            turnstile.acquisition().take_up(self.wanted);
        }
        Ok(())
    }
}

impl Entrant {
    /// Sends the permit request right behind the request for this `turnstile`, which saves a round trip if the
    /// turnstile is free.
    pub(super) fn ask_behind(self, turnstile: &LocalTurn) {
        self.permit.acquisition().ask_for_permit(turnstile.acquisition());
        turnstile.acquisition().accompany(self);
    }
}
