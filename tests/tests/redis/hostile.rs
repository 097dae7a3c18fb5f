//! Input that no sensible caller sends (defect 6 of peers), and secrets that must not leak.

use crate::support::{assert_nothing_left, builder, causes, connected, manager};
use redlock_runtime::{LockError, LockKey, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, RedisServer};
use std::time::Duration;

const ADDRESS: &str = "redis://127.0.0.1:1";

fn configuration(error: &LockError) -> String {
    assert!(matches!(error, LockError::Configuration { .. }), "{error:#?}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    error.to_string()
}

#[tokio::test]
async fn invalid_ttl_is_rejected_before_any_command() {
    let nodes = Nodes::start(1).await;
    let manager = LockManager::builder().nodes(nodes.urls()).build().unwrap();
    manager.acquire("warm-up").await.unwrap().release().await.unwrap();
    let before = nodes[0].inspect().calls("set").await;
    let table = [
        (Duration::ZERO, "too short"),
        (Duration::from_nanos(1), "too short"),
        (Duration::from_millis(1), "too short"),
        (Duration::from_millis(12), "too short"),
        (Duration::from_secs(31 * 24 * 3600), "too long"),
        (Duration::from_millis(u64::MAX), "too long"),
        (Duration::MAX, "too long"),
    ];
    for (ttl, expected) in table {
        let error = manager.acquire(LockRequest::new("order:7").ttl(ttl)).await.unwrap_err();
        assert!(configuration(&error).contains(expected), "{ttl:?}: {error}");
        let error = builder([ADDRESS]).default_ttl(ttl).build().unwrap_err();
        assert!(configuration(&error).contains(expected), "{ttl:?}: {error}");
    }
    assert_eq!(nodes[0].inspect().calls("set").await, before);
}

#[tokio::test]
async fn longest_allowed_ttl_works() {
    let nodes = Nodes::start(1).await;
    let ttl = Duration::from_secs(30 * 24 * 3600);
    let manager = connected(builder(nodes.urls()).tuning(|tuning| tuning.max_ttl(ttl)), &nodes).await;
    let guard = manager.acquire(LockRequest::new("order:7").ttl(ttl)).await.unwrap();
    assert!(nodes[0].inspect().pttl("order:7").await > 29 * 24 * 3_600_000);
    assert!(guard.remaining() > ttl.mul_f64(0.98));
    guard.extend().await.unwrap();
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn longest_possible_wait_works() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(LockRequest::new("order:7").wait(Duration::MAX)).await.unwrap();
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(LockRequest::new("order:7").wait(Duration::MAX)).await.unwrap() }
    });
    tokio::task::yield_now().await;
    drop(guard);
    drop(tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap());
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn invalid_keys_are_rejected() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let table = [
        (String::new(), "the key is empty"),
        ("k".repeat(10 * 1024), "10240 bytes"),
        ("{order:7}:q".to_owned(), "reserved for internal keys"),
        ("redlock:f:{9}".to_owned(), "reserved for internal keys"),
    ];
    for (key, expected) in table {
        assert!(LockKey::from(key.as_str()).check().is_err());
        let error = manager.acquire(key).await.unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error:#?}");
        assert!(error.to_string().contains(expected) && error.to_string().lines().count() == 1, "{error}");
        assert!(error.to_string().len() < 200, "a message is no place for a document");
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn unusual_text_keys_are_distinct_locks() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let keys = [
        "\0",
        "a\0b",
        "line\nbreak",
        "a\r\nSET injected yes\r\n",
        " ",
        "*",
        "order:[a-z]?",
        "{order}:7",
        "\u{FFFD}\u{202E}\u{200B}",
        "ключ-鍵-🔒",
        "'; return redis.call('FLUSHALL') --",
        "redlock:probe",
        &"k".repeat(LockKey::MAX_LEN),
    ];
    let mut guards = Vec::new();
    for key in keys {
        let guard = manager.try_acquire(key).await.unwrap_or_else(|error| panic!("{key:?}: {error}"));
        assert_eq!(nodes[0].inspect().get(key).await.as_deref(), Some(guard.token().as_str()), "{key:?}");
        let error = manager.try_acquire(key).await.unwrap_err();
        assert!(error.is_contended() && !error.to_string().contains(['\n', '\r', '\0']), "{error:?}");
        guard.extend().await.unwrap();
        guards.push(guard);
    }
    assert_eq!(nodes[0].inspect().keys().await.len(), keys.len());
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn invalid_manager_configurations_are_rejected() {
    let ok = || builder([ADDRESS]);
    let table = [
        ("no node", LockManager::builder(), "needs a node"),
        ("twice", ok().node(ADDRESS), "given twice"),
        ("twice, other words", ok().node("redis://user:pw@127.0.0.1:1/"), "given twice"),
        ("empty URL", ok().node(""), "node 2 is not a Redis URL"),
        ("no scheme", ok().node("127.0.0.1:6379"), "node 2 is not a Redis URL"),
        ("other scheme", ok().node("http://127.0.0.1"), "node 2 is not a Redis URL"),
        ("no number", ok().node("redis://127.0.0.1:2/x"), "node 2 is wrong"),
        ("negative database", ok().node("redis://127.0.0.1:2/-1"), "not negative"),
        ("endless namespace", ok().namespace("n".repeat(1000)), "1000 bytes"),
        ("negative drift", ok().tuning(|tuning| tuning.drift_factor(-0.01)), "drift factor"),
        ("too much drift", ok().tuning(|tuning| tuning.drift_factor(0.51)), "drift factor"),
        ("no drift at all", ok().tuning(|tuning| tuning.drift_factor(f64::NAN)), "drift factor"),
        ("infinite drift", ok().tuning(|tuning| tuning.drift_factor(f64::INFINITY)), "drift factor"),
        ("no time", ok().node_timeout(Duration::ZERO), "node timeout of zero"),
        ("more time than the ttl", ok().node_timeout(Duration::from_secs(30)), "too short"),
        ("endless time", ok().node_timeout(Duration::MAX), "too short"),
    ];
    for (name, builder, expected) in table {
        let Err(error) = builder.build() else { panic!("{name}: was built") };
        assert!(configuration(&error).contains(expected), "{name}: {error}");
    }
}

#[test]
fn manager_is_not_built_outside_of_a_runtime() {
    let error = builder([ADDRESS]).build().unwrap_err();
    assert!(configuration(&error).contains("tokio runtime"), "{error}");
}

#[tokio::test]
async fn even_numbers_of_nodes_work() {
    // Defect 6. Two nodes need both, four need three.
    for (size, frozen) in [(2, 0), (4, 1)] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let guard = manager.acquire("order:7").await.unwrap();
        nodes[frozen].freeze();
        let request = LockRequest::new("order:8").wait(Duration::from_millis(50));
        let error = manager.acquire(request).await.unwrap_err();
        // On a busy machine, the other nodes may be late as well.
        assert!(causes(&error).len() > frozen, "{error}");
        nodes[..=frozen].iter().for_each(RedisServer::thaw);
        guard.release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn passwords_never_appear_in_messages() {
    const SECRETS: [&str; 3] = ["hunter2", "hunter%32", "trustno1"];
    let urls = ["redis://:hunter2@127.0.0.1:1", "redis://me:hunter%32@127.0.0.1:2/1", "unix:///nowhere?pass=trustno1"];
    let mut texts = Vec::new();
    let described = builder(urls);
    texts.push(format!("{described:?}"));
    for wrong in ["redis://:hunter2@127.0.0.1:9/x", "http://:hunter2@host", "redis://:hunter2@:x", "hunter2"] {
        texts.push(described.clone().node(wrong).build().map_or_else(|e| format!("{e} {e:?}"), |m| format!("{m:?}")));
    }
    let manager = described.clone().node(urls[0]).build().unwrap_err();
    texts.push(format!("{manager} {manager:?}"));
    let manager = described.build().unwrap();
    texts.push(format!("{manager:?}"));
    // Some of the three connections may have failed already, and show their errors.
    assert!(texts.last().unwrap().len() < 1000, "{texts:?}");
    let error = manager.try_acquire("order:7").await.unwrap_err();
    texts.extend([format!("{error} {error:?}"), format!("{manager:?} {manager:#?}")]);
    // The call over three nodes ends after two refusals, so each node also has a manager of its own.
    for url in urls {
        let error = builder([url]).build().unwrap().try_acquire("order:7").await.unwrap_err();
        assert_eq!(causes(&error).len(), 1, "{error}");
        texts.push(format!("{error} {error:?}"));
    }
    for text in texts {
        assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "{text}");
    }
}
