//! Guarantees of the options for every kind of lock. The module `holding` tests them for one key.

use crate::lingering::make_idle;
use crate::support::{BRIEF, SIZES, assert_nothing_left, builder, connected, majority, manager};
use crate::waiters::{assert_all_gone, obtained, patient, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockPart, LockRequest, LossCause, Mode, Wait};
use redlock_tests::{Nodes, PATIENCE, Proxy, eventually, eventually_eq};
use std::future::pending;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);
/// Least time for which a key stays taken.
const LEAST: Duration = Duration::from_secs(2);

type Kind = (&'static str, fn() -> LockRequest);

/// Requests of each kind except the exclusive lock of one key. Two requests of one kind exclude each other.
const KINDS: [Kind; 4] = [
    ("several", || LockRequest::all(["a", "b"])),
    ("several, one shared", || LockRequest::all([LockPart::shared("a"), "b".into()])),
    ("a path", || LockRequest::path("/A/C")),
    ("a permit", || LockRequest::new("a").permits(1)),
];

async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}

#[tokio::test]
async fn every_kind_of_lock_ends_after_max_hold() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        for (name, request) in KINDS {
            let (ours, theirs) = (brief(&nodes).await, brief(&nodes).await);
            let begun = Instant::now();
            let body = async |guard: &LockGuard| {
                assert!(guard.is_held());
                pending::<Result<(), LockError>>().await
            };
            let stopped = ours.with_lock(request().max_hold(2 * TTL), body);
            let error = stopped.await.expect_err(name);
            assert!(begun.elapsed() >= 2 * TTL, "{name}: it was renewed until then, and not for {:?}", begun.elapsed());
            assert!(matches!(error, LockError::Lost { cause: LossCause::MaxHold, .. }), "{name}: {error:?}");
            obtained(waiting(&theirs, request().wait(PATIENCE))).await.release().await.unwrap();
            assert_all_gone(&theirs, &nodes).await;
            assert_nothing_left(&ours, &nodes).await;
        }
    }
}

#[tokio::test]
async fn every_kind_of_lock_stays_taken_until_min_hold_has_passed() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        for (name, request) in KINDS {
            let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
            let begun = Instant::now();
            ours.acquire(request().min_hold(LEAST)).await.expect(name).release().await.unwrap();
            for manager in [&ours, &theirs] {
                assert!(manager.try_acquire(request()).await.unwrap_err().is_contended(), "{name}");
            }
            obtained(waiting(&theirs, request().wait(PATIENCE))).await.release().await.unwrap();
            assert!(begun.elapsed() + Duration::from_millis(50) > LEAST, "{name}: {:?}", begun.elapsed());
            assert_all_gone(&ours, &nodes).await;
            assert_all_gone(&theirs, &nodes).await;
        }
    }
}

#[tokio::test]
async fn every_kind_of_lock_reports_its_expiry() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        for (name, request) in KINDS {
            let manager = brief(&nodes).await;
            let guard = manager.acquire(request().without_renewal()).await.expect(name);
            assert!(matches!(guard.lost().await, LockError::Lost { .. }), "{name}");
            assert!(guard.ensure_held().is_err() && guard.remaining().is_zero(), "{name}");
            // The nodes keep a lease a little longer than the client counts on it.
            sleep(TTL / 4).await;
            assert!(guard.release().await.is_err(), "{name}");
            assert_all_gone(&manager, &nodes).await;
        }
    }
}

/// Key of an idle lock of a process, and the request of the same process.
const BESIDE_IDLE: [Kind; 9] = [
    ("a", || LockRequest::all(["a", "b"])),
    ("b", || LockRequest::all([LockPart::shared("a"), "b".into()])),
    ("a", || LockRequest::all([LockPart::shared("a"), LockPart::shared("b")])),
    ("/{A}/C", || LockRequest::path("/A/C")),
    ("/{A}", || LockRequest::path("/A/C")),
    ("/{A}", || LockRequest::path("/A")),
    ("/{A}/C", || LockRequest::path("/A/C/D").mode(Mode::Shared)),
    ("a", || LockRequest::shared("a")),
    ("a", || LockRequest::new("a").permits(1)),
];

#[tokio::test]
async fn lingering_lock_does_not_block_other_calls_of_its_process() {
    // A manager that asks the nodes before it releases its idle lock is refused because of that lock, or waits for the end of its idle
    // time.
    const LONG: Duration = Duration::from_secs(60);
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        for (idle, request) in BESIDE_IDLE {
            for wait in [Wait::None, Wait::Forever] {
                let (manager, request) = (manager(&nodes).await, request().wait(wait));
                make_idle(&manager, &nodes, &patient(idle).ttl(LONG).linger(LONG)).await;
                let shown = format!("{request:?} beside {idle}, {size} nodes");
                let asked = timeout(PATIENCE, manager.acquire(request)).await.expect(&shown);
                let guard = asked.unwrap_or_else(|error| panic!("{shown}: {error}"));
                guard.ensure_held().unwrap();
                guard.release().await.unwrap();
                assert_all_gone(&manager, &nodes).await;
            }
        }
    }
}

/// Holds a lock at a bare majority, makes one of these nodes forget it, and tries to acquire the lock in another manager.
async fn check_refusals(size: usize, (name, request): Kind) {
    let nodes = Nodes::start(size).await;
    let (proxies, theirs) = (nodes.proxied().await, manager(&nodes).await);
    // These nodes are healthy, but our manager cannot reach them.
    for proxy in &proxies[majority(size)..] {
        proxy.refuse(true).await;
    }
    let ours = builder(proxies.iter().map(Proxy::url)).build().unwrap();
    let held = ours.acquire(request().without_renewal().wait(PATIENCE)).await.unwrap();
    // Our manager does not notice the restart, and relies on its proven leases.
    for proxy in &proxies[..majority(size)] {
        proxy.refuse(true).await;
        proxy.cut().await;
    }
    nodes[0].restart_empty().await;
    eventually(PATIENCE, "the node abstains", async || {
        theirs.try_acquire(request()).await.expect_err(name);
        let warnings = theirs.check().await.warnings().join("\n");
        if warnings.contains("does not vote for another ") { Ok(()) } else { Err(warnings) }
    })
    .await;
    theirs.try_acquire(request()).await.expect_err(name);
    assert!(held.is_held(), "{name}, {size} nodes: long before the end of its ttl");
}

#[tokio::test]
async fn node_that_lost_its_data_forms_no_second_majority() {
    // A node that votes again too early forms a majority with the nodes that never knew the leases.
    for kind in KINDS {
        tokio::join!(check_refusals(3, kind), check_refusals(5, kind));
    }
}

/// Requests of a waiter, by name.
const WAITERS: [Kind; 7] = [
    ("one key", || LockRequest::new("a")),
    ("a writer", || LockRequest::new("a").mode(Mode::Exclusive)),
    ("a reader", || LockRequest::shared("a")),
    KINDS[0],
    KINDS[1],
    KINDS[2],
    KINDS[3],
];

/// Returns the number of nodes with a trace of `manager`.
async fn nodes_that_know(nodes: &Nodes, manager: &str) -> usize {
    nodes.mentions(manager).await.len()
}

/// Cuts a waiter off while others hold its lock one after the other. The delayed messages must not let it in.
async fn loses_its_place(size: usize, (name, request): Kind) {
    let nodes = Nodes::start(size).await;
    let (proxies, others) = (nodes.proxied().await, [manager(&nodes).await, manager(&nodes).await]);
    let away = connected(builder(proxies.iter().map(Proxy::url)).node_timeout(BRIEF).default_ttl(TTL), &nodes).await;
    let probe = away.acquire("probe").await.unwrap();
    let of_away = probe.token().as_str().split('@').nth(1).expect("the part of the manager").to_owned();
    probe.release().await.unwrap();
    eventually_eq(PATIENCE, "nothing is left of the probe", 0, async || nodes_that_know(&nodes, &of_away).await).await;

    // Exclusive, so that readers wait as well.
    let first = match name {
        "a permit" => request(),
        _ => request().mode(Mode::Exclusive),
    };
    let first = others[0].acquire(first.wait(PATIENCE)).await.unwrap();
    // Without a time limit, the call survives a silence.
    let mut call = waiting(&away, request().wait(Wait::Forever));
    eventually_eq(PATIENCE, &format!("it waits: {name}, {size} nodes"), size, async || {
        nodes_that_know(&nodes, &of_away).await
    })
    .await;
    proxies.iter().for_each(Proxy::hold);
    first.release().await.unwrap();
    // The waiter does not answer, and is skipped.
    let second = LockRequest::all(["a", "b"]);
    let second = if matches!(name, "a path" | "a permit") { request() } else { second };
    let second = obtained(waiting(&others[1], second.wait(PATIENCE))).await;
    proxies.iter().for_each(Proxy::pass);
    eventually_eq(PATIENCE, &format!("it waits again: {name}, {size} nodes"), size, async || {
        nodes_that_know(&nodes, &of_away).await
    })
    .await;
    let entered = timeout(2 * TTL, &mut call).await;
    assert!(entered.is_err() && second.is_held(), "{name}, {size} nodes: {entered:?}");
    second.release().await.unwrap();
    let guard = obtained(call).await;
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    assert_all_gone(&away, &nodes).await;
}

#[tokio::test]
async fn waiter_skipped_while_disconnected_does_not_acquire() {
    // etcd #16221: a waiter with an expired session entered after the earlier ones had left.
    for (size, kinds) in [1, 3].into_iter().flat_map(|size| WAITERS.chunks(4).map(move |kinds| (size, kinds))) {
        kinds.iter().map(|kind| loses_its_place(size, *kind)).collect::<JoinSet<_>>().join_all().await;
    }
}
