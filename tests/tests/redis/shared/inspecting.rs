//! Shared locks in the results of an inspection.

use super::{KEY, reader, writer};
use crate::support::{acquired_everywhere, assert_nothing_left, majority, wait_until_queued};
use crate::waiters::{assert_all_gone, cancelled, managers, waiting};
use redlock_runtime::admin::{Holder, ListOptions};
use redlock_runtime::{LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE};

#[tokio::test]
async fn inspect_shows_readers_and_waiters_with_their_modes() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let one = acquired_everywhere(&ours, &nodes, LockRequest::shared(KEY)).await;
        let other = acquired_everywhere(&theirs, &nodes, LockRequest::shared(KEY)).await;
        let alone = waiting(&theirs, writer());
        wait_until_queued(&nodes, KEY, 1).await;
        let behind = waiting(&ours, reader());
        wait_until_queued(&nodes, KEY, 2).await;

        let inspection = ours.inspect(KEY).await;
        let readers: Vec<_> = inspection.readers().iter().map(|owner| owner.token).collect();
        // Tokens of one millisecond have no fixed order.
        let mut expected = [*one.token(), *other.token()];
        expected.sort_unstable();
        assert_eq!(readers, expected, "{inspection}");
        assert!(
            matches!(inspection.holder(), Some(Holder::Shared { owners, .. }) if owners.len() == 2),
            "{inspection}"
        );
        assert!(inspection.remaining().is_some_and(|left| left.as_secs() > 20), "{inspection}");
        let modes: Vec<_> = inspection.waiters().iter().map(|owner| owner.mode).collect();
        assert_eq!(modes, [Mode::Exclusive, Mode::Shared], "{inspection}");
        let text = inspection.to_string();
        assert!(text.starts_with("\"config\": shared by 2 calls, ") && text.contains(", 2 waiting"), "{text}");
        assert_eq!(text.matches("\n  shared by ").count(), 2, "{text}");
        assert_eq!(
            (text.matches("\n  waits for").count(), text.matches("\n  waits for a shared lock for").count()),
            (2, 1)
        );
        assert!(inspection.readers().iter().all(|owner| owner.is_connected == Some(true)), "{text}");
        // The queue, which is also a sorted set of tokens, must not be listed.
        let list = ours.list(ListOptions::new("*").limit(10).timeout(PATIENCE)).await;
        assert!(list.is_complete && list.keys == [KEY.into()], "{list:?}");
        let list = ours.list(ListOptions::new("*").limit(0).timeout(PATIENCE)).await;
        assert!(!list.is_complete && list.keys.is_empty(), "{list:?}");

        cancelled(alone).await;
        drop(behind.await.unwrap().unwrap());
        drop((one, other));
        assert_all_gone(&ours, &nodes).await;
        let inspection = theirs.inspect(KEY).await;
        assert_eq!(inspection.holder(), Some(&Holder::Nobody));
        assert!(inspection.needed == majority(size) && inspection.readers().is_empty());
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn break_of_one_reader_does_not_affect_the_other_readers() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        // After this, its channels are open.
        ours.check().await;
        let one = acquired_everywhere(&ours, &nodes, LockRequest::shared(KEY)).await;
        let other = acquired_everywhere(&ours, &nodes, LockRequest::shared(KEY)).await;
        let token = *one.token();
        let (report, lost) = tokio::join!(theirs.break_lock(KEY, token), async {
            let lost = one.lost().await;
            drop(one);
            lost
        });
        assert!(report.is_broken(), "{report}");
        assert!(matches!(super::cause(lost), redlock_runtime::LossCause::Revoked { .. }), "{report}");
        other.ensure_held().unwrap();
        other.extend().await.unwrap();
        assert!(theirs.try_acquire(KEY).await.unwrap_err().is_contended());
        other.release().await.unwrap();
        theirs.acquire(writer()).await.unwrap().release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}
