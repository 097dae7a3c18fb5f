//! Makes sure that a connection is driven: by its host, or by the library's thread when the host is silent.
//!
//! While the host drives a connection, this task checks every few milliseconds that the host was polled, as long as a command must be sent
//! or a reply is missing. If it was not polled, this task wakes the host, which costs nothing if the host is responsive. A host that is
//! still not polled soon after that is blocked, and the library's thread takes the connection over. After a while, the connection is
//! offered to the host again.

use super::connections::Connections;
use super::io_task::IoTask;
use super::liveness_probe::{LivenessProbe, ProbeAction, next_look};
use super::shared_io_task::{Host, Look, SharedIoTask, Turn};
use crate::error::NodeError;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout, timeout_at};

/// Time for which a connection stays on the library's thread after the host was silent. Too small: a host that blocks repeatedly costs a
/// few milliseconds each time. Too large: each pair of acquisition and release costs a change of threads for longer.
const FIRST_STAY: Duration = Duration::from_secs(1);
/// Maximum of this time, up to which it doubles, until the host has driven the connection for as long. Too small or too large: see
/// `FIRST_STAY`.
const LONGEST_STAY: Duration = Duration::from_secs(64);

/// Drives a connection until it ends, and returns the reason. `host` is the runtime that the manager was built on; it is set to `None` when
/// it has ended.
pub(super) async fn drive(io_task: IoTask, connections: &Arc<Connections>, host: &mut Option<Handle>) -> NodeError {
    let shared = Arc::new(SharedIoTask::new(io_task, Arc::clone(connections)));
    drive_shared(&shared, host.as_ref()).await;
    if shared.is_host_gone() {
        *host = None;
    }
    shared.reason()
}

/// Drives a connection until it ends, or until this future is dropped.
pub(super) async fn drive_shared(shared: &Arc<SharedIoTask>, host: Option<&Handle>) {
    let task = host.map(|host| host.spawn(Host(Arc::clone(shared))).abort_handle());
    let ending = Ending { shared: Arc::clone(shared), task };
    take_turns(&ending.shared).await;
}

/// Ends the connection when its task is dropped.
struct Ending {
    shared: Arc<SharedIoTask>,
    task: Option<AbortHandle>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // A blocked host would keep the connection open until it is polled.
        self.shared.end();
        self.task.iter().for_each(AbortHandle::abort);
    }
}

/// Lets the host drive the connection whenever it can, until the connection ends.
async fn take_turns(shared: &SharedIoTask) {
    // The first turn is empty: the connection is offered already.
    let mut stay = Duration::ZERO;
    while drive_here(shared, stay.max(FIRST_STAY)).await == Turn::Taken {
        let begun = Instant::now();
        wait_until_host_is_silent(shared).await;
        stay = if begun.elapsed() < LONGEST_STAY { (stay * 2).clamp(FIRST_STAY, LONGEST_STAY) } else { FIRST_STAY };
        shared.take_over();
    }
}

/// Drives the connection here, and offers it to the host after each `stay`.
async fn drive_here(shared: &SharedIoTask, stay: Duration) -> Turn {
    loop {
        match timeout(stay, shared.drive()).await {
            Ok(turn) => return turn,
            Err(_) => shared.offer(),
        }
    }
}

/// Returns when the host is silent or gone, or the connection has ended.
async fn wait_until_host_is_silent(shared: &SharedIoTask) {
    let mut liveness_probe = LivenessProbe::default();
    loop {
        let beat = match shared.look() {
            Look::AtWork => liveness_probe.at_work(),
            Look::Seen(seen) => liveness_probe.beat(seen),
            Look::Over => return,
        };
        if beat.is_long() {
            shared.outbox().watch(liveness_probe.puts());
        }
        match beat {
            // Either result is a reason to check again.
            ProbeAction::Wait(pause) => drop(timeout_at(next_check_time(pause), shared.outbox().attention()).await),
            ProbeAction::Ask(pause) => {
                shared.offer();
                sleep(pause).await;
            }
            ProbeAction::Rest => shared.outbox().attention().await,
            ProbeAction::Silent => return,
        }
    }
}

/// Returns the time of the next check, about `pause` from now: together with all other connections of the process.
fn next_check_time(pause: Duration) -> tokio::time::Instant {
    static FIRST: LazyLock<tokio::time::Instant> = LazyLock::new(tokio::time::Instant::now);
    *FIRST + next_look(FIRST.elapsed(), pause)
}
