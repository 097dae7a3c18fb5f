//! Asks every node what it has of a key, for people.

use super::LockManager;
use crate::client::gather::gather;
use crate::client::shared::Shared;
use crate::error::{NodeError, NodeFailure};
use crate::lock::LockKey;
use crate::node::inspection::{AT_A_TIME, Inspection, LockList, Names, NodeInspection};
use std::collections::BTreeSet;
use std::time::Duration;

/// For how long the answer of a node is waited for, then as long again for its list of clients. Smaller, a node that is busy
/// looks silent; larger, a look at a frozen node takes longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a node has told that cannot be asked: none is missing where it has answered.
const NONE: Names = Names { found: BTreeSet::new(), are_all: true, missing: Vec::new() };

impl LockManager {
    /// Asks every node who has `key`, since when and for how much longer, and who waits for it. For people who look for
    /// whoever holds up the others.
    ///
    /// Nothing is changed, and nobody is told. Each node tells of a moment of its own, so that they may differ while a
    /// lock changes hands. A key of another namespace is that of a manager with that namespace; the key of a
    /// [window](crate::LockRequest::once_per) has its number behind an `@`, as in `report@19843`.
    ///
    /// It takes two seconds at most. The processes behind the tokens come from `CLIENT LIST`, on a connection of its own that is
    /// made for it, and only of nodes where somebody has the key or waits. That costs a server some milliseconds for each ten
    /// thousand clients: once when somebody wants to know it is nothing, and many times a second it is not.
    ///
    /// The user needs `+eval` and what locks need anyway (of [shared](crate::LockRequest::shared) ones also `+time`, or it is told of
    /// those whose shares have just ended, too), `+client|list` to be told of processes, and `+zscore` on
    /// `~redlock:f:*` below the namespace for fencing numbers. What is missing is said in the answer.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
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
        let mut looked = self.look_at(vec![key.clone(), key.turnstile()], true).await.into_iter();
        let inspection = looked.next().unwrap_or_else(|| Inspection { key, nodes: Vec::new(), needed: 0 });
        match looked.next() {
            Some(turnstile) => inspection.with_turnstile(turnstile),
            None => inspection,
        }
    }

    /// Does the same for many keys at once, with one question for the clients of each node, or none: without being `named`,
    /// only tokens are known. The answers are in the order of the keys. It may take a second more for each five hundred keys. Who
    /// waits for a [permit](crate::LockRequest::permits) is told by [`inspect`](Self::inspect) only.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn inspect_all<K: Into<LockKey>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        named: bool,
    ) -> Vec<Inspection> {
        let namespace = &self.shared().namespace;
        self.look_at(keys.into_iter().map(|key| key.into().below(namespace)).collect(), named).await
    }

    /// Does so for keys in their namespaces.
    async fn look_at(&self, keys: Vec<LockKey>, named: bool) -> Vec<Inspection> {
        let shared = self.shared();
        shared.heard_of_all().await;
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

    /// The keys that are locked at any node and match `pattern`, at most `most` of them, as far as they are found `within` that
    /// time: for people who look around.
    ///
    /// The pattern is that of Redis (`order:*`, `user:?`), for keys below the namespace. Locks of this library are found, and no
    /// others: of each text whose name matches, the beginning is read, and of each sorted set, which is a token or is not. A lock that comes or goes
    /// meanwhile may be missing. What stands beside a lock, such as the `{order:7}:t` of one with permits, is left out.
    ///
    /// It is made of `SCAN`, on a connection of its own, and reads the names of all keys of the database: the servers serve
    /// others in between, and answer late when there are millions. Of each thousand keys, that is four round trips, and about two
    /// milliseconds of the server. The user needs `+scan +getrange +zrange` on everything that matches. A manager in memory lists nothing.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn list(&self, pattern: &str, most: usize, within: Duration) -> LockList {
        let shared = self.shared();
        let pattern = [&*literally(&shared.namespace), pattern].concat();
        let asked = shared.nodes.iter().map(|node| node.node().list(&pattern, most, within)).collect();
        // A node ends by itself, unless it is silent.
        let answers = gather(asked, within.saturating_add(PATIENCE), |_| false).await;
        let (mut keys, mut failures, mut is_complete, mut unheard) = (BTreeSet::new(), Vec::new(), true, 0);
        for (node, answer) in shared.nodes.iter().zip(answers) {
            let failed = |error| Names { missing: vec![NodeFailure { node: node.label().into(), error }], ..NONE };
            let names = answer.unwrap_or(Err(NodeError::TimedOut(within))).unwrap_or_else(failed);
            is_complete &= names.are_all;
            unheard += usize::from(!names.missing.is_empty());
            keys.extend(names.found);
            failures.extend(names.missing);
        }
        is_complete &= keys.len() <= most;
        let keys = keys.iter().filter_map(|name| name.strip_prefix(&*shared.namespace)).take(most);
        let keys = keys.map(LockKey::from).collect();
        LockList { keys, is_complete, failures, needed: shared.quorum.needed, unheard }
    }
}

/// A pattern that matches `text` and nothing else.
fn literally(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Tokens of this process need no list of clients.
fn with_own_name(mut node: NodeInspection, shared: &Shared) -> NodeInspection {
    let own = shared.id.to_string();
    let owners = node.holder.owners_mut().iter_mut().chain(&mut node.waiters);
    for owner in owners.filter(|owner| owner.token.manager() == own) {
        owner.label.get_or_insert_with(|| (&*shared.label).into());
    }
    node
}
