//! The map from slots to members of a cluster, as one member has reported it.

use super::address::MemberAddress;
use crate::error::NodeError;
use redis::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Number of slots of a cluster.
const SLOTS: usize = 16384;

/// Maximum number of masters of a supported cluster. Too small: a working cluster is refused. Too large: one malicious node makes every
/// process open that many connections, each with the login, to hosts of its choice.
///
/// Source: the specification of Redis Cluster recommends at most about 1000 nodes.
pub(super) const MOST_MASTERS: usize = 1000;

/// Maximum number of replicas in one map. Too small: a working cluster is refused. Too large: a forged map takes more memory.
const MOST_REPLICAS: usize = 10 * MOST_MASTERS;

/// The reply of one member to `CLUSTER SLOTS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    shards: Vec<Shard>,
}

/// A range of slots and their members.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shard {
    slots: RangeInclusive<u16>,
    master: Member,
    replicas: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    address: MemberAddress,
    /// Constant for the lifetime of the member; empty if it was not reported.
    id: Box<str>,
}

impl SlotMap {
    /// Reads the reply of the member at the host `answered`.
    ///
    /// Source: the documentation of `CLUSTER SLOTS`. Each entry has the first and the last slot, then the master and its replicas. Each of
    /// these has the host, the port and the id, and perhaps more. The host may be missing.
    ///
    /// # Errors
    /// [`NodeError::UnexpectedReply`] if the reply is not a map, and [`NodeError::Unsupported`] if the map has too many members.
    pub(super) fn parse(answer: &Value, answered: &str) -> Result<Self, NodeError> {
        let no_map = || NodeError::UnexpectedReply("no map to CLUSTER SLOTS".into());
        let Value::Array(entries) = answer else { return Err(no_map()) };
        if entries.len() > SLOTS || entries.iter().map(replicas_in).sum::<usize>() > MOST_REPLICAS {
            return Err(NodeError::Unsupported(TOO_LARGE.into()));
        }
        let shards: Option<Vec<_>> = entries.iter().map(|entry| Shard::parse(entry, answered)).collect();
        // The order depends on the member that reports them.
        let mut shards = shards.ok_or_else(no_map)?;
        shards.sort_by_key(|shard| *shard.slots.start());
        let map = Self { shards };
        if map.masters().len() > MOST_MASTERS { Err(NodeError::Unsupported(TOO_LARGE.into())) } else { Ok(map) }
    }

    /// Returns the addresses of the masters.
    pub(super) fn masters(&self) -> BTreeSet<&MemberAddress> {
        self.shards.iter().map(|shard| &shard.master.address).collect()
    }

    /// Returns the addresses of the replicas.
    pub(super) fn replicas(&self) -> BTreeSet<&MemberAddress> {
        self.shards.iter().flat_map(|shard| &shard.replicas).map(|replica| &replica.address).collect()
    }

    /// Returns the addresses of the replicas of the master at `address`.
    pub(super) fn replicas_of(&self, address: &MemberAddress) -> BTreeSet<&MemberAddress> {
        let shards = self.shards.iter().filter(|shard| shard.master.address == *address);
        shards.flat_map(|shard| &shard.replicas).map(|replica| &replica.address).collect()
    }

    /// Returns the ids of all members with a known id.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> + Clone {
        let members = self.shards.iter().flat_map(|shard| [&shard.master].into_iter().chain(&shard.replicas));
        members.map(|member| &*member.id).filter(|id| !id.is_empty())
    }

    /// Returns the id of the master at `address`; empty if it was not reported.
    pub(super) fn id_of(&self, address: &MemberAddress) -> &str {
        let shard = self.shards.iter().find(|shard| shard.master.address == *address);
        shard.map_or("", |shard| &shard.master.id)
    }

    /// Returns the slots of the master at `address`.
    pub(super) fn slots_of(&self, address: &MemberAddress) -> Vec<RangeInclusive<u16>> {
        let shards = self.shards.iter().filter(|shard| shard.master.address == *address);
        shards.map(|shard| shard.slots.clone()).collect()
    }

    /// Returns the slots with a master, and this master.
    pub(super) fn owners(&self) -> impl Iterator<Item = (RangeInclusive<u16>, &MemberAddress)> {
        self.shards.iter().map(|shard| (shard.slots.clone(), &shard.master.address))
    }

    /// Returns the masters here that have lost some of their slots in the later map `after`.
    pub(super) fn losers(&self, after: &Self) -> BTreeSet<&MemberAddress> {
        let is_kept = |slots: &RangeInclusive<u16>, master: &MemberAddress| {
            let kept = after.owners().filter(|(_, owner)| *owner == master);
            kept.into_iter().any(|(kept, _)| kept.contains(slots.start()) && kept.contains(slots.end()))
        };
        self.owners().filter(|(slots, master)| !is_kept(slots, master)).map(|(_, master)| master).collect()
    }

    /// Returns the slots without a master.
    pub(super) fn gaps(&self) -> Vec<RangeInclusive<u16>> {
        let mut is_served = vec![false; SLOTS];
        for (slots, _) in self.owners() {
            let slots = usize::from(*slots.start())..=usize::from(*slots.end());
            is_served.get_mut(slots).unwrap_or_default().fill(true);
        }
        let mut gaps: Vec<RangeInclusive<u16>> = Vec::new();
        for (slot, _) in (0..).zip(is_served).filter(|(_, is_served)| !is_served) {
            match gaps.last_mut() {
                Some(gap) if gap.end() + 1 == slot => *gap = *gap.start()..=slot,
                _ => gaps.push(slot..=slot),
            }
        }
        gaps
    }
}

impl Shard {
    fn parse(entry: &Value, answered: &str) -> Option<Self> {
        let Value::Array(parts) = entry else { return None };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = parts.as_slice() else { return None };
        let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| usize::from(*slot) < SLOTS);
        let master = Member::parse(master, answered)?;
        // A replica that cannot be read is only missing in the report.
        let mut replicas: Vec<_> = replicas.iter().filter_map(|replica| Member::parse(replica, answered)).collect();
        replicas.sort();
        Some(Self { slots: slot(first)?..=slot(last)?, master, replicas })
    }
}

impl Member {
    fn parse(member: &Value, answered: &str) -> Option<Self> {
        let Value::Array(parts) = member else { return None };
        let [host, Value::Int(port), rest @ ..] = parts.as_slice() else { return None };
        let host = if *host == Value::Nil { "" } else { text(host)? };
        let address = MemberAddress::read(host, u16::try_from(*port).ok()?, answered)?;
        Some(Self { address, id: rest.first().and_then(text).unwrap_or_default().into() })
    }
}

/// Returns the number of replicas in an entry.
fn replicas_in(entry: &Value) -> usize {
    match entry {
        Value::Array(parts) => parts.len().saturating_sub(3),
        _ => 0,
    }
}

/// Error text for a map that is too large.
const TOO_LARGE: &str = "is in a cluster whose map has more than 1000 masters or 10000 replicas, which is not used: the map is \
                         damaged or forged, or the cluster is too large for Redis";

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(text) => str::from_utf8(text).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// Formats ranges of slots: `0-5460 10923`.
pub(crate) fn ranges(slots: &[RangeInclusive<u16>]) -> String {
    let range = |slots: &RangeInclusive<u16>| match (slots.start(), slots.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    slots.iter().map(range).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn member(host: Value, port: i64, id: &str) -> Value {
        Value::Array(vec![host, Value::Int(port), bulk(id), Value::Array(vec![])])
    }

    fn entry(first: i64, last: i64, members: Vec<Value>) -> Value {
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(members).collect())
    }

    fn at(port: u16) -> MemberAddress {
        MemberAddress { host: "h".into(), port }
    }

    #[test]
    fn slot_map_lists_members_and_their_slots() {
        let answer = Value::Array(vec![
            entry(0, 5460, vec![member(bulk("h"), 1, "a"), member(bulk("h"), 4, "d")]),
            entry(5461, 5461, vec![member(bulk(""), 2, "b")]),
            entry(5463, 16383, vec![member(Value::Nil, 3, "c"), member(bulk("?"), 5, "e")]),
            entry(5462, 5462, vec![member(bulk("h"), 1, "a")]),
        ]);
        let map = SlotMap::parse(&answer, "h").unwrap();
        assert_eq!(map.masters(), [&at(1), &at(2), &at(3)].into());
        assert_eq!(map.replicas(), [&at(4), &at(5)].into());
        assert_eq!(map.replicas_of(&at(3)), [&at(5)].into());
        assert_eq!(map.slots_of(&at(1)), [0..=5460, 5462..=5462]);
        assert_eq!(map.ids().collect::<BTreeSet<_>>(), ["a", "b", "c", "d", "e"].into());
        assert_eq!((map.owners().map(|(slots, _)| slots.count()).sum::<usize>(), map.gaps()), (SLOTS, vec![]));
    }

    #[test]
    fn slot_map_does_not_depend_on_the_order_of_the_reply() {
        let [a, b, c] = [("a", 1), ("b", 2), ("c", 3)].map(|(id, port)| member(bulk("h"), port, id));
        let maps = [
            vec![entry(0, 1, vec![a.clone(), b.clone(), c.clone()]), entry(2, 3, vec![c.clone()])],
            vec![entry(2, 3, vec![c.clone()]), entry(0, 1, vec![a, c, b])],
        ];
        let [one, other] = maps.map(|entries| SlotMap::parse(&Value::Array(entries), "h"));
        assert_eq!(one, other);
    }

    #[test]
    fn slots_without_a_master_are_gaps() {
        assert_eq!(SlotMap::default().gaps(), [0..=16383]);
        let answer = Value::Array(vec![
            entry(1, 9, vec![member(bulk("h"), 1, "a")]),
            entry(11, 16383, vec![member(bulk("h"), 2, "b")]),
        ]);
        let gaps = SlotMap::parse(&answer, "h").unwrap().gaps();
        assert_eq!((&gaps[..], ranges(&gaps)), (&[0..=0, 10..=10][..], "0 10".into()));
        assert_eq!(ranges(&[0..=5460, 7..=7]), "0-5460 7");
    }

    #[test]
    fn members_that_lost_slots_are_listed() {
        type Shards = &'static [(i64, i64, i64)];
        let map = |shards: Shards| {
            let entries = shards.iter().map(|(from, to, port)| entry(*from, *to, vec![member(bulk("h"), *port, "")]));
            SlotMap::parse(&Value::Array(entries.collect()), "h").unwrap()
        };
        let before = map(&[(0, 99, 1), (100, 199, 2), (200, 299, 3)]);
        let table: [(_, Shards, &[u16]); 4] = [
            ("nothing", &[(0, 99, 1), (100, 199, 2), (200, 299, 3)], &[]),
            ("a fail-over", &[(0, 99, 4), (100, 199, 2), (200, 299, 3)], &[1]),
            ("a move", &[(0, 98, 1), (99, 199, 2), (200, 299, 3)], &[1]),
            ("slots that nobody has", &[(0, 99, 1), (200, 298, 3)], &[2, 3]),
        ];
        for (name, after, expected) in table {
            let losers: Vec<_> = before.losers(&map(after)).into_iter().map(|at| at.port).collect();
            assert_eq!(losers, expected, "{name}");
        }
    }

    #[test]
    fn malformed_slot_map_is_rejected() {
        let wrong = [
            Value::Okay,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![entry(0, 16384, vec![member(bulk("h"), 1, "a")])]),
            Value::Array(vec![entry(-1, 5, vec![member(bulk("h"), 1, "a")])]),
            Value::Array(vec![entry(0, 5, vec![])]),
            Value::Array(vec![entry(0, 5, vec![member(bulk("h"), 70_000, "a")])]),
            Value::Array(vec![entry(0, 5, vec![member(Value::Int(7), 1, "a")])]),
        ];
        for answer in wrong {
            assert_eq!(SlotMap::parse(&answer, "h").ok(), None, "{answer:?}");
        }
        assert_eq!(SlotMap::parse(&Value::Array(vec![]), "h"), Ok(SlotMap::default()), "a cluster without slots");
    }

    #[test]
    fn map_with_too_many_members_is_refused() {
        let masters = |number: i64| {
            let entries = (0..number).map(|slot| entry(slot, slot, vec![member(bulk("h"), slot + 1, "")]));
            SlotMap::parse(&Value::Array(entries.collect()), "h")
        };
        let most = i64::try_from(MOST_MASTERS).unwrap();
        assert_eq!(masters(most).unwrap().masters().len(), MOST_MASTERS);
        let too_large = Err(NodeError::Unsupported(TOO_LARGE.into()));
        assert_eq!(masters(most + 1), too_large);
        // One master is repeated many times.
        let again = |number: usize, members: &[Value]| {
            SlotMap::parse(&Value::Array(vec![entry(0, 0, members.to_vec()); number]), "h").map(drop)
        };
        let one = member(bulk("h"), 1, "a");
        assert_eq!(again(SLOTS, std::slice::from_ref(&one)), Ok(()));
        assert_eq!(again(SLOTS + 1, std::slice::from_ref(&one)), too_large.clone().map(drop));
        assert_eq!(again(1, &vec![one.clone(); MOST_REPLICAS + 1]), Ok(()));
        assert_eq!(again(1, &vec![one; MOST_REPLICAS + 2]), too_large.map(drop));
        assert!(TOO_LARGE.contains(&MOST_MASTERS.to_string()) && TOO_LARGE.contains(&MOST_REPLICAS.to_string()));
    }
}
