//! Many managers acquire one lock repeatedly. Measures the order, the fairness, and the number of commands per
//! hand-off.

use crate::contender::{Contender, Kind, TTL};
use crate::counter::Counter;
use crate::plan::Plan;
use crate::traffic::Count;
use redlock_tests::Nodes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) const NODES: usize = 5;
pub(crate) const MANAGERS: usize = 32;
pub(crate) const BODY: Duration = Duration::from_millis(2);

/// Results of one contender within the measured time.
pub(crate) struct Contest {
    /// Waits that ended within the measured time.
    pub(crate) waits: Vec<Duration>,
    /// Durations, so far, of the waits that were still running at the end.
    pub(crate) open: Vec<Duration>,
    /// Number of acquisitions of each manager.
    pub(crate) acquisitions: Vec<usize>,
    /// Number of commands per hand-off, on all nodes together.
    pub(crate) commands: Option<f64>,
    pub(crate) per_second: f64,
    /// Mean duration of a body, from its first to its last instruction.
    pub(crate) body: Option<Duration>,
    pub(crate) lost: u64,
}

/// Returns the results in the order of [`Kind::ALL`].
pub(crate) async fn measure(plan: &Plan, nodes: &Nodes) -> Vec<Contest> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let timed = Window::run(kind, plan, nodes, false).await;
        let counted = Window::run(kind, plan, nodes, true).await;
        all.push(Contest::new(&timed, &counted));
    }
    all
}

impl Contest {
    /// Returns all waits, including the durations so far of those that were still running.
    pub(crate) fn all_waits(&self) -> Vec<Duration> {
        self.waits.iter().chain(&self.open).copied().collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    fn new(timed: &Window, counted: &Window) -> Self {
        let waits: Vec<Duration> = timed.granted().map(|(_, wait)| wait).collect();
        let mut acquisitions = vec![0; MANAGERS];
        for (turn, _) in timed.granted() {
            acquisitions[turn.manager] += 1;
        }
        let per_second = waits.len() as f64 / timed.to.duration_since(timed.from).as_secs_f64();
        let hand_offs = counted.granted().count();
        let commands = (hand_offs > 0).then(|| counted.commands as f64 / hand_offs as f64);
        Self {
            waits,
            open: timed.open().collect(),
            acquisitions,
            commands,
            per_second,
            body: timed.body,
            lost: timed.lost + counted.lost,
        }
    }
}

/// One wait of one manager.
struct Turn {
    manager: usize,
    asked: Instant,
    /// `None` if the wait was cancelled or timed out.
    granted: Option<Instant>,
}

/// All waits, and the bounds of the measured time.
struct Window {
    turns: Vec<Turn>,
    from: Instant,
    to: Instant,
    commands: u64,
    body: Option<Duration>,
    lost: u64,
}

impl Window {
    async fn run(kind: Kind, plan: &Plan, nodes: &Nodes, is_counted: bool) -> Self {
        let contenders = kind.connect_many(MANAGERS, &nodes.urls()).await;
        // Use a fresh key for each run: the other implementations leave the key locked if a wait is cancelled.
        let key = format!("hot key of {}:{is_counted}", kind.name());
        let (stop, stopped) = watch::channel(());
        let (mut tasks, counter) = (JoinSet::new(), Arc::<Counter>::default());
        for (manager, contender) in contenders.into_iter().enumerate() {
            let manager = Manager { number: manager, contender, counter: Arc::clone(&counter), turns: Vec::new() };
            tasks.spawn(manager.contend(key.clone(), stopped.clone()));
        }
        tokio::time::sleep(plan.warm_up).await;
        let count = if is_counted { Some(Count::begin(nodes).await) } else { None };
        let from = Instant::now();
        tokio::time::sleep(plan.window).await;
        let to = Instant::now();
        let commands = if let Some(count) = count { count.end().await } else { 0 };
        drop(stop);
        let turns = tasks.join_all().await.into_iter().flatten().collect();
        Self { turns, from, to, commands, body: counter.mean_body(), lost: counter.lost() }
    }

    fn granted(&self) -> impl Iterator<Item = (&Turn, Duration)> {
        let in_time = |granted: &Instant| (self.from..self.to).contains(granted);
        self.turns.iter().filter_map(move |turn| {
            let granted = turn.granted.filter(in_time)?;
            Some((turn, granted.duration_since(turn.asked)))
        })
    }

    /// Returns the durations, so far, of the waits that are running at the end.
    fn open(&self) -> impl Iterator<Item = Duration> {
        let is_open = |turn: &&Turn| turn.asked < self.to && turn.granted.is_none_or(|granted| granted >= self.to);
        self.turns.iter().filter(is_open).map(|turn| self.to.duration_since(turn.asked))
    }
}

struct Manager {
    number: usize,
    contender: Contender,
    counter: Arc<Counter>,
    turns: Vec<Turn>,
}

impl Manager {
    /// Acquires and releases the lock until `stopped` is closed. A running wait is then cancelled.
    async fn contend(mut self, key: String, mut stopped: watch::Receiver<()>) -> Vec<Turn> {
        loop {
            let asked = Instant::now();
            let held = tokio::select! {
                held = self.contender.acquire(&key, TTL) => held,
                _ = stopped.changed() => None,
            };
            let granted = held.is_some().then(Instant::now);
            self.turns.push(Turn { manager: self.number, asked, granted });
            let Some(held) = held else { return self.turns };
            self.counter.increment(BODY).await;
            held.release().await;
        }
    }
}
