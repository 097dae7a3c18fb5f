//! Requests for several keys and for paths of a tree.

mod attached;
mod broken;
mod cancelled;
mod clustered;
mod excluded;
mod faults;
mod fenced;
mod full;
mod inspecting;
mod leaving;
mod nested;
mod storm;
mod tree;

use crate::support::{BRIEF, builder, connected};
use redlock_runtime::{LockManager, LockPart, LockRequest};
use redlock_tests::{Nodes, PATIENCE};
use std::time::Duration;

/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);

/// Request for these keys, which waits as long as the harness does.
fn all<P: Into<LockPart>>(parts: impl IntoIterator<Item = P>) -> LockRequest {
    LockRequest::all(parts).wait(PATIENCE)
}

/// Request for this path, which waits as long as the harness does.
fn place(path: &str) -> LockRequest {
    LockRequest::path(path).wait(PATIENCE)
}

/// Returns a manager with short leases and short node timeouts.
async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}
