//! Watchdog: one task per manager that renews the leases of all held locks, and wakes the bodies of lost ones.
//!
//! It is woken for a group of locks at a time, and sends all due commands to each node as one pipeline. It never waits
//! for an answer, so that a silent node delays no other lock and no other node. [`schedule`] decides when each lock is
//! checked, and `protocol/candidate/renewal` when a lock is due.
//!
//! [`renewals`] examines the answers to renewals. The watchdog knows only the interface [`Watched`], and not how its
//! locks are stored.

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

/// Longest sleep while any lock is held. Smaller: needless wake-ups. Larger: a lock that was not announced is renewed
/// late.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Shortest sleep between two checks. Smaller: a busy loop. Larger: very short leases are renewed late.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// Number of checks without a held lock before the task rests. Smaller: the next lock has to wake it. Larger: needless
/// wake-ups of an idle process.
const IDLE_LOOKS: u32 = 3;

pub(crate) struct Watchdog {
    clock: Clock,
    runtime: Option<Handle>,
    next_look: NextLook,
    wake: Notify,
    task: Mutex<Option<AbortHandle>>,
}

impl Watchdog {
    /// Creates a watchdog that runs on `runtime`, or on the runtime of the first call that holds a lock.
    pub(crate) fn new(clock: Clock, runtime: Option<Handle>) -> Self {
        Self { clock, runtime, next_look: NextLook::none(), wake: Notify::const_new(), task: Mutex::new(None) }
    }

    /// Makes the task check the `watched` locks `within` that time from `now`.
    pub(crate) fn schedule_check_within(
        self: &Arc<Self>,
        watched: impl FnOnce() -> Weak<dyn Watched>,
        within: Duration,
        now: Instant,
    ) {
        let at = now.after(within).millis();
        // Without a task, this check would not happen; and a later caller, which could start a task, would rely on it.
        if self.next_look.is_after(at) && self.ensure_running(watched) {
            self.next_look.bring_forward(at);
            self.wake.notify_one();
        }
    }

    /// Ends the task: no lock is held, and none will be.
    pub(crate) fn end(&self) {
        if let Some(task) = &*self.task() {
            task.abort();
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        // Code under this mutex cannot panic.
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the task runs, and starts it if necessary. The end of a runtime ends its tasks.
    fn ensure_running(self: &Arc<Self>, watched: impl FnOnce() -> Weak<dyn Watched>) -> bool {
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

/// Runs as long as the watched owner lives, which the manager and each of its guards keep alive.
async fn run(watched: Weak<dyn Watched>, rest: Rest) {
    let watchdog = &rest.0;
    let (mut timer, mut memory) = (Timer::new(watchdog.clock), Memory::default());
    while let Some(watched) = watched.upgrade() {
        let next = memory.look(watchdog, &watched);
        // Not during the sleep, so that the last guard can end the owner.
        drop(watched);
        match next {
            Some(next) => timer.sleep_until(next, &watchdog.wake).await,
            None => watchdog.wake.notified().await,
        }
    }
}

/// On drop, clears the plan: however the task ends, the next lock has to start another one.
struct Rest(Arc<Watchdog>);

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.next_look.forget();
    }
}

/// State of the task between two checks.
#[derive(Default)]
struct Memory {
    renewals: Renewals,
    /// Empty buffer that is reused. A new one for each check would make the allocator tidy up each time.
    due: Vec<Due>,
    idle_looks: u32,
}

impl Memory {
    /// Renews the due locks. Returns the time of the next check; `None` to rest until a lock is held.
    fn look(&mut self, watchdog: &Watchdog, watched: &Arc<dyn Watched>) -> Option<Instant> {
        let now = watchdog.clock.now();
        self.renewals.take_answers(now, watched);
        // A lock that is acquired during the check wakes the task, whether or not the check has passed it already.
        watchdog.next_look.forget();
        let next = watched.look(now, &mut self.due);
        self.renewals.send(self.due.drain(..), now, watched.rules());
        let next = next.map(|next| next.max(now.after(SHORTEST_SLEEP)));
        self.plan(watchdog, now, next.into_iter().chain(self.renewals.look_at()).min())
    }

    /// Plans the next check. If no lock is held, the task sleeps for a while before it rests, because the next lock
    /// would only wake it again.
    fn plan(&mut self, watchdog: &Watchdog, now: Instant, next: Option<Instant>) -> Option<Instant> {
        self.idle_looks = if next.is_some() { 0 } else { self.idle_looks + 1 };
        let longest = now.after(LONGEST_SLEEP);
        let next = next.map_or(longest, |next| next.min(longest));
        let next = (self.idle_looks <= IDLE_LOOKS).then_some(next);
        watchdog.next_look.bring_forward(next.map_or(u64::MAX, Instant::millis));
        next
    }
}
