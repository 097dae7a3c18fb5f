//! `mode = shared`: functions that run together, and an exclusive function.

use crate::is_free;
use redlock_runtime::{LockError, LockManager, LockRequest, Mode, distributed_lock, distributed_lock_defaults};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const MOMENT: Duration = Duration::from_millis(10);

#[derive(Default)]
struct Config {
    readers: AtomicUsize,
    most_readers: AtomicUsize,
    value: u64,
}

impl Config {
    #[distributed_lock(key = "config:{self.value}", mode = shared, guard = lock)]
    async fn read(&self) -> Result<Mode, LockError> {
        let readers = self.readers.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_readers.fetch_max(readers, Ordering::SeqCst);
        sleep(MOMENT).await;
        self.readers.fetch_sub(1, Ordering::SeqCst);
        Ok(lock.mode())
    }

    #[distributed_lock(key = "config:{self.value}", mode = exclusive, guard = lock)]
    async fn write(&self) -> Result<Mode, LockError> {
        assert_eq!(self.readers.load(Ordering::SeqCst), 0, "alone");
        sleep(MOMENT).await;
        assert_eq!(self.readers.load(Ordering::SeqCst), 0, "alone");
        Ok(lock.mode())
    }

    #[distributed_lock(key = "config:{self.value}", mode = shared, wait = none, on_contended = skip)]
    async fn read_unless_a_writer_holds_the_lock(&self) -> Result<Option<u64>, LockError> {
        Ok(Some(self.value))
    }

    /// Readers of all names, and of one key, do not exclude each other.
    #[distributed_lock(key = "names", mode = shared)]
    async fn by_name(&self, name: &str) -> Result<usize, LockError> {
        sleep(MOMENT).await;
        Ok(name.len())
    }

    #[distributed_lock(key = "config:{self.value}", mode = shared, reentrant)]
    async fn nested(&self, depth: u32) -> Result<u32, LockError> {
        if depth == 0 { Ok(0) } else { Box::pin(self.nested(depth - 1)).await.map(|depth| depth + 1) }
    }
}

#[tokio::test(start_paused = true)]
async fn readers_run_concurrently_and_writers_exclusively() {
    let (manager, config) = (LockManager::in_memory(), Config::default());
    let calls = async {
        tokio::join!(config.read(), config.write(), config.read(), config.read(), config.write(), config.by_name("a"))
    };
    let (first, alone, second, third, last, _) = manager.scope(calls).await;
    for (mode, expected) in [first, second, third].map(|mode| (mode, Mode::Shared)) {
        assert_eq!(mode.unwrap(), expected);
    }
    assert_eq!([alone.unwrap(), last.unwrap()], [Mode::Exclusive; 2]);
    assert_eq!(config.most_readers.load(Ordering::SeqCst), 2, "those between the writers");
    assert!(is_free(&manager, "config:0").await);
}

#[tokio::test]
async fn reader_without_wait_is_skipped_only_for_a_writer() {
    let (manager, config) = (LockManager::in_memory(), Config::default());
    let reads = async || manager.scope(config.read_unless_a_writer_holds_the_lock()).await.unwrap();
    let reader = manager.acquire(LockRequest::shared("config:0")).await.unwrap();
    assert_eq!(reads().await, Some(0));
    drop(reader);
    let writer = manager.acquire("config:0").await.unwrap();
    assert_eq!(reads().await, None);
    writer.downgrade();
    assert_eq!(reads().await, Some(0));
}

#[tokio::test]
async fn reentrant_reader_enters_its_own_shared_lock() {
    let (manager, config) = (LockManager::in_memory(), Config::default());
    let nested = timeout(Duration::from_secs(5), manager.scope(config.nested(3))).await;
    assert_eq!(nested.expect("it does not wait for itself").unwrap(), 3);
    assert!(is_free(&manager, "config:0").await);
}

struct Readers;

#[distributed_lock_defaults(mode = shared, ttl = 10)]
impl Readers {
    #[distributed_lock(key = "defaults", guard = lock)]
    async fn with_the_default_mode(&self) -> Result<Mode, LockError> {
        Ok(lock.mode())
    }

    #[distributed_lock(key = "defaults", mode = exclusive, fencing, guard = lock)]
    async fn alone(&self) -> Result<(Mode, u64), LockError> {
        Ok((lock.mode(), lock.fencing_token().as_u64()))
    }
}

#[tokio::test]
async fn function_mode_overrides_the_mode_of_the_block() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(Readers.with_the_default_mode()).await.unwrap(), Mode::Shared);
    let (mode, number) = manager.scope(Readers.alone()).await.unwrap();
    assert!(mode == Mode::Exclusive && number > 0);
}
