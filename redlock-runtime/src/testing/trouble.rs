//! Random faults in a run of `explore`.
//!
//! With several servers, the library keeps its promises under these faults. So each failure of a run is a fault of the program.

use super::server::Server;
use fastrand::Rng;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Maximum time between two faults of a server, in milliseconds. Too small: no call succeeds. Too large: a run has no faults.
const CALM: u64 = 6000;
/// Maximum duration of a fault, in milliseconds. Too small: every lease survives. Too large: a run has a single fault.
const TROUBLE: u64 = 9000;

/// Causes and ends faults of one server in a loop. `forgets`: the faults include a restart without data.
pub(super) async fn inject_faults(server: Arc<Server>, forgets: bool, mut random: Rng) {
    loop {
        sleep(Duration::from_millis(random.u64(0..CALM))).await;
        let round_trip = random.u64(0..400);
        match random.u8(0..10) {
            0..3 => server.cut(),
            3..5 => server.freeze(),
            5..7 => server.slow(Duration::from_millis(round_trip)),
            9 if forgets => server.forget(),
            _ => server.refuse("LOADING Redis is loading the dataset in memory"),
        }
        sleep(Duration::from_millis(random.u64(0..TROUBLE))).await;
        server.recover();
    }
}

/// Cuts one manager off from all servers from time to time.
pub(super) async fn cut_manager_off(servers: Vec<Arc<Server>>, mut random: Rng) {
    loop {
        sleep(Duration::from_millis(random.u64(0..5 * CALM))).await;
        let Some(channel) = random.choice(servers.first().map(|server| server.channels()).unwrap_or_default()) else {
            continue;
        };
        for server in &servers {
            server.cut_off(&channel);
        }
        sleep(Duration::from_millis(random.u64(0..TROUBLE))).await;
        for server in &servers {
            server.reconnect_manager(&channel);
        }
    }
}

/// Cuts off all servers at the same time from time to time.
pub(super) async fn cut_off(servers: Vec<Arc<Server>>, mut random: Rng) {
    loop {
        sleep(Duration::from_millis(random.u64(0..10 * CALM))).await;
        for server in &servers {
            server.cut();
        }
        sleep(Duration::from_millis(random.u64(0..TROUBLE))).await;
        for server in &servers {
            server.recover();
        }
    }
}
