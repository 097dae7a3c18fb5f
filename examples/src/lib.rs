//! What the examples share: the Redis server that holds their data, next to those that hold the locks, how long payments
//! take, and when to stop. And what shows the locks of a service: to Prometheus, to OpenTelemetry, and to people.

pub mod opentelemetry;
pub mod prometheus;

use redis::RedisResult;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use std::error::Error;
use std::time::Duration;

/// Connects to the first server in `REDLOCK_NODES`, where the examples keep their data.
///
/// Locks and data may share a server as long as their keys differ: a lock *is* the Redis key of that name. The examples
/// put their locks below the namespace `locks`. Locks work over TLS; this connection does not, to keep the build small.
///
/// # Errors
/// When the URL is wrong or the server does not answer.
pub async fn data_store() -> RedisResult<ConnectionManager> {
    let nodes = std::env::var("REDLOCK_NODES").unwrap_or_default();
    let first = nodes.split(',').next().unwrap_or_default().trim();
    // One try to connect again per command, so that a dead server is an error soon.
    let config = ConnectionManagerConfig::new().set_number_of_retries(1);
    redis::Client::open(first)?.get_connection_manager_with_config(config).await
}

/// How long a payment takes: `PAYMENT_MS`, or 200 ms.
///
/// # Errors
/// When it is no number.
pub fn payment_time() -> Result<Duration, Box<dyn Error>> {
    let millis = std::env::var("PAYMENT_MS").unwrap_or_else(|_| "200".to_owned());
    Ok(Duration::from_millis(millis.parse().map_err(|error| format!("PAYMENT_MS={millis}: {error}"))?))
}

/// Ctrl-C, and SIGTERM where it exists.
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

/// Compiles the code in the README of the project.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles the code in the README of the crate that users depend on.
#[cfg(doctest)]
#[doc = include_str!("../../redlock-runtime/README.md")]
pub struct RuntimeReadme;
