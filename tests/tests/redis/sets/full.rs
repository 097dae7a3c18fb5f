//! Several keys on a server whose memory is used up.

use super::{all, place};
use crate::support::assert_nothing_left;
use crate::waiters::managers;
use redlock_runtime::{LockPart, LockRequest, Mode};
use redlock_tests::Nodes;

#[tokio::test]
async fn full_server_keeps_locks_for_several_keys() {
    let requests = [
        all(["a", "b"]),
        all([LockPart::shared("a"), "b".into()]),
        all([LockPart::shared("a"), LockPart::shared("b")]),
        place("/A/C/D"),
        place("/A/C").mode(Mode::Shared),
    ];
    for request in requests {
        let nodes = Nodes::start(1).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = ours.acquire(request).await.unwrap();
        let node = nodes[0].inspect();
        node.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
        held.extend().await.unwrap();
        held.ensure_held().unwrap();
        for request in [LockRequest::all(["c", "d"]), LockRequest::path("/B/C")] {
            let error = theirs.acquire(request).await.unwrap_err();
            assert!(error.to_string().contains("answered OOM") && error.is_transient(), "{error:?}");
        }
        held.release().await.unwrap();
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}
