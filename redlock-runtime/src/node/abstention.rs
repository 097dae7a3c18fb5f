//! Decides whether a node that came back abstains, and what its answers prove meanwhile.
//!
//! A server that was restarted may have forgotten locks that it had granted, and grants them again while their holders
//! go on. So its grants do not count before the leases that it may have forgotten have ended:
//!
//! 1. At each connection the server says who it is, and that is compared with the [`KnownServer`] at the same address.
//! 2. The node counts at once when the server is the same process as before; when both that one and the new one write
//!    each answer to disk before they give it; or when the manager trusts restarted servers ([`AfterRestart::Trust`]).
//!    A manager that meets a server for the first time trusts it, since it knows of nothing that can be forgotten.
//! 3. Otherwise the node abstains for as long as the longest lease that the manager has asked for, with the drift of
//!    the clocks. That is counted from the earliest moment at which the new process was running for certain, because it
//!    has forgotten nothing that was granted later.
//! 4. Meanwhile the node executes commands as ever: [`Abstention::worth`] turns what would prove a lease into an error.

use crate::error::NodeError;
use crate::node::server_identity::{Identity, KnownServer};
use crate::protocol::command::{Answer, Reply};
use crate::request::AfterRestart;
use crate::time::clock::Instant;
use std::time::Duration;

/// Servers count their uptime in whole seconds, from a start in whole seconds, so that it may be too long by this much.
/// With less, a node could count again while a lease still runs that it has forgotten.
const UPTIME_PRECISION: Duration = Duration::from_secs(1);

/// Until when the commands of one connection prove nothing, if so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abstention(Option<Instant>);

impl Abstention {
    pub(crate) const fn until(end: Option<Instant>) -> Self {
        Self(end)
    }

    /// Whether the connection was made while the node abstained: only then does it matter when a command was sent.
    pub(crate) const fn is_any(self) -> bool {
        self.0.is_some()
    }

    /// For how much longer than `now` the node abstains, if so.
    pub(crate) fn left(self, now: Instant) -> Option<Duration> {
        let left = self.0?.since(now);
        (!left.is_zero()).then_some(left)
    }

    /// What `answer` proves: nothing of a lease, when the node abstained at the time at which the command was `sent`.
    pub(crate) fn worth(self, answer: Answer, sent: Option<Instant>) -> Answer {
        match (answer, sent.and_then(|sent| self.left(sent))) {
            (Ok(Reply::Granted { .. } | Reply::Extended { .. } | Reply::Kept), Some(left)) => {
                Err(NodeError::Abstains(left))
            }
            (answer, _) => answer,
        }
    }
}

/// Until when a node abstains whose server says that it is `identity`, where `before` was before. `longest_lease` is
/// the longest that may have been granted, with the drift.
pub(super) fn abstains_until(
    before: &KnownServer,
    identity: &Identity,
    after_restart: AfterRestart,
    longest_lease: Duration,
    now: Instant,
) -> Option<Instant> {
    let is_same = before.run_id == identity.run_id && before.counts;
    let remembers = before.is_durable && identity.is_durable && before.counts;
    let restarted = if is_same || remembers || after_restart == AfterRestart::Trust {
        None
    } else {
        let left = longest_lease.saturating_sub(running_for(before, identity, now));
        (!left.is_zero()).then(|| now.after(left))
    };
    before.abstains_until.max(restarted)
}

/// For how long, at least, the process has been running that says that it is `identity`.
///
/// It counts by its wall clock, which is often set right after the start of its machine. But it was not running yet
/// when the connection to its predecessor broke. Where the server `before` did not count, its connections are no
/// evidence.
fn running_for(before: &KnownServer, identity: &Identity, now: Instant) -> Duration {
    if !before.counts {
        return Duration::ZERO;
    }
    let since_lost = before.lost_at.map_or(Duration::ZERO, |lost_at| now.since(lost_at));
    identity.uptime.saturating_sub(UPTIME_PRECISION).min(since_lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use AfterRestart::{Abstain, Trust};

    const LONGEST: Duration = Duration::from_millis(30_302);
    /// What is left of it after five seconds.
    const REST: Duration = Duration::from_millis(25_302);

    #[test]
    fn a_server_with_another_identity_abstains() {
        let now = Instant::from_origin(Duration::from_secs(1000));
        // Durable before and after, its uptime, how long ago the connection broke; how much longer it abstains.
        let table = [
            (Abstain, false, false, 0, 0, Some(LONGEST)),
            (Abstain, false, false, 1, 5, Some(LONGEST)),
            (Abstain, false, false, 6, 5, Some(REST)),
            (Abstain, false, false, 6, 20, Some(REST)),
            // Its clock was set after the start.
            (Abstain, false, false, 9999, 5, Some(REST)),
            (Abstain, false, false, 9999, 31, None),
            (Abstain, true, false, 0, 0, Some(LONGEST)),
            (Abstain, false, true, 0, 0, Some(LONGEST)),
            (Abstain, true, true, 0, 0, None),
            (Trust, false, false, 0, 0, None),
        ];
        for (rule, was_durable, is_durable, uptime, lost, expected) in table {
            let lost_at = Some(Instant::from_origin(Duration::from_secs(1000 - lost)));
            let before = KnownServer {
                run_id: "1".into(),
                is_durable: was_durable,
                counts: true,
                lost_at,
                abstains_until: None,
            };
            let identity = Identity { run_id: "2".into(), uptime: Duration::from_secs(uptime), is_durable };
            let left = abstains_until(&before, &identity, rule, LONGEST, now).map(|until| until.since(now));
            assert_eq!(left, expected, "{rule:?} {was_durable} {is_durable} {uptime} {lost}");
        }
    }

    #[test]
    fn what_proves_a_lease_is_an_error_meanwhile() {
        let at = |seconds| Some(Instant::from_origin(Duration::from_secs(seconds)));
        let abstention = Abstention::until(at(9));
        let abstains = Err(NodeError::Abstains(Duration::from_secs(2)));
        let table = [
            (Reply::Kept, at(7), abstains.clone()),
            (Reply::Extended { waiters: 0, number: None }, at(7), abstains.clone()),
            (Reply::Granted { smaller: false, number: None }, at(7), abstains),
            (Reply::Kept, at(9), Ok(Reply::Kept)),
            (Reply::Taken, at(7), Ok(Reply::Taken)),
            (Reply::Released, at(7), Ok(Reply::Released)),
        ];
        for (reply, sent, expected) in table {
            assert_eq!(abstention.worth(Ok(reply), sent), expected, "{reply:?} {sent:?}");
        }
    }
}
