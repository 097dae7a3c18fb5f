//! Who breaks a lock serves nobody else before its holder has stopped, or cannot count on it any more.

use super::Observer;
use crate::admin::BreakReport;
use crate::lock::OwnerToken;
use crate::simulation::actor::key;
use crate::simulation::records::{Holder, Promise};
use crate::simulation::telling::client_name;

impl Observer {
    /// Somebody is about to break the lock of `token`.
    pub(in crate::simulation) fn breaks(&self, client: usize, index: usize, token: OwnerToken) {
        self.network
            .trace
            .line(|trace| format!("{} breaks {} of {}", client_name(client), key(index), trace.name(token)));
        self.records().to_break.insert(token);
    }

    /// He has done so, or has given up.
    pub(in crate::simulation) fn broke(&self, client: usize, report: Option<&BreakReport>) {
        // Not as it is shown: what makes tokens unique is not decided by the seed.
        let words = |report: &BreakReport| {
            format!(
                "broken: {}, told: {}, stopped: {}",
                report.is_broken(),
                report.holder_notified,
                report.holder_stopped
            )
        };
        let words = report.map_or("has given up".to_owned(), words);
        self.network.trace.line(|_| format!("{} breaks: {words}", client_name(client)));
    }

    /// What stands in for holders that may be at work, or that were not heard of.
    pub(super) fn stand_ins(&self, holders: &[Holder]) -> Vec<OwnerToken> {
        let mut all = self.network.stand_ins();
        all.retain(|token| self.is_meant_to_stand(holders, *token));
        all
    }

    /// Whether `token`, if it stands in for a holder of whom it was not said that he has stopped, is meant to: where all that is
    /// said arrives, a dead one who was told says so.
    fn is_meant_to_stand(&self, holders: &[Holder], token: OwnerToken) -> bool {
        let told = if self.profile.is_heard { self.network.told_holder_behind(token) } else { None };
        told.is_none_or(|told| holders.iter().any(|holder| holder.token == told))
    }

    /// Nobody begins while the body of another one runs whose lock was broken, and that one may count on it; but for whoever was
    /// robbed and does not know it yet.
    pub(super) fn follows_nobody_at_work(&self, next: &Holder) {
        if self.network.robbed_at(&key(next.key), next.token).is_some() {
            return;
        }
        let counted_on = self.network.may_count_on(&key(next.key));
        let is_at_work =
            |other: &&Holder| other.excludes(next) && other.token != next.token && counted_on.contains(&other.token);
        let text = self
            .records()
            .holders
            .iter()
            .find(is_at_work)
            .map(|other| format!("{next} begins, and {other} is at work"));
        if let Some(text) = text {
            self.broken(Promise::Exclusion, text);
        }
    }

    /// A body was stopped, with nothing wrong but what was said of its lock.
    pub(super) fn unbroken(&self, client: usize, index: usize, token: OwnerToken) {
        let is_meant = self.records().to_break.contains(&token);
        if self.profile.is_prompt && self.profile.operators > 0 && !is_meant {
            self.broken(
                Promise::Unbroken,
                format!("{} loses {}, which nobody breaks", client_name(client), key(index)),
            );
        }
    }
}
