//! Users of the same Redis without write access to our keys: their commands do not affect others.

use crate::support::{answered, barrier, builder, wait_until_queued};
use crate::waiters::{obtained, patient, waiting};
use redis::aio::MultiplexedConnection;
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::time::Duration;

const KEY: &str = "order:1";

/// More messages than the number of releases that a node may owe before it receives no further command.
const FLOOD: usize = 60_000;

/// Makes a user. Servers before Redis 7 have no read-only patterns (`%R~`), and get ordinary ones.
async fn set_user(nodes: &Nodes, rules: &[&str]) {
    let command = [&["ACL", "SETUSER"], rules].concat();
    if nodes[0].inspect().try_command::<()>(&command).await.is_err() {
        let command: Vec<_> = command.iter().map(|word| word.trim_start_matches("%R")).collect();
        nodes[0].inspect().command::<()>(&command).await;
    }
}

fn url_of(nodes: &Nodes, user: &str, password: &str) -> String {
    nodes[0].url().replace("redis://", &format!("redis://{user}:{password}@"))
}

/// Returns a connection of a user with these rules.
async fn stranger(nodes: &Nodes, rules: &[&str]) -> MultiplexedConnection {
    set_user(nodes, &[&["spy", "reset", "resetchannels", "on", ">spy"], rules].concat()).await;
    redis::Client::open(url_of(nodes, "spy", "spy")).unwrap().get_multiplexed_async_connection().await.unwrap()
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

    let mut spy = stranger(&nodes, &["+get", "%R~locks:*", "+publish", "&redlock:locks:*"]).await;
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
    set_user(&nodes, &rules).await;
    let service = manager_at(url_of(&nodes, "service", "service")).await;
    let channel = channel(&service, &nodes).await;
    let id = channel.strip_prefix("redlock:locks:").unwrap();

    let mut spy = stranger(&nodes, &["+publish", "&redlock:locks:*"]).await;
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

    let mut spy = stranger(&nodes, &["+publish", "&redlock:locks:*"]).await;
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

/// The users of the page "Security" of the guide: the service acquires, waits for and renews locks, the watcher sees them and changes
/// nothing.
#[tokio::test]
async fn users_of_the_security_page_have_sufficient_permissions() {
    let page = include_str!("../../../redlock-runtime/docs/guide/production/security.md");
    let nodes = Nodes::start(1).await;
    for block in page.split("```text\nACL SETUSER ").skip(1) {
        let rules: Vec<_> = block.split("```").next().unwrap().split_whitespace().collect();
        set_user(&nodes, &rules).await;
    }
    let manager = |user: &str| builder([url_of(&nodes, user, "password")]).namespace("order").build().unwrap();
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
