//! Runs the workload through the public interface.

use super::jobs::{Job, Jobs};
use super::network::Network;
use super::observer::Observer;
use super::telling::client_name;
use super::tree::{self, NAMES};
use super::workload::{Call, End, Foreign, Work};
use crate::guard::hold::hold;
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::protocol::hold_options::HoldOptions;
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use crate::{DetachedLock, FencedGuard, FencingToken, LockError, LockGuard, LockManager, LockRequest, Mode, Wait};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep, timeout};

/// Payload of a panic that belongs to the workload.
pub(super) struct Planned;

thread_local! {
    /// Keys of this thread. The observer needs them at every step, and threads with shared keys would contend.
    static KEYS: [LockKey; NAMES.len()] = NAMES.map(LockKey::from);
}

/// Returns the key with the given index.
pub(super) fn key(index: usize) -> LockKey {
    KEYS.with(|keys| keys[index].clone())
}

/// Acquired lock, with its number if it is fenced.
type Obtained = Result<(LockGuard, Option<FencingToken>), LockError>;

/// Task of one manager.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) network: Arc<Network>,
    pub(super) observer: Arc<Observer>,
    pub(super) jobs: Arc<Jobs>,
    pub(super) manager: LockManager,
    pub(super) client: usize,
}

impl Actor {
    /// Runs the calls of one task, and then attaches detached locks until the end of its shift.
    pub(super) fn run(self, work: Work) -> impl Future<Output = ()> + Send {
        let (network, client) = (Arc::clone(&self.network), self.client);
        let all = async move {
            let calls = async {
                for call in &work.calls {
                    self.call(call).await;
                }
                if !work.shift.is_zero() {
                    // Unfinished work is dropped at the end of the shift.
                    let _ = timeout(work.shift, self.run_detached_jobs()).await;
                }
            };
            match work.aborted_after {
                None => calls.await,
                // The calls are dropped at any point.
                Some(limit) => timeout(limit, calls).await.unwrap_or_default(),
            }
        };
        Process::new(network, client, all)
    }

    /// Shuts the manager down at the given time, and checks what it leaves behind.
    pub(super) fn shut_down(self, at: Duration) -> impl Future<Output = ()> + Send {
        let (network, client) = (Arc::clone(&self.network), self.client);
        let all = async move {
            sleep(at).await;
            let is_quiet = self.observer.closes(self.client, self.manager.shared().is_starting());
            let is_drained = self.manager.shutdown().await;
            if is_quiet && is_drained {
                self.observer.drained(self.client);
            }
        };
        Process::new(network, client, all)
    }

    /// Acquires the lock of a call, and runs its body.
    async fn call(&self, call: &Call) {
        sleep(call.pause).await;
        if let Some(guard) = self.obtained(call, self.acquire(call)).await {
            self.work(call, guard).await;
        }
    }

    /// Attaches detached locks, and runs their bodies, until it is dropped.
    async fn run_detached_jobs(&self) {
        loop {
            let Job { call, detached } = self.jobs.next().await;
            if let Some(guard) = self.obtained(&call, self.attach(&call, detached)).await {
                self.work(&call, guard).await;
            }
        }
    }

    /// Runs the body of a call, and ends the hold in the way that the call asks for.
    async fn work(&self, call: &Call, guard: LockGuard) {
        let guard = Arc::new(guard);
        let entered = self.observer.entered(self.client, call, &guard);
        if call.is_held {
            if let Err(error) = hold(&guard, body(&guard, call)).await {
                self.observer.stopped(self.client, call, *guard.token(), &error);
            }
        } else {
            body(&guard, call).await;
        }
        drop(entered);
        let Some(guard) = Arc::into_inner(guard) else { return };
        match call.end {
            End::Drop => drop(guard),
            // A lease that has ended is not a fault of the run.
            End::Release => guard.release().await.unwrap_or_default(),
            End::Panic => resume_unwind(Box::new(Planned)),
            End::Detach { copies } => {
                let (call, detached) = (
                    Call { wait: Wait::None, hold: HoldOptions::default(), end: End::Release, ..call.clone() },
                    guard.detach(),
                );
                self.observer.detached(*detached.token());
                self.jobs.put(Job { call, detached }, copies);
            }
        }
    }

    /// Returns the lock of `obtain`, if it arrives in time.
    async fn obtained(&self, call: &Call, obtain: impl Future<Output = Obtained>) -> Option<LockGuard> {
        let waits = self.observer.waits(self.client, call);
        let outcome = match call.patience {
            None => Some(obtain.await),
            Some(patience) => timeout(patience, obtain).await.ok(),
        };
        self.observer.answered(&waits, outcome.as_ref());
        let (guard, number) = outcome?.ok()?;
        if let Some(number) = number {
            self.observer.numbered(&waits, number);
        }
        Some(guard)
    }

    /// Attaches a detached lock, with its number if the call is fenced.
    async fn attach(&self, call: &Call, detached: DetachedLock) -> Obtained {
        // A lock that others share has lost its number.
        if call.is_fenced && detached.mode() == Mode::Exclusive {
            self.manager.attach(detached.fencing()).await.map(numbered)
        } else {
            Ok((self.manager.attach(detached).await?, None))
        }
    }

    /// Builds the request of a call, and acquires its lock.
    async fn acquire(&self, call: &Call) -> Obtained {
        let path = tree::path(call.key);
        let is_key = path.is_none() && call.also.is_none();
        let request = match (call.also, path) {
            (None, None) => LockRequest::new(key(call.key)),
            (None, Some(path)) => LockRequest::path(path),
            (Some(_), _) => LockRequest::all(call.keys().map(tree::part)),
        };
        let mut request = request.mode(call.mode).ttl(call.ttl).wait(call.wait);
        request.inner.hold = call.hold;
        request.inner.permits = call.permits;
        request.inner.joins = !matches!(call.end, End::Detach { .. });
        if call.hold.min_hold.is_none() && !call.mode.is_shared() && is_key {
            request = request.linger(call.linger);
        }
        if !call.is_fenced {
            return Ok((self.manager.acquire(request).await?, None));
        }
        self.manager.acquire(request.fencing()).await.map(numbered)
    }
}

fn numbered(fenced: FencedGuard) -> (LockGuard, Option<FencingToken>) {
    let number = fenced.fencing_token();
    (fenced.into_guard(), Some(number))
}

/// Sleeps for the length of the body, and extends or downgrades the lease in its middle.
async fn body(guard: &LockGuard, call: &Call) {
    if call.extends {
        sleep(call.body / 2).await;
        // A failed extension leaves the earlier lease valid.
        let _: Result<(), LockError> = guard.extend().await;
    }
    let rest = if call.extends { call.body / 2 } else { call.body };
    if call.is_lowered {
        sleep(rest / 2).await;
        guard.downgrade();
        sleep(rest / 2).await;
    } else {
        sleep(rest).await;
    }
}

/// Another program, which asks all servers at the same moment.
pub(super) async fn act(network: Arc<Network>, observer: Arc<Observer>, foreign: Foreign) {
    sleep(foreign.at).await;
    let name = key(foreign.key);
    let token = OwnerToken::new(ManagerId::numbered(u128::MAX), TokenTime::new(0, 0));
    let until = network.now().after(foreign.ttl.mul_f64(0.98).saturating_sub(Duration::from_millis(2)));
    let has_won = network.take(&name, token, foreign.ttl);
    let held = has_won.then(|| observer.entered_by_foreigner(foreign.key, token, until));
    if has_won {
        sleep(foreign.body).await;
    }
    drop(held);
    if !has_won || foreign.deletes {
        network.delete(&name, token);
    }
}

/// Task of a process. It is not polled while the process is paused.
pub(super) struct Process<F> {
    network: Arc<Network>,
    client: usize,
    task: Pin<Box<F>>,
    nap: Pin<Box<Sleep>>,
}

impl<F> Process<F> {
    pub(super) fn new(network: Arc<Network>, client: usize, task: F) -> Self {
        Self { network, client, task: Box::pin(task), nap: Box::pin(sleep(Duration::ZERO)) }
    }
}

impl<F: Future> Future for Process<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        loop {
            let left = self.network.paused_for(self.client);
            if left.is_zero() {
                return self.task.as_mut().poll(cx);
            }
            self.nap.as_mut().reset(tokio::time::Instant::now() + left);
            ready!(self.nap.as_mut().poll(cx));
        }
    }
}

/// Describes a call for a trace.
pub(super) fn words(client: usize, call: &Call, now: Instant) -> String {
    let Call { key: index, ttl, wait, mode, .. } = call;
    let wants = if mode.is_shared() { "wants to share" } else { "wants" };
    let wants = call.permits.map_or(wants.to_owned(), |permits| format!("wants one of {permits} permits of"));
    let wants = if call.also.is_some() { format!("{wants} both, and") } else { wants };
    format!("{} {wants} {} for {ttl:?}, waits {wait:?} ({} ms)", client_name(client), key(*index), now.millis())
}
