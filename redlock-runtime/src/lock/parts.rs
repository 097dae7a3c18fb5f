//! Names of one request, which are acquired together or not at all.

use crate::lock::class::Class;
use crate::lock::part::Part;
use crate::lock::{LockKey, Mode};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::iter::once;
use std::sync::Arc;

/// Parts of one request, ordered by name. Each name occurs once, and there is at least one.
///
/// Two requests exclude each other if and only if they share a name in conflicting classes. This rule is sufficient for all
/// requests, because the names of paths are chosen so that it holds for them, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    first: Part,
    /// Parts after the first.
    others: Arc<[Part]>,
}

impl Parts {
    /// One key that is requested itself.
    pub(crate) fn single(key: LockKey, mode: Mode) -> Self {
        Self { first: Part::of(key, mode), others: Arc::default() }
    }

    /// Merges parts: a repeated name has the stronger class. `None` if there are no parts.
    pub(crate) fn of(parts: impl IntoIterator<Item = Part>) -> Option<Self> {
        let mut sorted: BTreeMap<Arc<str>, Part> = BTreeMap::new();
        for part in parts {
            match sorted.entry(part.key.shared_name()) {
                Entry::Vacant(place) => {
                    place.insert(part);
                }
                Entry::Occupied(mut place) => {
                    let found = place.get_mut();
                    found.strengthen(part.class);
                    // If a key and a place share a name, the result is a key. A key does not cover names below it.
                    if !part.key.is_place() {
                        found.key = part.key;
                    }
                }
            }
        }
        let mut sorted = sorted.into_values();
        let first = sorted.next()?;
        Some(Self { first, others: sorted.collect() })
    }

    pub(crate) const fn first(&self) -> &Part {
        &self.first
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Part> + Clone {
        once(&self.first).chain(self.others.iter())
    }

    pub(crate) fn len(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns `true` if the request has exactly one name.
    pub(crate) fn is_single(&self) -> bool {
        self.others.is_empty()
    }

    /// Returns the class of `name`, if it is one of the names.
    pub(crate) fn class_of(&self, name: &str) -> Option<Class> {
        self.iter().find(|part| part.name() == name).map(|part| part.class)
    }

    /// Returns the requested keys, without their ancestors.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &LockKey> + Clone {
        self.iter().filter(|part| !part.class.is_intent()).map(|part| &part.key)
    }

    /// Returns the common name: the key, if only one was requested.
    pub(crate) fn key(&self) -> LockKey {
        let mut keys = self.keys();
        match (keys.next(), keys.next()) {
            (Some(only), None) => only.clone(),
            (None, _) => self.first().key.clone(),
            (Some(_), Some(_)) => LockKey::of_several(self.keys()),
        }
    }

    /// Returns `Shared` if all parts are shared.
    pub(crate) fn mode(&self) -> Mode {
        let has_exclusive = self.iter().any(|part| part.class.is_alone());
        if has_exclusive { Mode::Exclusive } else { Mode::Shared }
    }

    /// Returns the parts after a downgrade.
    pub(crate) fn lowered(&self) -> Self {
        Self { first: self.first.lowered(), others: self.others.iter().map(Part::lowered).collect() }
    }

    /// Returns `true` if a holder of these parts needs no lock for the others.
    pub(crate) fn cover(&self, others: &Self) -> bool {
        others.iter().all(|other| self.iter().any(|part| part.covers(other)))
    }

    /// Returns the first part that excludes the other request.
    pub(crate) fn conflict_with(&self, others: &Self) -> Option<&Part> {
        self.iter().find(|part| others.iter().any(|other| part.conflicts_with(other)))
    }
}

/// `"a" + "b"`
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key().quoted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockPath;
    use crate::lock::class::Class::{Exclusive, IntentExclusive, IntentShared, Shared};

    fn parts(wanted: &[(&str, Class)]) -> Parts {
        Parts::of(wanted.iter().map(|(name, class)| Part::new(LockKey::from(*name), *class))).unwrap()
    }

    #[test]
    fn parts_are_sorted_and_unique_by_name() {
        let found = parts(&[("b", Shared), ("c", Exclusive), ("a", IntentExclusive), ("b", Exclusive), ("a", Shared)]);
        let pairs: Vec<_> = found.iter().map(|part| (part.name(), part.class)).collect();
        assert_eq!(pairs, [("a", Exclusive), ("b", Exclusive), ("c", Exclusive)]);
        assert_eq!((found.len(), found.is_single(), found.first().name()), (3, false, "a"));
        assert_eq!((found.class_of("b"), found.class_of("d")), (Some(Exclusive), None));
        assert_eq!(Parts::of([]), None);
    }

    #[test]
    fn equal_keys_are_merged_into_one_part() {
        let one = parts(&[("a", Shared), ("a", Shared)]);
        assert!(one.is_single());
        assert_eq!(one, Parts::single("a".into(), Mode::Shared));
        assert_eq!((one.key(), one.to_string()), ("a".into(), r#""a""#.into()));
    }

    #[test]
    fn displayed_parts_omit_intents_above_a_path() {
        let table: [(&[(&str, Class)], &str); 4] = [
            (&[("b", Shared), ("a", Exclusive)], r#""a" + "b""#),
            (&[("/{A}", IntentExclusive), ("/{A}/C", Exclusive)], r#""/{A}/C""#),
            (&[("a\nb", Exclusive), ("\"", Exclusive)], r#""\"" + "a\nb""#),
            (&[("/{A}", IntentShared)], r#""/{A}""#),
        ];
        for (wanted, expected) in table {
            let found = parts(wanted);
            assert_eq!(found.to_string(), expected);
            assert_eq!(found.key().quoted(), expected);
        }
    }

    #[test]
    fn request_is_shared_if_all_parts_are_shared() {
        let table = [
            ([("a", Shared), ("b", Shared)], Mode::Shared),
            ([("a", Shared), ("b", Exclusive)], Mode::Exclusive),
            ([("a", IntentExclusive), ("b", Shared)], Mode::Exclusive),
            ([("a", IntentShared), ("b", Shared)], Mode::Shared),
        ];
        for (wanted, expected) in table {
            assert_eq!(parts(&wanted).mode(), expected);
            assert_eq!(parts(&wanted).lowered().mode(), Mode::Shared);
        }
    }

    #[test]
    fn path_covers_its_descendants_and_a_key_does_not() {
        type Wanted = &'static [(&'static str, Mode)];
        const EXCLUSIVE: Mode = Mode::Exclusive;
        const SHARED: Mode = Mode::Shared;
        let paths = |wanted: &[(&str, Mode)]| {
            Parts::of(wanted.iter().flat_map(|(path, mode)| LockPath::from(*path).parts(*mode))).unwrap()
        };
        let table: [(Wanted, Wanted, bool); 9] = [
            (&[("/A", EXCLUSIVE)], &[("/A/C", EXCLUSIVE)], true),
            (&[("/A", EXCLUSIVE)], &[("/A/C/D", SHARED), ("/A", SHARED)], true),
            (&[("/A", SHARED)], &[("/A/C", SHARED)], true),
            (&[("/A", SHARED)], &[("/A/C", EXCLUSIVE)], false),
            (&[("/A/C", EXCLUSIVE)], &[("/A/CX", EXCLUSIVE)], false),
            (&[("/A/C", EXCLUSIVE)], &[("/A", EXCLUSIVE)], false),
            (&[("/A/C", EXCLUSIVE)], &[("/A/D", EXCLUSIVE)], false),
            (&[("/A", EXCLUSIVE)], &[("/A/C", EXCLUSIVE), ("/B", EXCLUSIVE)], false),
            (&[("/A", EXCLUSIVE), ("/B", SHARED)], &[("/A/C", EXCLUSIVE), ("/B", SHARED)], true),
        ];
        for (held, wanted, expected) in table {
            assert_eq!(paths(held).cover(&paths(wanted)), expected, "{held:?} {wanted:?}");
        }
        let key = parts(&[("/{A}", Exclusive)]);
        assert!(!key.cover(&paths(&[("/A/C", EXCLUSIVE)])) && key.cover(&paths(&[("/A", EXCLUSIVE)])));
        assert!(!paths(&[("/A", EXCLUSIVE)]).cover(&parts(&[("/{A}/C", Exclusive)])), "others may have that key");
        let both = Parts::of(key.iter().cloned().chain(paths(&[("/A", EXCLUSIVE)]).iter().cloned())).unwrap();
        assert!(both.is_single() && !both.cover(&paths(&[("/A/C", EXCLUSIVE)])));
    }

    #[test]
    fn conflict_names_its_key() {
        let ours = parts(&[("a", Shared), ("b", Exclusive)]);
        let conflict = |wanted| ours.conflict_with(&parts(wanted)).map(|part| part.name().to_owned());
        assert_eq!(conflict(&[("a", Shared), ("c", Exclusive)]), None);
        assert_eq!(conflict(&[("a", Exclusive)]).as_deref(), Some("a"));
        assert_eq!(conflict(&[("b", Shared)]).as_deref(), Some("b"));
    }
}
