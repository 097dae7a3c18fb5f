//! Cost of an uncontended lock on a server with many other locks.

use crate::held::{hold, in_one_tree};
use crate::kind::Kind;
use crate::pairs::{Pairs, ratio};
use crate::{Plan, result_file};
use redlock_runtime::{LockGuard, LockManager, LockRequest};
use redlock_tests::Nodes;
use std::fmt;

const FEW: usize = 100;
/// Maximum time of a path lock among many held locks, as a multiple of the time among few.
const MOST: f64 = 1.15;

/// Server with held locks.
struct Site {
    held: Vec<LockGuard>,
    manager: LockManager,
    servers: Nodes,
    one_key: Pairs,
    path: Pairs,
}

impl Site {
    async fn start(count: usize) -> Self {
        let servers = Nodes::start(1).await;
        let manager = crate::manager(&servers.urls()).await;
        let held = hold(&manager, count, in_one_tree).await;
        Self { held, manager, servers, one_key: Pairs::default(), path: Pairs::default() }
    }

    async fn measure(&mut self) {
        let Self { manager, servers, one_key, path, .. } = self;
        one_key.measure(manager, servers, Kind::Exclusive.request(0)).await;
        path.measure(manager, servers, LockRequest::path("/bench/0/free")).await;
    }
}

pub(crate) struct AmongHeld {
    count: usize,
    /// Measurements of each [`Site`]: among few and among many held locks.
    one_key: [Pairs; 2],
    path: [Pairs; 2],
}

impl AmongHeld {
    pub(crate) async fn measure(plan: Plan) -> Self {
        let (mut few, mut many) = (Site::start(FEW).await, Site::start(plan.held).await);
        for _ in 0..plan.turns {
            few.measure().await;
            many.measure().await;
        }
        let count = many.held.len();
        Self { count, one_key: [few.one_key, many.one_key], path: [few.path, many.path] }
    }
}

impl fmt::Display for AmongHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count;
        writeln!(
            f,
            "
The next table shows the same times on one node with other held locks: paths of depth 3 in the folders of one tree. The measured
path is in one of these folders. The other locks therefore use two of its names. All of them use the name of the tree, and some of
them use the name of the folder.
"
        )?;
        writeln!(f, "| lock | p50, {FEW} held | p50, {count} held | ratio | to reach | |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---|")?;
        for (kind, pairs) in [(Kind::Exclusive, &self.one_key), (Kind::Path, &self.path)] {
            let [few, many] = pairs.each_ref().map(Pairs::median);
            let times = ratio(many, few);
            write!(f, "| {} | {few:.1?} | {many:.1?} | {times:.2} |", kind.name())?;
            match kind {
                Kind::Path => writeln!(f, " at most {MOST} | {} |", result_file::verdict(times <= MOST))?,
                _ => writeln!(f, " | |")?,
            }
        }
        Ok(())
    }
}
