//! Acquire-and-release pairs without contention, by one task.

use crate::cpu_time::cpu_time;
use crate::percentile::percentile;
use crate::server_cpu;
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::Nodes;
use std::time::{Duration, Instant};

/// Duration of a turn, which is some hundreds of pairs.
const TURN: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct Pairs {
    latencies: Vec<Duration>,
    /// CPU time of this process in all turns.
    cpu: Duration,
    /// CPU time of all servers in all turns.
    server_cpu: Duration,
}

impl Pairs {
    /// Runs one turn and adds its measurements.
    pub(crate) async fn measure(&mut self, manager: &LockManager, servers: &Nodes, request: LockRequest) {
        let (of_servers, used) = (server_cpu::of(servers).await, cpu_time());
        // Run on a worker thread of the runtime, as the tasks of a service do.
        let worker = tokio::spawn(work(manager.clone(), request));
        self.latencies.extend(worker.await.expect("the worker panicked"));
        self.cpu += cpu_time().saturating_sub(used);
        self.server_cpu += server_cpu::of(servers).await.saturating_sub(of_servers);
    }

    pub(crate) fn median(&self) -> Duration {
        percentile(&self.latencies, 50)
    }

    pub(crate) fn cpu(&self) -> Duration {
        self.cpu / self.count()
    }

    pub(crate) fn server_cpu(&self) -> Duration {
        self.server_cpu / self.count()
    }

    fn count(&self) -> u32 {
        u32::try_from(self.latencies.len()).expect("not that many").max(1)
    }
}

async fn work(manager: LockManager, request: LockRequest) -> Vec<Duration> {
    let (mut latencies, end) = (Vec::new(), Instant::now() + TURN);
    loop {
        let begun = Instant::now();
        if begun >= end {
            return latencies;
        }
        let body = async |_: &_| Ok::<_, LockError>(());
        manager.with_lock(request.clone(), body).await.expect("nobody is in the way");
        latencies.push(begun.elapsed());
    }
}

/// Returns the ratio of two durations.
pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
