//! Call sites that a manager has seen, each with its counters.
//!
//! Every call looks up its site, so the lookup takes no mutex. A site is found by the address of its location in the compiled program, in a
//! hash chain to which entries are only added. A thread that reaches the end of a chain adds the site, unless another thread was faster.
//! Each site also has a number, which is smaller than a reference and is kept by long-lived values.

use super::site_counters::SiteCounters;
use super::site_stats::{LockSite, SiteStats};
use crate::request::Place;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of hash chains: 128. Too small: a service with many sites walks along chains. Too large: a manager without sites needs more
/// memory.
const CHAINS: usize = 128;
/// Number of sites in one allocation: 64. Too small: more parts. Too large: a manager with few sites needs more memory.
const PART: usize = 64;
/// Maximum number of parts: 64, for 4096 sites. Too small: a large service finds sites in the entry for all others. Too large: a program
/// that creates labels without limit takes more memory.
const PARTS: usize = 64;

/// Number of a site at one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SiteId(u16);

/// Call sites that a manager has seen.
pub(crate) struct Sites {
    chains: [Link; CHAINS],
    parts: [OnceLock<Part>; PARTS],
    /// Number of assigned site numbers.
    count: AtomicUsize,
    /// Entry for all sites after the first 4096.
    other: Arc<Known>,
}

/// Next site of a chain, if there is one.
type Link = OnceLock<Arc<Known>>;

/// Sites by their numbers.
type Part = Box<[OnceLock<Arc<Known>>]>;

/// Site with its counters.
#[derive(Debug)]
pub(crate) struct Known {
    asked: Option<(Place, Option<&'static str>)>,
    pub(crate) id: SiteId,
    pub(crate) counters: SiteCounters,
    next: Link,
}

impl Known {
    fn new(asked: Option<(Place, Option<&'static str>)>, id: SiteId) -> Arc<Self> {
        Arc::new(Self { asked, id, counters: SiteCounters::default(), next: OnceLock::new() })
    }

    fn is_of(&self, place: Place, label: Option<&'static str>) -> bool {
        // Addresses are compared first: labels are rare, and equal labels mostly have the same address.
        self.asked.is_some_and(|asked| asked.0.is(place) && asked.1 == label)
    }

    /// Returns the key of the attribute, or the label of a call.
    pub(crate) fn template(&self) -> Option<&'static str> {
        self.asked.and_then(|(place, label)| label.or(place.template()))
    }

    /// Returns the public form of the site.
    pub(crate) fn site(&self) -> LockSite {
        let place = self.asked.map(|(place, _)| place);
        LockSite { template: self.template(), module: place.and_then(Place::module), line: place.map(Place::line) }
    }

    /// Returns the file and the line.
    pub(crate) fn line(&self) -> (&'static str, u32) {
        self.asked.map_or(("other", 0), |(place, _)| (place.line().file(), place.line().line()))
    }
}

impl Sites {
    pub(crate) fn new() -> Self {
        let (chains, parts) = ([const { OnceLock::new() }; CHAINS], [const { OnceLock::new() }; PARTS]);
        Self { chains, parts, count: AtomicUsize::new(0), other: Known::new(None, SiteId(u16::MAX)) }
    }

    /// Returns the site at `place`, and adds it if it is new.
    pub(crate) fn at(&self, place: Place, label: Option<&'static str>) -> &Known {
        let mut link = self.chains.get(chain(place, label));
        while let Some(end) = link {
            match end.get() {
                Some(known) if known.is_of(place, label) => return known,
                Some(known) => link = Some(&known.next),
                None => {
                    let Some(added) = self.add(end, place, label) else { break };
                    // Another thread may have added a different site.
                    link = Some(added);
                }
            }
        }
        &self.other
    }

    /// Returns the site with a number.
    pub(crate) fn get(&self, id: SiteId) -> Option<&Known> {
        self.numbered(id.0.into()).or(Some(&self.other))
    }

    fn numbered(&self, number: usize) -> Option<&Known> {
        self.parts.get(number / PART)?.get()?.get(number % PART)?.get().map(|known| &**known)
    }

    /// Adds a site to the end of a chain, if there is room. Returns the link, which may contain the site of another thread.
    #[cold]
    fn add<'s>(&'s self, end: &'s Link, place: Place, label: Option<&'static str>) -> Option<&'s Link> {
        if self.count.load(Ordering::Relaxed) >= PART * PARTS {
            return None;
        }
        // Only one thread runs the closure, so threads that find a new site at the same moment use one number.
        end.get_or_init(|| self.register_site(place, label).unwrap_or_else(|| Arc::clone(&self.other)));
        Some(end)
    }

    /// Returns a new site with a number, if there is room.
    fn register_site(&self, place: Place, label: Option<&'static str>) -> Option<Arc<Known>> {
        let next = |count| (count < PART * PARTS).then_some(count + 1);
        let number = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        let known = Known::new(Some((place, label)), SiteId(u16::try_from(number).ok()?));
        let part = || std::iter::repeat_with(OnceLock::new).take(PART).collect::<Part>();
        // Set before another thread can find the site in its chain. Each number is used once.
        let _ = self.parts.get(number / PART)?.get_or_init(part).get(number % PART)?.set(Arc::clone(&known));
        Some(known)
    }

    /// Returns the statistics of all sites, ordered by line. Sites without calls are omitted.
    pub(crate) fn read(&self) -> Vec<SiteStats> {
        let mut all = BTreeMap::<LockSite, SiteStats>::new();
        let numbered = (0..self.count.load(Ordering::Relaxed)).filter_map(|number| self.numbered(number));
        for known in numbered.chain([&*self.other]) {
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

/// Returns the index of the chain of a site.
fn chain(place: Place, label: Option<&'static str>) -> usize {
    // The multiplication spreads addresses that are near to each other. They differ in its upper bits.
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

    fn labels(count: usize) -> Vec<&'static str> {
        (0..count).map(|n| &*Box::leak(format!("label {n}").into_boxed_str())).collect()
    }

    #[test]
    fn equal_sites_share_an_id_and_different_sites_do_not() {
        let (sites, here) = (Sites::new(), Place::unknown());
        let labels = labels(300);
        let ids: Vec<_> = labels.iter().map(|label| sites.at(here, Some(label)).id).collect();
        for (label, id) in labels.iter().zip(&ids) {
            assert_eq!(sites.at(here, Some(label)).id, *id);
            assert_eq!(sites.get(*id).unwrap().template(), Some(*label));
        }
        assert!(!ids.contains(&sites.at(here, None).id));
        assert_eq!(ids.iter().map(|id| id.0).collect::<std::collections::BTreeSet<_>>().len(), 300);
    }

    #[test]
    fn sites_beyond_the_limit_are_counted_together() {
        let (sites, here) = (Sites::new(), Place::unknown());
        for label in labels(PART * PARTS + 10) {
            let known = sites.at(here, Some(label));
            sites.get(known.id).unwrap().counters.asked();
        }
        let all = sites.read();
        assert_eq!(all.len(), PART * PARTS + 1);
        let other = all.iter().find(|stats| stats.site.line.is_none()).unwrap();
        assert_eq!((other.waiting_now, other.site.to_string()), (10, "other".to_owned()));
    }

    #[test]
    fn concurrent_threads_register_a_site_once() {
        let (sites, here, labels) = (Sites::new(), Place::unknown(), labels(200));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| labels.iter().for_each(|label| sites.at(here, Some(label)).counters.asked()));
            }
        });
        assert_eq!(sites.count.load(Ordering::Relaxed), 200);
        let all = sites.read();
        assert!(all.len() == 200 && all.iter().all(|stats| stats.waiting_now == 4), "{all:?}");
    }
}
