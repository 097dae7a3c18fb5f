//! Inspection of a lock by one server and by a quorum: holder, age, origin and waiters.

use crate::support::{GENEROUS, acquired_everywhere, builder, connected, manager, many_guards, wait_until_queued};
use redlock_runtime::admin::{Holder, InspectOptions, ListOptions, LockList};
use redlock_runtime::{LockManager, LockRequest, NodeError, Wait};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually};
use std::time::Duration;

#[tokio::test]
async fn inspect_shows_the_holder_and_waiters_with_their_processes() {
    let nodes = Nodes::start(3).await;
    let holder = connected(builder(nodes.urls()).label("shop"), &nodes).await;
    let waiter = connected(builder(nodes.urls()).label("billing"), &nodes).await;
    let observer = manager(&nodes).await;
    let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
    let waiting = tokio::spawn({
        let waiter = waiter.clone();
        async move { waiter.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await.map(drop) }
    });
    wait_until_queued(&nodes, "order:7", 1).await;

    let inspection = observer.inspect("order:7").await;
    let owner = inspection.holder().and_then(Holder::owner).unwrap();
    assert_eq!(owner.token, *guard.token());
    let label = owner.label.as_deref().unwrap();
    assert!(label.starts_with("shop;") && label.ends_with(&format!(";{}", std::process::id())), "{label}");
    let addresses = nodes[0].inspect().clients().await;
    let address = owner.address.as_deref().unwrap();
    assert!(addresses.iter().any(|client| client.contains(&format!("addr={address} "))), "{address}: {addresses:?}");
    assert_eq!(owner.is_connected, Some(true));
    assert!(inspection.remaining().unwrap() <= Duration::from_secs(30));
    let waiters = inspection.waiters();
    assert!(waiters.len() == 1 && waiters[0].label.as_deref().unwrap().starts_with("billing;"), "{waiters:?}");
    assert!(inspection.nodes.iter().all(|node| node.waiter_count == 1 && node.error.is_none()), "{inspection}");
    let text = inspection.to_string();
    assert!(text.starts_with("\"order:7\": held by shop;") && text.contains("waits for"), "{text}");
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn inspect_shows_that_the_holder_is_disconnected() {
    let nodes = Nodes::start(1).await;
    let (holder, observer) = (manager(&nodes).await, manager(&nodes).await);
    let guard = holder.acquire("order:7").await.unwrap();
    std::mem::forget(guard.detach());
    drop(holder);
    eventually(PATIENCE, "its connection is gone", async || {
        let inspection = observer.inspect("order:7").await;
        let owner = inspection.holder().and_then(Holder::owner).cloned();
        if owner.is_some_and(|owner| owner.is_connected == Some(false)) { Ok(()) } else { Err(inspection.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn inspect_distinguishes_foreign_locks_data_and_free_keys() {
    let server = RedisServer::start().await;
    let manager = builder([server.url()]).namespace("shop").build().unwrap();
    let inspect = server.inspect();
    inspect.command::<()>(&["SET", "shop:foreign", "worker 3\n", "PX", "60000"]).await;
    inspect.command::<()>(&["SET", "shop:document", "hunter2"]).await;
    inspect.command::<()>(&["LPUSH", "shop:list", "hunter2"]).await;
    inspect.command::<()>(&["SET", "shop:long", &"x".repeat(3_000_000), "PX", "60000"]).await;
    let inspections =
        manager.inspect_all(["foreign", "document", "list", "long", "free"], InspectOptions::default()).await;
    let holders: Vec<_> = inspections.iter().map(|inspection| inspection.holder().unwrap().to_string()).collect();
    assert_eq!(holders[0], r#"held by another program, as "worker 3\n""#);
    assert_eq!(holders[1..3], ["data that is not a lock"; 2]);
    assert!(holders[3].len() < 400, "{}", holders[3].len());
    assert_eq!(holders[4], "free");
    assert!(!inspections.iter().any(|inspection| inspection.to_string().contains("hunter2")));
    assert!(inspections[0].remaining().is_some() && inspections[1].remaining().is_none());
}

#[tokio::test]
async fn inspect_shows_the_fencing_number() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    assert_eq!(manager.inspect("order:7").await.fence(), None);
    let guard = manager.acquire(LockRequest::new("order:7").fencing()).await.unwrap();
    let fence = manager.inspect("order:7").await.fence().unwrap().as_u64();
    assert!((fence..fence + (1 << 16)).contains(&guard.fencing_token().as_u64()), "{fence}");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn inspect_shows_the_majority_with_one_node_down() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let guard = acquired_everywhere(&manager, &nodes, "order:7").await;
    nodes[2].kill();
    eventually(PATIENCE, "the node is known to be down", async || {
        let inspection = manager.inspect("order:7").await;
        let is_held = inspection.holder().and_then(Holder::owner).is_some_and(|owner| owner.token == *guard.token());
        assert!(is_held, "{inspection}");
        if inspection.nodes[2].error.is_some() { Ok(()) } else { Err(inspection.to_string()) }
    })
    .await;
}

/// Returns a manager whose user has these `rules`.
async fn user(server: &RedisServer, rules: &str) -> LockManager {
    let words: Vec<_> =
        ["ACL", "SETUSER", "alice", "reset", "on", ">w0nder"].into_iter().chain(rules.split(' ')).collect();
    server.inspect().command::<()>(&words).await;
    builder([server.url().replace("redis://", "redis://alice:w0nder@")]).node_timeout(GENEROUS).build().unwrap()
}

#[tokio::test]
async fn inspect_names_the_missing_permissions() {
    let server = RedisServer::start().await;
    let holder = builder([server.url()]).build().unwrap();
    let guard = holder.acquire("order:7").await.unwrap();
    let reads = "~* +eval +get +pttl +zcard +zrange +script|load";

    let inspection = user(&server, reads).await.inspect("order:7").await;
    let owner = inspection.holder().and_then(Holder::owner).unwrap();
    assert!(owner.token == *guard.token() && owner.label.is_none() && owner.is_connected.is_none(), "{inspection}");
    let unnamed = inspection.nodes[0].client_list_error.as_ref().unwrap().to_string();
    assert!(unnamed.contains("`+client|list`"), "{unnamed}");

    let inspection = user(&server, &format!("{reads} +client|list")).await.inspect("order:7").await;
    assert!(inspection.holder().and_then(Holder::owner).unwrap().label.is_some(), "{inspection}");

    for missing in ["+get", "+pttl", "+eval"] {
        let rules = reads.split(' ').filter(|rule| *rule != missing).collect::<Vec<_>>().join(" ");
        let inspection = user(&server, &rules).await.inspect("order:7").await;
        let error = inspection.nodes[0].error.clone().unwrap();
        assert!(matches!(&error, NodeError::Unsupported(text) if text.contains(missing)), "{missing}: {error}");
        assert_eq!(inspection.holder(), None);
        assert!(!inspection.to_string().contains("w0nder"));
    }
}

#[tokio::test]
async fn inspect_finds_unnamed_processes_by_their_channel() {
    let server = RedisServer::start().await;
    let rules = "~* resetchannels &redlock::* +set +get +del +pttl +pexpire +time +zadd +zcard +zcount +zpopmin +zrange +zrank +zrem +zscore +evalsha +eval \
                 +script|load +publish +subscribe";
    let holder = user(&server, rules).await;
    holder.ready().await.unwrap();
    let guard = holder.acquire("order:7").await.unwrap();
    let observer = builder([server.url()]).build().unwrap();
    let inspection = observer.inspect("order:7").await;
    let owner = inspection.holder().and_then(Holder::owner).unwrap();
    assert!(owner.label.is_none() && owner.is_connected == Some(true), "{inspection}");
    let token = guard.token().to_string();
    // Otherwise its release might arrive after the SET below.
    guard.release().await.unwrap();
    drop((guard, holder));
    // A key of a process that has ended.
    server.inspect().command::<()>(&["SET", "order:7", &token, "PX", "60000"]).await;
    eventually(PATIENCE, "its connections have ended", async || {
        let inspection = observer.inspect("order:7").await;
        if inspection.to_string().contains(", not connected") { Ok(()) } else { Err(inspection.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn inspect_with_ten_thousand_clients_does_not_affect_held_locks() {
    const CLIENTS: usize = 1000;
    let server = RedisServer::start().await;
    let manager = builder([server.url()]).build().unwrap();
    let guard = manager.acquire("order:7").await.unwrap();
    // The names of a thousand clients are ten times as long as usual, so the list has the size for ten thousand clients.
    // It exceeds the limit for answers on the connection of the locks.
    let mut crowd = Vec::new();
    for _ in 0..CLIENTS {
        let client = tokio::net::TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        client.try_write(format!("CLIENT SETNAME {}\r\n", "x".repeat(3000)).as_bytes()).unwrap();
        crowd.push(client);
    }
    eventually(PATIENCE, "all of them have their names", async || {
        let named = server.inspect().calls_of(["client|setname", "client"]).await;
        if named > u64::try_from(CLIENTS).unwrap() { Ok(()) } else { Err(named) }
    })
    .await;
    let inspection = manager.inspect("order:7").await;
    let owner = inspection.holder().and_then(Holder::owner).unwrap();
    assert!(owner.label.is_some() && owner.is_connected == Some(true), "{inspection}");
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn inspect_tolerates_foreign_entries_in_the_queue() {
    let nodes = Nodes::start(1).await;
    let manager = builder(nodes.urls()).build().unwrap();
    let guard = manager.acquire("order:7").await.unwrap();
    let long = "x".repeat(2 * 1024 * 1024);
    nodes[0].inspect().command::<()>(&["ZADD", "{order:7}:q", "0", &long]).await;
    let inspection = manager.inspect("order:7").await;
    let [node] = &inspection.nodes[..] else { panic!("{inspection}") };
    assert_eq!((&node.error, node.waiter_count, node.waiters.len()), (&None, 1, 0), "{inspection}");
    assert!(inspection.holder().and_then(Holder::owner).is_some_and(|owner| owner.token == *guard.token()));
}

#[tokio::test]
async fn list_shows_only_locks_of_the_own_namespace() {
    let nodes = Nodes::start(3).await;
    let manager = builder(nodes.urls()).namespace("sh*p").build().unwrap();
    let guards = many_guards(&manager, 3).await;
    let observer = builder(nodes.urls()).namespace("shop").build().unwrap();
    let other = observer.acquire("order:7").await.unwrap();
    let inspect = nodes[0].inspect();
    inspect.command::<()>(&["SET", "sh*p:order:document", "hunter2"]).await;
    inspect.command::<()>(&["LPUSH", "sh*p:order:list", "hunter2"]).await;
    let keys = |list: &LockList| list.keys.iter().map(ToString::to_string).collect::<Vec<_>>();

    let list = manager.list(ListOptions::new("order:*").limit(10).timeout(PATIENCE)).await;
    assert_eq!((keys(&list), list.is_complete), (vec!["order:0".into(), "order:1".into(), "order:2".into()], true));
    assert!(list.has_quorum() && list.failures.is_empty());
    let list = manager.list(ListOptions::new("*").limit(2).timeout(PATIENCE)).await;
    assert_eq!((list.keys.len(), list.is_complete), (2, false));
    nodes[0].kill();
    let list = observer.list(ListOptions::new("*").limit(10).timeout(PATIENCE)).await;
    assert_eq!((keys(&list), list.failures.len(), list.has_quorum()), (vec!["order:7".into()], 1, true));
    drop((guards, other));
}
