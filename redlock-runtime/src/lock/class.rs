//! Lock classes: the mode of a request at one of its names.

use crate::lock::Mode;

/// Mode of multi-granularity locking. A request locks a name itself, or passes it on the way to a name below it: that is an
/// *intent*.
///
/// Source: Gray, Lorie, Putzolu and Traiger, "Granularity of Locks in a Shared Data Base" (1975). Its fifth mode, a share with the
/// intent to change something below, is `Exclusive` here. That is stricter, and every node has one class less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// One holder, which also excludes all holders of names below. X in the literature.
    Exclusive,
    /// Several readers. S.
    Shared,
    /// A name below is locked exclusively. IX.
    IntentExclusive,
    /// A name below is locked shared. IS.
    IntentShared,
}

impl Class {
    /// Returns the class of a name that is requested itself.
    pub(crate) const fn of(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared | Mode::Permit => Self::Shared,
        }
    }

    /// Returns the class of all ancestors of a name with this class.
    pub(crate) const fn intent(self) -> Self {
        match self {
            Self::Exclusive | Self::IntentExclusive => Self::IntentExclusive,
            Self::Shared | Self::IntentShared => Self::IntentShared,
        }
    }

    /// Returns the class after a downgrade.
    pub(crate) const fn lowered(self) -> Self {
        match self {
            Self::Exclusive | Self::Shared => Self::Shared,
            Self::IntentExclusive | Self::IntentShared => Self::IntentShared,
        }
    }

    /// Returns `true` if the name, or a name below it, is locked exclusively.
    pub(crate) const fn is_alone(self) -> bool {
        matches!(self, Self::Exclusive | Self::IntentExclusive)
    }

    /// Returns `true` if the name is only an ancestor of a requested one.
    pub(crate) const fn is_intent(self) -> bool {
        matches!(self, Self::IntentExclusive | Self::IntentShared)
    }

    /// Returns `true` if two requests with these classes cannot hold the name at the same time.
    pub(crate) const fn conflicts_with(self, other: Self) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared => matches!(other, Self::Exclusive | Self::IntentExclusive),
            Self::IntentExclusive => matches!(other, Self::Exclusive | Self::Shared),
            Self::IntentShared => matches!(other, Self::Exclusive),
        }
    }

    /// Returns `true` if this class excludes every request that the `other` class excludes.
    pub(crate) const fn covers(self, other: Self) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared => matches!(other, Self::Shared | Self::IntentShared),
            Self::IntentExclusive => matches!(other, Self::IntentExclusive | Self::IntentShared),
            Self::IntentShared => matches!(other, Self::IntentShared),
        }
    }

    /// Returns the weakest class that covers both.
    pub(crate) const fn stronger(self, other: Self) -> Self {
        if self.covers(other) {
            self
        } else if other.covers(self) {
            other
        } else {
            Self::Exclusive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Class::{self, Exclusive, IntentExclusive, IntentShared, Shared};
    use crate::lock::Mode;

    const ALL: [Class; 4] = [Exclusive, Shared, IntentExclusive, IntentShared];

    fn pairs() -> impl Iterator<Item = (Class, Class)> {
        ALL.into_iter().flat_map(|one| ALL.map(|other| (one, other)))
    }

    #[test]
    fn class_conflicts_match_the_standard_matrix() {
        let compatible = [
            (Shared, Shared),
            (Shared, IntentShared),
            (IntentExclusive, IntentExclusive),
            (IntentExclusive, IntentShared),
            (IntentShared, IntentShared),
        ];
        for (one, other) in pairs() {
            let goes = compatible.contains(&(one, other)) || compatible.contains(&(other, one));
            assert_eq!(one.conflicts_with(other), !goes, "{one:?} {other:?}");
        }
    }

    #[test]
    fn class_covers_another_if_it_conflicts_with_a_superset() {
        for (one, other) in pairs() {
            let keeps_out = |class: Class| ALL.map(|third| class.conflicts_with(third));
            let is_covered = keeps_out(other).into_iter().zip(keeps_out(one)).all(|(theirs, ours)| ours || !theirs);
            assert_eq!(one.covers(other), is_covered, "{one:?} {other:?}");
        }
    }

    #[test]
    fn stronger_class_is_the_weakest_that_covers_both() {
        for (one, other) in pairs() {
            let stronger = one.stronger(other);
            assert!(stronger.covers(one) && stronger.covers(other), "{one:?} {other:?}");
            let weaker = ALL.iter().filter(|class| **class != stronger && stronger.covers(**class));
            assert!(weaker.into_iter().all(|class| !(class.covers(one) && class.covers(other))), "{one:?} {other:?}");
            assert_eq!(stronger, other.stronger(one));
        }
        assert_eq!(Shared.stronger(IntentExclusive), Exclusive);
    }

    #[test]
    fn class_has_its_intent_and_downgraded_class() {
        assert_eq!(ALL.map(Class::intent), [IntentExclusive, IntentShared, IntentExclusive, IntentShared]);
        assert_eq!(ALL.map(Class::lowered), [Shared, Shared, IntentShared, IntentShared]);
        assert_eq!(ALL.map(Class::is_intent), [false, false, true, true]);
        assert_eq!(ALL.map(Class::is_alone), [true, false, true, false]);
        assert_eq!([Mode::Exclusive, Mode::Shared, Mode::Permit].map(Class::of), [Exclusive, Shared, Shared]);
    }
}
