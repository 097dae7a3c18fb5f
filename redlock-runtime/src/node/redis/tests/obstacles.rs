//! Tests with unexpected keys, and with users that lack permissions.

use super::{ACQUIRE, EXTEND, GRANTED, KEY, Peer, RELEASE, TTL, YIELD, is_listening, is_up, pass_on};
use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::node::{Node, Recipient, Status};
use crate::protocol::command::{Command, Notice, Occupant, Reply, Subject};
use redlock_tests::{Builder, PATIENCE, RedisServer};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

#[tokio::test]
async fn acquire_waits_for_locks_of_other_programs() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    for value in ["another library", "", &"@".repeat(OwnerToken::LEN)] {
        server.inspect().command::<()>(&["SET", KEY, value, "PX", "60000"]).await;
        let token = peer.token();
        let answer = peer.ask(ACQUIRE, token).await;
        assert!(matches!(answer, Reply::Queued { left: Some(left), rank: 0 } if left <= TTL), "{value}: {answer:?}");
        assert_untouched(&server, &peer, token).await;
    }
}

#[tokio::test]
async fn acquire_fails_on_data_and_does_not_wait() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    let data: [&[&str]; 4] =
        [&["SET", KEY, "an order"], &["SET", KEY, ""], &["HSET", KEY, "id", "7"], &["SADD", KEY, "of another type"]];
    for command in data {
        server.inspect().command::<()>(command).await;
        let token = peer.token();
        assert_eq!(peer.answer(ACQUIRE, token).await, Err(NodeError::HoldsData), "{command:?}");
        assert_eq!(peer.occupant().await, Occupant::Data, "{command:?}");
        assert_untouched(&server, &peer, token).await;
        assert_eq!(peer.occupant().await, Occupant::Nobody, "{command:?} is deleted");
    }
    let token = peer.token();
    assert_eq!(peer.ask(ACQUIRE, token).await, GRANTED);
    let Occupant::Lock(left) = peer.occupant().await else { panic!("a lock is no data") };
    assert!(left <= TTL && left > TTL / 2, "{left:?}");
}

/// Checks that no command of `token` changes the key of another program, or leaves a key beside it. Deletes the key.
async fn assert_untouched(server: &RedisServer, peer: &Peer, token: OwnerToken) {
    for command in [EXTEND, YIELD, RELEASE] {
        assert_eq!(peer.ask(command, token).await, Reply::NotOwner);
    }
    assert_eq!(server.inspect().keys().await, [KEY], "the queue is left, the holder is not touched");
    server.inspect().command::<()>(&["DEL", KEY]).await;
}

#[tokio::test]
async fn foreign_value_at_the_queue_name_does_not_prevent_release() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    server.inspect().command::<()>(&["SET", "{order:7}:q", "a user's own"]).await;
    let [first, second] = [peer.token(), peer.token()];
    assert_eq!(peer.ask(ACQUIRE, first).await, GRANTED);
    assert!(matches!(peer.answer(ACQUIRE, second).await, Err(NodeError::Refused(_))), "waiting is impossible");
    assert_eq!(peer.ask(EXTEND, first).await, Reply::Extended { waiters: 0, number: None });
    assert_eq!(peer.ask(RELEASE, first).await, Reply::Released);
    assert_eq!(server.inspect().keys().await, ["{order:7}:q"]);
}

/// Adds a user with `rules` and the permissions for locks without waiting.
fn with_user(builder: Builder, rules: &str) -> Builder {
    let rules = format!("resetchannels ~order:* ~{{order:* +set +get +del +pexpire +evalsha +script|load {rules}");
    builder.password("x").user("alice", "w0nder", &rules)
}

const QUEUE: &str = "+pttl +time +zadd +zcard +zcount +zpopmin +zrange +zrank +zrem +zscore";

#[tokio::test]
async fn documented_permissions_suffice_for_wakeups() {
    for builder in [RedisServer::builder(), RedisServer::builder().without_command("HELLO")] {
        let server = with_user(builder, &format!("{QUEUE} &redlock::* +publish +subscribe")).start().await;
        let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
        let [holder, waiter] = &mut peers;
        let notice = pass_on(holder, waiter).await;
        assert!(matches!(notice, Notice::Claimed(_) | Notice::Proven(_)), "{notice:?}");
    }
}

#[tokio::test]
async fn user_without_channel_permission_polls_the_queue() {
    for builder in [RedisServer::builder(), RedisServer::builder().without_command("HELLO")] {
        let server = with_user(builder, &format!("{QUEUE} +publish +subscribe")).start().await;
        let [holder, waiter] = [Peer::start(&server).await, Peer::start(&server).await];
        for peer in [&holder, &waiter] {
            peer.node.listen();
        }
        let (first, second) = (holder.token(), waiter.token());
        assert_eq!(holder.ask(ACQUIRE, first).await, GRANTED);
        assert!(matches!(waiter.ask(ACQUIRE, second).await, Reply::Queued { .. }));
        assert_eq!(holder.ask(RELEASE, first).await, Reply::Released);
        // The notification was impossible: the lock is free, and the waiter notices when it asks again.
        assert_eq!(server.inspect().keys().await, Vec::<String>::new());
        assert_eq!(waiter.ask(ACQUIRE, second).await, GRANTED);
        assert_eq!(waiter.ask(RELEASE, second).await, Reply::Released);
        assert!([&holder, &waiter].iter().all(|peer| is_up(&peer.node) && !is_listening(&peer.node)));
    }
}

#[tokio::test]
async fn release_that_the_server_refuses_is_an_error_and_changes_nothing() {
    let server = with_user(RedisServer::builder(), QUEUE).start().await;
    let (peer, inspector) = (Peer::start(&server).await, server.inspect());
    let [holder, waiter] = [peer.token(), peer.token()];
    assert_eq!(peer.ask(ACQUIRE, holder).await, GRANTED);
    assert!(matches!(peer.ask(ACQUIRE, waiter).await, Reply::Queued { .. }));
    for missing in ["-@read", "-get"] {
        inspector.command::<()>(&["ACL", "SETUSER", "alice", missing]).await;
        assert!(peer.answer(RELEASE, holder).await.is_err(), "{missing}: the lock cannot be read");
        inspector
            .command::<()>(&[
                "ACL", "SETUSER", "alice", "+get", "+pttl", "+zcard", "+zcount", "+zrange", "+zrank", "+zscore",
            ])
            .await;
    }
    inspector.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]).await;
    for token in [waiter, holder] {
        assert!(peer.answer(RELEASE, token).await.is_err(), "the server accepts no writes");
    }
    inspector.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]).await;
    assert_eq!(peer.ask(RELEASE, waiter).await, Reply::NotOwner);
    assert_eq!(peer.ask(RELEASE, holder).await, Reply::Released);
    assert_eq!(inspector.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn user_without_queue_permission_is_refused_before_any_write() {
    let server = with_user(RedisServer::builder(), "").start().await;
    let peer = Peer::start(&server).await;
    let answer = peer.answer(ACQUIRE, peer.token()).await;
    assert!(matches!(&answer, Err(NodeError::Unsupported(reason)) if reason.contains("+zadd")), "{answer:?}");
    assert_eq!(server.inspect().keys().await, Vec::<String>::new());
}

/// Answers every command of one client, and hangs up with the last reply of the handshake.
async fn answer_and_hang_up(mut client: TcpStream) {
    let mut asked = Vec::with_capacity(1 << 16);
    while client.read_buf(&mut asked).await.is_ok_and(|count| count > 0) {
        let text = String::from_utf8_lossy(&asked).into_owned();
        let count = |command: &str| text.matches(&format!("\r\n{command}\r\n")).count();
        let refusals = "-ERR unknown command\r\n".repeat(count("HELLO"));
        let answers = "+OK\r\n".repeat(count("CLIENT") + count("SCRIPT"));
        let _ = client.write_all((refusals + &answers).as_bytes()).await;
        if count("SETNAME") > 0 {
            return;
        }
        asked.clear();
    }
}

#[tokio::test]
async fn status_is_down_before_pending_commands_fail() {
    // Otherwise releases would be sent again and again on the connection that has just lost them.
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    server.freeze();
    let (told, mut is_told) = mpsc::unbounded_channel();
    for _ in 0..3 {
        let (node, told) = (Arc::downgrade(&peer.node), told.clone());
        let recipient = Recipient::background(move |answer| {
            let _ = told.send((answer, node.upgrade().map(|node| node.status())));
        });
        let subject = Arc::new(Subject::new(KEY.into(), peer.token()));
        peer.node.send_for(Command { verb: RELEASE, fence: None, subject }, recipient);
    }
    server.kill();
    for _ in 0..3 {
        let (answer, status) = timeout(PATIENCE, is_told.recv()).await.unwrap().unwrap();
        assert_eq!(answer, Err(NodeError::Disconnected));
        assert!(matches!(status, Some(Status::Down(_))), "{status:?}");
    }
}

#[tokio::test]
async fn server_that_disconnects_with_its_reply_is_retried() {
    // The replies and the end of the connection arrive together: the task of the connection must survive that.
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = Peer::starting(&format!("redis://{}/", server.local_addr().unwrap()));
    let clients = async {
        for _ in 0..8 {
            answer_and_hang_up(server.accept().await.unwrap().0).await;
        }
    };
    timeout(PATIENCE, clients).await.unwrap_or_else(|_| panic!("{:?}", peer.node));
}
