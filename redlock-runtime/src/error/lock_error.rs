//! What can go wrong, sorted by what the caller does next.

use crate::error::held_lock::HeldLock;
use crate::error::loss::LossCause;
use crate::error::node_error::{NodeError, NodeFailure};
use crate::lock::{InvalidKey, LockKey, OwnerToken};
use crate::text::SingleLine;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Why a lock was not obtained, or not kept.
///
/// | variant | the caller |
/// |---|---|
/// | [`Contended`](Self::Contended), [`TimedOut`](Self::TimedOut) | tries again later: somebody else is at work (HTTP 409) |
/// | [`TooManyWaiting`](Self::TooManyWaiting) | tries again later: too many calls wait already (HTTP 409) |
/// | [`WindowTaken`](Self::WindowTaken) | has nothing to do: the job of this window is another call's (HTTP 409) |
/// | [`NoQuorum`](Self::NoQuorum) | tries again later: Redis is not available (HTTP 503) |
/// | [`Refused`](Self::Refused) | calls somebody who mends it: no later try will do better (HTTP 500) |
/// | [`Lost`](Self::Lost) | checks what the stopped body had done before it repeats the work |
/// | [`InvalidKey`](Self::InvalidKey) | tells whoever has sent the value (HTTP 400) |
/// | [`WouldDeadlock`](Self::WouldDeadlock), [`Configuration`](Self::Configuration), [`NotInstalled`](Self::NotInstalled) | is wrong and must be mended |
/// | [`Closed`](Self::Closed) | is shutting down |
///
/// The `Display` text is one line without secrets: a node is named by its address, never by its URL. `Debug` is the same text, so
/// that a `main` which returns the error prints it; `{:#?}` and `dbg!` show the variant with its fields.
///
#[cfg_attr(feature = "macros", doc = "What has run by then stands in [the guide](crate::guide::production::failures).")]
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
/// assert_eq!(error.to_string(), "\"order:7\" is held by another owner");
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum LockError {
    /// Another owner holds the key, and the caller did not want to wait.
    #[non_exhaustive]
    Contended {
        /// What was asked for.
        key: LockKey,
        /// How much of the lease of that owner was left, as far as is known. It is an upper bound only when the lease is not
        /// renewed; most owners give a lock back long before.
        lease_left: Option<Duration>,
        /// Under which token that owner has it, as far as is known without asking for it: when it is another call of this
        /// manager that has one of the keys alone. See [`holder`](Self::holder).
        holder: Option<Box<OwnerToken>>,
    },
    /// Another owner held the key during the whole `wait`.
    #[non_exhaustive]
    TimedOut {
        /// What was asked for.
        key: LockKey,
        /// How long the call waited.
        waited: Duration,
        /// How much of the lease of that owner was left, as in [`Contended`](Self::Contended).
        lease_left: Option<Duration>,
        /// Under which token that owner has it, if a majority of the nodes has said so. Several keys may have several owners, of which
        /// this is one. See [`holder`](Self::holder).
        holder: Option<Box<OwnerToken>>,
    },
    /// As many calls of this manager wait for the key as [`max_waiting`](crate::LockManagerBuilder::max_waiting) allows. The call failed at
    /// once.
    #[non_exhaustive]
    TooManyWaiting {
        /// The key of the call.
        key: LockKey,
        /// Maximum number of waiting calls for one key.
        limit: usize,
    },
    /// The window of a [`once_per`](crate::LockRequest::once_per) is another call's, which is at work or was.
    #[non_exhaustive]
    WindowTaken {
        /// What was asked for, without the window.
        key: LockKey,
        /// The number of the window.
        window: i64,
        /// How long the window had still to go when the call asked.
        ends_in: Duration,
    },
    /// Too few nodes answered for a majority, and enough may do so later.
    #[non_exhaustive]
    NoQuorum {
        /// What was asked for; `None` when no key is involved, as in [`LockManager::ready`](crate::LockManager::ready).
        key: Option<LockKey>,
        /// How many nodes had to agree.
        needed: usize,
        /// How many nodes there are.
        nodes: usize,
        /// One cause for each node that did not agree.
        causes: Box<[NodeFailure]>,
    },
    /// So many nodes refuse for a reason that does not pass by itself that no majority is possible: a wrong password, a
    /// missing permission, a certificate that is not trusted, a replica, a member of a cluster. Nodes that are merely down
    /// count as nodes that come back.
    #[non_exhaustive]
    Refused {
        /// What was asked for; `None` when no key is involved, as in [`LockManager::ready`](crate::LockManager::ready).
        key: Option<LockKey>,
        /// How many nodes had to agree.
        needed: usize,
        /// How many nodes there are.
        nodes: usize,
        /// One cause for each node that did not agree; those that are not
        /// [`is_transient`](crate::NodeError::is_transient) are to be mended.
        causes: Box<[NodeFailure]>,
    },
    /// The lock was lost: its lease ended, or its key was deleted. The body was dropped at an `.await`, unless it runs with
    /// `on_lost = continue`. Tasks that it has spawned are not stopped, unless they inherit the lock
    /// ([`LockGuard::inherit`](crate::LockGuard::inherit)).
    #[non_exhaustive]
    Lost {
        /// What was held.
        key: LockKey,
        /// How long it was provably held.
        held_for: Duration,
        /// Why it is not held any more.
        cause: LossCause,
    },
    /// The call would wait for a lock of its own caller, which waits for the call. It is told so at once, and nothing was
    /// sent. A call that waits already is told within a second, when a renewal that is answered late gives its caller the lock
    /// back. A call that does not wait is told [`Contended`](Self::Contended) instead.
    ///
    /// A caller is known by its body: the attribute, or [`with_lock`](crate::LockManager::with_lock), around the call. One that
    /// sees its guard (`guard = lock`, `with_lock`, [`LockGuard::scope`](crate::LockGuard::scope)) may give its lock back while the
    /// call waits. Where all that have the lock do, it is a warning in the log, and the call waits.
    ///
    /// A lock of another manager is known to be the same if both managers have the same servers, by the same addresses. Otherwise
    /// the call waits in vain, until its `wait` is over.
    ///
    /// With [`OrderCheck::Deny`](crate::OrderCheck::Deny), also a call that takes locks in another order than others did.
    #[non_exhaustive]
    WouldDeadlock {
        /// What was asked for.
        key: LockKey,
        /// What the caller holds, with the lines of both.
        held: Box<HeldLock>,
    },
    /// What was asked for cannot be locked, because it, or a value in it, is empty, too long or no place in a tree. Nothing was sent,
    /// and no other call is refused by it. Where values come from outside, it is whoever has sent them who can mend it.
    #[non_exhaustive]
    InvalidKey {
        /// What is wrong, and with the value of which placeholder.
        cause: Box<InvalidKey>,
    },
    /// A setting or an argument that can never work.
    #[non_exhaustive]
    Configuration {
        /// What is wrong and what to write instead.
        message: Cow<'static, str>,
    },
    /// No [`LockManager`](crate::LockManager) was installed before the first call that needs one.
    NotInstalled,
    /// The manager was shut down.
    Closed,
}

impl LockError {
    pub(crate) fn configuration(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Configuration { message: message.into() }
    }

    /// What was asked for, or held. `None` where no key is involved, and for [`InvalidKey`](Self::InvalidKey), which is none.
    ///
    /// A body may call other locked functions and pass their errors on with `?`. An error that has another key than the
    /// call which returned it comes from such a function, and the body of the call had begun.
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
    /// assert!(error.key() != Some(&order), "the order was locked, and its body had begun");
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

    /// The token of the call that has the lock, as far as is known: for the log, and for whoever looks for that call.
    ///
    /// Its text ends with the id of a manager, by which [`inspect`](crate::LockManager::inspect) and the command
    /// `redlock inspect` find its process. After [`TimedOut`](Self::TimedOut) the nodes were asked for it, once and for no
    /// longer than a node timeout; that needs the permission `+eval`. After [`Contended`](Self::Contended) they were not,
    /// since a call that does not wait should cost little and says all the same that the lock is taken: it is known then when
    /// another call of this manager has the lock.
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
            Self::Contended { holder, .. } | Self::TimedOut { holder, .. } => holder.as_deref(),
            _ => None,
        }
    }

    /// Whether the same call may succeed later, without anybody mending anything: [`Contended`](Self::Contended),
    /// [`TimedOut`](Self::TimedOut), [`TooManyWaiting`](Self::TooManyWaiting), [`NoQuorum`](Self::NoQuorum), and [`WindowTaken`](Self::WindowTaken) in the next window. After [`Lost`](Self::Lost) it may as well, but what
    /// the body had done comes first.
    ///
    /// # Examples
    /// ```
    /// use redlock_runtime::LockError;
    ///
    /// /// What a service answers: 409 and 503 mean "try again later", 500 means that somebody has to look.
    /// fn status(error: &LockError) -> u16 {
    ///     match error {
    ///         error if error.is_contended() => 409,
    ///         error if error.is_transient() => 503,
    ///         LockError::Closed => 503, // by this process, which is ending
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
            Self::Contended { key, .. } => write!(f, "{} is held by another owner", key.quoted()),
            Self::TimedOut { key, waited, .. } => {
                write!(f, "{} was still held by another owner after a wait of {waited:.1?}", key.quoted())
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
                key.as_ref().filter(|_| holds_data).map_or(Ok(()), |key| apart_from_data(f, key))
            }
            Self::Lost { key, held_for, cause } => {
                write!(f, "{} was lost after it was held for {held_for:.1?}: {cause}", key.quoted())
            }
            Self::WouldDeadlock { key, held } => write!(f, "{} {held}", key.quoted()),
            Self::InvalidKey { cause } => cause.fmt(f),
            Self::Configuration { message } => SingleLine(message).fmt(f),
            Self::NotInstalled => f.write_str(
                "no lock manager is installed: call `LockManager::from_env()?.install()?` at the start of main, \
                 or name one with `manager = ..`",
            ),
            Self::Closed => f.write_str("the lock manager was shut down"),
        }
    }
}

/// The cure when nodes would be enough that answer later than they may.
const NODE_TIMEOUT: &str = "; if the nodes are only far away, raise `node_timeout`";

/// Writes how to keep locks from data, for those who have a namespace and for those who have none.
fn apart_from_data(f: &mut fmt::Formatter<'_>, key: &LockKey) -> fmt::Result {
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

/// Writes that there is no quorum, and for each node why it has not agreed.
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
    fn one_line_that_names_key_and_causes() {
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
    fn a_refusal_says_that_waiting_is_of_no_use() {
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
    fn who_has_a_namespace_is_not_told_to_take_one() {
        let error = |key| {
            let causes = Box::new([NodeFailure { node: "10.0.0.1:6379".into(), error: NodeError::HoldsData }]);
            LockError::Refused { key: Some(key), needed: 1, nodes: 1, causes }.to_string()
        };
        let (key, other) = (|| LockKey::from("order:7"), LockKey::from("order:8").below("shop:"));
        let several = error(LockKey::of_several([key().below("shop:"), other].iter()));
        let (bare, named) = (error(key()), error(key().below("shop:")));
        assert!(bare.ends_with(
            "is no lock; keep locks and data apart, for example with `LockManager::builder().namespace(\"locks\")`"
        ));
        for text in [&named, &several] {
            assert!(text.ends_with("apart: use a namespace that contains only locks"), "{text}");
        }
        assert!(named.contains("its name in Redis is \"shop:order:7\"") && !several.contains("is called"), "{named}");
    }

    #[test]
    fn a_hostile_key_stays_on_one_line() {
        let error = LockError::Contended { key: "a\nb".into(), lease_left: None, holder: None };
        assert_eq!(error.to_string(), r#""a\nb" is held by another owner"#);
    }

    #[test]
    fn several_keys_are_shown_together() {
        let key = LockKey::of_several([LockKey::from("b"), "a\nb".into()].iter());
        let error = LockError::TimedOut { key, waited: Duration::from_secs(2), lease_left: None, holder: None };
        assert_eq!(error.to_string(), r#""b" + "a\nb" was still held by another owner after a wait of 2.0s"#);
    }

    #[test]
    fn small_enough_to_return_by_value() {
        assert!(size_of::<LockError>() <= 72, "{}", size_of::<LockError>());
    }
}
