//! Nodes that may have forgotten locks, and nodes whose clocks were set forward.

use super::*;
use crate::protocol::candidate::voter::Vote;
use std::task::Waker;

const LEFT: Duration = Duration::from_secs(3);

const fn abstains() -> Answer {
    Err(NodeError::Abstains(LEFT))
}

#[tokio::test(start_paused = true)]
async fn a_node_that_abstains_has_no_vote_and_must_be_told_of_the_release() {
    for verb in [SET, ACQUIRE, EXTEND] {
        let mut scene = Scene::new(1);
        scene.send(0, verb);
        scene.answer(0, abstains());
        assert_eq!((scene.node(0).vote, scene.node(0).may_know()), (Vote::Failed, true), "{verb:?}");
        assert!(!scene.is_won() && !scene.standing.is_spoilt(scene.now()));
        assert_eq!(scene.node(0).reason(scene.now(), NODE_TIMEOUT), Some(NodeError::Abstains(LEFT)));
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_waited_for_and_asked_again_when_it_counts() {
    let mut scene = Scene::waiting(1).await;
    scene.send(0, ACQUIRE);
    scene.answer(0, abstains());
    for _ in 0..3 {
        scene.standing.tick(scene.now());
        advance(LEFT / 8).await;
    }
    assert_eq!(scene.standing.silence(scene.now()), Duration::ZERO, "it is no silence");
    assert!(!scene.standing.is_heard(scene.now()), "but no holder either");
    scene.hear(0, ACQUIRE, GRANTED);
    assert!(scene.is_won());
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_node_that_abstains_is_no_vote_and_what_it_gave_before_stays() {
    let mut scene = Scene::waiting(1).await;
    scene.claim(0);
    assert_eq!(scene.wants(), [Some(EXTEND)]);
    scene.send(0, EXTEND);
    scene.answer(0, abstains());
    assert_eq!((scene.node(0).vote, scene.wants()), (Vote::Failed, vec![None]));
    let mut scene = Scene::holding(1);
    let proven = scene.standing.valid_until();
    scene.send(0, EXTEND);
    scene.answer(0, abstains());
    assert_eq!((scene.node(0).vote, scene.standing.valid_until()), (Vote::Granted, proven));
}

#[tokio::test(start_paused = true)]
async fn a_step_shortens_the_leases_of_its_node_alone() {
    let table = [(1, 1, true), (3, 1, false), (3, 2, true), (5, 2, false), (5, 3, true)];
    for (nodes, stepped, is_shorter) in table {
        let mut scene = Scene::holding(nodes);
        let proven = scene.standing.valid_until().unwrap();
        scene.standing.watchers.watch(&mut None, Waker::noop());
        (0..stepped).for_each(|node| scene.standing.shorten(node, LEFT, scene.clock));
        assert_eq!(scene.standing.watchers.called().len(), usize::from(is_shorter), "{nodes} {stepped}");
        let expected = if is_shorter { proven.before(LEFT) } else { proven };
        assert_eq!(scene.standing.valid_until(), Some(expected), "{nodes} {stepped}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_counts_for_the_answers_that_are_here_and_not_for_those_to_come() {
    let mut scene = Scene::new(1);
    scene.send(0, SET);
    let before = TERMS.provable(scene.now());
    // It has come, and nobody has looked.
    scene.unanswered[0].pop_front().unwrap().send(Ok(GRANTED)).unwrap();
    advance(MILLISECOND).await;
    scene.send(0, EXTEND);
    scene.standing.shorten(0, LEFT, scene.clock);
    assert_eq!(scene.standing.valid_until(), Some(before.before(LEFT)));
    let after = TERMS.provable(scene.now());
    scene.answer(0, Ok(EXTENDED));
    assert_eq!(scene.standing.valid_until(), Some(after));
}
