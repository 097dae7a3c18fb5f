//! Processes that transfer money between the same accounts. Compares one lock of both accounts with two nested locks.

use crate::accounts::{ACCOUNTS, Accounts};
use crate::jain::jain;
use crate::teller::{Load, Process, Way, Work};
use crate::{Plan, result_file, server_cpu};
use redlock_tests::Nodes;
use std::fmt;
use std::time::Duration;

const PROCESSES: usize = 8;
/// Loads that are measured.
pub(crate) const LOADS: [Load; 3] = [
    Load { tellers: 1, body: Duration::ZERO },
    Load { tellers: 8, body: Duration::ZERO },
    Load { tellers: 8, body: Duration::from_millis(5) },
];

/// Minimum rate of transfers, as a multiple of the rate with nested locks.
const LEAST: f64 = 1.5;
/// Minimum of Jain's index over the processes.
const LEAST_JAIN: f64 = 0.99;

/// Results of one way of locking.
#[derive(Default)]
struct Outcome {
    transfers: [usize; PROCESSES],
    longest: Duration,
    /// CPU time of all processes.
    cpu: Duration,
    /// CPU time of all servers.
    server_cpu: Duration,
}

/// Two rows of the table.
pub(crate) struct Storm {
    nodes: u32,
    load: Load,
    /// Total duration of the measurements of each way.
    time: Duration,
    together: Outcome,
    nested: Outcome,
    is_exact: bool,
}

impl Storm {
    pub(crate) async fn measure(servers: &Nodes, load: Load, plan: Plan) -> Self {
        let first = servers.iter().next().expect("there is a node");
        let (accounts, path) = Accounts::create(first.dir());
        let mut processes: Vec<_> = (0..PROCESSES).map(|_| Process::start(&path, &servers.urls())).collect();
        processes.iter_mut().for_each(Process::ready);
        let (mut together, mut nested) = (Outcome::default(), Outcome::default());
        for _ in 0..plan.storms {
            for (way, outcome) in [(Way::Together, &mut together), (Way::Nested, &mut nested)] {
                let used = server_cpu::of(servers).await;
                for process in &mut processes {
                    process.begin(way, load, plan.storm);
                }
                processes.iter_mut().enumerate().for_each(|(number, process)| outcome.add(number, process.done()));
                outcome.server_cpu += server_cpu::of(servers).await.saturating_sub(used);
            }
        }
        let nodes = u32::try_from(servers.len()).expect("they are few");
        let time = plan.storm * u32::try_from(plan.storms).expect("they are few");
        Self { nodes, load, time, together, nested, is_exact: accounts.are_exact() }
    }
}

impl Outcome {
    fn add(&mut self, process: usize, done: Work) {
        if let Some(transfers) = self.transfers.get_mut(process) {
            *transfers += done.transfers;
        }
        self.longest = self.longest.max(done.longest);
        self.cpu += done.cpu;
    }

    fn count(&self) -> u32 {
        u32::try_from(self.transfers.iter().sum::<usize>()).expect("not that many").max(1)
    }
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, load: Load { tellers, body }, time, together, nested, is_exact } = self;
        let sum = if *is_exact { "exact" } else { "**wrong**" };
        let times = f64::from(together.count()) / f64::from(nested.count());
        for (way, outcome) in [("two keys at once", together), ("nested", nested)] {
            let count = outcome.count();
            let rate = f64::from(count) / time.as_secs_f64();
            write!(f, "| {nodes} | {tellers} | {body:?} | {way} | {rate:.0} |")?;
            if std::ptr::eq(outcome, together) {
                write!(f, " {times:.2} | at least {LEAST} | {} |", result_file::verdict(times >= LEAST))?;
            } else {
                write!(f, " | | |")?;
            }
            let fairness = jain(&outcome.transfers).unwrap_or_default();
            let verdict = result_file::verdict(fairness >= LEAST_JAIN);
            write!(f, " {:.1?} | {fairness:.4} | {verdict} | {sum} |", outcome.longest)?;
            let at_server = outcome.server_cpu / *nodes / count;
            writeln!(f, " {at_server:.1?} | {:.1?} |", outcome.cpu / count)?;
        }
        Ok(())
    }
}

pub(crate) fn table(lines: &[Storm], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "
{PROCESSES} processes transfer between {ACCOUNTS} accounts, from a random one to another, as fast as they can, with so many transfers at a
time in each process. A transfer reads two numbers in a file, waits for as long as its body is, or yields to other tasks, and
writes them. It locks both accounts by one lock of two keys; or by two locks of one key, both of this library, the smaller one
first, of which one is held while the other is waited for. In turns, by the same processes. A deadlock would have ended the run.
The sum of all accounts is that after both. CPU is that of one server, and of all processes together, for each transfer.
"
    )?;
    writeln!(
        f,
        "| nodes | at a time | body | locks | transfers in a second | ratio | to reach | | longest transfer | Jain's index | at least {LEAST_JAIN} | sum | CPU of a server | of the clients |"
    )?;
    writeln!(f, "|---:|---:|---:|---|---:|---:|---:|---|---:|---:|---|---|---:|---:|")?;
    lines.iter().try_for_each(|line| write!(f, "{line}"))?;
    writeln!(
        f,
        "
A call that finds one of its keys taken tries up to 24 times more, with pauses of 1 to 4 ms, before it stands in the queues, and three of four ask one
node first, as the first try does where others had some of the keys lately: those who want the same keys meet there, and do not keep the votes of five from each other. With one
transfer at a time in each process that is enough for nearly all. With eight, 64 calls want two of 64 accounts each; those that come to
the queues want them in the order in which they have come, and a script that lets one in looks at the queues of all of its keys: it takes
about ten times as long as the start of it that serves keys for which nobody waits, and whoever waits asks again whenever one of
its keys becomes free. Nested locks have neither: a free key goes to whoever asks first, also before those who wait, and passes from call
to call of one process without a command.

Tried: no tries, which left one transfer at a time at 0.58 to 0.70 of nested locks; three of them, which helped those and left eight at a
time at one node at 0.18, and 0.57 with bodies of 5 ms; pauses of up to 8, 16 and 32 ms, which came to the same and made the longest
transfer longer; twelve tries that ask all nodes, which left eight at a time over five nodes at 0.16 and 0.25; first tries that ask all nodes, which take a third
from eight at a time, and give a fifteenth to one; and first tries that ask one node only where
more than a third of these are in vain, which has the processes do different things: the share of some was half of that of others. Left
to the limit: a hand-over of several keys inside of a process, which nested locks have for each of theirs, and readers have."
    )
}
