//! Tests of repeated questions of a waiting token, and of silent nodes.

use super::*;
use crate::protocol::timing::AFTER_FAILURE;

/// About a second, varied by a quarter in each direction.
const POLL: std::ops::RangeInclusive<Duration> = Duration::from_millis(750)..=Duration::from_millis(1250);

#[test]
fn waiter_polls_when_the_lease_of_the_holder_has_expired() {
    // Rest of the lease, number of waiters ahead, and time of the next question, in milliseconds.
    let table = [(100, 0, 105), (100, 1, 135), (300, 3, 395), (0, 10, 305), (0, 4000, 305)];
    for (left, rank, expected) in table {
        let mut scene = Scene::waiting(1);
        scene.hear(0, ACQUIRE, Reply::Queued { left: Some(Duration::from_millis(left)), rank });
        assert_eq!(scene.wants(), [None]);
        assert_eq!(scene.idle_for(), Duration::from_millis(expected), "{left} ms left, {rank} before us");
        let idle_for = scene.idle_for();
        scene.advance(idle_for);
        assert_eq!(scene.wants(), [Some(ACQUIRE)]);
    }
}

#[test]
fn waiter_behind_a_lock_without_expiry_polls_every_second() {
    let mut scene = Scene::waiting(3);
    for _ in 0..3 {
        (0..3).for_each(|node| scene.hear(node, ACQUIRE, Reply::Queued { left: None, rank: 0 }));
        assert_eq!(scene.wants(), [None, None, None]);
        // The first poll began before the scene did.
        assert!(scene.idle_for() + NODE_TIMEOUT >= *POLL.start() && scene.idle_for() <= *POLL.end());
        let idle_for = scene.idle_for();
        scene.advance(idle_for);
        let now = scene.now();
        scene.candidate.tick(now);
        assert_eq!(scene.wants(), [Some(ACQUIRE); 3]);
    }
}

#[test]
fn resting_waiter_asks_after_its_pause() {
    let mut scene = Scene::new(3);
    let from = scene.now().after(MILLISECOND);
    scene.candidate.wait(from);
    assert_eq!((scene.wants(), scene.idle_for()), (vec![None; 3], MILLISECOND));
    scene.advance(MILLISECOND);
    assert_eq!(scene.wants(), [Some(ACQUIRE); 3]);
}

#[test]
fn holder_knows_the_number_of_waiters() {
    let mut scene = Scene::holding(3);
    assert_eq!(scene.candidate.waiters(), 0);
    for waiters in [31, 30, 0] {
        scene.hear(0, EXTEND, Reply::Extended { waiters, number: None });
        assert_eq!(scene.candidate.waiters(), waiters);
    }
}

#[test]
fn unconfirmed_claim_is_polled_before_it_ends() {
    let mut scene = Scene::waiting(3);
    (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
    scene.claim(0);
    assert_eq!(scene.wants(), [None, None, None], "one claim of three makes no majority");
    scene.advance(CLAIM.mul_f64(0.9));
    assert_eq!(scene.wants()[0], Some(ACQUIRE));
}

#[test]
fn late_claim_is_confirmed_while_the_lock_is_held() {
    let mut scene = Scene::waiting(3);
    (0..2).for_each(|node| scene.hear(node, ACQUIRE, GRANTED));
    scene.hear(2, ACQUIRE, QUEUED);
    let now = scene.now();
    scene.candidate.hold(now);
    assert_eq!(scene.wants(), [None, None, None]);
    scene.claim(2);
    assert_eq!(scene.wants(), [None, None, Some(EXTEND)]);
    assert!(scene.candidate.next_commands(now, |_| true, |_| {}));
    assert_eq!(scene.wants(), [None, None, None], "once");
    scene.answer(2, Ok(EXTENDED));
    assert_eq!(scene.wants(), [None, None, None]);
}

#[test]
fn claim_of_an_abstaining_node_is_not_confirmed() {
    let mut scene = Scene::waiting(1);
    scene.claim(0);
    scene.send(0, EXTEND);
    assert_eq!(scene.wants(), [None]);
    scene.answer(0, Err(NodeError::RecentlyRestarted(TTL)));
    assert_eq!(scene.wants(), [None], "a claim at a node that abstains is none");
}

#[test]
fn vote_of_a_silent_node_does_not_block_requests_to_other_nodes() {
    // The token had two claims, and the third node was away. For ten seconds, that node was not asked.
    for silent in [disconnected(), unreachable(), NodeError::Refused("BUSY".into())] {
        let mut scene = Scene::waiting(3);
        scene.fail(0, ACQUIRE, unreachable());
        (1..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
        (1..3).for_each(|node| scene.claim(node));
        assert_eq!(scene.wants(), [None, Some(EXTEND), Some(EXTEND)]);
        scene.hear(1, EXTEND, EXTENDED);
        scene.fail(2, EXTEND, silent.clone());
        scene.advance(AFTER_FAILURE);
        assert_eq!(scene.wants(), [Some(ACQUIRE), None, Some(ACQUIRE)], "{silent:?}");
        scene.hear(0, ACQUIRE, GRANTED);
        assert!(scene.is_won(), "{silent:?}");
    }
}

#[test]
fn trying_or_ended_token_sends_no_queue_commands() {
    for phase in [Phase::Trying, Phase::Ended] {
        let mut scene = Scene::waiting(3);
        scene.hear(0, ACQUIRE, BEATEN);
        scene.candidate.phase = phase;
        assert_eq!(scene.wants(), [None, None, None], "{phase:?}");
    }
}

#[test]
fn new_connection_makes_a_waiter_ask_again_and_not_a_holder() {
    let mut scene = Scene::waiting(3);
    (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
    scene.claim(0);
    let now = scene.now();
    scene.candidate.connections([1, 1, 1].into_iter(), now);
    assert_eq!(scene.wants(), [None, None, None], "the same ones");
    scene.candidate.connections([2, 1, 5].into_iter(), now);
    assert_eq!(scene.wants(), [Some(ACQUIRE), None, Some(ACQUIRE)]);
    assert_eq!(scene.vote(0), Vote::Open, "what the node has told since may be lost");
    let mut scene = Scene::holding(3);
    let (now, valid_until) = (scene.now(), scene.candidate.valid_until());
    scene.candidate.connections([2, 2, 2].into_iter(), now);
    assert_eq!((scene.candidate.valid_until(), scene.wants()), (valid_until, vec![None, None, None]));
}

#[test]
fn acquire_is_postponed_briefly_until_wake_ups_arrive() {
    let mut scene = Scene::new(1);
    let now = scene.now();
    scene.candidate.wait(now);
    assert_eq!(scene.wants(), [Some(ACQUIRE)]);
    assert!(!scene.candidate.postpones(0, EXTEND, now), "only a place in the queue can wait");
    assert!(scene.candidate.postpones(0, ACQUIRE, now));
    assert_eq!((scene.wants(), scene.idle_for()), (vec![None], Duration::from_millis(2)));
    scene.advance(NODE_TIMEOUT);
    let now = scene.now();
    assert!(!scene.candidate.postpones(0, ACQUIRE, now), "not for ever: it may never be allowed to subscribe");
    assert_eq!(scene.wants(), [Some(ACQUIRE)]);
}

#[test]
fn silence_is_measured_from_the_loss_of_a_majority() {
    let mut scene = Scene::waiting(3);
    let tick = |scene: &mut Scene| {
        let now = scene.now();
        scene.candidate.tick(now);
        scene.candidate.silence(now)
    };
    (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
    scene.send(0, ACQUIRE);
    scene.advance(NODE_TIMEOUT);
    assert_eq!(tick(&mut scene), Duration::ZERO, "two of three are heard of");
    scene.fail(1, ACQUIRE, unreachable());
    assert_eq!(tick(&mut scene), Duration::ZERO, "it begins now");
    scene.advance(Duration::from_millis(300));
    assert_eq!(tick(&mut scene), Duration::from_millis(300));
    scene.answer(0, Ok(QUEUED));
    assert_eq!(tick(&mut scene), Duration::ZERO);
    scene.advance(Duration::from_millis(300));
    assert_eq!(tick(&mut scene), Duration::ZERO, "and is not counted on from before");
}

#[test]
fn node_with_many_unanswered_commands_is_sent_nothing() {
    let mut scene = Scene::waiting(1);
    for _ in 0..8 {
        assert!(scene.voter(0).is_open());
        scene.send(0, EXTEND);
    }
    assert!(!scene.voter(0).is_open());
    scene.answer(0, Ok(EXTENDED));
    assert!(scene.voter(0).is_open());
}

#[test]
fn node_with_an_overdue_answer_counts_as_timed_out() {
    let mut scene = Scene::waiting(1);
    scene.hear(0, ACQUIRE, QUEUED);
    let reason = |scene: &Scene| scene.voter(0).reason(scene.now, NODE_TIMEOUT);
    assert_eq!(reason(&scene), Some(NodeError::Held));
    scene.send(0, ACQUIRE);
    assert_eq!(reason(&scene), Some(NodeError::Held), "it has time to answer");
    scene.advance(NODE_TIMEOUT);
    assert_eq!(reason(&scene), Some(NodeError::TimedOut(NODE_TIMEOUT)));
    scene.answer(0, Ok(QUEUED));
    assert_eq!(reason(&scene), Some(NodeError::Held));
}
