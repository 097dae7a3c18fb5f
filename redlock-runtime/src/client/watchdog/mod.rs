//! The watchdog: one task per manager that prolongs the leases of all held locks, and tells bodies of lost ones.
//!
//! It is woken for a group of locks at a time, and what is due goes to each node as one pipeline. Nobody waits for an
//! answer here, so that a silent node delays no other lock and no other node. When which lock is looked at is decided in
//! [`schedule`]; when a lock is due, in `protocol/candidate/renewal`.
//!
//! What becomes of renewals is seen in [`renewals`]. It knows only what it watches ([`Watched`]), and not how that keeps its locks.

mod next_look;
mod renewals;
pub(crate) mod schedule;
#[cfg(test)]
mod tests;
mod timer;
mod watched;

pub(crate) use self::watched::Watched;

use self::next_look::NextLook;
use self::renewals::Renewals;
use self::schedule::Due;
use self::timer::Timer;
use crate::client::timers;
use crate::time::clock::{Clock, Instant};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The longest sleep while anything is held. Smaller, needless wake-ups; larger, a lock that nobody has announced is
/// renewed late.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep between two looks at what is held. Smaller, a hot loop; larger, very short leases are renewed late.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// How often nothing was held before the task rests. Fewer, the next lock has to wake it; more, needless wake-ups of a
/// process that is idle.
const IDLE_LOOKS: u32 = 3;

pub(crate) struct Watchdog {
    clock: Clock,
    runtime: Option<Handle>,
    next_look: NextLook,
    wake: Notify,
    task: Mutex<Option<AbortHandle>>,
}

impl Watchdog {
    /// On `runtime`, or on that of the first call that holds a lock.
    pub(crate) fn new(clock: Clock, runtime: Option<Handle>) -> Self {
        Self { clock, runtime, next_look: NextLook::none(), wake: Notify::const_new(), task: Mutex::new(None) }
    }

    /// Sees to it that the task looks at what is `watched` `within` that time from `now`.
    pub(crate) fn look_within(
        self: &Arc<Self>,
        watched: impl FnOnce() -> Weak<dyn Watched>,
        within: Duration,
        now: Instant,
    ) {
        let at = now.after(within).millis();
        // Without a task, nobody would look then; and whoever asks for a later look, and could start one, would not.
        if self.next_look.is_after(at) && self.is_running(watched) {
            self.next_look.bring_forward(at);
            self.wake.notify_one();
        }
    }

    /// Ends the task: nothing is held any more, and nothing will be.
    pub(crate) fn end(&self) {
        if let Some(task) = &*self.task() {
            task.abort();
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        // No code that can panic runs under this mutex.
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the task runs, which is started where it does not. A runtime that has ended has taken its tasks with it.
    fn is_running(self: &Arc<Self>, watched: impl FnOnce() -> Weak<dyn Watched>) -> bool {
        let mut task = self.task();
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return true;
        }
        let Some(runtime) = self.runtime.clone().or_else(timers::runtime) else { return false };
        *task = Some(runtime.spawn(run(watched(), Rest(Arc::clone(self)))).abort_handle());
        true
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

/// Runs as long as what is watched lives, which the manager and each of its guards see to.
async fn run(watched: Weak<dyn Watched>, rest: Rest) {
    let watchdog = &rest.0;
    let (mut timer, mut memory) = (Timer::new(watchdog.clock), Memory::default());
    while let Some(watched) = watched.upgrade() {
        let next = memory.look(watchdog, &watched);
        // Not while it sleeps: the last guard must be able to end it.
        drop(watched);
        match next {
            Some(next) => timer.sleep_until(next, &watchdog.wake).await,
            None => watchdog.wake.notified().await,
        }
    }
}

/// Whatever ends the task, the next lock has to start another one.
struct Rest(Arc<Watchdog>);

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.next_look.forget();
    }
}

/// What the task knows from one look to the next.
#[derive(Default)]
struct Memory {
    renewals: Renewals,
    /// Empty. Its room is used again: to make it anew would tidy up the allocator with every look.
    due: Vec<Due>,
    idle_looks: u32,
}

impl Memory {
    /// Renews what is due. Returns when to look again; `None` to rest until something is held.
    fn look(&mut self, watchdog: &Watchdog, watched: &Arc<dyn Watched>) -> Option<Instant> {
        let now = watchdog.clock.now();
        self.renewals.take_answers(now, watched);
        // Whoever takes a lock while we look wakes us, whether or not we have passed by already.
        watchdog.next_look.forget();
        let next = watched.look(now, &mut self.due);
        self.renewals.send(self.due.drain(..), now, watched.rules());
        let next = next.map(|next| next.max(now.after(SHORTEST_SLEEP)));
        self.plan(watchdog, now, next.into_iter().chain(self.renewals.look_at()).min())
    }

    /// Sleeps on for a while when nothing is held: the next lock would only wake it again.
    fn plan(&mut self, watchdog: &Watchdog, now: Instant, next: Option<Instant>) -> Option<Instant> {
        self.idle_looks = if next.is_some() { 0 } else { self.idle_looks + 1 };
        let longest = now.after(LONGEST_SLEEP);
        let next = next.map_or(longest, |next| next.min(longest));
        let next = (self.idle_looks <= IDLE_LOOKS).then_some(next);
        watchdog.next_look.bring_forward(next.map_or(u64::MAX, Instant::millis));
        next
    }
}
