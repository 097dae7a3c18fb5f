//! Several nodes as one.

use std::time::Duration;

use redlock_tests::{Nodes, PATIENCE};

#[tokio::test]
async fn nodes_are_independent_and_inspected_together() {
    let nodes = Nodes::start(3).await;
    assert_eq!(nodes.len(), 3);
    assert_eq!(nodes.environment_value(), nodes.urls().join(","));
    nodes[0].inspect().command::<()>(&["SET", "a", "token-1"]).await;
    nodes[2].inspect().command::<()>(&["SET", "b", "token-2"]).await;
    let holders: Vec<usize> = nodes.contents().await.into_keys().collect();
    assert_eq!(holders, [0, 2]);
    let found: Vec<usize> = nodes.mentions("token-2").await.into_keys().collect();
    assert_eq!(found, [2]);
    nodes[2].kill();
    nodes.assert_no_mention(PATIENCE, "token-2").await;
    nodes[0].inspect().command::<()>(&["PEXPIRE", "a", "20"]).await;
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
#[should_panic(expected = "last seen: {1: {\"left\": \"token\"}}")]
async fn leftover_key_is_reported_with_its_node() {
    let nodes = Nodes::start(2).await;
    nodes[1].inspect().command::<()>(&["SET", "left", "token"]).await;
    nodes.assert_empty(Duration::from_millis(200)).await;
}

#[tokio::test]
async fn each_node_may_have_its_own_settings() {
    let settings = |index, builder: redlock_tests::Builder| {
        if index == 1 { builder.password("x") } else { builder }
    };
    let nodes = Nodes::start_with(2, settings).await;
    assert!(nodes[1].url().starts_with("redis://:x@"));
    let proxies = nodes.proxied().await;
    assert!(proxies[1].url().starts_with("redis://:x@"));
    nodes.assert_empty(PATIENCE).await;
}
