//! Permanent refusals: waiting does not help, so they have a separate error class, and no call waits for ever.

use crate::support::{builder, causes, connected};
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use redlock_tests::{Builder, FakeServer, Nodes, PATIENCE, RedisServer, eventually};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

const KEY: &str = "order:7";
/// Waits of the four calls of [`outcomes`]: one does not wait, and two wait for ever.
const WAITS: [Wait; 4] = [Wait::None, Wait::For(Duration::from_secs(60)), Wait::Forever, Wait::Forever];

/// Returns the errors of calls with every kind of wait. Two of the calls are queued for the same key.
async fn outcomes(manager: &LockManager) -> Vec<LockError> {
    let mut calls = JoinSet::new();
    for (i, wait) in WAITS.into_iter().enumerate() {
        let (manager, key) = (manager.clone(), format!("{KEY}{}", "x".repeat(i.min(2))));
        calls.spawn(async move { manager.acquire(LockRequest::new(key).wait(wait)).await.unwrap_err() });
    }
    timeout(PATIENCE, calls.join_all()).await.expect("no call waits for ever")
}

async fn start(size: usize, configure: impl Fn(usize, Builder) -> Builder) -> Nodes {
    Nodes::start_with(size, configure).await
}

/// Configures a user that may acquire locks, and nothing else.
fn half_a_user(builder: Builder) -> Builder {
    builder.password("x").user("alice", "w0nder", "~* +set +script|load")
}

#[tokio::test]
async fn permanent_refusals_end_every_wait_and_are_not_transient() {
    let password = start(1, |_, builder| builder.password("right")).await;
    let permission = start(1, |_, builder| builder.password("x").user("alice", "w0nder", "~other +@all")).await;
    let master = start(1, |_, builder| builder).await;
    let replica = start(1, |_, builder| builder.replica_of(&master[0])).await;
    let wrong_password = format!("redis://:wrong@127.0.0.1:{}", password[0].port());
    for (url, expected) in
        [(wrong_password, "WRONGPASS"), (permission[0].url(), "NOPERM"), (replica[0].url(), "is a replica")]
    {
        let manager = builder([url]).build().unwrap();
        for error in outcomes(&manager).await {
            assert!(matches!(error, LockError::Refused { .. }) && !error.is_transient(), "{expected}: {error:?}");
            assert!(matches!(causes(&error)[..], [(_, cause)] if cause.to_string().contains(expected)), "{error}");
        }
    }
}

#[tokio::test]
async fn missing_queue_permission_is_reported_and_not_contention() {
    let nodes = start(1, |_, builder| half_a_user(builder)).await;
    nodes[0].inspect().command::<()>(&["SET", KEY, "their-token", "PX", "60000"]).await;
    let manager = builder(nodes.urls()).build().unwrap();
    let error =
        timeout(PATIENCE, manager.acquire(LockRequest::new(KEY).wait(Wait::Forever))).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("may not run") && !error.to_string().contains("held"), "{error}");
}

#[tokio::test]
async fn unreachable_majority_is_transient_despite_a_permanent_refusal() {
    let nodes = start(3, |i, builder| if i == 0 { half_a_user(builder) } else { builder }).await;
    let manager = builder(nodes.urls()).node_timeout(Duration::from_secs(1)).build().unwrap();
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "-set"]).await;
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
    nodes[1..].iter().for_each(RedisServer::freeze);
    let error = manager.acquire(KEY).await.unwrap_err();
    nodes[1..].iter().for_each(RedisServer::thaw);
    assert!(matches!(error, LockError::NoQuorum { .. }) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn acquire_works_after_permissions_are_restored() {
    let nodes = start(1, |_, builder| builder.password("x").user("alice", "w0nder", "~* &* +@all")).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    let inspector = nodes[0].inspect();
    inspector.command::<()>(&["ACL", "SETUSER", "alice", "-@all"]).await;
    assert!(!manager.acquire(KEY).await.unwrap_err().is_transient());
    inspector.command::<()>(&["ACL", "SETUSER", "alice", "+@all"]).await;
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn server_at_its_client_limit_is_a_transient_error() {
    let nodes = start(1, |_, builder| builder).await;
    // The test's own connections use up the limit, so the next one is refused.
    let inspector = nodes[0].inspect_database(0);
    inspector.command::<()>(&["CONFIG", "SET", "maxclients", "1"]).await;
    let manager = builder(nodes.urls()).build().unwrap();
    let error = manager.acquire(KEY).await.unwrap_err();
    assert!(error.to_string().contains("max number of clients"), "{error}");
    assert!(error.is_transient(), "{error:?}");
}

/// Error of a server that refuses for ever.
pub(crate) const WRONG_PASSWORD: &str = "-WRONGPASS that user or password is wrong\r\n";

/// Checks that a client pauses for half a second at least after each refusal, except for the first ones. `attempts` returns the number of
/// its attempts since `start`. A manager that connects to a loading server some dozen times meanwhile shows how many
/// there would be otherwise. The limit is a rate, so that a slow machine does not change the result.
pub(crate) async fn assert_retried_seldom(name: &str, start: Instant, attempts: impl Fn() -> usize) {
    /// Attempts before the pauses are long.
    const FIRST: f64 = 12.0;
    let loading = FakeServer::start(|_| "-LOADING Redis is loading the dataset in memory\r\n".to_owned()).await;
    let _manager = builder([loading.url()]).build().unwrap();
    let is_loading = async || if loading.connections() >= 30 { Ok(()) } else { Err(loading.connections()) };
    eventually(PATIENCE, "the server that is loading is asked again and again", is_loading).await;
    let seldom = f64::from(u32::try_from(attempts()).unwrap());
    let limit = FIRST + start.elapsed().as_secs_f64() / 0.5;
    assert!(0.0 < seldom && seldom <= limit, "{name}: {seldom} attempts, at most {limit:.1} are expected");
}

/// Name of a kind of node, its URL, and the error that it replies.
type Refusing = (&'static str, fn(&FakeServer) -> String, &'static str);

#[tokio::test]
async fn refusing_or_full_server_is_retried_seldom() {
    let sentinel = |server: &FakeServer| format!("redis+sentinel://127.0.0.1:{}/orders", server.port());
    let cluster = |server: &FakeServer| format!("redis+cluster://127.0.0.1:{}", server.port());
    let table: [Refusing; 4] = [
        ("a server", FakeServer::url, WRONG_PASSWORD),
        ("a full server", FakeServer::url, "-ERR max number of clients reached\r\n"),
        ("a Sentinel", sentinel, WRONG_PASSWORD),
        ("a cluster", cluster, WRONG_PASSWORD),
    ];
    for (name, url, reply) in table {
        let refusing = FakeServer::start(move |_| reply.to_owned()).await;
        let start = Instant::now();
        let manager = builder([url(&refusing)]).build().unwrap();
        let error = manager.try_acquire(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::NoQuorum { .. } | LockError::Refused { .. }), "{error}");
        assert_retried_seldom(name, start, || refusing.connections()).await;
    }
}

#[tokio::test]
async fn out_of_memory_is_reported_to_a_waiting_call() {
    let nodes = start(1, |_, builder| builder).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    let node = nodes[0].inspect();
    node.command::<()>(&["SET", KEY, "their-token", "PX", "60000"]).await;
    node.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("answered OOM") && !text.contains("held") && !text.contains("script"), "{text}");
    assert!(error.is_transient(), "the memory of others may be freed: {error:?}");
}
