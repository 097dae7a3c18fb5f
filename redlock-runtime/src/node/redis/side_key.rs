//! Names of the keys beside a lock: in the same slot of a cluster, and shared with no other lock.

use crate::lock::beside::{number_for_slot, side_key};
use crate::lock::reserved::REGISTER;
use crate::lock::slot::slot_of;

/// Returns the name of the queue: `{order:7}:q` for `order:7`. A key with a hash tag keeps it and follows: `{7}:q:order:{7}` for
/// `order:{7}`.
pub(crate) fn queue_name(lock: &str) -> String {
    side_key(lock, "}:q")
}

/// Returns the name of the fencing register for `lock` and all other locks of its slot in the same namespace. It is `redlock:f:{4438}` for
/// `order:7`, and `shop:redlock:f:{..}` for `shop:order:7` with the prefix `shop:`. A register outlives its locks, so there must not be one
/// for each.
pub(super) fn register_name(namespace: &str, lock: &str) -> String {
    register_of(namespace, slot_of(lock))
}

/// Returns the register of a slot in the namespace with this prefix. Its name has that slot: the prefix contains no hash tag, or a complete
/// one that all names in the namespace have.
pub(super) fn register_of(namespace: &str, slot: u16) -> String {
    format!("{namespace}{REGISTER}{{{}}}", number_for_slot(slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockKey;
    use crate::lock::beside::numbers;
    use crate::lock::namespace;
    use crate::lock::reserved::is_reserved;
    use crate::lock::slot::slot;
    use crate::private::part;
    use crate::time::ballot_clock::SLOTS;
    use fastrand::Rng;
    use std::collections::{HashMap, HashSet};

    const KEYS: [&str; 23] = [
        "order:7",
        "order:{7}",
        "{7}",
        "7",
        "{order:7}",
        "a{b}c",
        "a{b}c{d}",
        "{a}{b}",
        "a}b",
        "}",
        "{",
        "a{b",
        "{}",
        "{}x",
        "{}{x}",
        "}{x}",
        "a}{x}",
        "{{x}",
        "{{x}}",
        "{x",
        "x}",
        "{order:7}:q",
        "{order:7}:f",
    ];

    #[test]
    fn side_keys_have_the_documented_names() {
        let table = [
            ("order:7", "{order:7}:q"),
            ("order:{7}", "{7}:q:order:{7}"),
            ("{order:7}", "{order:7}:q:{order:7}"),
            ("a{b", "{a{b}:q"),
        ];
        for (lock, expected) in table {
            assert_eq!(queue_name(lock), expected);
        }
        let [one, other] = ["order:7", "{order:7}:state"].map(|lock| register_name("", lock));
        assert_eq!([one.as_str(), &other], ["redlock:f:{4438}"; 2]);
        assert_eq!(register_name("shop:", "{order:7}:state"), "shop:redlock:f:{4438}");
    }

    #[test]
    fn side_key_is_in_the_slot_of_its_lock_and_unique() {
        let mut names = HashMap::new();
        for lock in KEYS {
            for namespace in NAMESPACES.map(namespace::prefix) {
                let lock = [&namespace, lock].concat();
                let register = register_name(&namespace, &lock);
                assert!(slot_of(&register) == slot_of(&lock) && is_reserved(&register), "{lock}: {register}");
                assert!(register.starts_with(&namespace), "{lock}: {register}");
            }
        }
        for (lock, name) in KEYS.map(|lock| (lock, queue_name(lock))) {
            assert_eq!(slot_of(&name), slot_of(lock), "{lock}: {name}");
            assert!(is_reserved(&name), "{name} must not be a lock");
            if let Some(other) = names.insert(name.clone(), lock) {
                panic!("{lock} and {other} share {name}");
            }
        }
    }

    /// Parts of side keys, and characters that escape them.
    const PIECES: [&str; 16] =
        ["{", "}", ":", "q", "f", ":q", "}:f", "}:q:", "a", "7", "%", "%7B", "%72", "redlock", "f:{9", "\0é"];

    const NAMESPACES: [&str; 10] = ["", "", "", "{", "{a}", "redlock", "a:{b", "%7Ba}", "{}", "}{a}"];

    fn nasty(random: &mut Rng) -> String {
        (0..random.usize(..5)).map(|_| PIECES[random.usize(..PIECES.len())]).collect()
    }

    /// Returns the text of a template with two values, as the attribute generates it, and the text without escaping.
    fn text(random: &mut Rng) -> (String, String) {
        let (a, b) = (&nasty(random), &nasty(random));
        match random.u8(..6) {
            0 => (format!("{}:{}", part(a).escaped(':'), part(b).escaped('%')), format!("{a}:{b}")),
            1 => (part(a).escaped('%').to_string(), a.clone()),
            2 => (format!("{}}}{}", part(a).escaped('}'), part(b).escaped('%')), format!("{a}}}{b}")),
            3 => (format!("{{{}}}:{}", part(a).escaped('}'), part(b).escaped('%')), format!("{{{a}}}:{b}")),
            4 => (format!("{{{}}}:q", part(a).escaped('}')), format!("{{{a}}}:q")),
            _ => (format!("redlock:{}", part(a).escaped('%')), format!("redlock:{a}")),
        }
    }

    /// Locks, and their side keys.
    #[derive(Default)]
    struct Database {
        locks: HashSet<String>,
        beside: HashMap<String, String>,
        registers: HashSet<String>,
    }

    impl Database {
        fn add(&mut self, namespace: &str, lock: &str) {
            let other = self.beside.insert(queue_name(lock), lock.to_owned());
            assert!(other.as_deref().is_none_or(|other| other == lock), "{lock} and {other:?} share a queue");
            self.registers.insert(register_name(namespace, lock));
            self.locks.insert(lock.to_owned());
        }

        /// Returns the locks with the name of a side key of another lock.
        fn confused(&self) -> Vec<&String> {
            let is_beside = |lock: &&String| self.registers.contains(*lock) || self.beside.contains_key(*lock);
            self.locks.iter().filter(is_beside).collect()
        }
    }

    #[test]
    fn no_placeholder_value_names_a_side_key_of_another_lock() {
        let mut random = Rng::with_seed(7);
        let (mut kept, mut careless) = (Database::default(), Database::default());
        for _ in 0..50_000 {
            let (text, raw) = text(&mut random);
            let prefix = namespace::prefix(NAMESPACES[random.usize(..NAMESPACES.len())]);
            careless.add(&prefix, &(prefix.clone() + &raw));
            let key = LockKey::from_template(text).below(&prefix);
            for key in [key.in_window(random.i64(-2..20)), key] {
                // If the namespace makes the name of a side key, the call is refused.
                if key.fault().is_none() {
                    kept.add(&prefix, key.name());
                }
            }
        }
        assert_eq!(kept.confused(), [""; 0]);
        assert!(careless.confused().len() > 100, "the values must be nasty enough: {:?}", careless.confused());
    }

    #[test]
    fn two_key_segments_cannot_form_a_queue_name() {
        let text = format!("{}:{}", part("{a").escaped(':'), part("b}:q").escaped('%'));
        assert_eq!(text, queue_name("a:b"));
        let key = LockKey::from_template(text);
        assert_eq!((key.name(), key.fault()), ("%7Ba:b}:q", None));
    }

    #[test]
    fn every_slot_has_a_hash_tag_number() {
        let numbers = numbers();
        assert_eq!(numbers.len(), usize::from(SLOTS));
        for (wanted, number) in (0..SLOTS).zip(&numbers) {
            assert_eq!(slot(number.to_string().as_bytes()), wanted);
        }
    }
}
