//! Tests of the change of a connection from its host to the library's thread and back.

use crate::lock::owner_token::ManagerId;
use crate::node::Environment;
use crate::node::redis::connect::connect;
use crate::node::redis::connections::Connections;
use crate::node::redis::endpoint::Endpoint;
use crate::node::redis::live_connection::LiveConnection;
use crate::node::redis::migratable_socket::Driver;
use crate::node::redis::runtime_failover::drive_shared;
use crate::node::redis::shared_io_task::SharedIoTask;
use crate::time::clock::Clock;
use redlock_tests::{PATIENCE, RedisServer, eventually_eq};
use std::sync::{Arc, mpsc};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// A connection that a separate runtime drives beside the present one.
struct Scene {
    server: RedisServer,
    host: Option<Runtime>,
    live: Arc<LiveConnection>,
    io_task: Arc<SharedIoTask>,
}

impl Scene {
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let environment = Environment::for_single_node(ManagerId::random(), Clock::Boot);
        let connections = Arc::new(Connections::new("node", environment));
        let endpoint = Endpoint::parse(&server.url(), 1).unwrap();
        let (live, io_task) = connect(&endpoint, &connections).await.unwrap();
        let host = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let io_task = Arc::new(SharedIoTask::new(io_task, connections));
        let (driven, handle) = (Arc::clone(&io_task), host.handle().clone());
        tokio::spawn(async move { drive_shared(&driven, Some(&handle)).await });
        Self { server, host: Some(host), live, io_task }
    }

    async fn ping(&self) {
        timeout(PATIENCE, self.live.probe(&["PING"])).await.unwrap().unwrap();
    }

    async fn assert_driven_by(&self, side: Driver) {
        eventually_eq(PATIENCE, "it is driven", side, async || self.io_task.side()).await;
        self.ping().await;
    }

    /// Blocks the only thread of the host until the returned sender is dropped.
    fn block(&self) -> mpsc::Sender<()> {
        let (unblock, blocked) = mpsc::channel();
        self.host.as_ref().unwrap().spawn(async move { blocked.recv() });
        unblock
    }

    fn end_host(&mut self) {
        self.host.take().unwrap().shutdown_background();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.host.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[tokio::test]
async fn blocked_host_runtime_loses_the_connection_until_it_recovers() {
    let scene = Scene::start().await;
    scene.assert_driven_by(Driver::Host).await;
    let block = scene.block();
    // An idle connection is not checked.
    scene.ping().await;
    scene.assert_driven_by(Driver::Background).await;
    drop(block);
    scene.assert_driven_by(Driver::Host).await;
    assert_eq!(scene.server.inspect().info("stats", "total_connections_received").await.as_deref(), Some("2"));
}

#[tokio::test]
async fn ended_host_runtime_loses_the_connection_permanently() {
    let mut scene = Scene::start().await;
    scene.assert_driven_by(Driver::Host).await;
    scene.end_host();
    scene.assert_driven_by(Driver::Background).await;
    assert!(scene.io_task.is_host_gone());
}

#[tokio::test]
async fn briefly_busy_host_runtime_is_probed_and_keeps_the_connection() {
    // A busy machine may delay the host like a blocked one, but hardly at each attempt.
    const MOST_TRIES: usize = 4;
    let scene = Scene::start().await;
    for tries in 1.. {
        scene.assert_driven_by(Driver::Host).await;
        // A late reply does not show a blocked host.
        scene.server.freeze();
        let answer = scene.live.probe(&["PING"]);
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let side = scene.io_task.side();
        scene.server.thaw();
        timeout(PATIENCE, answer).await.unwrap().unwrap();
        if side == Driver::Host {
            return;
        }
        assert!(tries < MOST_TRIES, "{side:?}");
    }
}
