//! Locks that somebody else takes, gives back and loses, in a test.

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

/// After which time somebody else asks again for a lock. Smaller, a run takes more steps; larger, others get it first.
const AGAIN: Duration = Duration::from_millis(50);

impl TestServers {
    /// Somebody else takes the lock, and renews it until [`release`](Self::release), [`expire`](Self::expire) or
    /// [`lose`](Self::lose). The log does not tell of it.
    ///
    /// A text is the name in Redis: that of a manager with a namespace begins with it, as in `shop:order:7`. A
    /// [`LockPath`](crate::LockPath) is a place in a tree, and keeps others from what is above and below as well.
    ///
    /// In a run of [`explore`](crate::testing::explore), it waits until the lock can be had.
    ///
    /// # Panics
    /// When somebody else has it already, and outside of `explore` when it cannot be taken: because a call has it, or too few servers
    /// are well.
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

    /// Somebody else takes the lock [together with others](LockRequest::shared), and otherwise as in [`hold`](Self::hold).
    ///
    /// # Panics
    /// As [`hold`](Self::hold), when a call has it alone.
    #[track_caller]
    pub fn hold_shared(&self, what: impl Into<LockPart>) -> impl Future<Output = ()> + Send {
        let what = what.into();
        self.take(what.leaf(), LockRequest::all([what]).mode(Mode::Shared), false)
    }

    /// Somebody else takes one of so many [permits](LockRequest::permits), and otherwise as in [`hold`](Self::hold); once for each
    /// permit that is to be taken. [`release`](Self::release) gives back the one that was taken last.
    ///
    /// # Panics
    /// As [`hold`](Self::hold), when as many have one, when a call has the lock alone, and for a number that no call can have.
    #[track_caller]
    pub fn hold_permit(&self, key: impl Into<LockKey>, permits: u32) -> impl Future<Output = ()> + Send {
        let key = key.into();
        self.take(key.clone(), LockRequest::new(key).permits(permits), true)
    }

    /// Somebody else takes what has that name, once or `again`.
    #[track_caller]
    fn take(&self, name: LockKey, request: LockRequest, again: bool) -> Taking<'_> {
        let taking = self.taking(name, request, again);
        Taking { taking: Box::pin(taking), asked_at: Location::caller() }
    }

    /// # Errors
    /// Why it cannot be taken.
    async fn taking(&self, name: LockKey, request: LockRequest, again: bool) -> Result<(), String> {
        if !again && self.taken().contains_key(name.as_str()) {
            return Err(format!("somebody else has {} already", name.quoted()));
        }
        let somebody = self.somebody().map_err(|error| format!("nobody else can be made: {error}"))?;
        loop {
            match somebody.acquire(request.clone().wait(Wait::None)).await {
                Ok(guard) => {
                    self.taken().entry(name.as_str().to_owned()).or_default().push(guard);
                    return Ok(());
                }
                // A right program may have it, and trouble passes.
                Err(error) if self.0.is_explored && (error.is_contended() || error.is_transient()) => {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(format!("somebody else cannot take the lock: {error}")),
            }
        }
    }

    /// # Errors
    /// Outside of a tokio runtime.
    fn somebody(&self) -> Result<&LockManager, LockError> {
        if let Some(somebody) = self.0.somebody.get() {
            return Ok(somebody);
        }
        let builder = LockManager::builder().label("somebody-else").order_check(OrderCheck::Off);
        let made = self.make(builder, ManagerId::numbered(0), None)?;
        Ok(self.0.somebody.get_or_init(|| made))
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
    pub fn release(&self, what: impl Into<LockPart>) {
        let name = what.into().leaf();
        let guard = self.give_up(&name);
        assert!(guard.is_some(), "nobody else has {}: it was not taken by `hold`", name.quoted());
    }

    /// What was taken of it last. It is given back where it is dropped, which is under no mutex.
    fn give_up(&self, name: &LockKey) -> Option<LockGuard> {
        let mut taken = self.taken();
        let guards = taken.get_mut(name.as_str())?;
        let last = guards.pop();
        if guards.is_empty() {
            taken.remove(name.as_str());
        }
        last
    }

    /// The lease of whoever has the lock is over at all servers, as if the process had died long ago. Its holder is told nothing,
    /// and hears of it when it renews the lock.
    ///
    /// Whoever waits gets the lock within about a second, as after any lease that ends. What the lock of a place in a tree keeps others
    /// from above it, it does until its holder has heard.
    ///
    /// # Panics
    /// When nobody has it, outside of [`explore`](crate::testing::explore).
    #[track_caller]
    pub fn expire(&self, what: impl Into<LockPart>) {
        let name = what.into().leaf();
        // Under no mutex: what is given back late finds that it is another one's.
        let guards = self.taken().remove(name.as_str());
        let erased = self.0.servers.iter().filter(|server| server.erase(&name)).count();
        // Where there is trouble, its lease may be over before.
        let was_there = erased > 0 || guards.is_some() || self.0.is_explored;
        let name = name.quoted();
        assert!(
            was_there,
            "nobody has {name}: `expire` and `lose` take the name that the key has in Redis, or a `LockPath`"
        );
    }

    /// Whoever has the lock loses it: it is deleted at all servers, and holders are made to ask. The body stops at its next await,
    /// with [`LossCause::Taken`](crate::LossCause::Taken).
    ///
    /// # Panics
    /// When nobody has it, outside of [`explore`](crate::testing::explore).
    #[track_caller]
    pub fn lose(&self, what: impl Into<LockPart>) {
        self.expire(what);
        for server in &self.0.servers {
            server.call_holders();
        }
    }
}

/// Somebody else takes a lock.
///
/// It is written by hand because a panic is that of whoever has made a mistake, and stands at the line which awaits this: the body of
/// an async function is always in its own.
struct Taking<'s> {
    taking: Pin<Box<dyn Future<Output = Result<(), String>> + Send + 's>>,
    asked_at: &'static Location<'static>,
}

impl Future for Taking<'_> {
    type Output = ();

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Err(why) = ready!(self.taking.as_mut().poll(context)) else { return Poll::Ready(()) };
        // Inside of another future, such as a timeout, it is that one which awaits this.
        assert!(Location::caller().file() == self.asked_at.file(), "{why} (it was asked to at {})", self.asked_at);
        panic!("{why}");
    }
}
