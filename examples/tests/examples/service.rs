//! Starts and stops `order_service` for the tests.

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

/// One process of the service on a free port. Dropping it kills the process.
pub(crate) struct Service {
    process: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    /// Address of the listener for operators.
    pages: SocketAddr,
}

impl Service {
    pub(crate) async fn start(nodes: &str, payment: Duration) -> Self {
        Self::start_with(nodes, payment, None).await
    }

    /// Starts a process that requires this `token`, if it is set.
    pub(crate) async fn start_with(nodes: &str, payment: Duration, token: Option<&str>) -> Self {
        let mut command = command(env!("CARGO_BIN_EXE_order_service"), Some(nodes));
        command.args(["--port", "0", "--pages", "0"]).env("PAYMENT_MS", payment.as_millis().to_string());
        match token {
            Some(token) => command.env("API_TOKEN", token),
            None => command.env_remove("API_TOKEN"),
        };
        let mut process = command.spawn().unwrap();
        tokio::spawn(show(process.stderr.take().unwrap()));
        let mut stdout = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = async |what: &str| -> SocketAddr {
            let line = timeout(PATIENCE, stdout.next_line()).await.expect("it starts").unwrap();
            let line = line.expect("it says where it listens");
            line.strip_prefix(what).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
        };
        let clients = address("order_service: listening on http://").await;
        let pages = address("order_service: pages on http://").await;
        Self { process, stdout, address: clients, pages }
    }

    /// Returns a page for operators.
    pub(crate) async fn page(&self, path: &str) -> String {
        let reply = http::receive(http::send(self.pages, "GET", path, "").await).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body.as_str().expect("no JSON").to_owned()
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

    /// Creates an order of 19.99 and returns its ID.
    pub(crate) async fn create(&self) -> u64 {
        let reply = self.request("POST", "/orders", r#"{"amount": 1999}"#).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.body["id"].as_u64().unwrap()
    }

    /// Sends SIGTERM to the process.
    pub(crate) fn terminate(&self) {
        let id = self.process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        kill_process(id.expect("it runs"), Signal::TERM).unwrap();
    }

    /// Waits for the exit, and returns the exit status and the last line of output.
    pub(crate) async fn ended(mut self) -> (ExitStatus, Option<String>) {
        let status = timeout(PATIENCE, self.process.wait()).await.expect("it ends").unwrap();
        let mut last = None;
        while let Some(line) = self.stdout.next_line().await.unwrap() {
            last = Some(line);
        }
        (status, last)
    }
}

/// Copies the service's error output to the test's, which is printed if the test fails.
async fn show(stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        eprintln!("{line}");
    }
}
