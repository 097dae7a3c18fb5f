//! The watchdog: one task per manager that prolongs the leases of all held locks, and tells bodies of lost ones.
//!
//! It is woken for a group of locks at a time, and what is due goes to each node as one pipeline. Nobody waits for an
//! answer here, so that a silent node delays no other lock and no other node. When which lock is looked at is decided in
//! [`schedule`]; when a lock is due, in `protocol/candidate/renewal`.
//!
//! It knows only what it watches ([`Watched`]), and not how that keeps its locks.

mod next_look;
pub(crate) mod schedule;
mod timer;

use self::next_look::NextLook;
use self::schedule::{Due, Looked};
use self::timer::Timer;
use crate::client::acquisition::{Acquisition, News};
use crate::protocol::rules::{Rule, Rules};
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
/// When to look for the answers to a renewal: after this time, then at intervals that double, and at the end when enough of
/// them have come. Smaller than a round trip, a look for nothing; larger, a lock that is lost is known later.
const FIRST_ANSWERS: Duration = Duration::from_millis(2);
/// How often nothing was held before the task rests. Fewer, the next lock has to wake it; more, needless wake-ups of a
/// process that is idle.
const IDLE_LOOKS: u32 = 3;

/// What a watchdog looks after.
pub(crate) trait Watched: Send + Sync {
    /// What is due by `now`, and with it what is due soon: so that renewals go out together.
    fn look(&self, now: Instant) -> Looked;

    /// The lock of `acquisition` is to be looked at by then: its renewal was not what it was expected to be. Before a look, for
    /// which nobody has to be woken.
    fn look_by(&self, acquisition: &Acquisition, at: Instant);

    /// Which rules apply.
    fn rules(&self) -> Rules;

    /// What the nodes say to the renewal of one of its permits is looked for no longer.
    fn answered(self: Arc<Self>, permit: &Arc<Acquisition>);
}

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
        let Some(runtime) = self.runtime.clone().or_else(|| Handle::try_current().ok()) else { return false };
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

/// A lock that was renewed.
struct Renewed {
    acquisition: Arc<Acquisition>,
    asked: Instant,
    /// When to look for the answers next.
    look_at: Instant,
    /// Until when to look for them.
    until: Instant,
    /// When the lock is looked at in any case.
    planned: Instant,
}

/// What the task knows from one look to the next.
#[derive(Default)]
struct Memory {
    /// Renewals whose answers have not been seen.
    renewed: Vec<Renewed>,
    /// When to look for them.
    answers_at: Option<Instant>,
    idle_looks: u32,
}

impl Memory {
    /// Renews what is due. Returns when to look again; `None` to rest until something is held.
    fn look(&mut self, watchdog: &Watchdog, watched: &Arc<dyn Watched>) -> Option<Instant> {
        let now = watchdog.clock.now();
        self.take_answers(now, watched);
        // Whoever takes a lock while we look wakes us, whether or not we have passed by already.
        watchdog.next_look.forget();
        let looked = watched.look(now);
        self.renew(looked.due, now, watched.rules());
        let next = looked.next.map(|next| next.max(now.after(SHORTEST_SLEEP)));
        self.plan(watchdog, now, next.into_iter().chain(self.answers_at).min())
    }

    /// Renews what is `due`, and looks for the answers from now on.
    fn renew(&mut self, due: Vec<Due>, now: Instant, rules: Rules) {
        let mut all_news = Vec::new();
        for Due { acquisition, next: planned } in due {
            let (wait, news) = acquisition.renew(now, schedule::early);
            all_news.extend(news);
            if rules.apply(Rule::LossesAreLookedFor) {
                let (look_at, until) = (now.after(FIRST_ANSWERS), now.after(wait));
                self.renewed.push(Renewed { acquisition, asked: now, look_at, until, planned });
                self.answers_at = Some(self.answers_at.map_or(look_at, |at| at.min(look_at)));
            }
        }
        // Told when all of them are on their way: whoever is told may take a while.
        drop(all_news);
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

    /// A lock that is not ours any more should be known at once, and not at its next renewal.
    fn take_answers(&mut self, now: Instant, watched: &Arc<dyn Watched>) {
        if self.answers_at.is_some_and(|at| at <= now) {
            let mut all_news = Vec::new();
            self.renewed.retain_mut(|renewed| now < renewed.look_at || renewed.is_open(now, watched, &mut all_news));
            drop(all_news);
            self.answers_at = self.renewed.iter().map(|renewed| renewed.look_at).min();
        }
    }
}

impl Renewed {
    /// Takes in the answers that are here. Whether to look for others later. What there is to tell comes to `all_news`.
    fn is_open(&mut self, now: Instant, watched: &Arc<dyn Watched>, all_news: &mut impl Extend<Box<News>>) -> bool {
        let asked = self.asked;
        let (heard, news) = self.acquisition.hear(|candidate, now| schedule::heard(candidate, asked, now));
        all_news.extend(news);
        let is_open = heard.is_awaited && now < self.until;
        if is_open {
            let next = if heard.is_extended { self.until } else { now.after(now.since(asked)) };
            self.look_at = next.min(self.until);
        } else {
            self.end(heard.next, watched);
        }
        is_open
    }

    /// The answers are here, or looked for no longer; as things are, the lock has to be looked at by `next`.
    fn end(&self, next: Option<Instant>, watched: &Arc<dyn Watched>) {
        if let Some(sooner) = next.filter(|next| *next < self.planned) {
            watched.look_by(&self.acquisition, sooner);
        }
        if self.acquisition.is_permit() {
            Arc::clone(watched).answered(&self.acquisition);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::client::local_queue::LocalQueue;
    use crate::protocol::command::Verb;
    use crate::time::clock::Clock;
    use crate::{LockGuard, LockManager, LockRequest};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::runtime::Builder;
    use tokio::time::{Instant, sleep};

    const TTL: Duration = Duration::from_secs(30);

    fn request(ttl: Duration) -> LockRequest {
        LockRequest::new(format!("order:{ttl:?}")).ttl(ttl)
    }

    async fn hold(manager: &LockManager, ttl: Duration) -> LockGuard {
        manager.acquire(request(ttl)).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn locks_of_every_ttl_are_held_for_as_long_as_their_guards_live() {
        let manager = LockManager::in_memory();
        let mut guards = Vec::new();
        for millis in [50, 200, 1000, 30_000, 3_600_000] {
            guards.push(hold(&manager, Duration::from_millis(millis)).await);
            // A short lease that comes when the watchdog has planned a long sleep.
            sleep(TTL).await;
        }
        sleep(10 * TTL).await;
        for guard in guards {
            assert!(guard.remaining() > guard.ttl() / 3, "{guard:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_locks_are_held_for_many_ttls() {
        let manager = LockManager::in_memory();
        let mut guards = Vec::new();
        for lock in 0..1000 {
            guards.push(manager.acquire(LockRequest::new(format!("order:{lock}")).ttl(TTL)).await.unwrap());
            sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..40 {
            sleep(TTL / 4).await;
            let least = guards.iter().map(LockGuard::remaining).min().unwrap();
            assert!(least > TTL / 2, "{least:?} left");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_ten_seconds_runs_on_leases_of_200_ms() {
        let body = async |_: &LockGuard| {
            sleep(Duration::from_secs(10)).await;
            Ok::<_, crate::LockError>(())
        };
        LockManager::in_memory().with_lock(request(Duration::from_millis(200)), body).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_lease_behind_a_long_one_is_renewed() {
        // What was planned for the holder before must not hold for its successor.
        let manager = LockManager::in_memory();
        for (first, second) in [(TTL, TTL / 15), (TTL, TTL)] {
            let key = format!("order:{second:?}");
            let held = manager.acquire(LockRequest::new(&*key).ttl(first).renew(first != second)).await.unwrap();
            let waiting = tokio::spawn({
                let (manager, request) = (manager.clone(), LockRequest::new(&*key).ttl(second));
                async move { manager.acquire(request).await }
            });
            sleep(TTL / 4).await;
            drop(held);
            let guard = waiting.await.unwrap().unwrap();
            sleep(5 * TTL).await;
            guard.ensure_held().unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_wakes_up_after_a_rest() {
        let manager = LockManager::in_memory();
        for _ in 0..3 {
            drop(hold(&manager, TTL).await);
            sleep(10 * TTL).await;
            let guard = hold(&manager, TTL).await;
            sleep(10 * TTL).await;
            assert!(guard.is_held());
        }
    }

    /// A manager whose only node notes when it is asked for new leases, and answers only when `answers` says so.
    fn noting(answers: impl Fn(usize) -> bool + Send + Sync + 'static) -> (LockManager, Arc<Mutex<Vec<Duration>>>) {
        let (renewed, clock) = (Arc::new(Mutex::new(Vec::new())), Clock::tokio());
        let (noted, begun) = (Arc::clone(&renewed), clock.now());
        let node = HookedNode::new(clock, move |command| {
            if !matches!(command.verb, Verb::Renew { .. }) {
                return Fate::Answered;
            }
            let mut noted = noted.lock().unwrap();
            noted.push(clock.now().since(begun));
            if answers(noted.len()) { Fate::Answered } else { Fate::CutOff }
        });
        (LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None))), renewed)
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_that_are_due_soon_go_out_together() {
        let (manager, renewed) = noting(|_| true);
        let mut guards = Vec::new();
        for lock in 0..250 {
            guards.push(manager.acquire(LockRequest::new(format!("order:{lock}")).ttl(TTL)).await.unwrap());
            sleep(TTL / 1000).await;
        }
        sleep(10 * TTL).await;
        let mut moments = renewed.lock().unwrap().clone();
        let renewals = moments.len();
        assert!((30 * 250..40 * 250).contains(&renewals), "each after a third of its lease: {renewals}");
        moments.dedup();
        // At least a 64th of the ttl is between two of them, in ten and a quarter ttls.
        assert!(moments.len() <= 658, "{} times for {renewals} renewals", moments.len());
        assert!(guards.iter().all(LockGuard::is_held));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_has_failed_is_repeated_after_a_third_of_what_is_left() {
        // The first one is cut off: the lock is not left alone until it would be due if it had been granted.
        let (manager, renewed) = noting(|renewal| renewal > 1);
        let guard = hold(&manager, TTL).await;
        sleep(TTL).await;
        let renewed = renewed.lock().unwrap().clone();
        let [first, second, ..] = renewed[..] else { panic!("{renewed:?}") };
        assert!(first <= TTL / 3, "{renewed:?}");
        assert!(second.saturating_sub(first) <= TTL.saturating_sub(first) / 3 + TTL / 100, "{renewed:?}");
        guard.ensure_held().unwrap();
    }

    #[test]
    fn a_manager_in_memory_renews_on_every_runtime_that_it_is_used_on() {
        let manager = LockManager::in_memory();
        for _ in 0..2 {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let guard = hold(&manager, Duration::from_millis(60)).await;
                let begun = Instant::now();
                while begun.elapsed() < 3 * guard.ttl() {
                    guard.ensure_held().unwrap();
                    sleep(Duration::from_millis(5)).await;
                }
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_manager_and_its_last_guard() {
        let manager = LockManager::in_memory();
        let guard = hold(&manager, TTL).await;
        let local = std::sync::Arc::downgrade(&manager.local);
        drop(manager);
        sleep(3 * TTL).await;
        assert!(guard.is_held(), "the guard lives on");
        drop(guard);
        sleep(3 * TTL).await;
        assert_eq!(local.strong_count(), 0);
    }
}
