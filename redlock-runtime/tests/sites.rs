//! All annotated functions of this program, which are those of this file.
#![allow(dead_code, reason = "nobody calls them")]

use redlock_runtime::{ListedSite, LockError, LockManager, distributed_lock, sites};

#[distributed_lock(key = "order:{id}", ttl = 30, wait = none)]
async fn capture(id: u64) -> Result<(), LockError> {
    Ok(())
}

struct Stock {
    locks: LockManager,
}

impl Stock {
    /// Generic, so that the compiler makes several functions of it.
    #[distributed_lock(key = "stock:{id}", manager = self.locks, fencing, guard = lock)]
    async fn refresh<T: Send>(&self, id: u64, value: T) -> Result<u64, LockError> {
        drop(value);
        Ok(lock.fencing_token().as_u64())
    }
}

mod jobs {
    use redlock_runtime::{LockError, distributed_lock};

    #[distributed_lock(key = "order:{id}")]
    async fn archive(id: u64) -> Result<(), LockError> {
        Ok(())
    }
}

#[tokio::test]
async fn each_function_is_listed_once() {
    let stock = Stock { locks: LockManager::in_memory() };
    assert!(stock.refresh(7, 1).await.is_ok() && stock.refresh(7, "text").await.is_ok());
    let all = sites();
    let listed: Vec<_> = all.iter().map(|site| (site.template(), site.options(), site.module())).collect();
    let expected = [
        ("order:{id}", "key = \"order:{id}\", ttl = 30, wait = none", "sites"),
        ("order:{id}", "key = \"order:{id}\"", "sites::jobs"),
        ("stock:{id}", "key = \"stock:{id}\", manager = self.locks, fencing, guard = lock", "sites"),
    ];
    assert_eq!(listed, expected);
    let lines: Vec<_> = all.iter().map(ListedSite::line).collect();
    assert!(lines.iter().all(|line| line.file().ends_with("sites.rs")) && lines[0] < lines[1], "{lines:?}");
}

#[test]
fn two_functions_with_one_template_are_found() {
    let duplicates = sites().duplicates();
    assert_eq!(duplicates.len(), 1, "{duplicates:?}");
    let modules: Vec<_> = duplicates[0].iter().map(ListedSite::module).collect();
    assert_eq!(modules, ["sites", "sites::jobs"]);
}
