//! What the nodes say of a key all together.

use super::holder::Holder;
use super::node_inspection::NodeInspection;
use super::owner::{Owner, spoken};
use crate::lock::LockKey;
use crate::protocol::fencing_token::FencingToken;
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// What [`LockManager::inspect`](crate::LockManager::inspect) has found out about a key.
///
/// `Display` is what somebody wants to read who was woken by an alarm: the word of the majority, then a line for each node
/// and for each process that waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// What was asked for.
    pub key: LockKey,
    /// In the order in which the manager was given them.
    pub nodes: Vec<NodeInspection>,
    /// How many of them must agree.
    pub needed: usize,
}

impl Inspection {
    /// The same with those who stand in the turnstile of the key: they wait for permits.
    pub(crate) fn with_turnstile(mut self, turnstile: Self) -> Self {
        self.nodes.iter_mut().zip(turnstile.nodes).for_each(|(node, turnstile)| node.add_turnstile(turnstile));
        self
    }

    /// What has the key, by the word of so many nodes as must agree. `None` when they do not, because somebody is just taking
    /// it, because it has just ended at some of them, or because too few answer.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        let counted = || self.nodes.iter().filter(|node| node.error.is_none()).map(|node| &node.holder);
        let is_agreed = |holder: &&Holder| {
            **holder != Holder::Unknown && counted().filter(|other| other.agrees_with(holder)).count() >= self.needed
        };
        let agreed = || counted().filter(is_agreed);
        // Its process may be connected to some of the nodes only. Of those who share it, a node may lack some.
        let known = |holder: &Holder| holder.owners().iter().filter(|owner| owner.address.is_some()).count();
        agreed().reduce(|best, next| {
            let says_more = (known(next), next.owners().len()) > (known(best), best.owners().len());
            if says_more { next } else { best }
        })
    }

    /// Those who [share](crate::LockRequest::shared) the key, or have something [below](Owner::is_below) it, by the word of so many nodes as must agree, in the order in which
    /// they have asked for it; of many the first hundred.
    #[must_use]
    pub fn readers(&self) -> Vec<&Owner> {
        let counted = self.nodes.iter().filter(|node| node.error.is_none());
        let shared = counted.filter(|node| matches!(node.holder, Holder::Shared { .. }));
        let mut readers: Vec<&Owner> = shared.flat_map(|node| node.holder.owners()).collect();
        readers.sort_by_key(|owner| (owner.token, owner.address.is_none()));
        let by_token = readers.chunk_by(|one, other| one == other).filter(|group| group.len() >= self.needed);
        by_token.filter_map(|group| group.first().copied()).collect()
    }

    /// How much is left of the lease of the [`holder`](Self::holder), if nobody renews it: so many nodes keep it until then as
    /// must agree.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let holder = self.holder()?;
        let agreeing = self.nodes.iter().filter(|node| node.holder.agrees_with(holder));
        let mut left: Vec<_> = agreeing.filter_map(|node| node.remaining).collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.get(self.needed.checked_sub(1)?).copied()
    }

    /// Those who wait for the key at any node, in the order in which they are served; of a long queue the first hundred. Who waits
    /// for a [permit](crate::LockRequest::permits) is among them, with [`Mode::Permit`](crate::Mode::Permit): between those and who
    /// wants the key alone, no order is promised.
    #[must_use]
    pub fn waiters(&self) -> Vec<&Owner> {
        let mut waiters: Vec<&Owner> = self.nodes.iter().flat_map(|node| &node.waiters).collect();
        // Of one token, the entry that says most comes first and stays.
        waiters.sort_by_key(|owner| (owner.token, owner.address.is_none()));
        waiters.dedup_by_key(|owner| owner.token);
        waiters
    }

    /// The largest [fence](NodeInspection::fence) of any node.
    #[must_use]
    pub fn fence(&self) -> Option<FencingToken> {
        self.nodes.iter().filter_map(|node| node.fence).max()
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.key.as_str())?;
        match self.holder() {
            Some(Holder::Owner(owner)) => write!(f, "held by {owner}, which asked {} ago", spoken(owner.age()))?,
            Some(holder) => write!(f, "{holder}")?,
            None => {
                let answered = self.nodes.iter().filter(|node| node.error.is_none()).count();
                let (needed, nodes) = (self.needed, self.nodes.len());
                write!(f, "no majority: {needed} of {nodes} nodes must agree, and {answered} can be relied on")?;
            }
        }
        if let Some(remaining) = self.remaining() {
            write!(f, ", {} left unless it is renewed", spoken(remaining))?;
        }
        for node in &self.nodes {
            f.write_str("\n  ")?;
            node.write(self.holder(), f)?;
        }
        let readers = self.readers();
        readers
            .iter()
            .try_for_each(|owner| write!(f, "\n  {} {owner}, which asked {} ago", owner.has(), spoken(owner.age())))?;
        self.waiters()
            .iter()
            .try_for_each(|owner| write!(f, "\n  {} for {}: {owner}", owner.waits(), spoken(owner.age())))?;
        let unnamed = self.nodes.iter().filter_map(|node| Some((&node.node, node.unnamed.as_ref()?)));
        unnamed.into_iter().try_for_each(|(node, error)| {
            write!(f, "\n  which processes these are is unknown at {}: {error}", SingleLine(node))
        })
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

    /// Three nodes that have these holders, each for some seconds.
    fn inspection(holders: [(Holder, u64); 3]) -> Inspection {
        let node = |(holder, left): (Holder, u64)| {
            let remaining = Some(Duration::from_secs(left)).filter(|left| !left.is_zero());
            NodeInspection { holder, remaining, ..NodeInspection::of("a") }
        };
        Inspection { key: "order:7".into(), nodes: holders.map(node).into(), needed: 2 }
    }

    #[test]
    fn a_majority_says_who_has_it_and_until_when() {
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
    fn a_majority_says_who_shares_it() {
        let readers = [1, 2, 3].map(|counter| Owner { mode: Mode::Shared, ..owner(counter) });
        let shared = |readers: &[Owner]| Holder::Shared { owners: readers.into() };
        // The first node has not heard of one yet, and the last has lost one.
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
    fn who_has_something_below_it_does_not_share_it() {
        let [one, other, third] = [1, 2, 3].map(|counter| owner(counter).token);
        let (below, reads) = (Owner::in_class(one, IntentExclusive), Owner::in_class(other, IntentShared));
        let table = [
            (vec![below.clone()], "held below by manager"),
            (vec![reads.clone()], "shared below by manager"),
            (vec![below.clone(), Owner::in_class(third, IntentExclusive)], "held below by 2 calls, "),
            (vec![below, reads.clone()], "held below by 1 call, shared below by 1 call, "),
            (vec![Owner::in_class(third, Shared), reads], "shared by 1 call, shared below by 1 call, "),
        ];
        for (owners, expected) in table {
            let lines = owners.len();
            let inspection = inspection([(); 3].map(|()| (Holder::Shared { owners: owners.clone() }, 9)));
            let text = inspection.to_string();
            assert!(text.starts_with(&format!("\"order:7\": {expected}")), "{text}");
            assert_eq!(text.matches("which asked").count(), lines, "{text}");
        }
        let waiting =
            [Exclusive, Shared, IntentExclusive, IntentShared].map(|class| Owner::in_class(one, class).waits());
        assert_eq!(
            waiting,
            ["waits", "waits to share it", "waits for something below", "waits to share something below"]
        );
    }

    #[test]
    fn who_stands_in_the_turnstile_waits_for_a_permit() {
        let [has, first, alone, last] = [1, 2, 3, 4].map(owner);
        let shared = Holder::Shared { owners: vec![Owner { mode: Mode::Shared, ..has }] };
        let mut looked = inspection([(); 3].map(|()| (shared.clone(), 9)));
        let mut turnstile = inspection([(Holder::Owner(first.clone()), 5), (Holder::Nobody, 0), (Holder::Data, 0)]);
        (looked.nodes[0].waiters, looked.nodes[0].waiting) = (vec![alone.clone()], 1);
        (turnstile.nodes[0].waiters, turnstile.nodes[0].waiting) = (vec![last.clone()], 1);
        let looked = looked.with_turnstile(turnstile);
        assert_eq!(looked.waiters(), [&first, &alone, &last]);
        let modes: Vec<_> = looked.waiters().iter().map(|owner| owner.mode).collect();
        assert_eq!(modes, [Mode::Permit, Mode::Exclusive, Mode::Permit]);
        assert_eq!(looked.nodes.iter().map(|node| node.waiting).collect::<Vec<_>>(), [3, 0, 0]);
        let text = looked.to_string();
        assert!(text.starts_with("\"order:7\": shared by ") && text.contains(", 3 waiting"), "{text}");
        assert_eq!(
            (text.matches("\n  waits for a permit for ").count(), text.matches("\n  waits for ").count()),
            (2, 3)
        );
    }

    #[test]
    fn a_node_that_has_another_reader_says_nothing_of_those_of_others() {
        let reader = |counter| Owner { mode: Mode::Shared, ..owner(counter) };
        let shared = |counter| Holder::Shared { owners: vec![reader(counter)] };
        let inspection = inspection([(shared(1), 9), (shared(2), 8), (Holder::Nobody, 0)]);
        assert!(matches!(inspection.holder(), Some(Holder::Shared { .. })));
        assert!(inspection.readers().is_empty(), "neither has a majority");
    }

    #[test]
    fn who_abstains_has_no_say_and_is_heard_all_the_same() {
        let a = Holder::Owner(owner(0));
        let mut inspection = inspection([(a.clone(), 9), (a.clone(), 9), (Holder::Nobody, 0)]);
        inspection.nodes[1].error = Some(NodeError::Abstains(Duration::from_secs(60)));
        assert_eq!(inspection.holder(), None);
        let text = inspection.to_string();
        assert!(
            text.starts_with("\"order:7\": no majority: 2 of 3 nodes must agree, and 2 can be relied on"),
            "{text}"
        );
        assert!(text.contains("a: held by manager") && text.contains("does not count for another 60.0s"), "{text}");
    }

    #[test]
    fn who_waits_is_named_once_with_what_is_known() {
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
