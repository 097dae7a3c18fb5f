//! One item for each option of the attribute. An editor shows its documentation and completes its name. Only code that is expanded
//! for an editor names these items. Each is a hint: the type of the option's value.
//!
//! This file imports nothing, because an editor would offer the imports as options.
#![allow(non_camel_case_types, reason = "they are called as the options are")]

/// Name of the lock: text with arguments, as in `key = "order:{order.id}"`. Required, unless `path` is given.
///
/// An expression gets a name: `key("order:{first}", first = order.lines[0])`. A list locks several keys together:
/// `key = ["account:{from}", "account:{to}"]`. Write `shared("..")` for the keys that are only read.
pub type key = &'static str;

/// Place in a tree, which is locked with everything below it: `path = "/{tenant}/{folder}"`. It replaces `key`. Default: none.
///
/// A list locks several places. The placeholder `{dir:/}` is a value that is itself a path.
pub type path = &'static str;

/// Mode of the lock. `exclusive`: one holder. `shared`: any number of readers.
///
/// Readers and writers are served in the order in which they began to wait. Default: `exclusive`.
pub type mode = crate::Mode;

/// Number of calls, over all processes, that may hold the lock at the same time: `permits = 5`, or an expression.
///
/// Default: one call.
pub type permits = u32;

/// Lifetime of the lock on the nodes without a renewal. After a crash of its holder, the key stays locked for this time.
///
/// A number is in seconds, as in `ttl = 30`. Units are possible: `ttl = 1m30s`. A constant or an expression is a `Duration`.
/// Default: the manager's `default_ttl`.
pub type ttl = std::time::Duration;

/// Maximum time in the queue while another caller holds the key: `wait = 5s`, `none`, `forever`, or an expression.
///
/// If the lock is not free in time, the call returns `LockError::TimedOut`, or `LockError::Contended` with `none`. The body has not
/// run then. Default: the manager's `default_wait`.
pub type wait = crate::Wait;

/// Turns the background renewal of the lease on or off. With renewal, the body may take longer than the `ttl`.
///
/// With `renew = false`, the lock ends with its first lease. Default: `true`.
pub type renew = bool;

/// Maximum time for which the body may hold the lock, as in `max_hold = 5m`. The body is then dropped at its next `.await`, and the
/// call returns `LockError::Lost`.
///
/// Default: none.
pub type max_hold = std::time::Duration;

/// Minimum time for which the key stays taken, as in `min_hold = 1h`, even if the body ends earlier.
///
/// Default: none.
pub type min_hold = std::time::Duration;

/// Time for which this process keeps the released lock for its own next call, as in `linger = 2s`. Zero turns it off.
///
/// Other processes that request the lock get it at once. Default: the manager's `linger`.
pub type linger = std::time::Duration;

/// Length of a time window in which the job runs at most once, as in `once_per = 15m`. All processes may start the job.
///
/// An `Ok` uses the window, even if the body has done nothing: see `LockGuard::reopen_window`. Default: none.
pub type once_per = std::time::Duration;

/// Start of one of the windows of `once_per`, as the time since 1970 in UTC: `window_start = 6h`.
///
/// Default: half a period before each multiple of the period.
pub type window_start = std::time::Duration;

/// Name of the guard in the body: `guard = lock`, and then `lock.ensure_held()?` in the body.
///
/// Default: the body does not see its guard.
pub type guard = crate::LockGuard;

/// Number that grows with each holder, as long as no node loses its data: `fencing, guard = lock`, and then `lock.fencing_token()`
/// in the body.
///
/// Default: none.
pub type fencing = crate::FencedGuard;

/// Lets a nested call with the same key use the lock of its caller, without a command.
///
/// The caller is the enclosing body, so a spawned task has none. Default: the nested call fails with `LockError::WouldDeadlock`.
pub type reentrant = ();

/// Check of the order in which this lock and the locks of its callers are acquired: `on` or `off`.
///
/// Default: `on`, as far as the manager checks it.
pub type order_check = ();

/// Result of a call if another caller held the key until the end of its `wait`. `error`: an error. `skip`: the value for "nothing was
/// done". Otherwise a handler, such as `|error| ..`.
///
/// Default: `error`, like all other errors.
pub type on_contended = crate::LockError;

/// Effect of an `Err` of the body on the window of `once_per`. `keep`: the window is used. `reopen`: the next call in the window
/// runs.
///
/// Default: `keep`.
pub type on_failure = ();

/// Return value of a call that did not acquire the lock, or lost it, as in `on_error = |error| ..`. Use it if the return type
/// cannot carry a `LockError`.
///
/// Default: the error type's `From<LockError>`.
pub type on_error = crate::LockError;

/// Reaction of the body if the lease ends first. `cancel`: it is dropped at its next `.await`. `continue`: it runs to its end
/// **without the lock**.
///
/// Default: `cancel`.
pub type on_lost = ();

/// Release at the end of the call. `background`: it is queued. `confirmed`: the call waits for the answer to its release.
///
/// Default: `background`.
pub type release = ();

/// Manager that acquires the lock, as in `manager = self.locks`. The expression may use the arguments, and is borrowed.
///
/// Default: the installed manager.
pub type manager = crate::LockManager;

/// Path of the library, if it is not `::redlock_runtime`: `crate = my_prelude::redlock_runtime`.
// An item cannot be named `crate`, so this one is shown and not offered.
#[doc(hidden)]
pub type crate_ = ();
