//! Changing credentials, and misleading addresses.

use crate::support::{builder, causes};
use redlock_runtime::{Credentials, LockError, LockRequest, NodeConfig, NodeError};
use redlock_tests::{PATIENCE, RedisServer, eventually, eventually_eq};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "order:7";
const USER: &str = "orders";

/// Replaces the only password of the user, and ends the connections that used the previous one.
async fn rotate(server: &RedisServer, password: &str) {
    let grant = ["ACL", "SETUSER", USER, "on", "resetpass", &format!(">{password}"), "~*", "&*", "+@all"];
    server.inspect().command::<()>(&grant).await;
    server.inspect().command::<usize>(&["CLIENT", "KILL", "USER", USER]).await;
}

#[tokio::test]
async fn short_lived_credentials_are_requested_for_each_connection() {
    let server = RedisServer::start().await;
    let token = Arc::new(Mutex::new("t0".to_owned()));
    rotate(&server, "t0").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let node = {
        let (token, asked) = (Arc::clone(&token), Arc::clone(&asked));
        NodeConfig::new(server.url()).credentials(move || {
            asked.fetch_add(1, Ordering::SeqCst);
            let token = token.lock().unwrap().clone();
            async move { Ok(Credentials::new(USER, token)) }
        })
    };
    let manager = builder([node]).build().unwrap();
    let held = manager.acquire(LockRequest::new(KEY).ttl(Duration::from_secs(20))).await.unwrap();
    for turn in 1..=5 {
        let next = format!("t{turn}");
        token.lock().unwrap().clone_from(&next);
        let before = asked.load(Ordering::SeqCst);
        rotate(&server, &next).await;
        eventually(PATIENCE, "it is back", async || manager.try_acquire("other").await.map(drop)).await;
        assert!(asked.load(Ordering::SeqCst) > before);
        assert!(held.is_held());
    }
    held.extend().await.unwrap();
    held.release().await.unwrap();
    eventually_eq(PATIENCE, "nothing is left", 0, async || server.inspect().keys().await.len()).await;
}

#[tokio::test]
async fn password_file_is_read_for_each_connection() {
    let server = RedisServer::start().await;
    rotate(&server, "first secret").await;
    let file = server.dir().join("password");
    let url = server.url().replace("redis://", &format!("redis://{USER}@"));
    let manager = builder([format!("{url}?password_file={}", file.display())]).build().unwrap();
    let error = manager.try_acquire(KEY).await.unwrap_err();
    let [(_, NodeError::Unsupported(reason))] = causes(&error)[..] else { panic!("{error:?}") };
    assert!(reason.contains("the password file") && reason.contains("cannot be read"), "{reason}");
    for password in ["first secret", "second secret"] {
        fs::write(&file, format!("{password}\n")).unwrap();
        rotate(&server, password).await;
        eventually(PATIENCE, "it is used", async || manager.try_acquire(KEY).await.map(drop)).await;
    }
}

#[tokio::test]
async fn failing_credentials_callback_is_reported_and_retried() {
    let server = RedisServer::builder().password("secret").start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let node = {
        let asked = Arc::clone(&asked);
        NodeConfig::new(server.url()).credentials(move || {
            let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if is_first { Err("the vault is sealed".into()) } else { Ok(Credentials::password("secret")) } }
        })
    };
    let manager = builder([node]).build().unwrap();
    let error = manager.try_acquire(LockRequest::new(KEY)).await;
    let is_told =
        |error: &LockError| error.to_string().contains("the call-back for the credentials failed: the vault is sealed");
    assert!(error.as_ref().map_or_else(is_told, |_| asked.load(Ordering::SeqCst) > 1), "{error:?}");
    eventually(PATIENCE, "it is asked again", async || manager.try_acquire("other").await.map(drop)).await;
    assert!(!format!("{manager:?}").contains("secret"));
}

#[tokio::test]
async fn dual_stack_host_name_connects_to_the_reachable_address() {
    let server = RedisServer::start().await;
    // The harness listens only on 127.0.0.1. On most machines, the name also resolves to `::1`, and first.
    let manager = builder([server.url().replace("127.0.0.1", "localhost")]).build().unwrap();
    manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn acquire_waits_during_password_rotation_but_not_for_a_wrong_password() {
    let server = RedisServer::start().await;
    rotate(&server, "first").await;
    let file = server.dir().join("password");
    fs::write(&file, "wrong").unwrap();
    let url = server.url().replace("redis://", &format!("redis://{USER}@"));
    let manager = builder([format!("{url}?password_file={}", file.display())]).build().unwrap();
    let patient = || LockRequest::new(KEY).wait(PATIENCE);
    assert!(matches!(manager.acquire(patient()).await.unwrap_err(), LockError::Refused { .. }));
    fs::write(&file, "first").unwrap();
    eventually(PATIENCE, "it is used", async || manager.try_acquire(KEY).await.map(drop)).await;
    // The server has the new password before the file has it.
    rotate(&server, "second").await;
    eventually(PATIENCE, "the connection is gone", async || match manager.try_acquire("other").await {
        Err(error @ LockError::NoQuorum { .. }) if error.to_string().contains("WRONGPASS") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    fs::write(&file, "second").unwrap();
    manager.acquire(patient()).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn panicking_credentials_callback_fails_one_connection_attempt() {
    let server = RedisServer::builder().password("secret").start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let node = {
        let asked = Arc::clone(&asked);
        NodeConfig::new(server.url()).credentials(move || {
            let turn = asked.fetch_add(1, Ordering::SeqCst);
            assert_ne!(turn, 0, "before there is a future");
            async move {
                assert_ne!(turn, 1, "while it is polled");
                Ok(Credentials::password("secret"))
            }
        })
    };
    let manager = builder([node]).build().unwrap();
    eventually(PATIENCE, "it is asked again", async || manager.try_acquire(KEY).await.map(drop)).await;
    assert!(asked.load(Ordering::SeqCst) > 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_credentials_callback_uses_one_thread_and_stops_no_renewal() {
    let servers = [RedisServer::start().await, RedisServer::start().await];
    let ttl = Duration::from_secs(2);
    let manager = builder([servers[0].url()]).default_ttl(ttl).node_timeout(ttl / 4).build().unwrap();
    let held = manager.acquire(KEY).await.unwrap();
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let (began, beginning) = tokio::sync::oneshot::channel();
    let (blocked, asked) = (Arc::new(Mutex::new((blocked, Some(began)))), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&asked);
    let node = NodeConfig::new(servers[1].url()).connect_timeout(ttl / 10).credentials(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut blocked = blocked.lock().unwrap();
        blocked.1.take().into_iter().for_each(|began| began.send(()).unwrap());
        // Blocks until the test drops the other end.
        let _ = blocked.0.recv();
        async { Err("not this time".into()) }
    });
    let other = builder([node]).build().unwrap();
    beginning.await.unwrap();
    assert!(tokio::time::timeout(3 * ttl, held.lost()).await.is_err(), "it is renewed");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "no more threads of ours than one");
    let error = other.try_acquire(KEY).await.unwrap_err();
    assert!(error.to_string().contains("has not returned since the last attempt"), "{error}");
    drop(unblock);
    held.release().await.unwrap();
}
