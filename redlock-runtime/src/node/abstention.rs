//! Decides if a node abstains, and what its answers prove while it does.
//!
//! A server that was restarted, or whose data was replaced, may have forgotten locks that it had granted. It grants them again while their
//! holders continue. Its grants are therefore ignored until the leases that it may have forgotten have ended:
//!
//! 1. Each connection reads the identity of the server and a marker in its data ([`Marker`](super::server_identity::Marker)), and compares
//!    both with the [`KnownServer`] at the same address. A connection whose server loses its data ends (`node::redis::verification`).
//! 2. The node votes at once in three cases:
//!    - The server is the same process as before, with the same data.
//!    - The old and the new process are configured to write each command to disk before they answer, and the data has the marker and the
//!      receipt of the last connection of this process. The data directory is then neither empty nor an older copy.
//!    - The manager trusts restarted servers ([`AfterRestart::Trust`]).
//! 3. Otherwise the node abstains for the longest lease that may have been granted there, plus the drift of the clocks. After a restart,
//!    this time starts at the earliest moment at which the new process was certainly running: the process has forgotten no later grant.
//!    After a promotion or a replacement, it starts now: the time of the last grant of the previous server is unknown.
//! 4. A server is *young* if the age of its process or of its data is below this time when the manager first connects to it: the manager
//!    does not know the earlier grants. A process that writes every command to disk can be young, too: its predecessor may not have done
//!    so. A young node abstains for the remaining time if a quorum of other nodes is older by the same measure or has not been reached yet.
//!    Otherwise it votes, so that a cold start of all nodes does not wait. Young nodes that started within [`SAME_START`] of each other
//!    have the same age. A node that restarts once after a cold start is therefore not trusted, unless it restarts within that time.
//! 5. An abstaining node executes commands as usual. [`worth`] turns the proof of a lease into an error, and an extension into
//!    [`Reply::Found`]. The latter is a vote only for a holder that can prove that no other token has held the lock there since.

use crate::error::NodeError;
use crate::node::server_identity::{Identity, KnownServer, MEASURES};
use crate::protocol::command::{Answer, Reply};
use crate::protocol::rules::{Rule, Rules};
use crate::request::AfterRestart;
use crate::time::clock::Instant;
use std::time::Duration;

/// Precision of the uptime: servers count it in whole seconds, from a start in whole seconds, so that it may be too long by this much. Too
/// small: a node could vote again during a lease that it has forgotten.
pub(super) const UPTIME_PRECISION: Duration = Duration::from_secs(1);

/// Servers that start within this time of each other have started together. Too small: after a cold start in which one server is slow,
/// that server abstains. Too large: a server that restarts without its data that soon after a cold start is trusted.
pub(super) const SAME_START: Duration = Duration::from_secs(10);

/// Policy for servers that may have forgotten data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caution {
    pub(crate) after_restart: AfterRestart,
    pub(crate) rules: Rules,
}

/// Times until which the commands of one connection prove nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abstention {
    /// The server may have forgotten leases until this time.
    pub(super) until: Option<Instant>,
    /// The server was young by these measures when the manager first connected to it, and stays young until these times.
    pub(super) young_until: [Option<Instant>; MEASURES],
}

impl Abstention {
    /// Returns `true` if the connection was made while the node abstained.
    pub(crate) const fn is_any(self) -> bool {
        matches!(self, Self { until: Some(_), .. } | Self { young_until: [Some(_), _] | [_, Some(_)], .. })
    }

    /// Returns `true` if the node may abstain after `now`: only then does it matter when a command was sent.
    pub(crate) fn is_any_after(self, now: Instant) -> bool {
        self.young_until.iter().chain([&self.until]).flatten().any(|until| now < *until)
    }

    /// Returns the remaining time of the abstention; `None` if the node votes. `older_quorums` returns the measures by which a quorum of
    /// nodes is older than this one.
    pub(super) fn left(self, now: Instant, older_quorums: impl FnOnce() -> [bool; MEASURES]) -> Option<Duration> {
        let left = |until: Option<Instant>| until.map(|until| until.since(now)).filter(|left| !left.is_zero());
        let young_for = self.young_until.map(left);
        if young_for == [None; MEASURES] {
            return left(self.until);
        }
        let outvoted_for =
            young_for.into_iter().zip(older_quorums()).filter_map(|(left, is_outvoted)| left.filter(|_| is_outvoted));
        left(self.until).into_iter().chain(outvoted_for).max()
    }
}

/// Removes the proof from `answer`, if the node abstained for `left` at the time at which its command was sent.
pub(crate) fn worth(answer: Answer, left: Option<Duration>) -> Answer {
    match (answer, left) {
        (Ok(Reply::Granted { .. } | Reply::Entered { .. } | Reply::Kept), Some(left)) => {
            Err(NodeError::RecentlyRestarted(left))
        }
        (Ok(Reply::Extended { waiters, .. }), Some(left)) => Ok(Reply::Found { waiters, left }),
        (answer, _) => answer,
    }
}

/// Returns the time until which a node abstains. Its server reports `identity`, and `before` was the previous server. `longest_lease` is
/// the longest lease that may have been granted, with the drift.
pub(super) fn abstains_until(
    before: &KnownServer,
    identity: &Identity,
    Caution { after_restart, rules }: Caution,
    longest_lease: Duration,
    now: Instant,
) -> Option<Instant> {
    let is_same = before.run_id == identity.run_id && before.counts && before.has_kept_data(identity, rules);
    let has_kept_data = is_same || before.has_surely_kept_data(identity, rules);
    let restarted = if has_kept_data || after_restart == AfterRestart::Trust {
        None
    } else {
        let left = longest_lease.saturating_sub(running_for(before, identity, rules, now));
        (!left.is_zero()).then(|| now.after(left))
    };
    before.abstains_until.max(restarted)
}

/// Returns the times until which a server is young at the first connection of the manager, by each measure.
pub(super) fn young_until(
    identity: &Identity,
    Caution { after_restart, rules }: Caution,
    longest_lease: Duration,
    now: Instant,
) -> [Option<Instant>; MEASURES] {
    let is_trusted = after_restart == AfterRestart::Trust || !rules.apply(Rule::YoungServersAbstain);
    if is_trusted || identity.is_durable && !rules.apply(Rule::NewcomersTrustNoSettings) {
        return [None; MEASURES];
    }
    identity.ages().map(|age| {
        let left = longest_lease.saturating_sub(age.saturating_sub(UPTIME_PRECISION));
        (!left.is_zero()).then(|| now.after(left))
    })
}

/// Returns the minimum time for which the server with this `identity` has been the only one at its address.
///
/// A restarted process has been alone for its uptime, which began after the connection to its predecessor broke. A process that started
/// earlier was not restarted but took the place of the other one, like a promoted replica. The time is then unknown. It is also unknown if
/// the data was replaced, or if the server `before` had no vote.
fn running_for(before: &KnownServer, identity: &Identity, rules: Rules, now: Instant) -> Duration {
    let since_lost = before.lost_at.map_or(Duration::ZERO, |lost_at| now.since(lost_at));
    let took_its_place = identity.uptime > since_lost + UPTIME_PRECISION || identity.data.previous.is_some();
    let was_restarted = !took_its_place || !rules.apply(Rule::PromotionsAreNoRestarts);
    if was_restarted && before.counts && before.run_id != identity.run_id {
        identity.uptime.saturating_sub(UPTIME_PRECISION).min(since_lost)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::server_identity::{DataSet, Marker};
    use crate::protocol::command::Number;
    use AfterRestart::{Abstain, Trust};

    const LONGEST: Duration = Duration::from_millis(30_302);
    /// The remaining lease after five seconds.
    const REST: Duration = Duration::from_millis(25_302);

    fn caution(after_restart: AfterRestart) -> Caution {
        Caution { after_restart, rules: Rules::default() }
    }

    fn identity(run_id: &str, uptime: u64, is_durable: bool, data: [&str; 2]) -> Identity {
        let [id, previous] = data.map(|id| (!id.is_empty()).then(|| id.into()));
        Identity {
            run_id: run_id.into(),
            uptime: Duration::from_secs(uptime),
            is_durable,
            data: DataSet { id, previous },
            marker: None,
        }
    }

    fn known(identity: Identity, counts: bool) -> KnownServer {
        KnownServer::new("", identity, counts, Instant::from_origin(Duration::ZERO))
    }

    #[test]
    fn server_with_new_identity_abstains() {
        let now = Instant::from_origin(Duration::from_secs(1000));
        // Durable before and after, its uptime, the time since the connection broke; the remaining abstention.
        let table = [
            (Abstain, false, false, 0, 0, Some(LONGEST)),
            (Abstain, false, false, 1, 5, Some(LONGEST)),
            (Abstain, false, false, 6, 5, Some(REST)),
            (Abstain, false, false, 6, 20, Some(REST)),
            (Abstain, false, false, 32, 40, None),
            // The process is older: another one has its address now, or its clock was set after the start.
            (Abstain, false, false, 7, 5, Some(LONGEST)),
            (Abstain, false, false, 9999, 31, Some(LONGEST)),
            (Abstain, true, false, 0, 0, Some(LONGEST)),
            (Abstain, false, true, 0, 0, Some(LONGEST)),
            // Without a proof that the data is the same: see `only_the_marker_proves_that_data_was_kept`.
            (Abstain, true, true, 0, 0, Some(LONGEST)),
            (Trust, false, false, 0, 0, None),
        ];
        for (rule, was_durable, is_durable, uptime, lost, expected) in table {
            let lost_at = Some(Instant::from_origin(Duration::from_secs(1000 - lost)));
            let before = KnownServer { lost_at, ..known(identity("1", 0, was_durable, ["a", ""]), true) };
            let identity = identity("2", uptime, is_durable, ["b", ""]);
            let left = abstains_until(&before, &identity, caution(rule), LONGEST, now).map(|until| until.since(now));
            assert_eq!(left, expected, "{rule:?} {was_durable} {is_durable} {uptime} {lost}");
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it stands in an identity")]
    fn marker(id: &str, receipt: u64, follows: Option<u64>) -> Option<Marker> {
        Some(Marker { id: id.into(), age: None, receipt, follows })
    }

    #[test]
    fn only_the_marker_proves_that_data_was_kept() {
        let now = Instant::from_origin(Duration::from_secs(1000));
        // The process, `true` for durable settings, its marker. The previous process was the first one, with the marker `m` and the receipt
        // 5.
        let table = [
            ("restarted with its data", "2", true, marker("m", 6, Some(5)), None),
            ("restarted empty", "2", true, marker("n", 1, None), Some(LONGEST)),
            ("restarted on an old copy", "2", true, marker("m", 5, Some(4)), Some(LONGEST)),
            ("restarted on an old copy that has served others", "2", true, marker("m", 9, None), Some(LONGEST)),
            ("the marker cannot be read", "2", true, None, Some(LONGEST)),
            ("restarted without an append-only file", "2", false, marker("m", 6, Some(5)), Some(LONGEST)),
            ("the same process", "1", true, marker("m", 6, Some(5)), None),
            ("the same process, not durable", "1", false, marker("m", 6, Some(5)), None),
            ("the same process, whose marker cannot be read any more", "1", true, None, None),
            ("flushed", "1", true, marker("n", 1, None), Some(LONGEST)),
        ];
        for (name, run_id, is_durable, marker_now, expected) in table {
            let before = Identity { marker: marker("m", 5, None), ..identity("1", 0, true, ["a", ""]) };
            let identity = Identity { marker: marker_now, ..identity(run_id, 0, is_durable, ["a", ""]) };
            let until = abstains_until(&known(before, true), &identity, caution(Abstain), LONGEST, now);
            assert_eq!(until.map(|until| until.since(now)), expected, "{name}");
        }
    }

    #[test]
    fn server_with_replaced_data_or_promoted_replica_abstains_for_max_lease() {
        let now = Instant::from_origin(Duration::from_secs(1000));
        // `true` if the previous server had a vote, the process, its uptime, its data.
        let table = [
            ("nothing has happened", true, "1", 20, ["a", ""], None),
            ("it has got a replica", true, "1", 20, ["b", ""], None),
            ("it has the data of another server", true, "1", 20, ["c", "b"], Some(LONGEST)),
            ("a replica in its place", true, "2", 9999, ["c", "a"], Some(LONGEST)),
            ("a replica that was started lately", true, "2", 6, ["c", "a"], Some(LONGEST)),
            ("a replica under our eyes", false, "1", 9999, ["c", "a"], Some(LONGEST)),
        ];
        for (name, counts, run_id, uptime, data, expected) in table {
            let lost_at = Some(Instant::from_origin(Duration::from_secs(980)));
            let before = KnownServer { lost_at, ..known(identity("1", 0, false, ["a", ""]), counts) };
            let identity = identity(run_id, uptime, false, data);
            let left = abstains_until(&before, &identity, caution(Abstain), LONGEST, now).map(|until| until.since(now));
            assert_eq!(left, expected, "{name}");
        }
    }

    #[test]
    fn server_is_young_for_the_rest_of_the_max_lease() {
        let now = Instant::from_origin(Duration::from_secs(1000));
        let table = [
            (Abstain, false, 0, Some(LONGEST)),
            (Abstain, false, 6, Some(REST)),
            (Abstain, false, 32, None),
            (Abstain, true, 0, Some(LONGEST)),
            (Trust, false, 0, None),
        ];
        for (rule, is_durable, uptime, expected) in table {
            let identity = identity("1", uptime, is_durable, ["a", ""]);
            let left = young_until(&identity, caution(rule), LONGEST, now);
            assert_eq!(left.map(|until| Some(until?.since(now))), [expected; 2], "{rule:?} {is_durable} {uptime}");
        }
    }

    #[test]
    fn remaining_abstention_depends_on_older_quorums() {
        let at = |seconds: u64| Instant::from_origin(Duration::from_secs(seconds));
        let second = |seconds: u64| Some(Duration::from_secs(seconds));
        // End of the certain abstention, end as a young server, `true` if older nodes are a quorum.
        let table = [
            (None, None, true, None),
            (Some(9), None, false, second(4)),
            (Some(5), None, false, None),
            (None, Some(9), true, second(4)),
            (None, Some(9), false, None),
            (Some(7), Some(9), true, second(4)),
            (Some(7), Some(9), false, second(2)),
        ];
        for (until, young_until, older_suffice, expected) in table {
            for measure in 0..MEASURES {
                let mut abstention = Abstention { until: until.map(at), ..Abstention::default() };
                abstention.young_until[measure] = young_until.map(at);
                let older_quorums = || std::array::from_fn(|other| other == measure && older_suffice);
                assert_eq!(abstention.left(at(5), older_quorums), expected, "{abstention:?} {expected:?}");
            }
        }
    }

    #[test]
    fn lease_proof_is_an_error_during_abstention() {
        let left = Duration::from_secs(2);
        let abstains = Err(NodeError::RecentlyRestarted(left));
        let extended = Reply::Extended { waiters: 3, number: Some(Number::Accepted(7)) };
        let table = [
            (Reply::Kept, Some(left), abstains.clone()),
            (Reply::Granted { smaller: false, number: None }, Some(left), abstains),
            // The number is not used: the register may have been lost.
            (extended.clone(), Some(left), Ok(Reply::Found { waiters: 3, left })),
            (extended.clone(), None, Ok(extended)),
            (Reply::Kept, None, Ok(Reply::Kept)),
            (Reply::Taken, Some(left), Ok(Reply::Taken)),
            (Reply::Released, Some(left), Ok(Reply::Released)),
        ];
        for (reply, left, expected) in table {
            assert_eq!(worth(Ok(reply.clone()), left), expected, "{reply:?} {left:?}");
        }
    }
}
