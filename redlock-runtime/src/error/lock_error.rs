//! Error of a lock call. The variants differ in what the caller does next.

use crate::error::held_lock::HeldLock;
use crate::error::lock_holder::LockHolder;
use crate::error::loss::LossCause;
use crate::error::node_error::{NodeError, NodeFailure};
use crate::lock::{InvalidKey, LockKey, OwnerToken};
use crate::text::SingleLine;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Error of a call that did not acquire its lock, or lost it.
///
/// | variant | what the caller does |
/// |---|---|
/// | [`Contended`](Self::Contended), [`TimedOut`](Self::TimedOut) | Try again later: another caller holds the lock (HTTP 409). |
/// | [`TooManyWaiting`](Self::TooManyWaiting) | Try again later: too many calls are waiting (HTTP 409). |
/// | [`WindowTaken`](Self::WindowTaken) | Do nothing: another call has taken this window (HTTP 409). |
/// | [`NoQuorum`](Self::NoQuorum) | Try again later: Redis is not available (HTTP 503). |
/// | [`Refused`](Self::Refused) | Alert an operator: a retry fails again (HTTP 500). |
/// | [`Lost`](Self::Lost) | Check what the cancelled body has done before you repeat it (HTTP 500). |
/// | [`InvalidKey`](Self::InvalidKey) | Reject the value that the client has sent (HTTP 400). |
/// | [`WouldDeadlock`](Self::WouldDeadlock), [`Configuration`](Self::Configuration), [`NotInstalled`](Self::NotInstalled) | Fix the program or its settings (HTTP 500). |
/// | [`Closed`](Self::Closed) | Stop: the manager was shut down (HTTP 503). |
///
/// `Display` writes one line without secrets: it names a node by its address, never by its URL. `Debug` writes the same line, so a
/// `main` that returns the error prints it. `{:#?}` and `dbg!` show the variant with its fields.
///
#[cfg_attr(
    feature = "macros",
    doc = "[Failures](crate::guide::production::failures) in the guide describes what has run when a call fails."
)]
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager};
///
/// fn status(error: &LockError) -> u16 {
///     match error {
///         LockError::Contended { .. } | LockError::TimedOut { .. } => 409,
///         LockError::NoQuorum { .. } | LockError::Closed => 503,
///         _ => 500,
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let _guard = manager.acquire("order:7").await?;
/// let error = manager.try_acquire("order:7").await.unwrap_err();
/// assert_eq!(status(&error), 409);
/// assert!(error.to_string().starts_with("\"order:7\" is held by another owner: the call at "));
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum LockError {
    /// Another owner holds the lock, and the call does not wait.
    #[non_exhaustive]
    Contended {
        /// Requested key.
        key: LockKey,
        /// Remaining lease of that owner, if known. Most owners release the lock earlier. An owner that renews its lease can hold
        /// the lock for longer.
        lease_left: Option<Duration>,
        /// Holder of one of the keys, if it is another call of this manager and holds that key exclusively. The nodes are not asked
        /// for it. See [`holder`](Self::holder).
        holder: Option<Box<LockHolder>>,
    },
    /// Another owner held the lock for the whole `wait`.
    #[non_exhaustive]
    TimedOut {
        /// Requested key.
        key: LockKey,
        /// Duration of the wait.
        waited: Duration,
        /// Remaining lease of that owner, if known. See [`Contended`](Self::Contended).
        lease_left: Option<Duration>,
        /// Exclusive holder of one of the keys, if this process holds it or a majority of the nodes names the same holder. See
        /// [`holder`](Self::holder).
        holder: Option<Box<LockHolder>>,
    },
    /// [`max_waiting`](crate::LockManagerBuilder::max_waiting) calls of this manager already wait for the key. The call has not
    /// waited.
    #[non_exhaustive]
    TooManyWaiting {
        /// Requested key.
        key: LockKey,
        /// Maximum number of waiting calls for one key.
        limit: usize,
    },
    /// Another call has already taken the current [`once_per`](crate::LockRequest::once_per) window. Its job is running or done.
    #[non_exhaustive]
    WindowTaken {
        /// Requested key, without the window.
        key: LockKey,
        /// Number of the window.
        window: i64,
        /// Time until the next window, when the call failed.
        ends_in: Duration,
    },
    /// Too few nodes agreed for a majority. Enough may agree later.
    #[non_exhaustive]
    NoQuorum {
        /// Requested key. `None` if no key is involved, as in [`LockManager::ready`](crate::LockManager::ready).
        key: Option<LockKey>,
        /// Number of nodes that had to agree.
        needed: usize,
        /// Number of all nodes.
        nodes: usize,
        /// One cause for each node that did not agree.
        causes: Box<[NodeFailure]>,
    },
    /// No majority is possible until an operator fixes the cause. Too many nodes refuse because of a wrong password, a missing
    /// permission or an untrusted certificate, or because they are replicas or cluster members. A node that is only down is no
    /// refusal: it may come back.
    #[non_exhaustive]
    Refused {
        /// Requested key. `None` if no key is involved, as in [`LockManager::ready`](crate::LockManager::ready).
        key: Option<LockKey>,
        /// Number of nodes that had to agree.
        needed: usize,
        /// Number of all nodes.
        nodes: usize,
        /// One cause for each node that did not agree. Fix those for which
        /// [`is_transient`](crate::NodeError::is_transient) returns `false`.
        causes: Box<[NodeFailure]>,
    },
    /// The lock was lost: its lease ended, or its key was deleted. The body was cancelled at an `.await`, unless it runs with
    /// `on_lost = continue`. Tasks that the body has spawned continue, unless they inherit the lock
    /// ([`LockGuard::inherit`](crate::LockGuard::inherit)).
    #[non_exhaustive]
    Lost {
        /// Key that was held.
        key: LockKey,
        /// Time for which the lock was provably held.
        held_for: Duration,
        /// Cause of the loss.
        cause: LossCause,
    },
    /// The call would wait for a lock that its own caller holds, and the caller waits for the call. The error is returned at once, and
    /// no command was sent.
    ///
    /// - A call that does not wait returns [`Contended`](Self::Contended) instead.
    /// - A call that is already waiting fails within a second if a late renewal restores the lock of its caller.
    /// - A nested call that can share the lock of its caller (readers, permits, paths) asks the nodes first. It fails after up to a
    ///   second if another call waits in between, or if all permits are taken.
    /// - A caller with access to its guard (`guard = lock`, `with_lock`, [`LockGuard::scope`](crate::LockGuard::scope)) can release
    ///   its lock while the call waits. If this is true for all holders of the lock, the call waits and logs a warning.
    /// - With [`OrderCheck::Deny`](crate::OrderCheck::Deny), a call that takes locks in a different order than other calls also fails
    ///   with this error.
    ///
    /// The caller is the body around the call: that of the attribute, or of [`with_lock`](crate::LockManager::with_lock). A lock of
    /// another manager is recognised if both managers have the same servers at the same addresses. Otherwise the call waits until
    /// its `wait` ends.
    #[non_exhaustive]
    WouldDeadlock {
        /// Requested key.
        key: LockKey,
        /// Lock of the caller, with the lines of both calls.
        held: Box<HeldLock>,
    },
    /// The key or path is invalid: the text, or a value in it, is empty, too long or not a valid path. No command was sent. If the
    /// value came from a client, reject it.
    #[non_exhaustive]
    InvalidKey {
        /// Fault, and the placeholder whose value caused it.
        cause: Box<InvalidKey>,
    },
    /// A setting or an argument is invalid and can never work.
    #[non_exhaustive]
    Configuration {
        /// Fault and remedy.
        message: Cow<'static, str>,
    },
    /// No [`LockManager`](crate::LockManager) is installed.
    NotInstalled,
    /// The manager was shut down.
    Closed,
}

impl LockError {
    pub(crate) fn configuration(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Configuration { message: message.into() }
    }

    /// Returns the key that was requested or held. `None` if no key is involved, and for [`InvalidKey`](Self::InvalidKey).
    ///
    /// A body can call other locked functions and return their errors with `?`. If the key differs from the key of the call that
    /// returned the error, the error comes from such a function, and the body of the call has started.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockKey, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let stock = manager.acquire("stock:7").await?;
    /// let order = LockKey::from("order:7");
    /// let error = manager
    ///     .with_lock(order.clone(), async |_| manager.try_acquire("stock:7").await.map(drop))
    ///     .await
    ///     .unwrap_err();
    /// assert!(error.key() != Some(&order), "the order was locked, and its body has started");
    /// # drop(stock); Ok(()) }
    /// ```
    #[must_use]
    pub const fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Contended { key, .. }
            | Self::TimedOut { key, .. }
            | Self::TooManyWaiting { key, .. }
            | Self::WindowTaken { key, .. }
            | Self::Lost { key, .. }
            | Self::WouldDeadlock { key, .. } => Some(key),
            Self::NoQuorum { key, .. } | Self::Refused { key, .. } => key.as_ref(),
            Self::InvalidKey { .. } | Self::Configuration { .. } | Self::NotInstalled | Self::Closed => None,
        }
    }

    /// Returns the owner token of the holder, if it is known. Log it to find that call.
    ///
    /// The token ends with the id of a manager. [`inspect`](crate::LockManager::inspect) and the command `redlock inspect` find the
    /// process of that manager.
    ///
    /// - After [`TimedOut`](Self::TimedOut), the nodes were asked once, for at most a node timeout. This needs the permission `+eval`.
    /// - After [`Contended`](Self::Contended), the nodes were not asked, to keep such calls cheap. The token is known only if another
    ///   call of this manager holds the lock.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let error = manager.try_acquire("order:7").await.unwrap_err();
    /// assert_eq!(error.holder(), Some(guard.token()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn holder(&self) -> Option<&OwnerToken> {
        match self {
            Self::Contended { holder, .. } | Self::TimedOut { holder, .. } => holder.as_deref().map(LockHolder::token),
            _ => None,
        }
    }

    /// Returns `true` if the same call can succeed later without a fix: [`Contended`](Self::Contended),
    /// [`TimedOut`](Self::TimedOut), [`TooManyWaiting`](Self::TooManyWaiting), [`NoQuorum`](Self::NoQuorum), and
    /// [`WindowTaken`](Self::WindowTaken) in the next window.
    ///
    /// Returns `false` for [`Lost`](Self::Lost): check what the body has done before you repeat it.
    ///
    /// # Examples
    /// ```
    /// use redlock_runtime::LockError;
    ///
    /// /// Status of a response: 409 and 503 mean "try again later", 500 alerts an operator.
    /// fn status(error: &LockError) -> u16 {
    ///     match error {
    ///         error if error.is_contended() => 409,
    ///         error if error.is_transient() => 503,
    ///         LockError::Closed => 503, // this process is stopping
    ///         LockError::InvalidKey { .. } => 400,
    ///         _ => 500,
    ///     }
    /// }
    /// assert_eq!(status(&LockError::NotInstalled), 500);
    /// ```
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        self.is_contended() || matches!(self, Self::NoQuorum { .. })
    }

    /// Returns `true` if other calls hold the lock or wait for it: [`Contended`](Self::Contended), [`TimedOut`](Self::TimedOut),
    /// [`TooManyWaiting`](Self::TooManyWaiting) or [`WindowTaken`](Self::WindowTaken).
    #[must_use]
    pub const fn is_contended(&self) -> bool {
        matches!(
            self,
            Self::Contended { .. } | Self::TimedOut { .. } | Self::TooManyWaiting { .. } | Self::WindowTaken { .. }
        )
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contended { key, holder, .. } => {
                write!(f, "{} is held by another owner", key.quoted())?;
                holder.as_ref().map_or(Ok(()), |holder| holder.fmt(f))
            }
            Self::TimedOut { key, waited, holder, .. } => {
                write!(f, "{} was still held by another owner after a wait of {waited:.1?}", key.quoted())?;
                holder.as_ref().map_or(Ok(()), |holder| holder.fmt(f))
            }
            Self::TooManyWaiting { key, limit } => {
                write!(
                    f,
                    "{} has too many waiting calls in this process, the limit is {limit}: try again later",
                    key.quoted()
                )
            }
            Self::WindowTaken { key, ends_in, .. } => write!(
                f,
                "the current window of {} has already been taken by another call; the next window starts in \
                 {ends_in:.0?}",
                key.quoted()
            ),
            Self::NoQuorum { key, needed, nodes, causes } => {
                without_quorum(f, key.as_ref(), "", (*needed, *nodes), causes)?;
                let is_slow = causes.iter().filter(|cause| cause.error().is_slow()).count();
                let would_agree = nodes.saturating_sub(causes.len()) + is_slow;
                f.write_str(if is_slow > 0 && would_agree >= *needed { NODE_TIMEOUT } else { "" })
            }
            Self::Refused { key, needed, nodes, causes } => {
                without_quorum(f, key.as_ref(), ", and retries fail until this is fixed", (*needed, *nodes), causes)?;
                let holds_data = causes.iter().any(|cause| *cause.error() == NodeError::HoldsData);
                key.as_ref().filter(|_| holds_data).map_or(Ok(()), |key| fmt_separation_hint(f, key))
            }
            Self::Lost { key, cause: LossCause::NotAttached, .. } => {
                write!(f, "{} cannot be attached: another worker has attached it, or its lease has ended", key.quoted())
            }
            Self::Lost { key, held_for, cause } => {
                write!(f, "{} was lost after it was held for {held_for:.1?}: {cause}", key.quoted())
            }
            Self::WouldDeadlock { key, held } => write!(f, "{} {held}", key.quoted()),
            Self::InvalidKey { cause } => cause.fmt(f),
            Self::Configuration { message } => SingleLine(message).fmt(f),
            Self::NotInstalled => f.write_str(
                "no lock manager is installed: call `LockManager::from_env()?.install()?` at the start of main, \
                 or name one with `manager = ..` (a spawned task has no manager from the `scope` of its parent)",
            ),
            Self::Closed => f.write_str("the lock manager was shut down"),
        }
    }
}

/// Remedy if enough nodes answer, but after the node timeout.
const NODE_TIMEOUT: &str = "; if the nodes are only far away, raise `node_timeout`";

/// Writes how to keep locks and data apart, with and without a namespace.
fn fmt_separation_hint(f: &mut fmt::Formatter<'_>, key: &LockKey) -> fmt::Result {
    if key.namespace() == Some("") {
        return f.write_str(
            "; keep locks and data apart, for example with \
                            `LockManager::builder().namespace(\"locks\")`",
        );
    }
    if key.namespace().is_some() {
        write!(f, "; its name in Redis is {:?}", key.name())?;
    }
    f.write_str("; keep locks and data apart: use a namespace that contains only locks")
}

/// Writes the number of missing nodes, and the cause for each node that did not agree.
fn without_quorum(
    f: &mut fmt::Formatter<'_>,
    key: Option<&LockKey>,
    prospect: &str,
    (needed, nodes): (usize, usize),
    causes: &[NodeFailure],
) -> fmt::Result {
    f.write_str("no quorum")?;
    if let Some(key) = key {
        write!(f, " for {}", key.quoted())?;
    }
    write!(f, "{prospect}: {needed} of {nodes} nodes needed, {} agreed", nodes.saturating_sub(causes.len()))?;
    causes.iter().try_for_each(|cause| write!(f, "; {cause}"))
}

impl std::error::Error for LockError {}

impl From<InvalidKey> for LockError {
    fn from(invalid: InvalidKey) -> Self {
        Self::InvalidKey { cause: Box::new(invalid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_quorum_message_names_key_and_causes_on_one_line() {
        let failure = |node: &str, error| NodeFailure { node: node.into(), error };
        let error = LockError::NoQuorum {
            key: Some("order:7".into()),
            needed: 2,
            nodes: 3,
            causes: Box::new([
                failure("10.0.0.1:6379", NodeError::TimedOut(Duration::from_millis(50))),
                failure("10.0.0.2:6379", NodeError::Refused("READONLY replica".into())),
            ]),
        };
        assert_eq!(
            error.to_string(),
            "no quorum for \"order:7\": 2 of 3 nodes needed, 1 agreed; 10.0.0.1:6379: no answer within 50ms; \
             10.0.0.2:6379: answered READONLY replica; if the nodes are only far away, raise `node_timeout`"
        );
    }

    #[test]
    fn refused_message_warns_that_retries_fail() {
        let refusal = NodeError::Refused("NOPERM this user has no permissions".into());
        let causes = Box::new([NodeFailure { node: "10.0.0.1:6379".into(), error: refusal }]);
        let error = LockError::Refused { key: Some("order:7".into()), needed: 1, nodes: 1, causes };
        assert_eq!(
            error.to_string(),
            "no quorum for \"order:7\", and retries fail until this is fixed: 1 of 1 nodes needed, 0 agreed; \
             10.0.0.1:6379: answered NOPERM this user has no permissions"
        );
        assert!(!error.is_transient());
    }

    #[test]
    fn manager_with_a_namespace_is_not_advised_to_set_one() {
        let error = |key| {
            let causes = Box::new([NodeFailure { node: "10.0.0.1:6379".into(), error: NodeError::HoldsData }]);
            LockError::Refused { key: Some(key), needed: 1, nodes: 1, causes }.to_string()
        };
        let (key, other) = (|| LockKey::from("order:7"), LockKey::from("order:8").below("shop:"));
        let several = error(LockKey::of_several([key().below("shop:"), other].iter()));
        let (bare, named) = (error(key()), error(key().below("shop:")));
        assert!(bare.ends_with(
            "is not a lock; keep locks and data apart, for example with `LockManager::builder().namespace(\"locks\")`"
        ));
        for text in [&named, &several] {
            assert!(text.ends_with("apart: use a namespace that contains only locks"), "{text}");
        }
        assert!(named.contains("its name in Redis is \"shop:order:7\"") && !several.contains("its name"), "{named}");
    }

    #[test]
    fn key_with_line_break_is_escaped_in_error_message() {
        let error = LockError::Contended { key: "a\nb".into(), lease_left: None, holder: None };
        assert_eq!(error.to_string(), r#""a\nb" is held by another owner"#);
    }

    #[test]
    fn error_message_shows_several_keys_together() {
        let key = LockKey::of_several([LockKey::from("b"), "a\nb".into()].iter());
        let error = LockError::TimedOut { key, waited: Duration::from_secs(2), lease_left: None, holder: None };
        assert_eq!(error.to_string(), r#""b" + "a\nb" was still held by another owner after a wait of 2.0s"#);
    }

    #[test]
    fn lock_error_is_small_enough_to_return_by_value() {
        assert!(size_of::<LockError>() <= 72, "{}", size_of::<LockError>());
    }
}
