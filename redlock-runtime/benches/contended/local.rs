//! Many tasks of one process increment one counter under a lock.

use crate::contender::{Contender, Kind};
use crate::crowd::Crowd;
use crate::plan::Plan;
use crate::traffic::Count;
use redlock_tests::Nodes;
use std::time::Instant;

pub(crate) const TASKS: usize = 500;

/// Results of one contender. Turns that did not finish are included as far as they got.
#[derive(Default)]
pub(crate) struct Counted {
    /// Critical sections per second, for each turn.
    rates: Vec<f64>,
    /// Number of commands per critical section, from the turn in which commands were counted.
    pub(crate) commands: Option<f64>,
    pub(crate) lost: u64,
}

impl Counted {
    /// Returns the median rate of all turns.
    pub(crate) fn rate(&self) -> Option<f64> {
        let mut sorted = self.rates.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

/// Returns the results in the order of [`Kind::ALL`].
pub(crate) async fn measure(plan: &Plan, nodes: &Nodes) -> Vec<Counted> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        all.push((kind, kind.connect(&nodes.urls()).await, Counted::default()));
    }
    for turn in 0..plan.turns {
        for (kind, contender, counted) in &mut all {
            let key = format!("counter of {}:{turn}", kind.name());
            counted.timed(contender, &key).await;
        }
    }
    for (kind, contender, counted) in &mut all {
        let key = format!("counter of {}", kind.name());
        counted.counted(contender, &key, nodes).await;
    }
    all.into_iter().map(|(_, _, counted)| counted).collect()
}

#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
impl Counted {
    async fn timed(&mut self, contender: &Contender, key: &str) {
        let begun = Instant::now();
        let bodies = self.count_up(contender, key).await;
        self.rates.push(bodies as f64 / begun.elapsed().as_secs_f64());
    }

    async fn counted(&mut self, contender: &Contender, key: &str, nodes: &Nodes) {
        let count = Count::begin(nodes).await;
        let bodies = self.count_up(contender, key).await;
        let commands = count.end().await;
        self.commands = (bodies > 0).then(|| commands as f64 / bodies as f64);
    }

    async fn count_up(&mut self, contender: &Contender, key: &str) -> usize {
        let outcome = Crowd::start(std::slice::from_ref(contender), TASKS, key).finish().await;
        self.lost += outcome.lost;
        outcome.begun.len()
    }
}
