//! The thread of this library, for work that must not wait for the threads of the application.
//!
//! A task of the application that blocks its thread delays other tasks: tasks that were woken there and cannot be stolen by another thread,
//! and sometimes all sockets and timers of its runtime. If the connections and renewals of a manager were such tasks, one blocked thread
//! could cost every lock of the process. They therefore run on a separate thread with a separate runtime, on which no task may block.
//!
//! All managers of a process share this thread: the work for each takes microseconds, and more threads would only cost more. The thread
//! ends when the last of their nodes is gone.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Name of the thread in a debugger and in the list of threads.
const NAME: &str = "redlock";

/// The running thread, if there is one.
static RUNNING: Mutex<Weak<BackgroundThread>> = Mutex::new(Weak::new());

pub(crate) struct BackgroundThread {
    handle: Handle,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<Infallible>,
}

impl BackgroundThread {
    /// Returns the thread of this process, and starts it if it does not run.
    ///
    /// # Errors
    /// If the system provides no thread, or no descriptors for its runtime.
    pub(crate) fn shared() -> io::Result<Arc<Self>> {
        // No code that can panic runs under this mutex.
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.upgrade() {
            return Ok(running);
        }
        let started = Arc::new(Self::start()?);
        *running = Arc::downgrade(&started);
        Ok(started)
    }

    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, (end, ended)) = (runtime.handle().clone(), oneshot::channel());
        thread::Builder::new().name(NAME.into()).spawn(move || {
            // Nothing is ever sent: this returns when the other end is dropped.
            let _: Result<Infallible, _> = runtime.block_on(ended);
        })?;
        Ok(Self { handle, _end: end })
    }

    /// Returns the handle to spawn tasks, which must never block.
    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Polls `future` in the context of this thread's runtime, on any thread and executor. Its sockets and timers belong to this runtime:
    /// the caller may have none, or one without sockets.
    pub(crate) async fn within<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _context = self.handle.enter();
            future.as_mut().poll(cx)
        })
        .await
    }
}

impl fmt::Debug for BackgroundThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundThread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn background_thread_runs_tasks_until_the_last_handle_is_dropped() {
        let started = BackgroundThread::start().unwrap();
        let name = started.handle().spawn(async { thread::current().name().map(str::to_owned) });
        assert_eq!(name.await.unwrap().as_deref(), Some(NAME));
        let endless = started.handle().spawn(std::future::pending::<()>());
        drop(started);
        assert!(endless.await.unwrap_err().is_cancelled());
    }

    #[test]
    fn managers_share_the_background_thread() {
        let [one, other] = [(); 2].map(|()| BackgroundThread::shared().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
    }
}
