//! What stands beside a lock is in the same slot of a cluster, and shared with no other lock: how its name is made.

use crate::lock::slot::{hash_tag, slot};
use crate::time::ballot_clock::SLOTS;
use std::sync::OnceLock;

/// The turnstile of a lock with permits, which is an ordinary lock: `{order:7}:t` for `order:7`.
pub(crate) fn turnstile_name(lock: &str) -> String {
    side_key(lock, "}:t")
}

/// A name that ends in `kind` holds no second closing brace and the others do, so that no two locks share one.
pub(crate) fn side_key(lock: &str, kind: &str) -> String {
    match hash_tag(lock) {
        Some(tag) => ["{", tag, kind, ":", lock].concat(),
        None if !lock.contains('}') => ["{", lock, kind].concat(),
        // The lock has no tag, and cannot be the tag itself, because a tag holds no closing brace. So the tag is a
        // number that happens to have the slot of the lock.
        None => format!("{{{}{kind}:{lock}", number_in(slot(lock.as_bytes()))),
    }
}

/// The smallest number that has this slot when it is a hash tag.
pub(crate) fn number_in(wanted: u16) -> u32 {
    static NUMBERS: OnceLock<Box<[u32]>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(numbers);
    numbers.get(usize::from(wanted)).copied().unwrap_or_default()
}

/// For each slot its smallest number: a hundred thousand tries or so, made once, and only where such keys occur.
pub(crate) fn numbers() -> Box<[u32]> {
    let mut numbers = vec![None; usize::from(SLOTS)];
    let mut missing = SLOTS;
    for number in 0_u32.. {
        if missing == 0 {
            break;
        }
        if let Some(free @ None) = numbers.get_mut(usize::from(slot(number.to_string().as_bytes()))) {
            *free = Some(number);
            missing -= 1;
        }
    }
    numbers.into_iter().flatten().collect()
}
