//! What the examples share: the Redis server that holds their data, next to those that hold the locks.

use redis::RedisResult;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

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

/// Compiles the code in the README of the project.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles the code in the README of the crate that users depend on.
#[cfg(doctest)]
#[doc = include_str!("../../redlock-runtime/README.md")]
pub struct RuntimeReadme;
