//! Report on a cluster: on each of its masters, and on the coverage of the slots.

use super::address::MemberAddress;
use super::members::condition::gap;
use super::members::{Member, Members};
use super::slot_map::{SlotMap, ranges};
use super::together::all;
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::lock::slot::slot_of;
use crate::node::report::{ClusterMember, NodeReport, Purpose, Refusal};
use crate::node::{BoxFuture, Node};
use std::time::Duration;
use tokio::time::timeout;

/// Queries all masters at once. The report on the whole cluster repeats the report of the master of `key`. It has an error if any master
/// has an error.
pub(super) async fn report(members: &Members, key: &LockKey, patience: Duration) -> NodeReport {
    let label = members.seeds.label();
    let Some(map) = members.map() else {
        return NodeReport { error: Some(members.status().into()), ..NodeReport::unknown(label) };
    };
    let routes = members.routes();
    let asked = routes
        .members()
        .map(|(at, member)| Box::pin(member_report(&map, at, member, key, patience)) as BoxFuture<'_, _>);
    let reports: Vec<ClusterMember> = all(asked.collect()).await;
    let owner = routes.address(slot_of(key.name())).map(ToString::to_string);
    let of_owner = reports.iter().map(|member| &member.report).find(|report| Some(&*report.node) == owner.as_deref());
    let whole = of_owner.cloned().unwrap_or_else(|| NodeReport::unknown(label));
    let first_error = reports.iter().find_map(|member| member.report.error.clone());
    NodeReport { node: label.into(), error: gap(&map).or(first_error), members: reports, ..whole }
}

async fn member_report(
    map: &SlotMap,
    at: &MemberAddress,
    member: &Member,
    key: &LockKey,
    patience: Duration,
) -> ClusterMember {
    let mut report = member.report(key, patience).await;
    if report.round_trip.is_some() {
        report.refusals.extend(refused_asking(member, patience).await);
    }
    ClusterMember { report, slots: ranges(&map.slots_of(at)).into(), replicas: map.replicas_of(at).len() }
}

/// Checks that the user may run `ASKING`, which is needed while a slot moves.
async fn refused_asking(member: &Member, patience: Duration) -> Option<Refusal> {
    let asked = member.connections.live().ok()?.try_asking();
    match timeout(patience, asked).await {
        Ok(Err(NodeError::Refused(answer))) => Some(Refusal::new("ASKING", Purpose::MovingSlots, &answer)),
        _ => None,
    }
}
