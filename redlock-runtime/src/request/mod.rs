//! Requests, the policy of a manager for options that a request leaves open, and detached locks.
//!
//! These are values with their limits, and with errors for values out of range. The module `client` handles requests.

pub(crate) mod acquire_request;
pub(crate) mod admin_options;
pub(crate) mod after_restart;
pub(crate) mod detached;
mod detached_parts;
pub(crate) mod fenced_set;
pub(crate) mod fencing;
mod invalid_placeholder;
#[cfg(feature = "inventory")]
pub(crate) mod listed_site;
pub(crate) mod lock_part;
pub(crate) mod lock_request;
pub(crate) mod lock_target;
mod of_mode;
pub(crate) mod of_parts;
mod of_permits;
pub(crate) mod order_check;
pub(crate) mod place;
pub(crate) mod policy;
pub(crate) mod site;
pub(crate) mod wait;

pub(crate) use self::admin_options::BreakTarget;
pub use self::admin_options::{BreakOptions, InspectOptions, ListOptions};
pub use self::after_restart::AfterRestart;
pub use self::detached::DetachedLock;
pub use self::fenced_set::FencedSet;
pub use self::fencing::{Fenced, Unfenced};
pub use self::lock_part::LockPart;
pub use self::lock_request::LockRequest;
pub use self::order_check::OrderCheck;
pub(crate) use self::place::Place;
pub(crate) use self::policy::Policy;
pub use self::wait::Wait;
