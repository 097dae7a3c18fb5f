//! Refused commands: their consequences and remedies.

use super::remedy::remedy;
use crate::error::NodeError;
use crate::lock::reserved::REGISTER;
use crate::protocol::trial::TRIAL_NAME;
use crate::protocol::wakeup::{CHANNEL, channel};
use std::fmt::Write as _;

/// Command that locks need and the server refuses to this user, or does not know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refusal {
    /// Name of the command in capitals.
    pub command: Box<str>,
    /// Error reply of the server.
    pub answer: Box<str>,
    /// Use of the command.
    pub(crate) purpose: Purpose,
}

/// Use of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Every lock.
    Locks,
    WakeUps,
    Fencing,
    /// Paths, and keys with a closing brace.
    Braces,
    /// Permits of keys with a closing brace.
    BracePermits,
    /// Locks whose queues the user could not use before. Other locks may work.
    SomeLocks,
    /// Locks after a `SCRIPT FLUSH`.
    LostScripts,
    /// Locks in a slot of a cluster that is being moved.
    MovingSlots,
}

/// Kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The command, to this user.
    Command,
    /// A key, to this user.
    Key,
    /// A channel, to this user.
    Channel,
    /// The command, to all users: it was renamed, or the server is too old.
    Unknown,
    Other,
}

impl Refusal {
    pub(crate) fn new(command: &str, purpose: Purpose, answer: &str) -> Self {
        Self { command: command.into(), answer: answer.into(), purpose }
    }

    /// Returns the kind of the refusal. Servers check the command before its keys, so a forbidden key does not hide a forbidden command.
    pub(crate) fn refused(&self) -> Refused {
        let answer = &*self.answer;
        match () {
            () if answer.contains("unknown command") || answer.contains("unsupported command") => Refused::Unknown,
            () if !answer.contains("NOPERM") => Refused::Other,
            () if answer.contains(" to run ") => Refused::Command,
            () if answer.contains("channel") => Refused::Channel,
            () if answer.contains("key") => Refused::Key,
            () => Refused::Other,
        }
    }

    /// Returns the ACL rule that permits the command.
    fn grant(&self) -> String {
        format!("+{}", self.command.to_lowercase())
    }
}

/// Returns the refusals for `purpose` and their remedies; `None` if there are none. `name` is the key of the tried lock.
pub(crate) fn text(refusals: &[Refusal], purpose: Purpose, name: &str) -> Option<String> {
    let of = |kind| refusals.iter().filter(move |refusal| refusal.purpose == purpose && refusal.refused() == kind);
    let commands = |kind| of(kind).map(|refusal| &*refusal.command).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if of(Refused::Command).next().is_some() {
        let grants = of(Refused::Command).map(Refusal::grant).collect::<Vec<_>>().join(" ");
        parts.push(format!("the user may not run {}: grant it `{grants}`", commands(Refused::Command)));
    }
    if of(Refused::Key).next().is_some() {
        let is_lock = of(Refused::Key).any(|refusal| matches!(&*refusal.command, "SET" | "DEL" | "PTTL" | "PEXPIRE"));
        parts.push(keys(purpose, is_lock, name));
    }
    if of(Refused::Channel).next().is_some() {
        parts.push(format!("the user may not publish on channels: grant it `{}`", channels(name)));
    }
    if of(Refused::Unknown).next().is_some() {
        let unknown = commands(Refused::Unknown);
        parts.push(format!(
            "the server does not know {unknown}: remove the `rename-command` that hides it, or use a server or proxy \
             that supports it"
        ));
    }
    parts.extend(of(Refused::Other).map(Refusal::other));
    (!parts.is_empty()).then(|| format!("{}: {}", purpose.without(), parts.join("; ")))
}

/// Returns the forbidden keys and the rule to grant. `is_lock` is `true` if the key of the lock itself is among them.
fn keys(purpose: Purpose, is_lock: bool, name: &str) -> String {
    if purpose == Purpose::Fencing {
        return format!("the user may not use the keys of fencing numbers: grant it `~{}`", registers(name));
    }
    let mut text = String::new();
    let pattern = pattern(name);
    match purpose {
        Purpose::Braces => return format!("the user may not use their queues: grant it `~{{*}}:q:{pattern}`"),
        Purpose::SomeLocks => {
            return "the user may use a lock, and not the queue beside it: grant it `~{order:*` beside `~order:*`, and the like for all of your \
                    keys"
                .to_owned();
        }
        Purpose::BracePermits => {
            return format!("the user may not use the keys that admit to them: grant it `~{{*}}:t:{pattern}`");
        }
        _ => {}
    }
    let _ = if is_lock {
        write!(text, "the user may not write the key of a lock: grant it `~{pattern} ~{{{pattern}`")
    } else {
        write!(text, "the user may not use the queue beside a lock: grant it `~{{{pattern}` beside `~{pattern}`")
    };
    if pattern.starts_with(TRIAL_NAME) {
        text += ", and the like for every lock";
    }
    text
}

/// Returns the pattern of all keys of a manager whose trial has this `name`.
pub(crate) fn pattern(name: &str) -> String {
    match namespace(name) {
        "" => format!("{TRIAL_NAME}*"),
        namespace => format!("{namespace}*"),
    }
}

/// Returns the pattern of all channels of a manager whose trial has this `name`.
pub(crate) fn channels(name: &str) -> String {
    match namespace(name) {
        "" => format!("&{}*", channel("")),
        namespace => format!("&{CHANNEL}{namespace}*"),
    }
}

/// Returns the pattern of all fencing registers of a manager whose trial has this `name`.
pub(crate) fn registers(name: &str) -> String {
    [namespace(name), REGISTER, "*"].concat()
}

/// Returns the prefix of all keys of a manager whose trial has this `name`.
fn namespace(name: &str) -> &str {
    name.split_once(TRIAL_NAME).map_or("", |(namespace, _)| namespace)
}

impl Refusal {
    /// Returns the error reply of the server, and its remedy.
    fn other(&self) -> String {
        let Self { command, answer, .. } = self;
        let remedy = remedy(&NodeError::Refused(answer.clone().into()));
        format!("{command} was answered {answer}{}", remedy.map(|text| format!(": {text}")).unwrap_or_default())
    }
}

impl Purpose {
    /// Returns the consequence of a missing permission.
    const fn without(self) -> &'static str {
        match self {
            Self::Locks => "locks cannot be acquired, renewed or released",
            Self::WakeUps => "waiting callers are not woken and ask again and again",
            Self::Fencing => "fenced locks fail",
            Self::Braces => "paths and keys with a closing brace fail",
            Self::SomeLocks => "some locks fail",
            Self::BracePermits => "permits of keys with a closing brace fail",
            Self::LostScripts => "after a SCRIPT FLUSH, locks fail until the next connection",
            Self::MovingSlots => "while a slot of the cluster is on its way to another member, its locks fail",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO_RUN: &str = "NOPERM this user has no permissions to run the 'keys' command";
    const KEY: &str = "NOPERM this user has no permissions to access one of the keys used as arguments";

    const CHANNEL_REFUSED: &str = "NOPERM No permissions to access a channel";

    #[test]
    fn refusal_kinds_follow_the_reply_text() {
        let table = [
            (TO_RUN, Refused::Command),
            ("NOPERM User alice has no permissions to run the 'get' command", Refused::Command),
            (KEY, Refused::Key),
            ("NOPERM No permissions to access a key", Refused::Key),
            ("NOPERM this user has no permissions to access one of the channels used as arguments", Refused::Channel),
            (CHANNEL_REFUSED, Refused::Channel),
            ("ERR unsupported command 'EVALSHA'", Refused::Unknown),
            ("ERR unknown command 'EVALSHA', with args beginning with: '0' 'key' ", Refused::Unknown),
            ("OOM command not allowed when used memory > 'maxmemory'.", Refused::Other),
        ];
        for (answer, expected) in table {
            assert_eq!(Refusal::new("GET", Purpose::Locks, answer).refused(), expected, "{answer}");
        }
    }

    #[test]
    fn every_kind_of_refusal_advises_a_fix() {
        let refusals = [
            Refusal::new("GET", Purpose::Locks, TO_RUN),
            Refusal::new("ZADD", Purpose::Locks, TO_RUN),
            Refusal::new("ZCARD", Purpose::Locks, KEY),
            Refusal::new("EVALSHA", Purpose::Locks, "ERR unknown command 'EVALSHA'"),
            Refusal::new("MGET", Purpose::Fencing, KEY),
            Refusal::new("SET", Purpose::LostScripts, "OOM command not allowed"),
        ];
        let text = |purpose, name| text(&refusals, purpose, name);
        let locks = text(Purpose::Locks, "shop:redlock:check:1").unwrap();
        assert_eq!(
            locks,
            "locks cannot be acquired, renewed or released: the user may not run GET, ZADD: grant it `+get +zadd`; the user \
             may not use the queue beside a lock: grant it `~{shop:*` beside `~shop:*`; the server does not know \
             EVALSHA: remove the `rename-command` that hides it, or use a server or proxy that supports it"
        );
        let locks = text(Purpose::Locks, "redlock:check:1").unwrap();
        assert!(
            locks.contains("`~{redlock:check:*` beside `~redlock:check:*`, and the like for every lock"),
            "{locks}"
        );
        for (name, registers) in [("", "`~redlock:f:*`"), ("shop:redlock:check:1", "`~shop:redlock:f:*`")] {
            assert!(text(Purpose::Fencing, name).unwrap().ends_with(&format!("grant it {registers}")));
        }
        let publish = [Refusal::new("PUBLISH", Purpose::WakeUps, CHANNEL_REFUSED)];
        for (name, channels) in [("redlock:check:1", "`&redlock::*`"), ("shop:redlock:check:1", "`&redlock:shop:*`")] {
            let text = super::text(&publish, Purpose::WakeUps, name).unwrap();
            assert!(text.ends_with(&format!("grant it {channels}")), "{text}");
        }
        assert!(text(Purpose::LostScripts, "").unwrap().contains("SET was answered OOM command not allowed: raise"));
        assert_eq!(text(Purpose::WakeUps, ""), None);
    }
}
