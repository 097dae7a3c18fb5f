//! A lying cluster node: its slot map would make a process connect to any number of hosts, and send its login there.

use crate::refusals::{WRONG_PASSWORD, assert_retried_seldom};
use crate::support::{builder, causes};
use redlock_runtime::LockManager;
use redlock_tests::{FakeServer, PATIENCE, eventually};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Returns the entry of `CLUSTER SLOTS` for a master at `port` that has the slots from `first` to `last`.
fn shard(first: usize, last: usize, port: usize) -> String {
    format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{port:040}\r\n")
}

fn array(items: &[String]) -> String {
    format!("*{}\r\n{}", items.len(), items.concat())
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Answers as a master does, except for commands about the cluster or about locks.
pub(crate) fn answer_of_master(command: &str) -> String {
    match command.split_once(' ').unwrap_or((command, "")) {
        ("HELLO", _) => "-ERR unknown command 'HELLO'\r\n".to_owned(),
        ("SCRIPT", code) => bulk(redis::Script::new(code.strip_prefix("LOAD ").unwrap_or_default()).get_hash()),
        ("INFO", _) => bulk("redis_version:7.0.0\r\nrun_id:1\r\nuptime_in_seconds:99999\r\nrole:master\r\n"),
        ("CLUSTER", "INFO") => bulk("cluster_state:ok\r\ncluster_current_epoch:1\r\n"),
        ("CLUSTER", "MYID") => bulk(&"1".repeat(40)),
        ("CONFIG" | "TIME", _) => "-NOPERM no\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}

fn manager_at(port: u16) -> LockManager {
    builder([format!("redis+cluster://:secret@127.0.0.1:{port}")]).build().unwrap()
}

#[tokio::test]
async fn slot_map_with_too_many_masters_is_rejected_before_connecting() {
    let stranger = FakeServer::start(answer_of_master).await;
    let port = usize::from(stranger.port());
    let slots = (0..1001).map(|slot| shard(slot, slot, if slot == 7 { port } else { slot + 1 }));
    let slots = array(&slots.collect::<Vec<_>>());
    let node = FakeServer::start(move |command| match command {
        "CLUSTER SLOTS" => slots.clone(),
        other => answer_of_master(other),
    })
    .await;
    let manager = manager_at(node.port());
    eventually(PATIENCE, "the reason is known", async || {
        let error = manager.try_acquire("order:7").await.unwrap_err();
        let [(_, cause)] = causes(&error)[..] else { panic!("{error:?}") };
        if cause.to_string().contains("more than 1000 masters") { Ok(()) } else { Err(cause.to_string()) }
    })
    .await;
    assert!(stranger.received().is_empty());
}

#[tokio::test]
async fn cluster_that_refuses_after_a_while_is_asked_seldom() {
    let (is_refusing, port) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let cluster = FakeServer::start({
        let (is_refusing, port) = (Arc::clone(&is_refusing), Arc::clone(&port));
        move |command| match command {
            _ if is_refusing.load(Ordering::Relaxed) => WRONG_PASSWORD.to_owned(),
            "CLUSTER SLOTS" => array(&[shard(0, 16_383, port.load(Ordering::Relaxed))]),
            other => answer_of_master(other),
        }
    })
    .await;
    port.store(cluster.port().into(), Ordering::Relaxed);
    let manager = manager_at(cluster.port());
    eventually(PATIENCE, "it is connected", async || {
        let node = &manager.stats().nodes[0];
        if node.is_up { Ok(()) } else { Err(cluster.received()) }
    })
    .await;
    let (start, before) = (Instant::now(), cluster.connections());
    is_refusing.store(true, Ordering::Relaxed);
    cluster.disconnect();
    assert_retried_seldom("a cluster", start, || cluster.connections() - before).await;
}
