//! Events about servers. The tests provoke each event, and observe it.

use crate::subscriber::{event, events, keep_all};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::time::Duration;
use tracing::Level;

fn label(server: &RedisServer) -> String {
    format!("127.0.0.1:{}", server.port())
}

async fn manager(nodes: &Nodes) -> LockManager {
    keep_all();
    let manager = LockManager::builder().nodes(nodes.urls()).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

#[tokio::test]
async fn node_down_and_node_up_are_logged_on_each_change() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let node = label(&nodes[0]);
    assert_eq!(event("node_up", &node).await.level, Level::INFO);
    nodes[0].stop().await;
    assert_eq!(event("node_down", &node).await.level, Level::WARN);
    // All further tries are counted for a minute.
    eventually(PATIENCE, "it cannot be reached", async || {
        let found = events("node_down", &node);
        if found.iter().any(|told| told.field("error").contains("refused")) {
            Ok(())
        } else {
            Err(format!("{found:#?}"))
        }
    })
    .await;
    nodes[0].restart_empty().await;
    let told = event("node_restarted", &node).await;
    assert!(told.level == Level::WARN && told.field("abstains_ms").parse::<u64>().unwrap() > 1000, "{told:?}");
    let reconnections = async || manager.stats().nodes.iter().map(|stats| stats.reconnections).collect::<Vec<_>>();
    eventually_eq(PATIENCE, "the node is counted", vec![1, 0, 0], reconnections).await;
    // The reconnect is reported, although the first connection was reported shortly before.
    eventually(PATIENCE, "it is back", async || match events("node_up", &node).len() {
        2 => Ok(()),
        other => Err(format!("{other} times")),
    })
    .await;
    // The last event is the reconnect.
    let all: Vec<_> = ["node_up", "node_down"].iter().flat_map(|name| events(name, &node)).collect();
    assert_eq!(all.iter().max_by_key(|told| told.before).unwrap().name, "node_up", "{all:#?}");
    // A new connection to the same process, which still abstains, is not a restart.
    let restarts = events("node_restarted", &node).len();
    assert!(nodes[0].inspect().kill_clients().await > 0);
    eventually_eq(PATIENCE, "it has come back again", vec![2, 0, 0], reconnections).await;
    assert_eq!(events("node_restarted", &node).len(), restarts);
}

#[tokio::test]
async fn restart_of_a_trusted_single_server_is_logged() {
    let nodes = Nodes::start(1).await;
    let _manager = manager(&nodes).await;
    nodes[0].stop().await;
    nodes[0].restart_empty().await;
    assert_eq!(event("node_restarted", &label(&nodes[0])).await.field("abstains_ms"), "0");
}

#[tokio::test]
async fn start_of_all_servers_at_once_is_not_reported_as_restarts() {
    keep_all();
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    // It returns when all servers are known.
    drop(manager.check().await);
    for node in nodes.iter() {
        assert_eq!(events("node_restarted", &label(node)).len(), 0);
    }
}

#[tokio::test]
async fn forward_clock_step_is_logged() {
    let nodes = Nodes::start_with(1, |_, builder| builder.own_clock()).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(LockRequest::new("nodes:clock").ttl(Duration::from_secs(2))).await.unwrap();
    // The node timeout is short, and a busy machine may be late.
    eventually(PATIENCE, "it is extended", async || guard.extend().await).await;
    nodes[0].set_clock(1);
    let told = event("clock_step", &label(&nodes[0])).await;
    assert!(told.level == Level::WARN && told.field("step_ms").parse::<u64>().unwrap() >= 900, "{told:?}");
}

#[tokio::test]
async fn settings_that_differ_are_reported_with_both_sets() {
    let nodes = Nodes::start(3).await;
    manager(&nodes).await.check().await;
    let longer = LockManager::builder()
        .nodes(nodes.urls())
        .tuning(|tuning| tuning.max_ttl(Duration::from_millis(61_234)))
        .build()
        .unwrap();
    for _ in 0..3 {
        longer.acquire("nodes:settings").await.unwrap().release().await.unwrap();
    }
    let reported = event("settings_differ", "61234").await;
    assert_eq!((reported.level, reported.field("times"), reported.field("others")), (Level::WARN, "1", "1"));
    assert_eq!(reported.field("settings"), "max_ttl");
    let [ours, theirs] = ["ours", "theirs"].map(|name| reported.field(name));
    assert!(ours.starts_with("n=3 q=2 d=0 restart=abstain ttl=61234") && theirs.contains(" ttl=60000"), "{reported:?}");
    let node = reported.field("node");
    longer.check().await;
    let again = events("settings_differ", "61234").into_iter().filter(|other| other.field("node") == node).count();
    assert_eq!(again, 1, "once a minute");
}

#[tokio::test]
async fn two_addresses_of_one_server_are_logged() {
    keep_all();
    let server = RedisServer::start().await;
    let urls = ["127.0.0.1", "localhost"].map(|host| format!("redis://{host}:{}", server.port()));
    let _manager = LockManager::builder().nodes(urls).build().unwrap();
    let told = event("same_server", &server.port().to_string()).await;
    assert_eq!((told.level, told.field("times")), (Level::ERROR, "1"));
    let tries = async || {
        let stats: String = server.inspect().command(&["INFO", "stats"]).await;
        let tries = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap().trim();
        if tries.parse::<u64>().unwrap() > 12 { Ok(()) } else { Err(tries.to_owned()) }
    };
    eventually(PATIENCE, "it is tried again and again", tries).await;
    // This is not a restart, and is reported once.
    let port = server.port().to_string();
    assert_eq!((events("node_restarted", &port).len(), events("same_server", &port).len()), (0, 1));
}

#[tokio::test]
async fn renewal_of_a_lock_whose_queue_is_forbidden_is_logged() {
    keep_all();
    let server = RedisServer::builder().user("app", "secret", "~nodes:* &* +@all").start().await;
    let manager = LockManager::builder().node(server.url()).build().unwrap();
    let held = manager.acquire(LockRequest::new("nodes:beside").ttl(Duration::from_secs(2))).await.unwrap();
    let told = event("queue_forbidden", &label(&server)).await;
    assert!(told.level == Level::WARN && told.field("times") == "1", "{told:?}");
    assert!(held.is_held());
    held.release().await.unwrap();
    assert_eq!(server.inspect().get("nodes:beside").await, None);
}

#[tokio::test]
async fn refused_subscription_is_logged() {
    keep_all();
    let server = RedisServer::builder().user("app", "secret", "~* +@all resetchannels").start().await;
    let manager = LockManager::builder().node(server.url()).build().unwrap();
    let held = manager.acquire("nodes:deaf").await.unwrap();
    let error = manager.acquire(LockRequest::new("nodes:deaf").wait(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    let told = event("not_listening", &label(&server)).await;
    assert!(told.level == Level::WARN && told.field("error").contains("NOPERM"), "{told:?}");
    drop(held);
}
