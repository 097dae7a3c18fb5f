//! Held locks as users have them, and bodies that run while a lock is held.
//!
//! A guard holds a turn in the line of its key, and ends it when it is dropped. When a body must stop is decided by what
//! `protocol` says of the lease; here is only who is stopped, and how.

pub(crate) mod fenced_guard;
pub(crate) mod fencing;
pub(crate) mod held;
pub(crate) mod hold;
mod lock_guard;
pub(crate) mod loss_timer;
pub(crate) mod scope;

pub use self::fenced_guard::FencedGuard;
pub(crate) use self::fencing::Acquired;
pub use self::fencing::Fencing;
pub use self::lock_guard::LockGuard;
