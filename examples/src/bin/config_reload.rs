//! Shared and exclusive locks: several processes serve requests from a configuration, which another process reloads.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin config_reload
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin config_reload -- --unlocked
//! ```
//!
//! The configuration consists of two values that belong together, such as an address and its certificate. Requests hold
//! the lock in shared mode (`mode = shared`), so they do not wait for each other. A reload holds the lock exclusively,
//! so no request reads one old value and one new value. The program fails if a request reads such a mixture.
//! `--unlocked` skips the lock, to show that the check can fail.
//!
//! The program starts copies of itself as server processes.

use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use redlock_runtime::{LockManager, distributed_lock};
use std::error::Error;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::sleep;

const PROCESSES: u64 = 3;
const READERS_PER_PROCESS: u64 = 8;
const RELOADS: u64 = 10;
/// Pause between two reloads.
const PAUSE: Duration = Duration::from_millis(30);

type AnyError = Box<dyn Error + Send + Sync>;

/// Configuration: two values, each set to the number of the reload that wrote it.
struct Config {
    address: u64,
    certificate: u64,
}

impl Config {
    /// Reads the two values one after the other, which is not atomic without a lock.
    async fn read(name: &str, redis: &mut ConnectionManager) -> Result<Self, AnyError> {
        let address = redis.get(format!("{name}:address")).await?;
        sleep(Duration::from_millis(1)).await;
        let certificate = redis.get(format!("{name}:certificate")).await?;
        Ok(Self { address, certificate })
    }

    async fn write(name: &str, number: u64, redis: &mut ConnectionManager) -> Result<(), AnyError> {
        redis.set::<_, _, ()>(format!("{name}:address"), number).await?;
        sleep(Duration::from_millis(5)).await;
        redis.set::<_, _, ()>(format!("{name}:certificate"), number).await?;
        Ok(())
    }

    const fn is_whole(&self) -> bool {
        self.address == self.certificate
    }
}

/// Serves a request. Any number of calls run at the same time.
#[distributed_lock(key = "{name}", mode = shared, ttl = 10, wait = "1m")]
async fn serve_shared(name: &str, redis: &mut ConnectionManager) -> Result<Config, AnyError> {
    serve(name, redis).await
}

async fn serve(name: &str, redis: &mut ConnectionManager) -> Result<Config, AnyError> {
    let _inside = Inside::enter();
    Config::read(name, redis).await
}

/// Writes a new configuration under the exclusive lock, then downgrades the lock and verifies the configuration.
#[distributed_lock(key = "{name}", ttl = 10, wait = "1m", guard = lock)]
async fn reload_exclusively(name: &str, number: u64, redis: &mut ConnectionManager) -> Result<(), AnyError> {
    Config::write(name, number, redis).await?;
    // Requests may run again from here on. The lock stays held in shared mode, so no other reload can run before the
    // check.
    lock.downgrade();
    let written = Config::read(name, redis).await?;
    if written.is_whole() && written.address == number { Ok(()) } else { Err("somebody else has written".into()) }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("config_reload: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), AnyError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => check(true).await,
        ["--unlocked"] => check(false).await,
        ["--server", locked, name] => serve_until_the_last_configuration(locked == "--locked", name).await,
        _ => Err("usage: config_reload [--unlocked]".into()),
    }
}

/// Reloads the configuration while the server processes read it, and reports inconsistent reads.
async fn check(is_locked: bool) -> Result<(), AnyError> {
    let manager = manager().await?;
    let mut redis = redlock_examples::data_store().await?;
    let name = format!("config_reload:{}", std::process::id());
    Config::write(&name, 0, &mut redis).await?;
    let lock = if is_locked { "with the lock" } else { "without a lock" };
    println!("{PROCESSES} processes serve from {name:?} while it is reloaded {RELOADS} times, {lock}.");
    let outcome = reload_and_serve(is_locked, &name, &mut redis).await;
    redis.del::<_, ()>(&[format!("{name}:address"), format!("{name}:certificate")]).await?;
    manager.shutdown().await;
    let Seen { served, mixed, together } = outcome?;
    println!("{served} requests were served, up to {together} at the same time in one process.");
    if mixed == 0 { Ok(()) } else { Err(format!("{mixed} of {served} requests saw half a configuration").into()) }
}

async fn reload_and_serve(is_locked: bool, name: &str, redis: &mut ConnectionManager) -> Result<Seen, AnyError> {
    let mut servers = JoinSet::new();
    for _ in 0..PROCESSES {
        let mut server = Command::new(std::env::current_exe()?);
        server.args(["--server", if is_locked { "--locked" } else { "--unlocked" }, name]);
        server.stdout(Stdio::piped()).kill_on_drop(true);
        let server = server.spawn()?;
        servers.spawn(server.wait_with_output());
    }
    for number in 1..=RELOADS {
        sleep(PAUSE).await;
        if is_locked {
            reload_exclusively(name, number, redis).await?;
        } else {
            Config::write(name, number, redis).await?;
        }
    }
    let mut seen = Seen::default();
    while let Some(ended) = servers.join_next().await {
        let output = ended??;
        if !output.status.success() {
            return Err(format!("a process failed: {}", output.status).into());
        }
        seen.add(&Seen::parse(&String::from_utf8(output.stdout)?)?);
    }
    Ok(seen)
}

async fn manager() -> Result<LockManager, AnyError> {
    // The configuration and the lock share a server. The namespace keeps their keys apart.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.ready().await?;
    manager.install()?;
    Ok(manager)
}

/// Server process: several readers, which run until they read the last configuration.
async fn serve_until_the_last_configuration(is_locked: bool, name: &str) -> Result<(), AnyError> {
    let manager = manager().await?;
    let redis = redlock_examples::data_store().await?;
    let mut readers = JoinSet::new();
    for _ in 0..READERS_PER_PROCESS {
        readers.spawn(read_until_the_last_configuration(is_locked, name.to_owned(), redis.clone()));
    }
    let mut seen = Seen::default();
    while let Some(ended) = readers.join_next().await {
        seen.add(&ended??);
    }
    println!("{} {} {}", seen.served, seen.mixed, MOST_INSIDE.load(Ordering::Relaxed));
    manager.shutdown().await;
    Ok(())
}

async fn read_until_the_last_configuration(
    is_locked: bool,
    name: String,
    mut redis: ConnectionManager,
) -> Result<Seen, AnyError> {
    let mut seen = Seen::default();
    loop {
        let config = if is_locked { serve_shared(&name, &mut redis).await? } else { serve(&name, &mut redis).await? };
        seen.served += 1;
        seen.mixed += u64::from(!config.is_whole());
        if config.certificate == RELOADS {
            return Ok(seen);
        }
    }
}

/// Counts of served requests and of inconsistent reads, and the largest number of requests in progress at once.
#[derive(Default)]
struct Seen {
    served: u64,
    mixed: u64,
    together: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.served += other.served;
        self.mixed += other.mixed;
        self.together = self.together.max(other.together);
    }

    /// Parses the line that a server process prints.
    fn parse(line: &str) -> Result<Self, AnyError> {
        let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match numbers[..] {
            [served, mixed, together] => Ok(Self { served, mixed, together }),
            _ => Err(format!("three numbers expected: {line:?}").into()),
        }
    }
}

static INSIDE: AtomicU64 = AtomicU64::new(0);
static MOST_INSIDE: AtomicU64 = AtomicU64::new(0);

/// Counts a request as in progress until it is dropped.
struct Inside;

impl Inside {
    fn enter() -> Self {
        MOST_INSIDE.fetch_max(INSIDE.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::aio::ConnectionManagerConfig;
    use redlock_runtime::assert_exclusive;
    use redlock_runtime::testing::{LogEvent, TestServers};
    use redlock_tests::RedisServer;
    use tokio::time::timeout;

    const NAME: &str = "config";

    #[tokio::test]
    async fn concurrent_readers_never_see_a_partial_configuration() {
        let (store, servers) = (RedisServer::start().await, TestServers::new(3));
        let mut redis = redis::Client::open(store.url()).unwrap().get_connection_manager().await.unwrap();
        Config::write(NAME, 0, &mut redis).await.unwrap();
        let mut readers = JoinSet::new();
        for manager in [servers.manager(), servers.manager()] {
            for _ in 0..3 {
                let (manager, redis) = (manager.clone(), redis.clone());
                readers.spawn(async move {
                    manager.scope(read_until_the_last_configuration(true, NAME.to_owned(), redis)).await
                });
            }
        }
        let writer = servers.manager();
        for number in 1..=RELOADS {
            writer.scope(reload_exclusively(NAME, number, &mut redis)).await.unwrap();
        }
        for seen in readers.join_all().await {
            let Seen { served, mixed, .. } = seen.unwrap();
            assert!(served > 0 && mixed == 0, "{mixed} of {served}");
        }
        let log = servers.log();
        assert_exclusive!(log, "{name}");
        assert!(log.max_together("{name}") > 1, "{log}");
        let is_shared_from_now_on = |event: &LogEvent| matches!(event, LogEvent::Downgraded { .. });
        let downgraded = log.entries().iter().filter(|entry| is_shared_from_now_on(&entry.event)).count();
        assert_eq!(u64::try_from(downgraded).unwrap(), RELOADS, "readers do not wait until it was looked at");
    }

    #[tokio::test(start_paused = true)]
    async fn reader_blocks_a_reload_and_no_other_reader() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        // Nothing listens on this port: a call that gets the lock fails with a Redis error.
        let config = ConnectionManagerConfig::new().set_number_of_retries(0);
        let redis = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let mut redis = ConnectionManager::new_lazy_with_config(redis, config).unwrap();
        servers.hold_shared(NAME).await;
        let reload = ours.scope(reload_exclusively(NAME, 1, &mut redis));
        assert!(timeout(Duration::from_secs(30), reload).await.is_err(), "it waits for a minute");
        assert_eq!(servers.log().cancelled(), [NAME]);
        let served = theirs.scope(serve_shared(NAME, &mut redis)).await.err().unwrap();
        assert!(served.is::<redis::RedisError>(), "{served}");
        servers.release(NAME);
        let reloaded = ours.scope(reload_exclusively(NAME, 1, &mut redis)).await.unwrap_err();
        assert!(reloaded.is::<redis::RedisError>(), "{reloaded}");
        assert_eq!(servers.log().acquired(), [NAME, NAME]);
    }
}
