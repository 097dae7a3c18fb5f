//! Users of the same Redis without write access to our keys: their commands do not affect others.

use crate::recorded::Recorded;
use crate::support::{answered, barrier, builder, wait_until_queued};
use crate::waiters::{obtained, patient, waiting};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use redlock_runtime::admin::{BreakOptions, BreakReport};
use redlock_runtime::{LockError, LockManager, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually};
use std::time::Duration;

const KEY: &str = "order:1";

/// More messages than the number of releases that a node may owe before it receives no further command.
const FLOOD: usize = 60_000;

/// Makes a user. Servers before Redis 7 have no read-only patterns (`%R~`), and get ordinary ones.
pub(crate) async fn set_user(node: &RedisServer, rules: &[&str]) {
    let command = [&["ACL", "SETUSER"], rules].concat();
    if node.inspect().try_command::<()>(&command).await.is_err() {
        let command: Vec<_> = command.iter().map(|word| word.trim_start_matches("%R")).collect();
        node.inspect().command::<()>(&command).await;
    }
}

pub(crate) fn url_of(node: &RedisServer, user: &str, password: &str) -> String {
    node.url().replace("redis://", &format!("redis://{user}:{password}@"))
}

/// Returns a connection of a user with these rules.
pub(crate) async fn stranger(node: &RedisServer, rules: &[&str]) -> MultiplexedConnection {
    set_user(node, &[&["spy", "reset", "resetchannels", "on", ">spy"], rules].concat()).await;
    patient_connection(url_of(node, "spy", "spy")).await
}

/// Returns a connection that waits for each reply as long as it takes. By default, half a second is an error.
pub(crate) async fn patient_connection(url: String) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

/// Returns a manager of the namespace `locks`.
async fn manager_at(url: String) -> LockManager {
    let manager = builder([url]).namespace("locks").build().unwrap();
    manager.ready().await.unwrap();
    manager
}

/// Returns the channel of `manager`. A manager listens as soon as one of its calls has found a lock taken.
async fn channel(manager: &LockManager, nodes: &Nodes) -> String {
    let held = manager.acquire("mine").await.unwrap();
    let id = held.token().as_str().split_once('@').unwrap().1.to_owned();
    let other = manager_at(nodes[0].url()).await;
    let taken = other.acquire(KEY).await.unwrap();
    manager.acquire(LockRequest::new(KEY).wait(Duration::from_secs(2))).await.unwrap_err();
    taken.release().await.unwrap();
    held.release().await.unwrap();
    let channel = format!("redlock:locks:{id}");
    eventually(PATIENCE, "it listens", async || {
        let listening: Vec<String> = nodes[0].inspect().command(&["PUBSUB", "CHANNELS"]).await;
        if listening.contains(&channel) { Ok(()) } else { Err(listening) }
    })
    .await;
    channel
}

#[tokio::test]
async fn forged_message_about_a_lock_of_another_manager_does_not_release_it() {
    let nodes = Nodes::start(1).await;
    let (holder, bystander) = (manager_at(nodes[0].url()).await, manager_at(nodes[0].url()).await);
    let channel = channel(&bystander, &nodes).await;
    let guard = holder.acquire(KEY).await.unwrap();

    let mut spy = stranger(&nodes[0], &["+get", "%R~locks:*", "+publish", "&redlock:locks:*"]).await;
    let deleted: Result<(), _> = redis::cmd("DEL").arg("locks:order:1").query_async(&mut spy).await;
    assert_eq!(deleted.unwrap_err().code(), Some("NOPERM"), "the spy itself may not delete the lock");
    let token: String = redis::cmd("GET").arg("locks:order:1").query_async(&mut spy).await.unwrap();
    assert_eq!(token, guard.token().as_str());
    let bystanders = channel.strip_prefix("redlock:locks:").unwrap();
    let by = format!("{}@{bystanders}", token.split_once('@').unwrap().0);
    let messages = [
        format!("granted {token} locks:order:1"),
        format!("claimed 1000 1800000000.0 {token} locks:order:1"),
        format!("free {token} locks:order:1"),
        format!("freed {token} locks:order:1"),
        format!("busy {token} locks:order:1"),
        format!("stopped {token} locks:order:1"),
        format!("contended {token} {by} locks:order:1"),
        format!("wanted {token} {by} locks:order:1"),
        format!("revoked {token} {by} locks:order:1"),
    ];
    for message in messages {
        let heard: u64 = redis::cmd("PUBLISH").arg(&channel).arg(&message).query_async(&mut spy).await.unwrap();
        assert_eq!(heard, 1, "{message}");
        // The bystander has read the message and sent its reaction before it is answered.
        answered(&bystander).await;
        barrier(&nodes).await;
        let kept = nodes[0].inspect().get("locks:order:1").await;
        assert_eq!(kept.as_deref(), Some(guard.token().as_str()), "{message}");
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn messages_with_forged_tokens_do_not_block_a_process() {
    let nodes = Nodes::start(1).await;
    let rules =
        ["service", "reset", "resetchannels", "on", ">service", "~locks:*", "~{locks:*", "&redlock:locks:*", "+@all"];
    set_user(&nodes[0], &rules).await;
    let service = manager_at(url_of(&nodes[0], "service", "service")).await;
    let channel = channel(&service, &nodes).await;
    let id = channel.strip_prefix("redlock:locks:").unwrap();

    let mut spy = stranger(&nodes[0], &["+publish", "&redlock:locks:*"]).await;
    let flooding = tokio::spawn({
        let (channel, id) = (channel.clone(), id.to_owned());
        async move {
            for first in (0..FLOOD).step_by(1000) {
                let mut pipeline = redis::pipe();
                for number in first..first + 1000 {
                    // The service may not release this key, so each release is refused.
                    let message = format!("granted 0000{number:04x}-0000-7000-8000-000000000000@{id} x:{number}");
                    pipeline.cmd("PUBLISH").arg(&channel).arg(message).ignore();
                }
                pipeline.query_async::<()>(&mut spy).await.unwrap();
            }
            // Messages that are longer than any that a node sends.
            for number in 0..100 {
                let key = "k".repeat(200_000);
                let message = format!("granted 0000{number:04x}-0000-7000-8000-000000000000@{id} {key}");
                let published = redis::cmd("PUBLISH").arg(&channel).arg(message).query_async::<u64>(&mut spy).await;
                assert_eq!(published.unwrap(), 1);
            }
        }
    });
    let mut calls = 0;
    while !flooding.is_finished() || calls < 100 {
        let guard = service.acquire(KEY).await.unwrap_or_else(|error| panic!("call {calls} beside the flood: {error}"));
        guard.release().await.unwrap();
        calls += 1;
    }
    flooding.await.unwrap();
    answered(&service).await;
    // Each message costs one script at most.
    let rejected = nodes[0].inspect().rejected("evalsha").await;
    assert!(rejected <= FLOOD as u64, "{rejected} scripts for {FLOOD} messages");
}

/// A message that is longer than any answer cuts its connection before it uses memory. The first one cuts the
/// connection for commands, and the others cut one for wake-ups only.
#[tokio::test]
async fn oversized_messages_cut_the_command_connection_only_once() {
    let nodes = Nodes::start(1).await;
    let service = manager_at(nodes[0].url()).await;
    let channel = channel(&service, &nodes).await;
    let held = service.acquire(LockRequest::new("held").ttl(Duration::from_secs(6))).await.unwrap();
    let connections = || service.stats().nodes[0].reconnections;
    let before = connections();

    let mut spy = stranger(&nodes[0], &["+publish", "&redlock:locks:*"]).await;
    let message = format!("granted {} locks:{}", held.token(), "k".repeat(1_500_000));
    let mut heard = 0;
    for call in 0..100_000 {
        let listeners: u64 = redis::cmd("PUBLISH").arg(&channel).arg(&message).query_async(&mut spy).await.unwrap();
        heard += listeners;
        let guard = service.acquire(KEY).await.unwrap_or_else(|error| panic!("call {call}: {error}"));
        guard.release().await.unwrap();
        if heard >= 30 {
            break;
        }
    }
    assert!(heard >= 30, "{heard} messages were heard");
    assert!(held.is_held());
    assert_eq!(connections() - before, 1, "the connection for commands is cut by the first message alone");
    // Wake-ups still arrive.
    let other = manager_at(nodes[0].url()).await;
    let taken = other.acquire(KEY).await.unwrap();
    let call = waiting(&service, patient(KEY));
    wait_until_queued(&nodes, "locks:order:1", 1).await;
    eventually(PATIENCE, "it listens", async || {
        let listening: Vec<String> = nodes[0].inspect().command(&["PUBSUB", "CHANNELS"]).await;
        if listening.contains(&channel) { Ok(()) } else { Err(listening) }
    })
    .await;
    taken.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
    held.release().await.unwrap();
}

/// Waits until the lock has another token than `before`, as the user of `spy` sees it. Returns the token.
async fn token_after(spy: &mut MultiplexedConnection, before: &str) -> String {
    let mut get = redis::cmd("GET");
    get.arg("locks:order:1");
    let spy = &*spy;
    eventually(PATIENCE, "the breaker has the place of the holder", async || {
        let token: Option<String> = get.query_async(&mut spy.clone()).await.unwrap();
        let token = token.unwrap_or_default();
        let token = token.trim_end_matches('+');
        if !token.is_empty() && token != before { Ok(token.to_owned()) } else { Err(token.to_owned()) }
    })
    .await
}

/// Publishes `message` to `channel`, and waits until the manager there, `listener`, has handled it.
async fn publish(spy: &mut MultiplexedConnection, channel: &str, message: &str, listener: &LockManager) {
    let heard: u64 = redis::cmd("PUBLISH").arg(channel).arg(message).query_async(spy).await.unwrap();
    assert_eq!(heard, 1, "{message}");
    answered(listener).await;
}

/// The page "Security" describes this as the misuse of `GET` and `PUBLISH`. The trail of the break remains true, except for its outcome.
#[tokio::test]
async fn forged_report_of_the_holder_ends_a_break_early_and_leaves_its_trail() {
    let log = Recorded::default();
    let _recording = tracing::subscriber::set_default(log.clone());
    let nodes = Nodes::start(1).await;
    let [holder, operator, other] =
        [manager_at(nodes[0].url()).await, manager_at(nodes[0].url()).await, manager_at(nodes[0].url()).await];
    let guard = holder.acquire(KEY).await.unwrap();
    let token = *guard.token();
    let next = waiting(&other, patient(KEY));
    wait_until_queued(&nodes, "locks:order:1", 1).await;

    let mut spy = stranger(&nodes[0], &["+get", "%R~locks:*", "+publish", "&redlock:locks:*"]).await;
    let breaking = tokio::spawn({
        let operator = operator.clone();
        let options = BreakOptions::new(token).wait(PATIENCE).reason("ticket 4711");
        async move { operator.break_lock(KEY, options).await }
    });
    let by = token_after(&mut spy, token.as_str()).await;
    let deleted: Result<(), _> = redis::cmd("DEL").arg("locks:order:1").query_async(&mut spy).await;
    assert_eq!(deleted.unwrap_err().code(), Some("NOPERM"), "the spy itself may not release the lock");

    // Reports about another key or another token are ignored.
    let channel = format!("redlock:locks:{}", by.split_once('@').unwrap().1);
    let other_token = format!("00000001-0000-7000-8000-000000000000@{}", by.split_once('@').unwrap().1);
    for message in [format!("stopped {by} locks:order:2"), format!("stopped {other_token} locks:order:1")] {
        publish(&mut spy, &channel, &message, &operator).await;
        assert!(!breaking.is_finished() && !next.is_finished(), "{message}");
        assert_eq!(token_after(&mut spy, token.as_str()).await, by, "{message}");
    }

    publish(&mut spy, &channel, &format!("stopped {by} locks:order:1"), &operator).await;
    let report: BreakReport = breaking.await.unwrap();
    assert!(report.is_broken() && report.holder_stopped && report.placeholder.is_none(), "{report}");
    assert_eq!((report.by.as_str(), report.reason.as_deref()), (&*by, Some("ticket 4711")));
    let next = obtained(next).await;
    assert!(next.is_held());
    // The function of the holder still has its guard, which reports the breaker.
    let LockError::Lost { cause: LossCause::Revoked { by: breaker, .. }, .. } = guard.lost().await else { panic!() };
    assert_eq!(breaker.as_str(), by);
    assert!(!guard.is_held());

    let lines = log.lines();
    let broken: Vec<_> = lines.iter().filter(|line| line.contains(" event=broken")).collect();
    let [broken] = broken[..] else { panic!("{lines:#?}") };
    let (holder, by) = (format!(" holder={token}"), format!(" by={by}"));
    for field in ["WARN ", "order:1", &holder, &by, " outcome=stopped", " reason=ticket 4711"] {
        assert!(broken.contains(field), "{field}: {broken}");
    }
    drop(guard);
    next.release().await.unwrap();
}

/// The users of the page "Security" of the guide: the service acquires, waits for and renews locks, the watcher sees them and changes
/// nothing.
#[tokio::test]
async fn users_of_the_security_page_have_sufficient_permissions() {
    let page = include_str!("../../../redlock-runtime/docs/guide/production/security.md");
    let nodes = Nodes::start(1).await;
    for block in page.split("```text\nACL SETUSER ").skip(1) {
        let rules: Vec<_> = block.split("```").next().unwrap().split_whitespace().collect();
        set_user(&nodes[0], &rules).await;
    }
    let manager = |user: &str| builder([url_of(&nodes[0], user, "password")]).namespace("order").build().unwrap();
    let (services, watcher) = ([manager("orders"), manager("orders")], manager("watcher"));
    for service in &services {
        service.ready().await.unwrap();
    }
    let guard = services[0].acquire("7").await.unwrap();
    let waiting = tokio::spawn({
        let service = services[1].clone();
        async move { service.acquire("7").await.map(drop) }
    });
    eventually(PATIENCE, "the other one waits", async || {
        nodes[0]
            .inspect()
            .command::<Option<u64>>(&["ZCARD", "{order:7}:q"])
            .await
            .filter(|waiters| *waiters > 0)
            .ok_or(())
    })
    .await;
    guard.extend().await.unwrap();

    let seen = watcher.inspect("7").await;
    assert!(seen.to_string().contains(guard.token().as_str()), "{seen}");
    let refused = watcher.try_acquire("8").await.unwrap_err();
    assert!(matches!(refused, LockError::Refused { .. }), "{refused}");
    watcher.break_lock("7", *guard.token()).await;
    assert!(guard.is_held());

    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap();
    for service in &services {
        assert!(service.shutdown().await);
    }
    let left = nodes[0].inspect().keys().await;
    assert!(left.is_empty(), "{left:?}");
}
