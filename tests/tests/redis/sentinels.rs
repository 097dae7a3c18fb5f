//! A master with replicas under the watch of Sentinels: the server that takes locks, and the fate of held locks.
//!
//! The tests cover the rows of the section "What survives a failover" of the page "Sentinel" of the guide.

use crate::clusters::forged::answer_of_master;
use crate::refusals::{WRONG_PASSWORD, assert_retried_seldom};
use crate::support::{builder, causes};
use redlock_runtime::tuning::AfterRestart;
use redlock_runtime::{Credentials, LockError, LockGuard, LockManager, LockRequest, NodeConfig, NodeError, Wait};
use redlock_tests::{FakeServer, MASTER, Nodes, PATIENCE, Proxy, RedisServer, Watched, eventually, eventually_eq};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const KEY: &str = "order:7";

/// Longer than any wait here: no lease ends by itself.
const TTL: Duration = Duration::from_secs(600);

async fn manager_of(url: impl Into<NodeConfig>) -> LockManager {
    let manager = builder([url.into()]).default_ttl(TTL).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

async fn two_of(watched: &Watched) -> [LockManager; 2] {
    [manager_of(watched.url()).await, manager_of(watched.url()).await]
}

async fn value(server: &RedisServer) -> Option<String> {
    server.inspect().get(KEY).await
}

/// Waits until `manager` acquires its locks at the present master, `server`. The previous master may serve it for a while.
async fn back(manager: &LockManager, server: &RedisServer) {
    // Uses a new key for each try: a key from the previous master, even a released one, may have been replicated.
    let tries = AtomicUsize::new(0);
    eventually(PATIENCE, "it is back", async || {
        let key = format!("warm-up:{}", tries.fetch_add(1, Ordering::Relaxed));
        let guard = manager.try_acquire(&*key).await.map_err(|error| error.to_string())?;
        let at_server = server.inspect().get(&key).await;
        let is_there = at_server.as_deref() == Some(guard.token().as_str());
        guard.release().await.map_err(|error| error.to_string())?;
        if is_there { Ok(()) } else { Err(format!("{at_server:?}")) }
    })
    .await;
}

/// Closes all managers, and checks that `server` is empty. Ignores the tries at the previous master.
async fn assert_nothing_left(managers: &[LockManager], server: &RedisServer) {
    for manager in managers {
        assert!(manager.shutdown().await, "a release was not answered: {:?}", manager.stats().releases);
    }
    let mut left = server.inspect().contents().await;
    left.retain(|key, _| !key.contains("warm-up"));
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[tokio::test]
async fn master_is_found_with_one_sentinel_down() {
    let watched = Watched::start(1).await;
    watched.sentinel(0).kill();
    let manager = manager_of(watched.url()).await;
    let held = manager.acquire(KEY).await.unwrap();
    assert_eq!(value(watched.server(0)).await.as_deref(), Some(held.token().as_str()));
    held.release().await.unwrap();
    assert_nothing_left(&[manager], watched.server(0)).await;
}

#[tokio::test]
async fn one_sentinel_url_discovers_the_other_sentinels() {
    let watched = Watched::start(1).await;
    let manager = manager_of(watched.url_of_one(2)).await;
    watched.sentinel(2).kill();
    let master = watched.fail_over(0).await;
    back(&manager, watched.server(master)).await;
    let held = manager.acquire(KEY).await.unwrap();
    assert_eq!(value(watched.server(master)).await.as_deref(), Some(held.token().as_str()));
    held.release().await.unwrap();
    assert_nothing_left(&[manager], watched.server(master)).await;
}

/// Holds a lock with a waiter in another process, and runs `fail`. Checks that both survive at the new master.
async fn goes_on_over_a_failover(watched: &Watched, fail: impl AsyncFnOnce() -> usize) {
    let [ours, theirs] = two_of(watched).await;
    let held = ours.acquire(KEY).await.unwrap();
    let waiting = tokio::spawn({
        let theirs = theirs.clone();
        async move { theirs.acquire(LockRequest::new(KEY).wait(Wait::Forever)).await }
    });
    watched.wait_until_replicated(0, 1).await;
    let master = fail().await;
    for manager in [&ours, &theirs] {
        back(manager, watched.server(master)).await;
    }
    held.ensure_held().unwrap();
    held.extend().await.unwrap();
    let at_master = value(watched.server(master)).await.unwrap_or_default();
    assert_eq!(at_master.trim_end_matches('+'), held.token().as_str());
    assert!(!waiting.is_finished(), "{:?}", waiting.await);
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&[ours, theirs], watched.server(master)).await;
}

#[tokio::test]
async fn holder_and_waiter_survive_a_failover_by_command() {
    let watched = Watched::start(1).await;
    goes_on_over_a_failover(&watched, async || watched.fail_over(0).await).await;
}

#[tokio::test]
async fn holder_and_waiter_survive_the_death_of_the_master() {
    let watched = Watched::start(1).await;
    let kill = async || {
        watched.server(0).kill();
        watched.replaced(0).await
    };
    goes_on_over_a_failover(&watched, kill).await;
}

/// The connection to a frozen master does not break: the manager leaves it because of the Sentinels.
#[tokio::test]
async fn frozen_master_is_abandoned_after_a_sentinel_failover() {
    let watched = Watched::start(1).await;
    let freeze = async || {
        watched.server(0).freeze();
        watched.replaced(0).await
    };
    goes_on_over_a_failover(&watched, freeze).await;
    watched.server(0).thaw();
}

/// Returns `true` if a manager is connected to the `server`.
async fn has_manager(server: &RedisServer) -> bool {
    let clients: String = server.inspect().command(&["CLIENT", "LIST"]).await;
    clients.contains("name=redlock-")
}

#[tokio::test]
async fn idle_manager_follows_the_master() {
    let watched = Watched::start(1).await;
    let manager = manager_of(watched.url()).await;
    let (first, second) = (watched.server(0), watched.server(1));
    first.freeze();
    watched.replaced(0).await;
    eventually(PATIENCE, "it is connected", async || if has_manager(second).await { Ok(()) } else { Err(()) }).await;
    first.thaw();
    back(&manager, second).await;
    watched.fail_over(1).await;
    back(&manager, first).await;
    assert_nothing_left(&[manager], first).await;
}

/// A Sentinel sends nothing while nothing happens, so only a `PING` shows that the connection is dead.
#[tokio::test]
async fn dead_sentinel_connection_is_replaced() {
    let watched = Watched::start(1).await;
    let mut proxies = Vec::new();
    for index in 0..3 {
        proxies.push(Proxy::to(watched.sentinel(index)).await);
    }
    let addresses: Vec<_> = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
    let url = format!("redis+sentinel://{}/{MASTER}?sentinel={}&sentinel={}", addresses[0], addresses[1], addresses[2]);
    let manager = manager_of(url).await;
    let subscribers = async |count: usize| {
        for index in 0..3 {
            eventually_eq(PATIENCE, "it is subscribed", count, async || {
                let clients = watched.sentinel(index).inspect().clients().await;
                clients.iter().filter(|client| client.contains(" sub=1 ")).count()
            })
            .await;
        }
    };
    subscribers(1).await;
    proxies.iter().for_each(Proxy::forget);
    // A Sentinel does not know that the first connection is dead.
    subscribers(2).await;
    let master = watched.fail_over(0).await;
    back(&manager, watched.server(master)).await;
    assert_nothing_left(&[manager], watched.server(master)).await;
}

/// Disconnects the replica from its master: later writes do not reach it.
async fn cut_off_replica(watched: &Watched) {
    let replica = watched.server(1).inspect();
    replica.command::<()>(&["CONFIG", "SET", "masterauth", "wrong"]).await;
    let master = watched.server(0).inspect();
    master.command::<usize>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    eventually(PATIENCE, "the replica is cut off", async || {
        match replica.info("replication", "master_link_status").await.as_deref() {
            Some("down") => Ok(()),
            other => Err(other.map(str::to_owned)),
        }
    })
    .await;
}

#[tokio::test]
async fn body_is_stopped_if_its_lock_was_not_replicated_before_a_failover() {
    let watched = Watched::start(1).await;
    let [ours, theirs] = two_of(&watched).await;
    cut_off_replica(&watched).await;
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        watched.server(0).kill();
        pending().await
    };
    let ended = timeout(4 * PATIENCE, ours.with_lock(KEY, body)).await;
    assert!(matches!(ended, Ok(Err(LockError::Lost { .. }))), "{ended:?}");
    back(&theirs, watched.server(1)).await;
    theirs.acquire(KEY).await.unwrap().release().await.unwrap();
    assert_nothing_left(&[ours, theirs], watched.server(1)).await;
}

#[tokio::test]
async fn promoted_master_abstains_for_max_ttl_if_configured() {
    let watched = Watched::start(1).await;
    let longest = Duration::from_secs(6);
    let careful = builder([watched.url()])
        .tuning(|tuning| tuning.after_restart(AfterRestart::Abstain))
        .default_ttl(longest)
        .tuning(|tuning| tuning.max_ttl(longest))
        .build()
        .unwrap();
    careful.ready().await.unwrap();
    careful.acquire(KEY).await.unwrap().release().await.unwrap();
    watched.fail_over(0).await;
    let abstains = eventually(PATIENCE, "the new master abstains", async || match careful.try_acquire(KEY).await {
        Err(error) if matches!(causes(&error)[..], [(_, NodeError::RecentlyRestarted(_))]) => Ok(error),
        other => Err(format!("{other:?}")),
    });
    assert!(abstains.await.to_string().contains("restarted or replaced"));
    back(&careful, watched.server(1)).await;
    assert_nothing_left(&[careful], watched.server(1)).await;
}

/// The manager has met none of the servers, and all servers have been running for longer than any lease.
#[tokio::test]
async fn promoted_master_abstains_in_a_quorum_for_a_new_manager() {
    let nodes = Nodes::start(2).await;
    let watched = Watched::start(1).await;
    let longest = Duration::from_secs(12);
    eventually(2 * PATIENCE, "no server is young", async || {
        let uptime = watched.server(1).inspect().info("server", "uptime_in_seconds").await;
        let seconds: u64 = uptime.as_deref().unwrap_or_default().parse().unwrap_or(0);
        if Duration::from_secs(seconds) > longest + Duration::from_secs(2) { Ok(()) } else { Err(seconds) }
    })
    .await;
    watched.fail_over(0).await;
    nodes[0].kill();
    let late = builder(nodes.urls().into_iter().chain([watched.url()]))
        .default_ttl(longest)
        .tuning(|tuning| tuning.max_ttl(longest));
    let late = late.build().unwrap();
    eventually(PATIENCE, "the new master abstains", async || match late.try_acquire(KEY).await {
        Err(error) if abstains(&error) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test]
async fn replica_url_takes_no_locks() {
    let watched = Watched::start(1).await;
    let replica = builder([confirmed_by(watched.server(1).url(), 1)]).build().unwrap();
    eventually(PATIENCE, "it is known for a replica", async || match replica.try_acquire(KEY).await {
        Err(error) if matches!(causes(&error)[..], [(_, NodeError::Replica)]) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test]
async fn master_with_too_few_replicas_takes_no_locks_and_check_reports_it() {
    let needs_replicas = |server: redlock_tests::Builder| {
        server.config("min-replicas-to-write", &["1"]).config("min-replicas-max-lag", &["1"])
    };
    let watched = Watched::start_with(1, needs_replicas, |sentinel| sentinel).await;
    let manager = manager_of(watched.url()).await;
    watched.server(1).freeze();
    let refusal = eventually(PATIENCE, "the master is alone", async || match manager.try_acquire(KEY).await {
        Err(error) => Ok(error),
        Ok(guard) => Err(guard.release().await),
    });
    assert!(refusal.await.to_string().contains("NOREPLICAS"));
    let report = manager.check().await;
    assert!(report.to_string().contains("NOREPLICAS"), "{report}");
    watched.server(1).thaw();
    back(&manager, watched.server(0)).await;
}

#[tokio::test]
async fn sentinel_misconfigurations_are_reported() {
    let watched = Watched::start_with(1, |server| server, |sentinel| sentinel.password("secret")).await;
    let error = async |node: NodeConfig| {
        let manager = builder([node]).build().unwrap();
        eventually(PATIENCE, "the reason is known", async || {
            let error = manager.try_acquire(KEY).await.unwrap_err().to_string();
            if error.contains("first connection is being made") { Err(error) } else { Ok(error) }
        })
        .await
    };
    let url = watched.url_of_one(0);
    let secret = || Credentials::password("secret");
    let table = [
        (NodeConfig::new(&url), "NOAUTH"),
        (NodeConfig::new(&url), "failed: set the login of the Sentinels by `sentinel_credentials`"),
        (NodeConfig::new(&url).sentinel_credentials(Credentials::password("wrong")), "WRONGPASS"),
        (
            NodeConfig::new(&url).sentinel_credentials(Credentials::password("wrong")),
            "failed: set the login of the Sentinels by `sentinel_credentials`",
        ),
        (
            NodeConfig::new(url.replace("/orders", "/order")).sentinel_credentials(secret()),
            "no master called \"order\"",
        ),
        (NodeConfig::new(watched.server(0).url().replace("redis://", "redis+sentinel://") + "orders"), "retries fail"),
    ];
    for (node, expected) in table {
        let error = error(node).await;
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
}

fn confirmed_by(url: impl Into<String>, replicas: u32) -> NodeConfig {
    NodeConfig::new(url).confirm_replicas(replicas)
}

#[tokio::test]
async fn lock_with_replica_confirmation_is_replicated_before_the_body_starts() {
    let watched = Watched::start(1).await;
    let (ours, theirs) = (manager_of(confirmed_by(watched.url(), 1)).await, manager_of(watched.url()).await);
    watched.server(1).freeze();
    let taking = tokio::spawn({
        let ours = ours.clone();
        async move { ours.acquire("order:8").await }
    });
    eventually(PATIENCE, "the master has it", async || watched.server(0).inspect().get("order:8").await.ok_or(()))
        .await;
    for _ in 0..3 {
        watched.server(0).inspect().command::<()>(&["PING"]).await;
    }
    assert!(!taking.is_finished(), "the replica has not got it");
    watched.server(1).thaw();
    taking.await.unwrap().unwrap().release().await.unwrap();
    for _ in 0..20 {
        let waiting = {
            let held = theirs.acquire(KEY).await.unwrap();
            let ours = ours.clone();
            let waiting = tokio::spawn(async move { ours.acquire(LockRequest::new(KEY).wait(Wait::Forever)).await });
            eventually(PATIENCE, "it waits", async || {
                let queued: usize = watched.server(0).inspect().command(&["ZCARD", &format!("{{{KEY}}}:q")]).await;
                if queued > 0 { Ok(()) } else { Err(()) }
            })
            .await;
            held.release().await.unwrap();
            waiting
        };
        let held = waiting.await.unwrap().unwrap();
        let at_replica = value(watched.server(1)).await.unwrap_or_default();
        assert_eq!(at_replica.trim_end_matches('+'), held.token().as_str(), "handed over");
        held.release().await.unwrap();
        let held = ours.acquire("order:8").await.unwrap();
        let at_replica = watched.server(1).inspect().get("order:8").await;
        assert_eq!(at_replica.as_deref(), Some(held.token().as_str()), "taken");
        held.release().await.unwrap();
    }
    assert_nothing_left(&[ours, theirs], watched.server(0)).await;
}

#[tokio::test]
async fn lock_without_replica_confirmation_fails_and_is_released() {
    let watched = Watched::start(1).await;
    let manager = manager_of(confirmed_by(watched.url(), 1)).await;
    let held = manager.acquire(KEY).await.unwrap();
    let kept = manager.acquire(LockRequest::new("order:9").min_hold(TTL)).await.unwrap();
    cut_off_replica(&watched).await;
    let error = manager.try_acquire("order:8").await.unwrap_err();
    assert!(matches!(causes(&error)[..], [(_, NodeError::NotReplicated { acked: 0, wanted: 1 })]), "{error:?}");
    let error = held.extend().await.unwrap_err();
    assert!(error.to_string().contains("0 of the 1 replicas"), "{error}");
    assert!(held.is_held(), "the lease before was confirmed");
    held.release().await.unwrap();
    drop(kept);
    // More commands than one batch contains: each must get its own answer.
    let tries = (0..32).map(|i| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.try_acquire(format!("try:{i}")).await.unwrap_err() })
    });
    for error in all(tries).await {
        assert!(matches!(causes(&error)[..], [(_, NodeError::NotReplicated { .. })]), "{error:?}");
    }
    let report = manager.shutdown().await;
    assert!(report, "all was given back");
    let left = watched.server(0).inspect().keys().await;
    assert_eq!(left, ["order:9"], "the one that is kept");
}

/// Returns the results of the `tasks`.
async fn all<T: Send + 'static>(tasks: impl Iterator<Item = tokio::task::JoinHandle<T>>) -> Vec<T> {
    let tasks: Vec<_> = tasks.collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

#[tokio::test]
async fn missing_wait_permission_is_reported_with_the_remedy() {
    let server = RedisServer::builder().user("orders", "secret", "~* &* +@all -wait").start().await;
    let manager = builder([confirmed_by(server.url(), 1)]).build().unwrap();
    let error = eventually(PATIENCE, "it is refused", async || {
        let error = manager.try_acquire(KEY).await.unwrap_err().to_string();
        if error.contains("NOPERM") { Ok(error) } else { Err(error) }
    })
    .await;
    assert!(error.contains("wait"), "{error}");
    let error = manager.ready().await.unwrap_err().to_string();
    assert!(error.contains("+wait"), "{error}");
}

#[tokio::test]
async fn promoted_master_abstains_in_a_quorum() {
    let (watched, nodes) = (Watched::start(1).await, Nodes::start(2).await);
    let longest = Duration::from_secs(6);
    let urls = nodes.urls().into_iter().chain([watched.url()]);
    let manager = builder(urls).default_ttl(longest).tuning(|tuning| tuning.max_ttl(longest)).build().unwrap();
    eventually(PATIENCE, "every node counts", async || {
        let report = manager.check().await;
        if report.nodes.iter().all(|node| node.error.is_none()) { Ok(()) } else { Err(report.to_string()) }
    })
    .await;
    nodes[0].kill();
    let held = manager.acquire(KEY).await.unwrap();
    watched.fail_over(0).await;
    // A lock from before may be missing there, so the new master must abstain.
    let error = eventually(PATIENCE, "the new master abstains", async || {
        let error = manager.try_acquire("order:8").await.map(drop).map_err(|error| (abstains(&error), error));
        match error {
            Err((true, error)) => Ok(error),
            other => Err(format!("{other:?}")),
        }
    });
    assert!(matches!(error.await, LockError::NoQuorum { .. }));
    assert!(held.is_held(), "its lease had been proven before");
    eventually(2 * PATIENCE, "it counts again", async || {
        manager.with_lock("order:8", async |_| Ok::<_, LockError>(())).await
    })
    .await;
}

/// Returns `true` if a needed node may have forgotten locks.
fn abstains(error: &LockError) -> bool {
    matches!(error, LockError::NoQuorum { .. })
        && causes(error).iter().any(|(_, cause)| matches!(cause, NodeError::RecentlyRestarted(_)))
}

/// Starts servers with the password `secret`, also between each other, and Sentinels without a password, as is usual.
async fn with_password() -> Watched {
    let configure = |server: redlock_tests::Builder| server.password("secret").config("masterauth", &["secret"]);
    Watched::start_with(1, configure, |sentinel| sentinel).await
}

/// Starts a Sentinel that names the `master` with an epoch above all others, and `others` as further Sentinels.
async fn lying_sentinel(master: u16, others: &[u16]) -> FakeServer {
    let others = others.to_vec();
    FakeServer::start(move |command| {
        answer_of_sentinel(command, master, &others).unwrap_or_else(|| "+OK\r\n".to_owned())
    })
    .await
}

/// Returns the answer to a command for Sentinels.
pub(crate) fn answer_of_sentinel(command: &str, master: u16, others: &[u16]) -> Option<String> {
    let pairs = |pairs: &[&str]| {
        let texts: Vec<_> = pairs.iter().map(|text| format!("${}\r\n{text}\r\n", text.len())).collect();
        let texts = texts.concat();
        format!("*{}\r\n{texts}", pairs.len())
    };
    let port = master.to_string();
    let address = pairs(&["127.0.0.1", &port]);
    let epoch = (1_u64 << 62).to_string();
    let state = pairs(&["ip", "127.0.0.1", "port", &port, "config-epoch", &epoch, "role-reported-time", "9000000000"]);
    let others: Vec<_> =
        others.iter().map(|port| pairs(&["ip", "127.0.0.1", "port", &port.to_string(), "runid", "x"])).collect();
    let others = format!("*{}\r\n{}", others.len(), others.concat());
    match command.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["SENTINEL", "GET-MASTER-ADDR-BY-NAME"] => Some(address),
        ["SENTINEL", "MASTER"] => Some(state),
        ["SENTINEL", "SENTINELS"] => Some(others),
        ["SUBSCRIBE", "+switch-master"] => Some("*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned()),
        _ => None,
    }
}

/// Starts a Sentinel that is the master as well, and refuses some commands: those that begin with `refused`, once `is_refusing` is set.
async fn refusing_sentinel(refused: &'static str, is_refusing: &Arc<AtomicBool>) -> FakeServer {
    let (is_refusing, port) = (Arc::clone(is_refusing), Arc::new(AtomicU16::new(0)));
    let sentinel = FakeServer::start({
        let port = Arc::clone(&port);
        move |command| {
            let is_refused = command.starts_with(refused) && is_refusing.load(Ordering::Relaxed);
            let answer = || answer_of_sentinel(command, port.load(Ordering::Relaxed), &[]);
            if is_refused { WRONG_PASSWORD.to_owned() } else { answer().unwrap_or_else(|| answer_of_master(command)) }
        }
    })
    .await;
    port.store(sentinel.port(), Ordering::Relaxed);
    sentinel
}

#[tokio::test]
async fn sentinel_that_refuses_after_a_while_is_asked_seldom() {
    for refused in ["SENTINEL", "SUBSCRIBE"] {
        let is_refusing = Arc::new(AtomicBool::new(false));
        let sentinel = refusing_sentinel(refused, &is_refusing).await;
        let manager = builder([format!("redis+sentinel://127.0.0.1:{}/{MASTER}", sentinel.port())]).build().unwrap();
        let asked = |what: &str| sentinel.received().iter().filter(|command| command.starts_with(what)).count();
        eventually(PATIENCE, "it is connected and subscribed", async || {
            let is_ready = manager.stats().nodes[0].is_up && asked("SUBSCRIBE") > 0;
            if is_ready { Ok(()) } else { Err(sentinel.received()) }
        })
        .await;
        let (start, before) = (Instant::now(), asked(refused));
        is_refusing.store(true, Ordering::Relaxed);
        sentinel.disconnect();
        assert_retried_seldom(refused, start, || asked(refused) - before).await;
    }
}

/// Starts the server that a lying Sentinel names as the master.
async fn false_master() -> FakeServer {
    FakeServer::start(|_| "+OK\r\n".to_owned()).await
}

/// Waits until the manager has asked the Sentinel again after the connection.
async fn wait_until_asked(sentinel: &FakeServer) {
    let asked = || sentinel.received().iter().filter(|command| command.starts_with("SENTINEL MASTER")).count();
    eventually(PATIENCE, "the Sentinel is asked", async || if asked() >= 2 { Ok(()) } else { Err(asked()) }).await;
}

#[tokio::test]
async fn one_lying_sentinel_of_three_cannot_redirect_the_login() {
    let watched = with_password().await;
    let stranger = false_master().await;
    let accomplice = lying_sentinel(stranger.port(), &[]).await;
    let liar = lying_sentinel(stranger.port(), &[accomplice.port(), stranger.port()]).await;
    // In each position of the URL.
    let [one, two] = [0, 1].map(|index| format!("127.0.0.1:{}", watched.sentinel(index).port()));
    let false_one = format!("127.0.0.1:{}", liar.port());
    for [first, second, third] in [[&false_one, &one, &two], [&one, &false_one, &two], [&one, &two, &false_one]] {
        let url = format!("redis+sentinel://:secret@{first}/{MASTER}?sentinel={second}&sentinel={third}");
        let manager = manager_of(url).await;
        let held = manager.acquire(KEY).await.unwrap();
        assert_eq!(value(watched.server(0)).await.as_deref(), Some(held.token().as_str()));
        wait_until_asked(&liar).await;
        held.release().await.unwrap();
        assert!(manager.shutdown().await);
    }
    assert!(stranger.received().is_empty(), "the false master");
    assert!(accomplice.received().is_empty(), "a Sentinel that the liar has listed");
}

#[tokio::test]
async fn failover_is_followed_despite_a_lying_sentinel() {
    let watched = with_password().await;
    let stranger = false_master().await;
    let liar = lying_sentinel(stranger.port(), &[]).await;
    let [one, two] = [0, 1].map(|index| format!("127.0.0.1:{}", watched.sentinel(index).port()));
    let manager = manager_of(format!(
        "redis+sentinel://:secret@127.0.0.1:{}/{MASTER}?sentinel={one}&sentinel={two}",
        liar.port()
    ))
    .await;
    let held = manager.acquire(KEY).await.unwrap();
    watched.wait_until_replicated(0, 1).await;
    let master = watched.fail_over(0).await;
    back(&manager, watched.server(master)).await;
    held.extend().await.unwrap();
    held.release().await.unwrap();
    assert_nothing_left(&[manager], watched.server(master)).await;
    assert!(stranger.received().is_empty());
}

#[tokio::test]
async fn single_answer_of_several_sentinels_is_not_trusted() {
    let watched = with_password().await;
    let stranger = false_master().await;
    let liar = lying_sentinel(stranger.port(), &[]).await;
    let gone = FakeServer::start(|_| String::new()).await.port();
    let url = format!("redis+sentinel://:secret@127.0.0.1:{}/{MASTER}?sentinel=127.0.0.1:{gone}", liar.port());
    let manager = builder([url]).default_ttl(TTL).build().unwrap();
    eventually(PATIENCE, "the reason is known", async || {
        let error = manager.try_acquire(KEY).await.unwrap_err().to_string();
        if error.contains("1 of 2 Sentinels answered, and fewer than 2 name the same master") {
            Ok(())
        } else {
            Err(error)
        }
    })
    .await;
    assert!(stranger.received().is_empty());
    // A single Sentinel in the URL is trusted while the listed other Sentinels are unreachable.
    let only = lying_sentinel(watched.server(0).port(), &[gone, gone + 1]).await;
    let url = format!("redis+sentinel://:secret@127.0.0.1:{}/{MASTER}", only.port());
    let manager = manager_of(url).await;
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
    assert_nothing_left(&[manager], watched.server(0)).await;
}

#[tokio::test]
async fn last_master_is_used_while_only_one_sentinel_of_several_answers() {
    let watched = Watched::start(1).await;
    let manager = manager_of(watched.url()).await;
    for sentinel in 1..3 {
        watched.sentinel(sentinel).kill();
    }
    watched.server(0).inspect().command::<usize>(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    back(&manager, watched.server(0)).await;
    assert_nothing_left(&[manager], watched.server(0)).await;
}
