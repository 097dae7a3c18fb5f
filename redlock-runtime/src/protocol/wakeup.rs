//! Wake-up messages: one channel for each manager, one line of text for each message. The channel name contains the
//! namespace, and at a member of a cluster its id (`node/redis/channels.rs`).
//!
//! | message | publisher | meaning |
//! |---|---|---|
//! | `granted <token> <key>` | node | the lock was handed to the token |
//! | `claimed <milliseconds> <seconds>.<microseconds> <token> <key>` | node | `granted`, with duration and start |
//! | `contended <token> <by> <key>` | node | `by` waits for the lock of the token |
//! | `wanted <token> <by> <key>` | node | `by` holds the lock elsewhere, and wants this node as well |
//! | `free <token> <key>` | node | one of the names that the token waits for may be free |
//! | `busy <token> <key>` | manager of the holder | a body runs under the lock |
//! | `revoked <token> <by> <key>` | node | the lock of the token is being broken |
//! | `stopped <by> <key>` | manager of the broken lock | its body has stopped |
//! | `freed <token> <key>` | node | a permit was given back; the token owns the admission lock |
//! | `freed <token> <key>` | manager that waits for a permit | the token has a permit, and another call has waited for one for a while |
//!
//! `claimed` replaces `granted` for managers that can read it. The key comes last because it may contain any text.

use crate::lock::OwnerToken;
use crate::protocol::command::{Claim, Notice, Subject, Wakeup};
use std::time::Duration;

/// Beginning of the names of all channels. The namespace, a colon, and the id of the manager follow.
pub(crate) const CHANNEL: &str = "redlock:";

/// Returns the channel of a manager without a namespace. `manager` is the text of its id.
pub(crate) fn channel(manager: &str) -> String {
    [CHANNEL, ":", manager].concat()
}

/// Returns the message that a body runs under the lock, for the manager of the token in `subject`.
pub(crate) fn busy(subject: &Subject) -> String {
    ["busy ", subject.token.as_str(), " ", subject.key.name()].concat()
}

/// Returns the message that the previous holder of a broken lock has stopped, for the manager of the token in
/// `subject`.
pub(crate) fn stopped(subject: &Subject) -> String {
    ["stopped ", subject.token.as_str(), " ", subject.key.name()].concat()
}

/// Returns the message about waiting calls for permits, for the manager of the token in `subject`, which has a permit
/// or waits for one.
pub(crate) fn freed(subject: &Subject) -> String {
    ["freed ", subject.token.as_str(), " ", subject.key.name()].concat()
}

/// Maximum length of a message in bytes: two tokens, and a key of 1024 bytes below an escaped namespace of 256 bytes.
const MAX_LEN: usize = 2048;

impl Wakeup {
    /// Parses a message. Returns `None` for any text that neither a node nor a manager sends, which includes every
    /// longer text.
    pub(crate) fn parse(payload: &str) -> Option<Self> {
        if payload.len() > MAX_LEN {
            return None;
        }
        let (kind, rest) = payload.split_once(' ')?;
        if kind == "claimed" {
            return Self::claimed(rest);
        }
        let (token, rest) = rest.split_once(' ')?;
        let (notice, key) = match kind {
            "granted" => (Notice::Granted, rest),
            "busy" => (Notice::Busy, rest),
            "free" => (Notice::Free, rest),
            "stopped" => (Notice::Stopped, rest),
            "freed" => (Notice::Freed, rest),
            "contended" | "wanted" | "revoked" => {
                let (by, key) = rest.split_once(' ')?;
                let by = OwnerToken::parse(by)?;
                let notice = match kind {
                    "wanted" => Notice::Wanted { by },
                    "revoked" => Notice::Revoked { by },
                    _ => Notice::Contended { by },
                };
                (notice, key)
            }
            _ => return None,
        };
        Some(Self { subject: Subject::new(key.into(), OwnerToken::parse(token)?), notice })
    }

    /// Parses the text after `claimed`.
    fn claimed(rest: &str) -> Option<Self> {
        let (length, rest) = rest.split_once(' ')?;
        let (begun, rest) = rest.split_once(' ')?;
        let (token, key) = rest.split_once(' ')?;
        let (seconds, micros) = begun.split_once('.')?;
        let begun =
            Duration::from_secs(seconds.parse().ok()?).checked_add(Duration::from_micros(micros.parse().ok()?))?;
        let notice = Notice::Claimed(Claim { length: Duration::from_millis(length.parse().ok()?), begun });
        Some(Self { subject: Subject::new(key.into(), OwnerToken::parse(token)?), notice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockKey;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn wakeups_with_any_key_are_parsed_and_malformed_ones_are_not() {
        let token = |counter| OwnerToken::new(ManagerId::random(), TokenTime::new(1, counter));
        let (token, by) = (token(0), token(1));
        for key in ["order:7", "", " a b\n", "granted x"] {
            let subject = || Subject::new(key.into(), token);
            let granted = Wakeup { subject: subject(), notice: Notice::Granted };
            assert_eq!(Wakeup::parse(&format!("granted {token} {key}")), Some(granted));
            let claim = Claim { length: Duration::from_millis(200), begun: Duration::new(7, 42_000) };
            let claimed = Wakeup { subject: subject(), notice: Notice::Claimed(claim) };
            assert_eq!(Wakeup::parse(&format!("claimed 200 7.42 {token} {key}")), Some(claimed));
            let free = Wakeup { subject: subject(), notice: Notice::Free };
            assert_eq!(Wakeup::parse(&format!("free {token} {key}")), Some(free));
            let busy = Wakeup { subject: subject(), notice: Notice::Busy };
            assert_eq!(Wakeup::parse(&super::busy(&busy.subject)), Some(busy));
            let stopped = Wakeup { subject: subject(), notice: Notice::Stopped };
            assert_eq!(Wakeup::parse(&super::stopped(&stopped.subject)), Some(stopped));
            let freed = Wakeup { subject: subject(), notice: Notice::Freed };
            assert_eq!(Wakeup::parse(&super::freed(&freed.subject)), Some(freed));
            let contended = Wakeup { subject: subject(), notice: Notice::Contended { by } };
            assert_eq!(Wakeup::parse(&format!("contended {token} {by} {key}")), Some(contended));
            let wanted = Wakeup { subject: subject(), notice: Notice::Wanted { by } };
            assert_eq!(Wakeup::parse(&format!("wanted {token} {by} {key}")), Some(wanted));
            let revoked = Wakeup { subject: subject(), notice: Notice::Revoked { by } };
            assert_eq!(Wakeup::parse(&format!("revoked {token} {by} {key}")), Some(revoked));
        }
        let wrong = [
            String::new(),
            format!("granted {token}"),
            format!("lost {token} k"),
            format!("contended {token} k"),
            format!("wanted {token} k"),
            format!("revoked {token} k"),
            format!("claimed {token} k"),
            format!("claimed 200 7.42 {token}"),
            format!("claimed 200 7 {token} k"),
            format!("claimed -1 7.42 {token} k"),
        ];
        for payload in wrong {
            assert_eq!(Wakeup::parse(&payload), None, "{payload}");
        }
        let of_length = |length: usize| {
            let head = format!("contended {token} {by} ");
            Wakeup::parse(&[&*head, &"k".repeat(length - head.len())].concat())
        };
        let longest_key = LockKey::from("k".repeat(LockKey::MAX_LEN)).below(&format!("{}:", "%3A".repeat(256)));
        let longest = format!("contended {token} {by} {}", longest_key.name());
        assert!(Wakeup::parse(&longest).is_some(), "{} bytes", longest.len());
        assert!(of_length(MAX_LEN).is_some() && of_length(MAX_LEN + 1).is_none());
    }
}
