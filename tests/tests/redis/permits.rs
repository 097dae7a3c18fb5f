//! Permits: locks with a limited number of simultaneous holders.

mod ending;
mod entering;
mod faults;
mod inspecting;
mod keeping;
mod passing;
mod storm;
mod waiting;

use crate::support::{BRIEF, builder, connected};
use crate::waiters::patient;
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::Nodes;
use std::time::Duration;

const KEY: &str = "export";

/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);

/// Request for one of the given number of permits, which waits as long as the harness does.
fn permit(permits: u32) -> LockRequest {
    patient(KEY).permits(permits)
}

/// Returns a manager with short leases and short node timeouts.
async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}
