//! Inspection of keys in a cluster: each key is read at the member with its slot. All members are queried together, so that a silent member
//! takes no time from the others.

use super::members::{Member, Members};
use super::together;
use crate::error::{NodeError, NodeFailure};
use crate::lock::LockKey;
use crate::lock::slot::slot_of;
use crate::node::inspection::{Names, NodeInspection};
use crate::node::{BoxFuture, Node};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Extra time for a member after the time limit of its search. Too small: a member that is still reading a page is treated as silent. Too
/// large: the caller gives up on the whole cluster, and the answers of the other members are lost.
const LAST_PAGE: Duration = Duration::from_millis(500);

/// Returns the inspections of `keys` by the masters of their slots, in this order. A key in a moving slot may be refused by both members.
pub(super) async fn inspect(
    members: &Members,
    keys: &[LockKey],
    named: bool,
    patience: Duration,
) -> Vec<NodeInspection> {
    let (mut looked, of_members) = divided(members, keys);
    let asked = of_members.into_values().map(|(member, places)| -> BoxFuture<'_, _> {
        let keys: Vec<_> = places.iter().filter_map(|place| keys.get(*place).cloned()).collect();
        Box::pin(async move { (places, member.inspect(&keys, named, patience).await) })
    });
    for (places, answers) in together::all(asked.collect()).await {
        for (place, answer) in places.into_iter().zip(answers) {
            if let Some(looked) = looked.get_mut(place) {
                *looked = answer;
            }
        }
    }
    looked
}

/// Members by their labels, with the positions of their keys.
type OfMembers = BTreeMap<Box<str>, (Member, Vec<usize>)>;

/// Returns the positions of the keys of each member, and for each key a result in case no member serves it.
fn divided(members: &Members, keys: &[LockKey]) -> (Vec<NodeInspection>, OfMembers) {
    let (label, routes) = (members.seeds.label(), members.routes());
    let mut of_members = OfMembers::new();
    let silent = |(place, key): (usize, &LockKey)| {
        let slot = slot_of(key.name());
        if let Some(member) = routes.member(slot) {
            let own = of_members.entry(member.label().into()).or_insert_with(|| (member.clone(), Vec::new()));
            own.1.push(place);
        }
        NodeInspection::silent(label, members.absence(slot).into())
    };
    (keys.iter().enumerate().map(silent).collect(), of_members)
}

/// Returns at most `most` names of locks that match `pattern` at all masters, as far as they are found `within` this time.
///
/// # Errors
/// If the cluster has no member. Locks at members that cannot be queried are missing, and these members are listed.
pub(super) async fn list(members: &Members, pattern: &str, most: usize, within: Duration) -> Result<Names, NodeError> {
    let all: Vec<Member> = members.routes().members().map(|(_, member)| member.clone()).collect();
    if all.is_empty() {
        return Err(members.status().into());
    }
    let asked = all.iter().map(|member| -> BoxFuture<'_, _> {
        let listed = timeout(within.saturating_add(LAST_PAGE), member.list(pattern, most, within));
        Box::pin(async { listed.await.unwrap_or(Err(NodeError::TimedOut(within))) })
    });
    let mut names = Names { are_all: true, ..Names::default() };
    for (member, there) in all.iter().zip(together::all(asked.collect()).await) {
        match there {
            Ok(there) => {
                names.are_all &= there.are_all;
                names.found.extend(there.found);
            }
            Err(error) => names.missing.push(NodeFailure { node: member.label().into(), error }),
        }
    }
    names.are_all &= names.found.len() <= most;
    Ok(names)
}
