//! Tests of combined renewals.

use super::{Peer, RELEASE, TTL};
use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::node::Node;
use crate::node::pending::Pending;
use crate::protocol::command::{Answer, Command, Reply, Subject, Verb};
use redlock_tests::{PATIENCE, RedisServer};
use std::sync::Arc;
use tokio::time::timeout;

const RENEW: Verb = Verb::Renew { ttl: TTL };
const EXTENDED: Answer = Ok(Reply::Extended { waiters: 0, number: None });

/// Queues one command for several keys before any of them is sent.
fn sent<const N: usize>(peer: &Peer, verb: Verb, keys: [&str; N], token: OwnerToken) -> [Pending; N] {
    keys.map(|key| {
        let subject = Arc::new(Subject::new(key.into(), token));
        peer.node.send(Command { verb, fence: None, subject })
    })
}

/// Queues these commands, and waits for the replies.
async fn ask_all<const N: usize>(peer: &Peer, verb: Verb, keys: [&str; N], token: OwnerToken) -> [Answer; N] {
    let mut answers = Vec::new();
    for answer in sent(peer, verb, keys, token) {
        answers.push(timeout(PATIENCE, answer).await.unwrap());
    }
    answers.try_into().unwrap()
}

async fn calls(server: &RedisServer) -> u64 {
    server.inspect().calls("evalsha").await
}

async fn taken<const N: usize>(peer: &Peer, keys: [&str; N]) -> OwnerToken {
    let token = peer.token();
    for answer in ask_all(peer, Verb::SetNx { ttl: TTL / 2 }, keys, token).await {
        assert!(matches!(answer, Ok(Reply::Granted { .. })), "{answer:?}");
    }
    token
}

#[tokio::test]
async fn batched_renewals_are_one_call_with_equal_replies() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    let ours = ["a", "b", "c", "waited for", "replaced", "data"];
    let token = taken(&peer, ours).await;
    let acquire = Verb::Acquire { ttl: TTL, claim: TTL, holds: false };
    assert!(matches!(ask_all(&peer, acquire, ["waited for"], peer.token()).await, [Ok(Reply::Queued { .. })]));
    server.inspect().command::<()>(&["SET", "replaced", "by another program", "PX", "60000"]).await;
    server.inspect().command::<()>(&["DEL", "data"]).await;
    server.inspect().command::<()>(&["RPUSH", "data", "1"]).await;

    let before = calls(&server).await;
    let keys = ["a", "free", "b", "waited for", "replaced", "data", "c"];
    let answers = ask_all(&peer, RENEW, keys, token).await;
    let waited = Ok(Reply::Extended { waiters: 1, number: None });
    let not_ours = || Ok(Reply::NotOwner);
    let [a, free, b, waited_for, replaced, data, c] = answers;
    assert_eq!([a, b, c], [EXTENDED; 3]);
    assert_eq!([free, replaced], [not_ours(), not_ours()]);
    assert_eq!(waited_for, waited);
    let [alone] = ask_all(&peer, RENEW, ["data"], token).await;
    assert_eq!(data, alone);
    assert_eq!(calls(&server).await - before, 1 + 4 + 1, "one for all, and one for each that it has left alone");
    let half = u64::try_from((TTL / 2).as_millis()).unwrap();
    for key in ["a", "b", "c", "waited for"] {
        assert!(server.inspect().command::<u64>(&["PTTL", key]).await > half, "{key}");
    }
}

#[tokio::test]
async fn renewals_are_batched_again_after_a_script_flush() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    let keys = ["a", "b", "c"];
    let token = taken(&peer, keys).await;
    server.inspect().command::<()>(&["SCRIPT", "FLUSH"]).await;
    assert_eq!(ask_all(&peer, RENEW, keys, token).await, [EXTENDED; 3]);
    let before = calls(&server).await;
    assert_eq!(ask_all(&peer, RENEW, keys, token).await, [EXTENDED; 3]);
    assert_eq!(calls(&server).await - before, 1);
}

#[tokio::test]
async fn forbidden_key_in_a_batch_is_refused_alone() {
    let server = RedisServer::start().await;
    let all = Peer::start(&server).await;
    let token = taken(&all, ["ours:a", "theirs", "ours:b"]).await;
    let rules = ["ACL", "SETUSER", "alice", "on", ">w0nder", "+@all", "~*ours:*", "&*"];
    server.inspect().command::<()>(&rules).await;
    let url = server.url().replace("redis://", "redis://alice:w0nder@");
    let peer = Peer::starting(&url);
    timeout(PATIENCE, peer.node.wait_until_up(&"ours:a".into())).await.unwrap();
    for _ in 0..2 {
        let before = calls(&server).await;
        let [a, theirs, b] = ask_all(&peer, RENEW, ["ours:a", "theirs", "ours:b"], token).await;
        assert_eq!([a, b], [EXTENDED; 2]);
        assert!(matches!(theirs, Err(NodeError::Refused(_))), "{theirs:?}");
        assert_eq!(calls(&server).await - before, 2, "each by itself, of which one is not counted");
    }
    assert_eq!(ask_all(&peer, RELEASE, ["ours:a"], token).await, [Ok(Reply::Released)]);
}

#[tokio::test]
async fn skipped_renewal_does_not_shorten_a_longer_lease() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    let keys = ["a", "waited for"];
    let token = taken(&peer, keys).await;
    let acquire = Verb::Acquire { ttl: TTL, claim: TTL, holds: false };
    assert!(matches!(ask_all(&peer, acquire, ["waited for"], peer.token()).await, [Ok(Reply::Queued { .. })]));

    let before = calls(&server).await;
    let extensions = sent(&peer, RENEW, keys, token);
    let [longer] = sent(&peer, Verb::Extend { ttl: 3 * TTL }, ["waited for"], token);
    for answer in extensions.into_iter().chain([longer]) {
        assert!(matches!(timeout(PATIENCE, answer).await.unwrap(), Ok(Reply::Extended { .. })));
    }
    assert_eq!(calls(&server).await - before, 1 + 1 + 1, "the two, the longer one, the one left alone");
    let twice = u64::try_from((2 * TTL).as_millis()).unwrap();
    assert!(server.inspect().command::<u64>(&["PTTL", "waited for"]).await > twice);
}

#[tokio::test]
async fn skipped_renewal_is_not_resent_if_abandoned() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    let keys = ["a", "waited for"];
    let token = taken(&peer, keys).await;
    let acquire = Verb::Acquire { ttl: TTL, claim: TTL, holds: false };
    assert!(matches!(ask_all(&peer, acquire, ["waited for"], peer.token()).await, [Ok(Reply::Queued { .. })]));

    let before = calls(&server).await;
    let [a, waited_for] = sent(&peer, RENEW, keys, token);
    drop(waited_for);
    assert_eq!(timeout(PATIENCE, a).await.unwrap(), EXTENDED);
    // All commands that were queued with the replies are executed before this.
    assert_eq!(ask_all(&peer, RENEW, ["a"], token).await, [EXTENDED]);
    assert_eq!(calls(&server).await - before, 1 + 1);
}

#[tokio::test]
async fn lost_script_is_reloaded_with_its_source_once() {
    let server = RedisServer::start().await;
    let peer = Peer::start(&server).await;
    let extend = Verb::Extend { ttl: TTL };
    let token = taken(&peer, ["a"]).await;
    server.inspect().command::<()>(&["SCRIPT", "FLUSH"]).await;
    for expected in [1, 0] {
        let before = server.inspect().calls("eval").await;
        assert_eq!(ask_all(&peer, extend, ["a"], token).await, [EXTENDED]);
        assert_eq!(server.inspect().calls("eval").await - before, expected, "with its source");
    }
}
