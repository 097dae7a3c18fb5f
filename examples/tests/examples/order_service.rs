//! Tests of `order_service` with several processes and one Redis server.

use crate::http::{self, Reply};
use crate::program::{self, alone};
use crate::service::Service;
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;

const SOON: Duration = Duration::from_millis(200);
/// Payment time that a test on a busy machine can observe. It is shorter than the 2 s that a change waits.
const VISIBLE: Duration = Duration::from_millis(1100);
/// Longer than any lease and any timeout here.
const NEVER: Duration = Duration::from_secs(3600);

async fn charges(server: &RedisServer, order: u64) -> Vec<u64> {
    server.inspect().command(&["LRANGE", &format!("bank:charges:{order}"), "0", "-1"]).await
}

async fn wait_until_locked(server: &RedisServer, order: u64) {
    let key = format!("locks:order:{order}");
    eventually(PATIENCE, "the order is locked", async || server.inspect().get(&key).await.ok_or(())).await;
}

/// Waits until no lock is left, which is far sooner than the end of a 30 s lease.
async fn assert_no_lock(server: &RedisServer) {
    eventually(PATIENCE, "no lock is left", async || {
        let left = server.inspect().mentions("locks:").await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

/// Longest lease here, in seconds.
const TTL: u64 = 30;

/// Asserts that another call holds the lock, and that `Retry-After` is at most `most` seconds.
#[track_caller]
fn assert_busy(reply: &Reply, most: u64) {
    assert_eq!(reply.status, 409, "{reply:?}");
    assert!(reply.retry_after.is_none_or(|seconds| (1..=most).contains(&seconds)), "{reply:?}");
    assert_eq!(reply.body, "another request is working on this: try again later\n");
}

/// Asserts that the response reports a missing quorum. Its `Retry-After` is the default of 2 s.
#[track_caller]
fn assert_unavailable(reply: &Reply) {
    assert_eq!((reply.status, reply.retry_after), (503, Some(2)), "{reply:?}");
    assert_eq!(reply.body, "this cannot be done at the moment: try again later\n");
}

#[track_caller]
fn assert_captured_before(reply: &Reply, order: u64) {
    assert_eq!((reply.status, reply.retry_after), (409, None), "{reply:?}");
    assert_eq!(reply.body, json!({"error": "captured", "message": format!("order {order} is paid already")}));
}

#[tokio::test]
async fn two_services_capture_each_order_once() {
    const ORDERS: usize = 8;
    const CALLS_PER_SERVICE: usize = 3;
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let services = [Service::start(&server.url(), SOON).await, Service::start(&server.url(), SOON).await];
    let mut calls = JoinSet::new();
    for _ in 0..ORDERS {
        let order = services[0].create().await;
        for address in [services[0].address(), services[1].address()].repeat(CALLS_PER_SERVICE) {
            let path = format!("/orders/{order}/capture");
            calls.spawn(async move { (order, http::receive(http::send(address, "POST", &path, "").await).await) });
        }
    }
    let (won, lost): (Vec<_>, Vec<_>) = calls.join_all().await.into_iter().partition(|(_, reply)| reply.status == 200);
    assert_eq!((won.len(), lost.len()), (ORDERS, ORDERS * (2 * CALLS_PER_SERVICE - 1)), "{won:?} {lost:?}");
    for (order, reply) in won {
        assert_eq!(reply.body, json!({"id": order, "amount": 1999, "status": "captured"}));
        assert_eq!(charges(&server, order).await, [1999], "order {order}");
    }
    let (busy, late): (Vec<_>, Vec<_>) = lost.iter().partition(|(_, reply)| reply.body.is_string());
    assert!(!busy.is_empty(), "no two calls met: {late:?}");
    assert!(busy.iter().any(|(_, reply)| reply.retry_after.is_some()), "{busy:?}");
    for (_, reply) in busy {
        assert_busy(reply, TTL);
    }
    for (order, reply) in late {
        assert_captured_before(reply, *order);
    }
    assert_no_lock(&server).await;
}

#[tokio::test]
async fn locked_order_returns_conflict_with_retry_after() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), SOON).await;
    let order = service.create().await;
    let key = format!("locks:order:{order}");
    server.inspect().command::<()>(&["SET", &key, "somebody else", "NX", "PX", "60000"]).await;

    let tries = async || server.inspect().calls("set").await;
    let before = tries().await;
    let busy = service.capture(order).await;
    assert_busy(&busy, 60);
    assert_eq!(busy.retry_after, Some(5), "the lease of the other one is known: {busy:?}");
    let captured = tries().await;
    assert_eq!(captured, before + 1, "one try and no more");
    let queued = async || server.inspect().calls("zadd").await;
    let before = queued().await;
    let busy = service.request("PATCH", &format!("/orders/{order}"), r#"{"amount": 1}"#).await;
    assert_busy(&busy, 60);
    assert_eq!(busy.retry_after, Some(5), "as the queue has told it: {busy:?}");
    assert!(queued().await > before, "it waits in the queue");
    assert!(charges(&server, order).await.is_empty());
    assert_eq!(server.inspect().get(&key).await.as_deref(), Some("somebody else"));

    server.inspect().command::<()>(&["DEL", &key]).await;
    assert_eq!(service.capture(order).await.status, 200);
}

#[tokio::test]
async fn order_cannot_change_during_its_capture() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), VISIBLE).await;
    let order = service.create().await;
    let path = format!("/orders/{order}");
    let changed = service.request("PATCH", &path, r#"{"amount": 500}"#).await;
    assert_eq!((changed.status, changed.body["amount"].as_u64()), (200, Some(500)));
    // The response may arrive before the release: without this line, the next wait could see the old lock.
    assert_no_lock(&server).await;

    let capture = service.send("POST", &format!("{path}/capture"), "").await;
    wait_until_locked(&server, order).await;
    let change = service.request("PATCH", &path, r#"{"amount": 1}"#).await;
    assert_captured_before(&change, order);
    assert_eq!(http::receive(capture).await.status, 200);
    assert_eq!(charges(&server, order).await, [500]);
    let expected = json!({"id": order, "amount": 500, "status": "captured"});
    assert_eq!(service.request("GET", &path, "").await.body, expected);
}

#[tokio::test]
async fn unknown_order_returns_not_found_and_leaves_no_lock() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), SOON).await;
    for (method, path) in [("GET", "/orders/7"), ("POST", "/orders/7/capture"), ("PATCH", "/orders/7")] {
        let reply = service.request(method, path, r#"{"amount": 1}"#).await;
        assert_eq!((reply.status, reply.retry_after), (404, None), "{method} {path}: {reply:?}");
        assert_eq!(reply.body, json!({"error": "not_found", "message": "there is no order 7"}));
    }
    assert_no_lock(&server).await;
}

#[tokio::test]
async fn client_disconnect_releases_the_order_lock() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), NEVER).await;
    let order = service.create().await;
    let capture = service.send("POST", &format!("/orders/{order}/capture"), "").await;
    wait_until_locked(&server, order).await;
    drop(capture);
    assert_no_lock(&server).await;
    assert!(charges(&server, order).await.is_empty());
}

#[tokio::test]
async fn unreachable_redis_returns_unavailable_until_it_restarts() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), SOON).await;
    let order = service.create().await;
    server.kill();
    for (method, path) in [("POST", "/orders/1/capture"), ("PATCH", "/orders/1"), ("GET", "/orders/1")] {
        let reply = service.request(method, path, r#"{"amount": 1}"#).await;
        if method == "GET" {
            assert_eq!((reply.status, reply.retry_after), (503, Some(5)), "{method} {path}: {reply:?}");
            assert_eq!(reply.body["error"], "unavailable");
        } else {
            assert_unavailable(&reply);
        }
    }
    server.restart_empty().await;
    eventually(PATIENCE, "the service finds Redis again", async || {
        let reply = service.capture(order).await;
        if reply.status == 404 { Ok(()) } else { Err(reply) }
    })
    .await;
}

#[tokio::test]
async fn capture_needs_a_majority_of_the_nodes() {
    let _alone = alone().await;
    let nodes = Nodes::start(3).await;
    let service = Service::start(&nodes.environment_value(), SOON).await;
    let (first, second) = (service.create().await, service.create().await);
    nodes[2].kill();
    assert_eq!(service.capture(first).await.status, 200);
    nodes[1].kill();
    let reply = service.capture(second).await;
    assert_unavailable(&reply);
    assert!(charges(&nodes[0], second).await.is_empty());
    // The orders are on the node that is still running.
    assert_eq!(service.request("GET", &format!("/orders/{second}"), "").await.body["status"], "open");
    assert_no_lock(&nodes[0]).await;
}

#[tokio::test]
async fn stopping_service_finishes_running_calls_and_releases_locks() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), VISIBLE).await;
    let order = service.create().await;
    let capture = service.send("POST", &format!("/orders/{order}/capture"), "").await;
    wait_until_locked(&server, order).await;
    service.terminate();
    assert_eq!(http::receive(capture).await.status, 200);
    let (status, last_line) = service.ended().await;
    assert!(status.success(), "{status}");
    assert_eq!(last_line.as_deref(), Some("order_service: stopped"));
    assert!(server.inspect().mentions("locks:").await.is_empty(), "shutdown waits for the release");
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let _alone = alone().await;
    let outcome = program::run(program::command(env!("CARGO_BIN_EXE_order_service"), None)).await;
    assert!(!outcome.succeeded);
    assert_eq!(
        outcome.stderr,
        "order_service: REDLOCK_NODES is not set: write REDLOCK_NODES=redis://host:6379, or several URLs separated \
         by commas\n"
    );
}

#[tokio::test]
async fn locks_and_metrics_pages_show_the_held_lock() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start(&server.url(), NEVER).await;
    let order = service.create().await;
    let paying = service.send("POST", &format!("/orders/{order}/capture"), "").await;
    wait_until_locked(&server, order).await;
    assert_busy(&service.capture(order).await, TTL);
    for path in ["/locks", "/metrics"] {
        assert_eq!(service.request("GET", path, "").await.status, 404, "clients see no pages");
    }
    let page = service.page("/locks").await;
    assert!(
        page.contains("<b>1</b>held</div><div><b>0</b>waiting</div>")
            && page.contains(&format!("<td>order:{order}<td>")),
        "{page}"
    );
    assert!(page.contains("<td>order:{id}<td>") && page.contains("api.rs:"), "{page}");
    let metrics = service.page("/metrics").await;
    let of_template = |line: &&str| line.contains("lock=\"order:{id}\"");
    let counted = |name: &str, end: &str| {
        metrics.lines().filter(of_template).any(|line| line.starts_with(name) && line.ends_with(end))
    };
    assert!(
        counted("redlock_held{", " 1") && counted("redlock_acquire_total{", "outcome=\"contended\"} 1"),
        "{metrics}"
    );
    assert!(!metrics.contains(&format!("order:{order}")), "{metrics}");
    drop(paying);
    assert_no_lock(&server).await;
    eventually(PATIENCE, "nothing is held", async || {
        let page = service.page("/locks").await;
        if page.contains("<b>0</b>held</div><div><b>0</b>waiting</div>") { Ok(()) } else { Err(page) }
    })
    .await;
}

#[tokio::test]
async fn unauthorized_clients_acquire_no_lock() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let service = Service::start_with(&server.url(), SOON, Some("open-sesame")).await;
    let before = server.inspect().calls("set").await;
    for (method, path) in [("POST", "/orders/7/capture"), ("PATCH", "/orders/7"), ("GET", "/orders/7")] {
        for token in [None, Some("open"), Some("")] {
            let reply = http::receive(http::send_as(token, service.address(), method, path, "{}").await).await;
            assert_eq!(reply.status, 401, "{method} {path} {token:?}");
        }
    }
    assert_eq!(server.inspect().calls("set").await, before, "no lock was taken");
    let stream = http::send_as(Some("open-sesame"), service.address(), "POST", "/orders", r#"{"amount": 5}"#).await;
    assert_eq!(http::receive(stream).await.status, 201);
}
