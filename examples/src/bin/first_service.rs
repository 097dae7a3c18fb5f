//! The service on the page "Quick start" of the guide, which a test compares with it.

use axum::extract::{Path, State};
use axum::{Router, routing::post};
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::{error::Error, time::Duration};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[distributed_lock(key = "order:{id}", wait = 2s, manager = locks)]
async fn capture(State(locks): State<LockManager>, Path(id): Path<u64>) -> Result<String, LockError> {
    tokio::time::sleep(Duration::from_secs(3)).await; // the payment
    Ok(format!("order {id} is paid\n"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = LockManager::from_env()?; // reads REDLOCK_NODES
    locks.ready().await?; // fails now, with the reason, if the servers are unusable

    let app = Router::new().route("/orders/{id}/capture", post(capture)).with_state(locks.clone());
    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?; // finishes the requests in progress
    locks.shutdown().await; // waits until the servers have answered all releases
    Ok(())
}
