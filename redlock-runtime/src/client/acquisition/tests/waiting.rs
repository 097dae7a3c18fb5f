//! When a waiting token asks again, and how it notices that nobody answers.

use super::*;
use crate::protocol::candidate::voter::Vote;

/// About a second, spread by a quarter in each direction.
const POLL: std::ops::RangeInclusive<Duration> = Duration::from_millis(750)..=Duration::from_millis(1250);

#[tokio::test(start_paused = true)]
async fn a_waiter_asks_again_when_the_lease_of_the_holder_has_run_out() {
    // What is left of the lease, how many are before us, and when we ask, in milliseconds.
    let table = [(100, 0, 105), (100, 1, 135), (300, 3, 395), (0, 10, 305), (0, 4000, 305)];
    for (left, rank, expected) in table {
        let mut scene = Scene::waiting(1).await;
        scene.hear(0, ACQUIRE, Reply::Queued { left: Some(Duration::from_millis(left)), rank });
        assert_eq!(scene.wants(), [None]);
        assert_eq!(scene.idle_for(), Duration::from_millis(expected), "{left} ms left, {rank} before us");
        advance(scene.idle_for()).await;
        assert_eq!(scene.wants(), [Some(ACQUIRE)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_behind_a_lock_without_end_asks_every_second() {
    let mut scene = Scene::waiting(3).await;
    for _ in 0..3 {
        (0..3).for_each(|node| scene.hear(node, ACQUIRE, Reply::Queued { left: None, rank: 0 }));
        assert_eq!(scene.wants(), [None, None, None]);
        // The first of them began before the scene did.
        assert!(scene.idle_for() + NODE_TIMEOUT >= *POLL.start() && scene.idle_for() <= *POLL.end());
        advance(scene.idle_for()).await;
        let now = scene.now();
        scene.standing.tick(now);
        assert_eq!(scene.wants(), [Some(ACQUIRE); 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_confirmed_is_asked_about_before_it_ends() {
    let mut scene = Scene::waiting(3).await;
    (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
    scene.claim(0);
    assert_eq!(scene.wants(), [None, None, None], "one claim of three makes no majority");
    advance(CLAIM.mul_f64(0.9)).await;
    assert_eq!(scene.wants()[0], Some(ACQUIRE));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_comes_late_is_confirmed_while_the_lock_is_held() {
    let mut scene = Scene::waiting(3).await;
    (0..2).for_each(|node| scene.hear(node, ACQUIRE, GRANTED));
    scene.hear(2, ACQUIRE, QUEUED);
    let now = scene.now();
    scene.standing.hold(now);
    assert_eq!(scene.wants(), [None, None, None]);
    scene.claim(2);
    assert_eq!(scene.wants(), [None, None, Some(EXTEND)]);
    scene.send(2, EXTEND);
    assert_eq!(scene.wants(), [None, None, None], "once");
    scene.answer(2, Ok(EXTENDED));
    assert_eq!(scene.wants(), [None, None, None]);
}

#[tokio::test(start_paused = true)]
async fn an_extension_without_an_answer_is_repeated_after_the_node_timeout() {
    let mut scene = Scene::waiting(1).await;
    scene.claim(0);
    scene.send(0, EXTEND);
    assert_eq!(scene.wants(), [None]);
    scene.answer(0, Err(disconnected()));
    assert_eq!(scene.wants(), [None]);
    advance(NODE_TIMEOUT).await;
    assert_eq!(scene.wants(), [Some(EXTEND)]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_claims_or_has_left_asks_nothing() {
    for phase in [Phase::Claiming, Phase::Left] {
        let mut scene = Scene::waiting(3).await;
        scene.hear(0, ACQUIRE, BEATEN);
        scene.standing.phase = phase;
        assert_eq!(scene.wants(), [None, None, None], "{phase:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_makes_a_waiter_ask_anew_and_leaves_a_holder_alone() {
    let mut scene = Scene::waiting(3).await;
    (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
    scene.claim(0);
    let now = scene.now();
    scene.standing.connections([1, 1, 1].into_iter(), now);
    assert_eq!(scene.wants(), [None, None, None], "the same ones");
    scene.standing.connections([2, 1, 5].into_iter(), now);
    assert_eq!(scene.wants(), [Some(ACQUIRE), None, Some(ACQUIRE)]);
    assert_eq!(scene.node(0).vote, Vote::Open, "what the node has told since may be lost");
    let mut scene = Scene::holding(3);
    let (now, valid_until) = (scene.now(), scene.standing.valid_until());
    scene.standing.connections([2, 2, 2].into_iter(), now);
    assert_eq!((scene.standing.valid_until(), scene.wants()), (valid_until, vec![None, None, None]));
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_wake_ups_do_not_arrive_yet_is_asked_a_little_later() {
    let mut scene = Scene::new(1);
    let now = scene.now();
    scene.standing.wait(now);
    assert_eq!(scene.wants(), [Some(ACQUIRE)]);
    assert!(!scene.standing.postpones(0, EXTEND, now), "only a place in the queue can wait");
    assert!(scene.standing.postpones(0, ACQUIRE, now));
    assert_eq!((scene.wants(), scene.idle_for()), (vec![None], Duration::from_millis(2)));
    advance(NODE_TIMEOUT).await;
    let now = scene.now();
    assert!(!scene.standing.postpones(0, ACQUIRE, now), "not for ever: it may never be allowed to subscribe");
    assert_eq!(scene.wants(), [Some(ACQUIRE)]);
}

#[tokio::test(start_paused = true)]
async fn silence_is_measured_from_when_a_majority_is_missing() {
    let mut scene = Scene::waiting(3).await;
    let tick = |scene: &mut Scene| {
        let now = scene.now();
        scene.standing.tick(now);
        scene.standing.silence(now)
    };
    (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
    scene.send(0, ACQUIRE);
    advance(NODE_TIMEOUT).await;
    assert_eq!(tick(&mut scene), Duration::ZERO, "two of three are heard of");
    scene.fail(1, ACQUIRE, unreachable());
    assert_eq!(tick(&mut scene), Duration::ZERO, "it begins now");
    advance(Duration::from_millis(300)).await;
    assert_eq!(tick(&mut scene), Duration::from_millis(300));
    scene.answer(0, Ok(QUEUED));
    assert_eq!(tick(&mut scene), Duration::ZERO);
    advance(Duration::from_millis(300)).await;
    assert_eq!(tick(&mut scene), Duration::ZERO, "and is not counted on from before");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_owes_many_answers_is_asked_nothing_more() {
    let mut scene = Scene::waiting(1).await;
    for _ in 0..8 {
        assert!(scene.node(0).is_open());
        scene.send(0, EXTEND);
    }
    assert!(!scene.node(0).is_open());
    scene.answer(0, Ok(EXTENDED));
    assert!(scene.node(0).is_open());
}
