//! The program of the quick start in README.md, which a test compares with it.

use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::{error::Error, process, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

#[distributed_lock(key = "order:{id}")]
async fn capture(id: u64) -> Result<(), LockError> {
    println!("process {}: order {id} begins", process::id());
    tokio::time::sleep(Duration::from_secs(1)).await; // the payment
    println!("process {}: order {id} is paid", process::id());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = tokio::spawn(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    });
    let locks = LockManager::from_env()?; // reads REDLOCK_NODES
    locks.install()?; // every annotated function uses this manager
    locks.ready().await?; // fails now, with the reason, if the servers are unusable
    while !stop.is_finished() {
        // A call in progress finishes before the program stops.
        capture(7).await.unwrap_or_else(|error| eprintln!("{error}"));
    }
    locks.shutdown().await; // waits until the servers have answered all releases
    Ok(())
}
