//! Locks that somebody else takes, gives back and loses, in a test.

use super::TestServers;
use crate::guard::LockGuard;
use crate::lock::LockKey;
use crate::lock::owner_token::ManagerId;
use crate::manager::LockManager;
use crate::request::{LockRequest, OrderCheck, Wait};
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// After which time somebody else asks again for a lock. Smaller, a run takes more steps; larger, others get it first.
const AGAIN: Duration = Duration::from_millis(50);

impl TestServers {
    /// Somebody else takes the lock, and renews it until [`release`](Self::release), [`expire`](Self::expire) or
    /// [`lose`](Self::lose). The log does not tell of it.
    ///
    /// `key` is the name in Redis: that of a manager with a namespace begins with it, as in `shop:order:7`, and the place
    /// `/acme/docs` in a tree is called `/{acme}/docs`, which keeps others from it and from no place above or below.
    ///
    /// In a run of [`explore`](crate::testing::explore), it waits until the lock can be had.
    ///
    /// # Panics
    /// When somebody else has it already, and outside of `explore` when it cannot be taken: because a call has it, or too few servers
    /// are well.
    pub async fn hold(&self, key: &str) {
        self.take(key, LockRequest::new(key)).await;
    }

    /// Somebody else takes the lock [together with others](LockRequest::shared), and otherwise as in [`hold`](Self::hold).
    ///
    /// # Panics
    /// As [`hold`](Self::hold), when a call has it alone.
    pub async fn hold_shared(&self, key: &str) {
        self.take(key, LockRequest::shared(key)).await;
    }

    /// Somebody else takes one of so many [permits](LockRequest::permits), and otherwise as in [`hold`](Self::hold); once for each
    /// permit that is to be taken. [`release`](Self::release) gives back the one that was taken last.
    ///
    /// # Panics
    /// As [`hold`](Self::hold), when as many have one, when a call has the lock alone, and for a number that no call can have.
    pub async fn hold_permit(&self, key: &str, permits: u32) {
        self.take_one_more(key, LockRequest::new(key).permits(permits)).await;
    }

    async fn take(&self, key: &str, request: LockRequest) {
        assert!(!self.taken().contains_key(key), "somebody else has {key:?} already");
        self.take_one_more(key, request).await;
    }

    async fn take_one_more(&self, key: &str, request: LockRequest) {
        loop {
            match self.somebody().acquire(request.clone().wait(Wait::None)).await {
                Ok(guard) => return self.taken().entry(key.to_owned()).or_default().push(guard),
                // A right program may have it, and trouble passes.
                Err(error) if self.0.is_explored && (error.is_contended() || error.is_transient()) => {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => panic!("somebody else cannot take the lock: {error}"),
            }
        }
    }

    fn somebody(&self) -> &LockManager {
        self.0.somebody.get_or_init(|| {
            let builder = LockManager::builder().label("somebody-else").order_check(OrderCheck::Off);
            match self.make(builder, ManagerId::numbered(0), None) {
                Ok(manager) => manager,
                Err(error) => panic!("nobody else can be made: {error}"),
            }
        })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<String, Vec<LockGuard>>> {
        // A test that has panicked has nothing half done here.
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody else gives a lock back that [`hold`](Self::hold) has taken. Whoever waits first gets it.
    ///
    /// # Panics
    /// When it was not taken so.
    #[track_caller]
    pub fn release(&self, key: &str) {
        let guard = self.give_up(key);
        assert!(guard.is_some(), "nobody else has {key:?}: it was not taken by `hold`");
    }

    /// What was taken of it last. It is given back where it is dropped, which is under no mutex.
    fn give_up(&self, key: &str) -> Option<LockGuard> {
        let mut taken = self.taken();
        let guards = taken.get_mut(key)?;
        let last = guards.pop();
        if guards.is_empty() {
            taken.remove(key);
        }
        last
    }

    /// The lease of whoever has the lock is over at all servers, as if the process had died long ago. Its holder is told nothing,
    /// and hears of it when it renews the lock.
    ///
    /// Whoever waits gets the lock within about a second, as after any lease that ends.
    ///
    /// # Panics
    /// When nobody has it, outside of [`explore`](crate::testing::explore).
    #[track_caller]
    pub fn expire(&self, key: &str) {
        // Under no mutex: what is given back late finds that it is another one's.
        let guards = self.taken().remove(key);
        let name = LockKey::from(key);
        let erased = self.0.servers.iter().filter(|server| server.erase(&name)).count();
        // Where there is trouble, its lease may be over before.
        let was_there = erased > 0 || guards.is_some() || self.0.is_explored;
        assert!(was_there, "nobody has {key:?}: `expire` and `lose` take the name that the key has in Redis");
    }

    /// Whoever has the lock loses it: it is deleted at all servers, and holders are made to ask. The body stops at its next await,
    /// with [`LossCause::Taken`](crate::LossCause::Taken).
    ///
    /// # Panics
    /// When nobody has it, outside of [`explore`](crate::testing::explore).
    #[track_caller]
    pub fn lose(&self, key: &str) {
        self.expire(key);
        for server in &self.0.servers {
            server.call_holders();
        }
    }
}
