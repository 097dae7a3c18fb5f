//! State of `watch`: the locks, the messages and the order.

use super::super::waiter_count;
use crate::arguments::Sort;
use redlock_runtime::admin::{Holder, Inspection, LockList, Owner, single_line};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// State of `watch`.
pub(super) struct Board {
    pattern: String,
    rows: Vec<Row>,
    sort: Sort,
    /// Messages about failed nodes and about an incomplete list.
    messages: Vec<String>,
    /// Names of the processes by manager id, from the last lookup.
    labels: HashMap<String, String>,
    /// Number of updates.
    updates: usize,
    /// Time of the last update.
    updated: Option<SystemTime>,
}

/// One lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) holder: String,
    /// Time since the holder requested the lock.
    pub(super) age: Option<Duration>,
    /// Number of waiting processes.
    pub(super) waiting: u64,
}

impl Board {
    pub(super) fn new(pattern: &str, sort: Sort) -> Self {
        let (rows, messages, labels) = (Vec::new(), Vec::new(), HashMap::new());
        Self { pattern: pattern.into(), rows, sort, messages, labels, updates: 0, updated: None }
    }

    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the locks in the selected order.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn messages(&self) -> &[String] {
        &self.messages
    }

    pub(super) const fn updates(&self) -> usize {
        self.updates
    }

    pub(super) const fn updated(&self) -> Option<SystemTime> {
        self.updated
    }

    pub(super) const fn sort(&self) -> Sort {
        self.sort
    }

    /// Selects the next order.
    pub(super) fn change_sort(&mut self) {
        self.sort = self.sort.next();
        self.sort_rows();
    }

    fn sort_rows(&mut self) {
        match self.sort {
            Sort::Waiting => self.rows.sort_by(|a, b| {
                (Reverse(a.waiting), Reverse(a.age), &a.key).cmp(&(Reverse(b.waiting), Reverse(b.age), &b.key))
            }),
            Sort::Age => self.rows.sort_by(|a, b| (Reverse(a.age), &a.key).cmp(&(Reverse(b.age), &b.key))),
            Sort::Key => self.rows.sort_by(|a, b| a.key.cmp(&b.key)),
        }
    }

    /// Replaces the locks with those of a new list.
    pub(super) fn update(&mut self, list: &LockList, locks: &[Inspection]) {
        self.updates += 1;
        self.updated = Some(SystemTime::now());
        for lock in locks {
            self.learn(lock);
        }
        let is_locked = |lock: &&Inspection| lock.holder() != Some(&Holder::Nobody);
        self.rows = locks.iter().filter(is_locked).map(|lock| self.row(lock)).collect();
        self.sort_rows();
        self.messages = list.failures.iter().map(ToString::to_string).collect();
        if !list.is_complete {
            self.messages.push("not all locks are shown: pass a narrower pattern".to_owned());
        }
    }

    /// Stores the names of the lock's processes.
    fn learn(&mut self, lock: &Inspection) {
        let holders = lock.nodes.iter().filter_map(|node| node.holder.owner());
        for owner in holders.filter(|owner| owner.is_connected.is_some()) {
            self.labels.insert(manager(owner), described(owner));
        }
    }

    fn row(&self, lock: &Inspection) -> Row {
        let (holder, age) = match lock.holder() {
            Some(Holder::Owner(owner)) => {
                let known = self.labels.get(&manager(owner)).cloned().unwrap_or_else(|| described(owner));
                (known, Some(owner.age()))
            }
            Some(other) => (other.to_string(), None),
            None => ("no majority".to_owned(), None),
        };
        let waiting = waiter_count(lock);
        Row { key: single_line(lock.key.as_str()).into_owned(), holder, age, waiting }
    }
}

/// Returns the manager id of a token.
fn manager(owner: &Owner) -> String {
    owner.token.as_str().rsplit('@').next().unwrap_or_default().to_owned()
}

/// Returns a short name of the process of a token.
fn described(owner: &Owner) -> String {
    let name = owner.label.as_deref().map_or_else(|| manager(owner), str::to_owned);
    let name = single_line(&name);
    match (&owner.address, owner.is_connected) {
        (Some(address), _) => format!("{name} at {}", single_line(address)),
        (None, Some(false)) => format!("{name}, not connected"),
        (None, _) => name.into_owned(),
    }
}
