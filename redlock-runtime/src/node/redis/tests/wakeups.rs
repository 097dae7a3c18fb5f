//! Tests of wake-ups: they arrive, and continue to arrive when connections, scripts and servers come and go.

use super::{ACQUIRE, EXTEND, GRANTED, Peer, RELEASE, TTL, YIELD, both_protocols, epoch, is_listening, is_up, pass_on};
use crate::lock::OwnerToken;
use crate::node::Node;
use crate::protocol::command::{Notice, Reply, Verb};
use crate::protocol::timing::CLAIM;
use crate::time::token_clock::TokenTime;
use redlock_tests::{PATIENCE, RedisServer, eventually, eventually_eq};

#[tokio::test]
async fn lock_is_handed_off_with_wakeups() {
    for (protocol, server) in both_protocols().await {
        println!("{protocol}");
        let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
        let [holder, waiter] = &mut peers;
        match pass_on(holder, waiter).await {
            // The replies on the same connection determine the proof of a claim.
            Notice::Proven(claim) => assert_eq!((protocol, claim.length), ("RESP3", CLAIM)),
            Notice::Claimed(claim) => assert_eq!((protocol, claim.length), ("RESP2", CLAIM)),
            other => panic!("{other:?}"),
        }
        server.inspect().assert_empty(PATIENCE).await;
    }
}

#[tokio::test]
async fn waiter_that_subscribes_and_queues_at_once_is_woken() {
    let server = RedisServer::start().await;
    let holder = Peer::start(&server).await;
    let mut waiter = Peer::start(&server).await;
    let (first, second) = (holder.token(), waiter.token());
    assert_eq!(holder.ask(ACQUIRE, first).await, GRANTED);
    // Not confirmed yet, but before the command in the order of the connection.
    waiter.node.listen();
    assert!(matches!(waiter.ask(ACQUIRE, second).await, Reply::Queued { .. }));
    holder.ask(RELEASE, first).await;
    waiter.claim().await;
    assert_eq!(epoch(&waiter.node), 1, "no second connection");
}

#[tokio::test]
async fn listening_before_the_first_connection_subscribes_on_connect() {
    for (protocol, server) in both_protocols().await {
        println!("{protocol}");
        let peer = Peer::starting(&server.url());
        assert!(!is_listening(&peer.node));
        peer.node.listen();
        peer.until("listening", is_listening).await;
    }
}

#[tokio::test]
async fn node_is_subscribed_only_if_it_listens() {
    for (_, server) in both_protocols().await {
        let peer = Peer::start(&server).await;
        assert!(matches!(peer.ask(ACQUIRE, peer.token()).await, GRANTED));
        // One connection of the harness may still be closing.
        eventually_eq(PATIENCE, "connections", 1, async || server.inspect().clients().await.len()).await;
        assert!(!is_listening(&peer.node));
    }
}

#[tokio::test]
async fn reconnect_starts_a_new_epoch_and_resubscribes() {
    for (protocol, server) in both_protocols().await {
        println!("{protocol}");
        let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
        for _ in 0..2 {
            let epochs = peers.each_ref().map(|peer| epoch(&peer.node));
            server.inspect().kill_clients().await;
            for (peer, before) in peers.iter().zip(epochs) {
                peer.until("a new connection", |node| epoch(node) > before && is_listening(node)).await;
            }
            // With RESP2, one connection may still be closing.
            eventually(PATIENCE, "all connections are there", async || {
                let clients = server.inspect().clients().await;
                let is_complete = clients.len() == if protocol == "RESP2" { 4 } else { 2 };
                if is_complete && peers.iter().all(|peer| is_listening(&peer.node)) { Ok(()) } else { Err(clients) }
            })
            .await;
            let [holder, waiter] = &mut peers;
            pass_on(holder, waiter).await;
        }
    }
}

#[tokio::test]
async fn wakeup_connection_is_reestablished_alone() {
    let server = RedisServer::builder().without_command("HELLO").start().await;
    let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
    let before = epoch(&peers[0].node);
    let _: i64 = server.inspect().command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    for peer in &peers {
        peer.until("a new connection", |node| epoch(node) > before && is_listening(node)).await;
        assert_eq!(epoch(&peer.node), before + 1, "the one for commands was not cut");
    }
    let [holder, waiter] = &mut peers;
    pass_on(holder, waiter).await;
}

#[tokio::test]
async fn restarted_server_is_subscribed_to_again() {
    for (protocol, server) in both_protocols().await {
        println!("{protocol}");
        let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
        server.kill();
        for peer in &peers {
            peer.until("down", |node| !is_up(node)).await;
            assert!(!is_listening(&peer.node));
        }
        server.restart_empty().await;
        for peer in &peers {
            peer.until("up again", |node| is_up(node) && is_listening(node)).await;
        }
        let [holder, waiter] = &mut peers;
        pass_on(holder, waiter).await;
    }
}

#[tokio::test]
async fn lost_scripts_are_sent_again() {
    let server = RedisServer::start().await;
    let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
    let [older, newer] = &mut peers;
    let smaller = older.token();
    newer.environment.token_clock.observe(smaller.time());
    let larger = newer.token();
    let extended = Reply::Extended { waiters: 0, number: None };
    let adopt = Verb::Adopt { ttl: TTL };
    for (verb, expected) in [(ACQUIRE, GRANTED), (EXTEND, extended.clone()), (adopt, extended), (YIELD, Reply::Kept)] {
        server.inspect().flush_scripts().await;
        assert_eq!(newer.ask(verb, larger).await, expected);
    }
    older.ask(ACQUIRE, smaller).await;
    server.inspect().flush_scripts().await;
    assert!(matches!(newer.ask(YIELD, larger).await, Reply::Yielded { left: Some(_) }));
    older.claim().await;
    server.inspect().flush_scripts().await;
    assert_eq!(older.ask(RELEASE, smaller).await, Reply::Released);
    assert_eq!(newer.wakeup().await, Notice::Contended { by: smaller });
    newer.claim().await;
}

#[tokio::test]
async fn replies_advance_the_token_clock_to_the_newest_token() {
    let server = RedisServer::start().await;
    let [holder, waiter] = [Peer::start(&server).await, Peer::start(&server).await];
    // Half an hour ahead, a plausible clock error.
    let later = holder.environment.token_clock.next().millis() + 1_800_000;
    let future = TokenTime::new(later, 5);
    holder.ask(ACQUIRE, OwnerToken::new(holder.environment.manager, future)).await;
    waiter.ask(ACQUIRE, waiter.token()).await;
    assert_eq!(waiter.environment.token_clock.next(), TokenTime::new(later, 6));
}

#[tokio::test]
async fn manager_can_wait_for_its_own_lock() {
    for (protocol, server) in both_protocols().await {
        println!("{protocol}");
        let mut peer = Peer::listening(&server).await;
        let [first, second] = [peer.token(), peer.token()];
        // All at once: push messages come between the replies.
        let (granted, queued, released, extended) = tokio::join!(
            peer.ask(ACQUIRE, first),
            peer.ask(ACQUIRE, second),
            peer.ask(RELEASE, first),
            peer.ask(EXTEND, second),
        );
        assert!(matches!(queued, Reply::Queued { rank: 0, .. }));
        assert_eq!(
            [granted, released, extended],
            [GRANTED, Reply::Released, Reply::Extended { waiters: 0, number: None }]
        );
        assert_eq!(peer.wakeup().await, Notice::Contended { by: second });
        peer.claim().await;
    }
}

#[tokio::test]
async fn malformed_wakeups_are_ignored() {
    for (protocol, server) in both_protocols().await {
        println!("{protocol}");
        let mut peers = [Peer::listening(&server).await, Peer::listening(&server).await];
        for peer in &peers {
            for payload in ["", "granted", "granted token order:7", "lost everything"] {
                let channel = format!("redlock::{}", peer.environment.manager);
                let receivers: i64 = server.inspect().command(&["PUBLISH", &channel, payload]).await;
                assert_eq!(receivers, 1);
            }
        }
        let [holder, waiter] = &mut peers;
        pass_on(holder, waiter).await;
    }
}
