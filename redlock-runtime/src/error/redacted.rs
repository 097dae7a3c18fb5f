//! Redaction of errors for logs and other observers, which may not see keys.

use crate::error::LockError;
use crate::observe::{RedactedKey, Redaction};
use std::borrow::Cow;

/// Replacement for a text that may contain a key.
const UNTOLD: &str = "the message may contain a key, so only the caller gets it";

impl LockError {
    /// Returns the error with its key and texts redacted, or unchanged without a `redaction`.
    pub(crate) fn told(&self, redaction: Redaction) -> Cow<'_, Self> {
        if redaction.is_none() {
            return Cow::Borrowed(self);
        }
        let mut told = self.clone();
        match &mut told {
            Self::Contended { key, .. }
            | Self::TimedOut { key, .. }
            | Self::TooManyWaiting { key, .. }
            | Self::WindowTaken { key, .. }
            | Self::Lost { key, .. } => *key = RedactedKey::new(key, redaction).into_key(),
            Self::WouldDeadlock { key, held } => {
                *key = RedactedKey::new(key, redaction).into_key();
                **held = held.told(redaction);
            }
            Self::NoQuorum { key, .. } | Self::Refused { key, .. } => {
                *key = key.as_ref().map(|key| RedactedKey::new(key, redaction).into_key());
            }
            Self::InvalidKey { cause } => **cause = cause.untold(UNTOLD),
            Self::Configuration { message } => *message = UNTOLD.into(),
            Self::NotInstalled | Self::Closed => {}
        }
        Cow::Owned(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{HeldLock, LossCause, OrderStep, SourceLine, Why};
    use crate::lock::{LockKey, LockPath};
    use std::time::Duration;

    #[test]
    fn redacted_errors_do_not_contain_the_key() {
        let (key, at) = (|| LockKey::from("order:4711"), SourceLine::new("a.rs", 7));
        let step = OrderStep { taken_at: at, asked_at: at };
        let held = HeldLock::new(key(), at, at, Why::Order([step].into()));
        let all = [
            LockError::Contended { key: key(), lease_left: None, holder: None },
            LockError::TimedOut { key: key(), waited: Duration::ZERO, lease_left: None, holder: None },
            LockError::TooManyWaiting { key: key(), limit: 7 },
            LockError::WindowTaken { key: key(), window: 7, ends_in: Duration::ZERO },
            LockError::Lost { key: key(), held_for: Duration::ZERO, cause: LossCause::Taken },
            LockError::WouldDeadlock { key: key(), held: Box::new(held) },
            LockError::NoQuorum { key: Some(key()), needed: 1, nodes: 1, causes: Box::default() },
            LockError::Refused { key: Some(key()), needed: 1, nodes: 1, causes: Box::default() },
            LockPath::from("/4711/").check().unwrap_err().into(),
            LockError::configuration("\"order:4711\" is held without a fencing token"),
        ];
        for error in all {
            assert!(error.to_string().contains("4711"), "{error}");
            let told = error.told(Redaction::Hash).to_string();
            assert!(!told.contains("4711") && (told.contains('#') || told == UNTOLD), "{told}");
            assert_eq!(error.told(Redaction::None).to_string(), error.to_string());
        }
    }
}
