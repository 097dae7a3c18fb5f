//! Several waiters with separate managers, drained after one release.

use crate::contender::{Contender, Kind, TTL};
use crate::crowd::Crowd;
use crate::plan::{Plan, settle};
use redlock_tests::Nodes;
use std::time::{Duration, Instant};

pub(crate) const WAITERS: usize = 16;

/// Results of one contender.
#[derive(Default)]
pub(crate) struct Drained {
    /// Time from the release to the start of the last body, for each turn. Empty if a turn did not finish.
    pub(crate) times: Vec<Duration>,
    /// Time from the release to the start of each body.
    pub(crate) waits: Vec<Duration>,
    pub(crate) lost: u64,
}

/// Returns the results in the order of [`Kind::ALL`].
pub(crate) async fn measure(plan: &Plan, nodes: &Nodes) -> Vec<Drained> {
    let mut queues = Vec::new();
    for kind in Kind::ALL {
        queues.push(Queue::connect(kind, nodes).await);
    }
    for turn in 0..plan.turns {
        for queue in &mut queues {
            queue.drain(turn).await;
        }
    }
    queues.into_iter().map(Queue::drained).collect()
}

struct Queue {
    kind: Kind,
    holder: Contender,
    waiters: Vec<Contender>,
    done: Drained,
    is_stuck: bool,
}

impl Queue {
    async fn connect(kind: Kind, nodes: &Nodes) -> Self {
        let urls = nodes.urls();
        let (holder, waiters) = (kind.connect(&urls).await, kind.connect_many(WAITERS, &urls).await);
        Self { kind, holder, waiters, done: Drained::default(), is_stuck: false }
    }

    async fn drain(&mut self, turn: usize) {
        if self.is_stuck {
            return;
        }
        let key = format!("queue of {}:{turn}", self.kind.name());
        let held = self.holder.acquire(&key, TTL).await.expect("nobody else wants it");
        let crowd = Crowd::start(&self.waiters, WAITERS, &key);
        settle().await;
        let released = Instant::now();
        held.release().await;
        let outcome = crowd.finish().await;
        self.is_stuck = !outcome.is_complete;
        let waits = outcome.begun.iter().map(|begun| begun.saturating_duration_since(released));
        self.done.times.extend(waits.clone().max());
        self.done.waits.extend(waits);
        self.done.lost += outcome.lost;
    }

    fn drained(mut self) -> Drained {
        if self.is_stuck {
            self.done.times.clear();
        }
        self.done
    }
}
