//! The scripts that a server runs: which one for which command, and what is passed to it.
//!
//! Their parts are the files of `lua/`. What the server gets, with all parts put together, can be read in
//! `lua/assembled/`.

use super::question::{Form, Question};
use super::side_key::{queue_name, register_name};
use crate::lock::OwnerToken;
use crate::lock::owner_token::CLAIMS_VERSION;
use crate::protocol::command::{Command, Verb};
use crate::protocol::timing::QUEUE_EXPIRY;
use crate::protocol::wakeup::channel;
use redis::Cmd;
use std::sync::LazyLock;
use std::time::Duration;

/// A script: its source here, its digest as the server computed it.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    digest: String,
}

/// What the parts of the scripts call by a name that Rust gives the value of, so that both have the same.
fn with_constants(parts: &str) -> String {
    let constants = [
        ("TOKEN_LEN", OwnerToken::LEN.to_string()),
        ("ATTEMPT_LEN", OwnerToken::ATTEMPT_LEN.to_string()),
        ("TIME_LEN", OwnerToken::TIME_LEN.to_string()),
        // Lua counts from 1.
        ("VERSION_AT", (OwnerToken::VERSION + 1).to_string()),
        ("CLAIMS_VERSION", CLAIMS_VERSION.to_string()),
        ("MARK", MARK.to_owned()),
        ("CHANNEL", format!("'{}'", channel(""))),
        ("QUEUE_EXPIRY", millis(QUEUE_EXPIRY).to_string()),
        ("MEMBER", format!("'{MEMBER}'")),
    ];
    constants.iter().fold(parts.to_owned(), |source, (name, value)| source.replace(name, value))
}

/// What stands behind the token of a holder while others may wait for its lock, as Lua writes it; see `lua/lock.lua`.
const MARK: &str = "'+'";

/// The one member of a fencing register, whose score is the ballot.
pub(super) const MEMBER: &str = "n";

/// Puts the parts of a script together, which are files of `lua/`: a script cannot include another.
macro_rules! parts {
    ($($part:literal),+) => { concat!($(include_str!(concat!("lua/", $part, ".lua"))),+) };
}

/// Puts a script together whose answer the part `$end` completes with what is said to a ballot.
macro_rules! fenced_parts {
    ($($part:literal),+; $end:literal) => {
        concat!(
            parts!("names", "fence"),
            "local answer = (function()\n",
            parts!($($part),+),
            "end)()\n",
            parts!($end)
        )
    };
}

/// Makes [`Scripts`] of the table of all scripts.
macro_rules! scripts {
    (
        no script: $without:pat,
        several locks: $several:ident => $several_source:expr,
        $($name:ident: $executes:pat => $source:expr,)+
    ) => {
        #[expect(non_upper_case_globals, reason = "they are called what the scripts are called")]
        mod source {
            use super::{LazyLock, with_constants};

            pub(super) static $several: LazyLock<String> = LazyLock::new(|| with_constants($several_source));
            $(pub(super) static $name: LazyLock<String> = LazyLock::new(|| with_constants($source));)+
        }

        /// Every script, loaded on one connection.
        #[derive(Debug)]
        pub(super) struct Scripts {
            pub(super) $several: Script,
            $($name: Script,)+
        }

        impl Scripts {
            /// The name and the source of each script, in the order in which [`Scripts::loaded`] asks for the digests.
            pub(super) const SOURCES: &[(&str, &LazyLock<String>)] = &[
                (stringify!($several), &source::$several),
                $((stringify!($name), &source::$name)),+
            ];

            /// # Errors
            /// The first one of `digest`.
            pub(super) fn loaded<E>(mut digest: impl FnMut() -> Result<String, E>) -> Result<Self, E> {
                Ok(Self {
                    $several: Script { source: &source::$several, digest: digest()? },
                    $($name: Script { source: &source::$name, digest: digest()? }),+
                })
            }

            /// The script that executes `command`, if one does.
            pub(super) const fn of(&self, command: &Command) -> Option<&Script> {
                match (command.verb, command.fence) {
                    $($executes => Some(&self.$name),)+
                    $without => None,
                }
            }
        }
    };
}

// One line for each script: its name, the verb and the fence that it executes, and its parts. What is about several locks is
// called with them (`extensions`).
//
// Fenced locks have scripts of their own, so that locks without fencing pay nothing for it. What a script does most of the
// time comes first in it, because it takes longer to make the functions that this does not need than to do all of it.
scripts! {
    no script: (Verb::SetNx { .. }, _),
    several locks: extend_many => parts!("extend_many"),
    acquire: (Verb::Acquire { .. }, None) => parts!("names", "value", "token", "acquire_taken", "claim", "lock", "hand", "acquire"),
    extend: (Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. }, None) => parts!("names", "value", "late", "extend_alone", "token", "extend_marked", "lock", "extend"),
    adopt: (Verb::Adopt { .. }, None) => parts!("names", "value", "late", "adopt", "extend_alone", "token", "extend_marked", "lock", "extend"),
    yield_up: (Verb::Yield { .. }, _) => parts!("names", "value", "token", "claim", "lock", "hand", "yield"),
    release: (Verb::Release { .. }, _) => parts!("names", "value", "release_alone", "token", "claim", "release_marked", "lock", "hand", "release"),
    revoke: (Verb::Revoke, _) => parts!("names", "value", "token", "revoke"),
    acquire_fenced: (Verb::Acquire { .. }, Some(_)) => fenced_parts!("value", "token", "acquire_taken", "claim", "lock", "hand", "acquire"; "acquire_fenced"),
    extend_fenced: (Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. }, Some(_)) => fenced_parts!("value", "late", "token", "lock", "extend"; "extend_fenced"),
    adopt_fenced: (Verb::Adopt { .. }, Some(_)) => fenced_parts!("value", "late", "adopt", "token", "lock", "extend"; "extend_fenced"),
}

impl Script {
    /// The call by digest.
    pub(super) fn by_digest(&self, question: &Question) -> Cmd {
        call("EVALSHA", &self.digest, question)
    }

    /// Its digest on the server.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// What is loaded.
    pub(super) const fn source(&self) -> &'static str {
        self.source
    }

    /// The call by source, which also loads the script: for a server that has lost it.
    pub(super) fn by_source(&self, question: &Question) -> Cmd {
        call("EVAL", self.source, question)
    }
}

/// The call of a script by `eval`, with what that takes: its digest or its source. Keys and arguments are those that
/// the heads of the `.lua` files name.
fn call(eval: &str, script: &str, question: &Question) -> Cmd {
    let Question { command, form, is_late, .. } = question;
    let (key, token) = (command.key(), command.token());
    let mut call = Cmd::with_capacity(8, 2 * key.len() + token.len() + script.len() + 48);
    call.arg(eval).arg(script).arg(if command.fence.is_some() { 3 } else { 2 }).arg(key);
    match form {
        Form::Whole => call.arg(queue_name(key)),
        // A command that names one key twice is one of a single key.
        Form::Alone | Form::Queue(_) => call.arg(key),
    };
    if command.fence.is_some() {
        call.arg(register_name(key));
    }
    call.arg(token);
    match command.verb {
        Verb::Acquire { ttl, claim, holds: false } => call.arg(millis(ttl)).arg(millis(claim)),
        Verb::Acquire { ttl, claim, holds: true } => call.arg(millis(ttl)).arg(millis(claim)).arg("holds"),
        Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } | Verb::SetNx { ttl } => call.arg(millis(ttl)),
        Verb::Adopt { ttl } => call.arg(millis(ttl)).arg(command.other()),
        Verb::Yield { claim } => call.arg(millis(claim)).arg(command.other()),
        Verb::Release { claim } => call.arg(millis(claim)),
        Verb::Revoke => call.arg(command.other()),
    };
    if *is_late && command.verb.is_extension() {
        call.arg("late");
    }
    if let Some(ballot) = command.fence {
        call.arg(ballot.number);
    }
    call
}

/// An expiry as Redis takes it, in whole milliseconds. Every `ttl` is far below the end of `u64`; see
/// `Policy::checked_ttl`.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    const HEAD: &str =
        "-- Generated: this is what the server gets, put together of the parts in the folder above. To write it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

";

    /// The assembled scripts are files so that each can be read, and a change of one be reviewed, as a whole.
    #[test]
    fn assembled_scripts_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/node/redis/lua/assembled");
        let files =
            Scripts::SOURCES.iter().map(|(name, source)| (format!("{name}.lua"), [HEAD, source.as_str()].concat()));
        let files: Vec<_> = files.collect();
        if std::env::var_os("UPDATE_EXPECT").is_some_and(|update| update == "1") {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in &files {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let found = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let expected = files.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
        assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{HEAD}");
        for (name, text) in &files {
            assert!(fs::read_to_string(folder.join(name)).unwrap() == *text, "{name} is out of date.\n{HEAD}");
        }
    }

    #[test]
    fn constants_are_put_in() {
        let table = [
            ("#value == TOKEN_LEN", "#value == 69"),
            ("string.sub(to, ATTEMPT_LEN + 2)", "string.sub(to, 36 + 2)"),
            ("string.sub(largest, 1, TIME_LEN)", "string.sub(largest, 1, 18)"),
            ("string.byte(to, VERSION_AT) == CLAIMS_VERSION", "string.byte(to, 50) == 56"),
            ("to .. MARK", "to .. '+'"),
            ("CHANNEL .. id", "'redlock:' .. id"),
            ("{QUEUE_EXPIRY, MEMBER}", "{30000, 'n'}"),
        ];
        for (part, expected) in table {
            assert_eq!(with_constants(part), expected);
        }
    }
}
