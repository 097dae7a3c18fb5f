//! Several keys that one worker detaches and another one attaches.

use super::{all, place};
use crate::waiters::{assert_all_gone, managers};
use redlock_runtime::{DetachedLock, LockError, LockPart, LockRequest};
use redlock_tests::Nodes;

#[tokio::test]
async fn attaching_worker_holds_all_keys() {
    for size in [1, 3, 5] {
        let requests = [all(["a", "b"]), place("/A/C/D"), all([LockPart::shared("a"), "b".into()])];
        for request in requests {
            let nodes = Nodes::start(size).await;
            let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
            let guard = ours.acquire(request.clone()).await.unwrap();
            let token = *guard.token();
            let message = guard.detach().to_string();
            assert!(
                ours.try_acquire(request.clone().wait(std::time::Duration::ZERO)).await.unwrap_err().is_contended()
            );
            let taken_up = theirs.attach(message.parse::<DetachedLock>().unwrap()).await.unwrap();
            assert_ne!(*taken_up.token(), token);
            taken_up.extend().await.unwrap();
            nodes.assert_no_mention(redlock_tests::PATIENCE, token.as_str()).await;
            let error = ours.attach(message.parse().unwrap()).await.unwrap_err();
            assert!(matches!(error, LockError::Lost { .. }), "once: {error:?}");
            assert!(taken_up.is_held());
            taken_up.release().await.unwrap();
            assert_all_gone(&ours, &nodes).await;
            assert_all_gone(&theirs, &nodes).await;
        }
    }
}

#[tokio::test]
async fn downgraded_path_is_attached_as_shared() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = ours.acquire(place("/A/C")).await.unwrap();
    held.downgrade();
    let taken_up = theirs.attach(held.detach()).await.unwrap();
    ours.acquire(LockRequest::path("/A/C").mode(redlock_runtime::Mode::Shared)).await.unwrap().release().await.unwrap();
    assert!(ours.try_acquire(LockRequest::path("/A")).await.unwrap_err().is_contended());
    taken_up.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}
