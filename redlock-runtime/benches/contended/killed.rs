//! A holder is killed. Measures the time from the expiry of its lock to the start of a waiter's body.

use crate::contender::{Contender, Kind, TTL};
use crate::moment;
use crate::plan::{Plan, settle};
use crate::process::Process;
use futures_util::future::join_all;
use redlock_tests::Nodes;
use std::time::Duration;

pub(crate) const HOLDERS_TTL: Duration = Duration::from_secs(2);

/// Returns the delays in the order of [`Kind::ALL`]. A list is empty if a waiter did not finish.
pub(crate) async fn measure(plan: &Plan, nodes: &Nodes) -> Vec<Vec<Duration>> {
    // Run all contenders in parallel, because they are idle most of the time.
    let all = Kind::ALL.map(async |kind| {
        let (waiter, mut delays) = (kind.connect(&nodes.urls()).await, Vec::new());
        for turn in 0..plan.kills {
            let key = format!("holder of {}:{turn}", kind.name());
            let Some(delay) = once(kind, &waiter, &key, nodes).await else { return Vec::new() };
            delays.push(delay);
        }
        delays
    });
    join_all(all).await
}

async fn once(kind: Kind, waiter: &Contender, key: &str, nodes: &Nodes) -> Option<Duration> {
    let mut holder = Process::start(kind, &nodes.urls(), key, HOLDERS_TTL);
    holder.ask().await;
    holder.held().await?;
    let (waiter, waiters_key) = (waiter.clone(), key.to_owned());
    let waiting = tokio::spawn(async move {
        let held = waiter.acquire(&waiters_key, TTL).await?;
        let begun = moment::now();
        held.release().await;
        Some(begun)
    });
    settle().await;
    holder.kill();
    // Compute the expiry after the kill, when nothing extends the lock any more. Take the time before the query, so
    // that the error counts against us.
    let asked = moment::now();
    let left = nodes[0].inspect().pttl(key).await;
    let expiry = asked + Duration::from_millis(left.try_into().unwrap_or_default());
    Some(waiting.await.expect("no panic")?.saturating_sub(expiry))
}
