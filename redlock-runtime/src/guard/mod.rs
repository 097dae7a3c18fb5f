//! Held locks.

pub(crate) mod fenced_guard;
pub(crate) mod hold;
pub(crate) mod lock_guard;
pub(crate) mod loss_timer;

pub use self::fenced_guard::FencedGuard;
pub use self::lock_guard::LockGuard;
