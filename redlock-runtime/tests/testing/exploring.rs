//! Tests of `explore`: a seed determines the whole run, and seeds find faults of a program.

use redlock_runtime::testing::{Explore, TestServers, explore};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Wait, distributed_lock};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Balances of two accounts, which only locks protect.
#[derive(Default)]
struct Bank {
    balances: [Cell<i64>; 2],
    moved: Cell<i64>,
}

impl Bank {
    /// Reads, pauses, writes.
    async fn change(&self, account: usize, by: i64, servers: &TestServers) {
        let before = self.balances[account].get();
        servers.random_pause(3 * SECOND).await;
        self.balances[account].set(before + by);
    }
}

/// One lock for both accounts. The changes are written together at the end: a stopped body has changed nothing.
#[distributed_lock(key = "bank", ttl = 2, wait = 20)]
async fn transfer(bank: &Bank, servers: &TestServers) -> Result<(), LockError> {
    let before = bank.balances.each_ref().map(Cell::get);
    servers.random_pause(3 * SECOND).await;
    bank.balances[0].set(before[0] - 1);
    bank.balances[1].set(before[1] + 1);
    bank.moved.set(bank.moved.get() + 1);
    Ok(())
}

/// Transfer that continues without its lock.
#[distributed_lock(key = "bank", ttl = 2, wait = 20, renew = false, on_lost = continue)]
async fn transfer_that_ignores_the_loss(bank: &Bank, servers: &TestServers) -> Result<(), LockError> {
    let before = bank.balances.each_ref().map(Cell::get);
    servers.random_pause(3 * SECOND).await;
    bank.balances[0].set(before[0] - 1);
    bank.balances[1].set(before[1] + 1);
    bank.moved.set(bank.moved.get() + 1);
    Ok(())
}

async fn unlocked_transfer(bank: &Bank, servers: &TestServers) -> Result<(), LockError> {
    tokio::join!(bank.change(0, -1, servers), bank.change(1, 1, servers));
    bank.moved.set(bank.moved.get() + 1);
    Ok(())
}

/// Checks a transfer with two processes: the balances must equal the moved amount.
fn check_transfer(transfer: &impl AsyncFn(&Bank, &TestServers) -> Result<(), LockError>) -> Result<(), String> {
    let convicted = catch_unwind(AssertUnwindSafe(|| {
        explore(0..100, async |servers, _seed| {
            let (ours, theirs, bank) = (servers.manager(), servers.manager(), Bank::default());
            let calls = async |manager: &LockManager| {
                for _ in 0..3 {
                    servers.random_pause(2 * SECOND).await;
                    // A failed transfer has moved nothing.
                    let _ = manager.scope(transfer(&bank, &servers)).await;
                }
            };
            tokio::join!(calls(&ours), calls(&theirs));
            assert_eq!(bank.balances[1].get(), bank.moved.get(), "money is lost");
            assert_eq!(bank.balances[0].get(), -bank.moved.get(), "money is lost");
            assert!(servers.log().max_together("bank") <= 1, "two at work:\n{}", servers.log());
        });
    }));
    convicted.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn explore_passes_a_correct_function_and_fails_incorrect_ones() {
    assert_eq!(check_transfer(&async |bank, servers| transfer(bank, servers).await), Ok(()));
    assert!(
        check_transfer(&async |bank, servers| transfer_that_ignores_the_loss(bank, servers).await)
            .unwrap_err()
            .contains("money is lost")
    );
    assert!(
        check_transfer(&async |bank, servers| unlocked_transfer(bank, servers).await)
            .unwrap_err()
            .contains("money is lost")
    );
}

/// Enters the lock of its caller.
#[distributed_lock(key = "ledger", reentrant, wait = 2)]
async fn audit(servers: &TestServers) -> Result<(), LockError> {
    servers.random_pause(SECOND).await;
    Ok(())
}

#[distributed_lock(key = "ledger", ttl = 2, wait = 5)]
async fn audited_entry(servers: &TestServers) -> Result<(), LockError> {
    servers.random_pause(SECOND).await;
    audit(servers).await
}

/// Number of seeds: enough to meet every fault at every moment. Each of them runs twice.
const SEEDS: u64 = 200;

/// Log of a run with all kinds of locks. The settings depend on the seed.
fn story(seed: u64) -> String {
    let told = RefCell::new(String::new());
    let servers = if seed.is_multiple_of(5) { [1, 2, 5][usize::try_from(seed % 3).unwrap()] } else { 3 };
    Explore::new([seed]).servers(servers).faults(seed % 10 != 1).run(async |servers, seed| {
        let builder = || LockManager::builder().linger(if seed % 3 == 0 { SECOND } else { Duration::ZERO });
        let managers = [(); 3].map(|()| servers.manager_with(builder()));
        let work = async |manager: &LockManager, offset: u64| {
            for call in 0..4 {
                servers.random_pause(2 * SECOND).await;
                let key = format!("order:{}", (call + offset) % 2);
                let shared = (call + seed) % 3 == 0;
                let request = if shared { LockRequest::shared(key) } else { LockRequest::new(key) };
                let request = request.ttl(2 * SECOND).wait(Wait::For(5 * SECOND));
                if call == 2 && !shared {
                    if let Ok(guard) = manager.acquire(request.fencing()).await {
                        servers.random_pause(4 * SECOND).await;
                        drop(guard);
                    }
                } else if let Ok(guard) = manager.acquire(request).await {
                    servers.random_pause(4 * SECOND).await;
                    drop(guard);
                }
            }
            // Readers of one process share a vote.
            let reader = LockRequest::shared("rates").ttl(2 * SECOND).wait(Wait::For(5 * SECOND));
            let read = async |_: &LockGuard| {
                servers.random_pause(3 * SECOND).await;
                Ok::<_, LockError>(())
            };
            let _ = tokio::join!(manager.with_lock(reader.clone(), read), manager.with_lock(reader, read));
            let _ = manager.scope(audited_entry(&servers)).await;
            let job = LockRequest::new("report").once_per(60 * SECOND);
            let _ = manager.with_lock(job, async |_| Ok::<_, LockError>(())).await;
        };
        // Another owner holds several locks in between, and loses one of them.
        let others = async {
            for key in ["order:1", "config", "order:0", "stock"] {
                servers.hold(key).await;
            }
            servers.random_pause(SECOND).await;
            servers.lose("order:1");
            servers.random_pause(SECOND).await;
            servers.expire("config");
            servers.release("stock");
            servers.random_pause(SECOND).await;
            servers.release("order:0");
            servers.hold_shared("order:1").await;
        };
        // Two calls of each kind at a time: the second one waits.
        tokio::join!(
            others,
            work(&managers[0], 0),
            work(&managers[0], 1),
            work(&managers[1], 0),
            work(&managers[1], 1),
            work(&managers[2], 0),
        );
        *told.borrow_mut() = servers.log().to_string();
    });
    told.into_inner()
}

#[test]
fn same_seed_repeats_the_same_run() {
    let first: Vec<_> = (0..SEEDS).map(story).collect();
    // In reverse order, so that state that one run leaves behind would show in the next.
    for seed in (0..SEEDS).rev() {
        let again = story(seed);
        let before = &first[usize::try_from(seed).unwrap()];
        assert!(*before == again, "seed {seed} does not decide everything:\n{before}\n\n{again}");
    }
    let different: std::collections::HashSet<_> = first.iter().collect();
    assert_eq!(different.len(), first.len(), "seeds give different runs");
    let mentions = |text: &str| first.iter().filter(|story| story.contains(text)).count();
    for text in [
        "lost: ",
        "failed: ",
        "shared",
        "fencing token",
        "report@",
        "entered the lock",
        "left the lock",
        "\"rates\" acquired",
    ] {
        assert!(mentions(text) > 10, "{text}: {}", mentions(text));
    }
}

#[test]
fn calm_ends_all_faults() {
    explore(0..100, async |servers, _seed| {
        let manager = servers.manager();
        for _ in 0..3 {
            servers.random_pause(20 * SECOND).await;
            let _ = manager.acquire(LockRequest::new("order:7").wait(SECOND)).await;
        }
        servers.calm();
        // Longer than any restarted server abstains.
        drop(manager.acquire(LockRequest::new("order:7").wait(90 * SECOND)).await.unwrap());
    });
}

#[test]
#[should_panic(expected = "the run does not end: it is not over after 86400s")]
fn endless_run_fails() {
    explore([7], async |_servers, _seed| std::future::pending().await);
}

#[test]
#[should_panic(expected = "the run does not end: it is not over after 2s")]
fn run_fails_after_its_max_time() {
    Explore::new([7]).max_time(2 * SECOND).run(async |_servers, _seed| tokio::time::sleep(3 * SECOND).await);
}

#[test]
#[should_panic(expected = "locks need a server")]
fn explore_rejects_zero_servers() {
    let _ = Explore::new([7]).servers(0);
}

/// Returns the seeds that run.
fn ran(settings: Explore<impl IntoIterator<Item = u64>>) -> Vec<u64> {
    let ran = RefCell::new(Vec::new());
    settings.run(async |servers, seed| {
        assert_eq!(servers.nodes().count(), 3);
        ran.borrow_mut().push(seed);
    });
    ran.into_inner()
}

#[test]
fn seeds_come_from_the_environment_or_the_test() {
    if std::env::var_os("REDLOCK_SEED").is_some() {
        // The code below starts this test again. A developer may also run it with a seed.
        eprintln!("ran {:?}", ran(Explore::new(0..3).only(1)));
        return;
    }
    assert_eq!(ran(Explore::new(0..3)), [0, 1, 2]);
    assert_eq!(ran(Explore::new([7].into_iter().chain(0..2))), [7, 0, 1]);
    assert_eq!(ran(Explore::new(0..3).only(41)), [41]);
    let own_name = "exploring::seeds_come_from_the_environment_or_the_test";
    for (seeds, expected) in [("41", "ran [41]"), ("7..9", "ran [7, 8]"), ("all", "REDLOCK_SEED=all names no seed")] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", own_name, "--nocapture"]).env("REDLOCK_SEED", seeds).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{seeds}: {said}");
        assert_eq!(output.status.success(), expected.starts_with("ran"), "{seeds}: {said}");
    }
}

/// Returns `true` if several calls in two processes acquire and keep their locks.
fn no_call_fails(settings: Explore<impl IntoIterator<Item = u64>>) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        settings.run(async |servers, _seed| {
            let (ours, theirs, bank) = (servers.manager(), servers.manager(), Bank::default());
            let calls = async |manager: &LockManager| {
                for _ in 0..3 {
                    servers.random_pause(2 * SECOND).await;
                    manager.scope(transfer(&bank, &servers)).await.unwrap();
                }
            };
            tokio::join!(calls(&ours), calls(&theirs));
            assert_eq!(bank.moved.get(), 6);
        });
    }));
    outcome.is_ok()
}

#[test]
fn calls_without_faults_succeed_in_varying_orders() {
    assert!(no_call_fails(Explore::new(0..100).faults(false)));
    assert!(no_call_fails(Explore::new(0..30).faults(false).servers(1)));
    assert!(!no_call_fails(Explore::new(0..100)), "there is trouble by default");

    let orders = RefCell::new(std::collections::HashSet::new());
    Explore::new(0..30).faults(false).run(async |servers, _seed| {
        let (ours, theirs) = (servers.manager(), servers.manager());
        let work = async |manager: &LockManager| drop(manager.acquire("order:7").await.unwrap());
        tokio::join!(work(&ours), work(&theirs), work(&ours));
        let managers: Vec<_> = servers.log().entries().into_iter().map(|entry| entry.manager).collect();
        orders.borrow_mut().insert(managers);
    });
    assert!(orders.into_inner().len() > 1, "the seed decides who comes first");
}

#[test]
fn single_server_never_loses_data_at_random() {
    Explore::new(0..30).servers(1).run(async |servers, _seed| {
        let (ours, theirs) = (servers.manager(), servers.manager());
        let held = loop {
            if let Ok(guard) = ours.acquire(LockRequest::new("order:7").ttl(3600 * SECOND)).await {
                break guard;
            }
        };
        // The lock is held for an hour, so each attempt fails unless the server has lost it.
        for _ in 0..200 {
            servers.random_pause(2 * SECOND).await;
            assert!(theirs.try_acquire("order:7").await.is_err(), "{}", servers.log());
        }
        drop(held);
    });
}

#[test]
fn correct_function_passes_with_any_number_of_servers() {
    for servers in [1, 2, 5] {
        Explore::new(0..60).servers(servers).run(async |servers, _seed| {
            let (ours, theirs, bank) = (servers.manager(), servers.manager(), Bank::default());
            let calls = async |manager: &LockManager| {
                for _ in 0..3 {
                    servers.random_pause(2 * SECOND).await;
                    // A failed transfer has moved nothing.
                    let _ = manager.scope(transfer(&bank, &servers)).await;
                }
            };
            tokio::join!(calls(&ours), calls(&theirs));
            assert_eq!(bank.balances[1].get(), bank.moved.get(), "money is lost");
            assert!(servers.log().max_together("bank") <= 1, "two at work:\n{}", servers.log());
        });
    }
}

#[test]
fn locks_of_an_external_holder_work_during_faults() {
    // A correct program: two of its processes request the locks of another owner. No run reports a mistake of the test.
    explore(0..100, async |servers, _seed| {
        let managers = [servers.manager(), servers.manager()];
        let work = async |manager: &LockManager| {
            for _ in 0..5 {
                if let Ok(guard) = manager.acquire(LockRequest::new("order:7").wait(5 * SECOND)).await {
                    servers.random_pause(2 * SECOND).await;
                    drop(guard);
                }
            }
        };
        let others = async {
            for end in [TestServers::expire, TestServers::lose, TestServers::release] {
                servers.hold("order:7").await;
                servers.random_pause(40 * SECOND).await;
                end(&servers, "order:7");
            }
        };
        tokio::join!(work(&managers[0]), work(&managers[1]), others);
    });
}

#[test]
fn random_faults_cut_off_a_manager() {
    let is_seen = Cell::new(false);
    explore(0..50, async |servers, _seed| {
        let managers = [servers.manager(), servers.manager()];
        for _ in 0..20 {
            servers.random_pause(5 * SECOND).await;
            for manager in &managers {
                let error = manager.try_acquire("order:7").await.err().map(|error| error.to_string());
                is_seen.set(is_seen.get() || error.is_some_and(|error| error.contains("cut the manager off")));
            }
        }
    });
    assert!(is_seen.get());
}

#[test]
fn randomness_is_unseeded_after_a_failed_run() {
    let after = [(); 2].map(|()| {
        let failed = catch_unwind(|| explore([7], async |_servers, _seed| panic!("a mistake")));
        assert!(failed.is_err());
        fastrand::u64(..)
    });
    assert_ne!(after[0], after[1], "they follow from the seed");
}
