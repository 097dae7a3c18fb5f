//! `Debug` of a lock error: the message, and the fields with `{:#?}`.

use crate::error::LockError;
use std::fmt;

/// Writes the message, as `{}` does, so that `unwrap`, `expect` and a `main` that returns the error print it. `{:#?}` and `dbg!`
/// show the variant with its fields.
impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        match self {
            Self::Contended { key, lease_left, holder } => {
                let mut shown = f.debug_struct("Contended");
                shown.field("key", key).field("lease_left", lease_left).field("holder", holder).finish()
            }
            Self::TimedOut { key, waited, lease_left, holder } => {
                let mut shown = f.debug_struct("TimedOut");
                shown.field("key", key).field("waited", waited).field("lease_left", lease_left);
                shown.field("holder", holder).finish()
            }
            Self::TooManyWaiting { key, limit } => {
                f.debug_struct("TooManyWaiting").field("key", key).field("limit", limit).finish()
            }
            Self::WindowTaken { key, window, ends_in } => {
                let mut shown = f.debug_struct("WindowTaken");
                shown.field("key", key).field("window", window).field("ends_in", ends_in).finish()
            }
            Self::NoQuorum { key, needed, nodes, causes } | Self::Refused { key, needed, nodes, causes } => {
                let mut shown =
                    f.debug_struct(if matches!(self, Self::NoQuorum { .. }) { "NoQuorum" } else { "Refused" });
                shown.field("key", key).field("needed", needed).field("nodes", nodes).field("causes", causes).finish()
            }
            Self::Lost { key, held_for, cause } => {
                let mut shown = f.debug_struct("Lost");
                shown.field("key", key).field("held_for", held_for).field("cause", cause).finish()
            }
            Self::WouldDeadlock { key, held } => {
                f.debug_struct("WouldDeadlock").field("key", key).field("held", held).finish()
            }
            Self::InvalidKey { cause } => f.debug_struct("InvalidKey").field("cause", cause).finish(),
            Self::Configuration { message } => f.debug_struct("Configuration").field("message", message).finish(),
            Self::NotInstalled => f.write_str("NotInstalled"),
            Self::Closed => f.write_str("Closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockKey;

    #[test]
    fn debug_shows_the_message_and_alternate_debug_the_fields() {
        let invalid: LockError = LockKey::from("").check().unwrap_err().into();
        let all = [
            (LockError::Contended { key: "a".into(), lease_left: None, holder: None }, "Contended"),
            (LockError::NoQuorum { key: None, needed: 1, nodes: 1, causes: Box::default() }, "NoQuorum"),
            (LockError::Refused { key: None, needed: 1, nodes: 1, causes: Box::default() }, "Refused"),
            (invalid, "InvalidKey"),
            (LockError::Closed, "Closed"),
        ];
        for (error, variant) in all {
            assert_eq!(format!("{error:?}"), error.to_string());
            assert!(format!("{error:#?}").starts_with(variant), "{error:#?}");
        }
    }
}
