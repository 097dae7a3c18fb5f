//! Options of the calls that break, list and inspect locks.

use crate::lock::OwnerToken;
use crate::protocol::timing::STOPPING;
use crate::text::excerpt;
use std::time::Duration;

/// Default limit of keys in a list: 1000. Too small: an ordinary service does not fit. Too large: a forgotten limit fills memory and
/// screen.
const LIST_LIMIT: usize = 1000;

/// Default timeout of a list: 10 s. Too small: with millions of keys, the list is incomplete. Too large: a caller waits long for a list
/// that never completes.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for [`LockManager::break_lock`](crate::LockManager::break_lock): which holder loses the lock, and how.
///
/// An [`OwnerToken`] converts into options with the default settings.
///
/// # Examples
/// ```
/// # use redlock_runtime::admin::BreakOptions;
/// # use redlock_runtime::{LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let guard = manager.acquire("order:7").await?;
/// let options = BreakOptions::new(*guard.token()).reason("ticket 4711: the worker hangs");
/// let report = manager.break_lock("order:7", options).await;
/// assert!(report.is_broken());
/// assert_eq!(report.reason.as_deref(), Some("ticket 4711: the worker hangs"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "options do nothing until `break_lock` is called with them"]
pub struct BreakOptions {
    pub(crate) holder: BreakTarget,
    pub(crate) wait: Duration,
    pub(crate) is_forced: bool,
    pub(crate) reason: Option<Box<str>>,
}

/// Holder that loses its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BreakTarget {
    Token(OwnerToken),
    /// Value of a lock that is not a token of this library.
    Foreign(Box<str>),
}

impl BreakOptions {
    /// Options to break the lock that is held with `token`, which [`inspect`](crate::LockManager::inspect) returns.
    pub const fn new(token: OwnerToken) -> Self {
        Self::of(BreakTarget::Token(token))
    }

    /// Options to break a lock whose holder is known by its `value` only, for example a lock of another program.
    ///
    /// A `value` that is an [`OwnerToken`] is treated as this token, so a text from an operator can be passed as it is. Any other value
    /// needs [`by_force`](Self::by_force), because its holder cannot be notified.
    pub fn foreign(value: &str) -> Self {
        // Waiters are shown with a mark behind the token, and the class of a single sharer with a letter.
        let token = OwnerToken::parse(value.strip_suffix(['+', 's', 'i', 'r']).unwrap_or(value));
        Self::of(token.map_or_else(|| BreakTarget::Foreign(value.into()), BreakTarget::Token))
    }

    const fn of(holder: BreakTarget) -> Self {
        Self { holder, wait: STOPPING, is_forced: false, reason: None }
    }

    /// Releases the lock at once, without notifying the holder. The next waiter is served immediately.
    ///
    /// Until the holder notices the loss, two bodies may run at once: until its next renewal, after about a third of its `ttl`, or, if it
    /// does not renew, until its lease ends. Use [fencing tokens](crate::FencingToken) if that must never have an effect.
    ///
    /// A foreign lock is deleted if its value is exactly the given one and the key has an expiry. A key without an expiry is not a lock.
    pub const fn by_force(mut self) -> Self {
        self.is_forced = true;
        self
    }

    /// Sets how long to wait for the holder to stop. Default: 5 s. Limit: the remaining lease of the holder.
    ///
    /// If the holder stops later, the next waiter is still served at that moment, as long as the manager lives. So a process that ends
    /// after the call needs a long wait.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the reason, which the event `broken` and the report contain. Default: none.
    ///
    /// The reason stays in this process: neither the holder nor a server receives it. Control characters are escaped. Only the first 300
    /// characters are kept.
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(excerpt(reason).into());
        self
    }
}

impl From<OwnerToken> for BreakOptions {
    fn from(token: OwnerToken) -> Self {
        Self::new(token)
    }
}

/// Options for [`LockManager::list`](crate::LockManager::list): which keys to list, and the limits of the search.
///
/// A text converts into options with this pattern and the default limits.
///
/// # Examples
/// ```
/// use redlock_runtime::admin::ListOptions;
/// use std::time::Duration;
///
/// let options = ListOptions::new("order:*").limit(50).timeout(Duration::from_secs(2));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "options do nothing until `list` is called with them"]
pub struct ListOptions {
    pub(crate) pattern: Box<str>,
    pub(crate) limit: usize,
    pub(crate) timeout: Duration,
}

impl ListOptions {
    /// Options to list the keys that match a pattern of Redis, such as `order:*` or `user:?`.
    ///
    /// The pattern applies to the keys without their namespace.
    pub fn new(pattern: impl Into<Box<str>>) -> Self {
        Self { pattern: pattern.into(), limit: LIST_LIMIT, timeout: LIST_TIMEOUT }
    }

    /// Sets the maximum number of keys. Default: 1000.
    pub const fn limit(mut self, keys: usize) -> Self {
        self.limit = keys;
        self
    }

    /// Sets the time after which the list is returned as far as it is known. Default: 10 s.
    ///
    /// The search reads the names of all keys in the database. Ten million keys take about a minute.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl Default for ListOptions {
    /// Options to list all keys of the namespace.
    fn default() -> Self {
        Self::new("*")
    }
}

impl From<&str> for ListOptions {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

impl From<String> for ListOptions {
    fn from(pattern: String) -> Self {
        Self::new(pattern)
    }
}

/// Options for [`LockManager::inspect_all`](crate::LockManager::inspect_all).
///
/// # Examples
/// ```
/// use redlock_runtime::admin::InspectOptions;
///
/// let options = InspectOptions::default().without_client_names();
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "options do nothing until `inspect_all` is called with them"]
pub struct InspectOptions {
    pub(crate) looks_up_names: bool,
}

impl InspectOptions {
    /// Skips the lookup of the processes behind the tokens, which runs `CLIENT LIST` on each node. Default: the processes are looked up.
    pub const fn without_client_names(mut self) -> Self {
        self.looks_up_names = false;
        self
    }
}

impl Default for InspectOptions {
    fn default() -> Self {
        Self { looks_up_names: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn token_text_is_not_a_foreign_break_target() {
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        for text in [token.to_string(), format!("{token}+"), format!("{token}s")] {
            assert_eq!(BreakOptions::foreign(&text), BreakOptions::new(token));
        }
        assert_eq!(BreakOptions::foreign("worker-3").holder, BreakTarget::Foreign("worker-3".into()));
    }
}
