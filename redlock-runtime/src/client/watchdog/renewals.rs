//! The renewals that were sent, until their answers have come or are looked for no longer.
//!
//! A lock that is not ours any more should be known at once, and not at its next renewal.

use super::schedule::{self, Due};
use super::watched::Watched;
use crate::client::acquisition::{Acquisition, News};
use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// When to look for the answers to a renewal: after this time, then at intervals that double, and at the end when enough of
/// them have come. Smaller than a round trip, a look for nothing; larger, a lock that is lost is known later.
const FIRST_ANSWERS: Duration = Duration::from_millis(2);
/// So much later for each lock that is renewed together with others, as long as a server takes for it. Smaller, a look for
/// nothing at each of many locks; larger, as above.
const ANSWERED_AFTER: Duration = Duration::from_micros(20);

/// Those whose answers have not been seen.
#[derive(Default)]
pub(super) struct Renewals {
    open: Vec<Renewed>,
    /// When to look for the first of the answers.
    look_at: Option<Instant>,
}

/// A lock that was renewed.
struct Renewed {
    acquisition: Arc<Acquisition>,
    asked: Instant,
    /// When to look for the answers next.
    look_at: Instant,
    /// Until when to look for them.
    until: Instant,
    /// When the lock is looked at in any case.
    planned: Instant,
}

impl Renewals {
    /// When to look for answers, if any are to come.
    pub(super) const fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Renews what is `due`, and looks for the answers from now on.
    pub(super) fn send(&mut self, due: impl ExactSizeIterator<Item = Due>, now: Instant, rules: Rules) {
        let mut all_news = Vec::new();
        let look_at = now.after(first_answers(due.len()));
        for Due { acquisition, next: planned } in due {
            let (wait, news) = acquisition.renew(now, schedule::early);
            all_news.extend(news);
            if rules.apply(Rule::LossesAreLookedFor) {
                let until = now.after(wait);
                let look_at = look_at.min(until);
                self.open.push(Renewed { acquisition, asked: now, look_at, until, planned });
                self.look_at = Some(self.look_at.map_or(look_at, |at| at.min(look_at)));
            }
        }
        // Told when all of them are on their way: whoever is told may take a while.
        drop(all_news);
    }

    /// Takes in the answers for which it is time to look.
    pub(super) fn take_answers(&mut self, now: Instant, watched: &Arc<dyn Watched>) {
        if self.look_at.is_some_and(|at| at <= now) {
            let mut all_news = Vec::new();
            self.open.retain_mut(|renewed| now < renewed.look_at || renewed.is_open(now, watched, &mut all_news));
            drop(all_news);
            self.look_at = self.open.iter().map(|renewed| renewed.look_at).min();
        }
    }
}

/// After what time to look for the first answers when so many `locks` are renewed together.
fn first_answers(locks: usize) -> Duration {
    FIRST_ANSWERS + ANSWERED_AFTER * u32::try_from(locks).unwrap_or(u32::MAX)
}

impl Renewed {
    /// Takes in the answers that are here. Whether to look for others later. What there is to tell comes to `all_news`.
    fn is_open(&mut self, now: Instant, watched: &Arc<dyn Watched>, all_news: &mut impl Extend<Box<News>>) -> bool {
        let asked = self.asked;
        let (heard, news) = self.acquisition.hear(|candidate, now| schedule::heard(candidate, asked, now));
        all_news.extend(news);
        // A vote may be lacking only since one of the answers has come.
        self.until = self.until.max(asked.after(heard.matter_for));
        let is_open = heard.is_awaited && now < self.until;
        if is_open {
            let next = if heard.is_extended { self.until } else { now.after(now.since(asked)) };
            self.look_at = next.min(self.until);
        } else {
            self.end(heard.next, watched);
        }
        is_open
    }

    /// The answers are here, or looked for no longer; as things are, the lock has to be looked at by `next`.
    fn end(&self, next: Option<Instant>, watched: &Arc<dyn Watched>) {
        if let Some(sooner) = next.filter(|next| *next < self.planned) {
            watched.look_by(&self.acquisition, sooner);
        }
        if self.acquisition.is_permit() {
            Arc::clone(watched).answered(&self.acquisition);
        }
    }
}
