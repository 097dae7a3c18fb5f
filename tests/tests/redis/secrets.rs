//! Passwords never appear in a log line, an error or a `Debug` text: for every form of a URL, and every way to refuse a login.
//!
//! The test runs in a process of its own, because it records the events of all threads.

use crate::clusters::forged::answer_of_master;
use crate::recorded::Recorded;
use crate::refusals::WRONG_PASSWORD;
use crate::sentinels::answer_of_sentinel;
use crate::support::builder;
use redlock_runtime::{Credentials, LockError, LockManager, NodeConfig};
use redlock_tests::{FakeServer, MASTER, PATIENCE, RedisServer, eventually};
use std::env;
use std::error::Error;
use tokio::process::Command;
use tokio::task::JoinSet;

const RECORDING: &str = "REDLOCK_TESTS_RECORDING";
const DONE: &str = "no password in ";
/// Each password contains the first text, and is sometimes encoded like the second one.
const SECRETS: [&str; 2] = ["hunter2", "hunter%32"];

/// All schemes of URLs, with the text before and after the login.
const SCHEMES: [(&str, &str); 19] = [
    ("redis", "me:hunter2@127.0.0.1:1"),
    ("valkey", "me:hunter2@127.0.0.1:1/3"),
    ("rediss", ":hunter2@127.0.0.1:1"),
    ("valkeys", "me:hunter%32@127.0.0.1:1"),
    ("redis+cluster", "me:hunter2@127.0.0.1:1?seed=127.0.0.2:1"),
    ("valkey+cluster", ":hunter2@127.0.0.1:1,127.0.0.2:1"),
    ("rediss+cluster", "me:hunter2@127.0.0.1:1"),
    ("valkeys+cluster", "me:hunter%32@127.0.0.1:1"),
    ("redis+sentinel", "me:hunter2@127.0.0.1:1/orders?sentinel=127.0.0.2:1"),
    ("valkey+sentinel", "me:hunter2@127.0.0.1:1,127.0.0.2:1/orders/3"),
    ("rediss+sentinel", ":hunter2@127.0.0.1:1/orders"),
    ("valkeys+sentinel", "me:hunter%32@127.0.0.1:1#orders"),
    ("redis-cluster", "me:hunter2@127.0.0.1:1"),
    ("rediss-cluster", "me:hunter2@127.0.0.1:1"),
    ("redis-sentinel", "me:hunter2@127.0.0.1:1/orders"),
    ("rediss-sentinel", "me:hunter2@127.0.0.1:1/orders"),
    ("unix", "/nowhere?pass=hunter2"),
    ("redis+unix", "/nowhere?user=me&pass=hunter2&db=3"),
    ("valkey+unix", "/nowhere?user=me&pass=hunter%32"),
];

/// URLs with a fault, which are refused before any connection.
const FAULTY: [&str; 14] = [
    "hunter2",
    ":hunter2@127.0.0.1:1",
    "http://me:hunter2@127.0.0.1:1",
    "redis://me:hunter2@127.0.0.1:port",
    "redis://me:hunter2@127.0.0.1:1/name",
    "redis://me:hunter2@127.0.0.1:1#insecure",
    "redis://me:hunter2@hunter2@127.0.0.1:1",
    "redis://me:hunter2%@127.0.0.1:1",
    "redis://me:hunter 2 hunter2@127.0.0.1:1",
    "redis://127.0.0.1:1?password=hunter2",
    "redis://127.0.0.1:1?hunter2=1",
    "redis+sentinel://me:hunter2@127.0.0.1:1",
    "redis+cluster://me:hunter2@127.0.0.1:1/3",
    "unix://me:hunter2@/nowhere",
];

/// All texts about errors and values, which a program may log.
#[derive(Default)]
struct Texts(Vec<String>);

impl Texts {
    fn add_error(&mut self, error: &LockError) {
        self.0.push(format!("{error} {error:?} {error:#?}"));
        let mut source = error.source();
        while let Some(error) = source {
            self.0.push(format!("{error} {error:?}"));
            source = error.source();
        }
    }

    /// Uses a manager of this node, which gets no lock. Returns the text of the error.
    async fn add_refused(&mut self, node: NodeConfig) -> (LockManager, String) {
        let builder = builder([node.clone()]);
        self.0.push(format!("{node:?} {node:#?} {builder:?} {builder:#?}"));
        let manager = builder.build().unwrap();
        let error = manager.try_acquire("order:7").await.unwrap_err();
        self.add_error(&error);
        self.0.push(format!("{manager:?} {manager:#?} {:?}", manager.stats()));
        (manager, error.to_string())
    }

    /// Uses managers of these nodes at the same time.
    async fn add_all_refused(&mut self, nodes: impl IntoIterator<Item = NodeConfig>) {
        let mut calls = JoinSet::new();
        for node in nodes {
            calls.spawn(async move {
                let mut texts = Self::default();
                texts.add_refused(node).await;
                texts.0
            });
        }
        self.0.extend(calls.join_all().await.into_iter().flatten());
    }

    /// Adds the reports of all managers, which take a while if nodes do not answer.
    async fn add_reports(&mut self, managers: Vec<LockManager>) {
        let mut calls = JoinSet::new();
        for manager in managers {
            calls.spawn(async move {
                let (check, seen) = (manager.check().await, manager.inspect("order:7").await);
                format!("{check} {check:?} {seen} {seen:?}")
            });
        }
        self.0.extend(calls.join_all().await);
    }

    fn assert_without_secrets(&self) {
        for text in &self.0 {
            assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "{text}");
        }
    }
}

/// Servers that refuse logins in different ways.
struct Servers {
    with_password: RedisServer,
    without_password: RedisServer,
    without_hello: RedisServer,
    without_auth: RedisServer,
    with_tls: RedisServer,
    refusing_sentinel: FakeServer,
    sentinel: FakeServer,
}

impl Servers {
    async fn start() -> Self {
        let with_password = RedisServer::builder().password("hunter2-right").unix_socket();
        let with_password = with_password.user("alice", "hunter2-alice", "~* &* +@all").start().await;
        let without_auth = RedisServer::builder().without_command("HELLO").without_command("AUTH");
        let master = with_password.port();
        let sentinel = FakeServer::start(move |command| {
            answer_of_sentinel(command, master, &[]).unwrap_or_else(|| answer_of_master(command))
        });
        Self {
            with_password,
            without_password: RedisServer::start().await,
            without_hello: RedisServer::builder().password("hunter2-right").without_command("HELLO").start().await,
            without_auth: without_auth.start().await,
            with_tls: RedisServer::builder().password("hunter2-right").tls().start().await,
            refusing_sentinel: FakeServer::start(|_| WRONG_PASSWORD.to_owned()).await,
            sentinel: sentinel.await,
        }
    }

    /// Returns nodes with passwords, each with a part of the error of a call.
    fn refused(&self) -> Vec<(NodeConfig, &'static str)> {
        let Self { with_password, without_password, without_hello, without_auth, with_tls, .. } = self;
        let at = |scheme: &str, login: &str, port: u16| format!("{scheme}://{login}127.0.0.1:{port}");
        let node = |scheme: &str, login: &str, port: u16| NodeConfig::new(at(scheme, login, port));
        let of_sentinel =
            |login: &str, port: u16| NodeConfig::new(format!("{}/{MASTER}", at("redis+sentinel", login, port)));
        let (locked, tls) = (with_password.port(), with_tls.tls_port().unwrap());
        let socket = with_password.unix_url();
        let socket = socket.split('?').next().unwrap();
        let file = with_password.dir().join("password");
        std::fs::write(&file, "hunter2-file\n").unwrap();
        let from_file = format!("sentinel_user=watcher&sentinel_password_file={}", file.display());
        let refusing = self.refusing_sentinel.port();
        vec![
            (node("redis", ":hunter2-wrong@", locked), "WRONGPASS"),
            (node("redis", "bob:hunter%32-bob@", locked), "WRONGPASS"),
            (node("redis", "", locked), "NOAUTH"),
            (node("redis", "bob:hunter2-bob@", without_password.port()), "WRONGPASS"),
            (node("redis", ":hunter2-wrong@", without_hello.port()), "WRONGPASS"),
            (node("redis", ":hunter2-wrong@", without_auth.port()), "WRONGPASS"),
            (node("redis", "bob:hunter2-wrong@", without_auth.port()), "WRONGPASS"),
            (node("rediss", ":hunter2-right@", tls), "certificate"),
            (node("rediss", ":hunter2-right@", locked), "redis://"),
            (node("redis", ":hunter2-right@", tls), "rediss://"),
            (NodeConfig::new(format!("{socket}?user=bob&pass=hunter2-bob")), "WRONGPASS"),
            (node("redis+cluster", ":hunter2-wrong@", locked), "WRONGPASS"),
            (node("redis+cluster", "alice:hunter2-alice@", locked), "not a member of a cluster"),
            (of_sentinel("bob:hunter2-bob@", self.sentinel.port()), "WRONGPASS"),
            (
                of_sentinel("bob:hunter2-bob@", refusing)
                    .sentinel_credentials(Credentials::new("watcher", "hunter2-watcher")),
                "WRONGPASS",
            ),
            (
                NodeConfig::new(format!("{}/{MASTER}?{from_file}", at("redis+sentinel", ":hunter2@", refusing))),
                "WRONGPASS",
            ),
            (node("redis", "bob@", locked).password_file(&file), "WRONGPASS"),
            (
                node("redis", "", locked).credentials(|| async { Ok(Credentials::new("bob", "hunter2-asked")) }),
                "WRONGPASS",
            ),
        ]
    }
}

/// Waits until an event after the first `before` ones contains `expected`.
async fn wait_until_logged(log: &Recorded, before: usize, expected: &str) {
    eventually(PATIENCE, "it is logged", async || {
        let lines = log.lines().split_off(before);
        if lines.iter().any(|line| line.contains(expected)) { Ok(()) } else { Err((expected.to_owned(), lines)) }
    })
    .await;
}

/// Refuses every kind of login, and looks for passwords in everything that a program can see.
async fn refuse_all() -> usize {
    let log = Recorded::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let (servers, mut texts, mut managers) = (Servers::start().await, Texts::default(), Vec::new());
    for (node, expected) in servers.refused() {
        let before = log.lines().len();
        let (manager, error) = texts.add_refused(node.clone()).await;
        assert!(error.contains(expected), "{node:?}: {expected} is missing in: {error}");
        wait_until_logged(&log, before, expected).await;
        managers.push(manager);
    }
    texts.add_reports(managers).await;
    texts.add_all_refused(SCHEMES.map(|(scheme, rest)| NodeConfig::new(format!("{scheme}://{rest}")))).await;
    for url in FAULTY {
        let builder = builder([url]);
        texts.0.push(format!("{builder:?} {:?}", NodeConfig::new(url)));
        texts.add_error(&builder.build().map(drop).expect_err(url));
    }

    // The password changes while a manager is connected.
    let server = &servers.with_password;
    let manager = builder([server.url()]).build().unwrap();
    manager.acquire("order:7").await.unwrap().release().await.unwrap();
    texts.add_reports(vec![manager.clone()]).await;
    let before = log.lines().len();
    server.inspect().command::<()>(&["ACL", "SETUSER", "alice", "resetpass", ">hunter2-new"]).await;
    server.inspect().kill_clients().await;
    wait_until_logged(&log, before, "WRONGPASS").await;
    texts.add_reports(vec![manager]).await;

    texts.0.extend(log.lines());
    texts.assert_without_secrets();
    log.lines().len()
}

#[tokio::test]
async fn log_lines_errors_and_debug_texts_contain_no_password() {
    if env::var(RECORDING).is_ok() {
        println!("{DONE}{} lines", refuse_all().await);
        return;
    }
    let mut second = Command::new(env::current_exe().unwrap());
    let name = "secrets::log_lines_errors_and_debug_texts_contain_no_password";
    second.args(["--exact", "--nocapture", name]).env(RECORDING, "1").kill_on_drop(true);
    let output = second.output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains(DONE), "{output:?}");
}
