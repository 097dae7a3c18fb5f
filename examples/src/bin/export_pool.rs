//! Permits: several processes export documents, and each tenant has at most five exports at a time across all
//! processes.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin export_pool
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin export_pool -- --unlimited
//! ```
//!
//! Each export increments a counter in Redis while it runs, and records the maximum of that counter for its tenant.
//! With five permits per tenant, the maximum is never above five. Tenants do not limit each other. The program fails if
//! a tenant had too many exports. `--unlimited` skips the permits, to show that the check can fail.
//!
//! The program starts copies of itself as worker processes.

use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use redlock_runtime::{LockManager, distributed_lock};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::sleep;

const PROCESSES: usize = 4;
const WORKERS_PER_PROCESS: usize = 6;
const EXPORTS_PER_WORKER: usize = 5;
const EXPORTS: usize = PROCESSES * WORKERS_PER_PROCESS * EXPORTS_PER_WORKER;
const TENANTS: [&str; 2] = ["acme", "globex"];
/// Maximum number of exports of one tenant at a time.
const PERMITS: u32 = 5;

type AnyError = Box<dyn Error + Send + Sync>;

/// Returns the Redis key of the counter of a tenant's running exports.
fn running(pool: &str, tenant: &str) -> String {
    format!("{pool}:running:{tenant}")
}

/// Returns the Redis key of the sorted set with the maximum of that counter for each tenant.
fn together(pool: &str) -> String {
    format!("{pool}:together")
}

/// Runs one export, and records the number of exports that run at the same time.
async fn export(pool: &str, tenant: &str, redis: &mut ConnectionManager) -> Result<(), AnyError> {
    let running = running(pool, tenant);
    let now: i64 = redis.incr(&running, 1).await?;
    redis::cmd("ZADD").arg(together(pool)).arg("GT").arg(now).arg(tenant).query_async::<()>(redis).await?;
    sleep(Duration::from_millis(10)).await;
    redis.decr::<_, _, ()>(&running, 1).await?;
    Ok(())
}

/// Calls [`export`] while holding one of the tenant's permits.
#[distributed_lock(key = "{pool}:{tenant}", permits = PERMITS, ttl = 10, wait = "1m")]
async fn export_with_permit(pool: &str, tenant: &str, redis: &mut ConnectionManager) -> Result<(), AnyError> {
    export(pool, tenant, redis).await
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("export_pool: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), AnyError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => check(true).await,
        ["--unlimited"] => check(false).await,
        ["--exporter", limited, pool] => exporter(limited == "--limited", pool).await,
        _ => Err("usage: export_pool [--unlimited]".into()),
    }
}

/// Runs the worker processes, and compares the maxima with the limit.
async fn check(is_limited: bool) -> Result<(), AnyError> {
    // Fail here if a URL is wrong or missing, rather than in four processes at once.
    LockManager::from_env()?.ready().await?;
    let mut redis = redlock_examples::data_store().await?;
    let pool = format!("export_pool:{}", std::process::id());
    let limit = if is_limited { "at most 5 of a tenant at a time" } else { "as many at a time as there are workers" };
    println!("{EXPORTS} exports in {PROCESSES} processes for {TENANTS:?}, {limit}.");
    let started = Instant::now();
    let outcome = run_exporters(is_limited, &pool).await;
    let mut most = Vec::new();
    for tenant in TENANTS {
        let of_tenant: Option<i64> = redis.zscore(together(&pool), tenant).await?;
        most.push(of_tenant.unwrap_or_default());
        redis.del::<_, ()>(running(&pool, tenant)).await?;
    }
    redis.del::<_, ()>(together(&pool)).await?;
    outcome?;

    println!("The most that have run together are {most:?}, after {:.1} s.", started.elapsed().as_secs_f64());
    let too_many = most.iter().find(|most| **most > i64::from(PERMITS));
    too_many.map_or(Ok(()), |most| Err(format!("{most} exports of a tenant have run together").into()))
}

async fn run_exporters(is_limited: bool, pool: &str) -> Result<(), AnyError> {
    let mut exporters = JoinSet::new();
    for _ in 0..PROCESSES {
        let mut exporter = Command::new(std::env::current_exe()?);
        let limited = if is_limited { "--limited" } else { "--unlimited" };
        exporter.args(["--exporter", limited, pool]).kill_on_drop(true);
        exporters.spawn(async move { exporter.status().await });
    }
    while let Some(ended) = exporters.join_next().await {
        let status = ended??;
        if !status.success() {
            return Err(format!("a process failed: {status}").into());
        }
    }
    Ok(())
}

/// Worker process: several workers, each of which exports for the tenants in turn.
async fn exporter(is_limited: bool, pool: &str) -> Result<(), AnyError> {
    // Counters and locks share a server. The namespace keeps their keys apart.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.install()?;
    let redis = redlock_examples::data_store().await?;
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS_PER_PROCESS {
        let (pool, mut redis) = (pool.to_owned(), redis.clone());
        let tenants = TENANTS.into_iter().cycle().skip(worker).take(EXPORTS_PER_WORKER);
        workers.spawn(async move {
            for tenant in tenants {
                if is_limited {
                    export_with_permit(&pool, tenant, &mut redis).await?;
                } else {
                    export(&pool, tenant, &mut redis).await?;
                }
            }
            Ok::<(), AnyError>(())
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    manager.shutdown().await;
    Ok(())
}
