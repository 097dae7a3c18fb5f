//! Report of all scenarios: the rows of the table, the picture, and the method.

use crate::contender::Kind;
use crate::hand_off::HandOffs;
use crate::hot_key::{BODY, Contest, MANAGERS, NODES};
use crate::jain::jain;
use crate::killed::HOLDERS_TTL;
use crate::local::{self, Counted};
use crate::mean::mean;
use crate::percentile::percentile;
use crate::picture::{Panel, Picture, Weight};
use crate::queue::{self, Drained};
use crate::result_file::{self, verdict};
use crate::table::{Goal, Row, Unit, heading};
use std::fmt;
use std::time::Duration;

/// Results. Each list is in the order of [`Kind::ALL`].
pub(crate) struct Report {
    pub(crate) hand_off: Vec<HandOffs>,
    /// Times of the hand-off without a client.
    pub(crate) bare_hand_off: Vec<Duration>,
    pub(crate) queue_at_one: Vec<Drained>,
    pub(crate) queue_at_five: Vec<Drained>,
    pub(crate) local: Vec<Counted>,
    pub(crate) hot_key: Vec<Contest>,
    pub(crate) killed: Vec<Vec<Duration>>,
}

/// Maximum number of commands per hand-off: 3.3 on each node.
#[allow(clippy::cast_precision_loss, reason = "five")]
const MOST_COMMANDS: f64 = 3.3 * NODES as f64;

const PICTURE: &str = "contended.svg";

const METHOD: &str = include_str!("method.md");

impl Report {
    pub(crate) fn write(&self) {
        result_file::write("contended", "Contended locks", self);
        std::fs::write(result_file::path(PICTURE), self.picture().to_string()).expect("the picture can be written");
    }

    fn picture(&self) -> Picture {
        let hand_off = Panel::new(
            "Hand-off to one waiter in another process, 1 node".to_owned(),
            Weight::One,
            self.hand_off.iter().map(|done| done.delays.clone()),
        );
        let queue = Panel::new(
            format!("{} waiters in as many managers, drained after one release, {NODES} nodes", queue::WAITERS),
            Weight::One,
            self.queue_at_five.iter().map(|done| done.waits.clone()),
        );
        let hot_key = Panel::new(
            format!("{MANAGERS} managers that take one lock again and again, {NODES} nodes, {BODY:?} body"),
            Weight::Length,
            self.hot_key.iter().map(Contest::all_waits),
        );
        Picture::new(vec![hand_off, queue, hot_key])
    }

    fn rows(&self) -> Vec<Row> {
        let parts = [Self::hand_off_rows, Self::queue_rows, Self::local_rows, Self::hot_key_rows, Self::killed_rows];
        parts.into_iter().flat_map(|rows| rows(self)).collect()
    }

    fn hand_off_rows(&self) -> Vec<Row> {
        let (all, what) = (&self.hand_off, "hand-off to one waiter in another process, 1 node");
        vec![
            row(all, format!("{what}, p50"), Unit::Seconds, Goal::Under(0.0005), |done| at(50, &done.delays)),
            row(all, format!("{what}, p99"), Unit::Seconds, Goal::None, |done| at(99, &done.delays)),
            row(all, format!("{what}: round trips"), Unit::Count, Goal::AtMost(3.0), HandOffs::commands),
            row(all, format!("{what}: commands, wait included"), Unit::Count, Goal::None, HandOffs::commands_with_wait),
        ]
    }

    fn queue_rows(&self) -> Vec<Row> {
        let queue = |all, nodes, times| {
            let what = format!("{} waiters in as many managers drained, {nodes}, 0 ms body", queue::WAITERS);
            row(all, what, Unit::Seconds, Goal::Times(times), |done: &Drained| at(50, &done.times))
        };
        vec![queue(&self.queue_at_one, "1 node", 10.0), queue(&self.queue_at_five, "5 nodes", 5.0)]
    }

    fn local_rows(&self) -> Vec<Row> {
        let (all, what) = (&self.local, format!("{} tasks in one process on one key, 1 node", local::TASKS));
        let sections = format!("{what}: critical sections");
        let commands = format!("{what}: commands per critical section");
        vec![
            row(all, sections, Unit::PerSecond, Goal::Times(50.0), Counted::rate),
            row(all, commands, Unit::Count, Goal::Under(0.2), |done| done.commands),
        ]
    }

    fn hot_key_rows(&self) -> Vec<Row> {
        let all = &self.hot_key;
        let what = |figure| format!("{MANAGERS} managers on one key, {NODES} nodes, {BODY:?} body: {figure}");
        vec![
            row(all, what("commands per hand-off"), Unit::Count, Goal::AtMost(MOST_COMMANDS), |done| done.commands),
            row(all, what("worst wait / mean wait"), Unit::Count, Goal::AtMost(1.5), unevenness),
            row(all, what("Jain fairness"), Unit::Share, Goal::AtLeast(0.99), |done| jain(&done.acquisitions)),
            row(all, what("hand-offs"), Unit::PerSecond, Goal::None, |done| Some(done.per_second)),
            row(all, what("a body, mean"), Unit::Seconds, Goal::None, |done| Some(done.body?.as_secs_f64())),
            row(all, what("from the end of a body to the next one"), Unit::Seconds, Goal::None, |done| {
                Some(1.0 / done.per_second - done.body?.as_secs_f64())
            }),
        ]
    }

    fn killed_rows(&self) -> Vec<Row> {
        let (all, what) = (&self.killed, format!("holder killed, {HOLDERS_TTL:?} ttl, 1 node: expiry to waiter"));
        vec![
            row(all, format!("{what}, worst"), Unit::Seconds, Goal::AtMost(0.15), |delays| at(100, delays)),
            row(all, format!("{what}, p50"), Unit::Seconds, Goal::None, |delays| at(50, delays)),
        ]
    }

    /// Returns the number of overwritten increments for each contender.
    fn lost(&self) -> [u64; Kind::ALL.len()] {
        std::array::from_fn(|kind| {
            let queues = self.queue_at_one[kind].lost + self.queue_at_five[kind].lost;
            queues + self.local[kind].lost + self.hot_key[kind].lost
        })
    }
}

fn row<T>(all: &[T], what: String, unit: Unit, goal: Goal, figure: impl Fn(&T) -> Option<f64>) -> Row {
    Row { what, unit, figures: all.iter().map(figure).collect(), goal }
}

fn at(percent: usize, durations: &[Duration]) -> Option<f64> {
    (!durations.is_empty()).then(|| percentile(durations, percent).as_secs_f64())
}

fn unevenness(contest: &Contest) -> Option<f64> {
    let worst = contest.all_waits().into_iter().max()?;
    Some(worst.as_secs_f64() / mean(&contest.waits)?.as_secs_f64())
}

/// Maximum time of our hand-off, as a multiple of the hand-off without a client.
const MOST_OF_BARE: f64 = 1.5;

impl Report {
    /// Writes the lower bounds that apply to every client.
    fn write_bounds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = self.hand_off.first().and_then(|ours| at(50, &ours.delays));
        if let Some((ours, bare)) = ours.zip(at(50, &self.bare_hand_off)) {
            let (bare_delay, times) = (Duration::from_secs_f64(bare), ours / bare);
            writeln!(
                f,
                "The same hand-off on bare sockets, with no client at all: {bare_delay:.2?}. Ours takes {times:.2} times as long \
                 (at most {MOST_OF_BARE} wanted: {}).\n",
                verdict(times <= MOST_OF_BARE)
            )?;
        }
        let [ours, rslock, ..] = &self.hot_key[..] else { return Ok(()) };
        if let Some(body) = ours.body {
            let most = 1.0 / body.as_secs_f64();
            writeln!(
                f,
                "On the hot key, a hand-off that takes no time at all would be {most:.0} a second, with the bodies as long as they \
                 are: {:.2} times rslock.\n",
                most / rslock.per_second
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Locks that several want. All in one run; only the ratios mean something elsewhere.\n")?;
        heading(f)?;
        for row in self.rows() {
            write!(f, "{row}")?;
        }
        writeln!(f)?;
        self.write_bounds(f)?;
        for (kind, lost) in Kind::ALL.into_iter().zip(self.lost()).filter(|(_, lost)| *lost > 0) {
            writeln!(f, "**{lost} bodies of {} did not run alone.**\n", kind.name())?;
        }
        writeln!(f, "![How long waits take]({PICTURE})\n")?;
        write!(f, "{METHOD}")
    }
}
