//! Where in the source a lock is asked for.

use crate::error::SourceLine;
use crate::request::site::Site;
use std::panic::Location;

/// Where in the source a lock is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Attribute(&'static Site),
    /// A call that was written by hand.
    Call(&'static Location<'static>),
}

impl Place {
    /// That of a request which nobody has asked for by a public function.
    #[track_caller]
    pub(crate) fn unknown() -> Self {
        Self::Call(Location::caller())
    }

    /// Whether both are one: the same static of an attribute, or the same call. Two of one line may be different ones.
    pub(crate) fn is(self, other: Self) -> bool {
        self.address() == other.address()
    }

    /// What tells it from others.
    pub(crate) fn address(self) -> usize {
        match self {
            Self::Attribute(site) => std::ptr::from_ref(site).addr(),
            Self::Call(location) => std::ptr::from_ref(location).addr(),
        }
    }

    /// The key as the attribute says it.
    pub(crate) fn template(self) -> Option<&'static str> {
        match self {
            Self::Attribute(site) => Some(site.template()),
            Self::Call(_) => None,
        }
    }

    /// The module of the function with the attribute.
    pub(crate) fn module(self) -> Option<&'static str> {
        match self {
            Self::Attribute(site) => Some(site.module()),
            Self::Call(_) => None,
        }
    }

    pub(crate) fn line(self) -> SourceLine {
        match self {
            Self::Attribute(site) => site.line(),
            Self::Call(location) => location.into(),
        }
    }
}
