//! The service of the page "Start and stop" of the guide, which a test compares with it.

use axum::{Router, extract::State, routing::post};
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::{error::Error, time::Duration};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

#[distributed_lock(key = "report", manager = locks)]
async fn report(State(locks): State<LockManager>) -> Result<&'static str, LockError> {
    sleep(Duration::from_millis(1500)).await; // the work
    Ok("the report is written\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = LockManager::from_env()?; // reads REDLOCK_NODES
    locks.ready().await?;
    for warning in locks.check().await.warnings() {
        eprintln!("{warning}");
    }

    let listener = TcpListener::bind(std::env::var("LISTEN")?).await?;
    println!("listening on {}", listener.local_addr()?);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    };
    let app = Router::new().route("/report", post(report)).with_state(locks.clone());
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;

    if timeout(Duration::from_secs(5), locks.shutdown()).await != Ok(true) {
        eprintln!("some locks were not released and will expire");
    }
    Ok(())
}
