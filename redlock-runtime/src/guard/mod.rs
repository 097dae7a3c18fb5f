//! Guards of held locks, and bodies that run while a lock is held.
//!
//! A guard owns a turn in the local queue of its key, and ends it when it is dropped. The module `protocol` decides when a lease
//! ends. This module stops the bodies.

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
