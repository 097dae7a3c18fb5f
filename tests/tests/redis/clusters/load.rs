//! Many concurrent calls for few keys, with a witness that counts overlapping bodies.

use redlock_runtime::{LockError, LockManager, LockRequest, Mode};
use redlock_tests::PATIENCE;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;

/// One of this many calls is dropped before its end.
const DROPPED: usize = 5;

/// Weight of an exclusive body: larger than the number of calls.
const ALONE: usize = 1000;

/// Request for a key.
type Request = fn(&str) -> LockRequest;

/// Counters of the bodies of all keys.
#[derive(Debug, Default)]
pub(super) struct Witness {
    inside: HashMap<String, AtomicUsize>,
    pub(super) bodies: AtomicUsize,
    pub(super) overlaps: AtomicUsize,
    /// Largest number of bodies that shared a lock at once.
    pub(super) together: AtomicUsize,
    ends: AtomicBool,
}

/// A running body.
struct Inside<'a>(&'a AtomicUsize, usize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::SeqCst);
    }
}

impl Witness {
    pub(super) fn of(keys: &[String]) -> Arc<Self> {
        let inside = keys.iter().map(|key| (key.clone(), AtomicUsize::new(0))).collect();
        Arc::new(Self { inside, ..Self::default() })
    }

    async fn body(&self, key: &str, mode: Mode) {
        let (inside, weight) = (&self.inside[key], if mode == Mode::Shared { 1 } else { ALONE });
        let before = inside.fetch_add(weight, Ordering::SeqCst);
        let _inside = Inside(inside, weight);
        if before >= ALONE || before > 0 && mode == Mode::Exclusive {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        } else if mode == Mode::Shared {
            self.together.fetch_max(before + 1, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.bodies.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until the given number of further bodies have run.
    pub(super) async fn more(&self, bodies: usize) {
        let wanted = self.bodies.load(Ordering::SeqCst) + bodies;
        redlock_tests::eventually(3 * PATIENCE, "bodies run", async || {
            let bodies = self.bodies.load(Ordering::SeqCst);
            if bodies >= wanted { Ok(()) } else { Err((bodies, wanted)) }
        })
        .await;
    }
}

/// Tasks that acquire the locks in turns, until [`end`](Self::end).
pub(super) struct Load {
    pub(super) witness: Arc<Witness>,
    tasks: JoinSet<Vec<LockError>>,
}

impl Load {
    /// Starts the tasks. Each manager has one task for each key, and one for all keys in turn.
    pub(super) fn start(managers: &[LockManager], keys: &[String]) -> Self {
        Self::of(managers, keys, |_| Mode::Exclusive, |key| LockRequest::new(key))
    }

    /// Starts the tasks with mostly shared calls, and some exclusive ones.
    pub(super) fn mostly_shared(managers: &[LockManager], keys: &[String]) -> Self {
        let mode = |round| if round % 4 == 0 { Mode::Exclusive } else { Mode::Shared };
        Self::of(managers, keys, mode, |key| LockRequest::new(key))
    }

    /// Starts the tasks with exclusive calls for two keys with the hash tag `key`.
    pub(super) fn of_pairs(managers: &[LockManager], keys: &[String]) -> Self {
        let pair = |key: &str| LockRequest::all(["from", "to"].map(|name| format!("{{{key}}}:{name}")));
        Self::of(managers, keys, |_| Mode::Exclusive, pair)
    }

    fn of(managers: &[LockManager], keys: &[String], mode: fn(usize) -> Mode, request: Request) -> Self {
        let witness = Witness::of(keys);
        let mut tasks = JoinSet::new();
        for manager in managers {
            for first in 0..=keys.len() {
                let order = if first == keys.len() { keys.to_vec() } else { vec![keys[first].clone()] };
                tasks.spawn(work(manager.clone(), order, mode, request, Arc::clone(&witness)));
            }
        }
        Self { witness, tasks }
    }

    /// Ends the tasks, and returns their errors.
    pub(super) async fn end(self) -> Vec<LockError> {
        self.witness.ends.store(true, Ordering::SeqCst);
        self.tasks.join_all().await.into_iter().flatten().collect()
    }
}

async fn work(
    manager: LockManager,
    keys: Vec<String>,
    mode: fn(usize) -> Mode,
    request: Request,
    witness: Arc<Witness>,
) -> Vec<LockError> {
    let mut errors = Vec::new();
    for (round, key) in keys.iter().cycle().enumerate() {
        if witness.ends.load(Ordering::SeqCst) {
            return errors;
        }
        let mode = mode(round);
        let request = request(key).mode(mode).wait(PATIENCE);
        let call = manager.with_lock(request, async |_| {
            witness.body(key, mode).await;
            Ok::<_, LockError>(())
        });
        let polls = if round % DROPPED == 0 { round / DROPPED % 8 } else { usize::MAX };
        if let Some(Err(error)) = polled(call, polls).await {
            errors.push(error);
        }
        tokio::task::yield_now().await;
    }
    errors
}

/// Polls `future` at most `most` times, and then drops it.
async fn polled<F: Future>(future: F, most: usize) -> Option<F::Output> {
    let (mut future, mut polls) = (pin!(future), 0);
    poll_fn(|cx| {
        if polls >= most {
            return Poll::Ready(None);
        }
        polls += 1;
        if polls >= most {
            // Wakes itself, to be dropped in the next poll.
            cx.waker().wake_by_ref();
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}
