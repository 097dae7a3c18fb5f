//! Asks every node what it is like, for [`LockManager::check`](super::LockManager::check).

use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::node::report::{CheckReport, NodeReport};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// For how long the answers of a node are waited for, and then once more for its wake-ups. Smaller, a node that is far away
/// counts as silent; larger, a report about a frozen node takes longer.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) async fn check(shared: &Shared) -> CheckReport {
    shared.heard_of_all().await;
    let report = |node: &NodeHandle| -> Pin<Box<dyn Future<Output = NodeReport> + Send>> {
        let node = node.node().clone();
        Box::pin(async move { node.report(PATIENCE).await })
    };
    CheckReport { nodes: all(shared.nodes.iter().map(report).collect()).await, needed: shared.quorum.needed }
}

/// The outputs of all `futures`, which run at the same time.
async fn all<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
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
