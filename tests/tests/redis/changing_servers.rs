//! Procedures of the section "Changing the list of servers" of the guide. Each step of a procedure runs with old and new processes
//! side by side. A test finds two holders for each change that the page forbids.

use crate::fencing;
use crate::support::{builder, majority, owner_at, warnings};
use redlock_runtime::{LockError, LockGuard, LockManager, LockManagerBuilder, LockRequest};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::time::Duration;
use tokio::sync::oneshot;

const KEY: &str = "order:7";

/// Lease and `max_ttl` of the tests that wait for the end of a lease. Too small: a busy machine loses locks. Too large: the tests take
/// longer.
const TTL: Duration = Duration::from_secs(2);

/// Uptime in seconds, above which a server is older than one that starts now. See `node::abstention` for the limit of 10 s.
const OLD: u64 = 12;

const HALF_HOUR: i64 = 1800;

/// A list of servers, by index.
type List<'a> = &'a [usize];

fn brief(urls: Vec<String>) -> LockManagerBuilder {
    builder(urls).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL)).node_timeout(TTL / 4)
}

/// Returns each choice of a bare majority of `list`.
fn bare_majorities(list: List<'_>) -> Vec<Vec<usize>> {
    let needed = u32::try_from(majority(list.len())).unwrap();
    let choices = (0..1_u32 << list.len()).filter(|choice| choice.count_ones() == needed);
    let chosen = |choice: u32| list.iter().enumerate().filter(move |(bit, _)| choice >> bit & 1 == 1);
    choices.map(|choice| chosen(choice).map(|(_, server)| *server).collect()).collect()
}

/// Returns a process that is connected to a majority of its servers.
async fn started(described: LockManagerBuilder) -> LockManager {
    let manager = described.build().unwrap();
    eventually(PATIENCE, "locks work", async || manager.ready().await.map_err(|error| error.to_string())).await;
    manager
}

/// Returns a process with the servers of `list`, connected to all of them.
async fn process(
    servers: &Nodes,
    list: List<'_>,
    described: impl FnOnce(Vec<String>) -> LockManagerBuilder,
) -> LockManager {
    let manager = described(list.iter().map(|server| servers[*server].url()).collect()).build().unwrap();
    eventually(PATIENCE, "every server of the list votes", async || {
        let guard = manager.acquire("warm-up").await.map_err(|error| error.to_string())?;
        let mut votes = 0;
        for server in list {
            votes +=
                usize::from(owner_at(&servers[*server], "warm-up").await.as_deref() == Some(guard.token().as_str()));
        }
        guard.release().await.map_err(|error| error.to_string())?;
        if votes == list.len() { Ok(()) } else { Err(format!("{votes} votes")) }
    })
    .await;
    manager
}

/// Returns a process that reaches only the servers of `reached`. Each server of `list` is behind its own proxy.
async fn partitioned(
    servers: &Nodes,
    list: List<'_>,
    reached: List<'_>,
    described: impl FnOnce(Vec<String>) -> LockManagerBuilder,
) -> (LockManager, Vec<Proxy>) {
    let mut proxies = Vec::new();
    for server in list {
        let proxy = Proxy::to(&servers[*server]).await;
        proxy.refuse(!reached.contains(server)).await;
        proxies.push(proxy);
    }
    (started(described(proxies.iter().map(Proxy::url).collect())).await, proxies)
}

async fn cut_off(proxies: &[Proxy]) {
    for proxy in proxies {
        proxy.refuse(true).await;
        proxy.cut().await;
    }
}

/// Repeats an attempt until enough servers answer. On a busy machine, an attempt can end before they do.
async fn answered<T>(attempt: impl AsyncFn() -> Result<T, LockError>) -> Result<T, LockError> {
    eventually(PATIENCE, "enough servers answer", async || match attempt().await {
        Err(error) if !error.is_contended() => Err(error.to_string()),
        result => Ok(result),
    })
    .await
}

/// Makes the data of all servers equally old. Otherwise a server that is reached later abstains for processes that start then.
async fn begin(servers: &Nodes) {
    let all: Vec<_> = (0..servers.len()).collect();
    assert!(process(servers, &all, builder).await.shutdown().await);
}

/// Returns the bare majorities of `held_with` that let a process with the list `tried_with` acquire a held lock.
async fn double_locks(servers: &Nodes, held_with: List<'_>, tried_with: List<'_>) -> Vec<Vec<usize>> {
    let trying = process(servers, tried_with, builder).await;
    let mut double = Vec::new();
    for reached in bare_majorities(held_with) {
        let (holding, _proxies) = partitioned(servers, held_with, &reached, builder).await;
        let digits = |list: List<'_>| list.iter().map(usize::to_string).collect::<String>();
        let key = format!("order:{}:{}:{}", digits(held_with), digits(tried_with), digits(&reached));
        let guard = holding.acquire(LockRequest::new(key.as_str()).without_renewal()).await.unwrap();
        match answered(|| trying.try_acquire(key.as_str())).await {
            Ok(second) => {
                assert!(guard.is_held() && second.is_held(), "{key}");
                double.push(reached);
            }
            Err(error) => {
                assert!(guard.is_held(), "{key}: {error}");
                drop(guard);
                drop(trying.acquire(LockRequest::new(key).wait(PATIENCE)).await.unwrap());
            }
        }
    }
    double
}

/// Deploys one list after the other. A process with the old list and a process with the new list exclude each other in each deploy.
async fn deploy(lists: &[List<'_>]) {
    let all = lists.iter().flat_map(|list| list.iter()).max().unwrap() + 1;
    let servers = Nodes::start(all).await;
    begin(&servers).await;
    for change in lists.windows(2) {
        let [old, new] = *change else { unreachable!() };
        for (held_with, tried_with) in [(old, new), (new, old)] {
            let double = double_locks(&servers, held_with, tried_with).await;
            assert!(double.is_empty(), "{held_with:?} and {tried_with:?}: two holders, one of them on {double:?}");
        }
    }
}

#[tokio::test]
async fn one_to_three_servers_in_two_deploys() {
    deploy(&[&[0], &[0, 1], &[0, 1, 2]]).await;
}

#[tokio::test]
async fn three_to_five_servers_in_two_deploys() {
    deploy(&[&[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 2, 3, 4]]).await;
}

#[tokio::test]
async fn five_to_three_servers_in_two_deploys() {
    deploy(&[&[0, 1, 2, 3, 4], &[0, 1, 3, 4], &[1, 3, 4]]).await;
}

#[tokio::test]
async fn three_to_one_server_in_two_deploys() {
    deploy(&[&[0, 1, 2], &[1, 2], &[2]]).await;
}

#[tokio::test]
async fn server_replaced_under_another_name_is_removed_first_or_last() {
    deploy(&[&[0, 1, 2], &[0, 1], &[0, 1, 3]]).await;
    deploy(&[&[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 3]]).await;
}

#[tokio::test]
async fn change_by_more_than_one_server_allows_two_holders() {
    let servers = Nodes::start(6).await;
    begin(&servers).await;
    let forbidden: [(List<'_>, List<'_>); 4] =
        [(&[0], &[0, 1, 2]), (&[0, 1, 2], &[0, 1, 2, 3, 4]), (&[0, 1, 2], &[0, 1, 3]), (&[0, 1, 2], &[3, 4, 5])];
    for (some, others) in forbidden {
        for (held_with, tried_with) in [(some, others), (others, some)] {
            let double = double_locks(&servers, held_with, tried_with).await;
            assert!(!double.is_empty(), "{held_with:?} and {tried_with:?} exclude each other");
        }
    }
}

/// The lease of an ended process is known only to servers of the first list. A majority of the third list does not know it.
#[tokio::test]
async fn next_deploy_must_wait_for_the_leases_of_the_previous_deploy() {
    for is_detached in [true, false] {
        for waits in [true, false] {
            let servers = Nodes::start(3).await;
            let lists: [List<'_>; 3] = [&[0], &[0, 1], &[0, 1, 2]];
            let mut processes = Vec::new();
            for list in lists {
                processes.push(process(&servers, list, |urls| builder(urls).node_timeout(TTL / 4)).await);
            }
            let [first, second, third] = &processes[..] else { unreachable!() };
            // Long enough for two deploys if the operator does not wait for its end.
            let lease = if waits { TTL } else { PATIENCE };
            let request = LockRequest::new(KEY);
            let detached = if is_detached {
                Some(first.acquire(request.ttl(lease)).await.unwrap().detach())
            } else {
                first.acquire(request.min_hold(lease)).await.unwrap().release().await.unwrap();
                None
            };
            // The second deploy is safe.
            answered(|| second.try_acquire(KEY)).await.expect_err("a lease of the first list counts");
            if waits {
                eventually_eq(PATIENCE, "the lease ends", None, async || owner_at(&servers[0], KEY).await).await;
            }
            // In the third deploy, only the lease remains of the first list.
            let acquired = answered(|| third.try_acquire(KEY)).await.unwrap();
            assert!(acquired.is_held());
            assert_eq!(owner_at(&servers[0], KEY).await.as_deref() == Some(acquired.token().as_str()), waits);
            if let Some(detached) = detached {
                let resumed = first.attach(detached).await;
                let is_double = resumed.is_ok_and(|resumed| resumed.is_held() && acquired.is_held());
                assert_eq!(is_double, !waits, "two holders");
            }
        }
    }
}

/// The clock of the first server is ahead, and is corrected before the second deploy. The third list does not contain the first server.
#[tokio::test]
async fn fencing_number_reaches_the_third_list_only_if_used_by_the_second_list() {
    for is_used in [true, false] {
        let servers = Nodes::start_with(3, |_, builder| builder.own_clock()).await;
        servers[0].set_clock(HALF_HOUR);
        let first = process(&servers, &[0], builder).await;
        let before = fencing::token(&first).await;
        assert!(first.shutdown().await);
        servers[0].set_clock(0);
        let second = process(&servers, &[0, 1], builder).await;
        if is_used {
            assert!(fencing::token(&second).await > before);
        }
        assert!(second.shutdown().await);
        let (third, _proxies) = partitioned(&servers, &[0, 1, 2], &[1, 2], builder).await;
        let after = fencing::token(&third).await;
        assert_eq!(after > before, is_used, "{before} and {after}");
    }
}

/// Tries to acquire `key` with each process. A lock is granted only after its last holder has lost it.
async fn assert_exclusive(guard: &LockGuard, key: &str, processes: [&LockManager; 2]) {
    for (index, process) in processes.into_iter().enumerate() {
        if let Ok(second) = process.try_acquire(key).await {
            assert!(!guard.is_held(), "two holders: process {index} acquired {key}");
            second.release().await.unwrap();
        }
    }
}

/// Waits for one `max_ttl`, as an operator does, while both processes keep trying to acquire the held lock.
async fn wait_for_longest_ttl(server: &RedisServer, guard: &LockGuard, processes: [&LockManager; 2]) {
    server.inspect().command::<()>(&["SET", "max_ttl", "x", "PX", &TTL.as_millis().to_string()]).await;
    eventually_eq(PATIENCE, "one max_ttl is over", None, async || {
        assert_exclusive(guard, KEY, processes).await;
        server.inspect().get("max_ttl").await
    })
    .await;
}

/// The name leads to another server after the first one was stopped and one `max_ttl` has passed.
#[tokio::test]
async fn server_replaced_under_its_own_name_is_stopped_first() {
    for reaches_all in [true, false] {
        let servers = Nodes::start(4).await;
        let name = Proxy::to(&servers[2]).await;
        let list = || vec![servers[0].url(), servers[1].url(), name.url()];
        let (holder, _proxies) = if reaches_all {
            (started(brief(list())).await, Vec::new())
        } else {
            // This holder never reaches the new server, so its lock is not restored there.
            partitioned(&servers, &[0, 1, 2], &[0, 2], brief).await
        };
        let old = started(brief(list())).await;
        let guard = holder.acquire(KEY).await.unwrap();

        servers[2].kill();
        wait_for_longest_ttl(&servers[0], &guard, [&old, &old]).await;
        name.redirect_all_connections(&servers[3]).await;
        let new = brief(list()).build().unwrap();
        let token = guard.token().to_string();
        eventually(PATIENCE, "the new server counts", async || {
            assert_exclusive(&guard, KEY, [&old, &new]).await;
            let (warnings, owner) = (warnings(&old.check().await), owner_at(&servers[3], KEY).await);
            // A holder that reaches all servers restores its lock at the new server.
            let is_restored = !reaches_all || owner.as_ref() == Some(&token);
            if warnings.is_empty() && is_restored { Ok(()) } else { Err((warnings, owner)) }
        })
        .await;
        assert!(guard.is_held() || !reaches_all, "the holder reaches all servers");
        drop(guard);
        for process in [old, new] {
            process.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap().release().await.unwrap();
        }
    }
}

/// A process that starts after the change has nothing to compare the new server with. The data of that server is as old as the others'.
#[tokio::test]
async fn host_name_repointed_without_a_wait_allows_two_holders() {
    let servers = Nodes::start(4).await;
    begin(&servers).await;
    let name = Proxy::to(&servers[2]).await;
    let (holder, proxies) = partitioned(&servers, &[0, 1, 2], &[0, 2], builder).await;
    let guard = holder.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
    cut_off(&proxies).await;
    servers[2].kill();
    name.redirect_all_connections(&servers[3]).await;
    let new = builder([servers[0].url(), servers[1].url(), name.url()]).build().unwrap();
    let second = eventually(PATIENCE, "the new server counts", async || new.try_acquire(KEY).await).await;
    assert!(guard.is_held() && second.is_held());
}

async fn wait_until_old(servers: &Nodes) {
    for server in servers.iter() {
        eventually(PATIENCE, "the server is older than one that starts now", async || {
            let uptime = server.inspect().info("server", "uptime_in_seconds").await.unwrap_or_default();
            if uptime.parse::<u64>().is_ok_and(|uptime| uptime > OLD) { Ok(()) } else { Err(uptime) }
        })
        .await;
    }
}

/// Restarts the servers one after the other. After each restart, waits until the old process counts all servers again.
///
/// One lock is held at all servers. Before each restart, another lock is acquired on a bare majority that includes the restarted server.
async fn restart_one_by_one(
    servers: &Nodes,
    described: impl Fn(Vec<String>) -> LockManagerBuilder,
    restart: impl AsyncFn(&RedisServer),
) {
    let old = process(servers, &[0, 1, 2], &described).await;
    let holder = process(servers, &[0, 1, 2], &described).await;
    let guard = holder.acquire(KEY).await.unwrap();
    for (index, server) in servers.iter().enumerate() {
        let bare_key = format!("bare:{index}");
        let (bare, _proxies) = partitioned(servers, &[0, 1, 2], &[index, (index + 1) % 3], &described).await;
        let bare_guard = bare.acquire(bare_key.as_str()).await.unwrap();

        restart(server).await;
        let new = described(servers.urls()).build().unwrap();
        eventually(PATIENCE, "every server counts, and the lock is restored", async || {
            assert_exclusive(&guard, KEY, [&old, &new]).await;
            assert_exclusive(&bare_guard, &bare_key, [&old, &new]).await;
            let (warnings, owner) = (warnings(&old.check().await), owner_at(server, KEY).await);
            let is_restored = owner.as_deref() == Some(guard.token().as_str());
            if warnings.is_empty() && is_restored { Ok(()) } else { Err((warnings, owner)) }
        })
        .await;
        assert!(guard.is_held(), "the lock survives restart {index}");
    }
    // The holder may still be connecting to the last server.
    eventually(PATIENCE, "the lock is extended", async || guard.extend().await.map_err(|error| error.to_string()))
        .await;
    guard.release().await.unwrap();
    old.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn rolling_restart_is_safe_if_it_waits_max_ttl_after_each_server() {
    let servers = Nodes::start(3).await;
    wait_until_old(&servers).await;
    restart_one_by_one(&servers, brief, RedisServer::restart_empty).await;
}

/// With the default `max_ttl` of 60 s, an abstaining server would not vote again before the end of the test.
#[tokio::test]
async fn rolling_restart_of_durable_servers_is_safe_without_a_wait() {
    assert!(PATIENCE < Duration::from_secs(60));
    let durable = |_, builder: redlock_tests::Builder| builder.config("appendonly", &["yes"]);
    let servers =
        Nodes::start_with(3, |index, builder| durable(index, builder).config("appendfsync", &["always"])).await;
    restart_one_by_one(&servers, builder, RedisServer::restart).await;
}

#[tokio::test]
async fn restart_of_two_servers_without_a_wait_allows_two_holders() {
    let servers = Nodes::start(3).await;
    let (holder, proxies) = partitioned(&servers, &[0, 1, 2], &[0, 1], builder).await;
    let guard = holder.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
    cut_off(&proxies).await;
    for server in &servers[..2] {
        server.restart_empty().await;
    }
    let new = builder(servers.urls()).build().unwrap();
    let second = eventually(PATIENCE, "both servers count", async || new.try_acquire(KEY).await).await;
    assert!(guard.is_held() && second.is_held());
}

/// Lock that one process acquires: with the old identity, with both, or with the new one.
enum Process {
    One(LockManager, LockRequest),
    /// Acquires the old lock first, and the new lock in its body.
    Nested([LockManager; 2]),
}

impl Process {
    /// Runs `body` under the lock.
    async fn run(&self, wait: Duration, body: impl AsyncFnOnce()) -> Result<(), LockError> {
        let request = || LockRequest::new(KEY).wait(wait);
        match self {
            Self::One(manager, request) => {
                let request = request.clone().wait(wait);
                manager
                    .with_lock(request, async |_| {
                        body().await;
                        Ok(())
                    })
                    .await
            }
            Self::Nested([old, new]) => {
                let inner = async || {
                    new.with_lock(request(), async |_| {
                        body().await;
                        Ok(())
                    })
                    .await
                };
                old.with_lock(request(), async |_| inner().await).await
            }
        }
    }
}

/// Returns `true` if neither process runs its body while the other one does.
async fn exclude_each_other(one: &Process, other: &Process) -> bool {
    let mut overlaps = 0;
    for (holding, trying) in [(one, other), (other, one)] {
        let ((has_begun, begun), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let hold = holding.run(PATIENCE, async || {
            has_begun.send(()).unwrap();
            ended.await.unwrap();
        });
        // Not in the body of `holding`: a nested call would know its caller.
        let attempt = async {
            begun.await.unwrap();
            let result = answered(|| trying.run(Duration::ZERO, async || ())).await;
            end.send(()).unwrap();
            result
        };
        let (ended, result) = tokio::join!(hold, attempt);
        ended.unwrap();
        match result {
            Ok(()) => overlaps += 1,
            // The release lets the other process in.
            Err(_) => trying.run(PATIENCE, async || ()).await.unwrap(),
        }
    }
    assert_ne!(overlaps, 1, "exclusion has no direction");
    overlaps == 0
}

/// Checks three processes: of the release before, of the release that acquires both locks, and of the release after.
async fn assert_two_deploys_are_safe([old, both, new]: [Process; 3]) {
    assert!(!exclude_each_other(&old, &new).await, "the identity of the lock has not changed");
    assert!(exclude_each_other(&old, &both).await);
    assert!(exclude_each_other(&both, &new).await);
}

#[tokio::test]
async fn namespace_database_or_all_servers_change_in_two_deploys_with_nested_locks() {
    let (servers, others) = (Nodes::start(3).await, Nodes::start(3).await);
    let second_database =
        || servers.urls().into_iter().map(|url| format!("{}/1", url.trim_end_matches('/'))).collect::<Vec<_>>();
    let old = || started(builder(servers.urls()).namespace("shop"));
    let changes: [&dyn Fn() -> LockManagerBuilder; 3] =
        [&|| builder(servers.urls()).namespace("orders"), &|| builder(second_database()).namespace("shop"), &|| {
            builder(others.urls()).namespace("shop")
        }];
    for change in changes {
        let new = || started(change());
        let one = |manager| Process::One(manager, LockRequest::new(KEY));
        let both = Process::Nested([old().await, new().await]);
        assert_two_deploys_are_safe([one(old().await), both, one(new().await)]).await;
    }
    servers.assert_no_mention(PATIENCE, KEY).await;
    others.assert_no_mention(PATIENCE, KEY).await;
}

#[tokio::test]
async fn template_changes_in_two_deploys_with_a_set_of_keys() {
    let servers = Nodes::start(3).await;
    let one = async |request| Process::One(started(builder(servers.urls())).await, request);
    let [old, new] = [KEY, "shipment:7"];
    let both = one(LockRequest::all([old, new])).await;
    assert_two_deploys_are_safe([one(LockRequest::new(old)).await, both, one(LockRequest::new(new)).await]).await;
    servers.assert_no_mention(PATIENCE, KEY).await;
    servers.assert_no_mention(PATIENCE, "shipment:7").await;
}

#[tokio::test]
async fn namespace_changes_after_all_old_processes_have_stopped_and_their_leases_have_ended() {
    let servers = Nodes::start(3).await;
    let in_namespace = |namespace| started(brief(servers.urls()).namespace(namespace));
    let (leaving, crashed, new) =
        (in_namespace("shop").await, in_namespace("shop").await, in_namespace("orders").await);
    let guard = leaving.acquire(KEY).await.unwrap();
    // Simulates a killed process: its lease is neither renewed nor released.
    let left = crashed.acquire(LockRequest::new("order:8").without_renewal()).await.unwrap().detach();
    drop(guard);
    assert!(leaving.shutdown().await);
    assert!(servers.mentions(left.key().as_str()).await.len() >= majority(3), "the lease outlives its process");
    servers.assert_no_mention(PATIENCE, "shop:order:").await;
    crashed.attach(left).await.unwrap_err();
    for key in [KEY, "order:8"] {
        new.acquire(LockRequest::new(key).wait(PATIENCE)).await.unwrap().release().await.unwrap();
    }
}
