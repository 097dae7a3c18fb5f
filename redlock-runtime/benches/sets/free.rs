//! Cost of an uncontended lock of each kind.

use crate::kind::Kind;
use crate::pairs::{Pairs, ratio};
use crate::result_file;
use redlock_tests::Nodes;
use std::fmt;

/// Kinds of locks, each with its maximum time as a multiple of a lock of one key. The limit for shared locks is in the
/// benchmark `shared`.
const KINDS: [(Kind, Option<f64>); 4] =
    [(Kind::Exclusive, None), (Kind::Shared, None), (Kind::TwoKeys, Some(1.2)), (Kind::Path, Some(1.45))];

/// Rows of the table for one number of nodes.
pub(crate) struct Free {
    nodes: u32,
    /// Measurements in the order of [`KINDS`].
    pairs: [Pairs; KINDS.len()],
}

impl Free {
    pub(crate) async fn measure(servers: &Nodes, turns: usize) -> Self {
        let manager = crate::manager(&servers.urls()).await;
        let mut pairs: [Pairs; KINDS.len()] = Default::default();
        for _ in 0..turns {
            for ((kind, _), pairs) in KINDS.into_iter().zip(&mut pairs) {
                pairs.measure(&manager, servers, kind.request(0)).await;
            }
        }
        Self { nodes: u32::try_from(servers.len()).expect("they are few"), pairs }
    }
}

impl fmt::Display for Free {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, ..] = &self.pairs;
        for ((kind, most), pairs) in KINDS.into_iter().zip(&self.pairs) {
            let (median, times) = (pairs.median(), ratio(pairs.median(), one.median()));
            write!(f, "| {} | {} | {median:.1?} | {times:.2} |", self.nodes, kind.name())?;
            match most {
                Some(most) => write!(f, " at most {most} | {} |", result_file::verdict(times <= most))?,
                None => write!(f, " | |")?,
            }
            let (at_server, of_one) = (pairs.server_cpu() / self.nodes, one.server_cpu() / self.nodes);
            write!(f, " {at_server:.1?} | {:.2} |", ratio(at_server, of_one))?;
            writeln!(f, " {:.1?} | {:.2} |", pairs.cpu(), ratio(pairs.cpu(), one.cpu()))?;
        }
        Ok(())
    }
}

pub(crate) fn table(lines: &[Free], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "A pair is the acquisition and the release of an uncontended lock, as one task sees them. All kinds of locks take turns of a tenth
of a second. Two keys are locked exclusively by one lock, and a path of depth 3 is also locked exclusively. The path has three names
at every node: the name of the path itself, and the names of two folders above it. Other calls may hold locks below these folders at
the same time. The ratios compare each kind with one exclusive key. CPU is the CPU time of a pair: in one server, as that server
reports it, and in all threads of this process. The servers and this process share two cores.
"
    )?;
    writeln!(f, "| nodes | lock | p50 | ratio | to reach | | CPU of a server | ratio | CPU of the client | ratio |")?;
    writeln!(f, "|---:|---|---:|---:|---:|---|---:|---:|---:|---:|")?;
    lines.iter().try_for_each(|line| write!(f, "{line}"))?;
    writeln!(
        f,
        "
One exclusive key is acquired by a plain `SET`. All other locks are acquired by a script, which checks each name and its queue
before it writes anything. If five servers run on two cores, their scripts wait for each other. The ratio is then nearer to the
ratio of the CPU times."
    )
}
