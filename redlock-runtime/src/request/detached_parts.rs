//! Several keys, or places in a tree, in the text of a detached lock.
//!
//! Each part is a letter, the length of its text in bytes, a colon and the text: `x9:account:7s6:config`. So a text may be
//! anything. Of a path, what is above it is not written: whoever reads it knows that.

use crate::lock::parts::Parts;
use crate::lock::{LockPath, Mode};
use crate::request::LockPart;
use std::fmt;

/// The most parts in a text. More than any request has, so that a hostile text costs nothing.
const MOST: usize = 64;

/// The letter of a part, by whether it is a key, and its mode.
const LETTERS: [(char, bool, Mode); 4] = [
    ('x', true, Mode::Exclusive),
    ('s', true, Mode::Shared),
    ('X', false, Mode::Exclusive),
    ('S', false, Mode::Shared),
];

/// What was locked, to be locked again.
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

/// Writes what [`read`] reads.
pub(super) fn write(f: &mut fmt::Formatter<'_>, parts: &[LockPart]) -> fmt::Result {
    parts.iter().try_for_each(|part| {
        let (is_key, mode, text) = part.written();
        let letter =
            LETTERS.iter().find(|letter| (letter.1, letter.2) == (is_key, mode)).map_or('x', |letter| letter.0);
        write!(f, "{letter}{}:{text}", text.len())
    })
}

/// Reads the parts; `None` for what nothing has written.
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
    // Nothing else is a length: `parse` would take a sign.
    let length = length.bytes().all(|byte| byte.is_ascii_digit()).then(|| length.parse().ok())??;
    let (text, rest) = rest.split_at_checked(length)?;
    let part = if is_key { LockPart::key(text) } else { LockPart::path(LockPath::read_encoded(text)?) };
    Some((part.mode(mode), rest))
}
