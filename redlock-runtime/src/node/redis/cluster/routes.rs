//! The member that serves each slot, the map that it came with, and the time from which its grants prove a lock.
//!
//! The owner of a slot knows only the locks that the previous owner has passed on. A member that hands a slot over moves the keys first.
//! The proofs of its replies therefore hold for the next owner, too. A lost member has passed on no keys, or not all of them: the next
//! owner of the slot may grant a lock that is held. The slot therefore *abstains*, at any owner, until all leases have ended that a
//! previous owner may have granted and the others do not know.

use super::address::MemberAddress;
use crate::time::clock::Instant;
use std::ops::RangeInclusive;

/// Number of slots of a cluster.
const SLOTS: usize = 16384;

/// Index for a slot without a member.
const NOBODY: u16 = u16::MAX;

/// The member of type `M` for each slot.
#[derive(Debug)]
pub(super) struct Routes<M> {
    /// By slot.
    places: Box<[Place]>,
    /// By address.
    members: Box<[(MemberAddress, M)]>,
    /// Incremented by each map that differs from the previous one.
    version: u32,
    /// The time until which some slot abstains.
    abstains_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Index of the member; beyond the end if there is none.
    member: u16,
    /// Version of the routes with which this member got the slot.
    since: u32,
    /// Grants of the member before this time prove nothing.
    pub(super) abstains_until: Option<Instant>,
}

impl<M> Routes<M> {
    /// Returns routes in which no slot has a member.
    pub(super) fn nowhere() -> Self {
        let place = Place { member: NOBODY, since: 0, abstains_until: None };
        Self { places: vec![place; SLOTS].into(), members: Box::default(), version: 0, abstains_until: None }
    }

    /// Returns the routes that follow these, from a newer map: its `members`, sorted by address, and the slots that each of them owns.
    ///
    /// Grants of a member that no longer serves a slot are unknown to the next member. They stay relevant until the time that
    /// `unknown_until` returns for the old member, or for `None` if the slot has no member now.
    pub(super) fn next<'a>(
        &self,
        members: Box<[(MemberAddress, M)]>,
        owners: impl Iterator<Item = (RangeInclusive<u16>, &'a MemberAddress)>,
        unknown_until: impl Fn(Option<&MemberAddress>) -> Option<Instant>,
    ) -> Self {
        let version = self.version.wrapping_add(1);
        let place = Place { member: NOBODY, since: version, abstains_until: None };
        let mut places = vec![place; SLOTS];
        for (slots, owner) in owners {
            let member = index_of(&members, owner);
            let slots = usize::from(*slots.start())..=usize::from(*slots.end());
            places.get_mut(slots).unwrap_or_default().iter_mut().for_each(|place| place.member = member);
        }
        // Looked up once for each member, and not for each slot.
        let now_at: Vec<_> = self.members.iter().map(|(address, _)| index_of(&members, address)).collect();
        let left: Vec<_> = self.members.iter().map(|(address, _)| unknown_until(Some(address))).collect();
        let left_by_all = unknown_until(None);
        for (place, before) in places.iter_mut().zip(&self.places) {
            let owner = usize::from(before.member);
            let is_same = match now_at.get(owner) {
                // The old member may be gone, which differs from a slot that had no member.
                Some(now_at) => *now_at != NOBODY && *now_at == place.member,
                None => place.member == NOBODY,
            };
            if is_same {
                place.since = before.since;
            }
            place.abstains_until = match left.get(owner) {
                // The first owner after a gap inherits the abstention of the last owner before it.
                None => before.abstains_until,
                Some(_) if is_same => before.abstains_until,
                Some(_) if place.member == NOBODY => before.abstains_until.max(left_by_all),
                Some(left) => before.abstains_until.max(*left),
            };
        }
        let abstains_until = places.iter().filter_map(|place| place.abstains_until).max();
        Self { places: places.into(), members, version, abstains_until }
    }

    /// Returns the address of the member that serves `slot`.
    pub(super) fn address(&self, slot: u16) -> Option<&MemberAddress> {
        self.served(slot).map(|(_, (address, _))| address)
    }

    /// Returns the member that serves `slot`.
    pub(super) fn member(&self, slot: u16) -> Option<&M> {
        self.served(slot).map(|(_, (_, member))| member)
    }

    /// Returns the member that serves `slot`, with the state of the slot.
    pub(super) fn served(&self, slot: u16) -> Option<(&Place, &(MemberAddress, M))> {
        let place = self.places.get(usize::from(slot))?;
        self.members.get(usize::from(place.member)).map(|member| (place, member))
    }

    /// Returns a number that grows whenever another member serves `slot`.
    pub(super) fn since(&self, slot: u16) -> u32 {
        self.places.get(usize::from(slot)).map_or(0, |place| place.since)
    }

    /// Returns the time until which some slot abstains.
    pub(super) const fn abstains_until(&self) -> Option<Instant> {
        self.abstains_until
    }

    /// Returns the version of the routes: each differing map has another one.
    pub(super) const fn version(&self) -> u32 {
        self.version
    }

    /// Returns all members that serve a slot.
    pub(super) fn members(&self) -> impl Iterator<Item = &(MemberAddress, M)> {
        self.members.iter()
    }
}

/// Returns the index of the member at `address` in these sorted members.
fn index_of<M>(members: &[(MemberAddress, M)], address: &MemberAddress) -> u16 {
    let index = members.binary_search_by(|(member, _)| member.cmp(address));
    index.ok().and_then(|index| u16::try_from(index).ok()).unwrap_or(NOBODY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(port: u16) -> MemberAddress {
        MemberAddress { host: "h".into(), port }
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it is where something abstains")]
    fn seconds(seconds: u64) -> Option<Instant> {
        Some(Instant::from_origin(Duration::from_secs(seconds)))
    }

    /// Returns the next routes: each of the owners has the given number of consecutive slots.
    fn next(
        routes: &Routes<char>,
        owners: &[(u16, u16)],
        unknown_until: impl Fn(Option<u16>) -> Option<Instant>,
    ) -> Routes<char> {
        let addresses: Vec<_> = owners.iter().map(|(port, _)| at(*port)).collect();
        let mut first = 0;
        let ranges = owners.iter().zip(&addresses).map(|((_, slots), address)| {
            let range = first..=first + slots - 1;
            first += slots;
            (range, address)
        });
        let mut members: Vec<_> = ('a'..).zip(&addresses).map(|(member, address)| (address.clone(), member)).collect();
        members.sort();
        routes.next(members.into(), ranges, |address| unknown_until(address.map(|address| address.port)))
    }

    #[test]
    fn slot_version_changes_with_its_member() {
        let next = |routes, of_first| next(routes, &[(1, of_first), (2, 16384 - of_first)], |_| None);
        let nowhere = Routes::nowhere();
        assert_eq!((nowhere.member(0), nowhere.since(0)), (None, 0));
        let routes = next(&nowhere, 8192);
        assert_eq!([routes.member(8191), routes.member(8192)], [Some(&'a'), Some(&'b')]);
        let same = next(&routes, 8192);
        let moved = next(&same, 8191);
        let versions = |slot| [&nowhere, &routes, &same, &moved].map(|routes| routes.since(slot));
        assert_eq!([versions(0), versions(8191), versions(16383)], [[0, 1, 1, 1], [0, 1, 1, 3], [0, 1, 1, 1]]);
        let lost = moved.next(Box::default(), std::iter::empty(), |_| None);
        assert_eq!((lost.member(0), lost.since(0)), (None, 4));
    }

    #[test]
    fn slot_version_is_kept_if_its_member_changes_position() {
        let routes = next(&Routes::nowhere(), &[(2, 100), (3, 100)], |_| None);
        let more = next(&routes, &[(2, 50), (1, 50), (3, 100)], |_| seconds(30));
        assert_eq!([0, 50, 100].map(|slot| more.since(slot)), [1, 2, 1]);
        let abstains = |slot| more.served(slot).unwrap().0.abstains_until;
        assert_eq!([0, 50, 100].map(abstains), [None, seconds(30), None]);
    }

    /// The first member is lost at 5 s, and leases of it may last until 35 s; all others are there.
    #[test]
    fn slot_of_a_lost_member_abstains_wherever_it_moves() {
        let of_lost = |until| move |port| seconds(until).filter(|_| port == Some(1));
        let nowhere = Routes::nowhere();
        let first = next(&nowhere, &[(1, 100), (2, 100)], of_lost(30));
        let fail_over = next(&first, &[(4, 100), (2, 100)], of_lost(35));
        let moved = next(&fail_over, &[(4, 99), (2, 101)], of_lost(36));
        let back = next(&moved, &[(4, 100), (2, 100)], of_lost(37));
        let abstains =
            |slot| [&first, &fail_over, &moved, &back].map(|routes| routes.served(slot).unwrap().0.abstains_until);
        assert_eq!(abstains(99), [None, seconds(35), seconds(35), seconds(35)], "it was moved");
        assert_eq!(abstains(0), [None, seconds(35), seconds(35), seconds(35)], "it was not");
        assert_eq!(abstains(100), [None; 4], "another member had it all the time");
        assert_eq!([&first, &moved].map(Routes::abstains_until), [None, seconds(35)]);
    }

    #[test]
    fn unassigned_slot_abstains_at_its_next_member() {
        let lost = |port: Option<u16>| seconds(if port.is_none() { 40 } else { 35 });
        let first = next(&Routes::nowhere(), &[(1, 100), (2, 100)], lost);
        let gap = next(&first, &[(1, 100)], lost);
        let fixed = next(&gap, &[(1, 200)], |_| seconds(50));
        assert!(gap.served(150).is_none());
        let abstains = |slot| fixed.served(slot).unwrap().0.abstains_until;
        assert_eq!([abstains(0), abstains(150)], [None, seconds(40)]);
        assert_eq!(fixed.abstains_until(), seconds(40));
    }
}
