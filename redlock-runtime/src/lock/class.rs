//! As what a request has one of its names: alone, with others, or for something below it.

use crate::lock::Mode;

/// The modes of multi-granularity locking. A name is wanted by itself, or on the way to something below it, which is an
/// *intent*.
///
/// Source: Gray, Lorie, Putzolu and Traiger, "Granularity of Locks in a Shared Data Base" (1975). Its fifth mode, a share with
/// the intent to change something below, is `Exclusive` here: that is stricter, and one class less at every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Nobody else has anything of it, nor of what is below. X in the literature.
    Exclusive,
    /// Others may look at it as well. S.
    Shared,
    /// Something below it is exclusive. IX.
    IntentExclusive,
    /// Something below it is shared. IS.
    IntentShared,
}

impl Class {
    /// The class of a name that is wanted by itself.
    pub(crate) const fn of(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared | Mode::Permit => Self::Shared,
        }
    }

    /// The class of everything above a name that has this one.
    pub(crate) const fn intent(self) -> Self {
        match self {
            Self::Exclusive | Self::IntentExclusive => Self::IntentExclusive,
            Self::Shared | Self::IntentShared => Self::IntentShared,
        }
    }

    /// What is left of it where others may share what was had alone.
    pub(crate) const fn lowered(self) -> Self {
        match self {
            Self::Exclusive | Self::Shared => Self::Shared,
            Self::IntentExclusive | Self::IntentShared => Self::IntentShared,
        }
    }

    /// Whether it, or something below it, is wanted alone.
    pub(crate) const fn is_alone(self) -> bool {
        matches!(self, Self::Exclusive | Self::IntentExclusive)
    }

    /// Whether the name is only on the way to another one.
    pub(crate) const fn is_intent(self) -> bool {
        matches!(self, Self::IntentExclusive | Self::IntentShared)
    }

    /// Whether two requests cannot have the name at the same time, one in either class.
    pub(crate) const fn conflicts_with(self, other: Self) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared => matches!(other, Self::Exclusive | Self::IntentExclusive),
            Self::IntentExclusive => matches!(other, Self::Exclusive | Self::Shared),
            Self::IntentShared => matches!(other, Self::Exclusive),
        }
    }

    /// Whether it keeps out everybody whom the `other` class keeps out.
    pub(crate) const fn covers(self, other: Self) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared => matches!(other, Self::Shared | Self::IntentShared),
            Self::IntentExclusive => matches!(other, Self::IntentExclusive | Self::IntentShared),
            Self::IntentShared => matches!(other, Self::IntentShared),
        }
    }

    /// The weakest class that covers both.
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
    fn conflicts_are_those_of_the_literature() {
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
    fn a_class_covers_another_that_keeps_nobody_else_out() {
        for (one, other) in pairs() {
            let keeps_out = |class: Class| ALL.map(|third| class.conflicts_with(third));
            let is_covered = keeps_out(other).into_iter().zip(keeps_out(one)).all(|(theirs, ours)| ours || !theirs);
            assert_eq!(one.covers(other), is_covered, "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_stronger_of_two_is_the_weakest_that_covers_both() {
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
    fn what_is_above_a_name_and_what_is_left_of_it() {
        assert_eq!(ALL.map(Class::intent), [IntentExclusive, IntentShared, IntentExclusive, IntentShared]);
        assert_eq!(ALL.map(Class::lowered), [Shared, Shared, IntentShared, IntentShared]);
        assert_eq!(ALL.map(Class::is_intent), [false, false, true, true]);
        assert_eq!(ALL.map(Class::is_alone), [true, false, true, false]);
        assert_eq!([Mode::Exclusive, Mode::Shared, Mode::Permit].map(Class::of), [Exclusive, Shared, Shared]);
    }
}
