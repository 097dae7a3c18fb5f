//! The scripts that a server runs: which script executes which command, and its arguments.
//!
//! Their parts are the files of `lua/`. The unit tests write the complete texts to `target/lua/`.

use super::channels::{Channels, NO_PATTERNS};
use super::packing::packed;
use super::question::{Form, Question};
use super::side_key::{queue_name, register_of};
use crate::lock::beside::admission_name;
use crate::lock::class::Class;
use crate::lock::owner_token::CLAIMS_VERSION;
use crate::lock::{Mode, OwnerToken};
use crate::protocol::command::{Command, Subject, Verb};
use crate::protocol::lease;
use crate::protocol::node_state::{FINDING_COST, GONE_BUDGET, MOST_STEPS, MOST_TOLD};
use crate::protocol::timing::{QUEUE_EXPIRY, RESERVED, SILENT_AFTER};
use crate::protocol::wakeup::channel;
use redis::Cmd;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

/// A script: its source, and its digest as the server computed it. `Debug` shows only the digest.
pub(super) struct Script {
    /// Publishes on the channels of a server without a namespace, until [`Channels::in_script`] changes it.
    source: &'static str,
    /// `None` if the server refuses to store scripts, so that each command brings the source.
    digest: Option<String>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.digest).finish()
    }
}

/// Replaces the names of constants in the parts of a script by their values in Rust, so that both sides use the same values.
fn with_constants(parts: &str) -> String {
    let letters = LETTERS.map(|(letter, class)| format!("['{}']='{letter}'", digit(class))).join(",");
    let classes = LETTERS.map(|(letter, class)| format!("{letter}={}", digit(class))).join(",");
    let constants = [
        ("TOKEN_LEN", OwnerToken::LEN.to_string()),
        ("ATTEMPT_LEN", OwnerToken::ATTEMPT_LEN.to_string()),
        ("TIME_LEN", OwnerToken::TIME_LEN.to_string()),
        // Lua counts from 1.
        ("VERSION_AT", (OwnerToken::VERSION + 1).to_string()),
        ("CLAIMS_VERSION", CLAIMS_VERSION.to_string()),
        ("MARK", MARK.to_owned()),
        ("READER", format!("'{}'", LETTERS[0].0)),
        ("LETTER_OF", format!("({{{letters}}})")),
        ("LETTERS", format!("({{{classes}}})")),
        ("ENDINGS", format!("({{['']=0,[{MARK}]=0,{classes}}})")),
        ("CHANNEL", format!("'{}'", channel(""))),
        ("HAS_PATTERNS", NO_PATTERNS.to_owned()),
        ("QUEUE_EXPIRY", millis(QUEUE_EXPIRY).to_string()),
        ("MEMBER", format!("'{MEMBER}'")),
        ("ALONE", ALONE.to_string()),
        ("SHARING", SHARING.to_string()),
        ("UNTOLD", UNTOLD.to_string()),
        ("SHARE", SHARE.to_string()),
        ("SEVERAL", SEVERAL.to_string()),
        ("LAST_LINE", LAST_LINE.to_string()),
        ("RESERVING", RESERVING.to_string()),
        ("RESERVED", millis(RESERVED).to_string()),
        ("SILENT_AFTER", millis(SILENT_AFTER).to_string()),
        ("MOST_STEPS", MOST_STEPS.to_string()),
        ("MOST_TURNS", MOST_TURNS.to_string()),
        ("GONE_BUDGET", GONE_BUDGET.to_string()),
        ("FINDING_COST", FINDING_COST.to_string()),
        ("MOST_STRUCK", MOST_STRUCK.to_string()),
        ("MOST_TOLD", MOST_TOLD.to_string()),
        ("MOST_ENDED", MOST_ENDED.to_string()),
    ];
    constants.iter().fold(parts.to_owned(), |source, (name, value)| source.replace(name, value))
}

/// Mark after the token of a holder while others may wait for its lock, as a Lua literal; see `lua/lock.lua`.
const MARK: &str = "'+'";

/// Letters after the token of a single holder, by its class. An exclusive holder has none.
pub(crate) const LETTERS: [(char, Class); 3] =
    [('s', Class::Shared), ('i', Class::IntentExclusive), ('r', Class::IntentShared)];

/// The only member of a fencing register. Its score is the ballot.
pub(super) const MEMBER: &str = "n";

/// Scores in the queue of a token that wants the lock exclusively, and of one that shares it; see `lua/readers.lua`.
const ALONE: u8 = 0;
const SHARING: u8 = 1;

/// Added to the score of a token that wants other keys as well.
const SEVERAL: u8 = 4;

/// The largest score of a token in the queue.
const LAST_LINE: u8 = SEVERAL + SHARING;

/// Class of a token that has only reserved a key.
const RESERVING: u8 = 7;

/// Score of a share that would have ended in 1970. The multiple of this value in a score is the class of the holder. The remainder is the
/// end of the lease in milliseconds. All shares of one class are therefore one range of scores, exact in doubles until the year 2109.
pub(crate) const SHARE: u64 = 1 << 42;

/// Maximum number of expired members that one command removes from a set of readers; the next command removes the rest. Too small: sets of
/// many dead readers stay large. Too large: one command takes long, and from about 8000 Lua cannot pass them on.
const MOST_ENDED: u32 = 1000;

/// Maximum number of absent waiters that are removed from a queue together. Too small: the server runs more commands for a crowd. Too large: Lua
/// cannot pass them on, as for [`MOST_ENDED`].
const MOST_STRUCK: u32 = 128;

/// Maximum number of turns in which one command looks for the next waiter. Every turn removes or serves a waiter, or is the last for a
/// score, except for a user without `ZREM`. After the last turn, the command is unfinished. Too small: many commands for one release. Too
/// large: such a user blocks the server.
const MOST_TURNS: u32 = 1000;

/// Score of the queue member for waiters that must still be notified that a key is free. It is larger than all scores of tokens and times.
const UNTOLD: u64 = 2 * SHARE;

/// Concatenates the parts of a script, which are files of `lua/`: a script cannot include another.
macro_rules! parts {
    ($($part:literal),+) => { concat!($(include_str!(concat!("lua/", $part, ".lua"))),+) };
}

/// Concatenates a script whose reply is completed by the part `$end`, with the answer to the ballot.
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

/// Concatenates the general part of a script, which executes `$verb` for a token that wants the class `$class`.
macro_rules! general {
    ($class:literal: $($verb:literal),+) => {
        concat!("local class, has_several = ", $class, ", false\n", parts!("latest", "readers", $($verb),+))
    };
}

/// Concatenates the script that executes `$verb` for a token that wants several keys. A reply that begins with `$least` or more means that
/// the token holds them. The part `set_fenced` then inserts the answer to the ballot at position `$at`.
///
/// The part `$start` comes first.
macro_rules! of_several {
    ($(first $($start:literal),+;)? $verb:literal) => {
        concat!(
            parts!("names"),
            "local wanted = ARGV[#ARGV]\n",
            $(parts!($($start),+),)?
            parts!("shares", "share_value", "token", "claim", "notify", "gone"),
            "local class, has_several = tonumber(string.sub(wanted, 1, 1)), true\n",
            parts!("latest", "readers", "sets", $verb)
        )
    };
    ($(first $start:literal,)? $verb:literal; from $least:literal at $at:literal) => {
        concat!(
            parts!("names", "fence"),
            "local wanted = ARGV[#ARGV]\nlocal least, place = ",
            $least,
            ", ",
            $at,
            "\nlocal answer = (function()\n",
            $(parts!($start),)?
            parts!("shares", "share_value", "token", "claim", "notify", "gone"),
            "local class, has_several = tonumber(string.sub(wanted, 1, 1)), true\n",
            parts!("latest", "readers", "sets", $verb),
            "end)()\n",
            parts!("set_fenced")
        )
    };
}

/// Generates [`Scripts`] from the table of all scripts.
macro_rules! scripts {
    (
        no script: $without:pat,
        by name: { $($named:ident => $named_source:expr,)+ }
        $($name:ident: $executes:pat => $source:expr,)+
    ) => {
        #[expect(non_upper_case_globals, reason = "they are called what the scripts are called")]
        mod source {
            use super::{LazyLock, packed, with_constants};

            $(pub(super) static $named: LazyLock<String> = LazyLock::new(|| with_constants(&packed($named_source)));)+
            $(pub(super) static $name: LazyLock<String> = LazyLock::new(|| with_constants(&packed($source)));)+
        }

        /// Every script, loaded on one connection.
        #[derive(Debug)]
        pub(super) struct Scripts {
            /// The channels on which the scripts publish.
            pub(super) channels: Channels,
            $(pub(super) $named: Script,)+
            $($name: Script,)+
        }

        impl Scripts {
            /// The name and the source of each script, in the order in which [`Scripts::loaded`] asks for the digests.
            pub(super) const SOURCES: &[(&str, &LazyLock<String>)] = &[
                $((stringify!($named), &source::$named),)+
                $((stringify!($name), &source::$name)),+
            ];

            /// The name and the source of each script, with its comments.
            #[cfg(test)]
            const PARTS: &[(&str, &str)] = &[$((stringify!($named), $named_source),)+ $((stringify!($name), $source)),+];

            /// Returns the scripts that publish on `channels`.
            ///
            /// # Errors
            /// The first one of `digest`.
            pub(super) fn loaded<E>(
                channels: Channels,
                mut digest: impl FnMut() -> Result<String, E>,
            ) -> Result<Self, E> {
                Ok(Self {
                    $($named: Script { source: &source::$named, digest: Some(digest()?) },)+
                    $($name: Script { source: &source::$name, digest: Some(digest()?) },)+
                    channels,
                })
            }

            /// Returns the scripts that publish on `channels`, for a server that does not store scripts: some proxies do not forward
            /// `SCRIPT`.
            pub(super) fn unloaded(channels: Channels) -> Self {
                Self {
                    $($named: Script { source: &source::$named, digest: None },)+
                    $($name: Script { source: &source::$name, digest: None },)+
                    channels,
                }
            }

            /// Returns the digests of the scripts that publish on `channels`, in the order of [`Scripts::SOURCES`].
            pub(super) fn digests(channels: &Channels) -> Vec<String> {
                Self::SOURCES.iter().map(|(_, source)| digest(&channels.in_script(source))).collect()
            }

            /// Returns the script that executes `command` with all its keys, if there is one.
            fn of(&self, command: &Command) -> Option<&Script> {
                match (Kind::of(&command.subject), command.verb, command.fence) {
                    $($executes => Some(&self.$name),)+
                    $without => None,
                }
            }
        }
    };
}

/// Returns the digest by which a server calls a script with this source.
pub(super) fn digest(source: &str) -> String {
    redis::Script::new(source).get_hash().to_owned()
}

/// Kind of request that a script serves.
#[derive(Clone, Copy)]
enum Kind {
    /// One key, exclusively.
    Alone,
    /// One key, shared.
    Shared,
    /// A permit of one key.
    Permit,
    /// Several keys.
    Several,
}

impl Kind {
    const fn of(subject: &Subject) -> Self {
        match (subject.mode, subject.has_several()) {
            (_, true) => Self::Several,
            (Mode::Exclusive, false) => Self::Alone,
            (Mode::Shared, false) => Self::Shared,
            (Mode::Permit, false) => Self::Permit,
        }
    }
}

/// Returns the digit of a class in the scripts.
const fn digit(class: Class) -> char {
    match class {
        Class::Exclusive => '0',
        Class::Shared => '1',
        Class::IntentExclusive => '2',
        Class::IntentShared => '3',
    }
}

// One line for each script: its name, the verb and the fence that it executes, and its parts. `extensions` calls the script for several
// locks, and `Scripts::for_question` selects the others that are called by their names.
//
// Fenced locks have separate scripts, even for shared locks, so that locks without fencing pay nothing for fencing. The most frequent case
// comes first in each script: creating the functions of the other cases takes longer than the whole frequent case.
scripts! {
    no script: (Kind::Alone, Verb::SetNx { .. }, _) | (_, Verb::Raise { .. }, _),
    by name: {
        extend_many => parts!("extend_many"),
        set_checked => parts!("set_checked"),
        extend_own => parts!("extend_own"),
        release_own => parts!("release_own"),
    }
    acquire: (Kind::Alone, Verb::Acquire { .. }, None) => concat!(
        parts!("names", "value", "token", "crowd", "acquire_taken", "acquire_free", "claim", "notify", "gone"),
        general!("ALONE": "acquire")
    ),
    extend: (Kind::Alone, Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. }, None) => parts!("names", "value", "late", "extend_alone", "token", "latest", "extend_marked", "lock", "extend"),
    adopt: (Kind::Alone, Verb::Adopt { .. }, None) => parts!("names", "value", "late", "adopt", "extend_alone", "token", "latest", "extend_marked", "lock", "extend"),
    yield_up: (Kind::Alone, Verb::Yield { .. }, _) => concat!(
        parts!("names", "value", "token", "crowd", "claim", "notify", "gone"),
        general!("ALONE": "yield")
    ),
    release: (Kind::Alone, Verb::Release { .. }, _) => concat!(
        parts!("names", "value", "release_alone", "token", "crowd", "claim", "release_marked", "release_other"),
        // Before the part that runs `TIME`.
        parts!("notify", "gone", "release_timeless"),
        general!("ALONE": "release")
    ),
    revoke: (_, Verb::Revoke, _) => parts!("names", "value", "token", "notify", "revoke"),
    acquire_fenced: (Kind::Alone, Verb::Acquire { .. }, Some(_)) => concat!(
        parts!("names", "fence"),
        "local answer = (function()\n",
        parts!("value", "token", "crowd", "acquire_taken", "acquire_free", "claim", "notify", "gone"),
        general!("ALONE": "acquire"),
        "end)()\n",
        parts!("acquire_fenced")
    ),
    extend_fenced: (Kind::Alone, Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. }, Some(_)) => fenced_parts!("value", "late", "token", "latest", "lock", "extend"; "extend_fenced"),
    adopt_fenced: (Kind::Alone, Verb::Adopt { .. }, Some(_)) => fenced_parts!("value", "late", "adopt", "token", "latest", "lock", "extend"; "extend_fenced"),
    share_try: (Kind::Shared | Kind::Permit, Verb::SetNx { .. }, _) => concat!(
        parts!("names", "shares", "share_alone", "share_value", "token", "claim", "notify", "gone"),
        general!("SHARING": "share_try")
    ),
    share_acquire: (Kind::Shared | Kind::Permit, Verb::Acquire { .. }, None) => concat!(
        parts!("names", "shares", "share_alone", "share_value", "token", "claim", "notify", "gone"),
        general!("SHARING": "acquire")
    ),
    share_extend: (Kind::Shared | Kind::Permit, Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. } | Verb::Adopt { .. }, None) => concat!(
        parts!("names", "token", "latest", "shares", "share_extend_alone", "share_value", "claim", "notify", "gone"),
        general!("SHARING": "share_extend")
    ),
    share_acquire_fenced: (Kind::Shared | Kind::Permit, Verb::Acquire { .. }, Some(_)) => concat!(
        parts!("names", "fence"),
        "local answer = (function()\n",
        parts!("shares", "share_alone", "share_value", "token", "claim", "notify", "gone"),
        general!("SHARING": "acquire"),
        "end)()\n",
        parts!("acquire_fenced")
    ),
    share_extend_fenced: (Kind::Shared | Kind::Permit, Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. } | Verb::Adopt { .. }, Some(_)) => concat!(
        parts!("names", "fence"),
        "local answer = (function()\n",
        parts!("token", "latest", "shares", "share_extend_alone", "share_value", "claim", "notify", "gone"),
        general!("SHARING": "share_extend"),
        "end)()\n",
        parts!("extend_fenced")
    ),
    share_yield: (Kind::Shared | Kind::Permit, Verb::Yield { .. }, _) => concat!(
        parts!("names", "shares", "share_value", "token", "claim", "notify", "gone"),
        general!("SHARING": "yield")
    ),
    share_release: (Kind::Shared, Verb::Release { .. }, _) => concat!(
        parts!("names", "shares", "share_release_alone", "share_value", "token", "claim", "notify", "gone", "release_timeless"),
        general!("SHARING": "release")
    ),
    set_try: (Kind::Several, Verb::SetNx { .. }, _) => of_several!(first "set_alone", "share_try"; from 1 at 2),
    set_acquire: (Kind::Several, Verb::Acquire { .. }, _) => of_several!(first "set_alone", "acquire"; from 1 at 3),
    set_extend: (Kind::Several, Verb::Extend { .. } | Verb::Renew { .. } | Verb::Keep { .. } | Verb::Adopt { .. }, _) => of_several!(first "set_extend_alone", "share_extend"; from 0 at 2),
    set_yield: (Kind::Several, Verb::Yield { .. }, _) => of_several!("yield"),
    set_release: (Kind::Several, Verb::Release { .. }, _) => of_several!(first "set_release_alone", "set_release_timeless"; "release"),
    permit_enter: (_, Verb::Enter { .. }, _) => concat!(
        parts!("names", "permit_turn", "shares", "permit_roll"),
        // Without waiters, a permit is taken like any share.
        "if ARGV[6] ~= 'late' and (function()\n",
        parts!("share_alone"),
        "end)() then\nreturn entered()\nend\n",
        parts!("share_value", "token", "claim", "notify", "gone"),
        general!("SHARING": "permit_enter")
    ),
    permit_release: (Kind::Permit, Verb::Release { .. }, _) => concat!(
        parts!("names", "shares"),
        // The admission lock is free: no holder of it must be notified.
        "if redis.pcall('GET', KEYS[3]) == false then\n",
        parts!("share_release_alone"),
        "end\n",
        parts!("share_value", "token", "claim", "notify", "gone", "release_timeless"),
        general!("SHARING": "permit_freed", "release")
    ),
}

impl Scripts {
    /// Returns the script that executes the command of `question`, if there is one.
    pub(super) fn for_question(&self, question: &Question) -> Option<&Script> {
        match (&question.form, question.command.verb) {
            (Form::Checked, _) => Some(&self.set_checked),
            (Form::Own, Verb::Release { .. }) => Some(&self.release_own),
            (Form::Own, _) => Some(&self.extend_own),
            _ => self.of(&question.command),
        }
    }
}

impl Script {
    /// Returns the call by digest, or by source if the server does not store scripts, in the namespace of `channels`.
    pub(super) fn call(&self, question: &Question, channels: &Channels) -> Cmd {
        match &self.digest {
            Some(digest) => call("EVALSHA", digest, question, channels),
            None => self.by_source(question, channels),
        }
    }

    /// Returns the command that runs the script, and its first argument: digest or source.
    pub(super) fn eval(&self, channels: &Channels) -> (&'static str, Cow<'_, str>) {
        match &self.digest {
            Some(digest) => ("EVALSHA", digest.into()),
            None => ("EVAL", self.source(channels)),
        }
    }

    /// Returns `true` if the server stores the script.
    pub(super) const fn is_loaded(&self) -> bool {
        self.digest.is_some()
    }

    /// Returns the text that is loaded for a manager with these `channels`.
    pub(super) fn source(&self, channels: &Channels) -> Cow<'static, str> {
        channels.in_script(self.source)
    }

    /// Returns the call by source, which also loads the script: for a server that has lost it.
    pub(super) fn by_source(&self, question: &Question, channels: &Channels) -> Cmd {
        call("EVAL", &self.source(channels), question, channels)
    }
}

/// Builds the call of a script by `eval`, with `script` as its digest or its source. The heads of the `.lua` files list the keys and
/// arguments.
fn call(eval: &str, script: &str, question: &Question, channels: &Channels) -> Cmd {
    let Question { command, form, is_late, .. } = question;
    if matches!(form, Form::Checked | Form::Own) {
        return plain_call(eval, script, question);
    }
    let (key, token, admission) = (command.key(), command.token(), admission_of(command));
    let mut call = Cmd::with_capacity(8, 2 * key.len() + token.len() + script.len() + 48);
    let names = 2 * command.subject.wanted().count();
    let numbered = command.fence.map(|ballot| (ballot, command.subject.numbered_slots()));
    let registers = numbered.as_ref().map_or(0, |(_, slots)| slots.len());
    call.arg(eval).arg(script).arg(names + registers + usize::from(admission.is_some()));
    for (key, _) in command.subject.wanted() {
        call.arg(key.name());
        match form {
            Form::Whole => call.arg(queue_name(key.name())),
            // A command that repeats the key in place of its queue belongs to a single key.
            _ => call.arg(key.name()),
        };
    }
    for slot in numbered.iter().flat_map(|(_, slots)| slots.iter()) {
        call.arg(register_of(channels.namespace(), *slot));
    }
    call.arg(admission);
    call.arg(token);
    let is_shared = !command.subject.is_plain();
    match command.verb {
        Verb::SetNx { ttl } | Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } if is_shared => {
            call.arg(millis(ttl)).arg(millis(lease::claim(ttl))).arg("")
        }
        Verb::Adopt { ttl } if is_shared => call.arg(millis(ttl)).arg(millis(lease::claim(ttl))).arg(command.other()),
        Verb::Acquire { ttl, claim, holds: false } => call.arg(millis(ttl)).arg(millis(claim)),
        Verb::Acquire { ttl, claim, holds: true } => call.arg(millis(ttl)).arg(millis(claim)).arg("holds"),
        Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } | Verb::SetNx { ttl } => call.arg(millis(ttl)),
        Verb::Adopt { ttl } => call.arg(millis(ttl)).arg(command.other()),
        Verb::Enter { ttl, turn } => {
            call.arg(millis(ttl)).arg(millis(lease::claim(ttl))).arg(command.other()).arg(millis(turn))
        }
        Verb::Yield { claim } => call.arg(millis(claim)).arg(command.other()),
        Verb::Release { claim } => call.arg(millis(claim)),
        Verb::Revoke => call.arg(command.other()),
        // No script executes it.
        Verb::Raise { .. } => &mut call,
    };
    if *is_late && (command.verb.is_extension() || matches!(command.verb, Verb::Enter { .. })) {
        call.arg("late");
    }
    if let Some((ballot, _)) = numbered {
        call.arg(ballot.number);
    }
    if command.subject.has_several() {
        call.arg(command.subject.wanted().map(|(_, class)| digit(class)).collect::<String>());
    }
    call
}

/// Builds the call of a script that needs only the token and the ttl, and names the queues only if the form has them.
fn plain_call(eval: &str, script: &str, question: &Question) -> Cmd {
    let Question { command, form, is_late, .. } = question;
    let wanted = || command.subject.wanted().map(|(key, _)| key.name());
    let has_queues = *form == Form::Checked;
    let mut call = Cmd::new();
    call.arg(eval).arg(script).arg(wanted().count() * if has_queues { 2 } else { 1 });
    for key in wanted() {
        call.arg(key).arg(has_queues.then(|| queue_name(key)));
    }
    call.arg(command.token());
    match command.verb {
        Verb::SetNx { ttl } => call.arg(millis(ttl)),
        Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } => call.arg(millis(ttl)).arg(""),
        Verb::Adopt { ttl } => call.arg(millis(ttl)).arg(command.other()),
        _ => &mut call,
    };
    if *is_late && command.verb.is_extension() {
        call.arg("late");
    }
    call
}

/// Returns the name of the admission lock, for a command that reads it.
fn admission_of(command: &Command) -> Option<String> {
    let looks = match command.verb {
        Verb::Enter { .. } => true,
        Verb::Release { .. } => command.subject.mode.is_permit(),
        _ => false,
    };
    looks.then(|| admission_name(command.key()))
}

/// Converts an expiry to whole milliseconds. Every `ttl` is far below the end of `u64`; see `Policy::checked_ttl`.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::namespace::{MAX_LEN, prefix};
    use std::fs;
    use std::path::PathBuf;

    /// Writes the complete scripts with their comments to `target/lua`, for people who read or compare them.
    #[test]
    fn complete_scripts_are_written_to_the_target_folder() {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../target".into(), PathBuf::from);
        let folder = target.join("lua");
        fs::create_dir_all(&folder).unwrap();
        for (name, parts) in Scripts::PARTS {
            let source = with_constants(parts);
            assert!(packed(&source).len() < source.len(), "{name}");
            fs::write(folder.join(name).with_extension("lua"), source).unwrap();
        }
    }

    /// With the channels of a cluster member and the longest namespace.
    #[test]
    fn every_script_is_short_even_with_the_longest_channels() {
        let namespace = prefix(&"n".repeat(MAX_LEN));
        let channels = Channels::of_member(&namespace, &"0".repeat(40)).unwrap();
        for (name, source) in Scripts::SOURCES {
            let source = channels.in_script(source);
            assert!(source.len() < 18 * 1024, "{name}: {} bytes", source.len());
            assert!(!source.contains("--"), "{name}");
        }
    }

    #[test]
    fn script_constants_are_inserted() {
        let table = [
            ("#value == TOKEN_LEN", "#value == 60"),
            ("string.sub(to, ATTEMPT_LEN + 2)", "string.sub(to, 36 + 2)"),
            ("string.sub(largest, 1, TIME_LEN)", "string.sub(largest, 1, 18)"),
            ("string.byte(to, VERSION_AT) == CLAIMS_VERSION", "string.byte(to, 50) == 56"),
            ("to .. MARK", "to .. '+'"),
            ("CHANNEL .. id", "'redlock::' .. id"),
            ("{QUEUE_EXPIRY, MEMBER}", "{30000, 'n'}"),
            ("token .. READER", "token .. 's'"),
            ("LETTER_OF[as]", "({['1']='s',['2']='i',['3']='r'})[as]"),
            ("LETTERS['r']", "({s=1,i=2,r=3})['r']"),
            ("ENDINGS['']", "({['']=0,['+']=0,s=1,i=2,r=3})['']"),
        ];
        for (part, expected) in table {
            assert_eq!(with_constants(part), expected);
        }
    }
}
