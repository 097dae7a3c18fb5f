//! One trial: locks are held, other calls wait for them, and a fault is injected.

use crate::body::Body;
use crate::contestant::{Contestant, Kind};
use crate::fault::Fault;
use crate::outcome::Outcome;
use crate::plan::{LOCKS, SETTLING, TTL, WATCHED};
use crate::site::Site;
use futures_util::future::join_all;
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// One lock, with the body that holds it and the call that waits for it.
struct Wanted {
    body: Body,
    /// Returns whether the body ended normally, and the time at which the call returned.
    owner: JoinHandle<(bool, Instant)>,
    next: JoinHandle<Option<Instant>>,
}

/// Returns the outcome for each lock.
pub(crate) async fn run(kind: Kind, fault: Fault, nodes: usize) -> Vec<Outcome> {
    let mut site = Site::start(nodes).await;
    let (owner, other) = (kind.connect(site.urls()).await, kind.connect(site.urls()).await);
    sleep(SETTLING).await;
    fault.prepare(&mut site).await;
    let (end, may_end) = watch::channel(false);
    let locks = join_all((0..LOCKS).map(|lock| want(&owner, &other, format!("order:{lock}"), &may_end))).await;
    sleep(SETTLING).await;
    let strikes = fault.strike(&site).await;
    sleep(WATCHED).await;
    let released = Instant::now();
    end.send_replace(true);
    join_all(locks.into_iter().map(|lock| lock.outcome(&strikes, released))).await
}

/// Starts both calls. Returns when the body runs and the second call has been made.
async fn want(owner: &Contestant, other: &Contestant, key: String, may_end: &watch::Receiver<bool>) -> Wanted {
    let body = Body::new(may_end.clone());
    let (holder, held_key, held_body) = (owner.clone(), key.clone(), body.clone());
    let owner = tokio::spawn(async move { (holder.hold(&held_key, &held_body).await, Instant::now()) });
    body.begun().await;
    let waiter = other.clone();
    let next = tokio::spawn(async move { waiter.wait(&key).await });
    Wanted { body, owner, next }
}

impl Wanted {
    async fn outcome(self, strikes: &[Instant], released: Instant) -> Outcome {
        let (has_ended, returned) = self.owner.await.expect("no panic");
        // Longer than any lease, and than any pause between two tries.
        let next = timeout(5 * TTL, self.next).await.ok().and_then(|next| next.expect("no panic"));
        let ran_until = self.body.ran_until(returned);
        Outcome::new(strikes, released, (!has_ended).then_some(returned), ran_until, next)
    }
}
