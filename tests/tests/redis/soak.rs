//! Several processes take locks of all kinds on real servers in trouble, and the history of their bodies is looked through
//! afterwards: no two that exclude each other at once, no more than there are permits, numbers that rise, everybody served in the
//! end, nothing left.
//!
//! `REDLOCK_SOAK_SECONDS` says for how long, a few seconds by default, and `REDLOCK_SOAK_SEED` which troubles come. The seed
//! does not decide how the processes come to meet: it makes a run alike, and not the same.

mod dice;
mod history;
mod worker;

use self::dice::Dice;
use self::history::{History, Interval, Mode};
use self::worker::{KEYS, LONGEST_TTL, NUMBERED, PLACES, POOL, Told, work};
use crate::support::barrier;
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// What the other processes are told.
const TOLD: &str = "REDLOCK_SOAK_WORKER";
const SECONDS: &str = "REDLOCK_SOAK_SECONDS";
const SEED: &str = "REDLOCK_SOAK_SEED";
const WORKERS: usize = 3;
const NODES: usize = 3;

/// The processes, and the files in which they write.
struct Workers {
    running: Vec<Child>,
    told: Told,
    started: usize,
    test: &'static str,
}

impl Workers {
    fn start(test: &'static str, seed: u64, urls: Vec<String>, folder: &str) -> Self {
        let told = Told { seed, file: folder.to_owned(), urls };
        let mut workers = Self { running: Vec::new(), told, started: 0, test };
        (0..WORKERS).for_each(|_| workers.start_one());
        workers
    }

    fn start_one(&mut self) {
        self.started += 1;
        let told = Told {
            seed: self.told.seed.wrapping_add(self.started as u64),
            file: self.file(self.started),
            ..self.told.clone()
        };
        let mut process = Command::new(env::current_exe().unwrap());
        process
            .args(["--exact", self.test, "--nocapture"])
            .env(TOLD, told.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        self.running.push(process.kill_on_drop(true).spawn().unwrap());
    }

    fn file(&self, number: usize) -> String {
        format!("{}/{number}", self.told.file)
    }

    /// What they have written so far. One that has just started may have no file yet.
    fn history(&self) -> History {
        let mut history = History::default();
        (1..=self.started).filter_map(|number| fs::read_to_string(self.file(number)).ok()).for_each(|text| {
            history.add(&text);
        });
        history
    }

    /// One of them is killed, and another one begins.
    async fn replace(&mut self, dice: &mut Dice) {
        let mut one = self.running.swap_remove(dice.below(self.running.len()));
        one.kill().await.unwrap();
        self.start_one();
    }

    /// One of them stands still for a while, and its leases end meanwhile or do not.
    async fn suspend(&self, dice: &mut Dice) {
        let one = &self.running[dice.below(self.running.len())];
        let one = Pid::from_raw(i32::try_from(one.id().unwrap()).unwrap()).unwrap();
        kill_process(one, Signal::STOP).unwrap();
        sleep(pause(dice)).await;
        kill_process(one, Signal::CONT).unwrap();
    }

    /// All of them end in good order.
    async fn end(&mut self) {
        for one in &mut self.running {
            drop(one.stdin.take());
        }
        for one in &mut self.running {
            assert!(timeout(3 * PATIENCE, one.wait()).await.unwrap().unwrap().success(), "a worker has failed");
        }
    }
}

/// Up to a longest lease and a bit.
fn pause(dice: &mut Dice) -> Duration {
    Duration::from_millis([20, 100, 400, 2400][dice.below(4)])
}

/// One trouble after the other until then. Returns how many there were.
async fn trouble(nodes: &Nodes, workers: &mut Workers, dice: &mut Dice, until: Instant) -> u64 {
    for troubles in 0.. {
        if Instant::now() >= until {
            return troubles;
        }
        let node = &nodes[dice.below(NODES)];
        match dice.below(6) {
            0 => node.restart().await,
            1 => {
                node.kill();
                sleep(pause(dice)).await;
                node.restart().await;
            }
            2 => {
                node.freeze();
                sleep(pause(dice)).await;
                node.thaw();
            }
            3 => drop(node.inspect().kill_clients().await),
            4 => workers.replace(dice).await,
            _ => workers.suspend(dice).await,
        }
        sleep(pause(dice) / 4).await;
    }
    unreachable!("there are fewer troubles than numbers")
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// Some folder of this run alone.
fn folder(name: &str) -> String {
    let folder = env::temp_dir().join(format!("redlock-soak-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder.into_os_string().into_string().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_promises_hold_among_processes_and_servers_in_trouble() {
    if let Ok(told) = env::var(TOLD) {
        return work(&told).await;
    }
    let seconds = number(SECONDS).unwrap_or(5);
    let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let test = "soak::the_promises_hold_among_processes_and_servers_in_trouble";
    let (nodes, folder, mut dice) = (Nodes::start(NODES).await, folder("trouble"), Dice::new(seed));
    let mut workers = Workers::start(test, seed, nodes.urls(), &folder);
    let until = Instant::now() + Duration::from_secs(seconds);
    let troubles = trouble(&nodes, &mut workers, &mut dice, until).await;
    workers.end().await;
    let history = workers.history();
    let violations = history.violations();
    println!(
        "soak: seed {seed}, {seconds} s, {troubles} troubles, {} processes, {} bodies, {} violations; others: {:?}",
        workers.started,
        history.begun,
        violations.len(),
        history.others
    );
    assert!(violations.is_empty(), "{SEED}={seed}: {violations:#?}");
    let has = |what: fn(&Interval) -> bool| history.bodies.iter().any(what);
    assert!(has(|body| body.mode == Mode::Shared) && has(|body| body.number.is_some()));
    assert!(has(|body| body.key == PLACES[1].0) && has(|body| body.key == POOL.0));
    all_is_well_again(&nodes).await;
    fs::remove_dir_all(folder).unwrap();
}

/// Everybody can have every lock, and nothing of anybody is left but the registers of numbers.
async fn all_is_well_again(nodes: &Nodes) {
    let manager =
        LockManager::builder().nodes(nodes.urls()).default_ttl(LONGEST_TTL).longest_ttl(LONGEST_TTL).build().unwrap();
    let keys = KEYS.into_iter().chain(NUMBERED).chain([POOL.0]).map(LockRequest::new);
    for request in keys.chain([LockRequest::path(PLACES[0].0)]) {
        // Nodes that have just been restarted abstain.
        eventually(PATIENCE, "the lock is free for all", async || {
            manager.acquire(request.clone().wait(PATIENCE)).await?.release().await
        })
        .await;
    }
    assert!(manager.shutdown().await);
    barrier(nodes).await;
    // A queue expires 30 s after the last one has joined it, when whoever stood there was killed.
    eventually(2 * PATIENCE, "nothing but registers is left", async || {
        let left = nodes.contents().await;
        let is_over = left.values().flat_map(|keys| keys.keys()).all(|key| key.starts_with("redlock:f:{"));
        if is_over { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn locks_that_exclude_nobody_are_convicted() {
    if let Ok(told) = env::var(TOLD) {
        return work(&told).await;
    }
    let folder = folder("nobody");
    let mut workers = Workers::start("soak::locks_that_exclude_nobody_are_convicted", 7, Vec::new(), &folder);
    eventually(PATIENCE, "two bodies at once, too many of them, and numbers that do not rise", async || {
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
    fs::remove_dir_all(folder).unwrap();
}
