#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of other crates")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Store of the services. Two updates of a record without a lock lose one of the updates.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Duration of an update.
pub const UPDATE: Duration = Duration::from_millis(20);

/// Records by name, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Store(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    records: BTreeMap<String, u64>,
    active: usize,
    peak: usize,
}

impl Store {
    /// Returns the record, or zero if it does not exist.
    #[must_use]
    pub fn read(&self, name: &str) -> u64 {
        self.with(|inner| inner.records.get(name).copied().unwrap_or_default())
    }

    /// Returns the largest number of simultaneous updates.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.with(|inner| inner.peak)
    }

    /// Reads the record, waits, and writes it.
    pub async fn update(&self, name: &str, change: impl FnOnce(u64) -> u64 + Send) -> u64 {
        let old = self.read(name);
        let active = Active::new(self);
        tokio::time::sleep(UPDATE).await;
        drop(active);
        let new = change(old);
        self.with(|inner| inner.records.insert(name.to_owned(), new));
        new
    }

    fn with<T>(&self, body: impl FnOnce(&mut Inner) -> T) -> T {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A running update. Its drop ends the count, even if the update is cancelled.
struct Active<'a>(&'a Store);

impl<'a> Active<'a> {
    fn new(store: &'a Store) -> Self {
        store.with(|inner| {
            inner.active += 1;
            inner.peak = inner.peak.max(inner.active);
        });
        Self(store)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.with(|inner| inner.active -= 1);
    }
}
