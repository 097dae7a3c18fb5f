//! Tests of nodes that may have forgotten locks, and of nodes whose clocks were set forward.

use super::*;

const LEFT: Duration = Duration::from_secs(3);

const fn abstains() -> Answer {
    Err(NodeError::RecentlyRestarted(LEFT))
}

#[test]
fn a_node_that_abstains_has_no_vote_and_must_be_told_of_the_release() {
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
fn it_is_waited_for_and_asked_again_when_it_counts() {
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
fn a_claim_of_a_node_that_abstains_is_no_vote_and_what_it_gave_before_stays() {
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
fn a_step_shortens_the_leases_of_its_node_alone() {
    let table = [(1, 1, true), (3, 1, false), (3, 2, true), (5, 2, false), (5, 3, true)];
    for (nodes, stepped, is_shorter) in table {
        let mut scene = Scene::holding(nodes);
        let proven = scene.candidate.valid_until().unwrap();
        (0..stepped).for_each(|node| scene.candidate.clock_stepped(node, LEFT));
        let expected = if is_shorter { proven.before(LEFT) } else { proven };
        assert_eq!(scene.candidate.valid_until(), Some(expected), "{nodes} {stepped}");
    }
}

#[test]
fn a_step_counts_for_the_answers_that_are_here_and_not_for_those_to_come() {
    let mut scene = Scene::new(1);
    scene.send(0, SET);
    let before = TERMS.provable(scene.now());
    scene.advance(MILLISECOND);
    scene.send(0, EXTEND);
    scene.answer(0, Ok(GRANTED));
    scene.candidate.clock_stepped(0, LEFT);
    assert_eq!(scene.candidate.valid_until(), Some(before.before(LEFT)));
    let after = TERMS.provable(scene.now());
    scene.answer(0, Ok(EXTENDED));
    assert_eq!(scene.candidate.valid_until(), Some(after));
}
