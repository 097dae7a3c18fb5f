//! Subject of a request: one key, or several.

use crate::lock::LockKey;
use crate::request::LockPart;

/// One key, or several at once.
#[derive(Clone, Debug)]
pub(crate) enum LockTarget {
    Key(LockKey),
    /// Several keys, or places in a tree.
    Parts(Box<[LockPart]>),
}
