//! Readers and a writer: several processes serve requests from a configuration, and one reloads it now and then.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin config_reload
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin config_reload -- --unlocked
//! ```
//!
//! The configuration is two values that belong together, as an address and the certificate for it do. Those who serve share
//! the lock, `mode = shared`, and so do not wait for each other; whoever reloads has it alone, and nobody sees one value of
//! the old configuration beside one of the new. `--unlocked` leaves the locks out, and shows that the check can fail. The
//! program starts itself again for each process that serves; it ends with an error when a request has seen a mixture.

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
/// How long the one who reloads does something else in between.
const PAUSE: Duration = Duration::from_millis(30);

type AnyError = Box<dyn Error + Send + Sync>;

/// One configuration: two values, each with the number of the reload that wrote it.
struct Config {
    address: u64,
    certificate: u64,
}

impl Config {
    /// Reads it in two steps, as whatever is larger than one value is read.
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

/// Serves a request, together with all others that do.
#[distributed_lock(key = "{name}", mode = shared, ttl = 10, wait = "1m")]
async fn serve_shared(name: &str, redis: &mut ConnectionManager) -> Result<Config, AnyError> {
    serve(name, redis).await
}

async fn serve(name: &str, redis: &mut ConnectionManager) -> Result<Config, AnyError> {
    let _inside = Inside::enter();
    Config::read(name, redis).await
}

/// Writes another configuration while nobody serves from it, and looks at it while others do so again.
#[distributed_lock(key = "{name}", ttl = 10, wait = "1m", guard = lock)]
async fn reload_alone(name: &str, number: u64, redis: &mut ConnectionManager) -> Result<(), AnyError> {
    Config::write(name, number, redis).await?;
    // From here on it shares the lock with those who serve. Nobody could write in between.
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
        ["--server", locked, name] => serve_until_the_last(locked == "--locked", name).await,
        _ => Err("usage: config_reload [--unlocked]".into()),
    }
}

/// Reloads while others serve, and looks at what they have seen.
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
            reload_alone(name, number, redis).await?;
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
    // The configuration is on the same server; the namespace keeps the lock away from it.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.ready().await?;
    manager.install()?;
    Ok(manager)
}

/// One process: several readers, until they see the last configuration.
async fn serve_until_the_last(is_locked: bool, name: &str) -> Result<(), AnyError> {
    let manager = manager().await?;
    let redis = redlock_examples::data_store().await?;
    let mut readers = JoinSet::new();
    for _ in 0..READERS_PER_PROCESS {
        readers.spawn(read_until_the_last(is_locked, name.to_owned(), redis.clone()));
    }
    let mut seen = Seen::default();
    while let Some(ended) = readers.join_next().await {
        seen.add(&ended??);
    }
    println!("{} {} {}", seen.served, seen.mixed, MOST_INSIDE.load(Ordering::Relaxed));
    manager.shutdown().await;
    Ok(())
}

async fn read_until_the_last(is_locked: bool, name: String, mut redis: ConnectionManager) -> Result<Seen, AnyError> {
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

/// What those who serve have seen.
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

    /// Reads the line that a process has printed.
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

/// A request that is being served.
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
    async fn readers_of_two_processes_serve_together_and_never_from_half_a_configuration() {
        let (store, servers) = (RedisServer::start().await, TestServers::new(3));
        let mut redis = redis::Client::open(store.url()).unwrap().get_connection_manager().await.unwrap();
        Config::write(NAME, 0, &mut redis).await.unwrap();
        let mut readers = JoinSet::new();
        for manager in [servers.manager(), servers.manager()] {
            for _ in 0..3 {
                let (manager, redis) = (manager.clone(), redis.clone());
                readers.spawn(async move { manager.scope(read_until_the_last(true, NAME.to_owned(), redis)).await });
            }
        }
        let writer = servers.manager();
        for number in 1..=RELOADS {
            writer.scope(reload_alone(NAME, number, &mut redis)).await.unwrap();
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
    async fn who_serves_keeps_a_reload_out_and_no_other_who_serves() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        // Nobody is there. So whoever asks for the configuration gets an error.
        let config = ConnectionManagerConfig::new().set_number_of_retries(0);
        let redis = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let mut redis = ConnectionManager::new_lazy_with_config(redis, config).unwrap();
        servers.hold_shared(NAME).await;
        let reload = ours.scope(reload_alone(NAME, 1, &mut redis));
        assert!(timeout(Duration::from_secs(30), reload).await.is_err(), "it waits for a minute");
        assert_eq!(servers.log().cancelled(), [NAME]);
        let served = theirs.scope(serve_shared(NAME, &mut redis)).await.err().unwrap();
        assert!(served.is::<redis::RedisError>(), "{served}");
        servers.release(NAME);
        let reloaded = ours.scope(reload_alone(NAME, 1, &mut redis)).await.unwrap_err();
        assert!(reloaded.is::<redis::RedisError>(), "{reloaded}");
        assert_eq!(servers.log().acquired(), [NAME, NAME]);
    }
}
