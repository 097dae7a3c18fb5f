//! Hand-over from a writer to readers in separate processes.

use crate::hand_over::{READERS, wait_until_queued};
use crate::percentile::percentile;
use crate::process::{CHANNEL, Process};
use crate::{hand_over, moment, result_file};
use redlock_runtime::{LockManager, Mode};
use redlock_tests::Nodes;
use std::fmt;
use std::time::Duration;
use tokio::time::sleep;

/// Maximum time until the last reader holds the lock, as a multiple of a hand-over to one writer.
const MOST: f64 = 3.0;

/// Pause before each hand-over, in which the waiters read all outstanding replies.
const CALM: Duration = Duration::from_millis(20);

/// One row of the table.
pub(crate) struct Processes {
    nodes: usize,
    /// Time of a plain message to the last of all processes, which is a lower bound for a hand-over.
    message: Vec<Duration>,
    to_a_writer: Vec<Duration>,
    to_the_first: Vec<Duration>,
    to_the_last: Vec<Duration>,
}

impl Processes {
    pub(crate) async fn measure(servers: &Nodes, rounds: usize) -> Self {
        let urls = servers.urls();
        let holder = crate::manager(&urls).await;
        let mut all: Vec<_> = (0..READERS).map(|_| Process::start(&urls)).collect();
        all.iter_mut().for_each(Process::ready);
        // Discard the first run, because a process subscribes to its channels when it waits for the first time.
        hand_to(servers, &holder, &mut all, Mode::Shared).await;
        let (message, to_a_writer, to_the_first, to_the_last) = Default::default();
        let mut line = Self { nodes: servers.len(), message, to_a_writer, to_the_first, to_the_last };
        for round in 0..rounds {
            line.message.extend(publish(servers, &mut all).await.iter().max());
            // Use another process in each round, as in `hand_over`.
            let one = all.get_mut(round % READERS..=round % READERS).expect("there are so many");
            line.to_a_writer.extend(hand_to(servers, &holder, one, Mode::Exclusive).await);
            let delays = hand_to(servers, &holder, &mut all, Mode::Shared).await;
            line.to_the_first.extend(delays.iter().min());
            line.to_the_last.extend(delays.iter().max());
        }
        line
    }
}

/// Returns the time until each of `listening` has received a message from the first node.
async fn publish(servers: &Nodes, listening: &mut [Process]) -> Vec<Duration> {
    let server = servers.iter().next().expect("there is a node");
    listening.iter_mut().for_each(Process::listen);
    let publisher = server.inspect();
    sleep(CALM).await;
    let begun = moment::now();
    let heard = publisher.command::<usize>(&["PUBLISH", CHANNEL, "now"]).await;
    assert_eq!(heard, listening.len(), "all of them listen");
    listening.iter_mut().map(|process| process.held().saturating_sub(begun)).collect()
}

/// Returns the time from the release by `holder` until each of `waiting` holds the lock.
async fn hand_to(servers: &Nodes, holder: &LockManager, waiting: &mut [Process], mode: Mode) -> Vec<Duration> {
    let held = holder.acquire(hand_over::KEY).await.expect("it is free");
    for process in &mut *waiting {
        process.ask(mode);
    }
    wait_until_queued(servers, waiting.len()).await;
    sleep(CALM).await;
    let begun = moment::now();
    held.release().await.expect("it is held");
    // No process releases the lock before all hold it.
    let delays = waiting.iter_mut().map(|process| process.held().saturating_sub(begun)).collect();
    waiting.iter_mut().for_each(Process::release);
    delays
}

impl fmt::Display for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = [&self.message, &self.to_a_writer, &self.to_the_first, &self.to_the_last];
        let [message, one, first, last] = times.map(|times| percentile(times, 50));
        let late = percentile(&self.to_the_last, 90);
        let ratio = last.as_secs_f64() / one.as_secs_f64();
        let verdict = result_file::verdict(ratio <= MOST);
        write!(f, "| {} | {message:.1?} | {one:.1?} | {first:.1?} |", self.nodes)?;
        write!(f, " {last:.1?} | {late:.1?} | {ratio:.2} | {verdict} |")
    }
}

/// Writes the table with these results.
pub(crate) fn table(lines: &[Processes], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "\nThe next measurement has {READERS} readers in separate processes, and one writer in one of these processes. The times begin with the release"
    )?;
    writeln!(
        f,
        "of the lock. They end when the writer, the first reader, or the last reader holds it. A plain message of one node serves as a lower"
    )?;
    writeln!(f, "bound: its time ends when the last of the {READERS} processes has received it.\n")?;
    writeln!(
        f,
        "| nodes | p50, message to {READERS} processes | p50, one writer | p50, first reader | p50, last of {READERS} readers | p90 | last reader to writer | at most {MOST} |"
    )?;
    writeln!(f, "|---:|---:|---:|---:|---:|---:|---:|---|")?;
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
    writeln!(
        f,
        "
The last reader is late for three reasons. The release script grants the lock to all {READERS} readers, and publishes a message to each
of them. Even a plain message reaches the last of {READERS} processes late if they share two cores. It takes 1.5 to 2.5 times as long as
a hand-over to a single process. Each reader that already holds the lock requests its lease from each node in the meantime."
    )
}
