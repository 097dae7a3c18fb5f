//! Writing to Redis under a fencing token.

/// Script for Redis that writes a value, unless a later holder of the lock has already written.
///
/// Run the script with your own client, on the server that holds the value. This server need not be one of the nodes. The script is
/// atomic: no other command runs between the comparison of the token and the write.
///
/// | | |
/// |---|---|
/// | `KEYS[1]` | the value, a string |
/// | `KEYS[2]` | the largest token so far; the script writes it, without expiry |
/// | `ARGV[1]` | the [`FencingToken`](crate::FencingToken) of the writer, in decimal |
/// | `ARGV[2]` | the value to write |
/// | `ARGV[3]` and so on | options of `SET`, if any, such as `PX` and a number of milliseconds |
/// | reply | `1` if the value was written, `0` if the token is older than the largest one |
///
/// - A reply of `0` means that the lock was lost and a later holder has written: stop.
/// - The writer with the largest token can write more than once.
/// - On a Redis Cluster, both keys must be in one slot, such as `{order:7}:state` and `{order:7}:fence`.
/// - `KEYS[2]` must outlive every delayed writer: do not let it expire, and use a server that does not evict keys.
///
/// # When not to use it
///
/// The script protects the value only if all writers use the script, with tokens of one lock.
///
/// # Examples
/// With the crate `redis` and its feature `script`. Other clients use `EVAL`.
///
/// ```no_run
/// use redlock_runtime::{FencedSet, LockManager, LockRequest};
///
/// # async fn write(manager: &LockManager, mut connection: redis::aio::MultiplexedConnection)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// let fenced_set = redis::Script::new(FencedSet::SCRIPT);
/// let guard = manager.acquire(LockRequest::new("order:7").fencing()).await?;
/// let is_written: bool = fenced_set
///     .key("order:7:state")
///     .key("order:7:fence")
///     .arg(guard.fencing_token().as_u64())
///     .arg("paid")
///     .invoke_async(&mut connection)
///     .await?;
/// # let _ = is_written; Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FencedSet;

impl FencedSet {
    /// Source of the script. It runs on Redis 2.6.12 and newer.
    pub const SCRIPT: &'static str = include_str!("fenced_set.lua");
}
