//! A first look at `#[distributed_lock]`: two annotated functions, and the results that their callers get.
//!
//! Uses the Redis servers in `REDLOCK_NODES`, or an in-memory node if the variable is not set.

use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::fmt::Display;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Runs once at a time per order, across all processes that use the same Redis. Other calls wait up to 5 seconds.
#[distributed_lock(key = "order:{order_id}", ttl = 30, wait = 5)]
async fn capture_payment(clerk: &str, order_id: u64) -> Result<(), LockError> {
    say(clerk, format_args!("order {order_id}: begins"));
    sleep(Duration::from_millis(150)).await; // the bank is slow
    say(clerk, format_args!("order {order_id}: done"));
    Ok(())
}

/// Runs once at a time per day. A call fails at once if another call holds the lock.
#[distributed_lock(key = "report:{day}", ttl = 30, wait = none)]
async fn send_report(clerk: &str, day: &str) -> Result<usize, LockError> {
    say(clerk, format_args!("report of {day}: begins"));
    sleep(Duration::from_millis(150)).await;
    Ok(42)
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let manager = start().await?;
    // From here on, every annotated function uses this manager.
    manager.install()?;

    take_turns().await?;
    fail_at_once().await;
    cancel_halfway().await?;

    chapter("Before the process ends, `shutdown` waits until Redis has answered every release.");
    let is_released = manager.shutdown().await;
    say("", if is_released { "all locks are released" } else { "some releases are unanswered; their locks expire" });
    Ok(())
}

async fn start() -> Result<LockManager, LockError> {
    if std::env::var_os("REDLOCK_NODES").is_none() {
        println!("The locks are in this process, because REDLOCK_NODES is not set. To have them on Redis:");
        println!("REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin quickstart");
        return Ok(LockManager::in_memory());
    }
    let manager = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    manager.ready().await?;
    println!("The locks are on the Redis servers in REDLOCK_NODES.");
    Ok(manager)
}

async fn take_turns() -> Result<(), LockError> {
    chapter("Calls for the same order take turns. Another order does not wait for them.");
    tokio::try_join!(capture_payment("Ann", 7), capture_payment("Ben", 7), capture_payment("Cleo", 8))?;
    Ok(())
}

async fn fail_at_once() {
    chapter("With `wait = none`, a call that finds the key taken returns an error. Its body does not run.");
    let report = async |clerk| match send_report(clerk, "Monday").await {
        Ok(lines) => say(clerk, format_args!("Ok({lines})")),
        Err(error) => say(clerk, format_args!("Err({error})")),
    };
    let a_little_later = async {
        sleep(Duration::from_millis(50)).await;
        report("Ben").await;
    };
    tokio::join!(report("Ann"), a_little_later);
}

async fn cancel_halfway() -> Result<(), LockError> {
    chapter("A call that is dropped, here by a timeout, stops and releases its lock. The next call starts at once.");
    if timeout(Duration::from_millis(50), capture_payment("Dan", 9)).await.is_err() {
        say("Dan", "order 9: timed out");
    }
    capture_payment("Eve", 9).await
}

fn chapter(title: &str) {
    println!("\n{title}");
}

/// Prints a line with the time since the first line.
fn say(who: &str, what: impl Display) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    println!("{:>7} ms  {who:<5} {what}", START.elapsed().as_millis());
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::assert_locked;
    use redlock_runtime::testing::TestServers;

    #[tokio::test(start_paused = true)]
    async fn two_processes_capture_an_order_one_after_the_other() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        let (first, second) =
            tokio::join!(ours.scope(capture_payment("Ann", 7)), theirs.scope(capture_payment("Ben", 7)));
        assert!(first.is_ok() && second.is_ok());
        assert_locked!(servers.log(), "order:7", ttl = 30s);
        assert_eq!(servers.log().max_together("order:{order_id}"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn contended_report_is_not_written() {
        let servers = TestServers::new(1);
        let manager = servers.manager();
        servers.hold("report:Monday").await;
        assert!(manager.scope(send_report("Ben", "Monday")).await.unwrap_err().is_contended());
        servers.release("report:Monday");
        assert_eq!(manager.scope(send_report("Ben", "Monday")).await.unwrap(), 42);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_payment_releases_its_lock() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        let begun = Instant::now();
        ours.scope(cancel_halfway()).await.unwrap();
        theirs.scope(capture_payment("Fay", 9)).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "nobody waits for a lease to end");
        assert_eq!(servers.log().acquired(), ["order:9"; 3]);
    }
}
