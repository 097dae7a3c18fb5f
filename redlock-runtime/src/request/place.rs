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
    pub(crate) fn line(self) -> SourceLine {
        match self {
            Self::Attribute(site) => site.line(),
            Self::Call(location) => location.into(),
        }
    }
}
