//! Inspects and lists locks, for people.

use super::LockManager;
use crate::client::gather::gather;
use crate::client::shared::Shared;
use crate::error::{NodeError, NodeFailure};
use crate::lock::LockKey;
use crate::node::inspection::{AT_A_TIME, Inspection, LockList, Names, NodeInspection};
use crate::request::{InspectOptions, ListOptions};
use std::collections::BTreeSet;
use std::time::Duration;

/// Timeout for the reply of a node, and again for its list of clients: 1 s. Too small: a busy node looks unreachable. Too large: an
/// inspection takes longer if a node is frozen.
const PATIENCE: Duration = Duration::from_secs(1);

/// Names of a node that did not answer.
const NONE: Names = Names { found: BTreeSet::new(), are_all: true, missing: Vec::new() };

impl LockManager {
    /// Returns the holder of `key`, its remaining lease and the waiters, as every node stores them. For operators.
    ///
    /// Nothing is changed, and no process is notified. Each node answers for its own moment, so the answers may differ while a lock
    /// changes hands. A key of another namespace needs a manager with this namespace. The key of a [window](crate::LockRequest::once_per)
    /// has its number behind an `@`, such as `report@19843`.
    ///
    /// It takes up to two seconds. The processes behind the tokens come from `CLIENT LIST`, on a separate connection, and only from nodes
    /// where the key has owners or waiters. The list costs a server some milliseconds for each ten thousand clients, so do not inspect
    /// many times a second.
    ///
    /// Permissions of the user beyond those for locks: `+eval`; `+client|list` for processes; `+zscore` on `~redlock:f:*` below the
    /// namespace for fencing numbers; `+time` to leave out ended [shared](crate::LockRequest::shared) locks. A missing permission is
    /// reported in the result.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is left behind.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::admin::Holder;
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let inspection = manager.inspect("order:7").await;
    /// println!("{inspection}");
    /// let owner = inspection.holder().and_then(Holder::owner);
    /// assert!(owner.is_some_and(|owner| owner.token == *guard.token()));
    /// # Ok(()) }
    /// ```
    pub async fn inspect(&self, key: impl Into<LockKey>) -> Inspection {
        let key = key.into().below(&self.shared().namespace);
        let mut looked = self.look_at(vec![key.clone(), key.admission()], true).await.into_iter();
        let inspection = looked.next().unwrap_or_else(|| Inspection { key, nodes: Vec::new(), needed: 0 });
        match looked.next() {
            Some(admission) => inspection.with_admission(admission),
            None => inspection,
        }
    }

    /// Inspects many keys at once, with at most one `CLIENT LIST` per node. The results are in the order of the keys.
    ///
    /// It takes up to two seconds, and up to a second more for each further 500 keys. Waiters for [permits](crate::LockRequest::permits)
    /// are not included; [`inspect`](Self::inspect) has them.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is left behind.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::admin::InspectOptions;
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let inspections = manager.inspect_all(["order:7", "order:8"], InspectOptions::default()).await;
    /// assert!(inspections[0].to_string().starts_with("\"order:7\": held by"));
    /// assert!(inspections[1].to_string().starts_with("\"order:8\": free"));
    /// # drop(guard); Ok(()) }
    /// ```
    pub async fn inspect_all<K: Into<LockKey>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        options: InspectOptions,
    ) -> Vec<Inspection> {
        let namespace = &self.shared().namespace;
        let keys = keys.into_iter().map(|key| key.into().below(namespace)).collect();
        self.look_at(keys, options.looks_up_names).await
    }

    /// Inspects keys that have their namespace. Processes are looked up if `named` is `true`.
    async fn look_at(&self, keys: Vec<LockKey>, named: bool) -> Vec<Inspection> {
        let shared = self.shared();
        shared.wait_for_first_connections().await;
        let asked = shared.nodes.iter().map(|node| node.node().inspect(&keys, named, PATIENCE)).collect::<Vec<_>>();
        let steps = u32::try_from(keys.len().div_ceil(AT_A_TIME)).unwrap_or(u32::MAX);
        let answers = gather(asked, PATIENCE.saturating_mul(steps.saturating_add(2)), |_| false).await;
        let mut nodes: Vec<_> = shared
            .nodes
            .iter()
            .zip(answers)
            .map(|(node, answer)| {
                let silent = || {
                    keys.iter().map(|_| NodeInspection::silent(node.label(), NodeError::TimedOut(PATIENCE))).collect()
                };
                answer.unwrap_or_else(silent).into_iter()
            })
            .collect();
        let inspection = |key| {
            let nodes = nodes.iter_mut().filter_map(Iterator::next).map(|node| with_own_name(node, shared)).collect();
            Inspection { key, nodes, needed: shared.quorum.needed }
        };
        keys.into_iter().map(inspection).collect()
    }

    /// Lists the keys that are locked at any node and match a pattern. For operators.
    ///
    /// `options` is a pattern of Redis for keys below the namespace (`order:*`, `user:?`), or [`ListOptions`] with a limit and a timeout.
    /// Only locks of this library are found. Locks that come or go meanwhile may be missing. Auxiliary keys, such as queues, are not
    /// listed. A manager in memory has no list: the result contains a failure.
    ///
    /// It runs `SCAN` on a separate connection and reads the names of all keys of the database: four round trips and about two
    /// milliseconds of the server for each thousand keys. Servers answer other clients in between. The user needs `+scan +getrange
    /// +zrange` on all keys that match.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is left behind.
    ///
    /// # Examples
    /// ```no_run
    /// # use redlock_runtime::admin::ListOptions;
    /// # use redlock_runtime::LockManager;
    /// # async fn list(manager: LockManager) {
    /// let all = manager.list("order:*").await;
    /// let some = manager.list(ListOptions::new("order:*").limit(50)).await;
    /// # }
    /// ```
    pub async fn list(&self, options: impl Into<ListOptions>) -> LockList {
        let (ListOptions { pattern, limit, timeout }, shared) = (options.into(), self.shared());
        let pattern = [&*literally(&shared.namespace), &*pattern].concat();
        let asked = shared.nodes.iter().map(|node| node.node().list(&pattern, limit, timeout)).collect();
        // A node ends by itself at the timeout, unless it is unreachable.
        let answers = gather(asked, timeout.saturating_add(PATIENCE), |_| false).await;
        let (mut keys, mut failures, mut is_complete, mut unheard) = (BTreeSet::new(), Vec::new(), true, 0);
        for (node, answer) in shared.nodes.iter().zip(answers) {
            let failed = |error| Names { missing: vec![NodeFailure { node: node.label().into(), error }], ..NONE };
            let names = answer.unwrap_or(Err(NodeError::TimedOut(timeout))).unwrap_or_else(failed);
            is_complete &= names.are_all;
            unheard += usize::from(!names.missing.is_empty());
            keys.extend(names.found);
            failures.extend(names.missing);
        }
        is_complete &= keys.len() <= limit;
        let keys = keys.iter().filter_map(|name| name.strip_prefix(&*shared.namespace)).take(limit);
        let keys = keys.map(LockKey::from).collect();
        LockList { keys, is_complete, failures, needed: shared.quorum.needed, unheard }
    }
}

/// Returns a pattern that matches `text` only.
fn literally(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Sets the label of tokens of this process, which need no list of clients.
fn with_own_name(mut node: NodeInspection, shared: &Shared) -> NodeInspection {
    let own = shared.id.to_string();
    let owners = node.holder.owners_mut().iter_mut().chain(&mut node.waiters);
    for owner in owners.filter(|owner| owner.token.manager() == own) {
        owner.label.get_or_insert_with(|| (&*shared.label).into());
    }
    node
}
