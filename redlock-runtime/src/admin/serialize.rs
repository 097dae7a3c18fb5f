//! `serde::Serialize` for keys, tokens and everything that the administrative calls return.
//!
//! - Fields have the names of the struct fields. Results of methods, such as [`Inspection::holder`], are fields as well.
//! - Durations are integers: milliseconds in fields that end in `_ms`, microseconds in fields that end in `_us`. Times are milliseconds
//!   since 1970 in fields that end in `_at_ms`.
//! - Errors are texts. Fencing numbers are texts, because JavaScript rounds numbers of this size.

use super::{
    BreakOutcome, BreakReport, Capabilities, CheckReport, ClockOffset, ClusterMember, Histogram, Holder, Inspection,
    LingerStats, LocalLock, LockList, LockSite, NodeBreak, NodeInspection, NodeReport, NodeStats, Owner, Persistence,
    PlaceholderOwner, Refusal, ReleaseStats, Replication, SiteStats, Stats,
};
use crate::error::{NodeError, NodeFailure, SourceLine};
use crate::lock::{LockKey, LockPath, Mode, OwnerToken};
use serde_core::ser::SerializeStruct as _;
use serde_core::{Serialize, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Implements `Serialize` for structs: `Type { fields that are written as they are } |self| { "name": value }`.
macro_rules! serialize {
    ($($type:ident { $($field:ident),* } |$this:ident| { $($name:literal: $value:expr),* $(,)? })*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                let names: &[&str] = &[$(stringify!($field),)* $($name),*];
                let mut fields = serializer.serialize_struct(stringify!($type), names.len())?;
                $(fields.serialize_field(stringify!($field), &$this.$field)?;)*
                $(fields.serialize_field($name, &$value)?;)*
                fields.end()
            }
        }
    )*};
}

/// Implements `Serialize` by `Display`.
macro_rules! serialize_text {
    ($($type:ident),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

/// Implements `Serialize` by `as_str`.
macro_rules! serialize_str {
    ($($type:ident),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )*};
}

serialize_str!(LockKey, LockPath, OwnerToken);
serialize_text!(NodeError, SourceLine);

serialize! {
    BreakReport { key, holder, by, reason, nodes, needed, holder_notified, holder_stopped, placeholder } |report| {
        "is_broken": report.is_broken(),
        "has_quorum": report.has_quorum(),
    }
    NodeBreak { node } |node| {
        "outcome": word(&node.outcome),
        "error": match &node.outcome {
            BreakOutcome::Failed(error) => Some(error),
            _ => None,
        },
    }
    PlaceholderOwner { token } |owner| { "remaining_ms": millis(owner.remaining) }
    Inspection { key, needed, nodes } |inspection| {
        "holder": inspection.holder(),
        "remaining_ms": inspection.remaining().map(millis),
        "readers": inspection.readers(),
        "waiters": inspection.waiters(),
        "fence": inspection.fence().map(Text),
    }
    NodeInspection { node, error, holder, waiters, waiter_count, client_list_error } |node| {
        "remaining_ms": node.remaining.map(millis),
        "fence": node.fence.map(Text),
    }
    Owner { token, mode, is_descendant, label, address, is_connected } |owner| {
        "created_at_ms": since_1970(owner.created_at),
        "age_ms": millis(owner.age()),
    }
    LockList { keys, is_complete, failures, needed } |list| { "has_quorum": list.has_quorum() }
    NodeFailure { node, error } |failure| {}
    CheckReport { nodes, needed } |report| {
        "node_timeout_ms": millis(report.node_timeout),
        "warnings": report.warnings(),
    }
    NodeReport {
        node, error, version, run_id, is_replica, replication, is_cluster_member, eviction, persistence, clock, capabilities,
        refusals, members
    } |node| {
        "round_trip_us": node.round_trip.map(micros),
        "text": Text(node),
    }
    ClusterMember { report, slots, replicas } |member| {}
    ClockOffset { is_ahead } |clock| {
        "offset_us": micros(clock.offset),
        "uncertainty_us": micros(clock.uncertainty),
    }
    Capabilities { scripts, stores_scripts, resp3, pub_sub, time, identity, locks, fencing } |capabilities| {}
    Refusal { command, answer } |refusal| {}
    Replication { replicas, min_replicas_to_write } |replication| {}
    LocalLock { key, keys, mode, token, site } |lock| {
        "held_for_ms": millis(lock.held_for),
        "remaining_ms": millis(lock.remaining),
    }
    Stats { sites, nodes, releases, linger } |stats| {}
    LockSite { template, module, line } |site| {}
    SiteStats {
        site, acquired, contended, timed_out, no_quorum, refused, cancelled, lost, held_now, waiting_now, wait, hold
    } |stats| {}
    NodeStats { node, is_up, commands, errors, reconnections, round_trip } |stats| {}
    ReleaseStats { not_owner, retried, abandoned, expired } |stats| {}
    LingerStats { started, reused, reclaimed, expired } |stats| {}
    Histogram {} |histogram| {
        "count": histogram.count(),
        "sum_us": micros(histogram.sum()),
        "buckets": histogram.buckets().filter(|(_, count)| *count > 0).map(Bucket).collect::<Vec<_>>(),
    }
    Bucket {} |bucket| {
        "below_us": Some(bucket.0.0).filter(|bound| *bound < Duration::MAX).map(micros),
        "count": bucket.0.1,
    }
}

#[cfg(feature = "inventory")]
use super::{ListedSite, ListedSites};
#[cfg(feature = "inventory")]
serialize! {
    ListedSite {} |site| {
        "template": site.template(),
        "options": site.options(),
        "module": site.module(),
        "line": site.line(),
    }
}
#[cfg(feature = "inventory")]
impl Serialize for ListedSites {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Bucket of a histogram: its exclusive upper bound, and the number of durations in it.
struct Bucket((Duration, u64));

/// Value that is written as its text.
struct Text<T>(T);

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::Permit => "permit",
        })
    }
}

impl Serialize for Holder {
    /// Writes a `kind`, and the `owner`, the `owners` or the `value`, if the kind has it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, fields) = match self {
            Self::Unknown => ("unknown", 1),
            Self::Nobody => ("nobody", 1),
            Self::Data => ("data", 1),
            Self::Owner(_) => ("owner", 2),
            Self::Shared { .. } => ("shared", 2),
            Self::Foreign { .. } => ("foreign", 2),
        };
        let mut holder = serializer.serialize_struct("Holder", fields)?;
        holder.serialize_field("kind", kind)?;
        match self {
            Self::Owner(owner) => holder.serialize_field("owner", owner)?,
            Self::Shared { owners } => holder.serialize_field("owners", owners)?,
            Self::Foreign { value } => holder.serialize_field("value", value)?,
            Self::Unknown | Self::Nobody | Self::Data => {}
        }
        holder.end()
    }
}

impl Serialize for Persistence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, fsync) = match self {
            Self::None => ("none", None),
            Self::Snapshots => ("snapshots", None),
            Self::AppendOnly { fsync } => ("append_only", fsync.as_deref()),
        };
        let mut persistence = serializer.serialize_struct("Persistence", 2)?;
        persistence.serialize_field("kind", kind)?;
        persistence.serialize_field("fsync", &fsync)?;
        persistence.end()
    }
}

const fn word(outcome: &BreakOutcome) -> &'static str {
    match outcome {
        BreakOutcome::Broken => "broken",
        BreakOutcome::NotHeld => "not_held",
        BreakOutcome::NeedsForce => "needs_force",
        BreakOutcome::Failed(_) => "failed",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn since_1970(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::{LockError, LockManager};
    use serde_json::{Value, json, to_value};
    use std::time::Duration;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn results_of_administrative_calls_are_serialized() {
        let manager = LockManager::builder().label("shop").in_memory().unwrap();
        let body = async |_: &_| {
            sleep(Duration::from_millis(5)).await;
            Ok::<_, LockError>(())
        };
        manager.with_lock("order:6", body).await.unwrap();
        let guard = manager.acquire("order:7").await.unwrap();
        let token = guard.token().as_str();

        let inspection = to_value(manager.inspect("order:7").await).unwrap();
        assert_eq!((&inspection["key"], &inspection["holder"]["kind"]), (&json!("order:7"), &json!("owner")));
        let owner = &inspection["nodes"][0]["holder"]["owner"];
        assert_eq!(
            (&owner["token"], &owner["mode"], &inspection["fence"]),
            (&json!(token), &json!("exclusive"), &Value::Null)
        );
        assert!(inspection["remaining_ms"].as_u64().unwrap() <= 30_000, "{inspection}");

        let held = to_value(manager.held_locks()).unwrap();
        assert_eq!((&held[0]["token"], &held[0]["held_for_ms"]), (&json!(token), &json!(0)));
        assert!(held[0]["site"]["line"].as_str().unwrap().contains("serialize.rs:"), "{held}");

        let stats = to_value(manager.stats()).unwrap();
        let durations = json!({"count": 1, "sum_us": 5000, "buckets": [{"below_us": 8192, "count": 1}]});
        let sites = stats["sites"].as_array().unwrap();
        assert!(sites.iter().any(|site| site["hold"] == durations), "{stats}");

        let report = to_value(manager.check().await).unwrap();
        assert_eq!((&report["needed"], &report["warnings"]), (&json!(1), &json!([])));
        assert_eq!(report["nodes"][0]["persistence"], json!({"kind": "none", "fsync": null}));

        let report = to_value(manager.break_lock("order:7", *guard.token()).await).unwrap();
        assert_eq!((&report["is_broken"], &report["holder_stopped"]), (&json!(true), &json!(false)));
        assert_eq!(
            (&report["nodes"][0]["outcome"], &report["placeholder"]["token"]),
            (&json!("broken"), &report["by"])
        );
        // The in-memory node has no list.
        let list = to_value(manager.list("*").await).unwrap();
        assert_eq!((&list["keys"], &list["has_quorum"]), (&json!([]), &json!(false)));
        assert!(list["failures"][0]["error"].is_string() && list["failures"][0]["node"].is_string(), "{list}");
    }
}
