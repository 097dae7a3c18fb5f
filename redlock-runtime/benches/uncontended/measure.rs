//! Closed loops: each task acquires and releases locks on separate keys, one after another.

use crate::contestants::Contestant;
use crate::cpu_time::cpu_time;
use crate::percentile::percentile;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const TASKS: [usize; 3] = [1, 64, 512];

/// Extent of the measurements.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) turns: usize,
    pub(crate) per_loop: Duration,
    complete: bool,
}

impl Plan {
    /// Reads the arguments. `--quick` runs a short plan; only the whole plan writes the table.
    pub(crate) fn from_arguments() -> Self {
        let quick = std::env::args().any(|argument| argument == "--quick");
        let turns = if quick { 2 } else { 8 };
        Self { turns, per_loop: Duration::from_millis(500), complete: !quick }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }
}

/// Results of one contestant.
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    pub(crate) loops: [Loop; TASKS.len()],
}

/// Results for one number of tasks.
#[derive(Default)]
pub(crate) struct Loop {
    latencies: Vec<Duration>,
    pub(crate) failures: usize,
    elapsed: Duration,
    /// CPU time of all threads of this process.
    cpu: Duration,
}

impl Figures {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, loops: Default::default() }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.loops.iter_mut().zip(other.loops) {
            mine.latencies.extend(theirs.latencies);
            mine.failures += theirs.failures;
            mine.elapsed += theirs.elapsed;
            mine.cpu += theirs.cpu;
        }
    }
}

impl Loop {
    pub(crate) fn is_empty(&self) -> bool {
        self.elapsed.is_zero()
    }

    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        percentile(&self.latencies, percent)
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.pairs() / self.elapsed.as_secs_f64()
    }

    /// Returns the CPU time of all threads of this process per pair.
    pub(crate) fn cpu_per_pair(&self) -> Duration {
        self.cpu.div_f64(self.pairs().max(1.0))
    }

    fn pairs(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "far fewer pairs than 2^52")]
        let pairs = self.latencies.len() as f64;
        pairs
    }
}

pub(crate) async fn measure(plan: &Plan, contestant: &Arc<dyn Contestant>, most_tasks: usize) -> Figures {
    let mut figures = Figures::new(contestant.name());
    for (tasks, result) in TASKS.into_iter().zip(&mut figures.loops).filter(|(tasks, _)| *tasks <= most_tasks) {
        closed_loop(plan.per_loop / 10, contestant, tasks).await;
        *result = closed_loop(plan.per_loop, contestant, tasks).await;
    }
    figures
}

async fn closed_loop(length: Duration, contestant: &Arc<dyn Contestant>, tasks: usize) -> Loop {
    let (begun, used) = (Instant::now(), cpu_time());
    let workers: Vec<_> =
        (0..tasks).map(|task| tokio::spawn(worker(Arc::clone(contestant), task, begun + length))).collect();
    let mut result = Loop::default();
    for worker in workers {
        let (latencies, failures) = worker.await.expect("a worker panicked");
        result.latencies.extend(latencies);
        result.failures += failures;
    }
    (result.elapsed, result.cpu) = (begun.elapsed(), cpu_time().saturating_sub(used));
    result
}

async fn worker(contestant: Arc<dyn Contestant>, task: usize, end: Instant) -> (Vec<Duration>, usize) {
    let (mut latencies, mut failures) = (Vec::with_capacity(4096), 0);
    let mut turn = 0_u64;
    loop {
        let begun = Instant::now();
        if begun >= end {
            return (latencies, failures);
        }
        let key = format!("bench:{task}:{turn}");
        if contestant.pair(&key).await {
            latencies.push(begun.elapsed());
        } else {
            failures += 1;
        }
        turn += 1;
    }
}
