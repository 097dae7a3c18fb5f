//! Renewals that were sent, until their answers have arrived or are no longer examined.
//!
//! The loss of a lock should be noticed at once, not at the next renewal.

use super::schedule::{self, Due};
use super::watched::Watched;
use crate::client::acquisition::{Acquisition, News};
use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// Time of the first examination of the answers to a renewal. The intervals then double, up to the last examination
/// when enough of them have arrived. Smaller than a round trip: a useless examination. Larger: a lost lock is noticed
/// later.
const FIRST_ANSWERS: Duration = Duration::from_millis(2);
/// Additional time for each lock that is renewed together with others, about the time of a server for it. Smaller:
/// useless examinations of many locks. Larger: a lost lock is noticed later.
const ANSWERED_AFTER: Duration = Duration::from_micros(20);

/// Renewals whose answers were not seen.
#[derive(Default)]
pub(super) struct Renewals {
    open: Vec<Renewed>,
    /// Time of the first examination of any answers.
    look_at: Option<Instant>,
}

/// Lock that was renewed.
struct Renewed {
    acquisition: Arc<Acquisition>,
    asked: Instant,
    /// Time of the next examination of its answers.
    look_at: Instant,
    /// Time of the last examination of its answers.
    until: Instant,
    /// Time of the next regular check of the lock.
    planned: Instant,
}

impl Renewals {
    /// Returns the time of the next examination of answers, if any are outstanding.
    pub(super) const fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Renews the `due` locks, and examines their answers from now on.
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
        // After all renewals were sent, because a subscriber of the events may take a while.
        drop(all_news);
    }

    /// Processes the answers that must be examined now.
    pub(super) fn take_answers(&mut self, now: Instant, watched: &Arc<dyn Watched>) {
        if self.look_at.is_some_and(|at| at <= now) {
            let mut all_news = Vec::new();
            self.open.retain_mut(|renewed| now < renewed.look_at || renewed.examine(now, watched, &mut all_news));
            drop(all_news);
            self.look_at = self.open.iter().map(|renewed| renewed.look_at).min();
        }
    }
}

/// Returns the time of the first examination after the renewal of this number of `locks`.
fn first_answers(locks: usize) -> Duration {
    FIRST_ANSWERS + ANSWERED_AFTER * u32::try_from(locks).unwrap_or(u32::MAX)
}

impl Renewed {
    /// Processes the arrived answers, and adds events to `all_news`. Returns `true` if further answers must be examined
    /// later.
    fn examine(&mut self, now: Instant, watched: &Arc<dyn Watched>, all_news: &mut impl Extend<Box<News>>) -> bool {
        let asked = self.asked;
        let (heard, news) = self.acquisition.hear(|candidate, now| schedule::heard(candidate, asked, now));
        all_news.extend(news);
        // One of the answers may have removed a vote.
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

    /// Ends the examination. The lock needs a check at `next`, according to the answers.
    fn end(&self, next: Option<Instant>, watched: &Arc<dyn Watched>) {
        if let Some(sooner) = next.filter(|next| *next < self.planned) {
            watched.schedule_check(&self.acquisition, sooner);
        }
        if self.acquisition.is_permit() {
            Arc::clone(watched).answered(&self.acquisition);
        }
    }
}
