//! Pairs of acquisition and release that nobody waits for, by one task.

use crate::cpu_time::cpu_time;
use crate::percentile::percentile;
use crate::server_cpu;
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::Nodes;
use std::time::{Duration, Instant};

/// How long a turn lasts: some hundreds of pairs.
const TURN: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct Pairs {
    latencies: Vec<Duration>,
    /// Of this process, for all of them.
    cpu: Duration,
    /// Of all servers, for all of them.
    server_cpu: Duration,
}

impl Pairs {
    /// Adds those of a turn.
    pub(crate) async fn measure(&mut self, manager: &LockManager, servers: &Nodes, request: LockRequest) {
        let (of_servers, used) = (server_cpu::of(servers).await, cpu_time());
        // On a worker of the runtime, where a service runs its tasks.
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

/// How many times as long one takes as the other.
pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
