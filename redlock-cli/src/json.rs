//! What the library tells, as JSON: one object for each thing, durations in milliseconds, times as RFC 3339 would be long,
//! so milliseconds since 1970.

use redlock_runtime::admin::{
    BreakOutcome, BreakReport, CheckReport, Holder, Inspection, LockList, NodeBreak, NodeInspection, NodeReport, Owner,
};
use redlock_runtime::{Mode, NodeFailure};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Shared => "shared",
        // Of those who wait: a permit that somebody has looks like a share.
        Mode::Permit => "permit",
        _ => "exclusive",
    }
}

pub(crate) fn owner(owner: &Owner) -> Value {
    json!({
        "token": owner.token.as_str(),
        "mode": mode(owner.mode),
        "is_below": owner.is_below,
        "asked_at_ms": millis(owner.asked_at.duration_since(UNIX_EPOCH).unwrap_or_default()),
        "age_ms": millis(owner.age()),
        "label": owner.label,
        "address": owner.address,
        "is_connected": owner.is_connected,
    })
}

fn holder(holder: &Holder) -> Value {
    match holder {
        Holder::Nobody => json!({"kind": "nobody"}),
        Holder::Owner(of) => json!({"kind": "owner", "owner": owner(of)}),
        Holder::Shared { owners, .. } => {
            json!({"kind": "shared", "owners": owners.iter().map(owner).collect::<Vec<_>>()})
        }
        Holder::Foreign { value, .. } => json!({"kind": "foreign", "value": value}),
        Holder::Data => json!({"kind": "data"}),
        _ => json!({"kind": "unknown"}),
    }
}

fn node(node: &NodeInspection) -> Value {
    json!({
        "node": node.node,
        "error": node.error.as_ref().map(ToString::to_string),
        "holder": holder(&node.holder),
        "remaining_ms": node.remaining.map(millis),
        "waiting": node.waiting,
        "fence": node.fence.map(|fence| fence.to_string()),
        "unnamed": node.unnamed.as_ref().map(ToString::to_string),
    })
}

pub(crate) fn inspection(inspection: &Inspection) -> Value {
    json!({
        "key": inspection.key.as_str(),
        "needed": inspection.needed,
        "holder": inspection.holder().map(holder),
        "remaining_ms": inspection.remaining().map(millis),
        "readers": inspection.readers().into_iter().map(owner).collect::<Vec<_>>(),
        "waiters": inspection.waiters().into_iter().map(owner).collect::<Vec<_>>(),
        // As text, because JavaScript rounds numbers of that size.
        "fence": inspection.fence().map(|fence| fence.to_string()),
        "nodes": inspection.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

pub(crate) fn list(list: &LockList, locks: &[Inspection]) -> Value {
    json!({
        "locks": locks.iter().map(inspection).collect::<Vec<_>>(),
        "is_heard": list.is_heard(),
        "is_complete": list.is_complete,
        "failures": list.failures.iter().map(failure).collect::<Vec<_>>(),
    })
}

fn failure(failure: &NodeFailure) -> Value {
    json!({"node": failure.node(), "error": failure.error().to_string()})
}

pub(crate) fn break_report(report: &BreakReport) -> Value {
    let node = |node: &NodeBreak| {
        let (outcome, error) = match &node.outcome {
            BreakOutcome::Broken => ("broken", None),
            BreakOutcome::NotHeld => ("not_held", None),
            BreakOutcome::NeedsForce => ("needs_force", None),
            BreakOutcome::Failed(error) => ("failed", Some(error.to_string())),
            _ => ("unknown", None),
        };
        json!({"node": node.node, "outcome": outcome, "error": error})
    };
    json!({
        "key": report.key.as_str(),
        "holder": report.holder,
        "by": report.by.as_str(),
        "reason": report.reason,
        "is_broken": report.is_broken(),
        "is_told": report.is_told,
        "has_stopped": report.has_stopped,
        "stand_in": report.stand_in.map(|stand_in| json!({
            "token": stand_in.token.as_str(),
            "left_ms": millis(stand_in.left),
        })),
        "nodes": report.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

pub(crate) fn report(report: &CheckReport) -> Value {
    let node = |node: &NodeReport| {
        json!({
            "node": node.node,
            "error": node.error.as_ref().map(ToString::to_string),
            "version": node.version,
            "round_trip_ms": node.round_trip.map(millis),
            "text": node.to_string(),
        })
    };
    json!({
        "needed": report.needed,
        "nodes": report.nodes.iter().map(node).collect::<Vec<_>>(),
        "warnings": report.warnings(),
    })
}
