//! Checks that a breaker grants the lock to no other call before its holder has stopped or can no longer count on it.

use super::Observer;
use crate::admin::BreakReport;
use crate::lock::OwnerToken;
use crate::simulation::actor::key;
use crate::simulation::records::{Holder, Promise};
use crate::simulation::telling::client_name;

impl Observer {
    /// Records that a process is about to break the lock of `token`.
    pub(in crate::simulation) fn breaks(&self, client: usize, index: usize, token: OwnerToken) {
        self.network
            .trace
            .line(|trace| format!("{} breaks {} of {}", client_name(client), key(index), trace.name(token)));
        self.records().to_break.insert(token);
    }

    /// Records the outcome of a break, or that the breaker has given up.
    pub(in crate::simulation) fn broke(&self, client: usize, report: Option<&BreakReport>) {
        // Not with `Debug`: the unique part of a token does not depend on the seed.
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

    /// Returns the placeholders of breakers, for holders that may still run or that were not heard of.
    pub(super) fn stand_ins(&self, holders: &[Holder]) -> Vec<OwnerToken> {
        let mut all = self.network.stand_ins();
        all.retain(|token| self.is_expected_to_remain(holders, *token));
        all
    }

    /// Returns `true` if the placeholder `token` is expected to remain, because its holder has not reported that it has
    /// stopped.
    ///
    /// If all messages arrive, a dead holder that was notified replies so, and its placeholder goes. A token that is
    /// not a placeholder is expected to remain as well.
    fn is_expected_to_remain(&self, holders: &[Holder], token: OwnerToken) -> bool {
        let told = if self.profile.is_heard { self.network.notified_holder_behind(token) } else { None };
        told.is_none_or(|told| holders.iter().any(|holder| holder.token == told))
    }

    /// Checks that no call begins while a body with a broken lock runs and may still count on it.
    ///
    /// Exempt is a call that was robbed and has not noticed yet.
    pub(super) fn check_no_broken_body_runs(&self, next: &Holder) {
        if self.network.robbed_at(&key(next.key), next.token).is_some() {
            return;
        }
        let counted_on = self.network.tokens_counting_on(&key(next.key));
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

    /// Checks a body that was stopped while only messages about its lock went wrong: somebody must have broken that
    /// lock.
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
