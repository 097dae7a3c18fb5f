//! An item for each option of the attribute, whose documentation an editor shows and whose name it completes. Only code that
//! is expanded for an editor names them, so what they are is nothing but a hint: the type of the option's value.
//!
//! Nothing is imported here: an editor would offer it beside the options.
#![allow(non_camel_case_types, reason = "they are called as the options are")]

/// What is locked: text with the arguments in it, as in `key = "order:{order.id}"`.
///
/// Anything else gets a name: `key("order:{first}", first = order.lines[0])`. Several are locked together:
/// `key = ["account:{from}", "account:{to}"]`, with `shared("..")` for those that others may share. Required, or `path`.
pub type key = &'static str;

/// A place in a tree, which is locked with everything below: `path = "/{tenant}/{folder}"`, in the place of `key`.
///
/// Several are a list, and `{dir:/}` is a value that is itself a path.
pub type path = &'static str;

/// Whether the lock is for one call alone: `mode = exclusive`, or `mode = shared` together with all others that share the key.
///
/// Served in the order in which they began to wait, readers and writers alike. Default: `exclusive`.
pub type mode = crate::Mode;

/// How many calls may have the lock at a time, over all processes: `permits = 5`, or an expression.
///
/// Default: the lock is for one call alone.
pub type permits = u32;

/// How long the lock lives at the nodes without being renewed: the longest time for which a crashed holder keeps others out.
///
/// Seconds, as in `ttl = 30`, or with units: `ttl = 1m30s`. A constant or an expression may be any `Duration`. Default: the
/// manager's `default_ttl`.
pub type ttl = std::time::Duration;

/// How long to wait while another owner holds the key: `wait = 5s`, `none`, `forever`, or an expression.
///
/// After that the call returns `LockError::TimedOut`, or `LockError::Contended` with `none`, and the body has not run. Default:
/// the manager's `default_wait`.
pub type wait = crate::Wait;

/// Whether the lease is renewed in the background while the body runs, so that the body may take longer than the `ttl`.
///
/// With `renew = false`, the lock ends with its first lease. Default: `true`.
pub type renew = bool;

/// The maximum time for which the body may hold the lock, as in `max_hold = 5m`. The body is then dropped at its next `.await`, and the
/// call returns `LockError::Lost`.
///
/// Default: none.
pub type max_hold = std::time::Duration;

/// The least time for which the key stays taken, as in `min_hold = 1h`, also when the body is over sooner.
///
/// Default: none.
pub type min_hold = std::time::Duration;

/// For how long this process keeps the lock after the body, for its own next call, as in `linger = 2s`; zero for not at all.
///
/// Others that ask for it get it at once. Default: the manager's `linger`.
pub type linger = std::time::Duration;

/// At most one run in each window of time, as in `once_per = 15m`: for a job that all processes start.
///
/// An `Ok` uses up the window, even if the body did nothing: see `LockGuard::reopen_window`. Default: none.
pub type once_per = std::time::Duration;

/// When one of the windows of `once_per` begins, as the time since 1970 in UTC: `window_start = 6h`.
///
/// Default: half a period before each multiple of it.
pub type window_start = std::time::Duration;

/// The name under which the body sees its guard: `guard = lock`, and then `lock.ensure_held()?` in the body.
///
/// Default: the body does not see it.
pub type guard = crate::LockGuard;

/// Issues a number with the lock that grows with each holder, as long as no node loses its data: `fencing, guard = lock`, and then
/// `lock.fencing_token()` in the body.
///
/// Default: none.
pub type fencing = crate::FencedGuard;

/// A call in the body of another with the same key enters at once, without a command, as part of its caller's lock.
///
/// A caller is known by its body, not by task or thread. Default: such a call is told `LockError::WouldDeadlock`.
pub type reentrant = ();

/// Whether the manager looks at the order in which this lock and those of its callers are taken: `on` or `off`.
///
/// Default: `on`, as far as the manager does.
pub type order_check = ();

/// What a call returns when another owner held the key: `error`, `skip`, which returns the value for "nothing was done", or a
/// handler such as `|error| ..`.
///
/// Default: `error`, as any other.
pub type on_contended = crate::LockError;

/// What becomes of the window of `once_per` when the body returns an `Err`: with `keep` it counts as run, and with `reopen`
/// the next call in it runs.
///
/// Default: `keep`.
pub type on_failure = ();

/// What a call returns that did not obtain the lock, or lost it, as in `on_error = |error| ..`: for a return type that cannot
/// carry a `LockError`.
///
/// Default: the error type's `From<LockError>`.
pub type on_error = crate::LockError;

/// What happens to the body if the lease ends first: `cancel` drops it at its next `.await`, and `continue` lets it run to its end
/// **without the lock**.
///
/// Default: `cancel`.
pub type on_lost = ();

/// Whether the call waits for the answer to its release: `background` or `confirmed`.
///
/// Default: `background`.
pub type release = ();

/// Which manager to ask, as in `manager = self.locks`. The expression may use the arguments, and is borrowed.
///
/// Default: the one that was installed.
pub type manager = crate::LockManager;

/// The path of the library, where it is not `::redlock_runtime`: `crate = my_prelude::redlock_runtime`.
// No item can be called `crate`, so this one is shown and not offered.
#[doc(hidden)]
pub type crate_ = ();
