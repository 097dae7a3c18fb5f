//! What the members of a cluster say of keys: each key is looked at where its slot is.

use super::members::{Member, Members};
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::lock::slot::slot_of;
use crate::node::Node;
use crate::node::inspection::{Names, NodeInspection};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What the masters of their slots say of `keys`, in that order. A key whose slot is on its way may be refused by both.
pub(super) async fn inspect(
    members: &Members,
    keys: &[LockKey],
    named: bool,
    patience: Duration,
) -> Vec<NodeInspection> {
    let (mut looked, of_members) = divided(members, keys);
    for (member, places) in of_members.into_values() {
        let keys: Vec<_> = places.iter().filter_map(|place| keys.get(*place).cloned()).collect();
        let answers = member.inspect(&keys, named, patience).await;
        for (place, answer) in places.into_iter().zip(answers) {
            if let Some(looked) = looked.get_mut(place) {
                *looked = answer;
            }
        }
    }
    looked
}

/// Members by their labels, with the places of their keys.
type OfMembers = BTreeMap<Box<str>, (Member, Vec<usize>)>;

/// For each member the places of its keys, and for each key an answer in case that none has it.
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

/// The names of the locks at all masters that match `pattern`, at most so many, as far as they are found `within` that time.
///
/// # Errors
/// Those of the first member that cannot be asked: what is there is missing.
pub(super) async fn list(members: &Members, pattern: &str, most: usize, within: Duration) -> Result<Names, NodeError> {
    let begun = Instant::now();
    let all: Vec<Member> = members.routes().members().map(|(_, member)| member.clone()).collect();
    if all.is_empty() {
        return Err(members.status().into());
    }
    let mut names = Names { are_all: true, ..Names::default() };
    for member in all {
        let there = member.list(pattern, most, within.saturating_sub(begun.elapsed())).await?;
        names.are_all &= there.are_all;
        names.found.extend(there.found);
    }
    names.are_all &= names.found.len() <= most;
    Ok(names)
}
