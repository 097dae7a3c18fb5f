//! A chaos test. Several processes take locks of all kinds on real servers while faults are injected:
//!
//! - servers freeze, restart, refuse clients and fail over;
//! - processes are killed and suspended;
//! - the network and name lookups of processes fail, for the deployments `cluster` and `sentinels`;
//! - a user with read access alone forges messages.
//!
//! The history of all bodies is then checked for violations:
//!
//! - two bodies at once that exclude each other, and more bodies than permits;
//! - numbers that do not rise;
//! - a process that does not obtain a lock after all faults are over;
//! - keys that are left.
//!
//! Environment variables:
//!
//! - `REDLOCK_SOAK_SECONDS`: the duration; a few seconds by default.
//! - `REDLOCK_SOAK_DEPLOYMENT`: the servers: `1`, `3` (the default) or `5` independent nodes, `cluster` or `sentinels`.
//! - `REDLOCK_SOAK_SEED`: decides the faults. It does not decide how processes meet, so two runs with one seed are alike and not the same.

mod clustered;
mod dice;
mod history;
mod independent;
mod network;
mod servers;
mod spy;
mod watched;
mod worker;
mod workers;

use self::dice::Dice;
use self::history::{Interval, Mode};
use self::network::Network;
use self::servers::Servers;
use self::spy::Spy;
use self::worker::{PLACES, POOL, manager, names, work};
use self::workers::{ALL_LOCKS, TOLD, Workers};
use redlock_runtime::LockRequest;
use redlock_tests::{Nodes, PATIENCE, Proxy, eventually};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, fs};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

const SECONDS: &str = "REDLOCK_SOAK_SECONDS";
const SEED: &str = "REDLOCK_SOAK_SEED";
const DEPLOYMENT: &str = "REDLOCK_SOAK_DEPLOYMENT";

/// Number of faults of servers between two checks that all processes make progress. Too small: few faults in a run.
/// Too large: the cause of a process without progress is hard to find.
const CHECK_AFTER: u64 = 40;

/// Returns a random duration up to slightly more than a longest lease.
fn pause(dice: &mut Dice) -> Duration {
    Duration::from_millis([20, 100, 400, 2400][dice.below(4)])
}

/// Number of faults by name.
type Faults = BTreeMap<&'static str, u64>;

/// Injects faults of servers until the instant `until`. The network has no faults while `calm` is locked.
async fn trouble_servers(
    servers: &mut Servers,
    workers: &Mutex<Workers>,
    calm: &Mutex<()>,
    mut dice: Dice,
    until: Instant,
) -> Faults {
    let mut faults = Faults::new();
    while Instant::now() < until {
        *faults.entry(servers.trouble(workers, &mut dice).await).or_default() += 1;
        if faults.values().sum::<u64>().is_multiple_of(CHECK_AFTER) {
            // The locks stop the faults of the network and of processes.
            let _calm = calm.lock().await;
            let mut workers = workers.lock().await;
            workers.problems.extend(servers.recover().await);
            workers.check_progress(ALL_LOCKS).await;
        }
        sleep(pause(&mut dice) / 4).await;
    }
    faults
}

/// Injects faults of the network until the instant `until`.
async fn trouble_network(network: Option<&Network>, calm: &Mutex<()>, mut dice: Dice, until: Instant) -> Faults {
    let mut faults = Faults::new();
    let Some(network) = network else { return faults };
    while Instant::now() < until {
        let working = calm.lock().await;
        let fault = network.trouble(&mut dice).await;
        drop(working);
        *faults.entry(fault).or_default() += 1;
        // Twice as long as between faults of processes, since most calls have no quorum during a fault.
        sleep(2 * pause(&mut dice)).await;
    }
    faults
}

/// Injects faults of processes until the instant `until`.
async fn trouble_processes(workers: &Mutex<Workers>, mut dice: Dice, until: Instant) -> Faults {
    let mut faults = Faults::new();
    while Instant::now() < until {
        let mut workers = workers.lock().await;
        let fault = match dice.below(2) {
            0 => workers.replace(&mut dice).await,
            _ => workers.suspend(&mut dice).await,
        };
        drop(workers);
        *faults.entry(fault).or_default() += 1;
        sleep(pause(&mut dice)).await;
    }
    faults
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// Returns a separate folder for this run.
fn folder(name: &str) -> String {
    let folder = env::temp_dir().join(format!("redlock-soak-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder.into_os_string().into_string().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_guarantees_hold_under_process_and_server_faults() {
    if let Ok(told) = env::var(TOLD) {
        return work(&told).await;
    }
    let seconds = number(SECONDS).unwrap_or(5);
    let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let test = "soak::lock_guarantees_hold_under_process_and_server_faults";
    let mut servers = Servers::start(&env::var(DEPLOYMENT).unwrap_or_else(|_| "3".to_owned())).await;
    let (folder, mut dice, heard) = (folder("trouble"), Dice::new(seed), Arc::new(AtomicU64::new(0)));
    let network = servers.network();
    let variables = network.as_ref().map(|network| network.variables()).unwrap_or_default();
    let workers = Mutex::new(Workers::start(test, seed, servers.urls(), variables, &folder));
    let spy = Spy::start(servers.channels().await, &mut dice, &heard);
    let until = Instant::now() + Duration::from_secs(seconds);
    let [of_servers, of_processes, of_network] = [0, 1, 2].map(|_| Dice::new(dice.next()));
    let calm = Mutex::new(());
    let (mut faults, of_processes, of_network) = tokio::join!(
        trouble_servers(&mut servers, &workers, &calm, of_servers, until),
        trouble_processes(&workers, of_processes, until),
        trouble_network(network.as_deref(), &calm, of_network, until)
    );
    faults.extend(of_processes.into_iter().chain(of_network));
    let mut workers = workers.into_inner();
    workers.problems.extend(servers.recover().await);
    workers.check_progress(ALL_LOCKS).await;
    workers.end().await;
    drop(spy);
    let history = workers.history();
    let violations = [history.violations(), std::mem::take(&mut workers.problems)].concat();
    println!(
        "soak {}: seed {seed}, {seconds} s, {} processes, {} forged messages, {} bodies, {} violations; others: {:?}; faults: {faults:?}, with {} \
         disturbed lookups; each process had a lock again after {:?} at most, and each lock after {:?}",
        servers.name(),
        workers.started,
        heard.load(Ordering::Relaxed),
        history.begun,
        violations.len(),
        history.others,
        network.map_or(0, |network| network.disturbed_lookups()),
        workers.slowest_first,
        workers.slowest
    );
    assert!(violations.is_empty(), "{SEED}={seed}: {violations:#?}");
    let has = |what: fn(&Interval) -> bool| history.bodies.iter().any(what);
    assert!(has(|body| body.mode == Mode::Shared) && has(|body| body.number.is_some()));
    assert!(has(|body| body.key == PLACES[1].0) && has(|body| body.key == POOL.0));
    assert!(heard.load(Ordering::Relaxed) > 0, "no manager has received a forged message");
    all_is_well_again(&servers).await;
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that every lock is free, and that only registers of numbers are left.
async fn all_is_well_again(servers: &Servers) {
    let manager = manager(&servers.urls());
    for name in names() {
        let request = if name.starts_with('/') { LockRequest::path(name) } else { LockRequest::new(name) };
        // Nodes that have just restarted abstain.
        eventually(PATIENCE, "the lock is free for all", async || {
            manager.acquire(request.clone().wait(PATIENCE)).await?.release().await
        })
        .await;
    }
    assert!(manager.shutdown().await);
    // If the process of a waiting call was killed, its queue expires 30 s after the last entry.
    eventually(2 * PATIENCE, "nothing but registers is left", async || {
        let left = servers.contents().await;
        let is_over = left.keys().all(|key| key.starts_with("redlock:f:{"));
        if is_over { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn checker_detects_locks_that_do_not_exclude() {
    if let Ok(told) = env::var(TOLD) {
        return work(&told).await;
    }
    let folder = folder("nobody");
    let mut workers =
        Workers::start("soak::checker_detects_locks_that_do_not_exclude", 7, Vec::new(), Vec::new(), &folder);
    // On a busy machine, it takes long until three bodies with permits meet.
    eventually(ALL_LOCKS, "two bodies at once, too many of them, and numbers that do not rise", async || {
        let violations = workers.history().violations();
        let is_found = |what: &str| violations.iter().any(|violation| violation.starts_with(what));
        if ["at once", "too many", "no larger number"].into_iter().all(is_found) {
            Ok(())
        } else {
            Err(violations.len())
        }
    })
    .await;
    workers.end().await;
    assert!(workers.problems.is_empty(), "{:?}", workers.problems);
    fs::remove_dir_all(folder).unwrap();
}

/// The check runs while the network still has a fault.
#[tokio::test]
async fn checker_detects_processes_that_stay_down() {
    if let Ok(told) = env::var(TOLD) {
        return work(&told).await;
    }
    let (nodes, folder) = (Nodes::start(1).await, folder("silent"));
    let proxy = Proxy::to(&nodes[0]).await;
    let test = "soak::checker_detects_processes_that_stay_down";
    let mut workers = Workers::start(test, 7, vec![proxy.url()], Vec::new(), &folder);
    workers.check_progress(ALL_LOCKS).await;
    assert!(workers.problems.is_empty(), "{:?}", workers.problems);
    proxy.hold();
    let workers = Mutex::new(workers);
    // At first, the leases that a process already holds may suffice for some locks.
    eventually(2 * PATIENCE, "no process obtains a lock", async || {
        let mut workers = workers.lock().await;
        workers.check_progress(Duration::from_secs(1)).await;
        let problems = std::mem::take(&mut workers.problems);
        let are_down = |problem: &String| names().all(|name| problem.contains(&format!("{name:?}")));
        if problems.len() == 3 && problems.iter().all(are_down) { Ok(()) } else { Err(problems) }
    })
    .await;
    proxy.pass();
    let mut workers = workers.into_inner();
    workers.check_progress(ALL_LOCKS).await;
    workers.end().await;
    assert!(workers.problems.is_empty(), "{:?}", workers.problems);
    fs::remove_dir_all(folder).unwrap();
}

/// A deploy that replaces all servers at once, which the page "Several servers" of the guide forbids.
#[tokio::test]
async fn checker_detects_processes_with_different_servers() {
    if let Ok(told) = env::var(TOLD) {
        return work(&told).await;
    }
    let (old, new, folder) = (Nodes::start(1).await, Nodes::start(1).await, folder("others"));
    let test = "soak::checker_detects_processes_with_different_servers";
    let mut workers = Workers::start(test, 7, old.urls(), Vec::new(), &folder);
    workers.set_list(new.urls());
    assert!(workers.replace_outdated().await);
    eventually(2 * PATIENCE, "two bodies at once, and numbers that do not rise", async || {
        let violations = workers.history().violations();
        let is_found = |what: &str| violations.iter().any(|violation| violation.starts_with(what));
        if is_found("at once") && is_found("no larger number") { Ok(()) } else { Err(violations) }
    })
    .await;
    workers.end().await;
    assert!(workers.problems.is_empty(), "{:?}", workers.problems);
    fs::remove_dir_all(folder).unwrap();
}
