//! Queues of waiters whose processes are gone.

use crate::support::{assert_nothing_left, manager};
use crate::waiters::{obtained, queue, queue_of, waiting};
use redlock_runtime::LockRequest;
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually_eq};

/// Puts waiters into the queue of `key`, ahead of all others: `many` for each of `processes`, which do not listen.
async fn put_absent_waiters(
    node: &RedisServer,
    key: &str,
    class: &str,
    manager_id: &str,
    processes: usize,
    many: usize,
) {
    let ids: Vec<_> = (0..processes).map(|number| format!("{number:08x}{}", &manager_id[8..])).collect();
    let token =
        |at: usize| format!("0000{:04x}-{:04x}-7000-8000-000000000000@{}", at >> 16, at & 0xffff, ids[at % processes]);
    for chunk in (0..processes * many).collect::<Vec<_>>().chunks(5000) {
        let tokens: Vec<_> = chunk.iter().map(|at| token(*at)).collect();
        let mut command = vec!["ZADD".to_owned(), queue_of(key)];
        command.extend(tokens.into_iter().flat_map(|token| [class.to_owned(), token]));
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        node.inspect().command::<usize>(&command).await;
    }
}

fn request(is_shared: bool) -> LockRequest {
    let request = if is_shared { LockRequest::shared("order:7") } else { LockRequest::new("order:7") };
    request.wait(PATIENCE)
}

/// Returns the number of publications and of scripts while a lock passes from its holder to the live waiter behind absent ones.
async fn passed_on(is_shared: bool, processes: usize, many: usize) -> (u64, u64) {
    let nodes = Nodes::start(1).await;
    let node = &nodes[0];
    let (holder, other) = (manager(&nodes).await, manager(&nodes).await);
    let held = holder.acquire("order:7").await.unwrap();
    let id = held.token().as_str().split_once('@').unwrap().1.to_owned();
    let next = waiting(&other, request(is_shared));
    eventually_eq(PATIENCE, "the call waits", 1, async || queue(node.inspect(), "order:7").await.len()).await;
    put_absent_waiters(node, "order:7", if is_shared { "1" } else { "0" }, &id, processes, many).await;
    let calls = async || (node.inspect().calls("publish").await, node.inspect().calls("evalsha").await);
    let before = calls().await;
    held.release().await.unwrap();
    let next = obtained(next).await;
    let after = calls().await;
    // A reader that asks by itself meanwhile does not wait for absent readers.
    assert!(is_shared || queue(node.inspect(), "order:7").await.is_empty());
    drop(next);
    node.inspect().command::<usize>(&["DEL", &queue_of("order:7")]).await;
    assert_nothing_left(&other, &nodes).await;
    (after.0 - before.0, after.1 - before.1)
}

#[tokio::test]
async fn absent_process_is_notified_once_for_all_its_waiters() {
    for is_shared in [false, true] {
        let (published, scripts) = passed_on(is_shared, 1, 10_000).await;
        assert!(published < 20, "shared: {is_shared}, {published} publications for 10 000 waiters of one process");
        assert!(scripts >= 3, "shared: {is_shared}, {scripts} scripts: one command removes about 4000 waiters");
    }
}

/// One command finds at most 128 absent processes, so the release is repeated at once.
#[tokio::test]
async fn release_behind_many_absent_processes_takes_several_commands() {
    for is_shared in [false, true] {
        let (published, scripts) = passed_on(is_shared, 1000, 2).await;
        assert!(published >= 1000, "shared: {is_shared}, {published} publications");
        assert!(scripts >= 1000 / 128, "shared: {is_shared}, {scripts} scripts for 1000 absent processes");
    }
}

#[tokio::test]
async fn reader_skips_queued_writers_of_many_absent_processes() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let id = manager.acquire("another").await.unwrap().token().as_str().split_once('@').unwrap().1.to_owned();
    put_absent_waiters(&nodes[0], "order:7", "0", &id, 1000, 2).await;
    manager.acquire(request(true)).await.unwrap().release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

/// Absent readers and writers of one process wait in turns, so that no two of them can be removed together.
#[tokio::test]
async fn release_behind_absent_readers_and_writers_takes_several_commands() {
    let nodes = Nodes::start(1).await;
    let (holder, other) = (manager(&nodes).await, manager(&nodes).await);
    let held = holder.acquire("order:7").await.unwrap();
    let id = held.token().as_str().split_once('@').unwrap().1.to_owned();
    let next = waiting(&other, request(false));
    eventually_eq(PATIENCE, "the call waits", 1, async || queue(nodes[0].inspect(), "order:7").await.len()).await;
    put_absent_waiters(&nodes[0], "order:7", "0", &id, 1, 4000).await;
    let odd: Vec<_> = queue(nodes[0].inspect(), "order:7").await.into_iter().skip(1).step_by(2).take(1999).collect();
    let name = queue_of("order:7");
    let members = odd.iter().flat_map(|token| ["1", token]);
    let command: Vec<_> = ["ZADD", &name, "XX"].into_iter().chain(members).collect();
    nodes[0].inspect().command::<usize>(&command).await;
    let scripts = nodes[0].inspect().calls("evalsha").await;
    held.release().await.unwrap();
    obtained(next).await.release().await.unwrap();
    let scripts = nodes[0].inspect().calls("evalsha").await - scripts;
    assert!(scripts >= 4000 / 128, "{scripts} scripts for 4000 waiters that are removed one by one");
    assert_nothing_left(&other, &nodes).await;
}
