//! What a cluster is like: what each of its masters is like, and whether every slot has one.

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

/// Asks all masters at once. What the cluster is like as a whole is what the master of `key` is like, and it does not count
/// while another one does not.
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

/// Whether the user may ask a member for what is still on its way there.
async fn refused_asking(member: &Member, patience: Duration) -> Option<Refusal> {
    let asked = member.connections.live().ok()?.try_asking();
    match timeout(patience, asked).await {
        Ok(Err(NodeError::Refused(answer))) => Some(Refusal::new("ASKING", Purpose::MovingSlots, &answer)),
        _ => None,
    }
}
