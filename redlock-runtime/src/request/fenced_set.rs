//! Writing to Redis under a fencing token.

/// A script for Redis that writes a value, unless a later owner of the lock has written before.
///
/// It runs on the server that holds the value, with your own client; that need not be one of the nodes. It is atomic:
/// between its look at the token and its write nothing else happens.
///
/// | | |
/// |---|---|
/// | `KEYS[1]` | the value, a string |
/// | `KEYS[2]` | the largest token that was seen; the script writes it, without expiry |
/// | `ARGV[1]` | the [`FencingToken`](crate::FencingToken) of the writer, in decimal |
/// | `ARGV[2]` | the value to write |
/// | `ARGV[3]` and so on | options of `SET`, if any, such as `PX` and a number of milliseconds |
/// | reply | `1` when the value was written, `0` when the token is older than the largest one |
///
/// A reply of `0` says that the lock was lost and somebody else has written: stop. The writer with the largest token may
/// write as often as it likes. On a Redis Cluster both keys must be in one slot, as `{order:7}:state` and
/// `{order:7}:fence` are. `KEYS[2]` must outlive every writer that may still be on its way: do not let it expire, and
/// keep it where no key is evicted.
///
/// # When not to use it
///
/// It protects the value only from writers that use it, all with tokens of one lock.
///
/// # Examples
/// With the crate `redis` and its feature `script`; any other client does it by `EVAL`.
///
/// ```no_run
/// use redlock_runtime::{FencedSet, LockManager};
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
    /// The source of the script. It needs nothing newer than Redis 2.6.12.
    pub const SCRIPT: &'static str = include_str!("fenced_set.lua");
}
