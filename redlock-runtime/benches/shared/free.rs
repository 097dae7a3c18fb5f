//! Acquire-and-release pairs without contention.

use crate::cpu_time::cpu_time;
use crate::percentile::percentile;
use crate::result_file;
use redlock_runtime::{LockError, LockManager, LockRequest, Mode};
use std::fmt;
use std::time::{Duration, Instant};

/// Maximum time of a shared lock, as a multiple of an exclusive lock, with one task. A shared lock uses a script
/// instead of a plain `SET`. There is no limit for many tasks: their speed depends on the servers, which have one
/// thread each.
const MOST: f64 = 1.25;

/// Measurements of acquire-and-release pairs.
#[derive(Default)]
struct Pairs {
    latencies: Vec<Duration>,
    /// CPU time of this process in all measurements.
    cpu: Duration,
}

/// One row of the table.
pub(crate) struct Free {
    nodes: usize,
    tasks: usize,
    is_one_key: bool,
    alone: Pairs,
    shared: Pairs,
}

impl Free {
    pub(crate) async fn measure(
        manager: &LockManager,
        (nodes, tasks, is_one_key): (usize, usize, bool),
        turns: usize,
    ) -> Self {
        let (mut alone, mut shared) = (Pairs::default(), Pairs::default());
        for _ in 0..turns {
            // Use one key per task: exclusive locks of a single key would wait for each other.
            alone.measure(manager, tasks, |task| LockRequest::new(format!("bench:{task}"))).await;
            let request = |task| LockRequest::new(if is_one_key { "bench".into() } else { format!("bench:{task}") });
            shared.measure(manager, tasks, |task| request(task).mode(Mode::Shared)).await;
        }
        Self { nodes, tasks, is_one_key, alone, shared }
    }
}

impl Pairs {
    /// Runs pairs for 0.1 s and adds their measurements.
    async fn measure(&mut self, manager: &LockManager, tasks: usize, request: impl Fn(usize) -> LockRequest) {
        let (used, end) = (cpu_time(), Instant::now() + Duration::from_millis(100));
        let workers: Vec<_> = (0..tasks).map(|task| tokio::spawn(work(manager.clone(), request(task), end))).collect();
        for worker in workers {
            self.latencies.extend(worker.await.expect("a worker panicked"));
        }
        self.cpu += cpu_time().saturating_sub(used);
    }

    fn median(&self) -> Duration {
        percentile(&self.latencies, 50)
    }

    fn cpu(&self) -> Duration {
        self.cpu / u32::try_from(self.latencies.len()).expect("not that many").max(1)
    }
}

async fn work(manager: LockManager, request: LockRequest, end: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
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

impl fmt::Display for Free {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, tasks, .. } = self;
        let [alone, shared] = [&self.alone, &self.shared].map(Pairs::median);
        let [cpu, shared_cpu] = [&self.alone, &self.shared].map(Pairs::cpu);
        let [ratio, cpu_ratio] =
            [(shared, alone), (shared_cpu, cpu)].map(|(shared, alone)| shared.as_secs_f64() / alone.as_secs_f64());
        let keys = if self.is_one_key { "one that is shared" } else { "one each" };
        write!(f, "| {nodes} | {tasks} | {keys} | {alone:.1?} | {shared:.1?} | {ratio:.2} |")?;
        if self.tasks == 1 {
            write!(f, " at most {MOST:.2} | {} |", result_file::verdict(ratio <= MOST))?;
        } else {
            write!(f, " | |")?;
        }
        write!(f, " {cpu:.1?} | {shared_cpu:.1?} | {cpu_ratio:.2} |")
    }
}
