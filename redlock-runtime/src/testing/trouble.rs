//! The trouble that chance makes in a run of `explore`.
//!
//! None of it breaks a promise of the library, as far as the manager is set up for several servers: so whatever goes wrong in such
//! a run is the program's own doing.

use super::server::Server;
use fastrand::Rng;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The longest time between two troubles of a server, in milliseconds. Smaller, nothing ever works; larger, a run may see none.
const CALM: u64 = 6000;
/// The longest that a trouble takes, in milliseconds. Smaller, leases outlive all of them; larger, nothing else happens in a run.
const TROUBLE: u64 = 9000;

/// Gets one server into trouble and out of it, again and again. One that `forgets` restarts without its data as well.
pub(super) async fn stir(server: Arc<Server>, forgets: bool, mut random: Rng) {
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

/// Cuts one of the managers off from all servers, now and then.
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
            server.let_in(&channel);
        }
    }
}

/// Cuts all servers off at once, now and then.
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
