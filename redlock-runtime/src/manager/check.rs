//! Describes every node and tries a lock there, for [`LockManager::check`](super::LockManager::check) and
//! [`LockManager::ready`](super::LockManager::ready).

use super::trial;
use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::client::timers::{sleep, timeout};
use crate::error::{LockError, NodeError, NodeFailure};
use crate::node::report::{CheckReport, Deployment, NodeReport, explained, may_pass};
use crate::node::{BoxFuture, Status};
use crate::request::AfterRestart;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Timeout for the replies of a node: 500 ms. It applies again to wake-ups, to a repeated measurement of a slow round trip, and to
/// each trial. Too small: a distant node looks unreachable. Too large: a report about a frozen node takes longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Time limit of [`ready`]: 2 s. Too small: a service that starts together with its servers gives up. Too large: a service without servers
/// hangs.
const LIMIT: Duration = Duration::from_secs(2);

/// Pause before the nodes are asked again: 50 ms. Too small: a busy loop. Too large: the start of a service is delayed.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn check(shared: &Shared) -> CheckReport {
    shared.wait_for_first_connections().await;
    let names = shared.nodes.iter().map(|node| node.node().servers_of_name(PATIENCE)).collect();
    let names = outputs(names, |_| false);
    let (reports, names) = both(reports(shared, |_| false), names).await;
    let with_servers = |(report, servers): (Option<NodeReport>, Option<_>)| {
        Some(NodeReport { servers_of_name: servers.unwrap_or_default(), ..report? })
    };
    let nodes = reports.into_iter().zip(names).filter_map(with_servers).collect();
    let deployment = deployment(shared);
    CheckReport { nodes, needed: shared.quorum.needed, node_timeout: deployment.node_timeout, deployment }
}

/// Polls two futures in turns until both have completed.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second, mut of_first, mut of_second) = (pin!(first), pin!(second), None, None);
    poll_fn(|cx| {
        if of_first.is_none() {
            of_first = ready_output(first.as_mut().poll(cx));
        }
        if of_second.is_none() {
            of_second = ready_output(second.as_mut().poll(cx));
        }
        let outputs = (of_first.take(), of_second.take());
        match outputs {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (first, second) => {
                (of_first, of_second) = (first, second);
                Poll::Pending
            }
        }
    })
    .await
}

fn ready_output<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Waits until enough nodes count.
///
/// # Errors
/// [`LockError::NoQuorum`] if too few nodes count in time; [`LockError::Refused`] if the errors of too many nodes are permanent.
pub(super) async fn ready(shared: &Shared) -> Result<(), LockError> {
    let mut known = Known { reports: shared.nodes.iter().map(|_| None).collect(), asked: None };
    match timeout(LIMIT, wait_until_enough_vote(shared, &mut known)).await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(shared.no_quorum(None, failures(shared, &known))),
    }
}

/// Known facts about the nodes.
struct Known {
    /// Latest report about each node.
    reports: Vec<Option<NodeReport>>,
    /// Time of the first request for reports.
    asked: Option<Instant>,
}

/// Waits until enough nodes count. Returns `false` if too many nodes have a permanent error, so that waiting does not help. `known` then
/// has the latest report about each node.
async fn wait_until_enough_vote(shared: &Shared, known: &mut Known) -> bool {
    let needed = shared.quorum.needed;
    let is_unfit = |error: &NodeError| !may_pass(error, LIMIT);
    let is_hopeless = |unfit: usize| shared.nodes.len().saturating_sub(unfit) < needed;
    loop {
        let are_down = || shared.nodes.iter().filter(|node| known_error(node).is_some_and(|error| is_unfit(&error)));
        shared.wait_until_up_or(|| is_hopeless(are_down().count())).await;
        let count = |reports: &[Option<NodeReport>], wanted: &dyn Fn(Option<&NodeError>) -> bool| {
            reports.iter().flatten().filter(|report| wanted(report.error.as_ref())).count()
        };
        let unfit = |reports: &[_]| count(reports, &|error| error.is_some_and(is_unfit));
        let well = |reports: &[_]| count(reports, &|error| error.is_none());
        known.asked.get_or_insert_with(Instant::now);
        known.reports = reports(shared, |reports| well(reports) >= needed || is_hopeless(unfit(reports))).await;
        if well(&known.reports) >= needed {
            return true;
        } else if is_hopeless(unfit(&known.reports)) {
            return false;
        }
        sleep(PAUSE).await;
    }
}

/// Returns the known errors of the nodes that do not count.
fn failures(shared: &Shared, known: &Known) -> Box<[NodeFailure]> {
    let failures = shared.nodes.iter().zip(&known.reports).filter_map(|(node, report)| {
        let error = match (known_error(node), report, node.status()) {
            (Some(error), ..) | (None, None, Status::Starting(error)) => error,
            (None, Some(report), _) => report.error.clone()?,
            // A node that was not asked has not failed to answer.
            (None, None, _) => unanswered(known.asked?.elapsed()),
        };
        Some(NodeFailure { node: node.label().into(), error: explained(error, LIMIT) })
    });
    failures.collect()
}

/// Returns the error for a node that is connected and was asked this long ago.
fn unanswered(asked: Duration) -> NodeError {
    let asked = Duration::from_millis(u64::try_from(asked.as_millis()).unwrap_or(u64::MAX));
    if asked >= LIMIT / 2 {
        return NodeError::TimedOut(asked);
    }
    NodeError::Unreachable(format!("the connection came too late, {asked:?} before the limit of {LIMIT:?}").into())
}

/// Returns the error of a node, as far as it is known without a request.
fn known_error(node: &NodeHandle) -> Option<NodeError> {
    match node.status() {
        Status::Down(error) => Some(error),
        Status::Up => node.node().abstains_for().map(NodeError::RecentlyRestarted),
        Status::Starting(_) => None,
    }
}

/// Returns the report about each node, as soon as all are there or `is_enough`.
async fn reports(shared: &Shared, is_enough: impl Fn(&[Option<NodeReport>]) -> bool) -> Vec<Option<NodeReport>> {
    let report = |index| Box::pin(trial::report(shared, index, || deployment(shared), PATIENCE)) as BoxFuture<'_, _>;
    outputs((0..shared.nodes.len()).map(report).collect(), is_enough).await
}

/// Returns how the manager uses its nodes.
fn deployment(shared: &Shared) -> Deployment {
    let policy = &shared.policy;
    Deployment {
        node_timeout: shared.node_timeout(policy.default_ttl),
        longest_node_timeout: policy.node_timeout(policy.default_ttl, Duration::MAX),
        tolerated_data_loss: policy.tolerated_data_loss,
        has_kept_keys: shared.has_kept_keys.load(Ordering::Relaxed),
        trusts_restarts: policy.after_restart(shared.nodes.len()) == AfterRestart::Trust,
        longest_abstention: shared.servers.longest_abstention(),
    }
}

/// Runs all `futures` at the same time. Returns when all have completed, or if `is_enough`: some outputs are `None`
/// then.
async fn outputs<T>(mut futures: Vec<BoxFuture<'_, T>>, is_enough: impl Fn(&[Option<T>]) -> bool) -> Vec<Option<T>> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                *output = Some(ready);
            }
        }
        let is_over = outputs.iter().all(Option::is_some) || is_enough(&outputs);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs
}
