//! The watchdog: one task per manager that prolongs the leases of all held locks, and tells bodies of lost ones.
//!
//! It is woken for a group of locks at a time, and what is due goes to each node as one pipeline. Nobody waits for an
//! answer here, so that a silent node delays no other lock and no other node.

mod timer;

use self::timer::Timer;
use crate::clock::{Clock, Instant};
use crate::ownership::Ownership;
use crate::shared::Core;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The longest sleep while anything is held.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep between two looks at what is held.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// When to look for the answers to a renewal: soon, then at growing intervals.
const FIRST_ANSWERS: Duration = Duration::from_millis(2);
/// How often nothing was held before the task rests.
const IDLE_LOOKS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Watchdog {
    clock: Clock,
    runtime: Option<Handle>,
    /// When the task looks next, in milliseconds of the clock; the end of time while it rests.
    next_look: AtomicU64,
    wake: Notify,
    task: Mutex<Option<AbortHandle>>,
}

impl Watchdog {
    /// On `runtime`, or on that of the first call that holds a lock.
    pub(crate) const fn new(clock: Clock, runtime: Option<Handle>) -> Self {
        Self { clock, runtime, next_look: AtomicU64::new(u64::MAX), wake: Notify::const_new(), task: Mutex::new(None) }
    }

    /// Sees to it that the task looks at `at`, or before.
    pub(crate) fn look_by(&self, core: &Arc<Core>, at: Instant) {
        if at.millis() < self.next_look.load(Ordering::Acquire) {
            self.next_look.fetch_min(at.millis(), Ordering::AcqRel);
            self.ensure_running(core);
            self.wake.notify_one();
        }
    }

    /// A runtime that has ended has taken its tasks with it.
    fn ensure_running(&self, core: &Arc<Core>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(AbortHandle::is_finished)
            && let Some(runtime) = self.runtime.clone().or_else(|| Handle::try_current().ok())
        {
            *task = Some(runtime.spawn(run(Arc::downgrade(core), self.clock)).abort_handle());
        }
    }
}

/// Runs as long as the manager or one of its guards lives.
async fn run(core: Weak<Core>, clock: Clock) {
    let (mut timer, mut round) = (Timer::new(clock), Round::default());
    while let Some(core) = core.upgrade() {
        let next = round.look(&core);
        // Dropped while it sleeps: the last guard must be able to end it.
        let watchdog = Arc::clone(&core.watchdog);
        drop(core);
        match next {
            Some(next) => timer.sleep_until(next, &watchdog.wake).await,
            None => watchdog.wake.notified().await,
        }
    }
}

/// What the task knows from one look to the next.
#[derive(Default)]
struct Round {
    /// Renewals whose answers have not been seen, and when to look for them.
    renewed: Vec<Arc<Ownership>>,
    answers_at: Option<Instant>,
    answers_pause: Duration,
    idle_looks: u32,
}

impl Round {
    /// Renews what is due. Returns when to look again; `None` to rest until something is held.
    fn look(&mut self, core: &Core) -> Option<Instant> {
        let now = core.clock.now();
        self.take_answers(now);
        let looked = core.local.look(now);
        if !looked.due.is_empty() {
            looked.due.iter().for_each(|ownership| ownership.renew(now));
            (self.answers_pause, self.answers_at) = (FIRST_ANSWERS, Some(now.after(FIRST_ANSWERS)));
            self.renewed.extend(looked.due);
        }
        let next = looked.next.map(|next| next.max(now.after(SHORTEST_SLEEP)));
        self.plan(core, now, next.into_iter().chain(self.answers_at).min())
    }

    /// Sleeps on for a while when nothing is held: the next lock would only wake it again.
    fn plan(&mut self, core: &Core, now: Instant, next: Option<Instant>) -> Option<Instant> {
        self.idle_looks = if next.is_some() { 0 } else { self.idle_looks + 1 };
        let longest = now.after(LONGEST_SLEEP);
        let next = next.map_or(longest, |next| next.min(longest));
        let next = (self.idle_looks <= IDLE_LOOKS).then_some(next);
        core.watchdog.next_look.store(next.map_or(u64::MAX, Instant::millis), Ordering::Release);
        // What was taken just before that did not wake us.
        next.or_else(|| core.local.look(now).next)
    }

    /// A lock that is not ours any more should be known at once, and not at its next renewal.
    fn take_answers(&mut self, now: Instant) {
        if self.answers_at.is_some_and(|at| at <= now) {
            self.renewed.retain(|ownership| ownership.is_awaited_after_settling(now));
            self.answers_pause *= 2;
            self.answers_at = (!self.renewed.is_empty()).then(|| now.after(self.answers_pause));
        }
    }
}
