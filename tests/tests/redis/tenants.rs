//! Tenants of one Redis: programs that do not trust each other, each with a namespace and exactly the rights from the guide.

use crate::strangers::patient_connection;
use crate::support::{builder, wait_until_queued};
use crate::waiters::{Waiting, obtained, patient, waiting};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisResult, Value};
use redlock_runtime::{LockManager, LockPart, LockRequest};
use redlock_tests::{Cluster, Inspector, Nodes, PATIENCE, eventually};
use std::time::Duration;

const PAGE: &str = include_str!("../../../redlock-runtime/docs/guide/production/security.md");

/// Returns the rules of a service in this namespace, as on the page "Security": the user, shared locks and permits, fencing, hash tags.
fn rules(namespace: &str) -> Vec<String> {
    let (_, service) = PAGE.split_once("```text\nACL SETUSER orders ").unwrap();
    let (service, lines) = service.split_once("```").unwrap();
    let (lines, _) = lines.trim_start().split_once("\n\n").unwrap();
    let additions =
        lines.lines().filter(|line| line.starts_with("- For ")).flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = service.split_whitespace().chain(additions.flat_map(str::split_whitespace));
    words.map(|word| word.replace("order:", &format!("{namespace}:"))).collect()
}

async fn set_tenant(inspect: &Inspector, namespace: &str) {
    let rules = rules(namespace);
    let rules: Vec<_> =
        ["ACL", "SETUSER", namespace, "reset"].into_iter().chain(rules.iter().map(String::as_str)).collect();
    inspect.command::<()>(&rules).await;
}

fn url_of(url: &str, user: &str) -> String {
    url.replacen("://", &format!("://{user}:password@"), 1)
}

async fn manager(url: &str, namespace: &str) -> LockManager {
    let manager = builder([url_of(url, namespace)]).namespace(namespace).build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    manager
}

/// Returns a connection of a tenant, for commands that a manager never sends.
async fn connection(url: &str, user: &str) -> MultiplexedConnection {
    patient_connection(url_of(url, user)).await
}

async fn send<T: FromRedisValue>(connection: &mut MultiplexedConnection, words: &[&str]) -> RedisResult<T> {
    redis::cmd(words[0]).arg(&words[1..]).query_async(connection).await
}

/// Returns the entries of the log of refused commands.
async fn refused(inspect: &Inspector) -> Vec<Value> {
    inspect.command(&["ACL", "LOG"]).await
}

async fn reset_refused(inspect: &Inspector) {
    inspect.command::<()>(&["ACL", "LOG", "RESET"]).await;
}

/// Makes a call wait until the lock is handed over, which works with the rights of a tenant.
async fn hand_over(holder: &LockManager, waiter: &LockManager, nodes: &Nodes, namespace: &str, request: LockRequest) {
    let held = holder.acquire(request.clone()).await.unwrap();
    let call: Waiting = waiting(waiter, request.wait(PATIENCE));
    wait_until_queued(nodes, &format!("{namespace}:7"), 1).await;
    held.extend().await.unwrap();
    held.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
}

/// Uses each kind of lock.
async fn use_all(holder: &LockManager, waiter: &LockManager, nodes: &Nodes, namespace: &str) {
    hand_over(holder, waiter, nodes, namespace, patient("7")).await;
    let first = holder.acquire(LockRequest::new("7").fencing()).await.unwrap();
    let call = tokio::spawn({
        let waiter = waiter.clone();
        async move { waiter.acquire(patient("7").fencing()).await.unwrap() }
    });
    wait_until_queued(nodes, &format!("{namespace}:7"), 1).await;
    let number = first.fencing_token();
    drop(first);
    assert!(call.await.unwrap().fencing_token() > number);
    let readers = [
        holder.acquire(LockRequest::shared("7")).await.unwrap(),
        waiter.acquire(LockRequest::shared("7")).await.unwrap(),
    ];
    let writer = waiting(holder, patient("7"));
    wait_until_queued(nodes, &format!("{namespace}:7"), 1).await;
    for reader in readers {
        reader.release().await.unwrap();
    }
    obtained(writer).await.release().await.unwrap();
    for key in ["7", "order:{7}"] {
        let permit = || patient(key).permits(1);
        let held = holder.acquire(permit()).await.unwrap();
        let call = waiting(waiter, permit());
        eventually(PATIENCE, "it waits", async || {
            let names = nodes[0].inspect().keys().await;
            names.iter().any(|name| name.contains(":t")).then_some(()).ok_or(names)
        })
        .await;
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
    }
    let several = || LockRequest::all([LockPart::key("7"), LockPart::key("8"), LockPart::shared("9")]);
    let held = holder.acquire(several()).await.unwrap();
    let call = waiting(waiter, several().wait(PATIENCE));
    wait_until_queued(nodes, &format!("{namespace}:7"), 1).await;
    held.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
    holder.acquire(LockRequest::path("/customer/7")).await.unwrap().release().await.unwrap();
    holder
        .acquire(LockRequest::new("report").once_per(Duration::from_secs(60)))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let detached = holder.acquire("7").await.unwrap().detach();
    waiter.attach(detached).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn tenant_with_namespace_permissions_can_use_every_kind_of_lock() {
    let nodes = Nodes::start(1).await;
    let inspect = nodes[0].inspect();
    for namespace in ["shop", "bank"] {
        set_tenant(inspect, namespace).await;
        let managers = [manager(&nodes[0].url(), namespace).await, manager(&nodes[0].url(), namespace).await];
        let report = managers[0].check().await;
        let warnings: Vec<_> = report.warnings().into_iter().filter(|warning| warning.contains("grant")).collect();
        assert!(warnings.is_empty(), "{warnings:?}");
        // `check` tries commands that only some locks need, and the connection asks for settings of the server.
        reset_refused(inspect).await;
        use_all(&managers[0], &managers[1], &nodes, namespace).await;
        assert!(managers[0].shutdown().await && managers[1].shutdown().await);
        assert!(refused(inspect).await.is_empty(), "{namespace}: {:?}", refused(inspect).await);
        let left = inspect.keys().await;
        let is_below = |name: &&String| name.starts_with(&format!("{namespace}:"));
        assert!(left.iter().all(|name| is_below(&name)), "{left:?}");
        inspect.flush_all().await;
    }
}

#[tokio::test]
async fn tenant_cannot_access_channels_registers_or_locks_of_another_namespace() {
    let nodes = Nodes::start(1).await;
    let inspect = nodes[0].inspect();
    for namespace in ["shop", "bank"] {
        set_tenant(inspect, namespace).await;
    }
    let (bank, other) = (manager(&nodes[0].url(), "bank").await, manager(&nodes[0].url(), "bank").await);
    let held = bank.acquire(LockRequest::new("7").fencing()).await.unwrap();
    let call = waiting(&other, patient("7"));
    wait_until_queued(&nodes, "bank:7", 1).await;
    let register = inspect.keys().await.into_iter().find(|name| name.contains("redlock:f:")).unwrap();
    assert!(register.starts_with("bank:"), "{register}");
    let token = inspect.get("bank:7").await.unwrap();
    let channel = format!("redlock:bank:{}", token.trim_end_matches('+').split_once('@').unwrap().1);
    let score: String = inspect.command(&["ZSCORE", &register, "n"]).await;
    let own = [channel.replace("bank", "shop"), register.replace("bank", "shop")];

    let mut shop = connection(&nodes[0].url(), "shop").await;
    let attacks: [&[&str]; 12] = [
        &["PUBLISH", &channel, "granted"],
        &["SUBSCRIBE", &channel],
        &["PSUBSCRIBE", "redlock:*"],
        &["PSUBSCRIBE", "redlock:bank:*"],
        &["SUBSCRIBE", "redlock::0"],
        &["ZADD", &register, "140737488355325", "n"],
        &["ZSCORE", &register, "n"],
        &["DEL", &register],
        &["GET", "bank:7"],
        &["ZREM", "{bank:7}:q", "x"],
        &["EVAL", "return redis.call('ZADD', KEYS[1], ARGV[1], 'n')", "1", &register, "140737488355325"],
        &["EVAL", "return redis.call('PUBLISH', ARGV[1], 'granted')", "0", &channel],
    ];
    for attack in attacks {
        let error = send::<Value>(&mut shop, attack).await.expect_err(&attack.join(" "));
        assert!(
            error.to_string().contains("permission")
                || error.to_string().contains("can't")
                || error.code() == Some("NOPERM"),
            "{attack:?}: {error}"
        );
    }
    // Each tenant may do the same in its own namespace.
    let mut shop = connection(&nodes[0].url(), "shop").await;
    send::<Value>(&mut shop, &["PUBLISH", &own[0], "granted"]).await.unwrap();
    send::<Value>(&mut shop, &["ZADD", &own[1], "1", "n"]).await.unwrap();

    assert!(held.is_held());
    assert_eq!(inspect.command::<String>(&["ZSCORE", &register, "n"]).await, score);
    held.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
}

/// A ballot that is larger than any that the servers' clocks allow, and close to the largest one.
const FAR: u64 = (1 << 49) - 3;

/// Returns a fencing number, without its lower bits.
async fn number(manager: &LockManager) -> u64 {
    let guard = manager.acquire(patient("7").fencing()).await.unwrap();
    let number = guard.fencing_token().as_u64() >> 14;
    guard.release().await.unwrap();
    number
}

/// Returns the register of the key `7` in the namespace `bank`, and its number.
async fn register(inspect: &Inspector) -> (String, u64) {
    eventually(PATIENCE, "it has a number", async || {
        let keys = inspect.keys().await;
        let name = keys.iter().find(|name| name.starts_with("bank:redlock:f:{")).ok_or(keys.clone())?;
        let score: Option<String> = inspect.command(&["ZSCORE", name, "n"]).await;
        score.map(|score| (name.clone(), score.parse().unwrap())).ok_or(keys)
    })
    .await
}

/// Returns a process of `bank` that knows no number, and the number of its first lock.
async fn newcomer(url: &str) -> (LockManager, u64) {
    let newcomer = manager(url, "bank").await;
    let number = number(&newcomer).await;
    (newcomer, number)
}

/// The tenant has the permissions for fencing in its own namespace, and raises all registers that it can reach.
#[tokio::test]
async fn fencing_numbers_rise_although_another_tenant_raises_its_registers() {
    let nodes = Nodes::start(1).await;
    let (inspect, url) = (nodes[0].inspect(), nodes[0].url());
    for namespace in ["shop", "bank"] {
        set_tenant(inspect, namespace).await;
    }
    let bank = manager(&url, "bank").await;
    let mut numbers = vec![number(&bank).await];
    let (register_name, _) = register(inspect).await;
    let far = FAR.to_string();
    let mut shop = connection(&url, "shop").await;
    let foreign = [&*register_name, "redlock:fence", "bank:redlock:fence", "redlock:f:{4438}", "{bank:7}:f"];
    for name in foreign {
        for attack in [&["ZADD", name, &far, "n"][..], &["SET", name, &far]] {
            let error = send::<Value>(&mut shop, attack).await.expect_err(&attack.join(" "));
            assert_eq!(error.code(), Some("NOPERM"), "{attack:?}: {error}");
        }
    }
    let own = register_name.replace("bank:", "shop:");
    for name in [&*own, "shop:redlock:fence", "shop:redlock:f:{0}"] {
        send::<Value>(&mut shop, &["ZADD", name, &far, "n"]).await.unwrap();
    }
    // Its calls use the registers that it has raised. They may fail, and do not affect others.
    let attacker = manager(&url, "shop").await;
    let _ = attacker.try_acquire(LockRequest::new("7").fencing()).await;
    for _ in 0..3 {
        numbers.push(number(&bank).await);
        numbers.push(newcomer(&url).await.1);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|number| *number < FAR / 2), "{numbers:?}");
    assert!(register(inspect).await.1 < FAR / 2);
}

/// The user can write to the registers of the namespace at one server, and has no permission at the others.
#[tokio::test]
async fn fencing_numbers_rise_although_a_user_raises_the_registers_of_one_server() {
    let nodes = Nodes::start(3).await;
    for node in nodes.iter() {
        set_tenant(node.inspect(), "bank").await;
    }
    let managers = || async {
        let urls = nodes.urls().into_iter().map(|url| url_of(&url, "bank"));
        let manager = builder(urls).namespace("bank").build().unwrap();
        // The bad server gives no vote, so both others are needed.
        eventually(PATIENCE, "all servers are connected", async || {
            let nodes = manager.stats().nodes;
            if nodes.iter().all(|node| node.is_up) { Ok(()) } else { Err(nodes) }
        })
        .await;
        manager
    };
    let bank = managers().await;
    let mut numbers = vec![number(&bank).await];
    let (name, _) = register(nodes[0].inspect()).await;
    let raider = ["ACL", "SETUSER", "raider", "on", ">password", "~bank:redlock:f:*", "+zadd"];
    nodes[0].inspect().command::<()>(&raider).await;
    let mut attack = connection(&nodes[0].url(), "raider").await;
    let denied = send::<Value>(&mut attack, &["SET", "bank:7", "x"]).await.unwrap_err();
    assert_eq!(denied.code(), Some("NOPERM"));
    for far in [FAR, FAR / 4, FAR] {
        send::<Value>(&mut attack, &["ZADD", &name, &far.to_string(), "n"]).await.unwrap();
        for manager in [&bank, &managers().await, &bank] {
            numbers.push(number(manager).await);
        }
    }
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|number| *number < FAR / 8), "{numbers:?}");
    for node in &nodes[1..] {
        assert!(register(node.inspect()).await.1 < FAR / 8, "it was raised");
    }
}

/// Returns the messages on all channels of the library since the last call.
fn published(messages: &mut redis::PubSub<'_>, sender: &mut redis::Connection) -> Vec<(String, String)> {
    redis::cmd("PUBLISH").arg("redlock:end").arg("end").exec(sender).unwrap();
    let mut published = Vec::new();
    loop {
        let message = messages.get_message().unwrap();
        let (channel, text): (_, String) = (message.get_channel_name().to_owned(), message.get_payload().unwrap());
        if channel == "redlock:end" {
            return published;
        }
        // An empty text counts pattern subscribers, and can come at any time.
        if !text.is_empty() {
            published.push((channel, text));
        }
    }
}

#[tokio::test]
async fn notifications_use_only_channels_of_the_own_namespace() {
    let nodes = Nodes::start(1).await;
    let client = redis::Client::open(nodes[0].url()).unwrap();
    let [mut listener, mut sender] = [(); 2].map(|()| client.get_connection().unwrap());
    let mut messages = listener.as_pubsub();
    messages.psubscribe("redlock:*").unwrap();
    // The last two need escaping, in patterns of Redis and in Lua.
    for (namespace, prefix) in
        [("", ":"), ("shop", "shop:"), ("bank", "bank:"), ("s'h\\*p", "s%27h%5C%2Ap:"), ("{a}", "{a}:")]
    {
        let manager = || builder(nodes.urls()).namespace(namespace).build().unwrap();
        let (holder, waiter) = (manager(), manager());
        let held = holder.acquire("7").await.unwrap();
        let call = waiting(&waiter, patient("7"));
        eventually(PATIENCE, "it waits", async || {
            let names = nodes[0].inspect().keys().await;
            names.iter().any(|name| name.contains(":q")).then_some(()).ok_or(names)
        })
        .await;
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
        assert!(holder.shutdown().await && waiter.shutdown().await);
        let published = published(&mut messages, &mut sender);
        let channels = format!("redlock:{prefix}");
        assert!(
            !published.is_empty() && published.iter().all(|(channel, _)| channel.starts_with(&channels)),
            "{published:?}"
        );
    }
}

/// In a cluster, the channels of a member and the registers of each slot are below the namespace, too.
#[tokio::test]
async fn tenants_of_a_cluster_are_isolated() {
    let cluster = Cluster::start(3, 0).await;
    for number in 0..3 {
        for namespace in ["shop", "bank"] {
            set_tenant(cluster.member(number).inspect(), namespace).await;
            let may_ask = ["ACL", "SETUSER", namespace, "+cluster|slots", "+cluster|myid", "+cluster|info", "+asking"];
            cluster.member(number).inspect().command::<()>(&may_ask).await;
        }
    }
    let (bank, other) = (manager(&cluster.url(), "bank").await, manager(&cluster.url(), "bank").await);
    for number in 0..3 {
        let inspect = cluster.member(number).inspect();
        let name = cluster.key_on(number, "bank:order").await;
        let key = name.strip_prefix("bank:").unwrap();
        let held = bank.acquire(LockRequest::new(key).fencing()).await.unwrap();
        let call = waiting(&other, patient(key));
        eventually(PATIENCE, "it waits", async || {
            let waiters: u64 = inspect.command(&["ZCARD", &format!("{{{name}}}:q")]).await;
            (waiters == 1).then_some(()).ok_or(waiters)
        })
        .await;
        let register = inspect.keys().await.into_iter().find(|name| name.contains("redlock:f:")).unwrap();
        assert!(register.starts_with("bank:"), "{register}");
        let mut shop = connection(&cluster.member(number).url(), "shop").await;
        let channels: Vec<String> = inspect.command(&["PUBSUB", "CHANNELS", "redlock:*"]).await;
        assert!(
            !channels.is_empty() && channels.iter().all(|channel| channel.starts_with("redlock:bank:")),
            "{channels:?}"
        );
        for attack in [["PUBLISH", &channels[0], "granted"], ["ZSCORE", &register, "n"]] {
            send::<Value>(&mut shop, &attack).await.expect_err(&attack.join(" "));
        }
        held.release().await.unwrap();
        let guard = obtained(call).await;
        guard.release().await.unwrap();
    }
    assert!(bank.shutdown().await && other.shutdown().await);
}
