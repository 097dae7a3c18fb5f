//! A few at a time: several processes export documents, and no tenant has more than five exports at a time, over all of them.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin export_pool
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin export_pool -- --unlimited
//! ```
//!
//! Each export says in Redis that it runs, and how many of its tenant run with it. With five permits for each tenant, it never finds
//! more than five; other tenants have their own. `--unlimited` leaves the permits out, and shows that the check can fail. The program
//! starts itself again for each process; it ends with an error when there were too many.

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
/// How many exports of one tenant may run at a time.
const PERMITS: u32 = 5;

type AnyError = Box<dyn Error + Send + Sync>;

/// Where it is kept how many exports of a tenant run.
fn running(pool: &str, tenant: &str) -> String {
    format!("{pool}:running:{tenant}")
}

/// Where it is kept, for each tenant, how many have run together.
fn together(pool: &str) -> String {
    format!("{pool}:together")
}

/// Takes some time, and notes how many run meanwhile.
async fn export(pool: &str, tenant: &str, redis: &mut ConnectionManager) -> Result<(), AnyError> {
    let running = running(pool, tenant);
    let now: i64 = redis.incr(&running, 1).await?;
    redis::cmd("ZADD").arg(together(pool)).arg("GT").arg(now).arg(tenant).query_async::<()>(redis).await?;
    sleep(Duration::from_millis(10)).await;
    redis.decr::<_, _, ()>(&running, 1).await?;
    Ok(())
}

/// The same, while fewer than five others do it for this tenant.
#[distributed_lock(key = "{pool}:{tenant}", permits = PERMITS, ttl = 10, wait = "1m")]
async fn export_in_turn(pool: &str, tenant: &str, redis: &mut ConnectionManager) -> Result<(), AnyError> {
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

/// Has several processes export, and looks how many have run together.
async fn check(is_limited: bool) -> Result<(), AnyError> {
    // A wrong or missing URL shows here, and not in four processes at once.
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

/// One process: several workers, each of which exports for one tenant after the other.
async fn exporter(is_limited: bool, pool: &str) -> Result<(), AnyError> {
    // What is counted is on the same server; the namespace keeps the locks away from it.
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
                    export_in_turn(&pool, tenant, &mut redis).await?;
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
