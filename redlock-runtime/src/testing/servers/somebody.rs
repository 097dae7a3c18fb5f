//! Locks that another owner acquires, releases and loses in a test.

use super::TestServers;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::lock::owner_token::ManagerId;
use crate::lock::{LockKey, Mode};
use crate::manager::LockManager;
use crate::request::{LockPart, LockRequest, OrderCheck, Wait};
use std::collections::BTreeMap;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Pause before the other owner tries a lock again. Too small: a run takes more steps. Too large: calls always get the lock first.
const AGAIN: Duration = Duration::from_millis(50);

impl TestServers {
    /// Acquires the lock for another owner, which renews it until [`release`](Self::release), [`expire`](Self::expire) or
    /// [`lose`](Self::lose). The lock does not appear in the log.
    ///
    /// A text is the name in Redis, with the namespace of the manager if it has one: `shop:order:7`. A
    /// [`LockPath`](crate::LockPath) also excludes the paths above and below it.
    ///
    /// In a run of [`explore`](crate::testing::explore), it waits until the lock is free.
    ///
    /// # Panics
    /// If the other owner already holds the lock. Outside of `explore`, also if a call holds the lock, or if too few servers are
    /// healthy.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use redlock_runtime::testing::TestServers;
    /// use redlock_runtime::{LockPath, LockRequest};
    ///
    /// let servers = TestServers::new(1);
    /// let manager = servers.manager();
    /// servers.hold(LockPath::from("/acme/docs")).await;
    /// assert!(manager.try_acquire(LockRequest::path("/acme/docs/2024")).await.unwrap_err().is_contended());
    /// servers.release(LockPath::from("/acme/docs"));
    /// drop(manager.try_acquire(LockRequest::path("/acme")).await.unwrap());
    /// # }
    /// ```
    #[track_caller]
    pub fn hold(&self, what: impl Into<LockPart>) -> impl Future<Output = ()> + Send {
        let what = what.into();
        self.take(what.leaf(), LockRequest::all([what]), false)
    }

    /// Acquires a [shared](LockRequest::shared) lock for another owner, like [`hold`](Self::hold).
    ///
    /// # Panics
    /// Same as [`hold`](Self::hold), if a call holds the lock exclusively.
    #[track_caller]
    pub fn hold_shared(&self, what: impl Into<LockPart>) -> impl Future<Output = ()> + Send {
        let what = what.into();
        self.take(what.leaf(), LockRequest::all([what]).mode(Mode::Shared), false)
    }

    /// Acquires one of the given number of [permits](LockRequest::permits) for another owner, like [`hold`](Self::hold). Call it once
    /// for each permit. [`release`](Self::release) releases the latest one.
    ///
    /// # Panics
    /// Same as [`hold`](Self::hold), if all permits are taken, if a call holds the lock exclusively, or if the number of permits is
    /// invalid.
    #[track_caller]
    pub fn hold_permit(&self, key: impl Into<LockKey>, permits: u32) -> impl Future<Output = ()> + Send {
        let key = key.into();
        self.take(key.clone(), LockRequest::new(key).permits(permits), true)
    }

    /// Acquires the lock for the other owner, once or `again`.
    #[track_caller]
    fn take(&self, name: LockKey, request: LockRequest, again: bool) -> Taking<'_> {
        let taking = self.taking(name, request, again);
        Taking { taking: Box::pin(taking), asked_at: Location::caller() }
    }

    /// Acquires the lock for the other owner. Waits for it in a run of `explore`.
    ///
    /// # Errors
    /// Text with the reason why the lock cannot be acquired.
    async fn taking(&self, name: LockKey, request: LockRequest, again: bool) -> Result<(), String> {
        if !again && self.taken().contains_key(name.as_str()) {
            return Err(format!("the other owner already holds {}: call `release` first", name.quoted()));
        }
        let somebody = self.somebody().map_err(|error| format!("the other owner cannot be created: {error}"))?;
        loop {
            match somebody.acquire(request.clone().wait(Wait::None)).await {
                Ok(guard) => {
                    self.taken().entry(name.as_str().to_owned()).or_default().push(guard);
                    return Ok(());
                }
                // A correct program may hold the lock, and faults end.
                Err(error) if self.0.is_explored && (error.is_contended() || error.is_transient()) => {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(format!("`hold` cannot acquire the lock: {error}")),
            }
        }
    }

    /// Returns the manager of the other owner.
    ///
    /// # Errors
    /// [`LockError::Configuration`] outside of a tokio runtime.
    fn somebody(&self) -> Result<&LockManager, LockError> {
        if let Some(somebody) = self.0.somebody.get() {
            return Ok(somebody);
        }
        let builder = LockManager::builder().label("somebody-else").order_check(OrderCheck::Off);
        let made = self.make(builder, ManagerId::numbered(0), None)?;
        Ok(self.0.somebody.get_or_init(|| made))
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<String, Vec<LockGuard>>> {
        // A panic of a test leaves a consistent map.
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases a lock of [`hold`](Self::hold). The first waiter gets it.
    ///
    /// # Panics
    /// If the lock was not acquired by `hold`.
    #[track_caller]
    pub fn release(&self, what: impl Into<LockPart>) {
        let name = what.into().leaf();
        let guard = self.give_up(&name);
        assert!(guard.is_some(), "the other owner does not hold {}: acquire it with `hold` first", name.quoted());
    }

    /// Removes the latest guard of the lock. The caller drops it outside of the mutex, which releases the lock.
    fn give_up(&self, name: &LockKey) -> Option<LockGuard> {
        let mut taken = self.taken();
        let guards = taken.get_mut(name.as_str())?;
        let last = guards.pop();
        if guards.is_empty() {
            taken.remove(name.as_str());
        }
        last
    }

    /// Ends the lease of the holder at all servers, as if its process had died long ago. The holder is not notified: it detects the loss
    /// at its next renewal.
    ///
    /// A waiter gets the lock within about a second, as after any lease that ends. A locked path blocks the paths above it until its
    /// holder has detected the loss.
    ///
    /// # Panics
    /// Outside of [`explore`](crate::testing::explore), if the lock is free.
    #[track_caller]
    pub fn expire(&self, what: impl Into<LockPart>) {
        let name = what.into().leaf();
        // Dropped outside of the mutex. A late release finds the token of another owner.
        let guards = self.taken().remove(name.as_str());
        let erased = self.0.servers.iter().filter(|server| server.erase(&name)).count();
        // During faults, the lease may have ended before.
        let was_there = erased > 0 || guards.is_some() || self.0.is_explored;
        let name = name.quoted();
        assert!(
            was_there,
            "{name} is not locked: `expire` and `lose` take the name of the key in Redis, or a `LockPath`"
        );
    }

    /// Takes the lock from its holder: deletes it at all servers, and makes the holder check it. The body stops at its next `.await`,
    /// with [`LossCause::Taken`](crate::LossCause::Taken).
    ///
    /// # Panics
    /// Outside of [`explore`](crate::testing::explore), if the lock is free.
    #[track_caller]
    pub fn lose(&self, what: impl Into<LockPart>) {
        self.expire(what);
        for server in &self.0.servers {
            server.call_holders();
        }
    }
}

/// Future of [`TestServers::hold`].
///
/// It is not an `async fn`, so that a panic names the line of the test that awaits it.
struct Taking<'s> {
    taking: Pin<Box<dyn Future<Output = Result<(), String>> + Send + 's>>,
    asked_at: &'static Location<'static>,
}

impl Future for Taking<'_> {
    type Output = ();

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Err(why) = ready!(self.taking.as_mut().poll(context)) else { return Poll::Ready(()) };
        // If another future polls this one, such as a timeout, the caller is in another file.
        assert!(Location::caller().file() == self.asked_at.file(), "{why} (called at {})", self.asked_at);
        panic!("{why}");
    }
}
