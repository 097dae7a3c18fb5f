//! Errors as they are told to whoever observes the process, who may not be shown keys.

use crate::error::LockError;
use crate::lock::LockKey;
use std::borrow::Cow;

impl LockError {
    /// The same error about what is told in place of its key.
    pub(crate) fn told(&self) -> Cow<'_, Self> {
        if !self.key().is_some_and(LockKey::is_redacted) {
            return Cow::Borrowed(self);
        }
        let mut told = self.clone();
        match &mut told {
            Self::Contended { key, .. }
            | Self::TimedOut { key, .. }
            | Self::WindowTaken { key, .. }
            | Self::Lost { key, .. } => *key = key.as_told(),
            Self::WouldDeadlock { key, held } => {
                *key = key.as_told();
                **held = held.told();
            }
            Self::NoQuorum { key, .. } | Self::Refused { key, .. } => *key = key.as_ref().map(LockKey::as_told),
            Self::Configuration { .. } | Self::NotInstalled | Self::Closed => {}
        }
        Cow::Owned(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{HeldLock, LossCause, OrderStep, SourceLine, Why};
    use std::time::Duration;

    #[test]
    fn no_error_tells_a_redacted_key() {
        let (key, at) = (|| LockKey::from("order:4711").redacted(true), SourceLine::new("a.rs", 7));
        let step = OrderStep { taken_at: at, asked_at: at };
        let held = HeldLock::new(key(), at, at, Why::Order([step].into()));
        let all = [
            LockError::Contended { key: key(), lease_left: None },
            LockError::TimedOut { key: key(), waited: Duration::ZERO, lease_left: None },
            LockError::WindowTaken { key: key(), window: 7, ends_in: Duration::ZERO },
            LockError::Lost { key: key(), held_for: Duration::ZERO, cause: LossCause::Taken },
            LockError::WouldDeadlock { key: key(), held: Box::new(held) },
            LockError::NoQuorum { key: Some(key()), needed: 1, nodes: 1, causes: Box::default() },
            LockError::Refused { key: Some(key()), needed: 1, nodes: 1, causes: Box::default() },
        ];
        for error in all {
            assert!(error.to_string().contains("4711"), "{error}");
            let told = error.told().to_string();
            assert!(!told.contains("4711") && told.contains('#'), "{told}");
        }
    }
}
