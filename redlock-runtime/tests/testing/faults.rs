//! Faults of servers and locks, and their effect on calls.

use redlock_runtime::testing::TestServers;
use redlock_runtime::{LockError, LockRequest, LossCause, Wait};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn any_fault_of_a_minority_is_tolerated() {
    let troubles: [fn(&redlock_runtime::testing::TestServer); 6] = [
        |server| server.down(),
        |server| server.freeze(),
        |server| server.forget(),
        |server| server.slow(10 * SECOND),
        |server| server.refuse("OOM command not allowed"),
        |server| server.refuse("NOPERM this user has no permissions"),
    ];
    for (number, trouble) in troubles.iter().enumerate() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        trouble(&servers.node(1));
        for manager in [&ours, &theirs] {
            let guard = manager.acquire("order:7").await.unwrap_or_else(|error| panic!("trouble {number}: {error}"));
            sleep(100 * SECOND).await;
            assert!(guard.is_held(), "trouble {number}");
        }
        servers.node(1).up();
        drop(ours.acquire("order:7").await.unwrap());
        assert_eq!(servers.log().max_together("order:7"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_majority_means_no_quorum_until_it_returns() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    servers.nodes().take(2).for_each(|server| server.down());
    let error = ours.try_acquire("order:7").await.unwrap_err();
    assert!(matches!(&error, LockError::NoQuorum { .. }), "{error}");
    assert!(error.to_string().contains("test-1:6379: not connected: the test has taken it down"), "{error}");
    let (guard, ()) = tokio::join!(ours.acquire(LockRequest::new("order:7").wait(Wait::Forever)), async {
        sleep(30 * SECOND).await;
        servers.nodes().for_each(|server| server.up());
    });
    assert!(guard.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn refusals_are_classified_by_their_text() {
    let servers = TestServers::new(1);
    let ours = servers.manager();
    servers.node(0).refuse("NOPERM this user has no permissions to run the 'evalsha' command");
    assert!(matches!(ours.try_acquire("order:7").await.unwrap_err(), LockError::Refused { .. }));
    servers.node(0).refuse("LOADING Redis is loading the dataset in memory");
    assert!(matches!(ours.try_acquire("order:7").await.unwrap_err(), LockError::NoQuorum { .. }));
    servers.node(0).up();
    drop(ours.try_acquire("order:7").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn lock_is_lost_if_servers_are_down_longer_than_the_lease() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    let body = ours.with_lock("order:7", async |_| {
        sleep(HOUR).await;
        Ok::<_, LockError>(())
    });
    let begun = Instant::now();
    let (stopped, ()) = tokio::join!(body, async {
        sleep(SECOND).await;
        servers.nodes().for_each(|server| server.down());
    });
    let error = stopped.unwrap_err();
    assert!(matches!(error, LockError::Lost { cause: LossCause::NotRenewed { .. }, .. }), "{error}");
    assert!(begun.elapsed() <= 31 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn lost_key_stops_the_body() {
    for count in [1, 3] {
        let servers = TestServers::new(count);
        let ours = servers.manager();
        let body = ours.with_lock(LockRequest::new("order:7").ttl(30 * SECOND), async |_| {
            sleep(HOUR).await;
            Ok::<_, LockError>(())
        });
        let begun = Instant::now();
        let (stopped, ()) = tokio::join!(body, async {
            sleep(SECOND).await;
            servers.lose("order:7");
        });
        let error = stopped.unwrap_err();
        assert!(matches!(error, LockError::Lost { cause: LossCause::Taken, .. }), "{error}");
        assert!(begun.elapsed() < 5 * SECOND, "it is told at once: {:?}", begun.elapsed());
        assert_eq!(servers.log().lost(), ["order:7"]);
    }
}

#[tokio::test(start_paused = true)]
async fn expired_lease_goes_to_the_next_waiter() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    servers.hold("order:7").await;
    let (guard, ()) = tokio::join!(ours.acquire("order:7"), async {
        sleep(SECOND).await;
        servers.expire("order:7");
    });
    assert!(guard.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn restarted_majority_does_not_grant_a_held_lock() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let _guard = ours.acquire(LockRequest::new("order:7").without_renewal()).await.unwrap();
    assert!(theirs.try_acquire("order:7").await.unwrap_err().is_contended());
    servers.nodes().for_each(|server| server.forget());
    let error = theirs.try_acquire("order:7").await.unwrap_err();
    assert!(matches!(error, LockError::NoQuorum { .. }), "{error}");
    sleep(61 * SECOND).await;
    drop(theirs.try_acquire("order:7").await.unwrap());

    // A single server is trusted after a restart.
    let servers = TestServers::new(1);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let _guard = ours.acquire("order:7").await.unwrap();
    servers.node(0).forget();
    drop(theirs.try_acquire("order:7").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn slow_servers_delay_acquire_and_release() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    servers.nodes().for_each(|server| server.slow(Duration::from_millis(40)));
    let begun = Instant::now();
    let guard = ours.acquire("order:7").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(40));
    let begun = Instant::now();
    guard.release().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(40));
}

#[tokio::test(start_paused = true)]
async fn frozen_server_executes_pending_commands_later() {
    let servers = TestServers::new(1);
    let ours = servers.manager();
    let guard = ours.acquire("order:7").await.unwrap();
    servers.node(0).freeze();
    drop(guard);
    assert!(matches!(ours.try_acquire("stock:7").await.unwrap_err(), LockError::NoQuorum { .. }));
    servers.node(0).up();
    drop(servers.manager().acquire("order:7").await.unwrap());
    assert!(ours.shutdown().await);
}

#[tokio::test(start_paused = true)]
async fn new_manager_sees_the_current_server_faults() {
    let servers = TestServers::new(3);
    servers.nodes().for_each(|server| server.down());
    let late = servers.manager();
    assert!(matches!(late.try_acquire("order:7").await.unwrap_err(), LockError::NoQuorum { .. }));
    assert!(late.ready().await.is_err());
    servers.nodes().for_each(|server| server.up());
    late.ready().await.unwrap();
    drop(late.try_acquire("order:7").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn dropped_managers_leave_no_tasks() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let guard = ours.acquire("order:7").await.unwrap();
    assert!(theirs.acquire(LockRequest::new("order:7").wait(SECOND)).await.is_err());
    drop((guard, ours, theirs));
    sleep(10 * SECOND).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "\"order:8\" is not locked")]
async fn losing_a_free_key_panics() {
    let servers = TestServers::new(1);
    servers.hold("order:7").await;
    servers.lose("order:8");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "`hold` cannot acquire the lock: \"order:7\" is held by another owner")]
async fn holding_a_locked_key_panics() {
    let servers = TestServers::new(1);
    let _guard = servers.manager().acquire("order:7").await.unwrap();
    servers.hold("order:7").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "\"order:7\" was locked for [30s], and never for 31s")]
async fn failed_assertion_shows_the_locked_ttl() {
    let servers = TestServers::new(1);
    drop(servers.manager().acquire("order:7").await.unwrap());
    redlock_runtime::assert_locked!(servers.log(), "order:7", ttl = 31s);
}

#[tokio::test(start_paused = true)]
async fn cut_off_affects_only_one_manager() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let body = ours.with_lock("order:7", async |_| {
        sleep(HOUR).await;
        Ok::<_, LockError>(())
    });
    let (stopped, ()) = tokio::join!(body, async {
        sleep(SECOND).await;
        servers.cut_off(&ours);
        servers.cut_off(&ours);
        let error = ours.try_acquire("stock:7").await.unwrap_err();
        assert!(error.to_string().contains("not connected: the test has cut the manager off"), "{error}");
        // The other manager works meanwhile. It gets the lock when the lease ends, which cannot be renewed.
        drop(theirs.try_acquire("stock:7").await.unwrap());
        let guard = theirs.acquire(LockRequest::new("order:7").wait(60 * SECOND)).await.unwrap();
        assert!(guard.is_held());
    });
    let error = stopped.unwrap_err();
    assert!(matches!(error, LockError::Lost { cause: LossCause::NotRenewed { .. }, .. }), "{error}");
    assert_eq!(servers.log().max_together("order:7"), 1, "{}", servers.log());
    servers.reconnect(&ours);
    drop(ours.try_acquire("order:7").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn reconnected_manager_reaches_only_running_servers() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    servers.cut_off(&ours);
    servers.node(0).down();
    servers.nodes().skip(1).for_each(|server| server.up());
    assert!(ours.try_acquire("order:7").await.is_err(), "servers that are up do not end it");
    servers.reconnect(&ours);
    drop(ours.try_acquire("order:7").await.unwrap());
    servers.node(1).down();
    assert!(ours.try_acquire("order:7").await.is_err(), "the first one is still down");
    servers.node(0).up();
    drop(ours.try_acquire("order:7").await.unwrap());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the manager has other servers than these")]
async fn cut_off_rejects_a_manager_of_other_servers() {
    TestServers::new(1).cut_off(&TestServers::new(1).manager());
}

#[tokio::test(start_paused = true)]
async fn faulty_server_answers_no_other_command() {
    let troubles: [fn(&redlock_runtime::testing::TestServer); 3] = [
        |server| server.down(),
        |server| server.freeze(),
        |server| server.refuse("LOADING Redis is loading the dataset in memory"),
    ];
    for (number, trouble) in troubles.iter().enumerate() {
        let servers = TestServers::new(1);
        let (ours, theirs) = (servers.manager(), servers.manager());
        let _guard = ours.acquire("order:7").await.unwrap();
        assert!(theirs.inspect("order:7").await.holder().is_some());
        trouble(&servers.node(0));
        let inspection = theirs.inspect("order:7").await;
        assert!(inspection.nodes[0].error.is_some(), "trouble {number}: {inspection}");
        assert!(theirs.ready().await.is_err(), "trouble {number}");
        let job = LockRequest::new("report").once_per(60 * SECOND);
        let error = theirs.acquire(job).await.unwrap_err();
        assert!(error.to_string().contains("report"), "trouble {number}: {error}");
        assert!(!error.to_string().contains("report@"), "trouble {number}: the time is not known: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusing_server_delivers_no_messages() {
    let servers = TestServers::new(1);
    let (ours, theirs) = (servers.manager(), servers.manager());
    ours.ready().await.unwrap();
    let body = ours.with_lock("order:7", async |_| {
        sleep(20 * SECOND).await;
        Ok::<_, LockError>(())
    });
    let (done, has_stopped) = tokio::join!(body, async {
        sleep(SECOND).await;
        let token = ours.held_locks()[0].token;
        servers.node(0).refuse("LOADING Redis is loading the dataset in memory");
        let report = theirs.break_lock("order:7", token).await;
        servers.node(0).up();
        report.holder_stopped
    });
    assert!(!has_stopped);
    done.unwrap();
}

#[tokio::test(start_paused = true)]
async fn slow_server_delays_inspection() {
    let servers = TestServers::new(1);
    let ours = servers.manager();
    servers.node(0).slow(Duration::from_millis(300));
    let begun = Instant::now();
    let inspection = ours.inspect("order:7").await;
    assert!(inspection.nodes[0].error.is_none(), "{inspection}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn restart_of_a_server_ends_its_faults() {
    let servers = TestServers::new(1);
    let ours = servers.manager();
    let server = servers.node(0);
    server.refuse("LOADING Redis is loading the dataset in memory");
    server.forget();
    drop(ours.try_acquire("order:7").await.unwrap());
    server.freeze();
    server.slow(HOUR);
    server.forget();
    let begun = Instant::now();
    drop(ours.try_acquire("order:7").await.unwrap());
    assert!(begun.elapsed() < SECOND);
    server.down();
    server.forget();
    assert!(ours.try_acquire("order:7").await.is_err(), "it stays down");
}
