//! Memory of a held lock on a server.

use crate::held::{hold, in_one_tree};
use crate::kind::Kind;
use crate::result_file;
use redlock_runtime::LockRequest;
use redlock_tests::{Nodes, RedisServer};
use std::fmt;

const MOST_SHARED: f64 = 200.0;
const MOST_PATH: f64 = 700.0;

/// Name, request, and maximum number of bytes of each lock.
type Row = (&'static str, fn(usize) -> LockRequest, Option<f64>);

const ROWS: [Row; 6] = [
    ("one key", |number| Kind::Exclusive.request(number), None),
    ("one key, shared, another key each", |number| Kind::Shared.request(number), Some(MOST_SHARED)),
    ("one key, shared, the same key", |_| Kind::Shared.request(0), Some(MOST_SHARED)),
    ("two keys", |number| Kind::TwoKeys.request(number), None),
    ("a path of depth 3, another tree each", |number| Kind::Path.request(number), Some(MOST_PATH)),
    ("a path of depth 3, in a thousand folders of one tree", in_one_tree, Some(MOST_PATH)),
];

pub(crate) struct Memory {
    count: usize,
    version: String,
    /// Bytes per lock in the order of [`ROWS`].
    bytes: Vec<f64>,
}

impl Memory {
    pub(crate) async fn measure(count: usize) -> Self {
        let (mut bytes, mut version) = (Vec::new(), String::new());
        for (_, request, _) in ROWS {
            let server = Nodes::start(1).await;
            bytes.push(of_each(&server, count, request).await);
            version = info(&server, "server", "redis_version").await;
        }
        Self { count, version, bytes }
    }
}

/// Returns the memory of one lock on the server.
#[expect(clippy::cast_precision_loss, reason = "far less than 2^52")]
async fn of_each(server: &Nodes, count: usize, request: fn(usize) -> LockRequest) -> f64 {
    let manager = crate::manager(&server.urls()).await;
    // Acquire one lock first. One-time allocations, such as a channel, must not be included.
    drop(hold(&manager, 1, request).await);
    let before = used_memory(server).await;
    let held = hold(&manager, count, request).await;
    let after = used_memory(server).await;
    drop(held);
    manager.shutdown().await;
    after.saturating_sub(before) as f64 / count as f64
}

async fn used_memory(server: &Nodes) -> u64 {
    info(server, "memory", "used_memory").await.parse().expect("bytes")
}

async fn info(server: &Nodes, section: &str, field: &str) -> String {
    let server: &RedisServer = server.iter().next().expect("there is one");
    server.inspect().info(section, field).await.expect("every server says it")
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, version, .. } = self;
        writeln!(
            f,
            "
The next table shows the memory of a server (Redis {version}, `used_memory`) for each of {count} locks that are held at once. It
includes their names, and their share of the tables of all keys.
"
        )?;
        writeln!(f, "| held | bytes each | to reach | |")?;
        writeln!(f, "|---|---:|---:|---|")?;
        for ((what, _, most), bytes) in ROWS.iter().zip(&self.bytes) {
            let verdict = most.map_or("", |most| result_file::verdict(*bytes <= most));
            let most = most.map_or(String::new(), |most| format!("at most {most}"));
            writeln!(f, "| {what} | {bytes:.0} | {most} | {verdict} |")?;
        }
        writeln!(
            f,
            "
A server stores a sorted set as a list if its members have at most 64 bytes (`zset-max-listpack-value`, before Redis 7
`zset-max-ziplist-value`). A token has 60 bytes. Earlier versions had tokens of 69 bytes. Each shared name, and each name with a lock
below it, then needed about 850 bytes more. A server with a smaller value of this setting may need them again. One exclusive key
needs 180 bytes itself, mostly for the name, the token, and two entries of tables."
        )
    }
}
