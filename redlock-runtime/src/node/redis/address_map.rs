//! Addresses at which clients reach servers that announce other ones, as behind NAT or in containers.

use super::url::host_and_port;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Returns the address at which clients reach the server that announces this host and port.
type Function = dyn Fn(&str, u16) -> (String, u16) + Send + Sync;

/// Maps announced addresses to reachable ones. By default, they are the same.
#[derive(Clone, Default)]
pub(super) enum AddressMap {
    #[default]
    Identity,
    /// A table from the parameters of a URL.
    Table(Vec<Entry>),
    /// A function of the program.
    Function(Arc<Function>),
}

/// One line of the table. A missing port means every port of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    announced: (String, Option<u16>),
    reachable: (String, Option<u16>),
}

impl AddressMap {
    pub(super) fn by(map: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static) -> Self {
        Self::Function(Arc::new(map))
    }

    /// Adds the value of a parameter: `announced:port/reachable:port`.
    ///
    /// # Errors
    /// The reason, as the rest of a sentence that begins with "the URL of a node".
    pub(super) fn add(&mut self, value: &str) -> Result<(), &'static str> {
        let (announced, reachable) = value.split_once('/').ok_or(WRONG)?;
        let address = |text| host_and_port(text).map_err(|_| WRONG);
        let entry = Entry { announced: address(announced)?, reachable: address(reachable)? };
        if entry.announced.1.is_none() && entry.reachable.1.is_some() {
            // All servers of the host would have one address.
            return Err(WRONG);
        }
        match self {
            Self::Table(entries) => entries.push(entry),
            _ => *self = Self::Table(vec![entry]),
        }
        Ok(())
    }

    /// Returns this map, or `other` if there is none here.
    pub(super) fn or(self, other: Self) -> Self {
        if matches!(self, Self::Identity) { other } else { self }
    }

    /// Returns the address at which clients reach the server that announces `host` and `port`. If the function panics, the address stays
    /// unchanged.
    pub(super) fn reachable(&self, host: &str, port: u16) -> (String, u16) {
        let mapped = match self {
            Self::Identity => None,
            Self::Table(entries) => entries.iter().find_map(|entry| entry.apply(host, port)),
            Self::Function(map) => catch_unwind(AssertUnwindSafe(|| map(host, port))).ok(),
        };
        mapped.unwrap_or_else(|| (host.to_owned(), port))
    }
}

impl Entry {
    fn apply(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let is_meant = self.announced.0.eq_ignore_ascii_case(host) && self.announced.1.is_none_or(|own| own == port);
        is_meant.then(|| (self.reachable.0.clone(), self.reachable.1.unwrap_or(port)))
    }
}

impl fmt::Debug for AddressMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressMap")
    }
}

const WRONG: &str = "has a map that is not a pair of addresses: write map=announced:port/reachable:port, such as \
                     map=10.0.0.5:6379/127.0.0.1:7001, or hosts alone for all their ports";

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[&str]) -> AddressMap {
        let mut map = AddressMap::default();
        for value in values {
            map.add(value).unwrap();
        }
        map
    }

    #[test]
    fn first_matching_address_map_entry_wins() {
        let map = table(&["10.0.0.5:6379/127.0.0.1:7001", "10.0.0.5/nat.example", "[::1]:7/[::2]:8", "A:1/b"]);
        let rows = [
            (("10.0.0.5", 6379), ("127.0.0.1", 7001)),
            (("10.0.0.5", 6380), ("nat.example", 6380)),
            (("10.0.0.6", 6379), ("10.0.0.6", 6379)),
            (("::1", 7), ("::2", 8)),
            (("a", 1), ("b", 1)),
        ];
        for ((host, port), (expected, expected_port)) in rows {
            assert_eq!(map.reachable(host, port), (expected.to_owned(), expected_port), "{host}:{port}");
        }
        assert_eq!(AddressMap::default().reachable("a", 1), ("a".to_owned(), 1));
    }

    #[test]
    fn address_map_rejects_malformed_pairs() {
        for value in ["", "a", "a:1", "a/", "/b", "a/b/c", "a:x/b", "a:1/b:0", "a/b:1", "a@b/c"] {
            assert_eq!(AddressMap::default().add(value), Err(WRONG), "{value}");
        }
    }

    #[test]
    fn address_map_function_wins_over_table_and_may_panic() {
        let map = AddressMap::by(|host, port| {
            assert_ne!(host, "panic");
            (format!("{host}.example"), port + 1)
        });
        let map = map.or(table(&["a:1/b:1"]));
        assert_eq!(map.reachable("a", 1), ("a.example".to_owned(), 2));
        assert_eq!(map.reachable("panic", 1), ("panic".to_owned(), 1));
    }
}
