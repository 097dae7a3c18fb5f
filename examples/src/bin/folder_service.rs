//! Path locks: several processes write files in a folder while another process renames the folder.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin folder_service
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin folder_service -- --unlocked
//! ```
//!
//! A write locks the path of its file, so writes to other files of the folder can run at the same time. A rename locks
//! the old and the new path of the folder, which excludes every lock below them. A write therefore cannot be lost
//! between the copy and the removal of the old folder. The program fails if a write is lost. `--unlocked` skips the
//! locks, to show that the check can fail.
//!
//! The program starts copies of itself as writer processes.

use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use redlock_runtime::{LockManager, distributed_lock};
use std::collections::HashMap;
use std::error::Error;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::sleep;

const PROCESSES: u64 = 3;
const FILES_PER_PROCESS: u64 = 4;
const WRITES_PER_FILE: u64 = 20;
const RENAMES: u64 = 10;
/// Names of the folder. Each rename switches to the other one.
const NAMES: [&str; 2] = ["draft", "final"];
/// Pause between two renames.
const PAUSE: Duration = Duration::from_millis(20);

type AnyError = Box<dyn Error + Send + Sync>;

/// Folders of one tenant. Each folder is a Redis hash with the number of lines of each file.
#[derive(Clone)]
struct Folders {
    tenant: String,
    redis: ConnectionManager,
}

impl Folders {
    fn place(&self, folder: &str) -> String {
        format!("{}/{folder}", self.tenant)
    }

    /// Adds a line to a file in two steps. Returns `false` if the folder does not exist.
    async fn write(&mut self, folder: &str, file: &str) -> Result<bool, AnyError> {
        let _inside = Inside::enter();
        let place = self.place(folder);
        if !self.redis.exists::<_, bool>(&place).await? {
            return Ok(false);
        }
        let lines: Option<u64> = self.redis.hget(&place, file).await?;
        sleep(Duration::from_millis(1)).await;
        self.redis.hset::<_, _, _, ()>(&place, file, lines.unwrap_or_default() + 1).await?;
        Ok(true)
    }

    /// Renames a folder: copies it, then removes the original.
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), AnyError> {
        let (from, to) = (self.place(from), self.place(to));
        let files: HashMap<String, u64> = self.redis.hgetall(&from).await?;
        sleep(Duration::from_millis(3)).await;
        let files: Vec<_> = files.into_iter().collect();
        self.redis.hset_multiple::<_, _, _, ()>(&to, &files).await?;
        self.redis.del::<_, ()>(&from).await?;
        Ok(())
    }

    /// Calls `write` while holding the lock of the file.
    #[distributed_lock(path = "/{self.tenant}/{folder}/{file}", ttl = 10, wait = "1m")]
    async fn write_locked(&mut self, folder: &str, file: &str) -> Result<bool, AnyError> {
        self.write(folder, file).await
    }

    /// Calls `rename` while holding the locks of both folder paths, and thereby of all files below.
    #[distributed_lock(path = ["/{self.tenant}/{from}", "/{self.tenant}/{to}"], ttl = 10, wait = "1m")]
    async fn rename_locked(&mut self, from: &str, to: &str) -> Result<(), AnyError> {
        self.rename(from, to).await
    }

    /// Returns the number of lines in all files.
    async fn lines(&mut self) -> Result<u64, AnyError> {
        let mut lines = 0;
        for name in NAMES {
            let files: HashMap<String, u64> = self.redis.hgetall(self.place(name)).await?;
            lines += files.values().sum::<u64>();
        }
        Ok(lines)
    }

    async fn remove(&mut self) -> Result<(), AnyError> {
        self.redis.del::<_, ()>(NAMES.map(|name| self.place(name)).as_slice()).await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("folder_service: {error}");
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
        ["--writer", locked, tenant, number] => write_all(locked == "--locked", tenant, number).await,
        _ => Err("usage: folder_service [--unlocked]".into()),
    }
}

/// Renames the folder while the writer processes run, and counts the lines afterwards.
async fn check(is_locked: bool) -> Result<(), AnyError> {
    let manager = manager().await?;
    let tenant = format!("folder_service:{}", std::process::id());
    let mut folders = Folders { tenant, redis: redlock_examples::data_store().await? };
    let place = folders.place(NAMES[0]);
    // Redis removes an empty hash, so the folder exists only while it has a field.
    folders.redis.hset::<_, _, _, ()>(&place, "index", 0).await?;
    let lock = if is_locked { "with the locks" } else { "without locks" };
    println!("{PROCESSES} processes write in a folder of {:?} while it is renamed, {lock}.", folders.tenant);
    let outcome = rename_and_write(is_locked, &mut folders).await;
    let lines = folders.lines().await?;
    folders.remove().await?;
    manager.shutdown().await;
    let (written, together) = outcome?;
    println!("{written} lines were written, up to {together} at the same time in one process; {lines} are there.");
    if lines == written { Ok(()) } else { Err(format!("{written} lines were written, and {lines} are there").into()) }
}

async fn rename_and_write(is_locked: bool, folders: &mut Folders) -> Result<(u64, u64), AnyError> {
    let mut writers = JoinSet::new();
    for number in 0..PROCESSES {
        let mut writer = Command::new(std::env::current_exe()?);
        let locked = if is_locked { "--locked" } else { "--unlocked" };
        writer.args(["--writer", locked, &folders.tenant, &number.to_string()]);
        writer.stdout(Stdio::piped()).kill_on_drop(true);
        writers.spawn(writer.spawn()?.wait_with_output());
    }
    for number in 0..RENAMES {
        sleep(PAUSE).await;
        let [from, to] = if number.is_multiple_of(2) { NAMES } else { [NAMES[1], NAMES[0]] };
        if is_locked {
            folders.rename_locked(from, to).await?;
        } else {
            folders.rename(from, to).await?;
        }
    }
    let (mut written, mut most) = (0, 0);
    while let Some(ended) = writers.join_next().await {
        let output = ended??;
        if !output.status.success() {
            return Err(format!("a process failed: {}", output.status).into());
        }
        most = most.max(String::from_utf8(output.stdout)?.trim().parse()?);
        written += FILES_PER_PROCESS * WRITES_PER_FILE;
    }
    Ok((written, most))
}

async fn manager() -> Result<LockManager, AnyError> {
    // Folders and locks share a server. The namespace keeps their keys apart.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.ready().await?;
    manager.install()?;
    Ok(manager)
}

/// Writer process: one task per file.
async fn write_all(is_locked: bool, tenant: &str, number: &str) -> Result<(), AnyError> {
    let manager = manager().await?;
    let folders = Folders { tenant: tenant.to_owned(), redis: redlock_examples::data_store().await? };
    let mut files = JoinSet::new();
    for file in 0..FILES_PER_PROCESS {
        files.spawn(write_file(is_locked, folders.clone(), format!("{number}-{file}")));
    }
    while let Some(ended) = files.join_next().await {
        ended??;
    }
    println!("{}", MOST_INSIDE.load(Ordering::Relaxed));
    manager.shutdown().await;
    Ok(())
}

/// Writes lines to a file. If the folder does not exist under one name, tries the other one.
async fn write_file(is_locked: bool, mut folders: Folders, file: String) -> Result<(), AnyError> {
    let mut written = 0;
    let mut names = NAMES.into_iter().cycle();
    let mut folder = NAMES[0];
    while written < WRITES_PER_FILE {
        let is_there =
            if is_locked { folders.write_locked(folder, &file).await? } else { folders.write(folder, &file).await? };
        if is_there {
            written += 1;
        } else {
            folder = names.next().unwrap_or(folder);
        }
    }
    Ok(())
}

static INSIDE: AtomicU64 = AtomicU64::new(0);
static MOST_INSIDE: AtomicU64 = AtomicU64::new(0);

/// Counts a write as in progress until it is dropped.
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
    use redlock_runtime::LockRequest;
    use redlock_runtime::testing::TestServers;
    use redlock_tests::RedisServer;
    use tokio::time::timeout;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn rename_in_another_process_loses_no_line() {
        let (store, servers) = (RedisServer::start().await, TestServers::new(3));
        let redis = redis::Client::open(store.url()).unwrap().get_connection_manager().await.unwrap();
        let mut folders = Folders { tenant: "acme".to_owned(), redis };
        let place = folders.place(NAMES[0]);
        folders.redis.hset::<_, _, _, ()>(&place, "index", 0).await.unwrap();
        let mut files = JoinSet::new();
        for (process, manager) in [servers.manager(), servers.manager()].into_iter().enumerate() {
            for file in 0..2 {
                let (manager, folders) = (manager.clone(), folders.clone());
                let written =
                    async move { manager.scope(write_file(true, folders, format!("{process}-{file}"))).await };
                files.spawn(written);
            }
        }
        let renames = servers.manager();
        for number in 0..RENAMES {
            let [from, to] = if number.is_multiple_of(2) { NAMES } else { [NAMES[1], NAMES[0]] };
            renames.scope(folders.rename_locked(from, to)).await.unwrap();
        }
        for written in files.join_all().await {
            written.unwrap();
        }
        assert_eq!(folders.lines().await.unwrap(), 4 * WRITES_PER_FILE);
        assert!(servers.log().failed().is_empty(), "{}", servers.log());
    }

    #[tokio::test(start_paused = true)]
    async fn file_writer_blocks_a_rename_and_no_other_file() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        // Nothing listens on this port: a call that gets its lock fails with a Redis error.
        let config = ConnectionManagerConfig::new().set_number_of_retries(0);
        let redis = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let redis = ConnectionManager::new_lazy_with_config(redis, config).unwrap();
        let mut folders = Folders { tenant: "acme".to_owned(), redis };
        let written = theirs.acquire(LockRequest::path("/acme/draft/a")).await.unwrap();
        for (from, to) in [("draft", "final"), ("final", "draft")] {
            assert!(
                timeout(SECOND, ours.scope(folders.rename_locked(from, to))).await.is_err(),
                "it waits for a minute"
            );
        }
        assert!(timeout(SECOND, ours.scope(folders.write_locked("draft", "a"))).await.is_err());
        let other = ours.scope(folders.write_locked("draft", "b")).await.unwrap_err();
        assert!(other.is::<redis::RedisError>(), "{other}");
        drop(written);
        let renamed = ours.scope(folders.rename_locked("draft", "final")).await.unwrap_err();
        assert!(renamed.is::<redis::RedisError>(), "{renamed}");
    }
}
