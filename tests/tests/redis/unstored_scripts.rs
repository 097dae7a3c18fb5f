//! Servers and proxies that do not store scripts: each command contains the text of its script. If a server runs no scripts at all, no
//! lock is acquired, because it could not be released.

use crate::support::{assert_nothing_left, builder, wait_until_queued};
use crate::waiters::{obtained, patient, waiting};
use redlock_runtime::{LockError, LockManager, LockPart, LockRequest};
use redlock_tests::{Builder, Cluster, Nodes, PATIENCE, RedisServer, eventually};
use std::time::Duration;
use tokio::task::JoinSet;

/// Ways in which `SCRIPT LOAD` or `EVALSHA` is refused.
const REFUSALS: [&str; 4] = ["SCRIPT", "EVALSHA", "-script", "-evalsha"];

fn refusing(builder: Builder, refusal: &str) -> Builder {
    match refusal.strip_prefix('-') {
        Some(_) => builder.password("x").user("alice", "w0nder", &format!("~* &* +@all {refusal}")),
        None => builder.without_command(refusal),
    }
}

fn kinds() -> Vec<LockRequest> {
    let key = || LockRequest::new("order:7");
    vec![
        key(),
        LockRequest::shared("order:7"),
        key().permits(2),
        key().once_per(Duration::from_secs(1)),
        LockRequest::all(["order:7", "order:8"]),
        LockRequest::all([LockPart::shared("order:7"), "order:8".into()]),
        LockRequest::path("/order/7"),
    ]
}

async fn use_every_kind(manager: &LockManager) {
    for request in kinds() {
        let guard = manager.acquire(request.wait(PATIENCE)).await.unwrap();
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
    }
    let fenced = manager.acquire(LockRequest::new("order:7").fencing()).await.unwrap();
    fenced.extend().await.unwrap();
    fenced.release().await.unwrap();
}

/// Waits until no lock is left. Ignores settings, windows and fencing numbers.
async fn wait_until_free(server: &RedisServer) {
    eventually(PATIENCE, "no lock is left", async || {
        let mut keys = server.inspect().keys().await;
        keys.retain(|key| !key.contains("redlock:f:"));
        if keys.is_empty() { Ok(()) } else { Err(keys) }
    })
    .await;
}

/// A new connection sends no script that its server has. After a restart of the server, the first one sends all of them.
#[tokio::test]
async fn connection_loads_only_the_scripts_that_the_server_lacks() {
    let nodes = Nodes::start(1).await;
    let inspector = nodes[0].inspect();
    let ready = async || {
        let manager = builder(nodes.urls()).build().unwrap();
        manager.ready().await.unwrap();
        assert!(manager.shutdown().await);
        inspector.calls("script|load").await
    };
    let all = ready().await;
    if inspector.calls("script").await > 0 {
        return eprintln!("left out: servers before Redis 7 do not count subcommands");
    }
    assert!(all > 10);
    assert_eq!(ready().await, all, "the server has them");
    inspector.command::<()>(&["SCRIPT", "FLUSH"]).await;
    inspector.command::<String>(&["SCRIPT", "LOAD", "return 7"]).await;
    assert_eq!(ready().await, 2 * all + 1);
}

/// A user who may not ask for stored scripts loads all of them.
#[tokio::test]
async fn user_without_script_exists_loads_all_scripts() {
    let rules = "~* &* +@all -script +script|load";
    let nodes = Nodes::start_with(1, |_, builder| builder.password("x").user("alice", "w0nder", rules)).await;
    let manager = builder(nodes.urls()).build().unwrap();
    use_every_kind(&manager).await;
    assert!(manager.shutdown().await);
}

#[tokio::test]
async fn locks_work_without_stored_scripts() {
    for refusal in REFUSALS {
        let nodes = Nodes::start_with(1, |_, builder| refusing(builder, refusal)).await;
        let (ours, theirs) = (builder(nodes.urls()).build().unwrap(), builder(nodes.urls()).build().unwrap());
        for manager in [&ours, &theirs] {
            manager.ready().await.unwrap_or_else(|error| panic!("{refusal}: {error}"));
        }
        let report = ours.check().await;
        let capabilities = report.nodes[0].capabilities;
        assert_eq!((capabilities.locks, capabilities.fencing), (Some(true), Some(true)), "{refusal}: {report}");
        assert!(
            !capabilities.stores_scripts && report.to_string().contains(", scripts by EVAL, "),
            "{refusal}: {report}"
        );
        // Each connection asks for the permission.
        let asked = nodes[0].inspect().calls("evalsha").await;
        use_every_kind(&ours).await;
        // A hand-over, and many extensions in one batch.
        let held = ours.acquire("order:9").await.unwrap();
        let call = waiting(&theirs, patient("order:9"));
        wait_until_queued(&nodes, "order:9", 1).await;
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
        let mut guards = Vec::new();
        for number in 0..20 {
            guards.push(ours.acquire(format!("many:{number}")).await.unwrap());
        }
        // The watchdog sends its renewals in one batch. These do the same if they come at the same time.
        let mut extending = JoinSet::new();
        for guard in guards {
            extending.spawn(async move { guard.extend().await.map(|()| drop(guard)) });
        }
        for extended in extending.join_all().await {
            extended.unwrap();
        }
        assert_eq!(nodes[0].inspect().calls("evalsha").await, asked, "{refusal}");
        wait_until_free(&nodes[0]).await;
        assert!(ours.shutdown().await && theirs.shutdown().await, "{refusal}");
    }
}

#[tokio::test]
async fn locks_work_in_a_cluster_without_stored_scripts() {
    let cluster = Cluster::start_with(3, 0, |builder| builder.without_command("SCRIPT")).await;
    let manager = builder([cluster.url()]).build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    let key = cluster.key_on(0, "order").await;
    let guard = manager.acquire(&key).await.unwrap();
    let migration = cluster.begin_move(cluster.slot(&key).await, 1).await;
    migration.move_keys().await;
    guard.extend().await.unwrap();
    migration.finish().await;
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    assert!(manager.shutdown().await);
}

#[tokio::test]
async fn connection_without_scripts_acquires_no_lock() {
    for hidden in [&["EVALSHA", "EVAL"][..], &["SCRIPT", "EVAL"], &["SCRIPT", "EVALSHA", "EVAL"]] {
        let hide = |builder, command: &&str| Builder::without_command(builder, command);
        let server = hidden.iter().fold(RedisServer::builder(), hide).start().await;
        let manager = builder([server.url()]).build().unwrap();
        let error = manager.ready().await.unwrap_err();
        assert!(matches!(error, LockError::Refused { .. }), "{hidden:?}: {error:?}");
        for request in kinds() {
            let error = manager.acquire(request.wait(PATIENCE)).await.unwrap_err();
            assert!(matches!(error, LockError::Refused { .. }), "{hidden:?}: {error:?}");
        }
        assert_eq!(server.inspect().keys().await, [""; 0], "{hidden:?}");
    }
}

#[tokio::test]
async fn script_source_never_appears_in_messages() {
    for hidden in [&["SCRIPT"][..], &["EVAL"], &["EVALSHA"], &["SCRIPT", "EVAL"], &["EVALSHA", "EVAL"]] {
        let hide = |builder, command: &&str| Builder::without_command(builder, command);
        let server = hidden.iter().fold(RedisServer::builder(), hide).start().await;
        let manager = builder([server.url()]).build().unwrap();
        let ready = manager.ready().await;
        let calls = [
            manager.try_acquire("order:7").await.map(drop),
            manager.acquire(LockRequest::new("order:8").fencing()).await.map(drop),
        ];
        let report = manager.check().await;
        let inspection = manager.inspect("order:7").await;
        let shown = format!(
            "{ready:?} {ready:#?} {calls:?} {calls:#?} {report} {report:#?} {:?} {manager:?} {inspection} {inspection:?}",
            report.warnings()
        );
        for part in ["local ", "redis.call", "redis.pcall", "KEYS[", "with args"] {
            assert!(!shown.contains(part), "{hidden:?}: {part} in {shown}");
        }
    }
}

#[tokio::test]
async fn scripts_are_stored_again_after_the_permission_is_granted() {
    let nodes = Nodes::start_with(1, |_, builder| refusing(builder, "-script")).await;
    let manager = builder(nodes.urls()).build().unwrap();
    manager.acquire("order:7").await.unwrap().release().await.unwrap();
    assert!(!manager.check().await.nodes[0].capabilities.stores_scripts);
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "+script"]).await;
    nodes[0].inspect().command::<u64>(&["CLIENT", "KILL", "USER", "alice"]).await;
    eventually(PATIENCE, "they are stored", async || {
        let report = manager.check().await;
        if report.nodes[0].capabilities.stores_scripts { Ok(()) } else { Err(report.to_string()) }
    })
    .await;
    assert_nothing_left(&manager, &nodes).await;
}
