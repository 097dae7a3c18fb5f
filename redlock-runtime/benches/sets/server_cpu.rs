//! CPU time of the servers, as reported by `INFO`.

use redlock_tests::{Nodes, RedisServer};
use std::time::Duration;

/// Returns the total CPU time of all servers so far.
pub(crate) async fn of(servers: &Nodes) -> Duration {
    let mut all = Duration::ZERO;
    for server in servers.iter() {
        all += seconds(server, "used_cpu_user").await + seconds(server, "used_cpu_sys").await;
    }
    all
}

async fn seconds(server: &RedisServer, field: &str) -> Duration {
    let text = server.inspect().info("cpu", field).await.expect("every server says it");
    Duration::from_secs_f64(text.parse().expect("seconds"))
}
