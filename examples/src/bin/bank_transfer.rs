//! Locks on two keys at once: several processes transfer money between the same accounts, in both directions.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin bank_transfer
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin bank_transfer -- --unlocked
//! ```
//!
//! A transfer reads two balances and writes them later. It acquires the locks of both accounts or neither, so transfers
//! in opposite directions cannot deadlock. Transfers that share no account run in parallel. The program checks that the
//! total does not change, and fails otherwise. `--unlocked` skips the locks, to show that the check can fail.
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

const PROCESSES: usize = 8;
const CLERKS_PER_PROCESS: usize = 5;
const TRANSFERS_PER_CLERK: usize = 5;
const TRANSFERS: usize = PROCESSES * CLERKS_PER_PROCESS * TRANSFERS_PER_CLERK;
const ACCOUNTS: usize = 5;
const OPENING_BALANCE: i64 = 1000;

type AnyError = Box<dyn Error + Send + Sync>;

/// Returns the Redis key of an account's balance.
fn balance_of(bank: &str, account: usize) -> String {
    format!("{bank}:balance:{account}")
}

/// Moves money in separate reads and writes, which are not atomic without a lock.
async fn transfer(
    bank: &str,
    from: usize,
    to: usize,
    amount: i64,
    redis: &mut ConnectionManager,
) -> Result<(), AnyError> {
    let (from, to) = (balance_of(bank, from), balance_of(bank, to));
    let left: i64 = redis.get(&from).await?;
    let there: i64 = redis.get(&to).await?;
    sleep(Duration::from_millis(1)).await;
    redis.set::<_, _, ()>(&from, left - amount).await?;
    redis.set::<_, _, ()>(&to, there + amount).await?;
    Ok(())
}

/// Calls [`transfer`] while holding the locks of both accounts.
///
/// The keys contain the bank in literal braces, as a Redis hash tag. In a cluster, all accounts of a bank are therefore
/// in one slot, which a lock on several keys needs.
#[distributed_lock(key = ["{{{bank}}}:{from}", "{{{bank}}}:{to}"], ttl = 10, wait = "1m")]
async fn transfer_locked(
    bank: &str,
    from: usize,
    to: usize,
    amount: i64,
    redis: &mut ConnectionManager,
) -> Result<(), AnyError> {
    transfer(bank, from, to, amount, redis).await
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bank_transfer: {error}");
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
        ["--branch", locked, bank, number] => branch(locked == "--locked", bank, number.parse()?).await,
        _ => Err("usage: bank_transfer [--unlocked]".into()),
    }
}

/// Runs the worker processes, and compares the total before and after.
async fn check(is_locked: bool) -> Result<(), AnyError> {
    // Fail here if a URL is wrong or missing, rather than in eight processes at once.
    LockManager::from_env()?.ready().await?;
    let mut redis = redlock_examples::data_store().await?;
    let bank = format!("bank_transfer:{}", std::process::id());
    let accounts: Vec<_> = (0..ACCOUNTS).map(|account| balance_of(&bank, account)).collect();
    for account in &accounts {
        redis.set::<_, _, ()>(account, OPENING_BALANCE).await?;
    }

    let lock = if is_locked { "with the locks" } else { "without locks" };
    println!("{TRANSFERS} transfers in {PROCESSES} processes between {ACCOUNTS} accounts of {bank:?}, {lock}.");
    let started = Instant::now();
    let outcome = run_branches(is_locked, &bank).await;
    let balances: Vec<i64> = redis.mget(&accounts).await?;
    redis.del::<_, ()>(&accounts).await?;
    outcome?;

    let (before, after) = (OPENING_BALANCE * i64::try_from(ACCOUNTS)?, balances.iter().sum::<i64>());
    println!("The balances are {balances:?}, {after} together, after {:.1} s.", started.elapsed().as_secs_f64());
    if before == after { Ok(()) } else { Err(format!("there were {before}, and now there are {after}").into()) }
}

async fn run_branches(is_locked: bool, bank: &str) -> Result<(), AnyError> {
    let mut branches = JoinSet::new();
    for number in 0..PROCESSES {
        let mut branch = Command::new(std::env::current_exe()?);
        let locked = if is_locked { "--locked" } else { "--unlocked" };
        branch.args(["--branch", locked, bank, &number.to_string()]).kill_on_drop(true);
        branches.spawn(async move { branch.status().await });
    }
    while let Some(ended) = branches.join_next().await {
        let status = ended??;
        if !status.success() {
            return Err(format!("a process failed: {status}").into());
        }
    }
    Ok(())
}

/// Worker process: runs several clerks. Odd-numbered processes transfer in the opposite direction.
async fn branch(is_locked: bool, bank: &str, number: usize) -> Result<(), AnyError> {
    // Balances and locks share a server. The namespace keeps their keys apart.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.install()?;
    let redis = redlock_examples::data_store().await?;
    let mut clerks = JoinSet::new();
    for clerk in 0..CLERKS_PER_PROCESS {
        let (bank, mut redis) = (bank.to_owned(), redis.clone());
        clerks.spawn(async move {
            for round in 0..TRANSFERS_PER_CLERK {
                let one = (clerk + round) % ACCOUNTS;
                // Some rounds pick the same account twice: a transfer from an account to itself.
                let other = (one + number + round) % ACCOUNTS;
                let (from, to) = if number.is_multiple_of(2) { (one, other) } else { (other, one) };
                let amount = if from == to { 0 } else { 10 };
                if is_locked {
                    transfer_locked(&bank, from, to, amount, &mut redis).await?;
                } else {
                    transfer(&bank, from, to, amount, &mut redis).await?;
                }
            }
            Ok::<(), AnyError>(())
        });
    }
    while let Some(ended) = clerks.join_next().await {
        ended??;
    }
    manager.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::aio::ConnectionManagerConfig;
    use redlock_runtime::LockError;
    use redlock_runtime::testing::TestServers;
    use redlock_tests::RedisServer;

    const BANK: &str = "bank";

    #[tokio::test]
    async fn opposite_transfers_of_two_processes_lose_no_money() {
        let (store, servers) = (RedisServer::start().await, TestServers::new(3));
        let mut redis = redis::Client::open(store.url()).unwrap().get_connection_manager().await.unwrap();
        for account in 0..3 {
            redis.set::<_, _, ()>(balance_of(BANK, account), OPENING_BALANCE).await.unwrap();
        }
        let mut clerks = JoinSet::new();
        for is_reversed in [false, true] {
            let manager = servers.manager();
            for (one, other) in [(0, 1), (1, 2), (2, 0)] {
                let (from, to) = if is_reversed { (other, one) } else { (one, other) };
                let (manager, mut redis) = (manager.clone(), redis.clone());
                clerks.spawn(async move {
                    for _ in 0..5 {
                        manager.scope(transfer_locked(BANK, from, to, 10, &mut redis)).await?;
                    }
                    Ok::<(), AnyError>(())
                });
            }
        }
        for done in clerks.join_all().await {
            done.unwrap();
        }
        // Each pair of accounts has moved the same amount in both directions.
        for account in 0..3 {
            let balance: i64 = redis.get(balance_of(BANK, account)).await.unwrap();
            assert_eq!(balance, OPENING_BALANCE, "account {account}");
        }
        assert_eq!((servers.log().acquired().len(), servers.log().failed().len()), (30, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn transfer_waits_only_for_locks_of_its_two_accounts() {
        let servers = TestServers::new(3);
        let manager = servers.manager();
        // Nothing listens on this port: a transfer that gets its locks fails with a Redis error.
        let config = ConnectionManagerConfig::new().set_number_of_retries(0);
        let redis = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let redis = ConnectionManager::new_lazy_with_config(redis, config).unwrap();
        let transfer = async |from, to| {
            let mut redis = redis.clone();
            manager.scope(transfer_locked(BANK, from, to, 10, &mut redis)).await.unwrap_err()
        };
        servers.hold("{bank}:1").await;
        for (from, to) in [(0, 1), (1, 0)] {
            let refused = transfer(from, to).await;
            let error = refused.downcast_ref::<LockError>().unwrap();
            assert!(error.is_contended(), "{error}");
        }
        // A transfer from an account to itself names one key twice. It must not wait for itself.
        for (from, to) in [(0, 2), (2, 0), (2, 2)] {
            let failed = transfer(from, to).await;
            assert!(failed.is::<redis::RedisError>(), "{failed}");
        }
        servers.release("{bank}:1");
        assert!(transfer(0, 1).await.is::<redis::RedisError>());
    }
}
