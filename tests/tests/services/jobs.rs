#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of other crates")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Nightly jobs of a shop: jobs behind a trait, and a runner that is generic over its store.

use super::prelude::*;
use super::store::Store;
use redlock_runtime::{LockError, LockManager, Wait, distributed_lock};
use std::fmt::{Debug, Display};
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Store of the jobs.
pub trait Records: Debug + Send + Sync + 'static {
    /// Adds to a record, and returns its new value.
    fn add(&self, name: &str, count: u64) -> impl Future<Output = u64> + Send;
}

impl Records for Store {
    #[distributed_lock(key = "record:{name}", on_error = |error| unreachable!("{error}"))]
    async fn add(&self, name: &str, count: u64) -> u64 {
        self.update(name, |old| old + count).await
    }
}

/// A job.
pub trait Job {
    /// Name of the job.
    const NAME: &'static str;
    /// Longest duration of a run.
    const LEASE: Duration = Duration::from_secs(30);
    /// Input of a run.
    type Input: Display + Send + Sync;

    /// Returns the store.
    fn records(&self) -> &impl Records;

    /// Runs the job, once for each input at a time.
    #[allow(async_fn_in_trait)]
    #[distributed_lock(key = "{Self::NAME}:{input}", ttl = Self::LEASE, wait = 1m)]
    async fn run(&self, input: Self::Input, count: u64) -> Result<u64> {
        self.prepare(&input).await?;
        Ok(self.records().add(&input.to_string(), count).await)
    }

    /// Prepares a run. Does nothing by default.
    #[allow(async_fn_in_trait)]
    #[distributed_lock(key = "prepare:{Self::NAME}:{input}", wait = none, on_contended = skip)]
    async fn prepare(&self, input: &Self::Input) -> Result<()> {
        tracing::debug!(%input, "nothing to prepare");
        Ok(())
    }

    /// Runs the job for all inputs, until the first error.
    fn run_all(&self, inputs: Vec<Self::Input>) -> impl Future<Output = Result<u64>>;
}

/// Writes invoices.
#[derive(Debug)]
pub struct Invoices(pub Store);

impl Job for Invoices {
    const NAME: &'static str = "invoices";
    type Input = String;

    fn records(&self) -> &impl Records {
        &self.0
    }

    #[distributed_lock(key("all:{Self::NAME}:{first}", first = inputs.first().map_or("", |first| first.as_str())))]
    async fn run_all(&self, inputs: Vec<String>) -> Result<u64> {
        let mut sum = 0;
        for input in inputs {
            sum += self.run(input, 1).await?;
        }
        Ok(sum)
    }
}

/// Runs jobs. It is generic over its store, and has `N` shards.
#[derive(Debug)]
pub struct Runner<T, const N: usize> {
    locks: LockManager,
    records: T,
    shards: [u64; N],
    tenant: String,
}

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<T: Records, const N: usize> Runner<T, N> {
    /// Returns a new runner.
    #[must_use]
    pub const fn new(locks: LockManager, records: T, tenant: String) -> Self {
        Self { locks, records, shards: [0; N], tenant }
    }

    /// Runs in a spawned task, and so shares its data in an `Arc`.
    ///
    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.tenant}:{shard}/{N}", manager = self.locks, wait = wait)]
    pub async fn shard(self: Arc<Self>, shard: usize, wait: Wait) -> Result<u64> {
        Ok(self.locks.scope(self.records.add(&format!("{}/{shard}", self.tenant), 1)).await)
    }

    /// Returns the slot of a shard.
    ///
    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.tenant}:slots", manager = self.locks, guard = lock)]
    pub async fn slot(&mut self, shard: usize) -> Result<Option<&mut u64>> {
        lock.extend().await?;
        tokio::task::yield_now().await;
        Ok(self.shards.get_mut(shard % N))
    }

    /// Archives a month, whose year and number are bound by the pattern of the argument.
    #[distributed_lock(
        key = "{self.tenant}:{year}-{month:02}",
        manager = self.locks,
        ttl = 1m,
        wait = none,
        on_contended = ControlFlow::Break,
        on_error = ControlFlow::Break
    )]
    pub async fn archive(&self, (year, month, _): (u16, u8, u8), mut count: u64) -> ControlFlow<LockError, u64> {
        count *= 2;
        self.locks.scope(self.records.add(&format!("{year}-{month}"), count)).await;
        ControlFlow::Continue(count)
    }

    /// Makes the key at once. The lock is acquired when the future is polled.
    #[distributed_lock(key = "{self.tenant}:{name}", manager = self.locks)]
    pub fn later<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<u64>> {
        if name.is_empty() {
            return Box::pin(async { Ok(0) });
        }
        Box::pin(async move { Ok(self.locks.scope(self.records.add(name, 1)).await) })
    }
}

/// Halves a folder recursively until the parts are small enough.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "folder:{from}-{to}", manager = locks, ttl = 30)]
pub async fn sweep<R: Records>(locks: &LockManager, records: &R, from: u64, to: u64) -> Result<u64> {
    if to - from <= 1 {
        return Ok(locks.scope(records.add("swept", to - from)).await);
    }
    let middle = from.midpoint(to);
    Box::pin(sweep(locks, records, from, middle)).await?;
    Box::pin(sweep(locks, records, middle, to)).await
}

/// Borrows its arguments. Only the name outlives the call.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "export:{name}", wait = 10s)]
pub fn export<'a, R>(records: &'a R, name: &'a str, count: u64) -> impl Future<Output = Result<&'a str>> + Send
where
    R: Records + ?Sized,
{
    async move {
        records.add(name, count).await;
        Ok(name)
    }
}

/// Has an argument whose type depends on the platform.
///
/// # Errors
/// The lock.
#[cfg_attr(not(miri), distributed_lock(key = "heartbeat:{process}", on_contended = skip, wait = 50ms))]
pub async fn heartbeat(
    store: &Store,
    #[cfg(not(target_os = "none"))] process: u32,
    #[cfg(target_os = "none")] process: &str,
) -> Result<Option<u64>> {
    #![allow(clippy::let_and_return)]
    let beats = store.update(&process.to_string(), |beats| beats + 1).await;
    Ok(Some(beats))
}

/// Spawns all of them, which requires that their futures are `Send`.
pub fn spawn<T: Records + Clone, const N: usize>(runner: &Arc<Runner<T, N>>) {
    let (first, second) = (Arc::clone(runner), Arc::clone(runner));
    tokio::spawn(Arc::clone(runner).shard(0, Wait::Forever));
    tokio::spawn(async move { first.archive((2024, 1, 31), 1).await });
    tokio::spawn(async move { second.later("later").await });
}
