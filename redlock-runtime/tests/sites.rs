//! List of all annotated functions of a program: here, the functions of this file.
#![allow(dead_code, reason = "nobody calls them")]

use axum::extract::Path;
use redlock_runtime::admin::{ListedSite, sites};
use redlock_runtime::{LockError, LockManager, distributed_lock};

#[distributed_lock(key = "order:{id}", ttl = 30, wait = none)]
async fn capture(id: u64) -> Result<(), LockError> {
    Ok(())
}

struct Stock {
    locks: LockManager,
}

impl Stock {
    /// Generic, so that the compiler generates several functions.
    #[distributed_lock(key = "stock:{id}", manager = self.locks, fencing, guard = lock)]
    async fn refresh<T: Send>(&self, id: u64, value: T) -> Result<u64, LockError> {
        drop(value);
        Ok(lock.fencing_token().as_u64())
    }
}

/// The attribute below copies the code into separate functions.
#[distributed_lock(key = "cart:{id}", on_error = |error| error.to_string())]
#[axum::debug_handler]
async fn cart(Path(id): Path<u64>) -> String {
    id.to_string()
}

/// All functions of one macro call have the same line.
macro_rules! purge {
    ($($name:ident)*) => {$(
        #[distributed_lock(key = "purge")]
        async fn $name() -> Result<(), LockError> {
            Ok(())
        }
    )*};
}

purge!(purge_orders purge_carts);

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
        ("cart:{id}", "key = \"cart:{id}\", on_error = |error| error.to_string()", "sites"),
        ("order:{id}", "key = \"order:{id}\", ttl = 30, wait = none", "sites"),
        ("order:{id}", "key = \"order:{id}\"", "sites::jobs"),
        ("purge", "key = \"purge\"", "sites"),
        ("purge", "key = \"purge\"", "sites"),
        ("stock:{id}", "key = \"stock:{id}\", manager = self.locks, fencing, guard = lock", "sites"),
    ];
    assert_eq!(listed, expected);
    let lines: Vec<_> = all.iter().map(ListedSite::line).collect();
    assert!(lines.iter().all(|line| line.file().ends_with("sites.rs")) && lines[1] < lines[2], "{lines:?}");
}

#[test]
fn duplicate_templates_are_found() {
    let duplicates = sites().duplicates();
    let templates: Vec<_> = duplicates.iter().map(|sites| sites[0].template()).collect();
    assert_eq!(templates, ["order:{id}", "purge"]);
    let modules: Vec<_> = duplicates[0].iter().map(ListedSite::module).collect();
    assert_eq!(modules, ["sites", "sites::jobs"]);
}
