//! Answers of all nodes about a key.

use super::holder::Holder;
use super::node_inspection::NodeInspection;
use super::owner::{Owner, spoken};
use crate::lock::LockKey;
use crate::protocol::fencing_token::FencingToken;
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// Holder, waiters and remaining lease of a key, as [`LockManager::inspect`](crate::LockManager::inspect) returns them.
///
/// The methods combine the answers of the nodes. `Display` is made for an operator: the answer of the majority, then one line for each
/// node and for each waiting process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// Inspected key.
    pub key: LockKey,
    /// Answer of each node, in the order of the manager's configuration.
    pub nodes: Vec<NodeInspection>,
    /// Number of nodes that form a majority.
    pub needed: usize,
}

impl Inspection {
    /// Adds the calls in the admission lock of the key, which wait for permits.
    pub(crate) fn with_admission(mut self, admission: Self) -> Self {
        self.nodes.iter_mut().zip(admission.nodes).for_each(|(node, admission)| node.add_admission(admission));
        self
    }

    /// Returns the holder on which a majority of the nodes agrees.
    ///
    /// `None` if there is no such majority: a call is just acquiring or releasing the key, or too few nodes answered.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        let counted = || self.nodes.iter().filter(|node| node.error.is_none()).map(|node| &node.holder);
        let is_agreed = |holder: &&Holder| {
            **holder != Holder::Unknown && counted().filter(|other| other.agrees_with(holder)).count() >= self.needed
        };
        let agreed = || counted().filter(is_agreed);
        // The process may be connected to some of the nodes only, and a node may lack some of the shared owners.
        let known = |holder: &Holder| holder.owners().iter().filter(|owner| owner.address.is_some()).count();
        agreed().reduce(|best, next| {
            let says_more = (known(next), next.owners().len()) > (known(best), best.owners().len());
            if says_more { next } else { best }
        })
    }

    /// Returns the owners that [share](crate::LockRequest::shared) the key, or hold a [descendant](Owner::is_descendant) of it, at a
    /// majority of the nodes. At most 100, in the order of their requests.
    #[must_use]
    pub fn readers(&self) -> Vec<&Owner> {
        let counted = self.nodes.iter().filter(|node| node.error.is_none());
        let shared = counted.filter(|node| matches!(node.holder, Holder::Shared { .. }));
        let mut readers: Vec<&Owner> = shared.flat_map(|node| node.holder.owners()).collect();
        readers.sort_by_key(|owner| (owner.token, owner.address.is_none()));
        let by_token = readers.chunk_by(|one, other| one == other).filter(|group| group.len() >= self.needed);
        by_token.filter_map(|group| group.first().copied()).collect()
    }

    /// Returns the remaining lease of the [`holder`](Self::holder) if it is not renewed: a majority keeps the key for this time.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let holder = self.holder()?;
        let agreeing = self.nodes.iter().filter(|node| node.holder.agrees_with(holder));
        let mut left: Vec<_> = agreeing.filter_map(|node| node.remaining).collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.get(self.needed.checked_sub(1)?).copied()
    }

    /// Returns the calls that wait for the key at any node, in the order in which they are served. At most 100 per node.
    ///
    /// Waiters for a [permit](crate::LockRequest::permits) are included, with [`Mode::Permit`](crate::Mode::Permit). Between a waiter for
    /// a permit and a waiter for the exclusive lock, no order is promised.
    #[must_use]
    pub fn waiters(&self) -> Vec<&Owner> {
        let mut waiters: Vec<&Owner> = self.nodes.iter().flat_map(|node| &node.waiters).collect();
        // Of the entries of one token, the entry with an address comes first and stays.
        waiters.sort_by_key(|owner| (owner.token, owner.address.is_none()));
        waiters.dedup_by_key(|owner| owner.token);
        waiters
    }

    /// Returns the largest [fencing number](NodeInspection::fence) of all nodes.
    #[must_use]
    pub fn fence(&self) -> Option<FencingToken> {
        self.nodes.iter().filter_map(|node| node.fence).max()
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.key.as_str())?;
        match self.holder() {
            Some(Holder::Owner(owner)) => write!(f, "held by {owner}, requested {} ago", spoken(owner.age()))?,
            Some(holder) => write!(f, "{holder}")?,
            None => {
                let answered = self.nodes.iter().filter(|node| node.error.is_none()).count();
                let (needed, nodes) = (self.needed, self.nodes.len());
                write!(f, "no majority: {needed} of {nodes} nodes must agree, and {answered} count")?;
            }
        }
        if let Some(remaining) = self.remaining() {
            write!(f, ", {} left unless renewed", spoken(remaining))?;
        }
        for node in &self.nodes {
            f.write_str("\n  ")?;
            node.write(self.holder(), f)?;
        }
        let readers = self.readers();
        readers
            .iter()
            .try_for_each(|owner| write!(f, "\n  {} {owner}, requested {} ago", owner.has(), spoken(owner.age())))?;
        self.waiters()
            .iter()
            .try_for_each(|owner| write!(f, "\n  {} for {}: {owner}", owner.waits(), spoken(owner.age())))?;
        let client_list_error =
            self.nodes.iter().filter_map(|node| Some((&node.node, node.client_list_error.as_ref()?)));
        client_list_error
            .into_iter()
            .try_for_each(|(node, error)| write!(f, "\n  {}: the processes are unknown: {error}", SingleLine(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeError;
    use crate::lock::class::Class::{Exclusive, IntentExclusive, IntentShared, Shared};
    use crate::lock::owner_token::ManagerId;
    use crate::lock::{Mode, OwnerToken};
    use crate::time::token_clock::TokenTime;

    fn owner(counter: u16) -> Owner {
        Owner::of(OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, counter)), Mode::Exclusive)
    }

    /// Returns three nodes with these holders, each with a remaining lease in seconds.
    fn inspection(holders: [(Holder, u64); 3]) -> Inspection {
        let node = |(holder, left): (Holder, u64)| {
            let remaining = Some(Duration::from_secs(left)).filter(|left| !left.is_zero());
            NodeInspection { holder, remaining, ..NodeInspection::of("a") }
        };
        Inspection { key: "order:7".into(), nodes: holders.map(node).into(), needed: 2 }
    }

    #[test]
    fn holder_and_remaining_lease_need_a_majority() {
        let [a, b] = [0, 1].map(|counter| Holder::Owner(owner(counter)));
        let foreign = Holder::Foreign { value: "worker".into() };
        let table = [
            ([(a.clone(), 9), (a.clone(), 7), (a.clone(), 8)], Some(&a), Some(8)),
            ([(a.clone(), 9), (b.clone(), 7), (a.clone(), 5)], Some(&a), Some(5)),
            ([(a.clone(), 9), (b.clone(), 7), (Holder::Nobody, 0)], None, None),
            ([(a.clone(), 9), (Holder::Nobody, 0), (Holder::Nobody, 0)], Some(&Holder::Nobody), None),
            ([(a.clone(), 9), (Holder::Unknown, 0), (Holder::Unknown, 0)], None, None),
            ([(foreign.clone(), 9), (foreign.clone(), 8), (Holder::Nobody, 0)], Some(&foreign), Some(8)),
        ];
        for (holders, holder, left) in table {
            let inspection = inspection(holders);
            assert_eq!(
                (inspection.holder(), inspection.remaining().map(|left| left.as_secs())),
                (holder, left),
                "{inspection}"
            );
        }
    }

    #[test]
    fn shared_owners_need_a_majority() {
        let readers = [1, 2, 3].map(|counter| Owner { mode: Mode::Shared, ..owner(counter) });
        let shared = |readers: &[Owner]| Holder::Shared { owners: readers.into() };
        // The first node does not know one of them yet, and the last has lost one.
        let inspection = inspection([(shared(&readers[..2]), 9), (shared(&readers), 8), (shared(&readers[1..]), 7)]);
        assert_eq!(inspection.holder(), Some(&shared(&readers)));
        assert_eq!(inspection.readers(), readers.iter().collect::<Vec<_>>());
        assert_eq!(inspection.remaining(), Some(Duration::from_secs(8)));
        let text = inspection.to_string();
        assert!(
            text.starts_with("\"order:7\": shared by 3 calls, 8.0s left") && text.matches("\n  shared by").count() == 3
        );
    }

    #[test]
    fn owner_of_a_descendant_is_not_a_reader() {
        let [one, other, third] = [1, 2, 3].map(|counter| owner(counter).token);
        let (below, reads) = (Owner::in_class(one, IntentExclusive), Owner::in_class(other, IntentShared));
        let table = [
            (vec![below.clone()], "descendant held by manager"),
            (vec![reads.clone()], "descendant shared by manager"),
            (vec![below.clone(), Owner::in_class(third, IntentExclusive)], "descendant held by 2 calls, "),
            (vec![below, reads.clone()], "descendant held by 1 call, descendant shared by 1 call, "),
            (vec![Owner::in_class(third, Shared), reads], "shared by 1 call, descendant shared by 1 call, "),
        ];
        for (owners, expected) in table {
            let lines = owners.len();
            let inspection = inspection([(); 3].map(|()| (Holder::Shared { owners: owners.clone() }, 9)));
            let text = inspection.to_string();
            assert!(text.starts_with(&format!("\"order:7\": {expected}")), "{text}");
            assert_eq!(text.matches("requested").count(), lines, "{text}");
        }
        let waiting =
            [Exclusive, Shared, IntentExclusive, IntentShared].map(|class| Owner::in_class(one, class).waits());
        assert_eq!(
            waiting,
            ["waits", "waits for a shared lock", "waits for a descendant", "waits for a shared descendant"]
        );
    }

    #[test]
    fn callers_queued_at_the_permit_gate_are_listed_as_permit_waiters() {
        let [has, first, alone, last] = [1, 2, 3, 4].map(owner);
        let shared = Holder::Shared { owners: vec![Owner { mode: Mode::Shared, ..has }] };
        let mut looked = inspection([(); 3].map(|()| (shared.clone(), 9)));
        let mut admission = inspection([(Holder::Owner(first.clone()), 5), (Holder::Nobody, 0), (Holder::Data, 0)]);
        (looked.nodes[0].waiters, looked.nodes[0].waiter_count) = (vec![alone.clone()], 1);
        (admission.nodes[0].waiters, admission.nodes[0].waiter_count) = (vec![last.clone()], 1);
        let looked = looked.with_admission(admission);
        assert_eq!(looked.waiters(), [&first, &alone, &last]);
        let modes: Vec<_> = looked.waiters().iter().map(|owner| owner.mode).collect();
        assert_eq!(modes, [Mode::Permit, Mode::Exclusive, Mode::Permit]);
        assert_eq!(looked.nodes.iter().map(|node| node.waiter_count).collect::<Vec<_>>(), [3, 0, 0]);
        let text = looked.to_string();
        assert!(text.starts_with("\"order:7\": shared by ") && text.contains(", 3 waiting"), "{text}");
        assert_eq!(
            (text.matches("\n  waits for a permit for ").count(), text.matches("\n  waits for ").count()),
            (2, 3)
        );
    }

    #[test]
    fn readers_of_single_nodes_have_no_majority() {
        let reader = |counter| Owner { mode: Mode::Shared, ..owner(counter) };
        let shared = |counter| Holder::Shared { owners: vec![reader(counter)] };
        let inspection = inspection([(shared(1), 9), (shared(2), 8), (Holder::Nobody, 0)]);
        assert!(matches!(inspection.holder(), Some(Holder::Shared { .. })));
        assert!(inspection.readers().is_empty(), "neither has a majority");
    }

    #[test]
    fn recently_restarted_node_is_shown_but_does_not_count() {
        let a = Holder::Owner(owner(0));
        let mut inspection = inspection([(a.clone(), 9), (a.clone(), 9), (Holder::Nobody, 0)]);
        inspection.nodes[1].error = Some(NodeError::RecentlyRestarted(Duration::from_secs(60)));
        assert_eq!(inspection.holder(), None);
        let text = inspection.to_string();
        assert!(text.starts_with("\"order:7\": no majority: 2 of 3 nodes must agree, and 2 count"), "{text}");
        assert!(text.contains("a: held by manager") && text.contains("does not vote for another 60.0s"), "{text}");
    }

    #[test]
    fn waiter_is_listed_once_with_its_address() {
        let mut inspection = inspection([(); 3].map(|()| (Holder::Nobody, 0)));
        let [first, second] = [0, 1].map(owner);
        let named = Owner { address: Some("10.0.0.9:1".into()), ..second.clone() };
        inspection.nodes[0].waiters = vec![first.clone(), second.clone()];
        inspection.nodes[1].waiters = vec![named];
        let waiters = inspection.waiters();
        assert_eq!(waiters, [&first, &second]);
        assert!(waiters[1].address.is_some());
    }
}
