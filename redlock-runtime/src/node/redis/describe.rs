//! What a server is like, asked over the connection that serves the commands.

use super::answer::time_of;
use super::connections::Connections;
use super::info::Info;
use super::live_connection::LiveConnection;
use crate::error::NodeError;
use crate::node::report::{Capabilities, ClockOffset, NodeReport, Persistence};
use crate::protocol::wakeup::channel;
use crate::time::wait_until::wait_until;
use redis::{FromRedisValue, Value};
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// What the server with the address `label` is like. Its answers are waited for in `patience`, and then once more for
/// its wake-ups.
pub(super) async fn describe(label: &str, connections: &Connections, patience: Duration) -> NodeReport {
    let mut report = NodeReport::unknown(label);
    let live = match connections.live() {
        Ok(live) => live,
        Err(error) => return NodeReport { error: Some(error), ..report },
    };
    // First, so that it is under way meanwhile.
    connections.listen();
    match timeout(patience, answers(&live, connections)).await {
        Ok(Ok(answers)) => answers.describe(&mut report),
        Ok(Err(error)) => report.error = Some(error),
        Err(_) => report.error = Some(NodeError::TimedOut(patience)),
    }
    if report.round_trip.is_some() {
        report.error = live.abstains_for().map(NodeError::Abstains).or(report.error);
        report.capabilities.scripts = true;
        report.capabilities.resp3 = live.has_pushes();
        report.capabilities.wake_ups = wake_ups(connections, &live, patience, report.capabilities.wake_ups).await;
    }
    report
}

/// What time it is at the server, since 1970.
///
/// # Errors
/// When there is no connection, the server refuses, or it answers something else.
pub(super) async fn time(connections: &Connections) -> Result<Duration, NodeError> {
    let answer = connections.live()?.probe(&["TIME"]).await?;
    let parts: Option<[String; 2]> = redis::from_redis_value(answer).ok();
    let time = parts.and_then(|[seconds, micros]| time_of([&seconds, &micros]));
    time.ok_or_else(|| NodeError::Unintelligible("no time to TIME".into()))
}

/// Whether callers are woken. `publishes` is whether the user may wake others.
async fn wake_ups(
    connections: &Connections,
    live: &LiveConnection,
    patience: Duration,
    publishes: Option<bool>,
) -> Option<bool> {
    let is_known = || connections.is_listening() || live.is_refused();
    // What is not known in time is reported as unknown.
    let _ = timeout(patience, wait_until(&connections.environment.changed, is_known)).await;
    match (publishes, connections.is_listening(), live.is_refused()) {
        (Some(false), ..) | (_, _, true) => Some(false),
        (Some(true), true, _) => Some(true),
        _ => None,
    }
}

/// What the server has answered; `None` for what the user may not ask.
struct Answers {
    info: Option<Info>,
    fsync: Option<Box<str>>,
    save: Option<Box<str>>,
    time: Option<Duration>,
    publishes: bool,
    /// By our wall clock, since 1970.
    sent: Duration,
    round_trip: Duration,
}

/// Asks the server, all at once.
///
/// # Errors
/// When the connection breaks.
async fn answers(live: &LiveConnection, connections: &Connections) -> Result<Answers, NodeError> {
    let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = Instant::now();
    let time = live.probe(&["TIME"]);
    let info = live.probe(&["INFO"]);
    let [fsync, save] = ["appendfsync", "save"].map(|name| (name, live.probe(&["CONFIG", "GET", name])));
    // The message goes to this manager alone, and it is no wake-up, so that it is ignored.
    let publishing = live.probe(&["PUBLISH", &channel(&connections.environment.manager.to_string()), "check"]);
    let time: Option<[String; 2]> = permitted(time.await)?;
    Ok(Answers {
        time: time.and_then(|[seconds, micros]| time_of([&seconds, &micros])),
        sent,
        round_trip: begun.elapsed(),
        info: permitted(info.await)?.map(|text: String| Info::parse(&text)),
        fsync: setting(fsync.0, fsync.1.await)?,
        save: setting(save.0, save.1.await)?,
        publishes: permitted::<Value>(publishing.await)?.is_some(),
    })
}

/// The answer as a `T`, `None` when the server refused or answered something else.
///
/// # Errors
/// When there was no answer.
fn permitted<T: FromRedisValue>(answer: Result<Value, NodeError>) -> Result<Option<T>, NodeError> {
    match answer {
        Ok(value) => Ok(redis::from_redis_value(value).ok()),
        Err(NodeError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The value of one setting in an answer to `CONFIG GET`.
fn setting(name: &str, answer: Result<Value, NodeError>) -> Result<Option<Box<str>>, NodeError> {
    let settings: Option<HashMap<String, String>> = permitted(answer)?;
    Ok(settings.and_then(|mut settings| settings.remove(name)).map(Into::into))
}

impl Answers {
    /// Writes into `report` what the answers say.
    fn describe(self, report: &mut NodeReport) {
        report.round_trip = Some(self.round_trip);
        report.clock = self.time.map(|time| offset(time, self.sent, self.round_trip));
        let time = self.time.is_some();
        report.capabilities = Capabilities { time, wake_ups: Some(self.publishes), ..Capabilities::default() };
        let Some(info) = self.info else { return };
        report.version = info.field("redis_version").map(Into::into);
        report.run_id = info.field("run_id").map(Into::into);
        report.capabilities.identity = report.run_id.is_some();
        report.is_replica = info.field("role").map(|role| role != "master");
        report.error = (report.is_replica == Some(true)).then_some(NodeError::Replica);
        report.eviction = eviction(&info);
        report.persistence = persistence(&info, self.fsync, self.save.as_deref());
    }
}

/// The policy by which the server may remove locks; empty when it removes none, `None` when that is not known.
fn eviction(info: &Info) -> Option<Box<str>> {
    let policy = info.field("maxmemory_policy")?;
    Some(if info.number("maxmemory")? == 0 || policy == "noeviction" { "" } else { policy }.into())
}

/// What the server keeps over a crash, `None` when that is not known.
fn persistence(info: &Info, fsync: Option<Box<str>>, save: Option<&str>) -> Option<Persistence> {
    if info.number("aof_enabled")? == 1 {
        return Some(Persistence::AppendOnly { fsync });
    }
    Some(if save?.is_empty() { Persistence::None } else { Persistence::Snapshots })
}

/// How a `time` stands to the middle of a round trip, at some point of which it was read.
fn offset(time: Duration, sent: Duration, round_trip: Duration) -> ClockOffset {
    let middle = sent + round_trip / 2;
    ClockOffset { is_ahead: time > middle, offset: time.abs_diff(middle), uncertainty: round_trip / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evictions() {
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
    fn kinds_of_persistence() {
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
    fn offsets_are_counted_from_the_middle() {
        let ms = Duration::from_millis;
        let table = [(1005, true, 0), (1105, true, 100), (905, false, 100)];
        for (time, is_ahead, expected) in table {
            let offset = offset(ms(time), ms(1000), ms(10));
            assert_eq!((offset.offset, offset.uncertainty), (ms(expected), ms(5)));
            assert!(offset.is_ahead == is_ahead || expected == 0, "{offset}");
        }
    }
}
