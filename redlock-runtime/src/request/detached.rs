//! A lock on its way from one worker to another.

use crate::error::LockError;
use crate::lock::parts::Parts;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::request::what::What;
use crate::request::{LockPart, LockRequest, detached_parts};
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
/// Texts of versions that knew no [shared](Mode::Shared) locks are those of exclusive ones, and the other way round. Those
/// versions refuse the text of a shared lock, and versions that knew one key only the text of [several](crate::LockRequest::all)
/// or of a [path](crate::LockRequest::path).
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
    mode: Mode,
    /// What is locked, unless it is one key.
    parts: Option<Box<[LockPart]>>,
    token: OwnerToken,
    ttl: Duration,
}

/// What stands before the `ttl` of a shared lock. Versions that know no shared locks find no number there, and refuse the text:
/// they would take the lock up for one that excludes others.
const SHARED: &str = "shared:";

/// What stands before the `ttl` of a lock of several keys, or of a path. Versions that know one key only refuse it as well.
const PARTS: &str = "parts:";

impl DetachedLock {
    pub(crate) fn new(parts: &Parts, token: OwnerToken, ttl: Duration) -> Self {
        let (key, mode) = (parts.key(), parts.mode());
        let is_key = parts.is_single() && !key.is_place();
        Self { key, mode, parts: (!is_key).then(|| detached_parts::of(parts)), token, ttl }
    }

    /// A request for what is locked, in the mode that it has.
    pub(crate) fn request(&self) -> LockRequest {
        let what = match &self.parts {
            None => What::Key(self.key.clone()),
            Some(parts) => What::Parts(parts.clone()),
        };
        LockRequest::of(what).mode(self.mode)
    }

    /// One whose parts have this text.
    fn of_parts(text: &str, token: OwnerToken, ttl: Duration) -> Option<Self> {
        let parts = detached_parts::read(text)?;
        let request = LockRequest::of(What::Parts(parts));
        Some(Self::new(&request.names("").ok()?, token, ttl))
    }

    /// What is locked. Where that is [several](crate::LockRequest::all) keys, what they are called together.
    #[must_use]
    pub const fn key(&self) -> &LockKey {
        &self.key
    }

    /// Whether it is for one call alone or shared with others; whoever takes it up has it so.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
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

/// `<token> <ttl in milliseconds> <key>`, or `<token> shared:<ttl in milliseconds> <key>`. Of several keys, `parts:` stands
/// there, and behind it each of them with its mode and its length, as in `x9:account:7s6:config`.
impl fmt::Display for DetachedLock {
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

    /// # Errors
    /// [`LockError::Configuration`] for a text that no detached lock has written.
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
            Some(Self { key: key.into(), mode, parts: None, token, ttl })
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
        for key in ["order:7", "two words", " ", "{order}\n9", "", "shared:7", "shared: 7"] {
            for mode in [Mode::Exclusive, Mode::Shared] {
                let detached = DetachedLock::new(&Parts::single(key.into(), mode), token, Duration::from_secs(30));
                assert_eq!(detached.to_string().parse::<DetachedLock>().unwrap(), detached);
            }
        }
    }

    #[test]
    fn an_exclusive_lock_has_the_text_of_versions_that_knew_no_other_and_a_shared_one_has_not() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 2));
        let text = |mode| {
            DetachedLock::new(&Parts::single("order:7".into(), mode), token, Duration::from_secs(30)).to_string()
        };
        assert_eq!(text(Mode::Exclusive), format!("{token} 30000 order:7"));
        // Those read a number behind the first space.
        assert_eq!(text(Mode::Shared), format!("{token} shared:30000 order:7"));
    }

    #[test]
    fn several_keys_and_paths_have_a_text_that_versions_of_one_key_refuse() {
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
            let parts = request.names("shop:").unwrap();
            let detached = DetachedLock::new(&parts, token, Duration::from_secs(30));
            let text = detached.to_string();
            assert!(text.starts_with(&format!("{token} parts:30000 ")), "{text}");
            let read: DetachedLock = text.parse().unwrap();
            assert_eq!(read, detached);
            assert_eq!(read.request().names("shop:").unwrap(), parts, "{text}");
        }
        let text = DetachedLock::new(&LockRequest::all(["b", "a:1"]).names("").unwrap(), token, Duration::from_secs(1));
        assert_eq!(text.to_string(), format!("{token} parts:1000 x3:a:1x1:b"));
    }

    #[test]
    fn other_texts_are_refused() {
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
    fn serde_writes_and_reads_the_text() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        for key in ["order:7", "", "with a space", "\"quoted\"\n\u{1F512}"] {
            let detached = DetachedLock::new(&Parts::single(key.into(), Mode::Shared), token, Duration::from_secs(30));
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
