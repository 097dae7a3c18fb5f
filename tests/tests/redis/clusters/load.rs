//! Many calls at once for few keys, and who notices when two bodies run together.

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

/// One call out of so many is dropped before it is done.
const DROPPED: usize = 5;

/// What a body counts that is alone: more than there are calls.
const ALONE: usize = 1000;

/// What a call for a key asks for.
type Request = fn(&str) -> LockRequest;

/// What is known of the bodies of all keys.
#[derive(Debug, Default)]
pub(super) struct Witness {
    inside: HashMap<String, AtomicUsize>,
    pub(super) bodies: AtomicUsize,
    pub(super) overlaps: AtomicUsize,
    /// How many have shared a lock at once, at most.
    pub(super) together: AtomicUsize,
    ends: AtomicBool,
}

/// A body that runs.
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

    /// Waits until so many bodies have run from now on.
    pub(super) async fn more(&self, bodies: usize) {
        let wanted = self.bodies.load(Ordering::SeqCst) + bodies;
        redlock_tests::eventually(3 * PATIENCE, "bodies run", async || {
            let bodies = self.bodies.load(Ordering::SeqCst);
            if bodies >= wanted { Ok(()) } else { Err((bodies, wanted)) }
        })
        .await;
    }
}

/// Tasks that take the locks in turns, until they are told to end.
pub(super) struct Load {
    pub(super) witness: Arc<Witness>,
    tasks: JoinSet<Vec<LockError>>,
}

impl Load {
    /// Each manager has a task for each key and one that goes through all of them.
    pub(super) fn start(managers: &[LockManager], keys: &[String]) -> Self {
        Self::of(managers, keys, |_| Mode::Exclusive, |key| LockRequest::new(key))
    }

    /// The same with calls that share the lock, and others now and then.
    pub(super) fn mostly_shared(managers: &[LockManager], keys: &[String]) -> Self {
        let mode = |round| if round % 4 == 0 { Mode::Exclusive } else { Mode::Shared };
        Self::of(managers, keys, mode, |key| LockRequest::new(key))
    }

    /// The same with calls for two keys with the hash tag `key`, which are alone.
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

    /// Ends the tasks, and returns the errors that they have met.
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

/// Polls `future` at most so often, and drops it then.
async fn polled<F: Future>(future: F, most: usize) -> Option<F::Output> {
    let (mut future, mut polls) = (pin!(future), 0);
    poll_fn(|cx| {
        if polls >= most {
            return Poll::Ready(None);
        }
        polls += 1;
        if polls >= most {
            // It goes on to be dropped.
            cx.waker().wake_by_ref();
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}
