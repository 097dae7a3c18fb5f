//! Asks every node what it is like.

use crate::client::shared::Core;
use crate::node::BoxFuture;
use crate::node::report::CheckReport;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// How long the answers of a node are waited for, and then once more its wake-ups. A healthy node needs a fraction of
/// it; with less, one that is only slow would be reported as one that does not answer, and with more, the whole check
/// would take longer than its documentation says.
const PATIENCE: Duration = Duration::from_millis(500);

/// The reports of all nodes, which are asked at the same time.
pub(super) async fn check(core: &Core) -> CheckReport {
    core.heard_of_all().await;
    let reports = core.nodes.iter().map(|node| node.node().report(PATIENCE));
    CheckReport { nodes: all(reports.collect()).await, needed: core.quorum.needed }
}

/// The outputs of all `futures`, which run at the same time.
async fn all<T>(mut futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
