//! A writer between readers that leaves the queue, in any way, does not block the readers behind it.

use super::{KEY, process, reader, second_process, writer};
use crate::support::{SIZES, acquired_everywhere, wait_until_queued};
use crate::waiters::{Waiting, assert_all_gone, cancelled, managers, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;
use tokio::process::Child;

/// A reader with its share, a writer that will leave, and readers behind it.
struct Scene {
    nodes: Nodes,
    holder: LockManager,
    leaver: LockManager,
    behind: LockManager,
    held: LockGuard,
}

impl Scene {
    async fn begin(size: usize) -> Self {
        let nodes = Nodes::start(size).await;
        let [holder, leaver, behind] = managers(&nodes, 3).await.try_into().unwrap();
        let held = acquired_everywhere(&holder, &nodes, LockRequest::shared(KEY)).await;
        Self { nodes, holder, leaver, behind, held }
    }

    /// Starts two readers behind the waiting writer.
    async fn readers_behind(&self) -> [Waiting; 2] {
        wait_until_queued(&self.nodes, KEY, 1).await;
        let first = waiting(&self.behind, reader());
        wait_until_queued(&self.nodes, KEY, 2).await;
        let second = waiting(&self.behind, reader());
        wait_until_queued(&self.nodes, KEY, 3).await;
        [first, second]
    }

    /// Checks that the readers behind the writer are admitted while the first reader still has its share.
    async fn end(self, readers: [Waiting; 2]) {
        let [one, other] = readers;
        let guards = [obtained(one).await, obtained(other).await];
        assert!(self.held.is_held() && guards.iter().all(LockGuard::is_held));
        drop((guards, self.held));
        for manager in [&self.holder, &self.leaver, &self.behind] {
            assert_all_gone(manager, &self.nodes).await;
        }
    }
}

#[tokio::test]
async fn timed_out_writer_frees_the_readers_behind_it() {
    for size in SIZES {
        let scene = Scene::begin(size).await;
        let call = waiting(&scene.leaver, writer().wait(Duration::from_secs(2)));
        let readers = scene.readers_behind().await;
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
        scene.end(readers).await;
    }
}

#[tokio::test]
async fn cancelled_writer_frees_the_readers_behind_it() {
    for size in SIZES {
        let scene = Scene::begin(size).await;
        let call = waiting(&scene.leaver, writer());
        let readers = scene.readers_behind().await;
        cancelled(call).await;
        scene.end(readers).await;
    }
}

#[tokio::test]
async fn shutdown_of_a_waiting_writer_frees_the_readers_behind_it() {
    for size in SIZES {
        let scene = Scene::begin(size).await;
        let call = waiting(&scene.leaver, writer());
        let readers = scene.readers_behind().await;
        assert!(scene.leaver.shutdown().await);
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::Closed), "{error:?}");
        scene.end(readers).await;
    }
}

#[tokio::test]
async fn killed_waiting_writer_frees_the_readers_behind_it() {
    second_process().await;
    for size in [1, 3] {
        let scene = Scene::begin(size).await;
        let name = "shared::leaving::killed_waiting_writer_frees_the_readers_behind_it";
        let mut process = process(name, "writer", &scene.nodes);
        let readers = scene.readers_behind().await;
        process.kill().await.unwrap();
        scene.end(readers).await;
    }
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_raw(process.id().unwrap().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn suspended_waiting_writer_is_skipped_and_served_after_the_resume() {
    second_process().await;
    for size in [1, 3] {
        let scene = Scene::begin(size).await;
        let name = "shared::leaving::suspended_waiting_writer_is_skipped_and_served_after_the_resume";
        let process = process(name, "writer", &scene.nodes);
        let readers = scene.readers_behind().await;
        // The server still regards the process as a subscriber: its connection is open, and the messages to it are not read.
        signal(&process, Signal::STOP);
        let [one, other] = readers;
        let guards = [obtained(one).await, obtained(other).await];
        assert!(scene.held.is_held() && guards.iter().all(LockGuard::is_held));
        signal(&process, Signal::CONT);
        wait_until_queued(&scene.nodes, KEY, 1).await;
        drop((guards, scene.held));
        // The writer now holds the lock exclusively and keeps it: no reader enters.
        for node in scene.nodes.iter() {
            eventually_eq(PATIENCE, "the writer has it", "string".to_owned(), async || {
                node.inspect().command::<String>(&["TYPE", KEY]).await
            })
            .await;
        }
        let error = scene.behind.try_acquire(LockRequest::shared(KEY)).await.unwrap_err();
        assert!(error.is_contended(), "{error:?}");
        drop(process);
        obtained(waiting(&scene.behind, reader())).await.release().await.unwrap();
        assert_all_gone(&scene.behind, &scene.nodes).await;
    }
}

#[tokio::test]
async fn killed_waiting_reader_does_not_block_later_waiters() {
    second_process().await;
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [holder, behind] = managers(&nodes, 2).await.try_into().unwrap();
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let name = "shared::leaving::killed_waiting_reader_does_not_block_later_waiters";
        let mut process = process(name, "reader", &nodes);
        wait_until_queued(&nodes, KEY, 1).await;
        let call = waiting(&behind, writer());
        wait_until_queued(&nodes, KEY, 2).await;
        process.kill().await.unwrap();
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}
