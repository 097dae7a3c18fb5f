//! Checks that a lock has one holder at a time, and that no holder exceeds its limits.

use super::{Observer, SLACK, slack};
use crate::lock::OwnerToken;
use crate::simulation::actor::key;
use crate::simulation::records::{Holder, Promise, Proof, Records, Window};
use crate::simulation::telling::client_name;
use crate::simulation::tree::names;
use crate::simulation::workload::Call;
use crate::time::clock::Instant;
use crate::{LockError, LossCause, NodeError};
use std::time::Duration;

impl Observer {
    /// Checks that no two valid holders exclude each other. Holders that were robbed are exempt.
    pub(super) fn exclusion(&self) {
        let (records, now) = (self.records(), self.network.now());
        if records.holders.len() < 2 {
            return;
        }
        let valid: Vec<_> = records.holders.iter().filter(|holder| holder.is_valid(now)).collect();
        let is_robbed = |holder: &Holder| {
            let is_unaware = holder.unaware_until.is_some_and(|until| now < until);
            is_unaware || names(holder.key).any(|name| self.network.robbed_at(&key(name), holder.token).is_some())
        };
        let twice = valid.iter().enumerate().find_map(|(at, one)| {
            let mut others = valid[at + 1..].iter().filter(|other| other.excludes(one));
            let other = others.find(|other| !is_robbed(one) && !is_robbed(other))?;
            Some(format!("{one} and {other}"))
        });
        drop(records);
        if let Some(twice) = twice {
            self.broken(Promise::Exclusion, twice);
        }
    }

    /// Checks that each valid holder owns enough nodes, or was robbed a short time ago.
    pub(super) fn owned(&self) {
        if self.profile.faults.lose_data() {
            return;
        }
        let (records, now) = (self.records(), self.network.now());
        let mut broken = None;
        for holder in records.holders.iter().filter(|holder| holder.client.is_some() && holder.is_valid(now)) {
            let mut all = names(holder.key).map(key);
            let Some(lost) = all.find(|name| !self.network.excludes(name, holder.token)) else { continue };
            let robbed_at = self.network.robbed_at(&lost, holder.token);
            // A robbed token may win a vote back before its lock is broken. The later of the two times counts.
            match robbed_at.max(self.network.broken_at(holder.token).map(|(at, _)| at)) {
                None => broken = Some((Promise::Owned, format!("{holder} has too few nodes"))),
                Some(at) if self.notices_loss_by(&records, holder, at) < now => {
                    broken = Some((Promise::LossKnown, format!("{holder} does not know that it is lost")));
                }
                _ => {}
            }
        }
        drop(records);
        if let Some((promise, text)) = broken {
            self.broken(promise, text);
        }
    }

    /// Returns the time at which a robbed holder must have noticed its loss.
    ///
    /// At the latest, the lease ends. If renewals are not disturbed, the next renewal shows the loss.
    fn notices_loss_by(&self, records: &Records, holder: &Holder, robbed_at: Instant) -> Instant {
        // A holder that entered later has confirmed its votes at that time.
        let from = robbed_at.max(holder.since);
        let by_itself = from.after(holder.ttl + slack(holder.ttl));
        // If there is one server, the renewal of any lock of the process shows a clock step. With several servers, that
        // lock may be held at others.
        let tells_steps = self.profile.faults.thefts == 0 && self.network.world().servers.len() == 1;
        let tells = |other: &&Holder| {
            let is_itself = other.id == holder.id;
            // Any answer of the server shows a clock step, even to a lock that is lost by that step.
            let was_held = other.since <= robbed_at && other.lapsed_at.is_none_or(|at| robbed_at < at);
            let is_sibling = tells_steps && other.client == holder.client && was_held;
            other.renews && (is_itself || is_sibling)
        };
        let told_at = self.network.broken_at(holder.token).and_then(|(_, told_at)| told_at);
        if let Some(told_at) = told_at.filter(|_| self.profile.is_prompt) {
            return by_itself.min(told_at.max(holder.since).after(self.asking()));
        }
        let soonest = records.holders.iter().filter(tells).map(|other| other.ttl).min();
        match soonest.filter(|_| self.profile.is_prompt) {
            None => by_itself,
            Some(ttl) => by_itself.min(from.after(self.renewal(ttl))),
        }
    }

    /// Checks the reason for which a body was stopped.
    pub(in crate::simulation) fn stopped(&self, client: usize, call: &Call, token: OwnerToken, error: &LockError) {
        self.network.trace.line(|trace| {
            let text = error.to_string();
            // Tokens differ from run to run, but their names in the trace do not.
            let text = match error {
                LockError::Lost { cause: LossCause::Revoked { by, .. }, .. } => {
                    text.replace(by.as_str(), &trace.name(**by))
                }
                _ => text,
            };
            format!("{} is stopped: {text}", client_name(client))
        });
        let LockError::Lost { cause, .. } = error else { return };
        if *cause == LossCause::Released {
            // No body releases its guard here, so another guard with the same token has released the share.
            self.broken(Promise::Kept, format!("{} loses its share with that of another", client_name(client)));
        }
        let is_over = matches!(cause, LossCause::MaxHold | LossCause::Released) || !call.hold.renew;
        if is_over || self.network.is_crashed(client) {
            return;
        }
        if self.profile.keeps_all || self.is_kept(client, token) {
            self.broken(Promise::Kept, format!("{} loses {} to a minority", client_name(client), key(call.key)));
        }
        self.unbroken(client, call.key, token);
        let is_robbed = self.network.robbed_at(&key(call.key), token).is_some();
        let is_named = match cause {
            LossCause::NotRenewed { causes } => causes.iter().any(|cause| *cause.error() == NodeError::Held),
            cause => *cause == LossCause::Taken,
        };
        if self.profile.is_prompt && self.profile.faults.steps == 0 && is_robbed && !is_named {
            self.broken(Promise::LossKnown, format!("{} does not know why: {error}", client_name(client)));
        }
    }

    /// Returns `true` if a quorum of nodes has had `token` for at least as long as a renewal takes.
    ///
    /// The promise for a permit is weaker: its extension is valid only if the answer comes before the lease of that
    /// node ends. A node whose answers take longer than the renewal interval misses one of the renewals. Its next
    /// answer may be too late.
    fn is_kept(&self, client: usize, token: OwnerToken) -> bool {
        let (records, now) = (self.records(), self.network.now());
        let holder = records.holders.iter().find(|holder| holder.client == Some(client) && holder.token == token);
        holder.is_some_and(|holder| {
            let answers_in_time = self.profile.delays.round_trip() <= holder.ttl / 3;
            let since = holder.kept_since.filter(|_| answers_in_time || holder.permits.is_none());
            since.is_some_and(|since| since.after(self.renewal(holder.ttl)) < now)
        })
    }

    /// Returns the longest time that a renewal may take: a third of the ttl, the answers, and their evaluation. The
    /// evaluation follows within twice the time of the answers.
    fn renewal(&self, ttl: Duration) -> Duration {
        ttl / 3 + slack(ttl) + self.profile.delays.round_trip() * 2
    }

    /// Returns the longest time from the hand-over of a node to a robbed holder until it has asked the other nodes.
    fn confirming(&self) -> Duration {
        self.profile.delays.round_trip() * 2 + SLACK * 2
    }

    /// Returns the longest time from a notification to the answer of the request that it causes, if another request
    /// must be answered first.
    fn asking(&self) -> Duration {
        self.profile.delays.round_trip() * 4 + SLACK * 2
    }

    /// Checks that bodies end with their leases, and that no lapsed holder becomes valid again.
    pub(super) fn bodies_stop(&self) {
        let now = self.network.now();
        let (mut late, mut again) = (None, None);
        for holder in &mut self.records().holders {
            let Some(client) = holder.client else { continue };
            let awake_at = self.network.paused_until(client).after(SLACK);
            if holder.ends_by.is_some_and(|end| end.max(awake_at) < now)
                && (holder.stops_within.is_some() || holder.is_valid(now))
            {
                late = Some(format!("{holder} has it for longer than it wanted at the most"));
            }
            let faults = self.profile.faults;
            if faults.are_minority_only() || faults.are_fail_overs() {
                let is_kept = self.network.is_kept(&key(holder.key), holder.token, client);
                holder.kept_since = holder.kept_since.filter(|_| is_kept).or(is_kept.then_some(now));
            }
            if holder.is_valid(now) {
                holder.lapsed_at = None;
                if let Some(succeeded_at) = holder.succeeded_at
                    && self.network.robbed_at(&key(holder.key), holder.token).is_none()
                {
                    // A holder that was handed a node asks the other nodes, and notices the loss.
                    let handed_at = self.network.handed_at(holder.token).filter(|at| succeeded_at <= *at);
                    if self.network.was_robbed_since_asked(holder.token) {
                        // The holder was robbed after its voters had confirmed the lock, and before it won a missing
                        // vote back. No answer could show the loss, and the next renewal finds a quorum.
                        holder.succeeded_at = None;
                    } else if handed_at.is_none_or(|at| at.after(self.confirming()) < now) {
                        again = Some(format!("{holder} has it once more, after somebody else"));
                    }
                }
                continue;
            }
            let lapsed_at = *holder.lapsed_at.get_or_insert(now);
            let since = now.since(lapsed_at.max(self.network.paused_until(client)));
            let Some(tolerance) = holder.stops_within else { continue };
            if since > tolerance {
                late = Some(format!("{holder} is in its body {since:?} after its lease has run out"));
            }
        }
        if let Some(text) = late {
            self.broken(Promise::BodyStops, text);
        }
        if let Some(text) = again {
            self.broken(Promise::Continuous, text);
        }
    }

    /// Checks that no call enters while a `min_hold` keeps the key taken.
    pub(super) fn windows(&self, next: &Holder) {
        let now = self.network.now();
        let mut records = self.records();
        records.windows.retain(|window| now < window.until.after(self.patient));
        let is_kept = records.windows.iter().any(|window| {
            window.is_promised && next.excludes_call_for(window.key, window.is_shared) && now < window.until
        });
        drop(records);
        if is_kept {
            self.broken(Promise::MinHold, format!("{next} comes before the one before wanted to leave"));
        }
    }

    /// Records the end of a body, and the time for which its `min_hold` keeps the key taken.
    pub(super) fn left(&self, holder: &Holder) {
        let now = self.network.now();
        // The key may stay taken until the time is certainly over. It must stay taken until that time, less some slack.
        let may_stand = |until: &Instant| now < until.after(slack(holder.ttl) * 2);
        let (Some(until), Proof::Guard(guard)) = (holder.keeps_until.filter(may_stand), &holder.proof) else { return };
        // If the lease has almost ended, the release comes too late to keep the key.
        let is_in_time =
            now < until && guard.upgrade().is_some_and(|guard| guard.remaining() > self.profile.delays.round_trip());
        let is_promised = self.profile.faults.are_none() && is_in_time;
        let Holder { key, token, .. } = *holder;
        let is_shared = holder.is_shared();
        let mut records = self.records();
        records.windows.push(Window { key, token, is_shared, until, is_promised });
        records.kept_for.insert(token, until.after(slack(holder.ttl) * 2).since(now));
    }
}
