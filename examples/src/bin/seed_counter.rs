//! The classic lock test: many tasks in several processes increment a number by reading it and writing it back.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin seed_counter
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin seed_counter -- --unlocked
//! ```
//!
//! Under the lock, no increment is lost. The program fails if the final number is wrong. `--unlocked` skips the lock,
//! to show that the check can fail.
//!
//! The program starts copies of itself as worker processes.

use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::time::Instant;
use tokio::process::Command;
use tokio::task::JoinSet;

const PROCESSES: u64 = 5;
const TASKS_PER_PROCESS: u64 = 100;
const TASKS: u64 = PROCESSES * TASKS_PER_PROCESS;

/// Adds 1 like `INCR`, but in two steps.
async fn increment(counter: &str, redis: &mut ConnectionManager) -> Result<(), TaskError> {
    let value: u64 = redis.get(counter).await?;
    redis.set(counter, value + 1).await.map_err(TaskError::Redis)
}

/// Calls [`increment`] while holding the lock of the counter.
#[distributed_lock(key = "{counter}", ttl = 30, wait = "2m")]
async fn increment_locked(counter: &str, redis: &mut ConnectionManager) -> Result<(), TaskError> {
    increment(counter, redis).await
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seed_counter: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => check("--locked").await,
        ["--unlocked"] => check("--unlocked").await,
        ["--worker", mode, counter] => work(mode == "--locked", counter).await,
        _ => Err("usage: seed_counter [--unlocked]".into()),
    }
}

/// Runs the worker processes, and compares the counter with the number of tasks.
async fn check(mode: &str) -> Result<(), Box<dyn Error>> {
    // Fail here if a URL is wrong or missing, rather than in five processes at once.
    LockManager::from_env()?.ready().await?;
    let mut redis = redlock_examples::data_store().await?;
    let counter = format!("seed_counter:{}", std::process::id());
    redis.set::<_, _, ()>(&counter, 0).await?;

    let lock = if mode == "--locked" { "with the lock" } else { "without a lock" };
    println!("{TASKS} tasks in {PROCESSES} processes add 1 to {counter:?}, {lock}.");
    let started = Instant::now();
    let outcome = run_workers(mode, &counter).await;
    let count: u64 = redis.get_del(&counter).await?;
    outcome?;

    println!("The number is {count}, after {:.1} s.", started.elapsed().as_secs_f64());
    if count == TASKS { Ok(()) } else { Err(format!("{} of {TASKS} additions are lost", TASKS - count).into()) }
}

async fn run_workers(mode: &str, counter: &str) -> Result<(), Box<dyn Error>> {
    let mut workers = JoinSet::new();
    for _ in 0..PROCESSES {
        let mut worker = Command::new(std::env::current_exe()?);
        worker.args(["--worker", mode, counter]).kill_on_drop(true);
        workers.spawn(async move { worker.status().await });
    }
    while let Some(ended) = workers.join_next().await {
        let status = ended??;
        if !status.success() {
            return Err(format!("a process failed: {status}").into());
        }
    }
    Ok(())
}

/// Worker process: runs all its tasks concurrently.
async fn work(locked: bool, counter: &str) -> Result<(), Box<dyn Error>> {
    // The counter and its lock have the same key on the same server. The namespace keeps them apart.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.install()?;
    let redis = redlock_examples::data_store().await?;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS_PER_PROCESS {
        let (counter, mut redis) = (counter.to_owned(), redis.clone());
        tasks.spawn(async move {
            if locked { increment_locked(&counter, &mut redis).await } else { increment(&counter, &mut redis).await }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    manager.shutdown().await;
    Ok(())
}

#[derive(Debug)]
enum TaskError {
    Lock(LockError),
    Redis(redis::RedisError),
}

impl From<LockError> for TaskError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<redis::RedisError> for TaskError {
    fn from(error: redis::RedisError) -> Self {
        Self::Redis(error)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::Redis(error) => error.fmt(f),
        }
    }
}

impl Error for TaskError {}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::aio::ConnectionManagerConfig;
    use redlock_runtime::testing::TestServers;
    use redlock_runtime::{assert_exclusive, assert_locked};
    use redlock_tests::RedisServer;

    #[tokio::test]
    async fn tasks_of_two_processes_lose_no_increment() {
        let (store, servers) = (RedisServer::start().await, TestServers::new(3));
        let mut redis = redis::Client::open(store.url()).unwrap().get_connection_manager().await.unwrap();
        redis.set::<_, _, ()>("counter", 0).await.unwrap();
        let mut tasks = JoinSet::new();
        for manager in [servers.manager(), servers.manager()] {
            for _ in 0..20 {
                let (manager, mut redis) = (manager.clone(), redis.clone());
                tasks.spawn(async move { manager.scope(increment_locked("counter", &mut redis)).await });
            }
        }
        for counted in tasks.join_all().await {
            counted.unwrap();
        }
        assert_eq!(redis.get::<_, u64>("counter").await.unwrap(), 40);
        let log = servers.log();
        assert_eq!(log.acquired().len(), 40);
        assert_exclusive!(log, "{counter}");
        assert_locked!(log, "counter", ttl = 30s);
    }

    #[tokio::test(start_paused = true)]
    async fn contended_counter_is_not_changed() {
        let servers = TestServers::new(1);
        let manager = servers.manager();
        // Nothing listens on this port: a call that gets the lock fails with a Redis error.
        let config = ConnectionManagerConfig::new().set_number_of_retries(0);
        let redis = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let mut redis = ConnectionManager::new_lazy_with_config(redis, config).unwrap();
        servers.hold("counter").await;
        let refused = manager.scope(increment_locked("counter", &mut redis)).await.unwrap_err();
        assert!(matches!(&refused, TaskError::Lock(error) if error.is_contended()), "{refused}");
        servers.release("counter");
        let failed = manager.scope(increment_locked("counter", &mut redis)).await.unwrap_err();
        assert!(matches!(&failed, TaskError::Redis(_)), "{failed}");
        assert_eq!(
            (servers.log().failed(), servers.log().acquired()),
            (vec!["counter".into()], vec!["counter".into()])
        );
        servers.hold("counter").await; // free again: the failed call has released it
    }
}
