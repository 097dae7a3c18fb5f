//! What is known of the locks that are watched.

use redlock_runtime::admin::{Holder, Inspection, LockList, Owner, single_line};
use std::collections::HashMap;
use std::time::Duration;

/// What is known of the locks that are watched.
pub(super) struct Board {
    pattern: String,
    rows: Vec<Row>,
    /// What is wrong with the nodes, or with the list.
    complaints: Vec<String>,
    /// The processes by the ids of their managers, as they were last told.
    labels: HashMap<String, String>,
    looks: usize,
}

/// One lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) holder: String,
    /// Since when its holder has asked for it.
    pub(super) age: Option<Duration>,
    pub(super) waiting: u64,
}

impl Board {
    pub(super) fn new(pattern: &str) -> Self {
        Self { pattern: pattern.into(), rows: Vec::new(), complaints: Vec::new(), labels: HashMap::new(), looks: 0 }
    }

    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The locks, those first that most wait for, and of the others those that are held for longest.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// How often the nodes were looked at.
    pub(super) const fn looks(&self) -> usize {
        self.looks
    }

    /// Takes in what the nodes have said.
    pub(super) fn take_in(&mut self, list: &LockList, locks: &[Inspection]) {
        self.looks += 1;
        for lock in locks {
            self.learn(lock);
        }
        let is_taken = |lock: &&Inspection| lock.holder() != Some(&Holder::Nobody);
        self.rows = locks.iter().filter(is_taken).map(|lock| self.row(lock)).collect();
        self.rows.sort_by(|a, b| (b.waiting, b.age).cmp(&(a.waiting, a.age)).then_with(|| a.key.cmp(&b.key)));
        self.complaints = list.failures.iter().map(ToString::to_string).collect();
        if !list.is_complete {
            self.complaints.push("there are more locks than are shown: watch a pattern".to_owned());
        }
    }

    /// Remembers who is who.
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
        let waiting = lock.nodes.iter().map(|node| node.waiting).max().unwrap_or(0);
        Row { key: single_line(lock.key.as_str()).into_owned(), holder, age, waiting }
    }
}

/// The id of the manager of a token.
fn manager(owner: &Owner) -> String {
    owner.token.as_str().rsplit('@').next().unwrap_or_default().to_owned()
}

/// The process of a token, in short.
fn described(owner: &Owner) -> String {
    let name = owner.label.as_deref().map_or_else(|| manager(owner), str::to_owned);
    let name = single_line(&name);
    match (&owner.address, owner.is_connected) {
        (Some(address), _) => format!("{name} at {}", single_line(address)),
        (None, Some(false)) => format!("{name}, of which no connection is known"),
        (None, _) => name.into_owned(),
    }
}
