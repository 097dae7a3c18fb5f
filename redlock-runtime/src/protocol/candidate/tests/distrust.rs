//! Tests of nodes that may have forgotten locks, and of nodes whose clocks were set forward.

use super::*;

const LEFT: Duration = Duration::from_secs(3);

const fn abstains() -> Answer {
    Err(NodeError::RecentlyRestarted(LEFT))
}

#[test]
fn abstaining_node_has_no_vote_and_is_sent_the_release() {
    for verb in [SET, ACQUIRE, EXTEND] {
        let mut scene = Scene::new(1);
        scene.send(0, verb);
        scene.answer(0, abstains());
        assert_eq!((scene.vote(0), scene.voter(0).may_know()), (Vote::Failed, true), "{verb:?}");
        assert!(!scene.is_won() && !scene.candidate.has_lost_its_majority(scene.now()));
        assert_eq!(scene.voter(0).reason(scene.now(), NODE_TIMEOUT), Some(NodeError::RecentlyRestarted(LEFT)));
    }
}

#[test]
fn abstaining_node_counts_as_reachable_and_can_vote_later() {
    let mut scene = Scene::waiting(1);
    scene.send(0, ACQUIRE);
    scene.answer(0, abstains());
    for _ in 0..3 {
        scene.candidate.tick(scene.now());
        scene.advance(LEFT / 8);
    }
    assert_eq!(scene.candidate.silence(scene.now()), Duration::ZERO, "it is no silence");
    assert!(!scene.candidate.is_heard(scene.now()), "but no holder either");
    scene.hear(0, ACQUIRE, GRANTED);
    assert!(scene.is_won());
}

#[test]
fn abstention_voids_a_claim_and_keeps_an_earlier_lease() {
    let mut scene = Scene::waiting(1);
    scene.claim(0);
    assert_eq!(scene.wants(), [Some(EXTEND)]);
    scene.send(0, EXTEND);
    scene.answer(0, abstains());
    assert_eq!((scene.vote(0), scene.wants()), (Vote::Failed, vec![None]));
    let mut scene = Scene::holding(1);
    let proven = scene.candidate.valid_until();
    scene.send(0, EXTEND);
    scene.answer(0, abstains());
    assert_eq!((scene.vote(0), scene.candidate.valid_until()), (Vote::CLAIM, proven));
}

#[test]
fn clock_step_shortens_only_the_leases_of_its_node() {
    let table = [(1, 1, true), (3, 1, false), (3, 2, true), (5, 2, false), (5, 3, true)];
    for (nodes, stepped, is_shorter) in table {
        let mut scene = Scene::holding(nodes);
        let proven = scene.candidate.valid_until().unwrap();
        (0..stepped).for_each(|node| scene.candidate.on_clock_step(node, LEFT));
        let expected = if is_shorter { proven.before(LEFT) } else { proven };
        assert_eq!(scene.candidate.valid_until(), Some(expected), "{nodes} {stepped}");
    }
}

#[test]
fn clock_step_shortens_arrived_answers_and_not_later_ones() {
    let mut scene = Scene::new(1);
    scene.send(0, SET);
    let before = TERMS.provable(scene.now());
    scene.advance(MILLISECOND);
    scene.send(0, EXTEND);
    scene.answer(0, Ok(GRANTED));
    scene.candidate.on_clock_step(0, LEFT);
    assert_eq!(scene.candidate.valid_until(), Some(before.before(LEFT)));
    let after = TERMS.provable(scene.now());
    scene.answer(0, Ok(EXTENDED));
    assert_eq!(scene.candidate.valid_until(), Some(after));
}
