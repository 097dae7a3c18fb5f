//! Model checks of the two lock-free handshakes of the runtime. loom runs each of them in every order of the steps, with every reordering
//! that a weak memory model allows.
//! The checked files are those of the runtime itself. Only the atomics are replaced by loom's.
#![cfg(all(test, loom))]

use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

#[path = "../../../redlock-runtime/src/client/watchdog/next_look.rs"]
mod next_look;
#[path = "../../../redlock-runtime/src/client/release/owed.rs"]
mod owed;

use self::next_look::NextLook;
use self::owed::Owed;

/// Times at which two locks must be checked. Two threads add them while the task looks.
const WANTED: [u64; 2] = [10, 20];
/// Time of the next look if the task has seen no lock.
const LATE: u64 = 100;

/// Largest number of times that a running thread is preempted.
const INTERRUPTIONS: usize = 2;

/// State that the watchdog shares with the calls that take locks.
struct Watchdog {
    next_look: NextLook,
    /// Times that the watchdog finds when it looks.
    watched: Mutex<Vec<u64>>,
    /// Permit of the `Notify`: 1 if the task was woken.
    is_woken: AtomicUsize,
}

impl Watchdog {
    /// Adds a lock, as `Watchdog::schedule_check_within` does after the entry is in the queue.
    fn take_lock(&self, at: u64) {
        self.watched.lock().unwrap().push(at);
        if self.next_look.is_after(at) {
            self.next_look.bring_forward(at);
            self.is_woken.store(1, Ordering::Release);
        }
    }

    /// Looks at all locks, as `Memory::look` does. Returns the time until which the task sleeps unless it is woken, and the times that it
    /// saw.
    fn look(&self, forgets_first: bool) -> (u64, Vec<u64>) {
        if forgets_first {
            self.next_look.forget();
        }
        let seen = self.watched.lock().unwrap().clone();
        if !forgets_first {
            self.next_look.forget();
        }
        let next = seen.iter().copied().min().unwrap_or(LATE);
        self.next_look.bring_forward(next);
        (next, seen)
    }
}

/// Takes two locks during a look that was planned for `planned`, and checks that the task oversleeps neither of them.
/// Without a bound on preemptions, this takes many minutes.
fn check_that_no_lock_is_missed(planned: u64, forgets_first: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(INTERRUPTIONS);
    model.check(move || {
        let next_look = NextLook::none();
        next_look.bring_forward(planned);
        let watched = Mutex::new(Vec::new());
        let watchdog = Arc::new(Watchdog { next_look, watched, is_woken: AtomicUsize::new(0) });
        let threads = WANTED.map(|at| {
            let watchdog = Arc::clone(&watchdog);
            thread::spawn(move || watchdog.take_lock(at))
        });
        let (next, seen) = watchdog.look(forgets_first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let is_woken = watchdog.is_woken.load(Ordering::Acquire) == 1;
        for at in WANTED {
            assert!(seen.contains(&at) || next <= at || is_woken, "what is wanted at {at} is overslept until {next}");
        }
    });
}

#[test]
fn watchdog_does_not_miss_a_lock_acquired_during_its_check() {
    for planned in [5, 15, u64::MAX] {
        check_that_no_lock_is_missed(planned, true);
    }
}

#[test]
#[should_panic(expected = "is overslept")]
fn watchdog_that_clears_its_schedule_too_late_fails_the_test() {
    check_that_no_lock_is_missed(5, false);
}

/// Copy of `Owed` that lacks the second condition in `owes`.
struct Careless {
    count: AtomicUsize,
    since: AtomicU64,
}

/// Operations that the model calls on both counters.
trait Counts: Send + Sync + 'static {
    fn owes(&self, now: u64);
    fn heard(&self, now: u64);
    fn since(&self) -> u64;
}

impl Counts for Owed {
    fn owes(&self, now: u64) {
        self.owes(now);
    }

    fn heard(&self, now: u64) {
        self.heard(now);
    }

    fn since(&self) -> u64 {
        self.since()
    }
}

impl Counts for Careless {
    fn owes(&self, now: u64) {
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    fn heard(&self, now: u64) {
        let is_last = self.count.fetch_sub(1, Ordering::Relaxed) == 1;
        self.since.store(if is_last { 0 } else { now }, Ordering::Relaxed);
    }

    fn since(&self) -> u64 {
        if self.count.load(Ordering::Relaxed) > 0 { self.since.load(Ordering::Relaxed) } else { 0 }
    }
}

/// Answers one release while two others are sent.
/// From the next release on, the counter must return the time since which the node is silent. After all answers, it must return 0.
fn check_that_an_unresponsive_node_is_noticed(make: impl Fn() -> Box<dyn Counts> + Send + Sync + 'static) {
    loom::model(move || {
        let owed: Arc<Box<dyn Counts>> = Arc::new(make());
        owed.owes(1);
        let spawn = |act: fn(&dyn Counts)| {
            let owed = Arc::clone(&owed);
            thread::spawn(move || act(&**owed))
        };
        let threads = [spawn(|owed| owed.heard(2)), spawn(|owed| owed.owes(3))];
        owed.owes(4);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        owed.owes(5);
        assert!(owed.since() > 0, "nobody knows since when the node is silent");
        (0..3).for_each(|_| owed.heard(6));
        assert_eq!(owed.since(), 0, "nothing is owed any more");
    });
}

#[test]
fn unresponsive_node_is_noticed_after_the_next_release() {
    check_that_an_unresponsive_node_is_noticed(|| Box::new(Owed::nothing()));
}

#[test]
#[should_panic(expected = "nobody knows since when")]
fn counter_that_keeps_the_first_timestamp_fails_the_test() {
    check_that_an_unresponsive_node_is_noticed(|| Box::new(Careless { count: AtomicUsize::new(0), since: AtomicU64::new(0) }));
}
