//! Several keys in a cluster: they must be in one slot.

use crate::support::builder;
use crate::waiters::{obtained, waiting};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Cluster, PATIENCE, eventually};

async fn connected(cluster: &Cluster) -> LockManager {
    let manager = builder([cluster.url()]).build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    manager
}

#[tokio::test]
async fn keys_of_one_slot_are_locked_together() {
    let cluster = Cluster::start(3, 0).await;
    let [ours, theirs] = [connected(&cluster).await, connected(&cluster).await];
    for (request, key) in [
        (LockRequest::all(["{acme}:from", "{acme}:to"]), "{acme}:to"),
        (LockRequest::path("/acme/reports/2024"), "/{acme}/reports"),
    ] {
        let held = ours.acquire(request.clone()).await.unwrap();
        assert!(theirs.try_acquire(key).await.unwrap_err().is_contended());
        let call = waiting(&theirs, request.wait(PATIENCE));
        held.extend().await.unwrap();
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
    }
    for manager in [ours, theirs] {
        assert!(manager.shutdown().await);
    }
    cluster.assert_empty(PATIENCE, &["redlock:f:"]).await;
}

#[tokio::test]
async fn keys_of_different_slots_are_rejected_before_any_command() {
    let cluster = Cluster::start(3, 0).await;
    let manager = connected(&cluster).await;
    let paths = LockRequest::all([redlock_runtime::LockPart::path("/A/C"), redlock_runtime::LockPart::path("/B")]);
    for (request, names) in [(LockRequest::all(["a", "b"]), ["\"a\"", "\"b\""]), (paths, ["/{A}", "/{B}"])] {
        let error = manager.acquire(request).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, LockError::Configuration { .. }), "{text}");
        assert!(names.iter().all(|name| text.contains(name)) && text.contains("hash tag"), "{text}");
    }
    assert!(manager.shutdown().await);
    cluster.assert_empty(PATIENCE, &[]).await;
}
