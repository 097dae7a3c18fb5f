//! Call sites of lock requests.

use crate::error::SourceLine;
use crate::request::site::Site;
use std::panic::Location;

/// Call site of a lock request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Attribute(&'static Site),
    /// Call of a method, without an attribute.
    Call(&'static Location<'static>),
}

impl Place {
    /// Call site of a request that does not come from a public function.
    #[track_caller]
    pub(crate) fn unknown() -> Self {
        Self::Call(Location::caller())
    }

    /// Returns `true` if both are the same attribute, or the same call. Two calls on one line may be different.
    pub(crate) fn is(self, other: Self) -> bool {
        self.address() == other.address()
    }

    /// Returns the identity of the call site.
    pub(crate) fn address(self) -> usize {
        match self {
            Self::Attribute(site) => std::ptr::from_ref(site).addr(),
            Self::Call(location) => std::ptr::from_ref(location).addr(),
        }
    }

    /// Returns the key as it is written in the attribute.
    pub(crate) fn template(self) -> Option<&'static str> {
        match self {
            Self::Attribute(site) => Some(site.template()),
            Self::Call(_) => None,
        }
    }

    /// Returns the module of the function with the attribute.
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
