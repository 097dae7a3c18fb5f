//! Servers start, stop, freeze and restart as ordered.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use redlock_tests::{PATIENCE, RedisServer, eventually, redis_cli};
use tokio::process::Command;

fn accepts(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[tokio::test]
async fn killed_server_restarts_empty_on_its_port() {
    let server = RedisServer::start().await;
    let (port, pid) = (server.port(), server.pid());
    server.inspect().command::<()>(&["SET", "k", "v"]).await;
    server.kill();
    assert!(!server.is_running());
    assert!(!accepts(port));
    server.restart_empty().await;
    assert!(server.is_running());
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert!(server.inspect().keys().await.is_empty());
}

#[tokio::test]
async fn stopped_server_shuts_down_cleanly() {
    let server = RedisServer::start().await;
    server.freeze();
    server.stop().await;
    assert!(!server.is_running());
    assert!(server.log().contains("bye bye"), "{}", server.log());
}

#[tokio::test]
async fn dropped_server_leaves_no_process_and_no_directory() {
    let server = RedisServer::start().await;
    let (port, dir) = (server.port(), server.dir().to_owned());
    assert!(dir.exists());
    server.freeze();
    drop(server);
    assert!(!accepts(port));
    assert!(!dir.exists());
}

#[tokio::test]
async fn frozen_server_executes_its_backlog_after_thaw() {
    let server = RedisServer::start().await;
    let other = server.inspect_database(0);
    assert_eq!(other.get("k").await, None);
    server.freeze();
    server.freeze();
    assert!(server.is_running());
    let set = other.command::<()>(&["SET", "k", "v"]);
    tokio::pin!(set);
    let answered = tokio::time::timeout(Duration::from_millis(50), &mut set).await;
    assert!(answered.is_err());
    server.thaw();
    set.await;
    assert_eq!(server.inspect().get("k").await.as_deref(), Some("v"));
}

#[tokio::test]
async fn inspector_reads_every_type_and_finds_a_token() {
    let server = RedisServer::start().await;
    let inspect = server.inspect();
    inspect.command::<()>(&["SET", "string", "token-1", "PX", "60000"]).await;
    inspect.command::<()>(&["HSET", "hash", "owner", "token-1"]).await;
    inspect.command::<()>(&["ZADD", "zset", "0", "token-1", "0", "token-2"]).await;
    inspect.command::<()>(&["RPUSH", "other", "token-2"]).await;
    assert_eq!(inspect.keys().await, ["hash", "other", "string", "zset"]);
    assert_eq!(inspect.get("string").await.as_deref(), Some("token-1"));
    assert!((50_000..=60_000).contains(&inspect.pttl("string").await));
    assert_eq!((inspect.pttl("hash").await, inspect.pttl("none").await), (-1, -2));
    let found: Vec<String> = inspect.mentions("token-1").await.into_keys().collect();
    assert_eq!(found, ["hash", "string", "zset"]);
    assert!(server.inspect_database(1).keys().await.is_empty());
    inspect.flush_all().await;
    inspect.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn commands_are_counted_exactly() {
    let server = RedisServer::start().await;
    let inspect = server.inspect();
    let before = inspect.commands_processed().await;
    inspect.command::<()>(&["SET", "k", "1"]).await;
    inspect.command::<i64>(&["EVAL", "return redis.call('INCR', 'k')", "0"]).await;
    // SET, EVAL, INCR, and the INFO that read `before`.
    assert_eq!(inspect.commands_processed().await - before, 4);
    assert_eq!((inspect.calls("incr").await, inspect.calls("get").await), (1, 0));
}

#[tokio::test]
async fn client_list_and_kill_exclude_the_inspector() {
    let server = RedisServer::start().await;
    let other = server.inspect_database(0);
    other.command::<()>(&["CLIENT", "SETNAME", "other"]).await;
    let clients = server.inspect().clients().await;
    assert_eq!(clients.len(), 1, "{clients:?}");
    assert!(clients.concat().contains("name=other"), "{clients:?}");
    assert_eq!(server.inspect().kill_clients().await, 1);
    assert!(server.inspect().clients().await.is_empty());
    // The inspector that was cut off reconnects by itself.
    assert_eq!(other.get("k").await, None);
}

#[tokio::test]
async fn credentials_are_in_the_urls_and_required() {
    let builder = RedisServer::builder().password("se cret\"").user("alice", "w0nder", "~a:* +@all").unix_socket();
    let server = builder.start().await;
    assert_eq!(server.url(), format!("redis://alice:w0nder@127.0.0.1:{}/", server.port()));
    assert!(server.unix_url().ends_with("/redis.sock?user=alice&pass=w0nder"), "{}", server.unix_url());
    for url in [server.url(), server.unix_url()] {
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let who: String = redis::cmd("ACL").arg("WHOAMI").query_async(&mut connection).await.unwrap();
        assert_eq!(who, "alice");
    }
    let client = redis::Client::open(format!("redis://alice:wrong@127.0.0.1:{}/", server.port())).unwrap();
    let error = client.get_multiplexed_async_connection().await.unwrap_err();
    assert_eq!(error.kind(), redis::ErrorKind::AuthenticationFailed, "{error}");
    assert!(server.inspect().keys().await.is_empty());
    assert_eq!(redis_cli(&server, &["PING"]).await, "PONG");
}

#[tokio::test]
async fn sentinel_monitors_a_master_and_serves_no_keys() {
    let master = RedisServer::start().await;
    let sentinel = RedisServer::builder().sentinel_of(&master).start().await;
    let address: [String; 2] = sentinel.inspect().command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "master"]).await;
    assert_eq!(address, ["127.0.0.1".to_owned(), master.port().to_string()]);
    sentinel.inspect().try_command::<()>(&["GET", "k"]).await.unwrap_err();
    sentinel.restart().await;
    assert_eq!(sentinel.inspect().info("server", "redis_mode").await.as_deref(), Some("sentinel"));
}

#[tokio::test]
async fn old_server_rejects_hello() {
    let server = RedisServer::builder().without_command("HELLO").start().await;
    let error = server.inspect().try_command::<()>(&["HELLO", "3"]).await.unwrap_err();
    assert!(error.to_string().contains("unknown command"), "{error}");
}

#[tokio::test]
async fn replica_follows_its_master_and_refuses_writes() {
    let master = RedisServer::builder().password("secret").start().await;
    master.inspect().command::<()>(&["SET", "k", "v"]).await;
    let replica = RedisServer::builder().replica_of(&master).start().await;
    assert_eq!(replica.inspect().get("k").await.as_deref(), Some("v"));
    let error = replica.inspect().try_command::<()>(&["SET", "k", "w"]).await.unwrap_err();
    assert_eq!(error.code(), Some("READONLY"), "{error}");
}

#[tokio::test]
async fn tls_certificate_is_signed_by_the_test_authority() {
    let server = RedisServer::builder().tls().start().await;
    let port = server.tls_url().rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let mut cli = Command::new("redis-cli");
    cli.args(["--tls", "--cacert"]).arg(server.ca_file()).args(["-h", "127.0.0.1", "-p", &port, "PING"]);
    let output = cli.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "PONG", "{output:?}");
}

#[tokio::test]
#[should_panic(expected = "redis-server ended before it was ready")]
async fn invalid_setting_fails_with_the_server_log() {
    RedisServer::builder().config("no-such-directive", &["1"]).start().await;
}

#[tokio::test]
async fn redis_cli_reaches_the_server() {
    let server = RedisServer::builder().password("secret").start().await;
    assert_eq!(redis_cli(&server, &["SET", "k", "v", "NX", "PX", "5000"]).await, "OK");
    assert_eq!(redis_cli(&server, &["SET", "k", "v", "NX", "PX", "5000"]).await, "");
    assert_eq!(redis_cli(&server, &["GET", "k"]).await, "v");
}

#[test]
fn server_outlives_the_runtime_and_thread_that_started_it() {
    let start = || tokio::runtime::Runtime::new().unwrap().block_on(RedisServer::start());
    let server = std::thread::spawn(start).join().unwrap();
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(runtime.block_on(server.inspect().keys()).is_empty());
    }
}

/// Runs itself in a second process, which starts a server and dies without running any destructor.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn aborted_test_process_leaves_no_server() {
    const ROLE: &str = "REDLOCK_TESTS_DIE_HARD";
    if std::env::var_os(ROLE).is_some() {
        let server = RedisServer::start().await;
        println!("port={} dir={}", server.port(), server.dir().display());
        std::process::abort();
    }
    let mut second = Command::new(std::env::current_exe().unwrap());
    second.args(["--exact", "--nocapture", "server::aborted_test_process_leaves_no_server"]);
    let output = second.env(ROLE, "1").output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.lines().find_map(|line| line.split_once("port=")?.1.split_once(" dir="));
    let (port, dir) = line.map_or_else(|| panic!("{output:?}"), |(port, dir)| (port.parse().unwrap(), dir));
    std::fs::remove_dir_all(dir).unwrap();
    eventually(PATIENCE, "the orphan is gone", async || if accepts(port) { Err("it accepts") } else { Ok(()) }).await;
}
