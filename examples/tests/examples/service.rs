//! A running `order_service`.

use crate::http::{self, Reply};
use crate::program::command;
use redlock_tests::PATIENCE;
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::timeout;

/// One process of the service on a free port; killed when dropped.
pub(crate) struct Service {
    process: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Service {
    pub(crate) async fn start(nodes: &str, payment: Duration) -> Self {
        let mut command = command(env!("CARGO_BIN_EXE_order_service"), Some(nodes));
        command.args(["--port", "0"]).env("PAYMENT_MS", payment.as_millis().to_string());
        let mut process = command.spawn().unwrap();
        tokio::spawn(show(process.stderr.take().unwrap()));
        let mut stdout = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = timeout(PATIENCE, stdout.next_line()).await.expect("it starts").unwrap();
        let first = first.expect("it says where it listens");
        let address = first.strip_prefix("order_service: listening on http://");
        Self { process, stdout, address: address.unwrap_or_else(|| panic!("{first:?}")).parse().unwrap() }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        http::send(self.address, method, path, body).await
    }

    pub(crate) async fn request(&self, method: &str, path: &str, body: &str) -> Reply {
        http::receive(self.send(method, path, body).await).await
    }

    pub(crate) async fn capture(&self, order: u64) -> Reply {
        self.request("POST", &format!("/orders/{order}/capture"), "").await
    }

    /// Creates an order over 19.99 and returns its number.
    pub(crate) async fn create(&self) -> u64 {
        let reply = self.request("POST", "/orders", r#"{"amount": 1999}"#).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.body["id"].as_u64().unwrap()
    }

    /// Asks the process to end (SIGTERM).
    pub(crate) fn terminate(&self) {
        let id = self.process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        kill_process(id.expect("it runs"), Signal::TERM).unwrap();
    }

    /// Waits for the end; returns the last line of output.
    pub(crate) async fn ended(mut self) -> (ExitStatus, Option<String>) {
        let status = timeout(PATIENCE, self.process.wait()).await.expect("it ends").unwrap();
        let mut last = None;
        while let Some(line) = self.stdout.next_line().await.unwrap() {
            last = Some(line);
        }
        (status, last)
    }
}

/// Passes the service's complaints on to libtest, which shows them when the test fails.
async fn show(stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        eprintln!("{line}");
    }
}
