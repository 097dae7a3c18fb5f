//! Who is at work at the same time, by the entries of a log.

use crate::lock::part::Part;
use crate::lock::{LockKey, Mode};
use crate::stats::{LogEntry, LogEvent};

/// The calls that are at work: the entry by which each of them has its lock, or shares it from then on.
#[derive(Default)]
struct AtWork<'l>(Vec<&'l LogEntry>);

impl<'l> AtWork<'l> {
    /// What an entry makes of it.
    fn note(&mut self, entry: &'l LogEntry) {
        let Self(calls) = self;
        match entry.event {
            LogEvent::Acquired { .. } => calls.push(entry),
            LogEvent::Downgraded {} => {
                let had_it_alone = |before: &&mut &LogEntry| {
                    before.has_the_site_of(entry) && before.parts != entry.parts && before.parts.lowered() == entry.parts
                };
                calls.iter_mut().find(had_it_alone).into_iter().for_each(|before| *before = entry);
            }
            LogEvent::Ended {} => {
                // Of several that have said the same, one is as good as another.
                let is_it = |before: &&'l LogEntry| before.has_the_site_of(entry) && before.parts == entry.parts;
                if let Some(place) = calls.iter().position(is_it) {
                    calls.remove(place);
                }
            }
            LogEvent::Lost { .. }
            | LogEvent::Failed { .. }
            | LogEvent::Cancelled {}
            // It is the caller of a nested call that has the lock, and is counted.
            | LogEvent::Entered {}
            | LogEvent::Left {} => {}
        }
    }

    /// How many of them have that key.
    fn count(&self, key: &LockKey) -> usize {
        self.0.iter().filter(|entry| entry.parts.keys().any(|other| other.name() == key.name())).count()
    }

    /// Those who should not be at work beside the call of `entry`, because of what is called `name`.
    fn in_the_way_of(&self, entry: &LogEntry, name: &str) -> Vec<&'l LogEntry> {
        let others = self.excluded_by(entry, name);
        if others.is_empty() { self.too_many_for(entry, name) } else { others }
    }

    /// Those that have the other permits, if the call of `entry` has one that there is not.
    fn too_many_for(&self, entry: &LogEntry, name: &str) -> Vec<&'l LogEntry> {
        let LogEvent::Acquired { permits: Some(permits), .. } = entry.event else { return Vec::new() };
        let has_one =
            |other: &&LogEntry| other.mode == Mode::Permit && entry.keys_called(name).any(|key| key == &other.key);
        let others: Vec<_> = self.0.iter().copied().filter(has_one).collect();
        if others.len() < permits as usize { Vec::new() } else { others }
    }

    fn excluded_by(&self, entry: &LogEntry, name: &str) -> Vec<&'l LogEntry> {
        let excludes = |other: &LogEntry, part: &Part| {
            let is_meant = entry.is_about(part, name) || other.is_about(part, name);
            is_meant && other.parts.iter().any(|theirs| part.conflicts_with(theirs))
        };
        self.0.iter().copied().filter(|other| entry.parts.iter().any(|part| excludes(other, part))).collect()
    }
}

/// How many had one of the keys that are called `name` at the same time, at the most.
pub(super) fn most_together(entries: &[LogEntry], name: &str) -> usize {
    let (mut at_work, mut most) = (AtWork::default(), 0);
    for entry in entries {
        at_work.note(entry);
        if entry.has_come_in() {
            most = entry.keys_called(name).map(|key| at_work.count(key)).fold(most, usize::max);
        }
    }
    most
}

/// The first entry by which a call has come in although it should not, with those that were at work, where either is called `name`.
pub(super) fn first_beside_others<'l>(
    entries: &'l [LogEntry],
    name: &str,
) -> Option<(&'l LogEntry, Vec<&'l LogEntry>)> {
    let mut at_work = AtWork::default();
    entries.iter().find_map(|entry| {
        let others = if entry.has_come_in() { at_work.in_the_way_of(entry, name) } else { Vec::new() };
        at_work.note(entry);
        (!others.is_empty()).then_some((entry, others))
    })
}

impl LogEntry {
    const fn has_come_in(&self) -> bool {
        matches!(self.event, LogEvent::Acquired { .. })
    }

    /// Whether the call was made where that of `other` was, by the same manager.
    fn has_the_site_of(&self, other: &Self) -> bool {
        self.manager == other.manager && self.template == other.template
    }

    /// Whether the call is one of those that are called `name`: by its template, by its key or by one of its keys.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.keys_called(name).next().is_some()
    }

    /// The keys of the call that are called `name`: all, by its template or what they are called together, or one of them.
    fn keys_called(&self, name: &str) -> impl Iterator<Item = &LockKey> {
        let is_all = self.is_called_as_one(name);
        self.parts.keys().filter(move |key| is_all || key.as_str() == name)
    }

    fn is_called_as_one(&self, name: &str) -> bool {
        self.template == Some(name) || self.key.as_str() == name
    }

    /// Whether this part is what the call has for a key that is called `name`: that key itself, or a place above it.
    fn is_about(&self, part: &Part, name: &str) -> bool {
        let is_above = |key: &LockKey| {
            let rest = key.name().strip_prefix(part.name()).filter(|_| key.is_place() && part.key.is_place());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.is_called_as_one(name) || self.keys_called(name).any(|key| key.name() == part.name() || is_above(key))
    }
}
