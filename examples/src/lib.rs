//! Code that the examples share: the Redis connection for their data, the payment time, the stop signal, and adapters
//! that export lock metrics to Prometheus and OpenTelemetry.

pub mod opentelemetry;
pub mod prometheus;

use redis::RedisResult;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use std::error::Error;
use std::time::Duration;

/// Connects to the first server in `REDLOCK_NODES`, where the examples keep their data.
///
/// Locks and data may share a server if their keys differ, because a lock is a Redis key of the same name. The examples
/// therefore put their locks into the namespace `locks`.
///
/// # Errors
/// Fails if the URL is invalid or the server does not answer.
pub async fn data_store() -> RedisResult<ConnectionManager> {
    let nodes = std::env::var("REDLOCK_NODES").unwrap_or_default();
    let first = nodes.split(',').next().unwrap_or_default().trim();
    // One reconnect attempt per command, so that commands to a dead server fail quickly.
    let config = ConnectionManagerConfig::new().set_number_of_retries(1);
    redis::Client::open(first)?.get_connection_manager_with_config(config).await
}

/// Returns the duration of a payment: `PAYMENT_MS`, or 200 ms.
///
/// # Errors
/// Fails if `PAYMENT_MS` is not a number.
pub fn payment_time() -> Result<Duration, Box<dyn Error>> {
    let millis = std::env::var("PAYMENT_MS").unwrap_or_else(|_| "200".to_owned());
    Ok(Duration::from_millis(millis.parse().map_err(|error| format!("PAYMENT_MS={millis}: {error}"))?))
}

/// Completes on Ctrl-C, and on SIGTERM where it exists.
pub async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Compiles the code blocks in the README of the project.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles the code blocks in the README of the crate that users depend on.
#[cfg(doctest)]
#[doc = include_str!("../../redlock-runtime/README.md")]
pub struct RuntimeReadme;
