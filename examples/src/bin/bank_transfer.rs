//! Two keys at once: several processes transfer money between the same accounts, each pair of them in both directions.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin bank_transfer
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin bank_transfer -- --unlocked
//! ```
//!
//! A transfer reads two balances and writes them later. It locks both accounts, or none, so that two transfers in opposite
//! directions do not wait for each other in a circle; and those that have no account in common run at the same time. In the end
//! there is as much money as before. `--unlocked` leaves the locks out, and shows that the check can fail. The program starts itself
//! again for each process; it ends with an error when money has come or gone.

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

/// Where an account is kept.
fn balance_of(bank: &str, account: usize) -> String {
    format!("{bank}:balance:{account}")
}

/// Moves money in four steps, as what is kept in several places is moved.
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

/// The same, while nobody else is at either account. The braces around the bank are in the key: in a cluster, its accounts are in
/// one slot by them.
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

/// Has several processes move money, and counts it.
async fn check(is_locked: bool) -> Result<(), AnyError> {
    // A wrong or missing URL shows here, and not in eight processes at once.
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

/// One process: several clerks, half of whom move money the other way round.
async fn branch(is_locked: bool, bank: &str, number: usize) -> Result<(), AnyError> {
    // The balances are on the same server; the namespace keeps the locks away from them.
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.install()?;
    let redis = redlock_examples::data_store().await?;
    let mut clerks = JoinSet::new();
    for clerk in 0..CLERKS_PER_PROCESS {
        let (bank, mut redis) = (bank.to_owned(), redis.clone());
        clerks.spawn(async move {
            for round in 0..TRANSFERS_PER_CLERK {
                let one = (clerk + round) % ACCOUNTS;
                // Now and then, an account is its own neighbour: a transfer from it to itself.
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
    async fn transfers_of_two_processes_in_both_directions_lose_nothing() {
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
        // Each pair has moved the same in both directions.
        for account in 0..3 {
            let balance: i64 = redis.get(balance_of(BANK, account)).await.unwrap();
            assert_eq!(balance, OPENING_BALANCE, "account {account}");
        }
        assert_eq!((servers.log().acquired().len(), servers.log().failed().len()), (30, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_transfer_waits_for_either_account_and_for_no_other() {
        let servers = TestServers::new(3);
        let manager = servers.manager();
        // Nobody is there. So whoever asks for a balance gets an error.
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
        // From one account to itself, too: it does not wait for itself.
        for (from, to) in [(0, 2), (2, 0), (2, 2)] {
            let failed = transfer(from, to).await;
            assert!(failed.is::<redis::RedisError>(), "{failed}");
        }
        servers.release("{bank}:1");
        assert!(transfer(0, 1).await.is::<redis::RedisError>());
    }
}
