//! Readers of one process that share one token: they join without a command, until a writer limits them.

use super::{KEY, TTL, brief, cause, reader, writer};
use crate::support::{SHORT_WAIT, SIZES, barrier, holders, majority, manager, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, most_scripts, obtained, reset_counts, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, LossCause, OwnerToken, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet, yield_now};
use tokio::time::{sleep, timeout};

/// Bodies that run until [`end`](Self::end).
#[derive(Clone)]
struct Bodies {
    entered: Arc<Mutex<Vec<OwnerToken>>>,
    ends: watch::Sender<bool>,
}

type Body = JoinHandle<Result<(), LockError>>;

impl Bodies {
    fn new() -> Self {
        Self { entered: Arc::default(), ends: watch::Sender::new(false) }
    }

    /// Starts a reader of `manager`.
    fn begin(&self, manager: &LockManager, request: LockRequest) -> Body {
        let (manager, bodies, mut ends) = (manager.clone(), self.clone(), self.ends.subscribe());
        tokio::spawn(async move {
            let body = async |guard: &LockGuard| {
                bodies.entered.lock().unwrap().push(*guard.token());
                ends.wait_for(|ends| *ends).await.unwrap();
                guard.ensure_held()
            };
            manager.with_lock(request, body).await
        })
    }

    fn tokens(&self) -> Vec<OwnerToken> {
        self.entered.lock().unwrap().clone()
    }

    /// Waits until `many` bodies have begun.
    async fn wait_for(&self, many: usize) {
        eventually_eq(PATIENCE, "they run", many, async || self.tokens().len()).await;
    }

    /// Starts `many` readers of `manager`, one after the other.
    async fn run(&self, manager: &LockManager, many: usize) -> Vec<Body> {
        let mut bodies = Vec::new();
        for _ in 0..many {
            let before = self.tokens().len();
            bodies.push(self.begin(manager, reader()));
            self.wait_for(before + 1).await;
        }
        bodies
    }

    fn end(&self) {
        self.ends.send_replace(true);
    }
}

async fn ended(bodies: impl IntoIterator<Item = Body>) {
    for body in bodies {
        timeout(PATIENCE, body).await.expect("it ends").unwrap().unwrap();
    }
}

/// Returns the number of shares at the first node.
async fn shares(nodes: &Nodes) -> usize {
    nodes[0].inspect().share_count(KEY).await
}

#[tokio::test]
async fn local_readers_join_without_a_command_and_the_last_one_releases() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (manager, bodies) = (manager(&nodes).await, Bodies::new());
        let first = bodies.run(&manager, 1).await;
        barrier(&nodes).await;
        reset_counts(&nodes).await;
        let others = bodies.run(&manager, 63).await;
        barrier(&nodes).await;
        assert_eq!(most_scripts(&nodes).await, 0, "{size} nodes");
        let tokens = bodies.tokens();
        assert!(tokens.iter().all(|token| *token == tokens[0]));
        assert_eq!(manager.held_locks().len(), 64, "each of them is told");
        // All readers except the first are cancelled in the middle of their bodies.
        for other in others {
            other.abort();
            assert!(other.await.unwrap_err().is_cancelled());
        }
        barrier(&nodes).await;
        assert_eq!((most_scripts(&nodes).await, shares(&nodes).await), (0, 1));
        assert_eq!(manager.held_locks().len(), 1);
        bodies.end();
        ended(first).await;
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn joined_readers_keep_the_lease_after_the_first_has_left() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let (first, others) = (Bodies::new(), Bodies::new());
    let founder = first.run(&manager, 1).await;
    let joined = others.run(&manager, 2).await;
    first.end();
    ended(founder).await;
    // The lease is renewed for the remaining readers.
    sleep(3 * TTL).await;
    assert_eq!((shares(&nodes).await, manager.held_locks().len()), (1, 2));
    others.end();
    ended(joined).await;
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn local_readers_waiting_behind_a_writer_enter_together() {
    const READERS: usize = 16;
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = theirs.acquire(writer()).await.unwrap();
        let bodies = Bodies::new();
        let mut all = vec![bodies.begin(&ours, reader())];
        wait_until_queued(&nodes, KEY, 1).await;
        for _ in 1..READERS {
            all.push(bodies.begin(&ours, reader()));
            yield_now().await;
        }
        barrier(&nodes).await;
        wait_until_queued(&nodes, KEY, 1).await;
        // The call that represents them is dropped, and the next one continues with the same place in the queue.
        all.remove(0).abort();
        sleep(Duration::from_millis(20)).await;
        wait_until_queued(&nodes, KEY, 1).await;
        held.release().await.unwrap();
        bodies.wait_for(READERS - 1).await;
        let tokens = bodies.tokens();
        assert!(tokens.iter().all(|token| *token == tokens[0]), "{size} nodes");
        bodies.end();
        ended(all).await;
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn local_waiting_readers_time_out_individually() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = theirs.acquire(writer()).await.unwrap();
    let (bodies, brief) = (Bodies::new(), reader().wait(SHORT_WAIT));
    let [patient, hasty, last] = [reader(), brief.clone(), brief].map(|request| bodies.begin(&ours, request));
    for hasty in [hasty, last] {
        let error = hasty.await.unwrap().unwrap_err();
        assert!(matches!(&error, LockError::TimedOut { holder: Some(_), .. }), "{error:?}");
    }
    held.release().await.unwrap();
    bodies.end();
    ended([patient]).await;
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn remote_writer_enters_between_overlapping_readers() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let (is_in, ran) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut readers = JoinSet::new();
        for _ in 0..8 {
            let (ours, is_in, ran) = (ours.clone(), Arc::clone(&is_in), Arc::clone(&ran));
            readers.spawn(async move {
                let body = async |guard: &LockGuard| {
                    sleep(Duration::from_millis(5)).await;
                    guard.ensure_held()
                };
                while !is_in.load(Ordering::SeqCst) {
                    ours.with_lock(reader(), body).await.unwrap();
                    ran.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..5 {
            let before = ran.load(Ordering::SeqCst);
            eventually_eq(PATIENCE, "they run", true, async || ran.load(Ordering::SeqCst) > before + 50).await;
            timeout(PATIENCE, theirs.acquire(writer())).await.expect("it comes in").unwrap().release().await.unwrap();
        }
        is_in.store(true, Ordering::SeqCst);
        readers.join_all().await;
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn local_writer_is_not_overtaken_by_readers() {
    let nodes = Nodes::start(3).await;
    let (manager, before, behind) = (manager(&nodes).await, Bodies::new(), Bodies::new());
    let running = before.run(&manager, 2).await;
    let write = waiting(&manager, writer());
    wait_until_queued(&nodes, KEY, 1).await;
    let late = behind.begin(&manager, reader());
    wait_until_queued(&nodes, KEY, 2).await;
    assert!(behind.tokens().is_empty());
    before.end();
    ended(running).await;
    let alone = obtained(write).await;
    assert!(behind.tokens().is_empty());
    alone.release().await.unwrap();
    behind.end();
    ended([late]).await;
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn joined_readers_are_all_stopped_if_their_token_is_lost() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (manager, bodies) = (brief(&nodes).await, Bodies::new());
        let all = bodies.run(&manager, 4).await;
        for node in &nodes[..majority(size)] {
            node.inspect().command::<()>(&["SET", KEY, "another", "PX", "60000"]).await;
        }
        for body in all {
            let error = timeout(PATIENCE, body).await.expect("it is stopped").unwrap().unwrap_err();
            assert_eq!(cause(error), LossCause::Taken, "{size} nodes");
        }
        assert!(manager.held_locks().is_empty());
        let lost: u64 = manager.stats().sites.iter().map(|site| site.lost).sum();
        assert_eq!(lost, 4, "each is counted once");
    }
}

#[tokio::test]
async fn joined_readers_survive_killed_connections() {
    let nodes = Nodes::start(3).await;
    let (manager, bodies) = (brief(&nodes).await, Bodies::new());
    let mut all = bodies.run(&manager, 3).await;
    for node in nodes.iter() {
        node.inspect().kill_clients().await;
    }
    all.extend(bodies.run(&manager, 1).await);
    sleep(2 * TTL).await;
    bodies.end();
    ended(all).await;
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn max_hold_of_one_joined_reader_does_not_apply_to_others() {
    let nodes = Nodes::start(1).await;
    let manager = brief(&nodes).await;
    let capped = async || {
        let body = async |_: &LockGuard| -> Result<(), LockError> { pending().await };
        manager.with_lock(reader().max_hold(TTL / 4), body).await.unwrap_err()
    };
    assert_eq!(cause(capped().await), LossCause::MaxHold, "alone");
    let bodies = Bodies::new();
    let all = bodies.run(&manager, 1).await;
    assert_eq!(cause(capped().await), LossCause::MaxHold, "and together with one that has no limit");
    sleep(2 * TTL).await;
    assert_eq!(manager.held_locks().len(), 1);
    bodies.end();
    ended(all).await;
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn readers_with_different_options_get_separate_tokens() {
    let nodes = Nodes::start(1).await;
    let (manager, bodies) = (manager(&nodes).await, Bodies::new());
    let mut all = bodies.run(&manager, 1).await;
    let others = [
        reader().ttl(Duration::from_secs(20)),
        reader().without_renewal(),
        reader().min_hold(Duration::from_millis(50)),
    ];
    for (at, request) in others.into_iter().enumerate() {
        all.push(bodies.begin(&manager, request));
        bodies.wait_for(at + 2).await;
    }
    let guard = manager.acquire(reader()).await.unwrap();
    assert_eq!((shares(&nodes).await, holders(&nodes, &guard).await), (5, 1));
    let detached = guard.detach();
    let guard = manager.attach(detached).await.unwrap();
    let mut tokens = bodies.tokens();
    tokens.push(*guard.token());
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 5);
    guard.release().await.unwrap();
    bodies.end();
    ended(all).await;
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn nested_reader_joins_its_caller_and_does_not_wait_behind_a_writer() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let body = async |_: &LockGuard| {
        let inner = async |guard: &LockGuard| guard.ensure_held();
        ours.with_lock(reader(), inner).await?;
        let write = waiting(&theirs, writer());
        wait_until_queued(&nodes, KEY, 1).await;
        // Readers may join for a short time after the manager has heard of the writer.
        let is_refused = async || {
            let tried = ours.with_lock(reader().wait(Wait::None), inner).await;
            matches!(tried, Err(LockError::Contended { .. }))
        };
        eventually_eq(PATIENCE, "the writer is not overtaken for ever", true, is_refused).await;
        Ok::<_, LockError>(write)
    };
    let write = ours.with_lock(reader(), body).await.unwrap();
    obtained(write).await.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}
