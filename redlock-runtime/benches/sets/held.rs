//! Many locks that are held at once.

use crate::TTL;
use redlock_runtime::{LockGuard, LockManager, LockRequest};
use tokio::task::JoinSet;

/// Number of tasks that acquire the locks. A single task would need a minute.
const TASKS: usize = 64;

/// Number of folders in the tree of [`in_one_tree`].
const FOLDERS: usize = 1000;

/// Acquires `count` locks. `request` returns the request for each number.
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

/// Returns the request for a path of depth 3. All these paths are in one tree.
pub(crate) fn in_one_tree(number: usize) -> LockRequest {
    LockRequest::path(format!("/bench/{}/{number}", number % FOLDERS))
}
