//! Text of several keys, or of places in a tree, in a detached lock.
//!
//! Each part is a letter, the length of its text in bytes, a colon and the text: `x9:account:7s6:config`. So the text may contain
//! any characters. The ancestors of a path are not written, because the reader derives them.

use crate::lock::parts::Parts;
use crate::lock::{LockPath, Mode};
use crate::request::LockPart;
use std::fmt;

/// Maximum number of parts in a text: more than a request can have, and few enough that a hostile text costs nothing.
const MOST: usize = 64;

/// Letter of each kind of part: `true` for a key, `false` for a path, and the mode.
const LETTERS: [(char, bool, Mode); 4] = [
    ('x', true, Mode::Exclusive),
    ('s', true, Mode::Shared),
    ('X', false, Mode::Exclusive),
    ('S', false, Mode::Shared),
];

/// Returns the requested parts of a lock, to be requested again.
pub(super) fn of(parts: &Parts) -> Box<[LockPart]> {
    let asked = parts.iter().filter(|part| !part.class.is_intent());
    asked
        .map(|part| {
            let mode = if part.class.lowered() == part.class { Mode::Shared } else { Mode::Exclusive };
            match LockPath::of_name(&part.key) {
                Some(path) => LockPart::path(path).mode(mode),
                None => LockPart::key(part.key.as_str()).mode(mode),
            }
        })
        .collect()
}

/// Writes the text that [`read`] reads.
pub(super) fn write(f: &mut fmt::Formatter<'_>, parts: &[LockPart]) -> fmt::Result {
    parts.iter().try_for_each(|part| {
        let (is_key, mode, text) = part.written();
        let letter =
            LETTERS.iter().find(|letter| (letter.1, letter.2) == (is_key, mode)).map_or('x', |letter| letter.0);
        write!(f, "{letter}{}:{text}", text.len())
    })
}

/// Reads the parts. `None` if the text is invalid.
pub(super) fn read(mut text: &str) -> Option<Box<[LockPart]>> {
    let mut parts = Vec::new();
    while !text.is_empty() && parts.len() < MOST {
        let (part, rest) = read_one(text)?;
        parts.push(part);
        text = rest;
    }
    (text.is_empty() && !parts.is_empty()).then(|| parts.into())
}

fn read_one(text: &str) -> Option<(LockPart, &str)> {
    let letter = text.chars().next()?;
    let (_, is_key, mode) = *LETTERS.iter().find(|(known, ..)| *known == letter)?;
    let (length, rest) = text.strip_prefix(letter)?.split_once(':')?;
    // Only digits are valid: `parse` would accept a sign.
    let length = length.bytes().all(|byte| byte.is_ascii_digit()).then(|| length.parse().ok())??;
    let (text, rest) = rest.split_at_checked(length)?;
    let part = if is_key { LockPart::key(text) } else { LockPart::path(LockPath::read_encoded(text)?) };
    Some((part.mode(mode), rest))
}
