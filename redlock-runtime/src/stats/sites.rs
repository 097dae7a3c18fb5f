//! The sites whose calls a manager has seen, each with its counters.
//!
//! Every call looks its site up, so this takes no mutex: a site is found by the address of what the compiler has made of it, in
//! a table of chains to which only is added. All parts of the table are made when they are first needed and stay where they are:
//!
//! 1. `first` has the number of the first site of each chain, and each site that of the next one. Zero is the end, since no
//!    chain has site 0, which stands for all that find no room.
//! 2. A new site is written to its place first, and then its number to the end of its chain. Whoever reads the number finds the
//!    site. Those who add do so one after the other.

use super::site_counters::SiteCounters;
use super::site_stats::{LockSite, SiteStats};
use crate::request::Place;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How many chains there are. Fewer, and a service with many sites walks along them; more, and a manager without any is larger.
const CHAINS: usize = 128;
/// How many sites are made room for at a time. Fewer, and there are more parts; more, and a manager with few sites is larger.
const PART: usize = 64;
/// How many parts there may be, of 4096 sites in all. Fewer, and a large service finds sites among the others; more, and whoever
/// makes labels without end takes more memory.
const PARTS: usize = 64;

/// The number of a site at one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SiteId(u16);

impl SiteId {
    /// All sites that find no room.
    const OTHER: Self = Self(0);
}

/// The sites whose calls a manager has seen.
pub(crate) struct Sites {
    first: [AtomicU16; CHAINS],
    parts: [OnceLock<Part>; PARTS],
    /// How many there are.
    count: Mutex<u16>,
}

type Part = Box<[OnceLock<Box<Known>>]>;

/// A site whose calls were seen.
#[derive(Debug)]
pub(crate) struct Known {
    asked: Option<(Place, Option<&'static str>)>,
    pub(crate) counters: SiteCounters,
    next: AtomicU16,
}

impl Known {
    fn new(asked: Option<(Place, Option<&'static str>)>) -> Self {
        Self { asked, counters: SiteCounters::default(), next: AtomicU16::new(0) }
    }

    fn is_of(&self, place: Place, label: Option<&'static str>) -> bool {
        // Addresses are compared first: labels are rare, and their texts mostly stand at one place.
        self.asked.is_some_and(|asked| asked.0.is(place) && asked.1 == label)
    }

    /// The key as it was written, or the label of a call by hand.
    pub(crate) fn template(&self) -> Option<&'static str> {
        self.asked.and_then(|(place, label)| label.or(place.template()))
    }

    /// What users are told of it.
    pub(crate) fn site(&self) -> LockSite {
        let place = self.asked.map(|(place, _)| place);
        LockSite { template: self.template(), module: place.and_then(Place::module), line: place.map(Place::line) }
    }

    /// The file and the line.
    pub(crate) fn line(&self) -> (&'static str, u32) {
        self.asked.map_or(("other", 0), |(place, _)| (place.line().file(), place.line().line()))
    }
}

impl Sites {
    pub(crate) fn new() -> Self {
        let (first, parts) = ([const { AtomicU16::new(0) }; CHAINS], [const { OnceLock::new() }; PARTS]);
        let sites = Self { first, parts, count: Mutex::new(1) };
        sites.put(SiteId::OTHER, Known::new(None));
        sites
    }

    /// The number of the site at `place`.
    pub(crate) fn id_of(&self, place: Place, label: Option<&'static str>) -> SiteId {
        let Some(first) = self.first.get(chain(place, label)) else { return SiteId::OTHER };
        match self.find(first, place, label) {
            Ok(found) => found,
            Err(_) => self.add(first, place, label),
        }
    }

    /// What is known of a site.
    pub(crate) fn get(&self, id: SiteId) -> Option<&Known> {
        let index = usize::from(id.0);
        self.parts.get(index / PART)?.get()?.get(index % PART)?.get().map(|known| &**known)
    }

    /// The site in a chain.
    ///
    /// # Errors
    /// The end of the chain, where there is none.
    fn find<'s>(
        &'s self,
        mut link: &'s AtomicU16,
        place: Place,
        label: Option<&'static str>,
    ) -> Result<SiteId, &'s AtomicU16> {
        loop {
            let id = SiteId(link.load(Ordering::Acquire));
            match self.get(id).filter(|_| id != SiteId::OTHER) {
                None => return Err(link),
                Some(known) if known.is_of(place, label) => return Ok(id),
                Some(known) => link = &known.next,
            }
        }
    }

    #[cold]
    fn add(&self, first: &AtomicU16, place: Place, label: Option<&'static str>) -> SiteId {
        // No code that can panic runs under this mutex.
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let end = match self.find(first, place, label) {
            Ok(added) => return added,
            Err(end) => end,
        };
        let id = SiteId(*count);
        if !self.put(id, Known::new(Some((place, label)))) {
            return SiteId::OTHER;
        }
        *count += 1;
        end.store(id.0, Ordering::Release);
        id
    }

    /// Puts a site to its place. `false` when there is none.
    fn put(&self, id: SiteId, known: Known) -> bool {
        let index = usize::from(id.0);
        let part = || std::iter::repeat_with(OnceLock::new).take(PART).collect::<Part>();
        let slot = self.parts.get(index / PART).and_then(|slot| slot.get_or_init(part).get(index % PART));
        slot.is_some_and(|slot| slot.set(Box::new(known)).is_ok())
    }

    /// What became of the calls of all sites, by their lines. Those whose calls are none are left out.
    pub(crate) fn read(&self) -> Vec<SiteStats> {
        let count = *self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = BTreeMap::<LockSite, SiteStats>::new();
        for known in (0..count).filter_map(|id| self.get(SiteId(id))) {
            let stats = known.counters.read(known.site());
            match all.get_mut(&stats.site) {
                Some(same) => same.add(&stats),
                None if stats.is_any() => _ = all.insert(stats.site.clone(), stats),
                None => {}
            }
        }
        all.into_values().collect()
    }
}

/// In which chain a site is.
fn chain(place: Place, label: Option<&'static str>) -> usize {
    // The multiplication spreads addresses that are near to each other; its upper bits are the ones that differ.
    let address = place.address() ^ label.map_or(0, |label| label.as_ptr().addr());
    let spread = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(spread >> (u64::BITS - CHAINS.ilog2())).unwrap_or_default()
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").field("count", &self.count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    fn labels(count: usize) -> Vec<&'static str> {
        (0..count).map(|n| &*Box::leak(format!("label {n}").into_boxed_str())).collect()
    }

    #[test]
    fn a_site_is_found_again_and_others_are_others() {
        let (sites, here) = (Sites::new(), Place::Call(Location::caller()));
        let labels = labels(300);
        let ids: Vec<_> = labels.iter().map(|label| sites.id_of(here, Some(label))).collect();
        for (label, id) in labels.iter().zip(&ids) {
            assert_eq!(sites.id_of(here, Some(label)), *id);
            assert_eq!(sites.get(*id).unwrap().template(), Some(*label));
        }
        assert!(!ids.contains(&sites.id_of(here, None)));
        assert_eq!(ids.iter().map(|id| id.0).collect::<std::collections::BTreeSet<_>>().len(), 300);
    }

    #[test]
    fn sites_without_end_are_counted_together() {
        let (sites, here) = (Sites::new(), Place::Call(Location::caller()));
        for label in labels(PART * PARTS + 10) {
            sites.get(sites.id_of(here, Some(label))).unwrap().counters.asked();
        }
        let all = sites.read();
        assert_eq!(all.len(), PART * PARTS);
        let other = all.iter().find(|stats| stats.site.line.is_none()).unwrap();
        assert_eq!((other.waiting_now, other.site.to_string()), (11, "other".to_owned()));
    }

    #[test]
    fn threads_that_meet_a_site_at_once_make_one_of_it() {
        let (sites, here, labels) = (Sites::new(), Place::Call(Location::caller()), labels(200));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for label in &labels {
                        sites.get(sites.id_of(here, Some(label))).unwrap().counters.asked();
                    }
                });
            }
        });
        let all = sites.read();
        assert!(all.len() == 200 && all.iter().all(|stats| stats.waiting_now == 4), "{all:?}");
    }
}
