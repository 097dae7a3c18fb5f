//! What only an observer can see of a node, and do to it.

use super::*;

impl NodeState {
    pub(crate) fn following(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The same with limits for the work of one command.
    pub(crate) fn with_limits(limits: Limits, rules: Rules) -> Self {
        Self { limits, ..Self::following(rules) }
    }

    /// Whether some who wait for `key` are still to be told that it is free.
    pub(crate) fn has_untold(&self, key: &str) -> bool {
        self.queues.get(key).is_some_and(Queue::has_untold)
    }

    /// A node where nothing is but `key`, which is held and waited for like this.
    pub(super) fn at(rules: Rules, key: &str, holder: Option<Holder>, waiting: &[OwnerToken], now: Instant) -> Self {
        let mut queue = Queue::new(now);
        for token in waiting {
            queue.add(*token, now);
        }
        let queues = (!waiting.is_empty()).then(|| (key.into(), queue));
        let locks = holder.map(|holder| (key.into(), holder));
        Self { locks: locks.into_iter().collect(), queues: queues.into_iter().collect(), rules, ..Self::default() }
    }

    /// Those wait as well, and share the lock.
    pub(super) fn share_at(&mut self, key: &str, waiting: &[OwnerToken], now: Instant) {
        for token in waiting {
            self.queues.entry(key.into()).or_insert_with(|| Queue::new(now)).join_unheard(*token, now);
        }
    }

    /// `token` has a share until then.
    pub(super) fn put_at(&mut self, key: &str, token: OwnerToken, end: Instant, now: Instant) {
        self.readers.entry(key.into()).or_insert_with(|| Readers::new(now)).put(token, Class::Shared, end, now);
    }

    pub(super) fn holder(&self, key: &str) -> Option<Holder> {
        self.locks.get(key).copied()
    }

    /// Whether nobody owns a lock, and nobody waits for one.
    pub(crate) fn is_empty(&self, now: Instant) -> bool {
        let has_none = |readers: &Readers| readers.live(now).is_empty();
        self.locks.values().all(|holder| holder.expires <= now)
            && self.readers.values().all(has_none)
            && self.queues.values().all(|queue| queue.is_gone(now))
    }

    pub(crate) fn owner(&self, key: &str, now: Instant) -> Option<OwnerToken> {
        self.locks.get(key).filter(|holder| now < holder.expires).map(|holder| holder.token)
    }

    /// What stands in Redis where this node has an owner of `key`.
    pub(crate) fn value(&self, key: &str, now: Instant) -> Option<String> {
        let holder = self.locks.get(key).filter(|holder| now < holder.expires)?;
        Some(format!("{}{}", holder.token, if holder.is_marked { "+" } else { "" }))
    }

    pub(crate) fn queue(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        let queue = self.queues.get(key).filter(|queue| self.is_there(queue, now));
        queue.into_iter().flat_map(Queue::tokens).collect()
    }

    /// Those who share `key`.
    pub(crate) fn readers(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.readers.get(key).map_or(Vec::new(), |readers| readers.live(now))
    }

    /// Those who have reserved `key`.
    pub(crate) fn reserved(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.readers.get(key).map_or(Vec::new(), |readers| readers.reserved(now))
    }

    /// Those who have `key`, alone or with others.
    pub(crate) fn holders(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.owner(key, now).into_iter().chain(self.readers(key, now)).collect()
    }

    /// Those who wait for `key`, how, and which of them were heard of: in the words of the test that compares.
    pub(crate) fn waiting(&self, key: &str, now: Instant) -> Vec<(String, &'static str)> {
        let queue = self.queues.get(key).filter(|queue| self.is_there(queue, now));
        queue.map_or(Vec::new(), Queue::written)
    }

    /// Every token that stands under `key`, as owner or in the queue.
    pub(crate) fn tokens(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.holders(key, now).into_iter().chain(self.queue(key, now)).collect()
    }

    fn is_there(&self, queue: &Queue, now: Instant) -> bool {
        !(self.rules.apply(Rule::QueuesExpire) && queue.is_gone(now))
    }

    /// What another program does that knows nothing of queues: deletes its key without handing it to anybody.
    pub(crate) fn delete(&mut self, key: &str, token: OwnerToken, now: Instant) {
        if self.owner(key, now) == Some(token) {
            self.locks.remove(key);
        }
    }

    /// Somebody raises the fencing register of a slot.
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
