//! Tests of a holder whose lock is being broken.

use super::*;
use crate::protocol::candidate::ending::Loss;
use crate::protocol::candidate::{Phase, Waited, Wanted};
use crate::protocol::local_budget::LocalBudget;

impl Scene {
    /// Announces from node `node` that the lock is broken. Returns the questions of the holder.
    fn revoke(&mut self, node: usize) -> Vec<(usize, Verb)> {
        let (now, mut sent) = (self.now(), Vec::new());
        self.candidate.revoked(node, now);
        self.candidate.renew(now, now, |out| sent.push((out.index, out.verb)));
        sent
    }
}

#[test]
fn break_message_is_verified_at_all_nodes_before_it_counts() {
    let mut scene = Scene::holding(3);
    let before = scene.candidate.held_until();
    for node in 0..3 {
        assert_eq!(scene.revoke(node), [(0, EXTEND), (1, EXTEND), (2, EXTEND)]);
        assert!(scene.candidate.is_in_doubt(scene.now()));
        (0..3).for_each(|node| scene.answer(node, Ok(EXTENDED)));
        assert!(!scene.candidate.is_in_doubt(scene.now()));
    }
    assert!(scene.candidate.held_until() >= before && scene.candidate.is_held(scene.now()), "nothing of it was true");
    assert!(scene.candidate.is_contended(), "but somebody wants it, so that it is not left idle");
}

#[test]
fn lost_majority_is_reported_as_broken_only_after_a_break_message() {
    for is_told in [true, false] {
        let mut scene = Scene::holding(3);
        for node in 0..2 {
            assert!(scene.candidate.is_held(scene.now()), "a minority");
            if !is_told {
                scene.send(node, EXTEND);
            } else if node == 0 {
                assert_eq!(scene.revoke(2).len(), 3, "one of them is enough");
            }
            scene.answer(node, Ok(Reply::NotOwner));
        }
        assert!(!scene.candidate.is_held(scene.now()));
        let expected = if is_told { Loss::Revoked } else { Loss::Taken };
        assert_eq!(scene.candidate.loss(scene.now()), expected);
    }
}

#[test]
fn break_is_reported_as_the_loss_cause_even_with_a_bare_majority() {
    for is_told in [true, false] {
        let mut scene = Scene::new(3);
        (0..3).for_each(|node| scene.send(node, SET));
        (0..2).for_each(|node| scene.answer(node, Ok(GRANTED)));
        scene.candidate.hold(scene.now());
        if is_told {
            assert_eq!(scene.revoke(0).len(), 2, "the third one owes an answer");
        } else {
            (0..2).for_each(|node| scene.send(node, EXTEND));
        }
        scene.answer(1, Ok(Reply::NotOwner));
        scene.answer(2, Ok(GRANTED));
        assert!(!scene.candidate.is_held(scene.now()), "what has lapsed stays lost");
        let expected = if is_told { Loss::Revoked } else { Loss::Expired };
        assert_eq!(scene.candidate.loss(scene.now()), expected);
    }
}

#[test]
fn false_break_message_does_not_change_the_loss_cause() {
    let mut scene = Scene::holding(3);
    assert_eq!(scene.revoke(0).len(), 3);
    scene.advance(2 * TTL);
    assert!(!scene.candidate.is_held(scene.now()), "no node has answered");
    assert_eq!(scene.candidate.loss(scene.now()), Loss::Expired);
}

#[test]
fn waiter_without_votes_ignores_a_break_message() {
    let mut scene = Scene::waiting(3);
    let before = scene.wants();
    scene.candidate.revoked(0, scene.now());
    assert_eq!(scene.wants(), before);
    assert!(!scene.candidate.is_contended() && !scene.candidate.is_revoked());
}

#[test]
fn grants_before_a_break_message_begin_no_body() {
    for begins in [Scene::new as fn(usize) -> Scene, Scene::waiting] {
        for is_answered in [true, false] {
            let mut scene = begins(3);
            let verb = if scene.candidate.phase() == Phase::Trying { SET } else { ACQUIRE };
            (0..2).for_each(|node| scene.send(node, verb));
            if is_answered {
                (0..2).for_each(|node| scene.answer(node, Ok(GRANTED)));
                assert!(scene.is_won());
            }
            scene.candidate.revoked(2, scene.now());
            if !is_answered {
                (0..2).for_each(|node| scene.answer(node, Ok(GRANTED)));
            }
            assert!(!scene.is_won(), "{verb:?} {is_answered}");
            scene.candidate.wait(scene.now());
            scene.advance(NODE_TIMEOUT);
            assert_eq!(scene.wants(), [Some(ACQUIRE); 3], "{verb:?} {is_answered}");
            assert_eq!(scene.candidate.wait_outcome(scene.now()), None);
            // The message was true: the process that breaks the lock waits for the end of the token.
            (0..2).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
            assert_eq!(scene.candidate.wait_outcome(scene.now()), Some(Waited::LostMajority));
        }
    }
}

#[test]
fn waiter_acquires_after_a_false_break_message() {
    let mut scene = Scene::waiting(3);
    (0..2).for_each(|node| scene.hear(node, ACQUIRE, GRANTED));
    scene.candidate.revoked(0, scene.now());
    assert!(!scene.is_won());
    (0..2).for_each(|node| scene.hear(node, ACQUIRE, GRANTED));
    assert_eq!(scene.candidate.wait_outcome(scene.now()), Some(Waited::Held));
}

#[test]
fn lock_that_may_be_broken_is_not_handed_off_before_nodes_answer() {
    let wanted = Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO };
    let mut scene = Scene::holding(3);
    scene.candidate.revoked(0, scene.now());
    assert!(!scene.candidate.pass(wanted, LocalBudget::default(), scene.now()), "nobody was asked yet");
    let now = scene.now();
    scene.candidate.renew(now, now, |_| {});
    assert!(!scene.candidate.pass(wanted, LocalBudget::default(), scene.now()), "nobody has answered yet");
    (0..3).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert!(scene.candidate.pass(wanted, LocalBudget::default(), scene.now()), "it was a lie");
}
