//! Tests with names that lead to other servers while the servers before still run.

use crate::node::redis::made_up::{Answer, lead, looks};
use crate::tuning::AfterRestart;
use crate::{LockError, LockManager, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const KEY: &str = "order:7";

/// Long enough that no lease ends during a test.
const TTL: Duration = Duration::from_secs(600);

fn at(server: &RedisServer) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, server.port()).into()
}

#[expect(clippy::unnecessary_wraps, reason = "an answer can be a failure")]
fn to(server: &RedisServer) -> Answer {
    Some(vec![at(server)])
}

/// Returns a manager with one node, whose name leads to `server`.
async fn manager_of_name(name: &str, server: &RedisServer) -> LockManager {
    lead(name, [to(server)]);
    let manager = LockManager::builder().node(format!("redis://{name}:{}", server.port())).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

fn request() -> LockRequest {
    LockRequest::new(KEY).ttl(TTL)
}

async fn wait_for_looks(name: &str, many: usize) {
    eventually(PATIENCE, "the name is looked up", async || {
        let looks = looks(name);
        if looks >= many { Ok(()) } else { Err(looks) }
    })
    .await;
}

fn reconnections(manager: &LockManager) -> u64 {
    manager.stats().nodes.iter().map(|node| node.reconnections).sum()
}

#[tokio::test]
async fn server_whose_name_moves_is_disconnected_while_running() {
    // Without RESP3, wake-ups come on a separate connection.
    for (name, has_hello) in [("moved-3.test", true), ("moved-2.test", false)] {
        let builder = || {
            let builder = RedisServer::builder();
            if has_hello { builder } else { builder.without_command("HELLO") }
        };
        let (before, after) = (builder().start().await, builder().start().await);
        let ours = manager_of_name(name, &before).await;
        let guard = ours.acquire(request()).await.unwrap();
        let theirs = LockManager::builder().node(after.url()).build().unwrap();
        let theirs = theirs.acquire(request()).await.unwrap();
        assert!(guard.is_held(), "no other server is known yet");

        lead(name, [to(&after)]);
        eventually_eq(PATIENCE, "the lock is lost", false, async || guard.is_held()).await;
        assert!(before.is_running() && before.inspect().get(KEY).await.is_some(), "the server before still has it");
        eventually(PATIENCE, "the other server refuses the lock", async || match ours.try_acquire(KEY).await {
            Err(LockError::Contended { .. }) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        let (released, acquired) = tokio::join!(theirs.release(), ours.acquire(request().wait(PATIENCE)));
        released.unwrap();
        acquired.unwrap().release().await.unwrap();
        assert_eq!(reconnections(&ours), 1);
        // Nothing of that server was voted on after it was left.
        drop(guard);
        assert_eq!(after.inspect().get(KEY).await, None);
    }
}

#[tokio::test]
async fn votes_of_a_disconnected_server_are_void_before_the_next_connects() {
    let name = "moved-to-replica.test";
    let (before, master) = (RedisServer::start().await, RedisServer::start().await);
    let replica = RedisServer::builder().replica_of(&master).start().await;
    let manager = manager_of_name(name, &before).await;
    let guard = manager.acquire(request()).await.unwrap();
    lead(name, [to(&replica)]);
    eventually_eq(PATIENCE, "the lock is lost", false, async || guard.is_held()).await;
    let error = manager.try_acquire("order:8").await.expect_err("a replica takes no locks");
    assert!(error.to_string().contains("is a replica"), "{error}");
    assert_eq!(before.inspect().get("order:8").await, None);
}

#[tokio::test]
async fn server_that_replaces_a_moved_one_abstains_even_if_both_are_durable() {
    let name = "moved-of-three.test";
    let durable = || RedisServer::builder().config("appendonly", &["yes"]).config("appendfsync", &["always"]);
    let nodes = Nodes::start_with(3, |_, _| durable()).await;
    let after = durable().start().await;
    lead(name, [to(&nodes[0])]);
    let urls = [format!("redis://{name}:1"), nodes[1].url(), nodes[2].url()];
    let manager = LockManager::builder()
        .nodes(urls)
        .tuning(|tuning| tuning.after_restart(AfterRestart::Abstain))
        .build()
        .unwrap();
    let errors = async || manager.check().await.nodes.into_iter().filter_map(|node| node.error).collect::<Vec<_>>();
    eventually_eq(PATIENCE, "all nodes count", Vec::new(), errors).await;
    lead(name, [to(&after)]);
    eventually(PATIENCE, "the other server abstains", async || {
        let report = manager.check().await;
        let run_id = after.inspect().info("server", "run_id").await;
        match &report.nodes[0] {
            node if node.run_id.as_deref() != run_id.as_deref() => Err(report.to_string()),
            node if matches!(node.error, Some(NodeError::RecentlyRestarted(_))) => Ok(()),
            node => panic!("a server that was never asked counts: {node}"),
        }
    })
    .await;
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn dns_replies_that_prove_no_move_are_ignored() {
    let name = "stays.test";
    let server = RedisServer::builder().config("bind", &["127.0.0.1", "127.0.0.2"]).start().await;
    let (other, third) = (RedisServer::start().await, RedisServer::start().await);
    let elsewhere: Answer = Some(vec![([127, 0, 0, 2], server.port()).into()]);
    let nobody: Answer = Some(vec![([127, 0, 0, 3], server.port()).into()]);
    let empty: Answer = Some(Vec::new());
    let with_other: Answer = Some(vec![at(&other), ([127, 0, 0, 2], server.port()).into()]);
    let manager = manager_of_name(name, &server).await;
    let guard = manager.acquire(request()).await.unwrap();
    let table: [(&str, Vec<Answer>); 8] = [
        ("no answer", vec![None]),
        ("no address", vec![empty.clone()]),
        ("an address that nobody has", vec![nobody]),
        ("another address of the same server", vec![elsewhere]),
        ("the server is one of two", vec![with_other]),
        ("another server once", vec![to(&other), to(&server)]),
        ("two servers, each once", vec![to(&other), to(&third), to(&server)]),
        ("another server, with failures between", vec![to(&other), None, to(&other), empty, to(&server)]),
    ];
    for (case, answers) in table {
        let many = answers.len() + 3;
        lead(name, answers);
        wait_for_looks(name, many).await;
        assert!(guard.is_held() && reconnections(&manager) == 0, "{case}");
    }
}

#[tokio::test]
async fn check_warns_of_a_name_that_resolves_to_several_servers() {
    let name = "several.test";
    let server = RedisServer::builder().config("bind", &["127.0.0.1", "127.0.0.2"]).start().await;
    let other = RedisServer::start().await;
    let manager = manager_of_name(name, &server).await;
    let warned = async || {
        let warnings = manager.check().await.warnings();
        warnings.into_iter().filter(|warning| warning.contains("its name leads to")).collect::<Vec<_>>()
    };
    lead(name, [Some(vec![at(&server), ([127, 0, 0, 2], server.port()).into()])]);
    assert_eq!(warned().await, Vec::<String>::new());
    lead(name, [Some(vec![at(&server), at(&other)])]);
    let warnings = warned().await;
    let named = |server| warnings[0].contains(&at(server).to_string());
    assert!(warnings[0].contains("2 different servers") && named(&server) && named(&other), "{warnings:?}");
}
