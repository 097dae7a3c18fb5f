//! Hand-off from a holder in this process to a single waiter in another process.

use crate::bare::Bare;
use crate::contender::{Contender, Held, Kind, TTL};
use crate::moment;
use crate::plan::{Plan, settle};
use crate::process::Process;
use crate::traffic::Count;
use redlock_tests::Nodes;
use std::time::Duration;

/// Results of one contender. Empty if a hand-off did not finish.
#[derive(Default)]
pub(crate) struct HandOffs {
    /// Time from the call of the release to the start of the waiter's body.
    pub(crate) delays: Vec<Duration>,
    /// Command counts of the hand-offs in which commands were counted.
    commands: Vec<Commands>,
}

/// Number of commands that holder and waiter sent.
struct Commands {
    /// Commands during the wait.
    before: u64,
    /// Commands from the call of the release to the start of the waiter's body.
    hand_off: u64,
}

impl HandOffs {
    pub(crate) fn commands(&self) -> Option<f64> {
        self.mean(|commands| commands.hand_off)
    }

    pub(crate) fn commands_with_wait(&self) -> Option<f64> {
        self.mean(|commands| commands.before + commands.hand_off)
    }

    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    fn mean(&self, figure: impl Fn(&Commands) -> u64) -> Option<f64> {
        let sum: u64 = self.commands.iter().map(figure).sum();
        (!self.commands.is_empty()).then(|| sum as f64 / self.commands.len() as f64)
    }
}

/// Returns the results in the order of [`Kind::ALL`], and the times of the hand-off without a client.
pub(crate) async fn measure(plan: &Plan, nodes: &Nodes) -> (Vec<HandOffs>, Vec<Duration>) {
    let (mut pairs, mut bare, mut bare_delays) = (Vec::new(), Bare::connect(&nodes[0].url()), Vec::new());
    for kind in Kind::ALL {
        let mut pair = Pair::connect(kind, nodes).await;
        // Discard the first run, because a manager may subscribe to a channel at its first contention.
        pair.timed().await;
        pair.done = HandOffs::default();
        pairs.push(pair);
    }
    for turn in 0..plan.hand_offs {
        for pair in &mut pairs {
            pair.timed().await;
            if turn % 10 == 0 {
                pair.counted().await;
            }
        }
        bare_delays.push(bare.timed().await);
    }
    let done = |pair: Pair<'_>| if pair.is_stuck { HandOffs::default() } else { pair.done };
    (pairs.into_iter().map(done).collect(), bare_delays)
}

struct Pair<'a> {
    nodes: &'a Nodes,
    key: &'static str,
    holder: Contender,
    waiter: Process,
    done: HandOffs,
    is_stuck: bool,
}

impl<'a> Pair<'a> {
    async fn connect(kind: Kind, nodes: &'a Nodes) -> Self {
        let (urls, key) = (nodes.urls(), kind.name());
        let (holder, waiter) = (kind.connect(&urls).await, Process::start(kind, &urls, key, TTL));
        Self { nodes, key, holder, waiter, done: HandOffs::default(), is_stuck: false }
    }

    async fn timed(&mut self) {
        let Some(held) = self.hold().await else { return };
        self.wait().await;
        let delay = self.hand_over(held).await;
        self.done.delays.extend(delay);
        self.end(delay).await;
    }

    async fn counted(&mut self) {
        let Some(held) = self.hold().await else { return };
        let count = Count::begin(self.nodes).await;
        self.wait().await;
        let before = count.end().await;
        let count = Count::begin(self.nodes).await;
        let delay = self.hand_over(held).await;
        self.done.commands.push(Commands { before, hand_off: count.end().await });
        self.end(delay).await;
    }

    async fn hold(&mut self) -> Option<Held> {
        if self.is_stuck {
            return None;
        }
        let held = self.holder.acquire(self.key, TTL).await;
        self.is_stuck = held.is_none();
        held
    }

    async fn wait(&mut self) {
        self.waiter.ask().await;
        settle().await;
    }

    async fn hand_over(&mut self, held: Held) -> Option<Duration> {
        let released = moment::now();
        held.release().await;
        Some(self.waiter.held().await?.saturating_sub(released))
    }

    async fn end(&mut self, delay: Option<Duration>) {
        match delay {
            Some(_) => self.waiter.release().await,
            None => self.is_stuck = true,
        }
    }
}
