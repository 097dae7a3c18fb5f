//! Paths in the results of an inspection.

use super::place;
use super::tree::wait_until_queued_in;
use crate::support::acquired_everywhere;
use crate::waiters::{assert_all_gone, cancelled, managers, waiting};
use redlock_runtime::admin::Holder;
use redlock_runtime::{LockManager, Mode};
use redlock_tests::Nodes;

/// Returns the holders and the waiters of a shared key, each with its mode and whether it is on a descendant path, and the text.
async fn seen(manager: &LockManager, key: &str) -> (Vec<(bool, Mode)>, Vec<(bool, Mode)>, String) {
    let inspection = manager.inspect(key).await;
    let how = |owner: &redlock_runtime::admin::Owner| (owner.is_descendant, owner.mode);
    let Some(Holder::Shared { owners, .. }) = inspection.holder() else { panic!("{inspection}") };
    let mut owners: Vec<_> = owners.iter().map(how).collect();
    owners.sort_unstable_by_key(|(_, mode)| *mode == Mode::Shared);
    (owners, inspection.waiters().into_iter().map(how).collect(), inspection.to_string())
}

#[tokio::test]
async fn inspect_shows_holders_of_descendants_of_a_path() {
    let (below, read_below) = ((true, Mode::Exclusive), (true, Mode::Shared));
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let one = acquired_everywhere(&ours, &nodes, place("/A/C")).await;
        let (owners, waiters, text) = seen(&theirs, "/{A}").await;
        assert_eq!((owners, waiters), (vec![below], vec![]));
        assert!(
            text.starts_with("\"/{A}\": descendant held by ") && text.matches("\n  descendant held by ").count() == 1,
            "{text}"
        );
        assert!(matches!(theirs.inspect("/{A}/C").await.holder(), Some(Holder::Owner(owner)) if !owner.is_descendant));

        let other = acquired_everywhere(&theirs, &nodes, place("/A/D").mode(Mode::Shared)).await;
        let folder = waiting(&theirs, place("/A").mode(Mode::Shared));
        wait_until_queued_in(&nodes, 1).await;
        let late = waiting(&ours, place("/A/E"));
        wait_until_queued_in(&nodes, 2).await;
        let (owners, waiters, text) = seen(&theirs, "/{A}").await;
        assert_eq!((owners, waiters), (vec![below, read_below], vec![(false, Mode::Shared), below]));
        assert!(text.starts_with("\"/{A}\": descendant held by 1 call, descendant shared by 1 call, "), "{text}");
        assert!(text.contains("\n  waits for a shared lock for ") && text.contains("\n  waits for a descendant for "));

        cancelled(folder).await;
        cancelled(late).await;
        drop((one, other));
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn inspect_shows_holders_of_descendants_in_memory() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(place("/A/C")).await.unwrap();
    let (owners, waiters, text) = seen(&manager, "/{A}").await;
    assert_eq!((owners, waiters), (vec![(true, Mode::Exclusive)], vec![]), "{text}");
    drop(guard);
}
