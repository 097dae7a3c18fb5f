//! Handlers that run in spawned tasks, in tests that run at the same time.

use redlock_runtime::testing::{self, TestServers};
use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{id}")]
async fn capture(id: u64) -> Result<u64, LockError> {
    tokio::task::yield_now().await;
    Ok(id)
}

/// Each meets its own servers, whichever of them has its turn.
async fn captures_by_itself(id: u64) {
    for _ in 0..20 {
        let servers = TestServers::new(1);
        let installed = testing::install(&servers.manager());
        let calls: Vec<_> = (0..3).map(|_| tokio::spawn(capture(id))).collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), id);
        }
        drop(installed);
        assert_eq!(servers.log().acquired(), vec![format!("order:{id}"); 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn tests_take_turns_first() {
    captures_by_itself(1).await;
}

#[tokio::test(start_paused = true)]
async fn tests_take_turns_second() {
    captures_by_itself(2).await;
}

#[tokio::test]
async fn tests_take_turns_third() {
    captures_by_itself(3).await;
}

#[tokio::test(start_paused = true)]
async fn a_scope_comes_before_it() {
    let (servers, others) = (TestServers::new(1), TestServers::new(1));
    let _installed = testing::install(&servers.manager());
    others.manager().scope(capture(7)).await.unwrap();
    capture(8).await.unwrap();
    assert_eq!((others.log().acquired(), servers.log().acquired()), (vec!["order:7".into()], vec!["order:8".into()]));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "this test has replaced the installed manager already")]
async fn a_test_replaces_it_once() {
    let servers = TestServers::new(1);
    let _first = testing::install(&servers.manager());
    let _second = testing::install(&servers.manager());
}
