//! Permits in the results of an inspection.

use super::{KEY, permit};
use crate::support::acquired_everywhere;
use crate::waiters::{assert_all_gone, cancelled, managers, waiting};
use redlock_runtime::admin::{Holder, ListOptions};
use redlock_runtime::{LockManager, Mode};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};

/// Waits until an inspection reports `many` waiters for a permit.
async fn wait_until_told_of(manager: &LockManager, many: usize) {
    let told = || async {
        let inspection = manager.inspect(KEY).await;
        inspection.waiters().iter().filter(|owner| owner.mode == Mode::Permit).count()
    };
    eventually_eq(PATIENCE, "as many wait for a permit", many, told).await;
}

#[tokio::test]
async fn inspect_shows_permit_waiters_and_list_hides_the_admission_lock() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs, others] = managers(&nodes, 3).await.try_into().unwrap();
        let permits = acquired_everywhere(&ours, &nodes, permit(1)).await;
        assert!(ours.inspect(KEY).await.waiters().is_empty());

        let first = waiting(&theirs, permit(1));
        wait_until_told_of(&ours, 1).await;
        let behind = waiting(&others, permit(1));
        wait_until_told_of(&ours, 2).await;
        let inspection = ours.inspect(KEY).await;
        assert!(matches!(inspection.holder(), Some(Holder::Shared { .. })), "{inspection}");
        let text = inspection.to_string();
        assert_eq!(text.matches("\n  waits for a permit for ").count(), 2, "{text}");
        let list = ours.list(ListOptions::new("*").limit(10).timeout(PATIENCE)).await;
        assert!(list.is_complete && list.keys == [KEY.into()], "{list:?}");

        cancelled(behind).await;
        cancelled(first).await;
        drop(permits);
        for manager in [&ours, &theirs, &others] {
            assert_all_gone(manager, &nodes).await;
        }
    }
}
