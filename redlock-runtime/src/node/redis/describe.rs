//! Report on a server, from queries over the connection for commands.

use super::answer::time_of;
use super::connections::Connections;
use super::info::Info;
use super::live_connection::LiveConnection;
use super::needed::Permissions;
use super::permissions;
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::report::{Capabilities, ClockOffset, NodeReport, Persistence, Purpose, Replication};
use crate::text::excerpt;
use crate::time::wait_until::wait_until;
use redis::{FromRedisValue, Value};
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// Round trip above which the measurement is repeated, because it may have hit a busy moment. Too small: a report takes three round trips
/// on an ordinary network. Too large: a pause of the process looks like a long distance.
const SLOW: Duration = Duration::from_millis(5);

/// Maximum number of repeated measurements. Too small: a busy moment looks like a long distance. Too large: the report on a distant node
/// takes longer.
const MEASUREMENTS: usize = 2;

/// Returns the report on the server with the address `label`, and its refusals for the lock `key`. Waits up to `patience` for the replies,
/// once more for the wake-ups, and for each repeated measurement.
pub(super) async fn describe(label: &str, connections: &Connections, key: &LockKey, patience: Duration) -> NodeReport {
    let mut report = NodeReport { trial_name: key.name().into(), ..NodeReport::unknown(label) };
    let live = match connections.live() {
        Ok(live) => live,
        Err(error) => {
            let is_replica = (error == NodeError::Replica).then_some(true);
            return NodeReport { error: Some(error), is_replica, ..report };
        }
    };
    // First, so that the subscription runs in parallel.
    connections.listen();
    match timeout(patience, answers(&live, key)).await {
        Ok(Ok(answers)) => answers.measured_again(&live, patience).await.describe(&mut report),
        Ok(Err(error)) => report.error = Some(error),
        Err(_) => report.error = Some(NodeError::TimedOut(patience)),
    }
    if report.round_trip.is_some() {
        report.error = report.error.or(live.abstains_for().map(NodeError::RecentlyRestarted));
        report.other_settings = timeout(patience * 2, live.comparisons.next()).await.unwrap_or_default();
        report.pattern_subscribers = live.pattern_subscribers();
        report.capabilities.scripts = true;
        report.capabilities.stores_scripts = live.stores_scripts();
        report.capabilities.resp3 = live.has_pushes();
        let publishes = !report.refusals.iter().any(|refusal| refusal.purpose == Purpose::WakeUps);
        report.capabilities.pub_sub = wake_ups(connections, &live, patience, publishes).await;
    }
    report
}

/// Returns the time of the server, since 1970.
///
/// # Errors
/// If the connection is missing, the server refuses, or its reply has another format.
pub(super) async fn time(connections: &Connections) -> Result<Duration, NodeError> {
    let answer = connections.live()?.probe(&["TIME"]).await?;
    let parts: Option<[String; 2]> = redis::from_redis_value(answer).ok();
    let time = parts.and_then(|[seconds, micros]| time_of([&seconds, &micros]));
    time.ok_or_else(|| NodeError::UnexpectedReply("no time to TIME".into()))
}

/// Returns `true` if callers receive wake-ups. `publishes` is `true` if the user may notify others.
async fn wake_ups(
    connections: &Connections,
    live: &LiveConnection,
    patience: Duration,
    publishes: bool,
) -> Option<bool> {
    let is_known = || connections.is_listening() || live.is_refused();
    // A result that does not arrive in time is reported as unknown.
    let _ = timeout(patience, wait_until(&connections.environment.changed, is_known)).await;
    match (publishes, connections.is_listening(), live.is_refused()) {
        (false, ..) | (_, _, true) => Some(false),
        (true, true, _) => Some(true),
        _ => None,
    }
}

/// The replies of the server; `None` for a query that the user may not send.
struct Answers {
    info: Option<Info>,
    fsync: Option<Box<str>>,
    save: Option<Box<str>>,
    min_replicas_to_write: Option<Box<str>>,
    permissions: Permissions,
    measured: Measured,
}

/// One round trip, and the time of the server in its reply.
struct Measured {
    time: Option<Duration>,
    /// By our wall clock, since 1970.
    sent: Duration,
    round_trip: Duration,
}

/// Queries the server, all at once.
///
/// # Errors
/// If the connection breaks.
async fn answers(live: &LiveConnection, key: &LockKey) -> Result<Answers, NodeError> {
    let measured = measure(live);
    let info = live.probe(&["INFO"]);
    let [fsync, save, least] =
        ["appendfsync", "save", "min-replicas-to-write"].map(|name| (name, live.probe(&["CONFIG", "GET", name])));
    let permissions = permissions::ask(live, key, &live.own_channel());
    let measured = measured.await?;
    let info = permitted(info.await)?.map(|text: String| Info::parse(&text));
    let (fsync, save) = (setting(fsync.0, fsync.1.await)?, setting(save.0, save.1.await)?);
    let (min_replicas_to_write, permissions) = (setting(least.0, least.1.await)?, permissions.await?);
    live.record_permissions(&permissions.refusals);
    Ok(Answers { info, fsync, save, min_replicas_to_write, permissions, measured })
}

/// Measures a round trip, which starts before this returns.
fn measure(live: &LiveConnection) -> impl Future<Output = Result<Measured, NodeError>> + use<> {
    let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = Instant::now();
    let time = live.probe(&["TIME"]);
    async move {
        let time: Option<[String; 2]> = permitted(time.await)?;
        let time = time.and_then(|[seconds, micros]| time_of([&seconds, &micros]));
        Ok(Measured { time, sent, round_trip: begun.elapsed() })
    }
}

/// Returns the reply as a `T`, `None` if the server refused or the reply has another format.
///
/// # Errors
/// If the reply is missing.
fn permitted<T: FromRedisValue>(answer: Result<Value, NodeError>) -> Result<Option<T>, NodeError> {
    match answer {
        Ok(value) => Ok(redis::from_redis_value(value).ok()),
        Err(NodeError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the value of one setting in a reply to `CONFIG GET`.
fn setting(name: &str, answer: Result<Value, NodeError>) -> Result<Option<Box<str>>, NodeError> {
    let settings: Option<HashMap<String, String>> = permitted(answer)?;
    Ok(settings.and_then(|mut settings| settings.remove(name)).map(Into::into))
}

impl Answers {
    /// Repeats a slow measurement, and keeps the shortest round trip.
    async fn measured_again(mut self, live: &LiveConnection, patience: Duration) -> Self {
        for _ in 0..MEASUREMENTS {
            if self.measured.round_trip > SLOW
                && let Ok(Ok(again)) = timeout(patience, measure(live)).await
                && again.round_trip < self.measured.round_trip
            {
                self.measured = again;
            }
        }
        self
    }

    /// Writes the replies into `report`.
    fn describe(self, report: &mut NodeReport) {
        let Measured { time, sent, round_trip } = self.measured;
        report.round_trip = Some(round_trip);
        report.clock = time.map(|time| offset(time, sent, round_trip));
        report.capabilities = Capabilities { time: time.is_some(), ..Capabilities::default() };
        report.refusals = self.permissions.refusals;
        report.may_use_name = self.permissions.may_use_name;
        let Some(info) = self.info else { return };
        report.version = info.product().map(|version| excerpt(version).into());
        report.run_id = info.field("run_id").map(|id| excerpt(id).into());
        report.uptime = info.number("uptime_in_seconds").map(Duration::from_secs);
        report.capabilities.identity = report.run_id.is_some();
        report.is_replica = info.field("role").map(|role| role != "master");
        report.replication = replication(&info, self.min_replicas_to_write.as_deref());
        report.is_cluster_member = Some(info.is_cluster_member());
        report.eviction = eviction(&info);
        report.persistence = persistence(&info, self.fsync, self.save.as_deref());
        report.error = (report.is_replica == Some(true)).then_some(NodeError::Replica);
    }
}

/// Returns the replication of the server, `None` if it is unknown.
fn replication(info: &Info, min_replicas_to_write: Option<&str>) -> Option<Replication> {
    let min_replicas_to_write = min_replicas_to_write.and_then(|least| least.parse().ok());
    Some(Replication { replicas: info.number("connected_slaves")?, min_replicas_to_write })
}

/// Returns the policy by which the server may evict locks; empty if it evicts none, `None` if it is unknown.
fn eviction(info: &Info) -> Option<Box<str>> {
    let policy = info.field("maxmemory_policy")?;
    let removes = info.number("maxmemory")? > 0 && policy != "noeviction";
    Some(if removes { excerpt(policy).into() } else { "".into() })
}

/// Returns the data that survive a crash of the server, `None` if this is unknown.
fn persistence(info: &Info, fsync: Option<Box<str>>, save: Option<&str>) -> Option<Persistence> {
    if info.number("aof_enabled")? == 1 {
        return Some(Persistence::AppendOnly { fsync });
    }
    Some(if save?.is_empty() { Persistence::None } else { Persistence::Snapshots })
}

/// Returns the offset of `time` from the middle of the round trip in which it was read.
fn offset(time: Duration, sent: Duration, round_trip: Duration) -> ClockOffset {
    let middle = sent + round_trip / 2;
    ClockOffset { is_ahead: time > middle, offset: time.abs_diff(middle), uncertainty: round_trip / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_policy_is_reported_only_with_a_memory_limit() {
        let table = [
            ("maxmemory:0\nmaxmemory_policy:allkeys-lru", Some("")),
            ("maxmemory:1\nmaxmemory_policy:noeviction", Some("")),
            ("maxmemory:1\nmaxmemory_policy:volatile-ttl", Some("volatile-ttl")),
            ("maxmemory_policy:allkeys-lru", None),
            ("", None),
        ];
        for (info, expected) in table {
            assert_eq!(eviction(&Info::parse(info)).as_deref(), expected, "{info}");
        }
    }

    #[test]
    fn persistence_is_derived_from_info_and_config() {
        let fsync = || Some("everysec".into());
        let table = [
            ("aof_enabled:1", Some("3600 1"), Some(Persistence::AppendOnly { fsync: fsync() })),
            ("aof_enabled:0", Some("3600 1"), Some(Persistence::Snapshots)),
            ("aof_enabled:0", Some(""), Some(Persistence::None)),
            ("aof_enabled:0", None, None),
            ("", Some(""), None),
        ];
        for (info, save, expected) in table {
            assert_eq!(persistence(&Info::parse(info), fsync(), save), expected, "{info} {save:?}");
        }
    }

    #[test]
    fn clock_offset_is_measured_from_the_round_trip_midpoint() {
        let ms = Duration::from_millis;
        let table = [(1005, true, 0), (1105, true, 100), (905, false, 100)];
        for (time, is_ahead, expected) in table {
            let offset = offset(ms(time), ms(1000), ms(10));
            assert_eq!((offset.offset, offset.uncertainty), (ms(expected), ms(5)));
            assert!(offset.is_ahead == is_ahead || expected == 0, "{offset}");
        }
    }
}
