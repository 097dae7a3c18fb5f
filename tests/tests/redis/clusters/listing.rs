//! Inspection of a cluster with a silent part.

use super::{connected, keys};
use redlock_runtime::admin::{InspectOptions, ListOptions};
use redlock_tests::{Cluster, PATIENCE};
use std::time::Duration;

#[tokio::test]
async fn list_shows_keys_of_the_other_masters_if_one_is_frozen() {
    let cluster = Cluster::start(3, 0).await;
    let manager = connected(&cluster).await;
    let keys = keys(&cluster, "order").await;
    let mut guards = Vec::new();
    for key in &keys {
        guards.push(manager.acquire(key).await.unwrap());
    }
    let all = manager.list(ListOptions::new("order*").limit(10).timeout(PATIENCE)).await;
    assert!(all.keys.len() == 3 && all.has_quorum() && all.is_complete && all.failures.is_empty(), "{all:?}");
    let silent = cluster.member(1);
    silent.freeze();
    let list = manager.list(ListOptions::new("order*").limit(10).timeout(Duration::from_secs(1))).await;
    let inspections = manager.inspect_all(&keys, InspectOptions::default()).await;
    silent.thaw();
    let mut there = vec![keys[0].clone(), keys[2].clone()];
    there.sort();
    assert_eq!(list.keys.iter().map(ToString::to_string).collect::<Vec<_>>(), there);
    let [failure] = &list.failures[..] else { panic!("{list:?}") };
    assert!(failure.node().ends_with(&silent.port().to_string()) && !list.has_quorum(), "{list:?}");
    let are_held: Vec<_> = inspections.iter().map(|inspection| inspection.holder().is_some()).collect();
    assert_eq!(are_held, [true, false, true], "{inspections:?}");
}
