//! Names of the keys beside a lock. They have the cluster slot of the lock, and belong to no other lock.

use crate::lock::slot::{hash_tag, slot};
use crate::time::ballot_clock::SLOTS;
use std::sync::OnceLock;

/// Returns the name of the gate of a lock with permits, which is an ordinary lock: `{order:7}:t` for `order:7`.
pub(crate) fn admission_name(lock: &str) -> String {
    side_key(lock, "}:t")
}

/// Returns the name of a key of one `kind` beside a lock. A name that ends in `kind` contains no second closing brace, and all
/// other names do. So no two locks share such a name.
pub(crate) fn side_key(lock: &str, kind: &str) -> String {
    match hash_tag(lock) {
        Some(tag) => ["{", tag, kind, ":", lock].concat(),
        None if !lock.contains('}') => ["{", lock, kind].concat(),
        // The lock has no tag, and cannot be the tag itself, because a tag contains no closing brace. So the tag is a number with
        // the slot of the lock.
        None => format!("{{{}{kind}:{lock}", number_for_slot(slot(lock.as_bytes()))),
    }
}

/// Returns the smallest number that has this slot when it is a hash tag.
pub(crate) fn number_for_slot(wanted: u16) -> u32 {
    static NUMBERS: OnceLock<Box<[u32]>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(numbers);
    numbers.get(usize::from(wanted)).copied().unwrap_or_default()
}

/// Returns the smallest number of each slot. The search takes about a hundred thousand tries. It runs once, and only if such a key
/// occurs.
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
