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
{PROCESSES} processes make transfers between {ACCOUNTS} accounts as fast as they can. A transfer goes from one random account to
another. The column \"at a time\" contains the number of concurrent transfers in each process. A transfer reads two numbers in a file,
sleeps for the length of its body, and writes the numbers. A transfer without a body yields to other tasks once.

The processes lock the two accounts in two ways, in turns. The first way is one lock of two keys. The second way is two nested locks of one
key each. Both ways use this library. The nested locks begin with the smaller account number, and hold its lock during the wait for the
other lock. A deadlock would have ended the run. The sum of all accounts is checked after the last run of both ways. CPU is the CPU time
of a transfer in one server, and in all processes together.
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
A call that finds one of its keys locked retries up to 24 times before it joins the queues. It pauses for 1 to 4 ms before each
retry. Three of four retries ask one node first. The first attempt does so, too, if other calls held some of the keys recently. Calls
for the same keys compete at this node, and do not split the votes of five nodes.

The retries suffice for nearly all calls if each process runs one transfer at a time. If each process runs eight, 64 calls compete for 64
accounts, and each call needs two of them. The queued calls acquire their keys in the order of arrival. The script that admits a queued
call checks the queues of all its keys. This takes about ten times as long as the first part of the script, which serves keys without
waiters. A waiter also sends a new request whenever one of its keys becomes free. Nested locks need neither the order nor these
requests: a free key goes to the first call that asks, even ahead of the waiters. A key also passes between calls of one process
without a command.

These alternatives were tried. The numbers are ratios to nested locks:

- No retries: 0.58 to 0.70 with one transfer at a time.
- Three retries: an improvement with one transfer at a time. Eight transfers at a time only reached 0.18 on one node, and 0.57 with bodies
  of 5 ms.
- Pauses of up to 8, 16 and 32 ms: the same ratios, and the longest transfer took longer.
- Twelve retries that ask all nodes: 0.16 and 0.25 with eight transfers at a time on five nodes.
- First attempts that ask all nodes: a third fewer transfers with eight at a time, and a fifteenth more with one.
- First attempts that ask one node only if more than a third of these attempts fail. The processes then behave differently, and some make
  half as many transfers as others.

One possible improvement is left: a hand-over of several keys inside a process. Nested locks already use a hand-over for each of their keys,
and so do readers."
    )
}
