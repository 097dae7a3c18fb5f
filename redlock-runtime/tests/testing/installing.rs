//! Handlers that run in spawned tasks, in tests that run at the same time.

use redlock_runtime::testing::{self, TestServers, explore};
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::thread;
use tokio::runtime::Builder;

#[distributed_lock(key = "order:{id}")]
async fn capture(id: u64) -> Result<u64, LockError> {
    tokio::task::yield_now().await;
    Ok(id)
}

/// Runs a concurrent test in another thread and another runtime.
fn run_as_another_test<T: Send>(test: impl AsyncFnOnce() -> T + Send) -> T {
    let run = || Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test());
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[tokio::test(start_paused = true)]
async fn installed_manager_is_invisible_to_concurrent_tests() {
    let servers = TestServers::new(1);
    let installed = testing::install(&servers.manager());
    let seen = run_as_another_test(async || LockManager::current().err());
    assert!(matches!(seen, Some(LockError::NotInstalled)), "{seen:?}");
    assert_eq!(tokio::spawn(capture(7)).await.unwrap().unwrap(), 7);
    drop(installed);
    let after = tokio::spawn(capture(7)).await.unwrap();
    assert!(matches!(after, Err(LockError::NotInstalled)), "{after:?}");
    assert_eq!(servers.log().acquired(), ["order:7"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_tests_install_separate_managers() {
    let servers = TestServers::new(1);
    let _installed = testing::install(&servers.manager());
    // The two tests do not wait for each other.
    let theirs = run_as_another_test(async || {
        let servers = TestServers::new(1);
        let _installed = testing::install(&servers.manager());
        tokio::spawn(capture(8)).await.unwrap().unwrap();
        servers.log().acquired()
    });
    tokio::spawn(capture(7)).await.unwrap().unwrap();
    assert_eq!((theirs, servers.log().acquired()), (vec!["order:8".to_owned()], vec!["order:7".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_manager_is_visible_on_all_runtime_threads() {
    let servers = TestServers::new(1);
    let _installed = testing::install(&servers.manager());
    let calls: Vec<_> = (0..20).map(|id| tokio::spawn(capture(id))).collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert!(tokio::task::spawn_blocking(LockManager::current).await.unwrap().is_ok());
    assert_eq!(servers.log().acquired().len(), 20);
}

#[test]
fn each_seed_installs_its_own_manager() {
    explore(0..20, async |servers, seed| {
        let _installed = testing::install(&servers.manager());
        let _ = tokio::spawn(capture(seed)).await.unwrap();
        assert!(servers.log().entries().iter().all(|entry| entry.key.as_str() == format!("order:{seed}")));
        assert!(!servers.log().entries().is_empty());
    });
}

#[tokio::test(start_paused = true)]
async fn scoped_manager_overrides_the_installed_one() {
    let (servers, others) = (TestServers::new(1), TestServers::new(1));
    let _installed = testing::install(&servers.manager());
    others.manager().scope(capture(7)).await.unwrap();
    capture(8).await.unwrap();
    assert_eq!((others.log().acquired(), servers.log().acquired()), (vec!["order:7".into()], vec!["order:8".into()]));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "this test has replaced the installed manager already")]
async fn second_install_in_a_test_panics() {
    let servers = TestServers::new(1);
    let _first = testing::install(&servers.manager());
    let _second = testing::install(&servers.manager());
}

#[test]
#[should_panic(expected = "this is outside of one")]
fn install_outside_of_a_runtime_panics() {
    let manager = LockManager::in_memory();
    let _installed = testing::install(&manager);
}
