//! A lock on its way from one worker to another.

use crate::error::LockError;
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A lock that was left at the nodes by [`LockGuard::detach`](crate::LockGuard::detach), for
/// [`LockManager::attach`](crate::LockManager::attach) to take up.
///
/// It is plain text, to be sent along with a job: `Display` writes it and `FromStr` reads it, as do serde's traits with
/// the feature `serde`. Whoever has the text can take up the lock: treat it like the job itself. It is taken up once,
/// however often it is delivered.
///
/// # Examples
/// ```
/// # use redlock_runtime::{DetachedLock, LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let message = manager.acquire("order:7").await?.detach().to_string();
/// // .. in another worker:
/// let guard = manager.attach(message.parse::<DetachedLock>()?).await?;
/// assert!(guard.is_held());
/// guard.release().await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "without it, nobody can take the lock up or give it back"]
pub struct DetachedLock {
    key: LockKey,
    token: OwnerToken,
    ttl: Duration,
}

impl DetachedLock {
    pub(crate) const fn new(key: LockKey, token: OwnerToken, ttl: Duration) -> Self {
        Self { key, token, ttl }
    }

    /// What is locked.
    #[must_use]
    pub const fn key(&self) -> &LockKey {
        &self.key
    }

    /// Under which token the nodes keep it, until it is taken up.
    #[must_use]
    pub const fn token(&self) -> &OwnerToken {
        &self.token
    }

    /// The lifetime of the lock at the nodes, from the last renewal before it was detached.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }
}

/// `<token> <ttl in milliseconds> <key>`
impl fmt::Display for DetachedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.token, self.ttl.as_millis(), self.key.as_str())
    }
}

impl FromStr for DetachedLock {
    type Err = LockError;

    /// # Errors
    /// [`LockError::Configuration`] for a text that no detached lock has written.
    fn from_str(text: &str) -> Result<Self, LockError> {
        let parse = || {
            let (token, rest) = text.split_once(' ')?;
            let (ttl, key) = rest.split_once(' ')?;
            let ttl = Duration::from_millis(ttl.parse().ok()?);
            Some(Self { key: key.into(), token: OwnerToken::parse(token)?, ttl })
        };
        parse().ok_or_else(|| LockError::configuration("this is not the text of a detached lock"))
    }
}

#[cfg(feature = "serde")]
impl serde_core::Serialize for DetachedLock {
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
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn the_text_keeps_everything() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        for key in ["order:7", "two words", " ", "{order}\n9", ""] {
            let detached = DetachedLock::new(key.into(), token, Duration::from_secs(30));
            assert_eq!(detached.to_string().parse::<DetachedLock>().unwrap(), detached);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        for text in ["", "order:7", &format!("{token} order:7"), &format!("{token} -1 order:7"), "token 30 order:7"] {
            let error = text.parse::<DetachedLock>().unwrap_err();
            assert_eq!(error.to_string(), "this is not the text of a detached lock");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serde_writes_and_reads_the_text() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        for key in ["order:7", "", "with a space", "\"quoted\"\n\u{1F512}"] {
            let detached = DetachedLock::new(key.into(), token, Duration::from_secs(30));
            let json = serde_json::to_string(&detached).unwrap();
            assert_eq!(json, serde_json::to_string(&detached.to_string()).unwrap());
            assert_eq!(serde_json::from_str::<DetachedLock>(&json).unwrap(), detached);
            // Nothing to borrow from.
            let value = serde_json::to_value(&detached).unwrap();
            assert_eq!(serde_json::from_value::<DetachedLock>(value).unwrap(), detached);
            assert_eq!(serde_json::from_reader::<_, DetachedLock>(json.as_bytes()).unwrap(), detached);
        }
        for wrong in ["7", "null", "{}", r#""order:7""#] {
            serde_json::from_str::<DetachedLock>(wrong).unwrap_err();
        }
    }
}
