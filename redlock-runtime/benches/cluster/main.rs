//! Compares a Redis Cluster with a single server: without replicas, with replicas, and with `confirm_replicas(1)`. All
//! setups run the same calls in alternation.
//!
//! `cargo bench -p redlock-runtime --bench cluster` prints the table and writes it to `benches/cluster.md`.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run should say so and stop")]

#[path = "../common/cpu_time.rs"]
mod cpu_time;
#[path = "../common/percentile.rs"]
mod percentile;
#[path = "../common/raw.rs"]
mod raw;
#[path = "../common/result_file.rs"]
mod result_file;

use cpu_time::cpu_time;
use percentile::percentile;
use raw::Raw;
use redlock_runtime::{LockError, LockManager};
use redlock_tests::{Cluster, RedisServer};
use std::fmt;
use std::time::{Duration, Instant};

/// Duration of one measurement.
const TURN: Duration = Duration::from_millis(100);

/// Maximum CPU time on three masters without replicas, as a multiple of the CPU time on one server.
const CPU: f64 = 1.15;

/// Workload of a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// One task acquires and releases one uncontended lock. Each release is sent together with the next acquisition.
    Same,
    /// One task uses locks on all masters in turn, so a release and the next acquisition go to different masters.
    Alone,
    /// Baseline without a lock library: `SET NX`, and a compare-and-delete that is not awaited, with redis-rs and a
    /// separate connection to each master. No client can avoid the cost of the masters that this shows.
    Raw,
    /// 64 tasks use locks on all masters in turn.
    Many,
    /// Two managers hand one lock back and forth.
    HandOver,
}

impl Work {
    const ALL: [Self; 5] = [Self::Same, Self::Alone, Self::Raw, Self::Many, Self::HandOver];

    const fn name(self) -> &'static str {
        match self {
            Self::Same => "one task, one lock",
            Self::Alone => "one task, locks of all masters",
            Self::Raw => "`SET NX` without a library",
            Self::Many => "64 tasks, locks of all masters",
            Self::HandOver => "hand-over between two managers",
        }
    }

    /// Maximum time on three masters without replicas, as a multiple of the time on one server.
    const fn limit(self) -> Option<f64> {
        match self {
            Self::Same | Self::Alone => Some(1.2),
            Self::Raw => None,
            Self::Many => Some(1.0),
            Self::HandOver => Some(1.5),
        }
    }

    const fn tasks(self) -> usize {
        match self {
            Self::Same | Self::Alone | Self::Raw | Self::HandOver => 1,
            Self::Many => 64,
        }
    }
}

/// Setup of servers: a single server or a cluster.
struct Place {
    name: &'static str,
    managers: [LockManager; 2],
    /// For each master, a connection of the baseline and a key on that master.
    by_hand: Vec<(Raw, String)>,
}

/// Measurements of one workload on one setup.
#[derive(Clone, Default)]
struct Calls {
    latencies: Vec<Duration>,
    /// Total duration of the measurements.
    time: Duration,
    /// CPU time of this process in all measurements.
    cpu: Duration,
}

struct Report(Vec<(Work, Vec<(&'static str, Calls)>)>);

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let turns = if is_quick { 4 } else { 24 };
    let server = RedisServer::start().await;
    let (masters, replicated) = (Cluster::start(3, 0).await, Cluster::start(3, 1).await);
    let raw = Raw::connect(&[server.url()]).await;
    let of_server = (0..3).map(|number| (raw.clone(), format!("bench:{number}"))).collect();
    let places = [
        Place::at("one server", server.url(), of_server).await,
        Place::at("3 masters", masters.url(), by_hand(&masters).await).await,
        Place::at("3 masters, 3 replicas", replicated.url(), by_hand(&replicated).await).await,
        Place::at("the same, `confirm_replicas(1)`", format!("{}&confirm_replicas=1", replicated.url()), vec![]).await,
    ];
    let mut report = Report(Vec::new());
    for work in Work::ALL {
        let mut calls = vec![Calls::default(); places.len()];
        for _ in 0..turns {
            for (place, calls) in places.iter().zip(&mut calls) {
                if work != Work::Raw || !place.by_hand.is_empty() {
                    calls.measure(place, work).await;
                }
            }
        }
        report.0.push((work, places.iter().map(|place| place.name).zip(calls).collect()));
    }
    print!("{report}");
    if !is_quick {
        result_file::write("cluster", "Redis Cluster", &report);
    }
}

/// Connects to each master of `cluster`, and finds a key that the master stores.
async fn by_hand(cluster: &Cluster) -> Vec<(Raw, String)> {
    let mut by_hand = Vec::new();
    for (number, master) in cluster.masters().enumerate() {
        by_hand.push((Raw::connect(&[master.url()]).await, cluster.key_on(number, "bench").await));
    }
    by_hand
}

impl Place {
    async fn at(name: &'static str, url: String, by_hand: Vec<(Raw, String)>) -> Self {
        let manager = || LockManager::builder().node(&url).build().expect("the harness gives valid URLs");
        let managers = [manager(), manager()];
        for manager in &managers {
            manager.ready().await.expect("the node is up");
        }
        Self { name, managers, by_hand }
    }
}

impl Calls {
    async fn measure(&mut self, place: &Place, work: Work) {
        let (used, begun) = (cpu_time(), Instant::now());
        let end = begun + TURN;
        let workers: Vec<_> = if work == Work::HandOver {
            place.managers.iter().map(|manager| tokio::spawn(calls(manager.clone(), |_| "bench".into(), end))).collect()
        } else if work == Work::Raw {
            vec![tokio::spawn(calls_by_hand(place.by_hand.clone(), end))]
        } else {
            let keys = if work == Work::Same { 1 } else { 16 };
            let worker = |task| {
                let manager = place.managers[0].clone();
                tokio::spawn(calls(manager, move |number| format!("bench:{task}:{}", number % keys), end))
            };
            (0..work.tasks()).map(worker).collect()
        };
        for worker in workers {
            self.latencies.extend(worker.await.expect("a worker panicked"));
        }
        self.time += begun.elapsed();
        self.cpu += cpu_time().saturating_sub(used);
    }

    fn count(&self) -> u32 {
        u32::try_from(self.latencies.len()).expect("not that many").max(1)
    }

    /// Returns the time of a call. With one task this is the median latency, otherwise the total time divided by the
    /// number of calls.
    fn time(&self, work: Work) -> Duration {
        if matches!(work, Work::Same | Work::Alone | Work::Raw) {
            percentile(&self.latencies, 50)
        } else {
            self.time / self.count()
        }
    }

    fn cpu(&self) -> Duration {
        self.cpu / self.count()
    }
}

async fn calls(manager: LockManager, key: impl Fn(usize) -> String + Send, end: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for number in 0.. {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        manager.with_lock(key(number), async |_guard| Ok::<_, LockError>(())).await.expect("the lock is had in time");
        latencies.push(begun.elapsed());
    }
    latencies
}

async fn calls_by_hand(masters: Vec<(Raw, String)>, end: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for (number, (raw, key)) in masters.iter().cycle().enumerate() {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        // Use a fresh key in the same slot, because the previous release may still be in progress.
        let key = format!("{{{key}}}:{number}");
        let token = raw.acquire(&key, Duration::from_secs(30)).await.expect("nobody else wants it");
        let raw = raw.clone();
        tokio::spawn(async move { raw.release(&key, &token).await });
        latencies.push(begun.elapsed());
    }
    latencies
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "All setups run the same calls in turns, in one run. The time of a single task is the median time of a call. \
             The time of 64 tasks, and of the hand-over, is the duration of the run divided by the number of calls. \
             CPU is the CPU time of a call in all threads of this process. The replicas share the cores with \
             everything else.\n"
        )?;
        writeln!(f, "| what | where | time | ratio | to reach | CPU | ratio | to reach |")?;
        writeln!(f, "|---|---|---:|---:|---|---:|---:|---|")?;
        for (work, places) in &self.0 {
            let Some((_, server)) = places.first() else { continue };
            for (number, (name, calls)) in
                places.iter().enumerate().filter(|(_, (_, calls))| !calls.latencies.is_empty())
            {
                let to_reach = |ratio: f64, limit: Option<f64>| match limit.filter(|_| number == 1) {
                    Some(limit) => format!("at most {limit:.2}: {}", result_file::verdict(ratio <= limit)),
                    None => String::new(),
                };
                let [time, cpu] = [(calls.time(*work), server.time(*work)), (calls.cpu(), server.cpu())]
                    .map(|(here, there)| here.as_secs_f64() / there.as_secs_f64());
                write!(f, "| {} | {name} | {:.1?} | {time:.2} |", work.name(), calls.time(*work))?;
                write!(f, " {} |", to_reach(time, work.limit()))?;
                writeln!(f, " {:.1?} | {cpu:.2} | {} |", calls.cpu(), to_reach(cpu, work.limit().map(|_| CPU)))?;
            }
        }
        Ok(())
    }
}
