//! Who serves which slot, and since which map.

use super::address::MemberAddress;

/// How many slots a cluster has.
const SLOTS: usize = 16384;

/// Says for each slot which of the members `M` serves it.
#[derive(Debug)]
pub(super) struct Routes<M> {
    /// By slot.
    places: Box<[Place]>,
    members: Box<[(MemberAddress, M)]>,
    /// Grows with each map that differs from the one before.
    version: u32,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where the member stands; beyond the end when there is none.
    member: u16,
    /// With which version it came.
    since: u32,
}

impl<M> Routes<M> {
    /// Nobody serves anything.
    pub(super) fn nowhere() -> Self {
        let place = Place { member: u16::MAX, since: 0 };
        Self { places: vec![place; SLOTS].into(), members: Box::default(), version: 0 }
    }

    /// The routes after these, by a newer map: these `members`, and who of them owns which slot.
    pub(super) fn next<'a>(
        &self,
        members: Box<[(MemberAddress, M)]>,
        owners: impl Iterator<Item = (u16, &'a MemberAddress)>,
    ) -> Self {
        let version = self.version.wrapping_add(1);
        let place = Place { member: u16::MAX, since: version };
        let mut next = Self { places: vec![place; SLOTS].into(), members, version };
        for (slot, owner) in owners {
            let member = next.members.iter().position(|(address, _)| address == owner);
            if let (Some(place), Some(member)) = (next.places.get_mut(usize::from(slot)), member) {
                place.member = u16::try_from(member).unwrap_or(u16::MAX);
            }
        }
        next.keep_versions(self);
        next
    }

    /// A slot that is where it was before has been there since then.
    fn keep_versions(&mut self, before: &Self) {
        for slot in 0..SLOTS {
            let is_same = self.owner(slot) == before.owner(slot);
            if let (Some(place), Some(before)) = (self.places.get_mut(slot), before.places.get(slot))
                && is_same
            {
                place.since = before.since;
            }
        }
    }

    /// Where the member is that serves `slot`.
    pub(super) fn address(&self, slot: u16) -> Option<&MemberAddress> {
        self.owner(slot.into())
    }

    fn owner(&self, slot: usize) -> Option<&MemberAddress> {
        let place = self.places.get(slot)?;
        self.members.get(usize::from(place.member)).map(|(address, _)| address)
    }

    /// Who serves `slot`.
    pub(super) fn member(&self, slot: u16) -> Option<&M> {
        let place = self.places.get(usize::from(slot))?;
        self.members.get(usize::from(place.member)).map(|(_, member)| member)
    }

    /// Another number whenever somebody else serves `slot`, and a larger one.
    pub(super) fn since(&self, slot: u16) -> u32 {
        self.places.get(usize::from(slot)).map_or(0, |place| place.since)
    }

    /// All that serve a slot.
    pub(super) fn members(&self) -> impl Iterator<Item = &(MemberAddress, M)> {
        self.members.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> MemberAddress {
        MemberAddress { host: "h".into(), port }
    }

    #[test]
    fn a_slot_has_another_version_when_another_member_serves_it() {
        let [first, second] = [at(1), at(2)];
        let members = || [(at(1), 'a'), (at(2), 'b')].into();
        let halves = |middle: u16| {
            let owner = move |slot| if slot < middle { 1 } else { 2 };
            (0..16384).map(move |slot| (slot, owner(slot)))
        };
        let next = |routes: &Routes<char>, middle: u16| {
            routes.next(members(), halves(middle).map(|(slot, port)| (slot, if port == 1 { &first } else { &second })))
        };
        let nowhere = Routes::nowhere();
        assert_eq!((nowhere.member(0), nowhere.since(0)), (None, 0));
        let routes = next(&nowhere, 8192);
        assert_eq!([routes.member(8191), routes.member(8192)], [Some(&'a'), Some(&'b')]);
        let same = next(&routes, 8192);
        let moved = next(&same, 8191);
        let versions = |slot| [&nowhere, &routes, &same, &moved].map(|routes| routes.since(slot));
        assert_eq!([versions(0), versions(8191), versions(16383)], [[0, 1, 1, 1], [0, 1, 1, 3], [0, 1, 1, 1]]);
        let lost = moved.next(Box::default(), std::iter::empty());
        assert_eq!((lost.member(0), lost.since(0)), (None, 4));
    }
}
