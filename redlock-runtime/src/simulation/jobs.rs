//! Detached locks on their way from one program to another: a queue that may deliver twice.

use super::workload::Call;
use crate::DetachedLock;
use crate::time::wait_until::wait_until;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Detached lock, and the call that uses it.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) call: Call,
    pub(super) detached: DetachedLock,
}

/// Queue of detached locks.
#[derive(Default)]
pub(super) struct Jobs {
    waiting: Mutex<VecDeque<Job>>,
    arrived: Notify,
}

impl Jobs {
    /// Adds several copies of a job.
    pub(super) fn put(&self, job: Job, copies: usize) {
        self.waiting().extend(std::iter::repeat_n(job, copies));
        self.arrived.notify_waiters();
    }

    /// Waits for the next job.
    pub(super) async fn next(&self) -> Job {
        loop {
            wait_until(&self.arrived, || !self.waiting().is_empty()).await;
            if let Some(job) = self.waiting().pop_front() {
                return job;
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
