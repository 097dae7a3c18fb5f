//! Inspection and manipulation of a node by tests.

use super::*;

impl NodeState {
    pub(crate) fn following(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Creates a node with limits for the work of one command.
    pub(crate) fn with_limits(limits: Limits, rules: Rules) -> Self {
        Self { limits, ..Self::following(rules) }
    }

    /// Returns `true` if some waiters for `key` must still be notified that it is free.
    pub(crate) fn has_untold(&self, key: &str) -> bool {
        self.queues.get(key).is_some_and(Queue::has_untold)
    }

    /// Creates a node with only `key`, with this holder and these waiters.
    pub(super) fn at(rules: Rules, key: &str, holder: Option<Holder>, waiting: &[OwnerToken], now: Instant) -> Self {
        let mut queue = Queue::new(now);
        for token in waiting {
            queue.add(*token, now);
        }
        let queues = (!waiting.is_empty()).then(|| (key.into(), queue));
        let locks = holder.map(|holder| (key.into(), holder));
        Self { locks: locks.into_iter().collect(), queues: queues.into_iter().collect(), rules, ..Self::default() }
    }

    /// Adds waiters that want to share the lock.
    pub(super) fn share_at(&mut self, key: &str, waiting: &[OwnerToken], now: Instant) {
        for token in waiting {
            self.queues.entry(key.into()).or_insert_with(|| Queue::new(now)).join_unheard(*token, now);
        }
    }

    /// Gives `token` a share until `end`.
    pub(super) fn put_at(&mut self, key: &str, token: OwnerToken, end: Instant, now: Instant) {
        self.readers.entry(key.into()).or_insert_with(|| Readers::new(now)).put(token, Class::Shared, end, now);
    }

    pub(super) fn holder(&self, key: &str) -> Option<Holder> {
        self.locks.get(key).copied()
    }

    /// Returns `true` if the node has neither owners nor waiters.
    pub(crate) fn is_empty(&self, now: Instant) -> bool {
        let has_none = |readers: &Readers| readers.live(now).is_empty();
        self.locks.values().all(|holder| holder.expires <= now)
            && self.readers.values().all(has_none)
            && self.queues.values().all(|queue| queue.is_gone(now))
    }

    pub(crate) fn owner(&self, key: &str, now: Instant) -> Option<OwnerToken> {
        self.locks.get(key).filter(|holder| now < holder.expires).map(|holder| holder.token)
    }

    /// Returns the value of `key` that Redis would have.
    pub(crate) fn value(&self, key: &str, now: Instant) -> Option<String> {
        let holder = self.locks.get(key).filter(|holder| now < holder.expires)?;
        Some(format!("{}{}", holder.token, if holder.is_marked { "+" } else { "" }))
    }

    pub(crate) fn queue(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        let queue = self.queues.get(key).filter(|queue| self.is_there(queue, now));
        queue.into_iter().flat_map(Queue::tokens).collect()
    }

    /// Returns the tokens that share `key`.
    pub(crate) fn readers(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.readers.get(key).map_or(Vec::new(), |readers| readers.live(now))
    }

    /// Returns the tokens that have reserved `key`.
    pub(crate) fn reserved(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.readers.get(key).map_or(Vec::new(), |readers| readers.reserved(now))
    }

    /// Returns the tokens that own `key`, exclusively or shared.
    pub(crate) fn holders(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.owner(key, now).into_iter().chain(self.readers(key, now)).collect()
    }

    /// Returns the waiters for `key`, their modes, and which of them were heard of, in the words of the comparing test.
    pub(crate) fn waiting(&self, key: &str, now: Instant) -> Vec<(String, &'static str)> {
        let queue = self.queues.get(key).filter(|queue| self.is_there(queue, now));
        queue.map_or(Vec::new(), Queue::written)
    }

    /// Returns every token under `key`, as an owner or in the queue.
    pub(crate) fn tokens(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.holders(key, now).into_iter().chain(self.queue(key, now)).collect()
    }

    fn is_there(&self, queue: &Queue, now: Instant) -> bool {
        !(self.rules.apply(Rule::QueuesExpire) && queue.is_gone(now))
    }

    /// Deletes a key without handing it to a waiter, like a program that does not know the queues.
    pub(crate) fn delete(&mut self, key: &str, token: OwnerToken, now: Instant) {
        if self.owner(key, now) == Some(token) {
            self.locks.remove(key);
        }
    }

    /// Raises the fencing register of a slot.
    pub(crate) fn raise_register(&mut self, slot: u16, largest: u64) {
        self.registers.raise(slot, largest);
    }

    pub(crate) fn clear(&mut self, key: &str) {
        self.readers.remove(key);
        self.locks.remove(key);
    }

    pub(crate) fn overwrite(&mut self, key: &str, token: OwnerToken, expires: Instant) {
        self.readers.remove(key);
        self.locks.insert(key.into(), Holder { token, expires, is_marked: false });
    }

    pub(crate) fn lease_left(&self, key: &str, token: OwnerToken, now: Instant) -> Option<Duration> {
        let alone = self.locks.get(key).filter(|holder| holder.token == token).map(|holder| holder.expires);
        let end = alone.or_else(|| self.readers.get(key)?.end_of(token, now)).filter(|end| now < *end)?;
        Some(end.since(now))
    }
}
