//! Many locks that are held at once.

use crate::TTL;
use redlock_runtime::{LockGuard, LockManager, LockRequest};
use tokio::task::JoinSet;

/// The tasks that take them: one after the other, it would take a minute.
const TASKS: usize = 64;

/// Folders of a tree that has all of them.
const FOLDERS: usize = 1000;

/// Takes so many, each by the request with its number.
pub(crate) async fn hold(manager: &LockManager, count: usize, request: fn(usize) -> LockRequest) -> Vec<LockGuard> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let manager = manager.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            for number in (task..count).step_by(TASKS) {
                let request = request(number).ttl(TTL);
                held.push(manager.acquire(request).await.expect("nobody is in the way"));
            }
            held
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// A path of depth 3 in a tree that all of them are in.
pub(crate) fn in_one_tree(number: usize) -> LockRequest {
    LockRequest::path(format!("/bench/{}/{number}", number % FOLDERS))
}
