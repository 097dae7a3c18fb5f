//! Failed connections: the message names the step and the address that failed, and the remedy.

use crate::support::{builder, causes};
use redlock_runtime::{LockError, LockRequest, NodeConfig, NodeError};
use redlock_tests::{Cluster, FakeServer, PATIENCE, RedisServer, eventually};
use std::cell::RefCell;
use tokio::net::TcpSocket;

const KEY: &str = "order:7";

/// Reserved port on loopback that refuses connections.
pub(crate) struct RefusingPort(TcpSocket);

impl RefusingPort {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Answers as a server of this version does.
fn answer_of_version(version: &str, command: &str) -> String {
    match command.split_once(' ').unwrap_or((command, "")) {
        ("HELLO", _) => "-ERR unknown command 'HELLO'\r\n".to_owned(),
        ("SCRIPT", _) => bulk(&"0".repeat(40)),
        ("INFO", _) => bulk(&format!("redis_version:{version}\r\nrun_id:1\r\nuptime_in_seconds:9\r\nrole:master\r\n")),
        ("CONFIG" | "TIME", _) => "-NOPERM no\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}

/// Answers as a proxy does that allows a few commands, and no scripts.
fn few_commands(command: &str) -> String {
    match command.split(' ').next().unwrap_or_default() {
        "GET" => "$-1\r\n".to_owned(),
        "SET" | "DEL" | "PING" | "AUTH" => "+OK\r\n".to_owned(),
        other => format!("-ERR unsupported command '{other}'\r\n"),
    }
}

/// Returns the reason why a manager of this one node cannot acquire a lock after its first connection has failed.
pub(crate) async fn reason(node: impl Into<NodeConfig>) -> NodeError {
    let manager = builder([node]).build().unwrap();
    eventually(PATIENCE, "the reason is known", async || {
        let error = manager.try_acquire(KEY).await.unwrap_err();
        let [(_, cause)] = causes(&error)[..] else { panic!("{error:?}") };
        if cause.to_string().contains("first connection is being made") {
            Err(error.to_string())
        } else {
            Ok(cause.clone())
        }
    })
    .await
}

#[tokio::test]
async fn connect_error_shows_all_addresses_of_a_name_and_brackets_ipv6() {
    let refusing = RefusingPort::new();
    let port = refusing.port();
    let named = reason(format!("redis://localhost:{port}")).await.to_string();
    assert!(named.starts_with(&format!("not connected: TCP connect to localhost:{port} (")), "{named}");
    assert!(named.contains("127.0.0.1") && named.contains("Connection refused"), "{named}");
    let manager = builder([format!("redis://[::1]:{port}")]).build().unwrap();
    let error = manager.ready().await.unwrap_err();
    let expected = format!("[::1]:{port}: not connected: TCP connect to [::1]:{port} failed: ");
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test]
async fn server_that_is_too_old_is_never_healthy() {
    let old = FakeServer::start(|command| answer_of_version("6.0.14", command)).await;
    let manager = builder([old.url()]).build().unwrap();
    let error = manager.ready().await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }) && error.to_string().contains("needs Redis 6.2"), "{error}");
    let report = manager.check().await;
    assert!(
        report.warnings().iter().any(|warning| warning.contains("is Redis 6.0.14 and needs Redis 6.2")),
        "{report}"
    );
    let error = manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error}");
    assert!(!old.received().iter().any(|command| command.starts_with(&format!("SET {KEY}"))), "{:?}", old.received());
}

#[tokio::test]
async fn locks_work_without_optional_commands() {
    for hidden in ["HELLO", "CLIENT", "INFO", "CONFIG"] {
        let server = RedisServer::builder().without_command(hidden).start().await;
        let manager = builder([server.url()]).build().unwrap();
        let guard = manager.acquire(KEY).await.unwrap_or_else(|error| panic!("{hidden}: {error}"));
        guard.release().await.unwrap();
    }
}

/// A cluster behind NAT: the seed is reachable, and the addresses that the members announce are not.
#[tokio::test]
async fn connect_error_names_the_announced_address_and_not_the_seed() {
    let announced = [(); 3].map(|()| RefusingPort::new());
    let ports = RefCell::new(announced.iter().map(RefusingPort::port));
    let cluster = Cluster::start_with(3, 0, |builder| {
        let port = ports.borrow_mut().next().unwrap();
        builder.config("cluster-announce-port", &[&port.to_string()])
    })
    .await;
    let seed = cluster.member(0).port();
    let manager = builder([format!("redis+cluster://127.0.0.1:{seed}")]).build().unwrap();
    let expected = announced.iter().map(|announced| {
        format!(
            "127.0.0.1:{seed}: not connected: TCP connect to 127.0.0.1:{} failed: Connection refused (os error 111): the cluster announces \
             this address; if clients reach the server by another one, write that with `NodeConfig::map_address` or `?map=`, or set \
             cluster-announce-ip there",
            announced.port()
        )
    });
    let expected: Vec<_> = expected.collect();
    eventually(PATIENCE, "the address is blamed", async || {
        let error = manager.try_acquire(KEY).await.unwrap_err().to_string();
        if expected.iter().any(|expected| error.ends_with(expected)) { Ok(()) } else { Err(error) }
    })
    .await;
    let warnings = manager.check().await.warnings();
    assert!(warnings.iter().any(|warning| warning.contains("the cluster announces this address")), "{warnings:?}");
}

/// Tests that need a server with TLS.
mod tls {
    use super::*;

    /// Other tests, whose servers are real, have the rest of the messages: a slow or unknown name
    /// (`progress::failed_and_slow_name_lookups_are_reported`), an announced address (above), and the commands `HELLO`, `CLIENT` and
    /// `SCRIPT` that a server lacks (above, and `unstored_scripts`).
    #[expect(clippy::too_many_lines, reason = "a table of messages")]
    #[tokio::test]
    async fn connect_error_names_step_address_and_remedy() {
        let refusing = RefusingPort::new();
        let [http, ssh] = [
            FakeServer::start_non_redis("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await,
            FakeServer::start_non_redis("SSH-2.0-OpenSSH_9.2p1\r\n").await,
        ];
        let (closing, silent) = (FakeServer::start_closing().await, FakeServer::start_silent().await);
        let loading = FakeServer::start(|_| "-LOADING Redis is loading the dataset in memory\r\n".to_owned()).await;
        let full = FakeServer::start(|_| "-ERR max number of clients reached\r\n".to_owned()).await;
        let protected = FakeServer::start(|_| "-NOAUTH Authentication required.\r\n".to_owned()).await;
        let old = FakeServer::start(|command| answer_of_version("6.0.14", command)).await;
        // Proxies: the first allows few commands and no scripts, the second hangs up at an unknown command, the third has no server.
        let allowing = FakeServer::start(few_commands).await;
        let hanging_up = FakeServer::start_non_redis("").await;
        let serverless = FakeServer::start(|_| "-no upstream host\r\n".to_owned()).await;
        let encrypted = RedisServer::builder().tls().start().await;
        let plain = RedisServer::start().await;
        let replica = RedisServer::builder().replica_of(&plain).start().await;
        let [full, protected, allowing, hanging_up, serverless] =
            [full.port(), protected.port(), allowing.port(), hanging_up.port(), serverless.port()];
        let [refusing, http, ssh, closing, silent, loading, old, tls, plain, replica] = [
            refusing.port(),
            http.port(),
            ssh.port(),
            closing.port(),
            silent.port(),
            loading.port(),
            old.port(),
            encrypted.tls_port().unwrap(),
            plain.port(),
            replica.port(),
        ];
        let table = [
        (
            format!("redis://127.0.0.1:{refusing}"),
            format!(
                "not connected: TCP connect to 127.0.0.1:{refusing} failed: Connection refused (os error 111): check \
                 that a Redis server is running and listens there"
            ),
        ),
        (
            // The kernel refuses to connect to a multicast address.
            "redis://224.0.0.1:6379".to_owned(),
            "not connected: TCP connect to 224.0.0.1:6379 failed: Network is unreachable (os error 101): check the address, and the \
             network and firewalls on the way"
                .to_owned(),
        ),
        (
            "redis+unix:///nowhere/redis.sock".to_owned(),
            "not connected: connect to the socket /nowhere/redis.sock failed: No such file or directory (os error 2): check the path, its \
             permissions, and that the server runs"
                .to_owned(),
        ),
        (
            format!("redis://127.0.0.1:{http}"),
            format!("the server at 127.0.0.1:{http} speaks HTTP and not the Redis protocol: check host and port in the URL"),
        ),
        (
            format!("redis://127.0.0.1:{ssh}"),
            format!(
                "the server at 127.0.0.1:{ssh} does not speak the Redis protocol, but begins with \"SSH-2.0-OpenSSH_9.2p1\\r\\n\": check \
                 host and port in the URL"
            ),
        ),
        (
            format!("redis://127.0.0.1:{closing}"),
            format!(
                "not connected: the server at 127.0.0.1:{closing} closed the connection during the login, without an \
                 answer: check what listens there; a proxy or load balancer without a Redis server behind it does this"
            ),
        ),
        (
            format!("redis://127.0.0.1:{silent}?connect_timeout_ms=300"),
            format!(
                "not connected: login (HELLO) at 127.0.0.1:{silent} has not ended within 300ms: the server accepts \
                 connections and does not answer: check whether it hangs, is loading its data from disk, or is not a \
                 Redis server"
            ),
        ),
        (
            format!("rediss://127.0.0.1:{silent}?connect_timeout_ms=300"),
            format!(
                "not connected: TLS handshake with 127.0.0.1:{silent} has not ended within 300ms: if the server does not speak TLS on \
                 this port, write redis://"
            ),
        ),
        (
            format!("redis://127.0.0.1:{tls}"),
            format!("no TLS: the server at 127.0.0.1:{tls} requires TLS: write rediss:// instead of redis://"),
        ),
        (
            // The server waits for the end of a command.
            format!("rediss://127.0.0.1:{plain}?connect_timeout_ms=300"),
            format!(
                "not connected: TLS handshake with 127.0.0.1:{plain} has not ended within 300ms: if the server does not speak TLS on \
                 this port, write redis://"
            ),
        ),
        (
            format!("rediss://127.0.0.1:{http}"),
            "no TLS: the server does not speak TLS on this port: check host and port, and write redis:// if it is Redis without TLS"
                .to_owned(),
        ),
        (
            format!("redis://127.0.0.1:{loading}"),
            format!(
                "answered LOADING Redis is loading the dataset in memory, so first commands to 127.0.0.1:{loading} failed: wait \
                 until it has loaded its data"
            ),
        ),
        (
            format!("redis://127.0.0.1:{full}"),
            format!(
                "answered ERR max number of clients reached, so first commands to 127.0.0.1:{full} failed: raise its maxclients, or \
                 close unused connections"
            ),
        ),
        (
            format!("redis://127.0.0.1:{protected}"),
            format!(
                "answered NOAUTH Authentication required, so first commands to 127.0.0.1:{protected} failed: write user and password \
                 into the URL of the node"
            ),
        ),
        (
            format!("redis://127.0.0.1:{allowing}"),
            format!(
                "answered ERR unsupported command 'SCRIPT', so first commands to 127.0.0.1:{allowing} failed: use a server or proxy \
                 that allows this command"
            ),
        ),
        (
            format!("redis://127.0.0.1:{hanging_up}"),
            format!(
                "not connected: the server at 127.0.0.1:{hanging_up} closed the connection during the login, without an answer: \
                 check what listens there; a proxy or load balancer without a Redis server behind it does this"
            ),
        ),
        (
            format!("redis://127.0.0.1:{serverless}"),
            format!(
                "answered no upstream host, so first commands to 127.0.0.1:{serverless} failed: check the Redis servers behind the \
                 proxy"
            ),
        ),
        (
            format!("redis://127.0.0.1:{old}"),
            "is Redis 6.0.14 and needs Redis 6.2 or newer: shared locks, permits, fencing and paths fail on it, so update it or use \
             another server"
                .to_owned(),
        ),
        (
            format!("redis://localhost:{replica}"),
            format!(
                "its name leads to 127.0.0.1:{replica}, which is a replica and takes no locks: write a name that leads to the master \
                 alone, such as that of the primary endpoint"
            ),
        ),
        (format!("redis://127.0.0.1:{replica}"), "is a replica, but each node must be a separate master".to_owned()),
    ];
        for (url, expected) in table {
            assert_eq!(reason(&url).await.to_string(), expected, "{url}");
        }
    }

    /// A temporary outage is not reported as a mistake, and a mistake is not reported as an outage.
    #[tokio::test]
    async fn configuration_errors_are_not_transient() {
        let old = FakeServer::start(|command| answer_of_version("6.0.14", command)).await;
        let http = FakeServer::start_non_redis("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let tls = RedisServer::builder().tls().start().await;
        let (closing, refusing) = (FakeServer::start_closing().await, RefusingPort::new());
        let loading = FakeServer::start(|_| "-LOADING Redis is loading the dataset in memory\r\n".to_owned()).await;
        let serverless = FakeServer::start(|_| "-no upstream host\r\n".to_owned()).await;
        let allowing = FakeServer::start(few_commands).await;
        let table = [
            (old.port(), false),
            (http.port(), false),
            (tls.tls_port().unwrap(), false),
            (closing.port(), true),
            (refusing.port(), true),
            (loading.port(), true),
            (serverless.port(), true),
            (allowing.port(), false),
        ];
        for (port, passes) in table {
            let reason = reason(format!("redis://127.0.0.1:{port}")).await;
            assert_eq!(reason.is_transient(), passes, "{reason}");
        }
    }
}
