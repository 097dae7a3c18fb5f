//! Tests with the masters of a cluster, and the messages published there.

use super::{ACQUIRE, EXTEND, GRANTED, RELEASE};
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::redis::cluster::ClusterNode;
use crate::node::redis::cluster::seeds::Seeds;
use crate::node::{BackgroundThread, Environment, Node, Status};
use crate::protocol::command::{Answer, Command, Deliver, Notice, Reply, Subject, Verb, Wakeup};
use crate::protocol::timing::CLAIM;
use crate::time::clock::Clock;
use crate::time::wait_until::wait_until;
use redlock_tests::{Cluster, PATIENCE, eventually};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// One manager's connections to a cluster, and its notifications.
struct Peer {
    node: Arc<ClusterNode>,
    environment: Environment,
    wakeups: mpsc::UnboundedReceiver<Wakeup>,
}

impl Peer {
    async fn start(cluster: &Cluster) -> Self {
        let (sender, wakeups) = mpsc::unbounded_channel();
        let deliver: Deliver = Arc::new(move |wakeup| drop(sender.send(wakeup)));
        let environment = Environment { deliver, ..Environment::for_single_node(ManagerId::random(), Clock::Boot) };
        let seeds = Seeds::new(&cluster.url().into(), 1).unwrap();
        let thread = BackgroundThread::shared().unwrap();
        let node = ClusterNode::start(seeds, environment.clone(), &thread, Some(Handle::current()));
        let peer = Self { node, environment, wakeups };
        peer.until("up", |node| node.status() == Status::Up).await;
        peer
    }

    async fn until(&self, what: &str, condition: impl Fn(&ClusterNode) -> bool) {
        let condition = wait_until(&self.environment.changed, || condition(&self.node));
        timeout(PATIENCE, condition).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.node));
    }

    fn token(&self) -> OwnerToken {
        OwnerToken::new(self.environment.manager, self.environment.token_clock.next())
    }

    async fn answer(&self, verb: Verb, key: &str, token: OwnerToken) -> Answer {
        let subject = Arc::new(Subject::new(key.into(), token));
        timeout(PATIENCE, self.node.send(Command { verb, fence: None, subject })).await.unwrap()
    }

    async fn ask(&self, verb: Verb, key: &str, token: OwnerToken) -> Reply {
        self.answer(verb, key, token).await.unwrap()
    }

    async fn notice(&mut self) -> Notice {
        timeout(PATIENCE, self.wakeups.recv()).await.unwrap().unwrap().notice
    }
}

#[tokio::test]
async fn wakeup_in_a_cluster_arrives_once_and_proves_the_claim() {
    let cluster = Cluster::start(3, 0).await;
    let (mut holder, mut waiter) = (Peer::start(&cluster).await, Peer::start(&cluster).await);
    let keys = [cluster.key_on(0, "order").await, cluster.key_on(1, "order").await, cluster.key_on(2, "order").await];
    for peer in [&holder, &waiter] {
        peer.node.listen();
        peer.until("it listens", |node| keys.iter().all(|key| node.is_listening_for(&key.as_str().into()))).await;
    }
    // Nothing is proven in the first second after a map.
    let (begun, mut is_proven) = (Clock::Boot.now(), [false; 3]);
    while is_proven != [true; 3] {
        assert!(Clock::Boot.now().since(begun) < PATIENCE, "{is_proven:?}");
        for (key, is_proven) in keys.iter().zip(&mut is_proven) {
            let (first, second) = (holder.token(), waiter.token());
            assert_eq!(holder.ask(ACQUIRE, key, first).await, GRANTED);
            assert!(matches!(waiter.ask(ACQUIRE, key, second).await, Reply::Queued { rank: 0, .. }));
            assert_eq!(holder.notice().await, Notice::Contended { by: second });
            assert_eq!(holder.ask(RELEASE, key, first).await, Reply::Released);
            let notice = waiter.notice().await;
            assert!(matches!(notice, Notice::Granted | Notice::Proven(_)), "{notice:?}");
            *is_proven |= matches!(notice, Notice::Proven(_));
            assert_eq!(waiter.ask(EXTEND, key, second).await, Reply::Extended { waiters: 0, number: None });
            assert_eq!(waiter.ask(RELEASE, key, second).await, Reply::Released);
        }
    }
    // Messages that the other masters had passed on would be here already: these masters have taken part in rounds since the first.
    assert_eq!([holder.wakeups.try_recv().ok(), waiter.wakeups.try_recv().ok()], [None, None]);
}

/// The claim may be over at the member that the token has contacted in the meantime.
#[tokio::test]
async fn claim_is_not_proven_soon_after_a_redirection() {
    let cluster = Cluster::start(2, 0).await;
    let (holder, mut waiter) = (Peer::start(&cluster).await, Peer::start(&cluster).await);
    let keys = [cluster.key_on(0, "order").await, cluster.key_on(1, "order").await];
    for peer in [&holder, &waiter] {
        peer.node.listen();
        peer.until("it listens", |node| keys.iter().all(|key| node.is_listening_for(&key.as_str().into()))).await;
    }
    let [key, moves] = keys;
    let slot = cluster.slot(&moves).await;
    // Without another map: the slot does not arrive. Repeated until a round was fast enough to be conclusive.
    let migration = cluster.begin_move(slot, 0).await;
    loop {
        let (first, second) = (holder.token(), waiter.token());
        assert_eq!(holder.ask(ACQUIRE, &key, first).await, GRANTED);
        assert!(matches!(waiter.ask(ACQUIRE, &key, second).await, Reply::Queued { .. }));
        let before_redirection = Clock::Boot.now();
        assert_eq!(waiter.ask(RELEASE, &moves, waiter.token()).await, Reply::NotOwner);
        assert_eq!(holder.ask(RELEASE, &key, first).await, Reply::Released);
        let notice = waiter.notice().await;
        let was_fast = Clock::Boot.now().since(before_redirection) < CLAIM;
        assert!(!was_fast || notice == Notice::Granted, "{notice:?}");
        assert_eq!(waiter.ask(RELEASE, &key, second).await, Reply::Released);
        if was_fast {
            break;
        }
    }
    migration.finish().await;
}

#[tokio::test]
async fn moved_slot_changes_the_connection_epoch_of_its_keys() {
    let cluster = Cluster::start(3, 0).await;
    let peer = Peer::start(&cluster).await;
    let [moves, stays] = [cluster.key_on(0, "order").await, cluster.key_on(1, "order").await];
    let epochs = || [&moves, &stays].map(|key| peer.node.epoch_of(&key.as_str().into()));
    let before = epochs();
    cluster.move_slot(cluster.slot(&moves).await, 1).await;
    let token = peer.token();
    assert_eq!(peer.ask(ACQUIRE, &moves, token).await, GRANTED, "the member that had the slot says where it is");
    peer.until("the map is fresh", |_| epochs()[0] > before[0]).await;
    assert_eq!(epochs()[1], before[1]);
    assert_eq!(peer.ask(RELEASE, &moves, token).await, Reply::Released);
}

/// A process that only holds locks sends nothing that could show that the master is gone.
#[tokio::test]
async fn lost_cluster_member_refreshes_the_slot_map_without_commands() {
    let cluster = Cluster::start(3, 1).await;
    let peer = Peer::start(&cluster).await;
    let key = cluster.key_on(0, "order").await;
    let epoch = |node: &ClusterNode| node.epoch_of(&key.as_str().into());
    let before = epoch(&peer.node);
    cluster.member(0).kill();
    cluster.fail_over(0).await;
    peer.until("the replica has the slot", |node| {
        node.status_of(&key.as_str().into()) == Status::Up && epoch(node) != before
    })
    .await;
}

/// Takes and releases a lock, and removes a token from its queue, in every state of a slot that moves.
#[tokio::test]
async fn every_command_is_executed_while_its_keys_migrate() {
    let cluster = Cluster::start(3, 0).await;
    let peer = Peer::start(&cluster).await;
    peer.node.listen();
    let key = cluster.key_on(0, "order").await;
    peer.until("it listens", |node| node.is_listening_for(&key.as_str().into())).await;
    let (slot, queue) = (cluster.slot(&key).await, format!("{{{key}}}:q"));
    // The keys that are moved to the new member before the holder continues.
    let cases: [&[&str]; 4] = [&[], &[&key], &[&queue], &[&key, &queue]];
    for brought in cases {
        let (holder, waiter) = (peer.token(), peer.token());
        assert_eq!(peer.ask(ACQUIRE, &key, holder).await, GRANTED);
        assert!(matches!(peer.ask(ACQUIRE, &key, waiter).await, Reply::Queued { .. }));
        let migration = cluster.begin_move(slot, 1).await;
        for key in brought {
            migration.move_key(key).await;
        }
        let is_together = matches!(brought.len(), 0 | 2);
        let waiters = u32::from(is_together);
        assert_eq!(peer.ask(EXTEND, &key, holder).await, Reply::Extended { waiters, number: None }, "{brought:?}");
        assert!(matches!(peer.ask(ACQUIRE, &key, waiter).await, Reply::Queued { .. }), "{brought:?}");
        if !is_together {
            assert_eq!(peer.ask(RELEASE, &key, waiter).await, Reply::NotOwner, "it leaves the queue");
        }
        assert_eq!(peer.ask(RELEASE, &key, holder).await, Reply::Released, "{brought:?}");
        let _ = peer.ask(RELEASE, &key, waiter).await;
        let other = peer.token();
        assert_eq!(peer.ask(Verb::SetNx { ttl: super::TTL }, &key, other).await, GRANTED, "{brought:?}");
        assert_eq!(peer.ask(RELEASE, &key, other).await, Reply::Released, "{brought:?}");
        assert_eq!(cluster.contents().await.len(), 0, "{brought:?}");
        migration.move_keys().await;
        migration.finish().await;
        cluster.move_slot(slot, 0).await;
    }
}

#[tokio::test]
async fn holder_is_notified_of_waiter_during_slot_migration() {
    let cluster = Cluster::start(2, 0).await;
    let (mut holder, waiter) = (Peer::start(&cluster).await, Peer::start(&cluster).await);
    let (key, other) = (cluster.key_on(0, "order").await, cluster.key_on(1, "order").await);
    for peer in [&holder, &waiter] {
        peer.node.listen();
        let listens = |node: &ClusterNode| [&key, &other].iter().all(|key| node.is_listening_for(&key.as_str().into()));
        peer.until("it listens", listens).await;
    }
    let slot = cluster.slot(&key).await;
    for has_come in [false, true] {
        let (first, second) = (holder.token(), waiter.token());
        assert_eq!(holder.ask(ACQUIRE, &key, first).await, GRANTED);
        let migration = cluster.begin_move(slot, 1).await;
        if has_come {
            migration.move_key(&key).await;
        }
        assert!(matches!(waiter.ask(ACQUIRE, &key, second).await, Reply::Queued { rank: 0, .. }));
        assert_eq!(holder.notice().await, Notice::Contended { by: second }, "at once, wherever the key is");
        assert_eq!(holder.ask(RELEASE, &key, first).await, Reply::Released);
        assert_eq!(waiter.ask(ACQUIRE, &key, second).await, GRANTED);
        assert_eq!(waiter.ask(RELEASE, &key, second).await, Reply::Released);
        assert_eq!(cluster.contents().await.len(), 0);
        migration.finish().await;
        cluster.move_slot(slot, 0).await;
    }
}

#[tokio::test]
async fn holder_that_acquired_without_the_queue_hands_off_to_its_waiters() {
    let cluster = Cluster::start(2, 0).await;
    let peer = Peer::start(&cluster).await;
    peer.node.listen();
    let key = cluster.key_on(0, "order").await;
    peer.until("it listens", |node| node.is_listening_for(&key.as_str().into())).await;
    let [holder, first, second] = [peer.token(), peer.token(), peer.token()];
    assert_eq!(peer.ask(ACQUIRE, &key, holder).await, GRANTED);
    for waiter in [first, second] {
        assert!(matches!(peer.ask(ACQUIRE, &key, waiter).await, Reply::Queued { .. }));
    }
    let migration = cluster.begin_move(cluster.slot(&key).await, 1).await;
    migration.move_key(&format!("{{{key}}}:q")).await;
    assert_eq!(peer.ask(RELEASE, &key, holder).await, Reply::Released, "to nobody");
    assert_eq!(peer.ask(ACQUIRE, &key, first).await, GRANTED);
    migration.finish().await;
    assert_eq!(peer.ask(RELEASE, &key, first).await, Reply::Released);
    assert_eq!(peer.ask(EXTEND, &key, second).await, Reply::Extended { waiters: 0, number: None });
    assert_eq!(peer.ask(RELEASE, &key, second).await, Reply::Released);
    assert_eq!(cluster.contents().await.len(), 0);
}

#[tokio::test]
async fn abandoned_acquire_leaves_no_lock_during_slot_migration() {
    let cluster = Cluster::start(3, 0).await;
    let peer = Peer::start(&cluster).await;
    let key = cluster.key_on(0, "order").await;
    let slot = cluster.slot(&key).await;
    for round in 0..20 {
        let migration = cluster.begin_move(slot, (round + 1) % 3).await;
        let is_finished = round % 2 == 0;
        let migration = if is_finished {
            migration.finish().await;
            None
        } else {
            Some(migration)
        };
        let token = peer.token();
        for verb in [Verb::SetNx { ttl: super::TTL }, ACQUIRE] {
            let subject = Arc::new(Subject::new(key.as_str().into(), token));
            // Dropped before its release is sent, as every caller does.
            drop(peer.node.send(Command { verb, fence: None, subject }));
        }
        // Members that do not agree yet redirect it back and forth: it is repeated until it is executed.
        eventually(PATIENCE, "it is executed", async || peer.answer(RELEASE, &key, token).await).await;
        eventually(PATIENCE, "nothing is left", async || {
            let contents = cluster.contents().await;
            if contents.is_empty() { Ok(()) } else { Err(contents) }
        })
        .await;
        if let Some(migration) = migration {
            migration.finish().await;
        }
    }
}
