//! Locks that a worker has left on the nodes for another worker.

use crate::error::LockError;
use crate::lock::parts::Parts;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::request::acquire_request::AcquireRequest;
use crate::request::lock_target::LockTarget;
use crate::request::{Fenced, LockPart, Unfenced, detached_parts};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

/// Lock that its holder has left on the nodes with [`LockGuard::detach`](crate::LockGuard::detach). Another worker takes it over
/// with [`LockManager::attach`](crate::LockManager::attach).
///
/// It is plain text that travels with a job: [`Display`](fmt::Display) writes it and [`FromStr`] reads it. With the feature
/// `serde`, the traits of serde use this text, too. Anyone with the text can take over the lock. It can be attached once, even if
/// it is delivered several times.
///
/// # Examples
/// ```
/// # use redlock_runtime::{DetachedLock, LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locks = LockManager::in_memory();
/// let message = locks.acquire("order:7").await?.detach().to_string();
/// // .. in another worker:
/// let guard = locks.attach(message.parse::<DetachedLock>()?).await?;
/// assert!(guard.is_held());
/// guard.release().await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "without it, the lock cannot be attached or released before its `ttl` is over"]
pub struct DetachedLock<F = Unfenced> {
    key: LockKey,
    mode: Mode,
    /// Parts of the lock. `None` for a lock of one key.
    parts: Option<Box<[LockPart]>>,
    token: OwnerToken,
    ttl: Duration,
    fencing: PhantomData<fn() -> F>,
}

/// Prefix of the `ttl` of a shared lock. Versions without shared locks expect a number there, and reject the text. Otherwise they
/// would attach the lock as an exclusive one.
const SHARED: &str = "shared:";

/// Prefix of the `ttl` of a lock of several keys, or of a path. Versions with one key per lock reject it as well.
const PARTS: &str = "parts:";

impl DetachedLock {
    pub(crate) fn new(parts: &Parts, token: OwnerToken, ttl: Duration) -> Self {
        let (key, mode) = (parts.key(), parts.mode());
        let is_key = parts.is_single() && !key.is_place();
        Self { key, mode, parts: (!is_key).then(|| detached_parts::of(parts)), token, ttl, fencing: PhantomData }
    }

    /// Requests a [fencing token](crate::FencingToken) when the lock is attached. The token is larger than all earlier ones of the
    /// lock.
    pub fn fencing(self) -> DetachedLock<Fenced> {
        self.convert()
    }

    /// Returns a request for the same keys in the same mode.
    pub(crate) fn request(&self) -> AcquireRequest {
        let what = match &self.parts {
            None => LockTarget::Key(self.key.clone()),
            Some(parts) => LockTarget::Parts(parts.clone()),
        };
        AcquireRequest { mode: self.mode, ..AcquireRequest::new(what) }
    }

    /// Reads a lock whose parts have this text.
    fn of_parts(text: &str, token: OwnerToken, ttl: Duration) -> Option<Self> {
        let parts = detached_parts::read(text)?;
        let request = AcquireRequest::new(LockTarget::Parts(parts));
        Some(Self::new(&request.names("").ok()?, token, ttl))
    }
}

impl<F> DetachedLock<F> {
    /// Returns the locked key. For a lock of several keys, their common name, as in `"a" + "b"`.
    #[must_use]
    pub const fn key(&self) -> &LockKey {
        &self.key
    }

    /// Returns the mode of the lock. It stays the same when the lock is attached.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the token under which the nodes store the lock until it is attached.
    #[must_use]
    pub const fn token(&self) -> &OwnerToken {
        &self.token
    }

    /// Returns the lifetime of the lock on the nodes, from its last renewal.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the lock with or without a request for a fencing token.
    pub(crate) fn convert<T>(self) -> DetachedLock<T> {
        let Self { key, mode, parts, token, ttl, .. } = self;
        DetachedLock { key, mode, parts, token, ttl, fencing: PhantomData }
    }
}

/// Writes `<token> <ttl in milliseconds> <key>`, or `<token> shared:<ttl in milliseconds> <key>`. Several keys have the prefix
/// `parts:`. Then each key has its mode and its length, as in `x9:account:7s6:config`.
impl<F> fmt::Display for DetachedLock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parts) = &self.parts {
            write!(f, "{} {PARTS}{} ", self.token, self.ttl.as_millis())?;
            return detached_parts::write(f, parts);
        }
        let mode = if self.mode.is_shared() { SHARED } else { "" };
        write!(f, "{} {mode}{} {}", self.token, self.ttl.as_millis(), self.key.as_str())
    }
}

impl FromStr for DetachedLock {
    type Err = LockError;

    /// Parses the text of a detached lock.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the text is not that of a detached lock.
    fn from_str(text: &str) -> Result<Self, LockError> {
        let parse = || {
            let (token, rest) = text.split_once(' ')?;
            let (ttl, key) = rest.split_once(' ')?;
            let token = OwnerToken::parse(token)?;
            if let Some(ttl) = ttl.strip_prefix(PARTS) {
                return Self::of_parts(key, token, Duration::from_millis(ttl.parse().ok()?));
            }
            let (mode, ttl) = ttl.strip_prefix(SHARED).map_or((Mode::Exclusive, ttl), |ttl| (Mode::Shared, ttl));
            let ttl = Duration::from_millis(ttl.parse().ok()?);
            Some(Self { key: key.into(), mode, parts: None, token, ttl, fencing: PhantomData })
        };
        parse().ok_or_else(|| LockError::configuration("this is not the text of a detached lock"))
    }
}

#[cfg(feature = "serde")]
impl<F> serde_core::Serialize for DetachedLock<F> {
    fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde_core::Deserialize<'de> for DetachedLock {
    fn deserialize<D: serde_core::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde_core::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockRequest;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn detached_lock_text_round_trips() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        for key in ["order:7", "two words", " ", "{order}\n9", "", "shared:7", "shared: 7"] {
            for mode in [Mode::Exclusive, Mode::Shared] {
                let detached = DetachedLock::new(&Parts::single(key.into(), mode), token, Duration::from_secs(30));
                assert_eq!(detached.to_string().parse::<DetachedLock>().unwrap(), detached);
            }
        }
    }

    #[test]
    fn exclusive_detached_lock_has_the_old_text_and_a_shared_one_has_not() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        let text = |mode| {
            DetachedLock::new(&Parts::single("order:7".into(), mode), token, Duration::from_secs(30)).to_string()
        };
        assert_eq!(text(Mode::Exclusive), format!("{token} 30000 order:7"));
        // Older versions read a number after the first space.
        assert_eq!(text(Mode::Shared), format!("{token} shared:30000 order:7"));
    }

    #[test]
    fn detached_text_of_several_keys_is_refused_by_old_versions() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        let hostile = ["a", "x1:a", "two words", "1:", "\u{1F512}\n", "{order}", "/{A}/C", "parts:1"];
        let requests = [
            LockRequest::all(hostile),
            LockRequest::all(hostile).mode(Mode::Shared),
            LockRequest::all(hostile.map(LockPart::shared).into_iter().chain(["b".into()])),
            LockRequest::path("/A"),
            LockRequest::path(crate::LockPath::of(hostile)),
            LockRequest::all([LockPart::path("/A/C"), LockPart::path("/A").mode(Mode::Shared), "a".into()]),
        ];
        for request in requests {
            let parts = request.inner.names("shop:").unwrap();
            let detached = DetachedLock::new(&parts, token, Duration::from_secs(30));
            let text = detached.to_string();
            assert!(text.starts_with(&format!("{token} parts:30000 ")), "{text}");
            let read: DetachedLock = text.parse().unwrap();
            assert_eq!(read, detached);
            assert_eq!(read.request().names("shop:").unwrap(), parts, "{text}");
        }
        let text =
            DetachedLock::new(&LockRequest::all(["b", "a:1"]).inner.names("").unwrap(), token, Duration::from_secs(1));
        assert_eq!(text.to_string(), format!("{token} parts:1000 x3:a:1x1:b"));
    }

    #[test]
    fn invalid_detached_lock_texts_are_refused() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        let others =
            ["order:7", "-1 order:7", "shared: order:7", "shared:-1 order:7", "Shared:30 order:7", "read:30 a"];
        let no_parts = [
            "",
            "order:7",
            "x1:ab",
            "x2:a",
            "x+1:a",
            "q1:a",
            "x1:é",
            "X3:A/C",
            "X1:/",
            "X6:/a{b}c",
            "X4:/a}b",
            "X4:/a%b",
            "X5:/a%2x",
            "X3:/a%",
            "x99999999999999999999:a",
        ];
        let others = others.into_iter().map(Into::into).chain(no_parts.map(|parts| format!("parts:30 {parts}")));
        let others: Vec<String> = others.collect();
        let others = others.iter().map(|rest| format!("{token} {rest}")).collect::<Vec<_>>();
        for text in others.iter().map(String::as_str).chain(["", "order:7", "token 30 order:7"]) {
            let error = text.parse::<DetachedLock>().unwrap_err();
            assert_eq!(error.to_string(), "this is not the text of a detached lock");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn detached_lock_round_trips_through_serde() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        for key in ["order:7", "", "with a space", "\"quoted\"\n\u{1F512}"] {
            let detached = DetachedLock::new(&Parts::single(key.into(), Mode::Shared), token, Duration::from_secs(30));
            let json = serde_json::to_string(&detached).unwrap();
            assert_eq!(json, serde_json::to_string(&detached.to_string()).unwrap());
            assert_eq!(serde_json::from_str::<DetachedLock>(&json).unwrap(), detached);
            // The reader cannot borrow from its input.
            let value = serde_json::to_value(&detached).unwrap();
            assert_eq!(serde_json::from_value::<DetachedLock>(value).unwrap(), detached);
            assert_eq!(serde_json::from_reader::<_, DetachedLock>(json.as_bytes()).unwrap(), detached);
        }
        for wrong in ["7", "null", "{}", r#""order:7""#] {
            serde_json::from_str::<DetachedLock>(wrong).unwrap_err();
        }
    }
}
