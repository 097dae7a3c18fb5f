//! Finds calls in a log that ran at the same time.

use crate::lock::part::Part;
use crate::lock::{LockKey, Mode};
use crate::stats::{LogEntry, LogEvent};

/// Running calls: each with the entry by which it acquired its lock, or downgraded it.
#[derive(Default)]
struct AtWork<'l>(Vec<&'l LogEntry>);

impl<'l> AtWork<'l> {
    /// Applies an entry.
    fn note(&mut self, entry: &'l LogEntry) {
        let Self(calls) = self;
        match entry.event {
            LogEvent::Acquired { .. } => calls.push(entry),
            LogEvent::Downgraded {} => {
                let had_it_alone = |before: &&mut &LogEntry| {
                    before.has_same_site(entry) && before.parts != entry.parts && before.parts.lowered() == entry.parts
                };
                calls.iter_mut().find(had_it_alone).into_iter().for_each(|before| *before = entry);
            }
            LogEvent::Ended {} => {
                // Equal calls are interchangeable.
                let is_it = |before: &&'l LogEntry| before.has_same_site(entry) && before.parts == entry.parts;
                if let Some(place) = calls.iter().position(is_it) {
                    calls.remove(place);
                }
            }
            LogEvent::Lost { .. }
            | LogEvent::Failed { .. }
            | LogEvent::Cancelled {}
            // The calling body holds the lock, and is counted.
            | LogEvent::Entered {}
            | LogEvent::Left {} => {}
        }
    }

    /// Returns the number of running calls with that key.
    fn count(&self, key: &LockKey) -> usize {
        self.0.iter().filter(|entry| entry.parts.keys().any(|other| other.name() == key.name())).count()
    }

    /// Returns the running calls that must exclude the call of `entry`, because of a key with this `name`.
    fn conflicting_calls(&self, entry: &LogEntry, name: &str) -> Vec<&'l LogEntry> {
        let others = self.excluded_by(entry, name);
        if others.is_empty() { self.permit_holders_beyond_limit(entry, name) } else { others }
    }

    /// Returns the holders of the other permits, if the call of `entry` exceeds the number of permits.
    fn permit_holders_beyond_limit(&self, entry: &LogEntry, name: &str) -> Vec<&'l LogEntry> {
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

/// Returns the maximum number of calls that held a key with this `name` at the same time.
pub(super) fn max_concurrent_holders(entries: &[LogEntry], name: &str) -> usize {
    let (mut at_work, mut most) = (AtWork::default(), 0);
    for entry in entries {
        at_work.note(entry);
        if entry.is_acquired_event() {
            most = entry.keys_called(name).map(|key| at_work.count(key)).fold(most, usize::max);
        }
    }
    most
}

/// Returns the first call that acquired its lock beside running calls that exclude it, together with these calls. One of them must
/// have this `name`.
pub(super) fn first_conflict<'l>(entries: &'l [LogEntry], name: &str) -> Option<(&'l LogEntry, Vec<&'l LogEntry>)> {
    let mut at_work = AtWork::default();
    entries.iter().find_map(|entry| {
        let others = if entry.is_acquired_event() { at_work.conflicting_calls(entry, name) } else { Vec::new() };
        at_work.note(entry);
        (!others.is_empty()).then_some((entry, others))
    })
}

impl LogEntry {
    const fn is_acquired_event(&self) -> bool {
        matches!(self.event, LogEvent::Acquired { .. })
    }

    /// Returns `true` if both calls have the same manager and the same template.
    fn has_same_site(&self, other: &Self) -> bool {
        self.manager == other.manager && self.template == other.template
    }

    /// Returns `true` if `name` is the template, the key or one of the keys of the call.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.keys_called(name).next().is_some()
    }

    /// Returns the keys of the call with this `name`: all if it is the template or the common name, or one of them.
    fn keys_called(&self, name: &str) -> impl Iterator<Item = &LockKey> {
        let is_all = self.matches_whole_request(name);
        self.parts.keys().filter(move |key| is_all || key.as_str() == name)
    }

    fn matches_whole_request(&self, name: &str) -> bool {
        self.template == Some(name) || self.key.as_str() == name
    }

    /// Returns `true` if the call locks this part for a key with this `name`: the key itself, or one of its ancestors.
    fn is_about(&self, part: &Part, name: &str) -> bool {
        let is_above = |key: &LockKey| {
            let rest = key.name().strip_prefix(part.name()).filter(|_| key.is_place() && part.key.is_place());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.matches_whole_request(name) || self.keys_called(name).any(|key| key.name() == part.name() || is_above(key))
    }
}
